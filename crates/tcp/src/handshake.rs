//! What an end remembers of its handshake.

#[derive(Clone, Debug, Default)]
pub struct Handshake {
    sent_ns: u64,
    timeouts: u32,
}

impl Handshake {
    /// A SYN or SYN-ACK goes out.
    pub fn on_sent(&mut self, now_ns: u64) {
        self.sent_ns = now_ns;
    }

    /// It was not answered in time; should the next timeout be longer? A SYN's is the same `linear_timeouts` times.
    pub fn on_timeout(&mut self, is_syn: bool, linear_timeouts: u32) -> bool {
        self.timeouts += 1;
        !is_syn || self.timeouts > linear_timeouts
    }

    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// RTT of the handshake that ends now, unless anything was sent twice.
    pub fn rtt_us(&self, now_ns: u64) -> Option<u32> {
        let rtt_us = ((now_ns - self.sent_ns) / 1_000) as u32;
        (self.timeouts == 0).then_some(rtt_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_tells_the_rtt_unless_it_was_repeated() {
        let mut handshake = Handshake::default();
        handshake.on_sent(5_000);
        assert_eq!(handshake.rtt_us(25_999), Some(20));
        handshake.on_timeout(true, 4);
        handshake.on_sent(30_000);
        assert_eq!(handshake.rtt_us(50_000), None);
    }

    #[test]
    fn a_syns_timeout_doubles_from_the_fifth_on_and_a_syn_acks_at_once() {
        let mut handshake = Handshake::default();
        let longer: Vec<_> = (0..6).map(|_| handshake.on_timeout(true, 4)).collect();
        assert_eq!(longer, [false, false, false, false, true, true]);
        assert!(Handshake::default().on_timeout(false, 4));
        // Before Linux 6.5.
        assert!(Handshake::default().on_timeout(true, 0));
    }
}
