//! How data came to an application: how much each read() brought, and how long after the one before.

use crate::Histogram;

/// The reads of one connection's end.
#[derive(Clone, Debug, Default, serde::Deserialize, serde::Serialize)]
pub struct Reads {
    pub bytes: Histogram,
    /// Between a read and the one before it.
    pub gap_us: Histogram,
    last_ns: Option<u64>,
}

impl Reads {
    /// One at this time brought `bytes`.
    pub fn add(&mut self, now_ns: u64, bytes: u64) {
        self.bytes.add(bytes);
        if let Some(last_ns) = self.last_ns.replace(now_ns) {
            self.gap_us.add((now_ns - last_ns) / 1_000);
        }
    }
}
