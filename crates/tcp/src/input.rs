//! An incoming segment's way through the endpoint; the ACK's part of it keeps
//! the order of tcp_ack(), which algorithms depend on.

use knee_cc::{ACK_ECE, ACK_MAYBE_DELAYED, ACK_SLOWPATH, ACK_SND_UNA_ADVANCED, EcnMode, Op};
use knee_kit::odds::{likely, unlikely};

use super::rate::{Newly, RateSample};
use super::rtx::{EVER_RETRANS, RETRANS, SACKED, Seg};
use super::scoreboard::DEFAULT_REORDERING;
use super::undo::is_before;
use super::xmit_timer::XmitTimerKind;
use super::{CaState, Cx, Endpoint, State};
use crate::segment::{ACK, PSH, SYN, Segment};

/// What an ACK did: those of Linux' FLAG_* that matter here.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckFlags {
    pub data: bool,
    pub window_update: bool,
    pub data_acked: bool,
    pub una_advanced: bool,
    /// Header prediction expected another.
    pub slow_path: bool,
    pub data_sacked: bool,
    pub dsacking: bool,
    pub dsack_tlp: bool,
    pub lost_retrans: bool,
    /// It covers data that was retransmitted.
    pub retrans_acked: bool,
    /// Data that was never retransmitted, below high_seq, was acked.
    pub orig_sack_acked: bool,
    pub set_xmit_timer: bool,
    /// It reports CE marks.
    pub ece: bool,
}

/// Where the scoreboard stood when an ACK arrived.
pub struct Before {
    pub una: u64,
    highest_sacked: u64,
    sacked_out: u32,
    pub sacked_bytes: u64,
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
    #[inline(always)]
    pub fn on_segment(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
        if self.state == State::Established && !segment.has(SYN) {
            return self.on_established(cx, segment);
        }
        self.on_handshake(cx, segment)
    }

