//! Data without end, as `iperf3 -t`.

use knee_units::Nanos;

use super::{App, Apps, Sink, WorkloadKind};

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "bulk",
    summary: "the sender writes without end",
    keys: &["write"],
};

pub(super) fn apps(write_bytes: u64) -> Apps {
    Apps {
        sender: Box::new(Source {
            write_bytes,
            left: write_bytes,
        }),
        receiver: Box::new(Sink),
        receiver_opens: false,
    }
}

struct Source {
    write_bytes: u64,
    /// Of the current write().
    left: u64,
}

impl App for Source {
    fn next_write_bytes(&mut self, _now: Nanos) -> u64 {
        self.left
    }
    fn wrote(&mut self, _now: Nanos, bytes: u64) {
        self.left -= bytes;
        if self.left == 0 {
            self.left = self.write_bytes;
        }
    }
    fn read(&mut self, _now: Nanos, _bytes: u64) {}
}
