//! The loss state machine: what an ACK or a timeout does to recovery, the window
//! and undo (tcp_fastretrans_alert(), RFC 6937, RFC 5682).

use knee_cc::{Event, INFINITE_SSTHRESH, Op};

use super::input::{AckFlags, Rexmit};
use super::prr::PrrRule;
use super::{CaState, Cx, Endpoint};

impl Endpoint {
    /// tcp_fastretrans_alert()
    #[inline(never)]
    pub(super) fn alert(
        &mut self,
        cx: &mut Cx,
        prior_una: u64,
        flags: &mut AckFlags,
        duplicate: bool,
    ) -> Rexmit {
        if flags.ece {
            // The network did ask to reduce: no undo.
            self.undo.forget_ssthresh();
        }
        if self.recovery.state() == CaState::Open {
            self.undo.clear_stamp();
        } else if self.snd_una >= self.recovery.high_seq() {
            match self.recovery.state() {
                CaState::Cwr if self.snd_una != self.recovery.high_seq() => {
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
        match self.recovery.state() {
            CaState::Recovery => {
                if flags.una_advanced && self.try_undo_partial(cx, prior_una) {
                    return Rexmit::Lost;
                }
                if self.try_undo_dsack(cx) {
                    self.try_to_open(cx, flags.ece);
                }
                self.identify_loss(cx, flags);
                if self.recovery.state() != CaState::Recovery {
                    if self.board.flight().lost_out == 0 {
                        return Rexmit::None;
                    }
                    self.enter_recovery(cx, flags.ece);
                }
                Rexmit::Lost
            }
            CaState::Loss => {
                let rexmit = self.process_loss(cx, flags, duplicate);
                self.identify_loss(cx, flags);
                if !(self.recovery.state() == CaState::Open || flags.lost_retrans) {
                    return rexmit;
                }
                self.alert_open(cx, flags)
            }
            _ => self.alert_open(cx, flags),
        }
    }

    /// The default arm of tcp_fastretrans_alert(): Open, Disorder, CWR.
    fn alert_open(&mut self, cx: &mut Cx, flags: &mut AckFlags) -> Rexmit {
        if self.recovery.state() <= CaState::Disorder {
            self.try_undo_dsack(cx);
        }
        self.identify_loss(cx, flags);
        if self.board.flight().lost_out == 0 {
            self.try_to_open(cx, flags.ece);
            return Rexmit::None;
        }
        self.enter_recovery(cx, flags.ece);
        Rexmit::Lost
    }

    fn identify_loss(&mut self, cx: &mut Cx, flags: &mut AckFlags) {
        let prior_retrans = self.board.flight().retrans_out;
        if self.mark_losses(cx) {
            flags.set_xmit_timer = false;
        }
        flags.lost_retrans |= prior_retrans > self.board.flight().retrans_out;
    }

    /// tcp_enter_recovery()
    pub(super) fn enter_recovery(&mut self, cx: &mut Cx, ece: bool) {
        self.counters.recovery_count += 1;
        self.undo.forget_ssthresh();
        self.init_undo();
        if !self.recovery.in_cwnd_reduction() {
            if !ece {
                self.undo.set_prior_ssthresh(self.current_ssthresh());
            }
            self.init_cwnd_reduction(cx);
        }
        self.set_ca_state(cx, CaState::Recovery);
    }

    fn init_undo(&mut self) {
        let retrans_out = self.board.flight().retrans_out;
        self.undo.start(self.snd_una, retrans_out);
    }

    /// tcp_init_cwnd_reduction()
    pub(super) fn init_cwnd_reduction(&mut self, cx: &Cx) {
        self.recovery.set_high_seq(self.snd_nxt);
        self.probe.cancel();
        self.cc.snd_cwnd_cnt = 0;
        self.cc.prior_cwnd = self.cc.snd_cwnd;
        self.prr.start();
        self.cc.snd_ssthresh = self.call_cc(cx, Op::Ssthresh);
        self.ecn.queue_cwr();
    }

    /// tcp_cwnd_reduction(): proportional rate reduction.
    pub(super) fn reduce_cwnd(&mut self, cx: &Cx, delivered: u32, lost: u32, flags: &AckFlags) {
        if delivered == 0 || self.cc.prior_cwnd == 0 {
            return;
        }
        let progresses = flags.una_advanced && lost == 0;
        let growth = match cx.host.settings.prr {
            PrrRule::CatchUp => Some(u32::from(progresses)),
            PrrRule::OnProgress => progresses.then_some(1),
            PrrRule::OnRepair => (flags.retrans_acked && !flags.lost_retrans).then_some(1),
            PrrRule::SlowStart => Some(1),
        };
        let snd_cwnd = self.prr.cwnd(
            delivered,
            self.packets_in_flight(),
            self.cc.snd_ssthresh,
            self.cc.prior_cwnd,
            growth,
        );
        self.set_cwnd(cx, snd_cwnd);
    }

    /// tcp_end_cwnd_reduction()
    pub(super) fn end_cwnd_reduction(&mut self, cx: &Cx) {
        if self.has_cong_control {
            return;
        }
        if self.cc.snd_ssthresh < INFINITE_SSTHRESH
            && (self.recovery.state() == CaState::Cwr || self.undo.is_on())
        {
            self.set_cwnd(cx, self.cc.snd_ssthresh);
            self.usage.refresh(cx.jiffies());
        }
        self.cwnd_event(cx, Event::CompleteCwr);
    }

    fn try_to_open(&mut self, cx: &mut Cx, ece: bool) {
        if !self.board.any_retrans_done() {
            self.undo.clear_stamp();
        }
        if ece {
            self.enter_cwr(cx);
        }
        if self.recovery.state() != CaState::Cwr {
            self.try_keep_open(cx);
        }
    }

    pub(super) fn try_keep_open(&mut self, cx: &mut Cx) {
        let state = match self.board.flight().left_out() > 0 || self.board.any_retrans_done() {
            true => CaState::Disorder,
            false => CaState::Open,
        };
        if self.recovery.state() != state {
            self.set_ca_state(cx, state);
            self.recovery.set_high_seq(self.snd_nxt);
        }
    }

    // ---- undo ------------------------------------------------------------

    fn undo_cwnd_reduction(&mut self, cx: &mut Cx, unmark_loss: bool) {
        if unmark_loss {
            self.board.unmark_losses();
        }
        let prior_ssthresh = self.undo.prior_ssthresh();
        if prior_ssthresh != 0 {
            let snd_cwnd = self.call_cc(cx, Op::UndoCwnd);
            self.set_cwnd(cx, snd_cwnd.max(1));
            if prior_ssthresh > self.cc.snd_ssthresh {
                self.cc.snd_ssthresh = prior_ssthresh;
                self.ecn.withdraw_cwr();
            }
        }
        self.usage.refresh(cx.jiffies());
        self.undo.end();
        self.rack.on_undo();
        self.counters.undo_count += 1;
        cx.events.push("undo");
    }

    fn try_undo_recovery(&mut self, cx: &mut Cx) {
        if self.undo.may_undo(self.rx.echoed_ms()) {
            self.undo_cwnd_reduction(cx, false);
        } else {
            self.rack.on_recovery_end();
        }
        self.set_ca_state(cx, CaState::Open);
    }

    fn try_undo_partial(&mut self, cx: &mut Cx, prior_una: u64) -> bool {
        if !self.undo.is_on() || !self.undo.packet_delayed(self.rx.echoed_ms()) {
            return false;
        }
        self.check_reordering(prior_una);
        if self.board.flight().retrans_out > 0 {
            // Wait for the retransmissions to be acked before judging.
            return true;
        }
        if !self.board.any_retrans_done() {
            self.undo.clear_stamp();
        }
        self.undo_cwnd_reduction(cx, true);
        self.try_keep_open(cx);
        true
    }

    fn try_undo_dsack(&mut self, cx: &mut Cx) -> bool {
        if !self.undo.all_duplicates() {
            return false;
        }
        self.rack.on_spurious_recovery();
        self.undo_cwnd_reduction(cx, false);
        true
    }

    fn try_undo_loss(&mut self, cx: &mut Cx, frto: bool) -> bool {
        if !frto && !self.undo.may_undo(self.rx.echoed_ms()) {
            return false;
        }
        self.undo_cwnd_reduction(cx, true);
        self.recovery.clear_timeouts();
        self.set_ca_state(cx, CaState::Open);
        true
    }

    // ---- timeout ---------------------------------------------------------

    /// tcp_enter_loss(): the retransmission timer fired.
    pub(super) fn enter_loss(&mut self, cx: &mut Cx) {
        let new_recovery = self.recovery.state() < CaState::Recovery;
        self.mark_overdue_lost(cx);
        if self.recovery.state() <= CaState::Disorder
            || self.recovery.high_seq() <= self.snd_una
            || self.recovery.state() == CaState::Loss && self.recovery.timeouts() == 0
        {
            self.undo.set_prior_ssthresh(self.current_ssthresh());
            self.cc.prior_cwnd = self.cc.snd_cwnd;
            self.cc.snd_ssthresh = self.call_cc(cx, Op::Ssthresh);
            self.cwnd_event(cx, Event::Loss);
            self.init_undo();
        }
        self.set_cwnd(cx, self.packets_in_flight() + 1);
        self.cc.snd_cwnd_cnt = 0;
        self.usage.refresh(cx.jiffies());
        if self.recovery.state() <= CaState::Disorder
            && self.board.flight().sacked_out >= self.board.reordering()
        {
            self.board.forget_reordering();
        }
        self.set_ca_state(cx, CaState::Loss);
        self.recovery.set_high_seq(self.snd_nxt);
        self.probe.cancel();
        self.ecn.queue_cwr();
        self.recovery.start_frto(new_recovery);
    }

    /// tcp_process_loss()
    fn process_loss(&mut self, cx: &mut Cx, flags: &AckFlags, duplicate: bool) -> Rexmit {
        let recovered = self.snd_una >= self.recovery.high_seq();
        if flags.una_advanced && self.try_undo_loss(cx, false) {
            return Rexmit::None;
        }
        if self.recovery.awaits_frto() {
            if flags.orig_sack_acked && self.try_undo_loss(cx, true) {
                // RFC 5682, step 3b: the timeout was spurious.
                return Rexmit::None;
            }
            if self.snd_nxt > self.recovery.high_seq() {
                if flags.data_sacked || duplicate {
                    self.recovery.end_frto();
                }
            } else if flags.una_advanced && !recovered {
                self.recovery.set_high_seq(self.snd_nxt);
                // Step 2b: new data decides; without any, recover as usual.
                if self.notsent_bytes() > 0
                    && self.peer_window.room_bytes(self.snd_una, self.snd_nxt) > 0
                {
                    return Rexmit::New;
                }
                self.recovery.end_frto();
            }
        }
        if recovered {
            self.try_undo_recovery(cx);
            return Rexmit::None;
        }
        Rexmit::Lost
    }
}
