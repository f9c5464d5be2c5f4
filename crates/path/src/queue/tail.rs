//! The end of a line at which packets join or do not, and are marked or not.

use knee_units::Nanos;

use super::BufferLimit;

/// What decides about a packet that comes to a queue in which none overtakes another.
#[derive(Clone, Copy, Debug)]
pub struct Tail {
    pub limit: BufferLimit,
    /// A packet is marked with which more than so many wait; the greatest number: none is.
    pub ce_pkts: u32,
    /// A packet is marked with which more than so many bytes wait.
    pub ce_bytes: u64,
    /// A packet is marked that waits longer.
    pub ce_threshold: Nanos,
}

impl Tail {
    /// Drops what does not fit, and marks nothing.
    pub fn dropping(limit: BufferLimit) -> Tail {
        Tail {
            limit,
            ce_pkts: u32::MAX,
            ce_bytes: u64::MAX,
            ce_threshold: Nanos(u64::MAX),
        }
    }

    /// Is a packet marked with which so much waits, itself included?
    #[inline]
    pub fn marks_length(&self, pkts: u32, bytes: u64) -> bool {
        pkts > self.ce_pkts || bytes > self.ce_bytes
    }

    /// Is a packet marked with which so much waits, itself included, and that waits so long?
    #[inline]
    pub fn marks(&self, pkts: u32, bytes: u64, waits: Nanos) -> bool {
        self.marks_length(pkts, bytes) || waits > self.ce_threshold
    }
}
