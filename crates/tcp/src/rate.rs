//! Delivery-rate samples (net/ipv4/tcp_rate.c; draft-ietf-ccwg-bbr, "Delivery
//! Rate Samples"): how fast the network delivered what was sent over the last
//! round trip, and whether the application was the reason.

use knee_cc::CcIn;
use knee_kit::odds::{likely, unlikely};

use super::rtx::{APP_LIMITED, EVER_RETRANS, RETRANS, Seg, Tx};

/// The sample an ACK builds up, from the most recently sent packet it delivers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// When that was sent, what was recorded then, its flags and its end.
    sent_us: u64,
    tx: Tx,
    last_end_seq: u64,
    flags: u8,
    any: bool,
    pub rtt_us: Option<u32>,
    prior_in_flight: u32,
    pub is_ack_delayed: bool,
}

impl RateSample {
    /// An empty sample of an ACK that arrives with `prior_in_flight` segments in flight.
    pub fn new(prior_in_flight: u32) -> RateSample {
        RateSample {
            prior_in_flight,
            ..RateSample::default()
        }
    }
    /// `tp.delivered` when the sampled packet was sent.
    pub fn prior_delivered(&self) -> u32 {
        self.tx.delivered
    }
    pub fn is_empty(&self) -> bool {
        !self.any
    }
    /// How long sending took.
    #[inline]
    fn snd_interval_us(&self) -> u64 {
        self.sent_us.saturating_sub(self.tx.first_us)
    }
    #[inline]
    fn is_app_limited(&self) -> bool {
        self.flags & APP_LIMITED != 0
    }

    /// Shows the completed sample to an algorithm with cong_control(), the only op that may look at it.
    #[inline(never)]
    pub fn show(&self, newly: Newly, totals: Totals, interval: Option<Interval>, cc: &mut CcIn) {
        cc.rs_acked_sacked = newly.delivered;
        cc.rs_losses = newly.lost;
        cc.rs_rtt_us = self.rtt_us.map_or(-1, i64::from);
        cc.rs_prior_in_flight = self.prior_in_flight;
        cc.rs_is_ack_delayed = u32::from(self.is_ack_delayed);
        cc.rs_is_app_limited = u32::from(self.is_app_limited());
        cc.rs_is_retrans = u32::from(self.flags & (RETRANS | EVER_RETRANS) != 0);
        cc.rs_prior_delivered = self.tx.delivered;
        cc.rs_last_end_seq = self.last_end_seq as u32;
        cc.rs_has_tx = u32::from(self.any);
        cc.rs_tx_in_flight = self.tx.in_flight;
        cc.rs_lost = totals.lost.wrapping_sub(self.tx.lost);
        let Some(interval) = interval else {
            cc.rs_prior_mstamp_us = 0;
            cc.rs_delivered = -1;
            cc.rs_interval_us = -1;
            return;
        };
        cc.rs_prior_mstamp_us = self.tx.delivered_us;
        cc.rs_delivered = totals.delivered.wrapping_sub(self.tx.delivered) as i32;
        cc.rs_delivered_ce = totals.delivered_ce.wrapping_sub(self.tx.delivered_ce) as i32;
        cc.rs_snd_interval_us = self.snd_interval_us() as u32;
        cc.rs_rcv_interval_us = interval.ack_us as u32;
        cc.rs_interval_us = interval.us.map_or(-1, |us| us as i64);
    }
}

/// Over which time a sample was taken.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Between the ACKs, us.
    ack_us: u64,
    /// The longer of the times that sending and acknowledging took; `None`: the sample is not valid.
    us: Option<u64>,
}

/// How many segments were delivered, delivered with a mark, and marked lost so far; all wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub delivered: u32,
    pub delivered_ce: u32,
    pub lost: u32,
}

/// What one ACK added to them.
#[derive(Clone, Copy, Debug)]
pub struct Newly {
    pub delivered: u32,
    pub lost: u32,
}

/// Where the delivery process stands.
#[derive(Clone, Debug)]
pub struct RateSampler {
    /// When the sampled packet was sent, and when something was last delivered.
    first_tx_us: u64,
    delivered_us: u64,
    /// 0, or the `delivered` at which the application's limit ends.
    app_limited: u32,
    /// The last sample that counts: segments over us, and whether the application limited it.
    rate_delivered: u32,
    rate_interval_us: u64,
    rate_app_limited: bool,
}

