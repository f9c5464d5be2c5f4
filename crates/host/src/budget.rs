//! How much NAPI may do at a time: what net_rx_action() takes from its processor before it lets other softirqs go first
//! (Linux, net/core/dev.c).

/// The budget of a round of polls on one processor.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Budget {
    /// Of the current round: how many packets it has taken, and when it began. They lie side by side, as they end together.
    taken: u64,
    since_ns: Option<u64>,
    /// netdev_budget, and netdev_budget_usecs.
    pkts: u64,
    ns: u64,
}

impl Budget {
    pub fn new(pkts: u32, ns: u64) -> Budget {
        Budget {
            taken: 0,
            since_ns: None,
            pkts: pkts.into(),
            ns,
        }
    }

    /// A poll begins. It belongs to the current round, or begins one.
    #[inline]
    pub fn begin(&mut self, now_ns: u64) {
        self.since_ns.get_or_insert(now_ns);
    }

    /// A poll has taken `pkts` packets. Returns whether that used up the budget, which ends the round (time_squeeze).
    #[inline]
    pub fn take(&mut self, now_ns: u64, pkts: u32) -> bool {
        self.taken += u64::from(pkts);
        let since_ns = self.since_ns.unwrap_or(now_ns);
        let squeezed = self.taken >= self.pkts || now_ns - since_ns >= self.ns;
        if squeezed {
            self.end();
        }
        squeezed
    }

    /// The round is over: nothing is left to poll but what was polled in it already.
    #[inline]
    pub fn end(&mut self) {
        self.taken = 0;
        self.since_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_its_packets_or_with_its_time() {
        let mut budget = Budget::new(300, 2_000_000);
        budget.begin(0);
        for _ in 0..4 {
            assert!(!budget.take(1_000, 64));
        }
        assert!(budget.take(2_000, 64));
        budget.begin(3_000);
        assert!(!budget.take(2_002_999, 1));
        assert!(budget.take(2_003_000, 1));
    }

    #[test]
    fn a_round_that_found_all_there_was_leaves_nothing_to_the_next() {
        let mut budget = Budget::new(100, 1_000);
        budget.begin(0);
        assert!(!budget.take(10, 99));
        budget.end();
        budget.begin(5_000);
        assert!(!budget.take(5_010, 99));
    }
}
