//! An incoming segment's way through the endpoint; the ACK's part of it keeps
//! the order of tcp_ack(), which algorithms depend on.

use knee_cc::{ACK_ECE, ACK_MAYBE_DELAYED, ACK_SLOWPATH, ACK_SND_UNA_ADVANCED, Op};

use super::rate::RateSample;
use super::rtx::{EVER_RETRANS, LOST, RETRANS, SACKED};
use super::sack::SackTag;
use super::{CaState, Cx, Endpoint, State};
use crate::segment::{ACK, PSH, SYN, Segment};

/// What an ACK did: Linux' FLAG_* that matter here.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckFlags {
    pub data: bool,
    pub window_update: bool,
    pub data_acked: bool,
    pub una_advanced: bool,
    /// It is not the next one that header prediction expects.
    pub slow_path: bool,
    pub data_sacked: bool,
    pub dsacking: bool,
    pub dsack_tlp: bool,
    pub lost_retrans: bool,
    /// Data that was never retransmitted, below high_seq, was acked.
    pub orig_sack_acked: bool,
    pub set_xmit_timer: bool,
    /// It tells of CE marks.
    pub ece: bool,
}

/// Where the scoreboard stood when an ACK arrived.
struct Before {
    una: u64,
    highest_sacked: u64,
    sacked_out: u32,
}

/// Which retransmissions the ACK calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rexmit {
    None,
    Lost,
    /// F-RTO: try new data first.
    New,
}

impl Endpoint {
    /// A segment arrives, possibly merged by GRO. Returns payload bytes that
    /// became readable in order.
    pub fn on_segment(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
        match self.state {
            State::Closed => {
                if segment.has(SYN) {
                    self.accept(cx, segment);
                }
                0
            }
            State::SynSent => {
                if segment.has(SYN) && segment.has(ACK) && segment.ack == self.snd_nxt {
                    self.on_syn_ack(cx, segment);
                }
                0
            }
            State::SynReceived => {
                if segment.has(SYN) {
                    // Our SYN-ACK was lost: the SYN comes again.
                    self.send_syn(cx);
                    return 0;
                }
                if segment.ack >= 1 {
                    self.state = State::Established;
                    self.on_handshake_acked(cx, segment);
                    return self.on_established(cx, segment);
                }
                0
            }
            State::Established => {
                if segment.has(SYN) {
                    // Our last ACK of the handshake was lost.
                    self.send_ack(cx);
                    return 0;
                }
                self.on_established(cx, segment)
            }
        }
    }

    fn on_syn_ack(&mut self, cx: &mut Cx, segment: &Segment) {
        self.state = State::Established;
        self.rx.on_syn(segment);
        self.ecn_on_syn_ack(segment);
        self.on_handshake_acked(cx, segment);
        self.send_ack(cx);
    }

    /// The handshake is complete at this end: tcp_init_transfer().
    fn on_handshake_acked(&mut self, cx: &mut Cx, segment: &Segment) {
        self.snd_una = 1;
        self.snd_wnd = segment.window_bytes;
        self.snd_wl1 = segment.seq;
        self.max_window = self.max_window.max(self.snd_wnd);
        self.backoff = 0;
        self.retransmits = 0;
        self.disarm_xmit_timer();
        self.set_busy(cx.now_ns, false);
        if self.syn_timeouts == 0 {
            let rtt_us = ((cx.now_ns - self.syn_sent_ns) / 1_000) as u32;
            self.take_rtt(cx, Some(rtt_us), Some(rtt_us), false);
        }
        // RFC 6298, 5.7: a window of one when the SYN was lost; Linux allows one loss.
        self.cc.snd_cwnd = if self.syn_timeouts > 1 {
            1
        } else {
            cx.host.host.initcwnd
        };
        self.cc.delivered += 1;
        self.delivered_ns = cx.now_ns;
        self.snd_cwnd_stamp = cx.jiffies();
        self.cwnd_usage_seq = self.snd_nxt;
        self.expand_sndbuf(cx);
        self.rx.start(cx);
        self.ecn_established();
        self.call_cc_if(cx, Op::Init);
        self.update_pacing_rate();
        cx.events.push("established");
    }

    fn on_established(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
        self.rx.note_timestamp(segment);
        self.cc.rcv_tsval = segment.tsval_ms.wrapping_add(self.peer_tsoffset);
        self.cc.rcv_tsecr = segment.tsecr_ms;
        self.ecn_on_arrival(segment);
        if segment.has(ACK) {
            self.on_ack(cx, segment);
        }
        let readable = match segment.seq_len() {
            0 => 0,
            _ => {
                self.accept_cwr(segment);
                self.on_data(cx, segment)
            }
        };
        // tcp_data_snd_check(), then tcp_ack_snd_check()
        self.send_when_allowed(cx);
        self.check_space(cx);
        self.ack_if_due(cx);
        readable
    }

