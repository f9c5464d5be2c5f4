//! Congestion window validation: is the window used, and how long was it not (RFC 2861, RFC 7661 as Linux has it)?

use knee_cc::CcIn;
use knee_kit::odds::likely;

#[derive(Clone, Debug, Default)]
pub struct CwndUsage {
    /// The round of `is_cwnd_limited` and `max_packets_out` ends when this is acked.
    round_end: u64,
    /// Most segments outstanding since the window was last full.
    used: u32,
    /// Jiffies when the window was last full or changed for a reason.
    stamp: u32,
}

impl CwndUsage {
    /// The connection is established.
    pub fn start(&mut self, jiffies: u32, snd_nxt: u64) {
        self.stamp = jiffies;
        self.round_end = snd_nxt;
    }

    /// The window is right as it is now.
    #[inline]
    pub fn refresh(&mut self, jiffies: u32) {
        self.stamp = jiffies;
    }

    /// The window was set anew: what was used of the old one no longer counts.
    pub fn restart(&mut self, jiffies: u32) {
        self.stamp = jiffies;
        self.used = 0;
    }

    /// The first part of tcp_cwnd_validate(), after sending: `limited` says that the window stopped it. Tells the
    /// algorithm what it may know; returns how many jiffies ago the window was last full, `None` when it is.
    #[inline]
    pub fn on_sent(
        &mut self,
        limited: bool,
        (snd_una, snd_nxt): (u64, u64),
        packets_out: u32,
        jiffies: u32,
        cc: &mut CcIn,
    ) -> Option<u64> {
        if likely(limited || snd_una >= self.round_end)
            || cc.is_cwnd_limited == 0 && packets_out > cc.max_packets_out
        {
            cc.is_cwnd_limited = u32::from(limited);
            cc.max_packets_out = packets_out;
            self.round_end = snd_nxt;
        }
        if likely(is_cwnd_limited(cc)) {
            self.restart(jiffies);
            return None;
        }
        self.used = self.used.max(packets_out);
        Some(u64::from(jiffies.wrapping_sub(self.stamp)))
    }

    /// Most segments outstanding since the window was last full.
    pub fn used(&self) -> u32 {
        self.used
    }
}

/// tcp_is_cwnd_limited()
#[inline]
fn is_cwnd_limited(cc: &CcIn) -> bool {
    likely(cc.is_cwnd_limited != 0)
        || cc.snd_cwnd < cc.snd_ssthresh && cc.snd_cwnd < 2 * cc.max_packets_out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cc(snd_cwnd: u32, snd_ssthresh: u32) -> CcIn {
        CcIn {
            snd_cwnd,
            snd_ssthresh,
            ..CcIn::default()
        }
    }

    #[test]
    fn a_window_that_stopped_sending_counts_as_used_until_its_round_is_acked() {
        let (mut usage, mut cc) = (CwndUsage::default(), cc(10, 5));
        usage.start(100, 1);
        assert_eq!(usage.on_sent(true, (1, 11), 10, 110, &mut cc), None);
        assert_eq!((cc.is_cwnd_limited, cc.max_packets_out), (1, 10));
        assert_eq!(usage.on_sent(false, (10, 12), 2, 120, &mut cc), None);
        assert_eq!(usage.on_sent(false, (11, 13), 2, 127, &mut cc), Some(7));
        assert_eq!((cc.is_cwnd_limited, cc.max_packets_out), (0, 2));
        usage.on_sent(false, (11, 16), 5, 128, &mut cc);
        usage.on_sent(false, (11, 16), 4, 129, &mut cc);
        assert_eq!((cc.max_packets_out, usage.used()), (5, 5));
        usage.refresh(129);
        assert_eq!(usage.on_sent(false, (11, 16), 4, 130, &mut cc), Some(1));
        usage.restart(130);
        assert_eq!(usage.used(), 0);
    }

    #[test]
    fn in_slow_start_half_the_window_is_enough() {
        for (packets_out, full) in [(6, true), (5, false)] {
            let (mut usage, mut cc) = (CwndUsage::default(), cc(10, 50));
            let idle = usage.on_sent(false, (1, 7), packets_out, 5, &mut cc);
            assert_eq!(idle.is_none(), full);
        }
    }
}
