//! The loss state machine: fast recovery with PRR (RFC 6937 as Linux has it),
//! timeouts with F-RTO (RFC 5682), and undo of what proves spurious.

use knee_cc::{Event, INFINITE_SSTHRESH, Op};

use super::input::{AckFlags, Rexmit};
use super::rack::REO_WND_PERSIST;
use super::rtx::{EVER_RETRANS, LOST, RETRANS};
use super::{CaState, Cx, DEFAULT_REORDERING, Endpoint};

impl Endpoint {
    /// tcp_fastretrans_alert()
    pub(super) fn alert(
        &mut self,
        cx: &mut Cx,
        prior_una: u64,
        flags: &mut AckFlags,
        duplicate: bool,
    ) -> Rexmit {
        if flags.ece {
            // The network did ask to reduce: no undo.
            self.prior_ssthresh = 0;
        }
        if self.ca_state == CaState::Open {
            self.retrans_stamp_ms = 0;
        } else if self.snd_una >= self.high_seq {
            match self.ca_state {
                CaState::Cwr if self.snd_una != self.high_seq => {
                    self.end_cwnd_reduction(cx);
                    self.set_ca_state(cx, CaState::Open);
                }
                CaState::Recovery => {
                    self.try_undo_recovery(cx);
                    self.end_cwnd_reduction(cx);
                }
                _ => {}
            }
        }
        match self.ca_state {
            CaState::Recovery => {
                if flags.una_advanced && self.try_undo_partial(cx, prior_una) {
                    return Rexmit::Lost;
                }
                if self.try_undo_dsack(cx) {
                    self.try_to_open(cx, flags.ece);
                }
                self.identify_loss(cx, flags);
                if self.ca_state != CaState::Recovery {
                    if self.cc.lost_out == 0 {
                        return Rexmit::None;
                    }
                    self.enter_recovery(cx, flags.ece);
                }
                Rexmit::Lost
            }
            CaState::Loss => {
                let rexmit = self.process_loss(cx, flags, duplicate);
                self.identify_loss(cx, flags);
                if !(self.ca_state == CaState::Open || flags.lost_retrans) {
                    return rexmit;
                }
                self.alert_open(cx, flags)
            }
            _ => self.alert_open(cx, flags),
        }
    }

    /// The default arm of tcp_fastretrans_alert(): Open, Disorder, CWR.
    fn alert_open(&mut self, cx: &mut Cx, flags: &mut AckFlags) -> Rexmit {
        if self.ca_state <= CaState::Disorder {
            self.try_undo_dsack(cx);
        }
        self.identify_loss(cx, flags);
        if self.cc.lost_out == 0 {
            self.try_to_open(cx, flags.ece);
            return Rexmit::None;
        }
        self.enter_recovery(cx, flags.ece);
        Rexmit::Lost
    }

    fn identify_loss(&mut self, cx: &mut Cx, flags: &mut AckFlags) {
        let prior_retrans = self.cc.retrans_out;
        if self.rack_mark_lost(cx) {
            flags.set_xmit_timer = false;
        }
        flags.lost_retrans |= prior_retrans > self.cc.retrans_out;
    }

    /// tcp_enter_recovery()
    pub(super) fn enter_recovery(&mut self, cx: &mut Cx, ece: bool) {
        self.counters.recovery_count += 1;
        self.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_cwnd_reduction() {
            if !ece {
                self.prior_ssthresh = self.current_ssthresh();
            }
            self.init_cwnd_reduction(cx);
        }
        self.set_ca_state(cx, CaState::Recovery);
    }

    fn init_undo(&mut self) {
        self.undo_marker = self.snd_una;
        // Retransmissions in flight from before could be mistaken for ours;
        // none: -1, so that undo waits for the first.
        self.undo_retrans = match self.cc.retrans_out {
            0 => -1,
            n => i64::from(n),
        };
    }

    /// tcp_init_cwnd_reduction()
    pub(super) fn init_cwnd_reduction(&mut self, cx: &Cx) {
        self.high_seq = self.snd_nxt;
        self.tlp_high_seq = 0;
        self.cc.snd_cwnd_cnt = 0;
        self.cc.prior_cwnd = self.cc.snd_cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.cc.snd_ssthresh = self.call_cc(cx, Op::Ssthresh);
        self.ecn.queue_cwr();
    }