    /// A segment of the handshake arrives, or a repeated one.
    #[cold]
    fn on_handshake(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
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
            State::Waiting if !segment.has(SYN) => self.on_established(cx, segment),
            State::Established | State::Waiting => {
                // Our last ACK of the handshake was lost.
                self.send_ack(cx);
                0
            }
        }
    }

    fn on_syn_ack(&mut self, cx: &mut Cx, segment: &Segment) {
        self.state = State::Established;
        self.rx.on_syn(segment);
        self.ecn.on_syn_ack(segment);
        self.on_handshake_acked(cx, segment);
        self.send_ack(cx);
    }

    /// The handshake is complete at this end: tcp_init_transfer().
    fn on_handshake_acked(&mut self, cx: &mut Cx, segment: &Segment) {
        self.snd_una = 1;
        self.peer_window.start(segment);
        self.xmit_timer.clear_backoff();
        self.recovery.clear_timeouts();
        self.xmit_timer.disarm();
        self.time.set_busy(cx.now_ns(), false);
        let rtt_us = self.handshake.rtt_us(cx.now_ns());
        self.take_rtt(cx, rtt_us, rtt_us, false);
        // RFC 6298, 5.7: a window of one when the SYN was lost; Linux allows one loss.
        self.cc.snd_cwnd = if self.handshake.timeouts() > 1 {
            1
        } else {
            cx.host.settings.initcwnd
        };
        self.board.add_delivered(1);
        self.rate.start(cx.now_us());
        self.usage.start(cx.jiffies(), self.snd_nxt);
        self.expand_sndbuf(cx);
        self.rx.start(cx.now_ns());
        self.cc.ecn_mode = self.ecn.mode() as u32;
        self.call_cc_if(cx, Op::Init);
        self.update_pacing_rate(cx);
        cx.events.push("established");
        self.ask_at_opening(cx);
    }

    #[inline(always)]
    fn on_established(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
        self.rx.note_timestamp(segment);
        self.cc.rcv_tsval = segment.tsval_ms.wrapping_add(self.peer_tsoffset);
        self.cc.rcv_tsecr = segment.tsecr_ms;
        let hurry = self.ecn.on_arrival(segment);
        self.rx.hurry_ack(hurry);
        match self.only_receives(segment) {
            true => self.on_data_alone(cx, segment),
            false => self.on_news(cx, segment),
        }
    }

    /// A segment that tells the sending half nothing arrives.
    #[inline(never)]
    fn on_data_alone(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
        self.peer_window.update(segment, self.snd_una);
        let readable = self.take_data(cx, segment);
        self.note_limit(cx, None);
        if unlikely(self.is_blocked()) {
            self.check_space(cx);
        }
        self.ack_if_due(cx);
        readable
    }

    /// A segment that tells the sending half something arrives.
    #[inline(never)]
    fn on_news(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
        if segment.has(ACK) {
            self.on_ack(cx, segment);
        }
        let readable = match likely(segment.seq_len() == 0) {
            true => 0,
            false => self.take_data_of_both(cx, segment),
        };
        // tcp_data_snd_check(), then tcp_ack_snd_check()
        match likely(self.state == State::Established) {
            true => self.send_after_ack(cx),
            false => self.leave_until_answer(Rexmit::None),
        }
        self.ack_both_if_due(cx);
        readable
    }

    /// tcp_data_snd_check()
    #[inline(always)]
    pub(super) fn send_after_ack(&mut self, cx: &mut Cx) {
        let sent = self.send_when_allowed(cx);
        if self.xmit_timer.probe_is_due() {
            self.schedule_loss_probe(cx, true);
        }
        // Behind what it sent it has looked for space already.
        if sent == 0 {
            self.check_space(cx);
        }
    }

    /// Out of line: an end that sends receives little.
    #[inline(never)]
    fn take_data_of_both(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
        self.take_data(cx, segment)
    }

    #[inline(always)]
    fn take_data(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
        if segment.seq_len() == 0 {
            return 0;
        }
        let hurry = self.ecn.accept_cwr(segment);
        self.rx.hurry_ack(hurry);
        self.on_data(cx, segment)
    }

    /// True if this segment brings the sending half no news: nothing is outstanding or unsent, and it acknowledges nothing
    /// new. The usual case on a pure receiver; [`on_ack`](Endpoint::on_ack) and sending would then do nothing.
    #[inline]
    fn only_receives(&self, segment: &Segment) -> bool {
        self.board.packets_out() == 0
            && !self.has_unsent()
            && segment.ack == self.snd_una
            && segment.has(ACK)
            && segment.sack.is_empty()
            && self.xmit_timer.kind() == XmitTimerKind::None
            && !self.alg.has(Op::InAckEvent)
    }

    /// tcp_ack()
    fn on_ack(&mut self, cx: &mut Cx, segment: &Segment) {
        let ack = segment.ack;
        if unlikely(ack > self.snd_nxt) {
            return;
        }
        let before = Before {
            una: self.snd_una,
            highest_sacked: self.board.highest_sacked(self.snd_una),
            sacked_out: self.board.flight().sacked_out,
            sacked_bytes: self.board.sacked_bytes(),
        };
        let mut flags = AckFlags {
            data: segment.payload_bytes > 0,
            slow_path: self.is_on_slow_path(segment),
            ..AckFlags::default()
        };
        let mut sample = RateSample::new(self.packets_in_flight());
        let prior_packets = self.board.packets_out();
        let prior_delivered = self.board.delivered();
        let prior_lost = self.board.lost();

        if ack > before.una {
            flags.una_advanced = true;
            self.recovery.clear_timeouts();
        }
        if ack >= before.una {
            flags.window_update = self.peer_window.update(segment, self.snd_una);
            self.counters.bytes_acked += ack - before.una;
            self.snd_una = ack;
        }
        self.integrate(cx.now_ns());
        let sacked_ns = match likely(segment.sack.is_empty()) {
            true => (0, 0),
            false => self.tag_sacked(cx, segment, before.una, &mut flags, &mut sample),
        };
        let stale = prior_packets == 0 || ack < before.una;
        let mut ack_delayed = false;
        if likely(!stale) {
            ack_delayed = self.clean_rtx_queue(cx, &before, sacked_ns, &mut flags, &mut sample);
            sample.is_ack_delayed = ack_delayed;
            if likely(!sample.is_empty()) {
                let delivered = self.board.delivered();
                self.rack
                    .update_reo_wnd(sample.prior_delivered(), delivered);
            }
        }
        let newly_delivered = self.board.delivered().wrapping_sub(prior_delivered);
        if unlikely(self.ecn.mode() != EcnMode::None) {
            self.count_marks(segment, &before, newly_delivered, &mut flags);
        }
        if unlikely(self.alg.has(Op::InAckEvent) && ack >= before.una) {
            self.cc.ack_flags = ack_flag_bits(&flags, false);
            self.call_cc(cx, Op::InAckEvent);
        }
        if unlikely(stale) {
            // Nothing was outstanding, or an old ACK, good for its SACKs only.
            if newly_delivered > 0 {
                self.alert(cx, before.una, &mut flags, false);
                self.send_retransmissions(cx, Rexmit::Lost);
            }
            self.rearm_window_probe(cx);
            return;
        }
        let had_probe = self.probe.is_out();
        if unlikely(had_probe) {
            self.process_tlp_ack(cx, ack, &flags);
        }
        let mut rexmit = Rexmit::None;
        let dubious = !(flags.data || flags.window_update || flags.data_acked)
            || flags.data_sacked
            || flags.dsacking
            || flags.ece
            || self.recovery.state() != CaState::Open;
        if unlikely(dubious) {
            let forward = flags.una_advanced
                || flags.data
                || flags.window_update
                || flags.data_acked
                || flags.dsacking;
            let duplicate = !forward;
            rexmit = self.alert(cx, before.una, &mut flags, duplicate);
        }
        if likely(flags.set_xmit_timer) {
            // What is sent now schedules a probe anew.
            match likely(rexmit == Rexmit::None && self.may_probe()) && !self.board.has_lost() {
                true => self.xmit_timer.put_off_probe(),
                false => self.set_xmit_timer(cx),
            }
        }
        let newly_lost = self.board.lost().wrapping_sub(prior_lost);
        let newly = Newly {
            delivered: newly_delivered,
            lost: newly_lost,
        };
        let (totals, min_rtt_us) = (self.totals(), self.cc.min_rtt_us);
        let interval = self
            .rate
            .complete(cx.now_us(), &sample, newly, totals, min_rtt_us);
        if self.has_cong_control {
            sample.show(newly, totals, interval, &mut self.cc);
        }
        // Did pkts_acked() see all of it?
        let is_shown = !dubious && !had_probe && self.alg.has(Op::PktsAcked);
        self.cong_control(cx, &flags, ack_delayed, newly, is_shown);
        self.means.add_srtt(self.rtt.srtt_us());
        if unlikely(rexmit != Rexmit::None) {
            self.send_retransmissions(cx, rexmit);
        }
        if unlikely(self.board.packets_out() == 0) && self.notsent_bytes() == 0 {
            self.time.set_busy(cx.now_ns(), false);
        }
    }

    /// Does an ACK differ from what header prediction (tp->pred_flags) expects: the window as it was, no options but the
    /// timestamps, nothing out of order? One that fills a hole counts as one with another window: in Linux the data that it
    /// releases is unread while the answer is built, so the window is smaller; readers here read at once. Only asked for
    /// algorithms that are told.
    #[inline]
    fn is_on_slow_path(&self, segment: &Segment) -> bool {
        (self.alg.has(Op::InAckEvent) || self.has_cong_control)
            && (segment.ack <= self.snd_una
                || self.board.flight().sacked_out > 0
                || segment.window_bytes != self.peer_window.bytes()
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
        (first_sacked_ns, last_sacked_ns): (u64, u64),
        flags: &mut AckFlags,
        sample: &mut RateSample,
    ) -> bool {
        let now_us = cx.now_us();
        let min_rtt_us = self.cc.min_rtt_us;
        let echoed_ms = self.rx.echoed_ms();
        let acked = self
            .board
            .ack(self.snd_una, self.recovery.high_seq(), |seg| {
                if likely(!seg.has(SACKED) && !spurious_retrans(echoed_ms, seg)) {
                    self.rack.advance(now_us, min_rtt_us, seg);
                }
                flags.retrans_acked |= seg.has(EVER_RETRANS);
                self.rate.on_delivered(seg, sample);
            });
        flags.orig_sack_acked |= acked.orig_sack_acked;
        if acked.segs > 0 {
            flags.data_acked = true;
        }

        let since_us = |sent_ns: u64| {
            (sent_ns != 0).then(|| (cx.now_ns().saturating_sub(sent_ns) / 1_000) as u32)
        };
        let mut seq_rtt_us = since_us(acked.first_sent_ns);
        let mut ca_rtt_us = match acked.last_sent_ns == acked.first_sent_ns {
            true => seq_rtt_us,
            false => since_us(acked.last_sent_ns),
        };
        let ack_delayed = acked.segs == 1
            && before.sacked_out == 0
            && self.snd_una - before.una < u64::from(self.cc.mss_bytes)
            && sample.prior_delivered().wrapping_add(1) == self.board.delivered()
            && !flags.data_sacked;
        let sack_rtt_us = since_us(first_sacked_ns);
        if let Some(last) = since_us(last_sacked_ns) {
            ca_rtt_us = Some(last);
        }
        seq_rtt_us = seq_rtt_us.or(sack_rtt_us);
        if unlikely(seq_rtt_us.is_none()) && acked.segs > 0 {
            // Only retransmissions: the echoed timestamp still tells (RFC 7323).
            if let Some(echo_ms) = self.rx.echoed_ms() {
                let ms = cx.now_ms().wrapping_sub(echo_ms).max(1);
                seq_rtt_us = Some(ms * 1_000);
                ca_rtt_us = seq_rtt_us;
            }
        }
        sample.rtt_us = ca_rtt_us;
        let measured = self.take_rtt(cx, seq_rtt_us, ca_rtt_us, ack_delayed);

        if acked.segs > 0 {
            flags.set_xmit_timer = true;
            if unlikely(acked.reord < before.highest_sacked) {
                self.check_reordering(acked.reord);
            }
        } else if let (true, Some(sack_rtt_us), Some(front)) =
            (measured, sack_rtt_us, self.board.head())
            && u64::from(sack_rtt_us) > now_us.saturating_sub(front.sent_us)
        {
            // The SACKed data was sent before the head's last transmission:
            // the head still deserves a full timeout.
            flags.set_xmit_timer = true;
        }
        if self.alg.has(Op::PktsAcked) {
            self.cc.acked = acked.segs;
            self.cc.ack_rtt_us = ca_rtt_us.map_or(-1, i64::from);
            self.cc.ack_in_flight_bytes = self
                .board
                .delivered()
                .wrapping_sub(sample.prior_delivered())
                .wrapping_mul(self.cc.mss_bytes);
            self.call_cc_out(cx, Op::PktsAcked);
        }
        ack_delayed
    }

    /// tcp_ack_update_rtt(); returns whether there was a sample.
    #[inline(always)]
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
        if !(ack_delayed && ca_rtt_us > self.cc.min_rtt_us)
            && self.min_rtt.sample(cx.now_us(), ca_rtt_us.max(1))
        {
            self.cc.min_rtt_us = self.min_rtt.get();
        }
        self.rtt
            .sample(cx.host, seq_rtt_us, self.snd_una, self.snd_nxt);
        self.cc.srtt_us = self.rtt.srtt_us();
        self.xmit_timer.clear_backoff();
        true
    }

    /// tcp_cong_control()
    fn cong_control(
        &mut self,
        cx: &mut Cx,
        flags: &AckFlags,
        ack_delayed: bool,
        newly: Newly,
        is_shown: bool,
    ) {
        if self.has_cong_control {
            self.cc.ack_flags = ack_flag_bits(flags, ack_delayed);
            if unlikely(self.agent.is_some()) {
                return self.tell_agent(cx, flags.una_advanced);
            }
            let out = self.call_cc_out(cx, Op::CongControl);
            if unlikely(out.enter_cwr != 0) {
                self.enter_cwr(cx);
            }
            return;
        }
        if unlikely(self.recovery.in_cwnd_reduction()) {
            self.reduce_cwnd(cx, newly.delivered, newly.lost, flags);
        } else if match unlikely(self.board.reordering() > DEFAULT_REORDERING) {
            // tcp_may_raise_cwnd()
            true => flags.una_advanced || flags.data_acked || flags.data_sacked,
            false => flags.data_acked,
        } {
            self.cc.acked = newly.delivered;
            let out = match is_shown {
                true => self.call_cc_again(cx, Op::CongAvoid),
                false => self.call_cc_out(cx, Op::CongAvoid),
            };
            if unlikely(out.enter_cwr != 0) {
                self.enter_cwr(cx);
            }
            self.usage.refresh(cx.jiffies());
        }
        self.update_pacing_rate(cx);
    }
}

