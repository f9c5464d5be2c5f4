//! Delivery-rate samples (net/ipv4/tcp_rate.c; draft-ietf-ccwg-bbr, "Delivery
//! Rate Samples"): how fast the network delivered what was sent over the last
//! round trip, and whether the application was the reason.

use super::rtx::{APP_LIMITED, EVER_RETRANS, RETRANS, SACKED, Seg, Tx};
use super::{Cx, Endpoint};

/// The sample an ACK builds up, from the most recently sent packet it delivers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    prior_ns: u64,
    prior_delivered: u32,
    prior_delivered_ce: u32,
    snd_interval_us: u64,
    pub last_end_seq: u64,
    is_app_limited: bool,
    is_retrans: bool,
    tx_lost: u32,
    tx_in_flight: u32,
    any: bool,
    pub rtt_us: Option<u32>,
    prior_in_flight: u32,
    pub is_ack_delayed: bool,
}

impl RateSample {
    /// An empty sample of an ACK that finds so much in flight.
    pub fn new(prior_in_flight: u32) -> RateSample {
        RateSample {
            prior_in_flight,
            ..RateSample::default()
        }
    }
    /// `tp.delivered` when the sampled packet was sent.
    pub fn prior_delivered(&self) -> u32 {
        self.prior_delivered
    }
    pub fn is_empty(&self) -> bool {
        !self.any
    }
}

impl Endpoint {
    /// A packet goes out: where the delivery process stands.
    #[inline]
    pub(super) fn rate_on_send(&mut self, sent_ns: u64, in_flight: u32) -> Tx {
        if self.cc.packets_out == 0 {
            // After silence the sample begins with this transmission.
            self.first_tx_ns = sent_ns;
            self.delivered_ns = sent_ns;
        }
        Tx {
            first_ns: self.first_tx_ns,
            delivered_ns: self.delivered_ns,
            delivered: self.cc.delivered,
            delivered_ce: self.cc.delivered_ce,
            lost: self.cc.lost,
            in_flight,
        }
    }

    /// A segment was (S)ACKed. Each counts once.
    #[inline]
    pub(super) fn rate_on_delivered(first_tx_ns: &mut u64, seg: &mut Seg, sample: &mut RateSample) {
        if seg.tx.delivered_ns == 0 {
            return;
        }
        let (sent_us, first_us) = (seg.sent_ns / 1_000, *first_tx_ns / 1_000);
        if !sample.any
            || sent_us > first_us
            || sent_us == first_us && seg.end_seq() > sample.last_end_seq
        {
            sample.any = true;
            sample.prior_delivered = seg.tx.delivered;
            sample.prior_delivered_ce = seg.tx.delivered_ce;
            sample.prior_ns = seg.tx.delivered_ns;
            sample.is_app_limited = seg.has(APP_LIMITED);
            sample.is_retrans = seg.has(RETRANS | EVER_RETRANS);
            sample.last_end_seq = seg.end_seq();
            sample.tx_lost = seg.tx.lost;
            sample.tx_in_flight = seg.tx.in_flight;
            sample.snd_interval_us = sent_us.saturating_sub(seg.tx.first_ns / 1_000);
            *first_tx_ns = seg.sent_ns;
        }
        if seg.has(SACKED) {
            seg.tx.delivered_ns = 0;
        }
    }

    /// tcp_rate_gen(): completes the sample and shows it to the algorithm.
    pub(super) fn rate_generate(
        &mut self,
        cx: &Cx,
        sample: &RateSample,
        newly_delivered: u32,
        newly_lost: u32,
    ) {
        if self.cc.app_limited != 0
            && (self.cc.delivered.wrapping_sub(self.cc.app_limited) as i32) > 0
        {
            self.cc.app_limited = 0;
        }
        if newly_delivered > 0 {
            self.delivered_ns = cx.now_ns;
        }
        let min_rtt_us = u64::from(self.min_rtt.get());
        let cc = &mut *self.cc;
        cc.rs_acked_sacked = newly_delivered;
        cc.rs_losses = newly_lost;
        cc.rs_rtt_us = sample.rtt_us.map_or(-1, i64::from);
        cc.rs_prior_in_flight = sample.prior_in_flight;
        cc.rs_is_ack_delayed = u32::from(sample.is_ack_delayed);
        cc.rs_is_app_limited = u32::from(sample.is_app_limited);
        cc.rs_is_retrans = u32::from(sample.is_retrans);
        cc.rs_prior_delivered = sample.prior_delivered;
        cc.rs_last_end_seq = sample.last_end_seq as u32;
        cc.rs_has_tx = u32::from(sample.any);
        cc.rs_tx_in_flight = sample.tx_in_flight;
        cc.rs_lost = cc.lost.wrapping_sub(sample.tx_lost);
        if !sample.any || sample.prior_ns == 0 {
            cc.rs_prior_mstamp_us = 0;
            cc.rs_delivered = -1;
            cc.rs_interval_us = -1;
            return;
        }
        cc.rs_prior_mstamp_us = sample.prior_ns / 1_000;
        cc.rs_delivered = cc.delivered.wrapping_sub(sample.prior_delivered) as i32;
        cc.rs_delivered_ce = cc.delivered_ce.wrapping_sub(sample.prior_delivered_ce) as i32;
        let ack_us = (cx.now_ns / 1_000).saturating_sub(sample.prior_ns / 1_000);
        cc.rs_snd_interval_us = sample.snd_interval_us as u32;
        cc.rs_rcv_interval_us = ack_us as u32;
        let interval_us = sample.snd_interval_us.max(ack_us);
        if interval_us < min_rtt_us {
            // Faster than light: a spurious retransmission was sampled.
            cc.rs_interval_us = -1;
            return;
        }
        cc.rs_interval_us = interval_us as i64;
        let delivered = cc.rs_delivered as u32;
        if !sample.is_app_limited
            || u64::from(delivered) * self.rate_interval_us
                >= u64::from(self.rate_delivered) * interval_us
        {
            self.rate_delivered = delivered;
            self.rate_interval_us = interval_us;
            self.rate_app_limited = sample.is_app_limited;
        }
    }

    /// tcp_rate_check_app_limited(): does the application leave the pipe unfilled?
    #[inline]
    pub(super) fn rate_check_app_limited(&mut self) {
        let unsent = self.write_seq.saturating_sub(self.snd_nxt);
        if unsent < u64::from(self.cc.mss_bytes)
            && self.qdisc_bytes == 0
            && self.packets_in_flight() < self.cc.snd_cwnd
            && self.cc.lost_out <= self.cc.retrans_out
        {
            self.cc.app_limited = self
                .cc
                .delivered
                .wrapping_add(self.packets_in_flight())
                .max(1);
        }
    }
}