    /// tcp_ack()
    fn on_ack(&mut self, cx: &mut Cx, segment: &Segment) {
        let ack = segment.ack;
        if ack > self.snd_nxt {
            return;
        }
        let before = Before {
            una: self.snd_una,
            highest_sacked: self.highest_sacked(),
            sacked_out: self.cc.sacked_out,
        };
        let mut flags = AckFlags {
            data: segment.payload_bytes > 0,
            slow_path: self.is_on_slow_path(segment),
            ..AckFlags::default()
        };
        let mut tag = SackTag::new(self.first_tx_ns);
        let mut sample = RateSample::new(self.packets_in_flight());
        let prior_packets = self.cc.packets_out;
        let prior_delivered = self.cc.delivered;
        let prior_lost = self.cc.lost;
        let prior_bytes = self.snd_una + self.sacked.total();

        if ack > before.una {
            flags.una_advanced = true;
            self.retransmits = 0;
        }
        if ack >= before.una {
            flags.window_update = self.update_window(segment);
            self.counters.bytes_acked += ack - before.una;
            self.snd_una = ack;
        }
        self.integrate(cx.now_ns);
        if !segment.sack.is_empty() {
            self.tag_sacked(cx, segment, before.una, &mut flags, &mut tag, &mut sample);
        }
        flags.ece = ack >= before.una && self.ecn_echo_of(segment);
        self.cc.delivered += tag.delivered;
        let stale = prior_packets == 0 || ack < before.una;
        let mut ack_delayed = false;
        if !stale {
            ack_delayed = self.clean_rtx_queue(cx, &before, &mut flags, &mut tag, &mut sample);
            sample.is_ack_delayed = ack_delayed;
            self.first_tx_ns = tag.first_tx_ns;
            self.rack_update_reo_wnd(&sample);
        }
        let newly_delivered = self.cc.delivered.wrapping_sub(prior_delivered);
        let newly_bytes = self.snd_una + self.sacked.total() - prior_bytes;
        self.ecn_count(segment, &mut flags, newly_delivered, newly_bytes);
        if self.alg.has(Op::InAckEvent) && ack >= before.una {
            self.cc.ack_flags = ack_flag_bits(&flags, false);
            self.call_cc(cx, Op::InAckEvent);
        }
        if stale {
            // Nothing was outstanding, or an old ACK, good for its SACKs only.
            if tag.delivered > 0 {
                self.first_tx_ns = tag.first_tx_ns;
                self.alert(cx, before.una, &mut flags, false);
                self.send_retransmissions(cx, Rexmit::Lost);
            }
            self.rearm_window_probe(cx);
            return;
        }
        if self.tlp_high_seq != 0 {
            self.process_tlp_ack(cx, ack, &flags);
        }
        let mut rexmit = Rexmit::None;
        let dubious = !(flags.data || flags.window_update || flags.data_acked)
            || flags.data_sacked
            || flags.dsacking
            || flags.ece
            || self.ca_state != CaState::Open;
        if dubious {
            let forward = flags.una_advanced
                || flags.data
                || flags.window_update
                || flags.data_acked
                || flags.dsacking;
            let duplicate = !forward;
            rexmit = self.alert(cx, before.una, &mut flags, duplicate);
        }
        if flags.set_xmit_timer {
            self.set_xmit_timer(cx);
        }
        let newly_lost = self.cc.lost.wrapping_sub(prior_lost);
        self.rate_generate(cx, &sample, newly_delivered, newly_lost);
        self.cong_control(cx, &flags, ack_delayed, newly_delivered, newly_lost);
        if self.measuring && self.srtt_us() > 0 {
            self.srtt_histogram.add(u64::from(self.srtt_us()));
        }
        self.send_retransmissions(cx, rexmit);
        if self.cc.packets_out == 0 && self.notsent_bytes() == 0 {
            self.set_busy(cx.now_ns, false);
        }
    }

    /// tcp_ack_update_window()
    fn update_window(&mut self, segment: &Segment) -> bool {
        let window = segment.window_bytes;
        let newer = segment.ack > self.snd_una
            || segment.seq > self.snd_wl1
            || segment.seq == self.snd_wl1 && (window > self.snd_wnd || window == 0);
        if !newer {
            return false;
        }
        self.snd_wl1 = segment.seq;
        let changed = window != self.snd_wnd;
        self.snd_wnd = window;
        self.max_window = self.max_window.max(window);
        changed
    }

