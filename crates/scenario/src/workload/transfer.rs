//! A fixed amount of data, then close: the time until the far end has it all.

use crate::key::Default::Words;
use crate::key::keyed::Shown;
use crate::key::keyed::keyed;
use crate::key::{key, kind};
use knee_units::Nanos;
use serde::Serialize;

use super::{App, Apps, Counts, Example, WRITE, WRITE_BYTES, Workload, WorkloadKind, Write};

pub(super) static KIND: WorkloadKind = WorkloadKind {
    name: "transfer",
    summary: "the sender writes a fixed number of bytes and closes; completion time counts",
    keys: Transfer::KEYS,
    counts: Counts::Completion,
    draws: false,
    fewer: &[],
    example: Example {
        keys: "bytes = \"100003B\"\nwrite = \"128B\"",
        down_bytes: Some(100_003),
        up_bytes: 0,
    },
    read: |from| {
        from.needs(
            "bytes",
            "how much workload \"transfer\" carries",
            "Add bytes = \"1MB\" or another amount in [[flow]].",
        )?;
        Ok(Transfer::read(from).into())
    },
};

keyed! {
    /// `bytes` in writes of `write_bytes`, then close: completion time.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct Transfer {
        pub bytes: u64 = key(
            "bytes",
            &kind::Bytes { min: 1, max: 1_000_000_000_000 },
            Words("required by workload transfer"),
            "how much is transferred",
            "tcpknee",
        );
        pub write_bytes: Write<WRITE_BYTES> = WRITE;
    }
}

impl Workload for Transfer {
    fn apps(&self, _drawn_bytes: u64) -> Option<Apps> {
        Some(apps(self.bytes, self.write_bytes.0))
    }

    fn shown(&self) -> Vec<Shown> {
        self.lines()
    }

    fn transfer_bytes(&self, _drawn_bytes: u64) -> Option<u64> {
        Some(self.bytes)
    }
}

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
