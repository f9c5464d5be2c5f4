//! Many small writes, then close: what a receiver makes of data that comes in crumbs, as a service that answers in pieces.

use crate::key::Default::Value;
use crate::key::keyed::Shown;
use crate::key::keyed::keyed;
use crate::key::{key, kind};
use serde::Serialize;

use super::{Apps, Counts, Example, WRITE, Workload, WorkloadKind, Write, transfer};

/// What the published measurements wrote at a time: 128 B, and 32 B.
const WRITE_BYTES: u64 = 128;

pub(super) static KIND: WorkloadKind = WorkloadKind {
    name: "small-writes",
    summary: "the sender makes `writes` small writes and closes; completion time counts, and how the receiver's reads come",
    keys: SmallWrites::KEYS,
    counts: Counts::Completion,
    draws: false,
    fewer: &[],
    example: Example {
        keys: "writes = 700\nwrite = \"32B\"",
        down_bytes: Some(700 * 32),
        up_bytes: 0,
    },
    read: |from| Ok(SmallWrites::read(from).into()),
};

keyed! {
    /// `writes` writes of `write_bytes` each, then close: completion time, and the receiver's reads.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct SmallWrites {
        pub writes: u64 = key(
            "writes",
            &kind::Count { min: 1, max: 10_000_000 },
            Value("4096"),
            "how many writes",
            "tcpknee",
        );
        pub write_bytes: Write<WRITE_BYTES> = WRITE;
    }
}

impl SmallWrites {
    fn bytes(&self) -> u64 {
        self.writes * self.write_bytes.0
    }
}

impl Workload for SmallWrites {
    fn apps(&self, _drawn_bytes: u64) -> Option<Apps> {
        Some(transfer::apps(self.bytes(), self.write_bytes.0))
    }

    fn shown(&self) -> Vec<Shown> {
        self.lines()
    }

    fn transfer_bytes(&self, _drawn_bytes: u64) -> Option<u64> {
        Some(self.bytes())
    }

    fn times_reads(&self) -> bool {
        true
    }
}
