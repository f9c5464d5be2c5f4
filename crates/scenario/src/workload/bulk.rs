//! Data without end, as `iperf3 -t`.

use crate::key::keyed::Shown;
use crate::key::keyed::keyed;
use knee_units::Nanos;
use serde::Serialize;

use super::{App, Apps, Counts, Example, Sink, WRITE, WRITE_BYTES, Workload, WorkloadKind, Write};

pub(super) static KIND: WorkloadKind = WorkloadKind {
    name: "bulk",
    summary: "the sender writes without end",
    keys: Bulk::KEYS,
    counts: Counts::Goodput,
    draws: false,
    fewer: &[],
    example: Example {
        keys: "write = \"1000B\"",
        down_bytes: None,
        up_bytes: 0,
    },
    read: |from| Ok(Bulk::read(from).into()),
};

keyed! {
    /// Data without end, in writes of `write_bytes`.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct Bulk {
        pub write_bytes: Write<WRITE_BYTES> = WRITE;
    }
}

impl Workload for Bulk {
    fn apps(&self, _drawn_bytes: u64) -> Option<Apps> {
        Some(Apps {
            sender: Box::new(Source {
                write_bytes: self.write_bytes.0,
                left: self.write_bytes.0,
            }),
            receiver: Box::new(Sink),
            receiver_opens: false,
        })
    }

    fn shown(&self) -> Vec<Shown> {
        self.lines()
    }

    fn is_endless(&self) -> bool {
        true
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
    fn only_writes(&self) -> bool {
        true
    }
    fn read(&mut self, _now: Nanos, _bytes: u64) {}
}
