//! When the transmit timer is armed, and what happens when it fires: a timeout, a
//! tail loss probe, RACK's reordering wait, a window probe.

use super::input::AckFlags;
use super::output::Push;
use super::xmit_timer::XmitTimerKind;
use super::{CaState, Cx, Endpoint, State};
use knee_kit::odds::{likely, unlikely};

impl Endpoint {
    /// tcp_reset_xmit_timer(): a departure time in the future delays it.
    pub(super) fn arm_xmit_timer(&mut self, cx: &Cx, kind: XmitTimerKind, jiffies: u64) {
        let pacing_delay_jiffies = match self.pacer.next_ns().saturating_sub(cx.now_ns()) {
            0 => 0,
            delay_ns => cx.host.ns_to_jiffies(delay_ns),
        };
        let at_ns = cx
            .host
            .timer_at(cx.now.ticks, jiffies + pacing_delay_jiffies);
        self.xmit_timer.arm(kind, at_ns);
    }

    #[inline]
    pub(super) fn rto_jiffies(&self, cx: &Cx) -> u64 {
        self.rtt
            .backed_off_jiffies(cx.host, self.xmit_timer.backoff())
    }

    /// tcp_rto_delta_us(): what is left of the head's timeout; negative: overdue.
    fn rto_delta_us(&self, cx: &Cx) -> i64 {
        let head_us = self.board.head().map_or(cx.now_us(), |head| head.sent_us);
        let rto_us = self.rto_jiffies(cx) * cx.host.tick_ns / 1_000;
        (head_us + rto_us) as i64 - cx.now_us() as i64
    }

    /// tcp_rearm_rto()
    pub(super) fn rearm_rto(&mut self, cx: &Cx) {
        if self.board.packets_out() == 0 {
            self.xmit_timer.disarm();
            return;
        }
        let mut jiffies = self.rto_jiffies(cx);
        if matches!(
            self.xmit_timer.kind(),
            XmitTimerKind::Reorder | XmitTimerKind::LossProbe
        ) {
            // The timeout counts from the head's transmission, not from now.
            jiffies = cx.host.us_to_jiffies(self.rto_delta_us(cx).max(1) as u64);
        }
        self.arm_xmit_timer(cx, XmitTimerKind::Retransmit, jiffies);
    }

    /// tcp_set_xmit_timer()
    pub(super) fn set_xmit_timer(&mut self, cx: &Cx) {
        if !self.schedule_loss_probe(cx, true) {
            self.rearm_rto(cx);
        }
    }

    /// Is the transmit timer that of a loss probe, once one is scheduled?
    pub(super) fn may_probe(&self) -> bool {
        let state = self.recovery.state();
        likely(self.board.packets_out() > 0 && matches!(state, CaState::Open | CaState::Cwr))
    }

    /// tcp_schedule_loss_probe()
    #[inline(never)]
    pub(super) fn schedule_loss_probe(&mut self, cx: &Cx, advancing_rto: bool) -> bool {
        if unlikely(!self.may_probe()) {
            return false;
        }
        let conf = cx.host;
        let mut jiffies = match self.rtt.srtt_x8() {
            0 => conf.us_to_jiffies(1_000_000),
            srtt_x8 => {
                // A lone packet's ACK may be delayed by the receiver.
                let slack_us = match unlikely(self.board.packets_out() == 1) {
                    true => conf.settings.tcp_rto_min.as_us(),
                    false => 2_000,
                };
                conf.us_to_jiffies(u64::from(srtt_x8 >> 2) + slack_us)
            }
        };
        if advancing_rto {
            jiffies = jiffies.min(self.rto_jiffies(cx));
        } else {
            let rto_delta_ns = self.rto_delta_us(cx) * 1_000;
            // It is mostly later than the probe, which a multiplication tells without turning it into ticks.
            if (1..=((jiffies - 1) * conf.tick_ns) as i64).contains(&rto_delta_ns) {
                jiffies = conf.ns_to_jiffies(rto_delta_ns as u64);
            }
        }
        self.arm_xmit_timer(cx, XmitTimerKind::LossProbe, jiffies);
        true
    }

    pub(super) fn on_xmit_timer(&mut self, cx: &mut Cx) {
        if self.state != State::Established {
            self.retry_syn(cx);
            return;
        }
        match self.xmit_timer.fire() {
            XmitTimerKind::None => {}
            XmitTimerKind::Retransmit => self.on_rto(cx),
            XmitTimerKind::LossProbe => self.send_loss_probe(cx),
            XmitTimerKind::Reorder => self.on_reorder_timeout(cx),
            XmitTimerKind::WindowProbe => self.send_window_probe(cx),
        }
    }

