//! The tail loss probe under way (RFC 8985, 7).

/// What the sender remembers of its last probe.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// snd_nxt when it was sent; 0: none is under way.
    high_seq: u64,
    /// Was it a retransmission? Else it was new data.
    is_retrans: bool,
}

impl Probe {
    #[inline]
    pub fn is_out(&self) -> bool {
        self.high_seq != 0
    }

    /// Is a duplicate that ends there the probe itself?
    pub fn ends_at(&self, end_seq: u64) -> bool {
        self.is_out() && self.high_seq == end_seq
    }

    /// A probe goes out: what it is. It counts only once it is [`sent`](Probe::sent).
    pub fn choose(&mut self, is_retrans: bool) {
        self.is_retrans = is_retrans;
    }

    pub fn sent(&mut self, snd_nxt: u64) {
        self.high_seq = snd_nxt;
    }

    /// It no longer matters.
    pub fn cancel(&mut self) {
        self.high_seq = 0;
    }

    /// tcp_process_tlp_ack(): did the probe repair a loss? `duplicated` says that the probe arrived twice, `is_news` that
    /// the ACK tells anything besides.
    pub fn on_ack(&mut self, ack: u64, duplicated: bool, is_news: bool) -> bool {
        if ack < self.high_seq {
            return false;
        }
        if !self.is_retrans || duplicated {
            self.cancel();
            return false;
        }
        let repaired_loss = ack > self.high_seq;
        if !repaired_loss && !is_news {
            // A bare duplicate ACK: both copies arrived.
            self.cancel();
        }
        repaired_loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(is_retrans: bool) -> Probe {
        let mut probe = Probe::default();
        probe.choose(is_retrans);
        probe.sent(100);
        probe
    }

    #[test]
    fn new_data_as_a_probe_repairs_nothing() {
        let mut probe = probe(false);
        assert!(!probe.on_ack(99, false, true) && probe.is_out());
        assert!(!probe.on_ack(101, false, true) && !probe.is_out());
    }

    #[test]
    fn a_repeated_segment_repaired_a_loss_unless_it_arrived_twice() {
        let mut twice = probe(true);
        assert!(twice.ends_at(100) && !twice.ends_at(101));
        assert!(!twice.on_ack(101, true, true) && !twice.is_out());
        let mut once = probe(true);
        assert!(!once.on_ack(100, false, true) && once.is_out());
        assert!(once.on_ack(101, false, true));
        let mut duplicate = probe(true);
        assert!(!duplicate.on_ack(100, false, false) && !duplicate.is_out());
    }
}
