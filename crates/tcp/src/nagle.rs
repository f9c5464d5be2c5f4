//! Nagle's algorithm with Minshall's rule: one small segment at a time.

#[derive(Clone, Debug)]
pub struct Nagle {
    /// TCP_NODELAY
    off: bool,
    /// snd_sml: end of the last segment sent that was not full.
    small_end: u64,
}

impl Nagle {
    pub fn new(nodelay: bool) -> Nagle {
        Nagle {
            off: nodelay,
            small_end: 0,
        }
    }

    /// Data up to `end_seq` is sent, whose last segment is not full.
    pub fn on_small_sent(&mut self, end_seq: u64) {
        self.small_end = end_seq;
    }

    /// tcp_nagle_check(), of data that is less than a full segment: must it wait for an ACK?
    pub fn holds(&self, packets_out: u32, snd_una: u64) -> bool {
        !self.off && packets_out > 0 && self.small_end > snd_una
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_segment_waits_while_another_is_outstanding() {
        let mut nagle = Nagle::new(false);
        assert!(!nagle.holds(1, 1), "none was sent yet");
        nagle.on_small_sent(100);
        assert!(nagle.holds(1, 99));
        assert!(!nagle.holds(1, 100), "it is acked");
        assert!(!nagle.holds(0, 99), "nothing is outstanding");
        let mut nodelay = Nagle::new(true);
        nodelay.on_small_sent(100);
        assert!(!nodelay.holds(1, 99));
    }
}