    fn retry_syn(&mut self, cx: &mut Cx) {
        let linear_timeouts = cx.host.settings.tcp_syn_linear_timeouts;
        let is_syn = self.state == State::SynSent;
        if self.handshake.on_timeout(is_syn, linear_timeouts) {
            self.xmit_timer.back_off();
        }
        self.send_syn(cx);
    }

    /// tcp_retransmit_timer()
    fn on_rto(&mut self, cx: &mut Cx) {
        self.xmit_timer.disarm();
        if self.board.is_empty() {
            return;
        }
        self.counters.rto_count += 1;
        self.enter_loss(cx);
        self.recovery.on_timeout();
        self.retransmit(cx, self.board.head_id(), 1);
        self.xmit_timer.back_off();
        self.arm_xmit_timer(cx, XmitTimerKind::Retransmit, self.rto_jiffies(cx));
    }

    /// tcp_rack_reo_timeout()
    fn on_reorder_timeout(&mut self, cx: &mut Cx) {
        let prior_in_flight = self.packets_in_flight();
        let prior_lost = self.board.lost();
        self.detect_losses(cx);
        if prior_in_flight != self.packets_in_flight() {
            if self.recovery.state() != CaState::Recovery {
                self.enter_recovery(cx, false);
                if !self.has_cong_control {
                    let lost = self.board.lost().wrapping_sub(prior_lost);
                    self.reduce_cwnd(cx, 1, lost, &AckFlags::default());
                }
            }
            self.retransmit_lost(cx);
        }
        if self.xmit_timer.kind() != XmitTimerKind::Retransmit {
            self.rearm_rto(cx);
        }
    }

    /// tcp_send_loss_probe(): new data if there is any, else the last segment again.
    fn send_loss_probe(&mut self, cx: &mut Cx) {
        if !self.probe.is_out() && self.send_probe(cx) {
            self.probe.sent(self.snd_nxt);
            self.counters.tlp_count += 1;
            cx.events.push("tlp");
            // The timeout counts from the probe.
            self.xmit_timer.forget_kind();
        }
        self.rearm_rto(cx);
    }

    fn send_probe(&mut self, cx: &mut Cx) -> bool {
        self.probe.choose(false);
        if self.has_unsent() && self.window_allows_next() {
            return self.write_xmit(cx, Push::Probe) > 0;
        }
        let Some(last) = self.board.last_id() else {
            return false;
        };
        self.probe.choose(true);
        self.transmit_again(cx, last, 1);
        true
    }

    /// tcp_process_tlp_ack()
    #[inline(never)]
    pub(super) fn process_tlp_ack(&mut self, cx: &mut Cx, ack: u64, flags: &AckFlags) {
        let is_news = flags.una_advanced
            || flags.data_sacked
            || flags.data
            || flags.window_update
            || flags.data_acked;
        if self.probe.on_ack(ack, flags.dsack_tlp, is_news) {
            // The probe was the only copy to arrive: one reduction.
            self.init_cwnd_reduction(cx);
            self.set_ca_state(cx, CaState::Cwr);
            self.end_cwnd_reduction(cx);
            self.try_keep_open(cx);
        }
    }

    /// The window is shut and nothing outstanding would tell when it opens.
    #[inline]
    pub(super) fn rearm_window_probe(&mut self, cx: &Cx) {
        let (idle, kind) = (self.board.packets_out() == 0, self.xmit_timer.kind());
        if unlikely(idle) && self.has_unsent() && !self.window_allows_next() {
            if kind == XmitTimerKind::None {
                self.arm_window_probe(cx);
            }
        } else if unlikely(kind == XmitTimerKind::WindowProbe) {
            self.xmit_timer.disarm();
        }
    }

    #[inline(never)]
    fn arm_window_probe(&mut self, cx: &Cx) {
        self.arm_xmit_timer(cx, XmitTimerKind::WindowProbe, self.rto_jiffies(cx));
    }

    fn send_window_probe(&mut self, cx: &mut Cx) {
        self.xmit_timer.disarm();
        if self.board.packets_out() > 0 || !self.has_unsent() {
            return;
        }
        self.xmit_timer.back_off();
        self.probe_window(cx);
        if self.xmit_timer.kind() == XmitTimerKind::None {
            self.arm_window_probe(cx);
        }
    }
}