impl RateSampler {
    pub fn new() -> RateSampler {
        RateSampler {
            first_tx_us: 0,
            delivered_us: 0,
            // tcp_init_sock(): the first packets count as limited.
            app_limited: u32::MAX,
            rate_delivered: 0,
            rate_interval_us: 0,
            rate_app_limited: false,
        }
    }

    /// The handshake is complete.
    pub fn start(&mut self, now_us: u64) {
        self.delivered_us = now_us;
    }

    /// 0, or the `delivered` at which the application's limit ends.
    #[inline]
    pub fn app_limited(&self) -> u32 {
        self.app_limited
    }

    #[inline]
    pub fn set_app_limited(&mut self, until_delivered: u32) {
        self.app_limited = until_delivered;
    }

    /// A packet goes out: what each of its segments keeps. `is_first`: nothing else is outstanding.
    #[inline]
    pub fn on_send(&mut self, sent_us: u64, totals: Totals, in_flight: u32, is_first: bool) -> Tx {
        if is_first {
            // After silence the sample begins with this transmission.
            self.first_tx_us = sent_us;
            self.delivered_us = sent_us;
        }
        Tx {
            first_us: self.first_tx_us,
            delivered_us: self.delivered_us,
            delivered: totals.delivered,
            delivered_ce: totals.delivered_ce,
            lost: totals.lost,
            in_flight,
        }
    }

    /// A segment was (S)ACKed. Each counts once.
    #[inline]
    pub fn on_delivered(&mut self, seg: &Seg, sample: &mut RateSample) {
        if unlikely(seg.tx.delivered_us == 0) {
            return;
        }
        let end_seq = seg.end_seq();
        // Mostly an ACK delivers one packet, which need not be compared.
        let is_later = || (seg.sent_us, end_seq) > (self.first_tx_us, sample.last_end_seq);
        if likely(!sample.any || is_later()) {
            sample.any = true;
            sample.sent_us = seg.sent_us;
            sample.tx = seg.tx;
            sample.flags = seg.flags;
            sample.last_end_seq = end_seq;
            self.first_tx_us = seg.sent_us;
        }
    }

    /// tcp_rate_gen(): takes the sample into account. Returns over which time it was taken; `None`: no packet tells.
    /// `totals` includes `newly`.
    #[inline]
    pub fn complete(
        &mut self,
        now_us: u64,
        sample: &RateSample,
        newly: Newly,
        totals: Totals,
        min_rtt_us: u32,
    ) -> Option<Interval> {
        if unlikely(self.app_limited != 0)
            && (totals.delivered.wrapping_sub(self.app_limited) as i32) > 0
        {
            self.app_limited = 0;
        }
        if likely(newly.delivered > 0) {
            self.delivered_us = now_us;
        }
        if unlikely(!sample.any || sample.tx.delivered_us == 0) {
            return None;
        }
        let ack_us = now_us.saturating_sub(sample.tx.delivered_us);
        let interval_us = sample.snd_interval_us().max(ack_us);
        if unlikely(interval_us < u64::from(min_rtt_us)) {
            // Faster than light: a spurious retransmission was sampled.
            return Some(Interval { ack_us, us: None });
        }
        let delivered = totals.delivered.wrapping_sub(sample.tx.delivered);
        if !sample.is_app_limited()
            || u64::from(delivered) * self.rate_interval_us
                >= u64::from(self.rate_delivered) * interval_us
        {
            self.rate_delivered = delivered;
            self.rate_interval_us = interval_us;
            self.rate_app_limited = sample.is_app_limited();
        }
        let us = Some(interval_us);
        Some(Interval { ack_us, us })
    }

    /// Of the last sample that counts; 0 before the first.
    pub fn bits_per_sec(&self, mss_bytes: u32) -> u64 {
        match self.rate_interval_us {
            0 => 0,
            us => u64::from(self.rate_delivered) * u64::from(mss_bytes) * 8_000_000 / us,
        }
    }

