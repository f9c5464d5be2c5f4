//! A fixed amount of data, then close: the time until the far end has it all.

use knee_units::Nanos;

use super::{App, Apps, WorkloadKind};

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "transfer",
    summary: "the sender writes a fixed number of bytes and closes; completion time counts",
    keys: &["bytes", "write"],
};

pub(super) fn apps(bytes: u64, write_bytes: u64) -> Apps {
    Apps {
        sender: Box::new(Source {
            left: bytes,
            write_bytes,
            in_write: write_bytes,
        }),
        receiver: Box::new(Receiver {
            left: bytes,
            completed: None,
        }),
        receiver_opens: false,
    }
}

struct Source {
    left: u64,
    write_bytes: u64,
    /// Left of the current write().
    in_write: u64,
}

impl App for Source {
    fn next_write_bytes(&mut self, _now: Nanos) -> u64 {
        self.in_write.min(self.left)
    }
    fn wrote(&mut self, _now: Nanos, bytes: u64) {
        self.left -= bytes;
        self.in_write -= bytes;
        if self.in_write == 0 {
            self.in_write = self.write_bytes;
        }
    }
    fn read(&mut self, _now: Nanos, _bytes: u64) {}
    fn closes(&self) -> bool {
        self.left == 0
    }
}

struct Receiver {
    left: u64,
    completed: Option<Nanos>,
}

impl App for Receiver {
    fn next_write_bytes(&mut self, _now: Nanos) -> u64 {
        0
    }
    fn wrote(&mut self, _now: Nanos, _bytes: u64) {}
    fn read(&mut self, now: Nanos, bytes: u64) {
        self.left -= bytes;
        if self.left == 0 {
            self.completed = Some(now);
        }
    }
    fn closes(&self) -> bool {
        self.left == 0
    }
    fn completed(&self) -> Option<Nanos> {
        self.completed
    }
}