    /// tcp_cwnd_reduction(): proportional rate reduction.
    pub(super) fn reduce_cwnd(&mut self, cx: &Cx, delivered: u32, lost: u32, una_advanced: bool) {
        if delivered == 0 || self.cc.prior_cwnd == 0 {
            return;
        }
        self.prr_delivered += delivered;
        let in_flight = i64::from(self.packets_in_flight());
        let delta = i64::from(self.cc.snd_ssthresh) - in_flight;
        let (prr_delivered, prr_out) = (i64::from(self.prr_delivered), i64::from(self.prr_out));
        let mut send = if delta < 0 {
            let share = i64::from(self.cc.snd_ssthresh) * prr_delivered;
            (share as u64).div_ceil(u64::from(self.cc.prior_cwnd)) as i64 - prr_out
        } else {
            let mut send = (prr_delivered - prr_out).max(i64::from(delivered));
            if una_advanced && lost == 0 {
                send += 1;
            }
            send.min(delta)
        };
        // The fast retransmission itself always goes out.
        send = send.max(i64::from(prr_out == 0));
        self.set_cwnd(cx, (in_flight + send).max(1) as u32);
    }

    /// tcp_end_cwnd_reduction()
    pub(super) fn end_cwnd_reduction(&mut self, cx: &Cx) {
        if self.has_cong_control {
            return;
        }
        if self.cc.snd_ssthresh < INFINITE_SSTHRESH
            && (self.ca_state == CaState::Cwr || self.undo_marker != 0)
        {
            self.set_cwnd(cx, self.cc.snd_ssthresh);
            self.snd_cwnd_stamp = cx.jiffies();
        }
        self.cwnd_event(cx, Event::CompleteCwr);
    }

    fn try_to_open(&mut self, cx: &mut Cx, ece: bool) {
        if !self.any_retrans_done() {
            self.retrans_stamp_ms = 0;
        }
        if ece {
            self.enter_cwr(cx);
        }
        if self.ca_state != CaState::Cwr {
            self.try_keep_open(cx);
        }
    }

    pub(super) fn try_keep_open(&mut self, cx: &mut Cx) {
        let state = match self.left_out() > 0 || self.any_retrans_done() {
            true => CaState::Disorder,
            false => CaState::Open,
        };
        if self.ca_state != state {
            self.set_ca_state(cx, state);
            self.high_seq = self.snd_nxt;
        }
    }

    /// tcp_any_retrans_done()
    fn any_retrans_done(&self) -> bool {
        self.cc.retrans_out > 0 || self.rtx.front().is_some_and(|head| head.has(EVER_RETRANS))
    }

    // ---- undo ------------------------------------------------------------

    /// tcp_packet_delayed(): the ACK answers data sent before the first
    /// retransmission (Eifel, RFC 3522).
    fn packet_delayed(&self) -> bool {
        self.retrans_stamp_ms != 0 && self.echo_before(self.retrans_stamp_ms)
    }

    fn echo_before(&self, stamp_ms: u32) -> bool {
        self.rx
            .echoed_ms()
            .is_some_and(|echo_ms| (echo_ms.wrapping_sub(stamp_ms) as i32) < 0)
    }

    /// tcp_skb_spurious_retrans()
    pub(super) fn spurious_retrans(&self, sent_ns: u64, seg_flags: u8) -> bool {
        seg_flags & (RETRANS | EVER_RETRANS) != 0 && self.echo_before((sent_ns / 1_000_000) as u32)
    }

    fn may_undo(&self) -> bool {
        self.undo_marker != 0 && (self.undo_retrans == 0 || self.packet_delayed())
    }

    fn undo_cwnd_reduction(&mut self, cx: &mut Cx, unmark_loss: bool) {
        if unmark_loss {
            self.unmark_losses();
        }
        if self.prior_ssthresh != 0 {
            let snd_cwnd = self.call_cc(cx, Op::UndoCwnd);
            self.set_cwnd(cx, snd_cwnd.max(1));
            if self.prior_ssthresh > self.cc.snd_ssthresh {
                self.cc.snd_ssthresh = self.prior_ssthresh;
                self.ecn.withdraw_cwr();
            }
        }
        self.snd_cwnd_stamp = cx.jiffies();
        self.undo_marker = 0;
        self.rack.advanced = true;
        self.counters.undo_count += 1;
        cx.events.push("undo");
    }

    fn unmark_losses(&mut self) {
        for id in self.rtx.ids() {
            // Outstanding again, but out of RACK's order until next sent, as
            // in Linux.
            self.rtx.get_mut(id).flags &= !LOST;
        }
        self.cc.lost_out = 0;
        self.to_retransmit.clear();
    }

