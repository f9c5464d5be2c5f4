//! Pacing: when the next packet may leave (the earliest departure time model), and the timer that waits for it.

use knee_units::NEVER;

/// Segments at a connection's start that pacing lets pass (TCP_INIT_CWND).
const UNPACED_SEGS: u64 = 10;

/// What a packet of TSO has of its own below IP when TCP hands it down: the header with timestamps, once.
const TCP_HEADER_BYTES: u64 = 32;

#[derive(Clone, Debug)]
pub struct Pacer {
    /// tcp_wstamp_ns: earliest departure of the next packet.
    next_ns: u64,
    /// That of the packet before, for the credit of a late timer.
    prior_ns: u64,
    timer_ns: u64,
    rule: TimerRule,
    /// How often the timer was armed, and how often it fired, since somebody took that.
    pub arms: u64,
    pub fires: u64,
}

/// When TCP's pacing timer is armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerRule {
    /// When a packet is to be sent and its time lies in the future: since Linux 4.20 (864e5c090749, "tcp: optimize tcp
    /// internal pacing").
    WhenNeeded,
    /// After every packet with data, for as long as it with its TCP header takes: Linux 4.13 to 4.19 (218af599fa63,
    /// "tcp: internal implementation for pacing").
    EveryPacket,
    /// Never: before Linux 4.13 only fq paces.
    Never,
}

impl Pacer {
    pub fn new(rule: TimerRule) -> Pacer {
        Pacer {
            next_ns: 0,
            prior_ns: 0,
            timer_ns: NEVER,
            rule,
            arms: 0,
            fires: 0,
        }
    }

    /// Can TCP pace by itself?
    #[inline]
    pub fn has_timer(&self) -> bool {
        self.rule != TimerRule::Never
    }

    /// Earliest departure of the next packet.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// When its timer fires, if it does.
    #[inline]
    pub fn timer_ns(&self) -> u64 {
        self.timer_ns
    }

    /// Stops the timer; true: it was due.
    #[inline]
    pub fn take_due(&mut self, now_ns: u64) -> bool {
        let due = self.timer_ns <= now_ns;
        if due {
            self.timer_ns = NEVER;
            self.fires += 1;
        }
        due
    }

    /// tcp_pacing_check(): is the next departure in the future? Arms the timer.
    #[inline]
    pub fn blocks(&mut self, now_ns: u64) -> bool {
        if self.rule == TimerRule::EveryPacket {
            return self.timer_ns != NEVER;
        }
        if self.next_ns <= now_ns {
            return false;
        }
        if self.timer_ns == NEVER {
            self.timer_ns = self.next_ns;
            self.arms += 1;
        }
        true
    }

    /// A packet is handed down: when it may leave.
    #[inline]
    pub fn departure(&mut self, now_ns: u64) -> u64 {
        self.prior_ns = self.next_ns;
        self.next_ns = self.next_ns.max(now_ns);
        self.next_ns
    }

    /// tcp_update_skb_after_send(): pushes the next departure back by this packet's payload at the pacing rate, less
    /// what the last timer was late. `data_segs_out` segments were sent so far.
    #[inline]
    pub fn on_sent(&mut self, payload_bytes: u64, rate_bytes_per_sec: u64, data_segs_out: u64) {
        if rate_bytes_per_sec == u64::MAX || rate_bytes_per_sec == 0 {
            return;
        }
        let ns = |bytes: u64| bytes * 1_000_000_000 / rate_bytes_per_sec;
        if self.rule == TimerRule::EveryPacket {
            self.timer_ns = self.next_ns + ns(payload_bytes + TCP_HEADER_BYTES);
            self.arms += 1;
            return;
        }
        if data_segs_out < UNPACED_SEGS {
            return;
        }
        let len_ns = ns(payload_bytes);
        let credit_ns = self.next_ns - self.prior_ns;
        self.next_ns += len_ns - (len_ns / 2).min(credit_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes in a microsecond.
    const RATE: u64 = 1_000_000_000;

    #[test]
    fn packets_leave_at_the_pacing_rate() {
        let mut pacer = Pacer::new(TimerRule::WhenNeeded);
        assert_eq!(pacer.departure(0), 0);
        pacer.on_sent(1_000, RATE, 10);
        assert_eq!(pacer.next_ns(), 1_000);
        assert!(pacer.blocks(999) && pacer.timer_ns() == 1_000);
        assert!(!pacer.take_due(999) && pacer.take_due(1_000));
        assert!(!pacer.blocks(1_000) && pacer.timer_ns() == NEVER);
        assert_eq!(pacer.departure(1_000), 1_000);
        pacer.on_sent(3_000, RATE, 11);
        assert_eq!(pacer.next_ns(), 4_000);
    }

    /// Linux 4.13 to 4.19: also where nothing is left to send.
    #[test]
    fn by_the_old_rule_every_packet_arms_the_timer() {
        let mut pacer = Pacer::new(TimerRule::EveryPacket);
        for (sent, at_ns) in (1..).zip([0, 5_000, 20_000]) {
            assert!(!pacer.blocks(at_ns));
            pacer.departure(at_ns);
            pacer.on_sent(1_000, RATE, 10 + sent);
            assert!(pacer.blocks(at_ns + 1_031) && !pacer.take_due(at_ns + 1_031));
            assert!(pacer.take_due(at_ns + 1_032));
            assert_eq!((pacer.arms, pacer.fires), (sent, sent));
        }
    }

    #[test]
    fn the_timer_is_armed_only_for_a_packet_that_has_to_wait() {
        let mut pacer = Pacer::new(TimerRule::WhenNeeded);
        pacer.departure(0);
        pacer.on_sent(1_000, RATE, 10);
        assert_eq!((pacer.arms, pacer.fires), (0, 0));
        assert!(pacer.blocks(10) && pacer.blocks(20));
        assert!(pacer.take_due(1_000));
        assert_eq!((pacer.arms, pacer.fires), (1, 1));
    }

    #[test]
    fn a_late_timer_is_made_up_for_by_half_a_packet_at_most() {
        for (late_ns, next_ns) in [(100, 2_000), (500, 2_000), (800, 2_300)] {
            let mut pacer = Pacer::new(TimerRule::WhenNeeded);
            pacer.departure(0);
            pacer.on_sent(1_000, RATE, 10);
            pacer.departure(1_000 + late_ns);
            pacer.on_sent(1_000, RATE, 11);
            assert_eq!(pacer.next_ns(), next_ns);
        }
    }

    #[test]
    fn the_first_ten_segments_and_those_without_a_rate_are_not_paced() {
        for (rate, segs) in [(RATE, 9), (u64::MAX, 10), (0, 10)] {
            let mut pacer = Pacer::new(TimerRule::WhenNeeded);
            pacer.departure(7);
            pacer.on_sent(1_000, rate, segs);
            assert_eq!(pacer.next_ns(), 7);
        }
    }
}