    /// Does an ACK do anything but go on as tp->pred_flags expects? Then the window
    /// stays, there are no options but the timestamps, and nothing is out of order.
    /// One that fills a hole counts as another window: what it hands up lies unread
    /// when Linux builds the ACK, whose window is smaller for it; readers here are
    /// at once. Not asked for algorithms that are not told.
    #[inline]
    fn is_on_slow_path(&self, segment: &Segment) -> bool {
        (self.alg.has(Op::InAckEvent) || self.has_cong_control)
            && (segment.ack <= self.snd_una
                || self.cc.sacked_out > 0
                || segment.window_bytes != self.snd_wnd
                || segment.seq != self.rx.rcv_nxt()
                || segment.flags & !(ACK | PSH) != 0
                || !segment.sack.is_empty()
                || segment.option_bytes != 0
                || !self.rx.is_in_order())
    }

    /// tcp_clean_rtx_queue(): removes what is cumulatively acked, measures the
    /// RTT and tells the algorithm. Returns whether the ACK may have been
    /// delayed by the receiver.
    fn clean_rtx_queue(
        &mut self,
        cx: &mut Cx,
        before: &Before,
        flags: &mut AckFlags,
        tag: &mut SackTag,
        sample: &mut RateSample,
    ) -> bool {
        let now_us = cx.now_us();
        let mut first_acked_ns = 0;
        let mut last_acked_ns = 0;
        let mut reord = u64::MAX;
        let mut pkts_acked = 0u32;
        let mut delivered_now = 0u32;
        while let Some(front) = self.rtx.front() {
            if front.end_seq() > self.snd_una {
                break;
            }
            let id = self.rtx.front_id();
            let seg_flags = front.flags;
            let (seq, end_seq, sent_ns) = (front.seq, front.end_seq(), front.sent_ns);
            if seg_flags & (RETRANS | EVER_RETRANS) != 0 {
                if seg_flags & RETRANS != 0 {
                    self.cc.retrans_out -= 1;
                }
            } else if seg_flags & SACKED == 0 {
                last_acked_ns = sent_ns;
                if first_acked_ns == 0 {
                    first_acked_ns = sent_ns;
                }
                reord = reord.min(seq);
                flags.orig_sack_acked |= end_seq <= self.high_seq;
            }
            if seg_flags & SACKED != 0 {
                self.cc.sacked_out -= 1;
            } else {
                delivered_now += 1;
                if !self.spurious_retrans(sent_ns, seg_flags) {
                    self.rack
                        .advance(now_us, self.min_rtt.get(), seg_flags, end_seq, sent_ns);
                }
            }
            if seg_flags & LOST != 0 {
                self.cc.lost_out -= 1;
            }
            let seg = self.rtx.get_mut(id);
            Endpoint::rate_on_delivered(&mut tag.first_tx_ns, seg, sample);
            let skb_end = seg.has(super::rtx::SKB_END);
            self.skbs_out -= u64::from(skb_end);
            self.rtx.pop();
            pkts_acked += 1;
        }
        self.cc.delivered += delivered_now;
        self.cc.packets_out -= pkts_acked;
        self.sacked.remove_below(self.snd_una);
        self.to_retransmit.remove_below(self.snd_una);
        if pkts_acked > 0 {
            flags.data_acked = true;
        }

        let since_us = |sent_ns: u64| {
            (sent_ns != 0).then(|| (cx.now_ns.saturating_sub(sent_ns) / 1_000) as u32)
        };
        let mut seq_rtt_us = since_us(first_acked_ns);
        let mut ca_rtt_us = since_us(last_acked_ns);
        let ack_delayed = pkts_acked == 1
            && before.sacked_out == 0
            && self.snd_una - before.una < u64::from(self.cc.mss_bytes)
            && sample.prior_delivered().wrapping_add(1) == self.cc.delivered
            && !flags.data_sacked;
        let sack_rtt_us = since_us(tag.first_sent_ns);
        if let Some(last) = since_us(tag.last_sent_ns) {
            ca_rtt_us = Some(last);
        }
        seq_rtt_us = seq_rtt_us.or(sack_rtt_us);
        if seq_rtt_us.is_none() && pkts_acked > 0 {
            // Only retransmissions: the echoed timestamp still tells (RFC 7323).
            if let Some(echo_ms) = self.rx.echoed_ms() {
                let ms = cx.now_ms().wrapping_sub(echo_ms).max(1);
                seq_rtt_us = Some(ms * 1_000);
                ca_rtt_us = seq_rtt_us;
            }
        }
        sample.rtt_us = ca_rtt_us;
        let measured = self.take_rtt(cx, seq_rtt_us, ca_rtt_us, ack_delayed);

        if pkts_acked > 0 {
            flags.set_xmit_timer = true;
            if reord < before.highest_sacked {
                self.check_reordering(reord);
            }
        } else if let (true, Some(sack_rtt_us), Some(front)) =
            (measured, sack_rtt_us, self.rtx.front())
            && u64::from(sack_rtt_us) > now_us.saturating_sub(front.sent_ns / 1_000)
        {
            // The SACKed data was sent before the head's last transmission:
            // the head still deserves a full timeout.
            flags.set_xmit_timer = true;
        }
        if self.alg.has(Op::PktsAcked) {
            self.cc.acked = pkts_acked;
            self.cc.ack_rtt_us = ca_rtt_us.map_or(-1, i64::from);
            self.cc.ack_in_flight_bytes = self
                .cc
                .delivered
                .wrapping_sub(sample.prior_delivered())
                .wrapping_mul(self.cc.mss_bytes);
            self.call_cc(cx, Op::PktsAcked);
        }
        ack_delayed
    }