    fn try_undo_recovery(&mut self, cx: &mut Cx) {
        if self.may_undo() {
            self.undo_cwnd_reduction(cx, false);
        } else if self.rack.reo_wnd_persist > 0 {
            self.rack.reo_wnd_persist -= 1;
        }
        self.set_ca_state(cx, CaState::Open);
    }

    fn try_undo_partial(&mut self, cx: &mut Cx, prior_una: u64) -> bool {
        if self.undo_marker == 0 || !self.packet_delayed() {
            return false;
        }
        self.check_reordering(prior_una);
        if self.cc.retrans_out > 0 {
            // Wait for the retransmissions to be acked before judging.
            return true;
        }
        if !self.any_retrans_done() {
            self.retrans_stamp_ms = 0;
        }
        self.undo_cwnd_reduction(cx, true);
        self.try_keep_open(cx);
        true
    }

    fn try_undo_dsack(&mut self, cx: &mut Cx) -> bool {
        if self.undo_marker == 0 || self.undo_retrans != 0 {
            return false;
        }
        self.rack.reo_wnd_persist = (self.rack.reo_wnd_persist + 1).min(REO_WND_PERSIST);
        self.undo_cwnd_reduction(cx, false);
        true
    }

    fn try_undo_loss(&mut self, cx: &mut Cx, frto: bool) -> bool {
        if !frto && !self.may_undo() {
            return false;
        }
        self.undo_cwnd_reduction(cx, true);
        self.retransmits = 0;
        self.set_ca_state(cx, CaState::Open);
        true
    }

    // ---- timeout ---------------------------------------------------------

    /// tcp_enter_loss(): the retransmission timer fired.
    pub(super) fn enter_loss(&mut self, cx: &mut Cx) {
        let new_recovery = self.ca_state < CaState::Recovery;
        self.timeout_mark_lost(cx);
        if self.ca_state <= CaState::Disorder
            || self.high_seq <= self.snd_una
            || self.ca_state == CaState::Loss && self.retransmits == 0
        {
            self.prior_ssthresh = self.current_ssthresh();
            self.cc.prior_cwnd = self.cc.snd_cwnd;
            self.cc.snd_ssthresh = self.call_cc(cx, Op::Ssthresh);
            self.cwnd_event(cx, Event::Loss);
            self.init_undo();
        }
        self.set_cwnd(cx, self.packets_in_flight() + 1);
        self.cc.snd_cwnd_cnt = 0;
        self.snd_cwnd_stamp = cx.jiffies();
        if self.ca_state <= CaState::Disorder && self.cc.sacked_out >= self.cc.reordering {
            self.cc.reordering = self.cc.reordering.min(DEFAULT_REORDERING);
        }
        self.set_ca_state(cx, CaState::Loss);
        self.high_seq = self.snd_nxt;
        self.tlp_high_seq = 0;
        self.ecn.queue_cwr();
        self.frto = new_recovery || self.retransmits > 0;
    }

    /// tcp_timeout_mark_lost(): the head, and what RACK thinks is overdue.
    fn timeout_mark_lost(&mut self, cx: &Cx) {
        let deadline_us = u64::from(self.rack.rtt_us);
        let now_us = cx.now_us();
        let head = self.rtx.front_id();
        for id in self.rtx.ids() {
            let seg = self.rtx.get(id);
            if id == head || now_us.saturating_sub(seg.sent_ns / 1_000) >= deadline_us {
                self.mark_lost(cx, id);
            }
        }
    }

    /// tcp_process_loss()
    fn process_loss(&mut self, cx: &mut Cx, flags: &AckFlags, duplicate: bool) -> Rexmit {
        let recovered = self.snd_una >= self.high_seq;
        if flags.una_advanced && self.try_undo_loss(cx, false) {
            return Rexmit::None;
        }
        if self.frto {
            if flags.orig_sack_acked && self.try_undo_loss(cx, true) {
                // RFC 5682, step 3b: the timeout was spurious.
                return Rexmit::None;
            }
            if self.snd_nxt > self.high_seq {
                if flags.data_sacked || duplicate {
                    self.frto = false;
                }
            } else if flags.una_advanced && !recovered {
                self.high_seq = self.snd_nxt;
                // Step 2b: new data decides; without any, recover as usual.
                if self.notsent_bytes() > 0 && self.snd_una + self.snd_wnd > self.snd_nxt {
                    return Rexmit::New;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(cx);
            return Rexmit::None;
        }
        Rexmit::Lost
    }
}