    /// Was the last sample that counts limited by the application?
    pub fn is_app_limited(&self) -> bool {
        self.rate_app_limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(delivered: u32) -> Totals {
        Totals {
            delivered,
            ..Totals::default()
        }
    }

    /// Sends a segment at that microsecond.
    fn send(rate: &mut RateSampler, us: u64, seq: u64, delivered: u32, flags: u8) -> Seg {
        let tx = rate.on_send(us, totals(delivered), seq as u32, seq == 0);
        let mut seg = Seg::new(seq, 1, 1, 1, 0);
        seg.record_sent(us * 1_000, tx, flags & APP_LIMITED != 0);
        seg
    }

    /// Acknowledges them at that microsecond; returns what the algorithm is shown.
    fn ack(rate: &mut RateSampler, us: u64, segs: &[&Seg], delivered: u32, min: u32) -> CcIn {
        let mut sample = RateSample::new(9);
        segs.iter()
            .for_each(|seg| rate.on_delivered(seg, &mut sample));
        let mut cc = CcIn::default();
        let newly = Newly {
            delivered: segs.len() as u32,
            lost: 0,
        };
        let interval = rate.complete(us, &sample, newly, totals(delivered), min);
        sample.show(newly, totals(delivered), interval, &mut cc);
        cc
    }

    #[test]
    fn the_rate_is_over_the_longer_of_sending_and_acknowledging() {
        let mut rate = RateSampler::new();
        let first = send(&mut rate, 1_000, 0, 0, 0);
        let second = send(&mut rate, 1_400, 1, 0, 0);
        let cc = ack(&mut rate, 2_000, &[&first], 1, 900);
        assert_eq!((cc.rs_delivered, cc.rs_interval_us), (1, 1_000));
        assert_eq!(rate.bits_per_sec(1_000), 8_000_000);
        let cc = ack(&mut rate, 2_100, &[&second], 2, 900);
        assert_eq!((cc.rs_snd_interval_us, cc.rs_rcv_interval_us), (400, 1_100));
        assert_eq!((cc.rs_delivered, cc.rs_interval_us), (2, 1_100));
        assert_eq!((cc.rs_acked_sacked, cc.rs_prior_in_flight), (1, 9));
        assert_eq!(cc.rs_has_tx, 1);
    }

    #[test]
    fn the_packet_sent_last_is_sampled_and_none_twice() {
        let mut rate = RateSampler::new();
        let mut early = send(&mut rate, 1_000, 0, 0, 0);
        let late = send(&mut rate, 1_300, 1, 7, 0);
        let cc = ack(&mut rate, 2_000, &[&late, &early], 9, 100);
        assert_eq!((cc.rs_prior_delivered, cc.rs_tx_in_flight), (7, 1));
        early.tx.delivered_us = 0;
        let cc = ack(&mut rate, 2_500, &[&early], 9, 100);
        assert!(cc.rs_has_tx == 0 && cc.rs_interval_us < 0);
    }

    #[test]
    fn a_sample_faster_than_the_least_rtt_does_not_count() {
        let mut rate = RateSampler::new();
        let seg = send(&mut rate, 1_000, 0, 0, 0);
        let cc = ack(&mut rate, 1_500, &[&seg], 1, 501);
        assert!(cc.rs_interval_us < 0);
        assert_eq!(rate.bits_per_sec(1_000), 0);
    }

    #[test]
    fn a_sample_that_the_application_limited_counts_only_where_it_is_no_slower() {
        let mut rate = RateSampler::new();
        let first = send(&mut rate, 1_000, 0, 0, 0);
        ack(&mut rate, 2_000, &[&first], 1, 100);
        let slow = send(&mut rate, 2_000, 1, 1, APP_LIMITED);
        ack(&mut rate, 4_000, &[&slow], 2, 100);
        assert!(!rate.is_app_limited());
        assert_eq!(rate.bits_per_sec(1_000), 8_000_000);
        let equal = send(&mut rate, 4_000, 2, 2, APP_LIMITED);
        ack(&mut rate, 5_000, &[&equal], 4, 100);
        assert!(rate.is_app_limited());
    }

    #[test]
    fn the_applications_limit_ends_when_what_was_in_flight_is_delivered() {
        let mut rate = RateSampler::new();
        let seg = send(&mut rate, 1_000, 0, 0, 0);
        rate.set_app_limited(5);
        ack(&mut rate, 2_000, &[&seg], 5, 100);
        assert_eq!(rate.app_limited(), 5);
        ack(&mut rate, 2_000, &[], 6, 100);
        assert_eq!(rate.app_limited(), 0);
    }
}