    /// tcp_ack_update_rtt(); returns whether there was a sample.
    fn take_rtt(
        &mut self,
        cx: &Cx,
        seq_rtt_us: Option<u32>,
        ca_rtt_us: Option<u32>,
        ack_delayed: bool,
    ) -> bool {
        let (Some(seq_rtt_us), Some(ca_rtt_us)) = (seq_rtt_us, ca_rtt_us) else {
            return false;
        };
        // A lone small packet's ACK may have waited; it cannot lower the
        // minimum wrongly, but it could raise an expired one.
        if !(ack_delayed && ca_rtt_us > self.min_rtt.get()) {
            self.min_rtt.sample(cx.now_us(), ca_rtt_us.max(1));
            self.cc.min_rtt_us = self.min_rtt.get();
        }
        self.rtt.sample(seq_rtt_us, self.snd_una, self.snd_nxt);
        self.cc.srtt_us = self.rtt.srtt_us();
        self.backoff = 0;
        true
    }

    /// tcp_cong_control()
    fn cong_control(
        &mut self,
        cx: &mut Cx,
        flags: &AckFlags,
        ack_delayed: bool,
        delivered: u32,
        lost: u32,
    ) {
        if self.has_cong_control {
            self.cc.ack_flags = ack_flag_bits(flags, ack_delayed);
            self.call_cc(cx, Op::CongControl);
            return;
        }
        if self.in_cwnd_reduction() {
            self.reduce_cwnd(cx, delivered, lost, flags.una_advanced);
        } else if match self.cc.reordering > super::DEFAULT_REORDERING {
            // tcp_may_raise_cwnd()
            true => flags.una_advanced || flags.data_acked || flags.data_sacked,
            false => flags.data_acked,
        } {
            self.cc.acked = delivered;
            self.call_cc(cx, Op::CongAvoid);
            self.snd_cwnd_stamp = cx.jiffies();
        }
        self.update_pacing_rate();
    }
}

/// The bits of Linux' FLAG_* that the contract passes on.
fn ack_flag_bits(flags: &AckFlags, ack_delayed: bool) -> u32 {
    (u32::from(flags.ece) * ACK_ECE)
        | (u32::from(flags.slow_path) * ACK_SLOWPATH)
        | (u32::from(flags.una_advanced) * ACK_SND_UNA_ADVANCED)
        | (u32::from(ack_delayed) * ACK_MAYBE_DELAYED)
}

#[cfg(test)]
mod tests {
    use super::super::HostConf;
    use super::super::rtx::SKB_END;
    use super::super::testing::{MSS, segment, sender};
    use super::*;
    use crate::segment::{ECE, SackBlocks};

    /// Linux' header prediction expects an ACK of something new, in order, with the window as it was and no option but
    /// the timestamps. An ACK that differs in one of these is on the slow path.
    #[test]
    fn what_header_prediction_does_not_expect_is_slow() {
        let conf = HostConf::with_keys("");
        let mut tcp = sender(&conf, "westwood", &[SKB_END; 4]);
        let plain = segment(tcp.rx.rcv_nxt(), 1 + MSS);
        tcp.snd_wnd = plain.window_bytes;
        assert!(!tcp.is_on_slow_path(&plain));
        let mut sack = SackBlocks::default();
        sack.push(1 + MSS, (1 + 2 * MSS, 1 + 3 * MSS));
        let slow = [
            Segment {
                ack: 1,
                ..plain.clone()
            },
            Segment {
                window_bytes: plain.window_bytes + 1,
                ..plain.clone()
            },
            Segment {
                seq: plain.seq + 1,
                ..plain.clone()
            },
            Segment {
                flags: ACK | ECE,
                ..plain.clone()
            },
            Segment {
                sack,
                ..plain.clone()
            },
            Segment {
                option_bytes: 12,
                ..plain.clone()
            },
        ];
        for segment in &slow {
            assert!(tcp.is_on_slow_path(segment), "{segment:?}");
        }
        tcp.cc.sacked_out = 1;
        assert!(tcp.is_on_slow_path(&plain));
        let reno = sender(&conf, "reno", &[SKB_END; 4]);
        assert!(!slow.iter().any(|segment| reno.is_on_slow_path(segment)));
    }
}
