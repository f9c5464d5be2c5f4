//! What the ACKs of an interval said.

use crate::pcap::sender::Heard;

/// The ACKs of an interval so far.
#[derive(Default)]
pub struct Interval {
    /// The interval's number since 1970, once there is an ACK in it.
    slot: Option<i64>,
    rtt_us_sum: i64,
    pub rtt_us_min: Option<i64>,
    pub rtt_us_max: Option<i64>,
    pub rtt_samples: i64,
    pub rtt_ts_us_min: Option<i64>,
}

impl Interval {
    pub(crate) fn is_open(&self) -> bool {
        self.slot.is_some()
    }

    /// Is it over at `t_ns`?
    pub(crate) fn is_over(&self, t_ns: i64, every_ns: Option<i64>) -> bool {
        match (self.slot, every_ns) {
            (Some(slot), Some(every_ns)) => t_ns.div_euclid(every_ns) != slot,
            _ => false,
        }
    }

    /// Adds what an ACK said. False: there are no intervals.
    pub(crate) fn add(&mut self, t_ns: i64, heard: &Heard, every_ns: Option<i64>) -> bool {
        let Some(every_ns) = every_ns else {
            return false;
        };
        let us = |ns: i64| ns / 1000;
        self.slot.get_or_insert(t_ns.div_euclid(every_ns));
        if let Some(rtt_us) = heard.rtt_ns.map(us) {
            self.rtt_us_sum = self.rtt_us_sum.saturating_add(rtt_us);
            self.rtt_us_min = Some(self.rtt_us_min.map_or(rtt_us, |least| least.min(rtt_us)));
            self.rtt_us_max = self.rtt_us_max.max(Some(rtt_us));
            self.rtt_samples += 1;
        }
        if let Some(rtt_us) = heard.rtt_ts_ns.map(us) {
            self.rtt_ts_us_min = Some(self.rtt_ts_us_min.map_or(rtt_us, |us| us.min(rtt_us)));
        }
        true
    }

    /// When it begins, where intervals have that length; `None`: it has no ACK.
    pub fn begins_ns(&self, every_ns: i64) -> Option<i64> {
        Some(self.slot? * every_ns)
    }

    pub fn rtt_us_mean(&self) -> Option<i64> {
        self.rtt_us_sum.checked_div(self.rtt_samples)
    }
}