/// tcp_skb_spurious_retrans(): does the ACK, which echoes this stamp, answer an earlier transmission of the segment?
fn spurious_retrans(echoed_ms: Option<u32>, seg: &Seg) -> bool {
    let sent_ms = (seg.sent_ns / 1_000_000) as u32;
    unlikely(seg.has(RETRANS | EVER_RETRANS)) && echoed_ms.is_some_and(|ms| is_before(ms, sent_ms))
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
    use super::super::scoreboard::Sacked;
    use super::super::testing::{MSS, segment, sender};
    use super::*;
    use crate::segment::{ECE, SackBlocks};

    /// Linux' header prediction expects an ACK of something new, in order, with the window as it was and no option but
    /// the timestamps. An ACK that differs in one of these is on the slow path.
    #[test]
    fn what_header_prediction_does_not_expect_is_slow() {
        let conf = HostConf::untuned();
        let mut tcp = sender(&conf, "westwood", &[SKB_END; 4]);
        let plain = segment(tcp.rx.rcv_nxt(), 1 + MSS);
        tcp.peer_window.start(&plain);
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
        let block = (1 + MSS, 1 + 2 * MSS);
        tcp.board.sack(block, 1, 0, &mut Sacked::default(), |_| {});
        assert!(tcp.is_on_slow_path(&plain));
        let reno = sender(&conf, "reno", &[SKB_END; 4]);
        assert!(!slow.iter().any(|segment| reno.is_on_slow_path(segment)));
    }
}
