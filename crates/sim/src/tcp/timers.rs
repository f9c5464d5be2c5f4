//! The transmit timer: one of retransmission timeout, tail loss probe
//! (RFC 8985, 7), RACK's reordering wait, or window probe at a time.

use super::input::AckFlags;
use super::output::Push;
use super::{CaState, Cx, Endpoint, NEVER, State};

/// SYNs that are repeated at the first timeout before it doubles (sysctl
/// tcp_syn_linear_timeouts, since Linux 6.5).
const SYN_LINEAR_TIMEOUTS: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XmitTimerKind {
    None,
    Retransmit,
    LossProbe,
    Reorder,
    WindowProbe,
}

#[derive(Clone, Copy, Debug)]
pub struct XmitTimer {
    pub kind: XmitTimerKind,
    pub at_ns: u64,
}

impl Endpoint {
    /// tcp_reset_xmit_timer(): a departure time in the future delays it.
    pub(super) fn arm_xmit_timer(&mut self, cx: &Cx, kind: XmitTimerKind, jiffies: u64) {
        let pacing_delay_ns = self.cc.wstamp_ns.saturating_sub(cx.now_ns);
        let jiffies = jiffies + cx.host.ns_to_jiffies(pacing_delay_ns);
        self.xmit_timer = XmitTimer {
            kind,
            at_ns: cx.host.timer_at(cx.now_ns, jiffies),
        };
    }

    pub(super) fn disarm_xmit_timer(&mut self) {
        self.xmit_timer = XmitTimer {
            kind: XmitTimerKind::None,
            at_ns: NEVER,
        };
    }

    pub(super) fn rto_jiffies(&self, cx: &Cx) -> u64 {
        self.rtt.backed_off_jiffies(cx.host, self.backoff)
    }

    /// tcp_rto_delta_us(): what is left of the head's timeout; negative: overdue.
    fn rto_delta_us(&self, cx: &Cx) -> i64 {
        let head_us = self
            .rtx
            .front()
            .map_or(cx.now_us(), |head| head.sent_ns / 1_000);
        let rto_us = self.rto_jiffies(cx) * cx.host.tick_ns / 1_000;
        (head_us + rto_us) as i64 - cx.now_us() as i64
    }

    /// tcp_rearm_rto()
    pub(super) fn rearm_rto(&mut self, cx: &Cx) {
        if self.cc.packets_out == 0 {
            self.disarm_xmit_timer();
            return;
        }
        let mut jiffies = self.rto_jiffies(cx);
        if matches!(
            self.xmit_timer.kind,
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

    /// tcp_schedule_loss_probe()
    pub(super) fn schedule_loss_probe(&mut self, cx: &Cx, advancing_rto: bool) -> bool {
        if self.cc.packets_out == 0 || !matches!(self.ca_state, CaState::Open | CaState::Cwr) {
            return false;
        }
        let conf = cx.host;
        let mut jiffies = match self.rtt.srtt_x8() {
            0 => conf.us_to_jiffies(1_000_000),
            srtt_x8 => {
                // A lone packet's ACK may be delayed by the receiver.
                let slack_us = match self.cc.packets_out {
                    1 => conf.host.tcp_rto_min.as_us(),
                    _ => 2_000,
                };
                conf.us_to_jiffies(u64::from(srtt_x8 >> 2) + slack_us)
            }
        };
        let rto_delta_us = match advancing_rto {
            true => (self.rto_jiffies(cx) * conf.tick_ns / 1_000) as i64,
            false => self.rto_delta_us(cx),
        };
        if rto_delta_us > 0 {
            jiffies = jiffies.min(conf.us_to_jiffies(rto_delta_us as u64));
        }
        self.arm_xmit_timer(cx, XmitTimerKind::LossProbe, jiffies);
        true
    }

    pub(super) fn on_xmit_timer(&mut self, cx: &mut Cx) {
        if self.state != State::Established {
            self.retry_syn(cx);
            return;
        }
        // The kind stays while the handler runs: rearm_rto() asks what it was.
        self.xmit_timer.at_ns = NEVER;
        match self.xmit_timer.kind {
            XmitTimerKind::None => {}
            XmitTimerKind::Retransmit => self.on_rto(cx),
            XmitTimerKind::LossProbe => self.send_loss_probe(cx),
            XmitTimerKind::Reorder => self.on_reorder_timeout(cx),
            XmitTimerKind::WindowProbe => self.send_window_probe(cx),
        }
    }

    fn retry_syn(&mut self, cx: &mut Cx) {
        self.syn_timeouts += 1;
        if self.state != State::SynSent || self.syn_timeouts > SYN_LINEAR_TIMEOUTS {
            self.backoff += 1;
        }
        self.send_syn(cx);
    }

    /// tcp_retransmit_timer()
    fn on_rto(&mut self, cx: &mut Cx) {
        self.disarm_xmit_timer();
        if self.rtx.is_empty() {
            return;
        }
        self.counters.rto_count += 1;
        self.enter_loss(cx);
        self.retransmits += 1;
        self.retransmit(cx, self.rtx.front_id(), 1);
        self.backoff += 1;
        self.arm_xmit_timer(cx, XmitTimerKind::Retransmit, self.rto_jiffies(cx));
    }

    /// tcp_rack_reo_timeout()
    fn on_reorder_timeout(&mut self, cx: &mut Cx) {
        let prior_in_flight = self.packets_in_flight();
        let prior_lost = self.cc.lost;
        self.rack_detect_loss(cx);
        if prior_in_flight != self.packets_in_flight() {
            if self.ca_state != CaState::Recovery {
                self.enter_recovery(cx, false);
                if !self.has_cong_control {
                    let lost = self.cc.lost.wrapping_sub(prior_lost);
                    self.reduce_cwnd(cx, 1, lost, false);
                }
            }
            self.retransmit_lost(cx);
        }
        if self.xmit_timer.kind != XmitTimerKind::Retransmit {
            self.rearm_rto(cx);
        }
    }

    /// tcp_send_loss_probe(): new data if there is any, else the last segment again.
    fn send_loss_probe(&mut self, cx: &mut Cx) {
        if self.tlp_high_seq == 0 && self.send_probe(cx) {
            self.tlp_high_seq = self.snd_nxt;
            self.counters.tlp_count += 1;
            cx.events.push("tlp");
            // The timeout counts from the probe.
            self.xmit_timer.kind = XmitTimerKind::None;
        }
        self.rearm_rto(cx);
    }

    fn send_probe(&mut self, cx: &mut Cx) -> bool {
        self.tlp_retrans = false;
        if self.has_unsent() && self.window_allows_next() {
            return self.write_xmit(cx, Push::Probe) > 0;
        }
        let Some(last) = self.rtx.back_id() else {
            return false;
        };
        self.tlp_retrans = true;
        self.transmit_again(cx, last, 1);
        true
    }

    /// tcp_process_tlp_ack()
    pub(super) fn process_tlp_ack(&mut self, cx: &mut Cx, ack: u64, flags: &AckFlags) {
        if ack < self.tlp_high_seq {
            return;
        }
        let repaired_loss = self.tlp_retrans && !flags.dsack_tlp && ack > self.tlp_high_seq;
        if !self.tlp_retrans || flags.dsack_tlp {
            self.tlp_high_seq = 0;
        } else if repaired_loss {
            // The probe was the only copy to arrive: one reduction.
            self.init_cwnd_reduction(cx);
            self.set_ca_state(cx, CaState::Cwr);
            self.end_cwnd_reduction(cx);
            self.try_keep_open(cx);
        } else if !(flags.una_advanced
            || flags.data_sacked
            || flags.data
            || flags.window_update
            || flags.data_acked)
        {
            self.tlp_high_seq = 0;
        }
    }

    /// The window is shut and nothing outstanding would tell when it opens.
    pub(super) fn rearm_window_probe(&mut self, cx: &Cx) {
        let blocked = self.cc.packets_out == 0 && self.has_unsent() && !self.window_allows_next();
        match (blocked, self.xmit_timer.kind) {
            (true, XmitTimerKind::None) => {
                self.arm_xmit_timer(cx, XmitTimerKind::WindowProbe, self.rto_jiffies(cx));
            }
            (false, XmitTimerKind::WindowProbe) => self.disarm_xmit_timer(),
            _ => {}
        }
    }

    fn send_window_probe(&mut self, cx: &mut Cx) {
        self.disarm_xmit_timer();
        if self.cc.packets_out > 0 || !self.has_unsent() {
            return;
        }
        self.backoff += 1;
        self.probe_window(cx);
        if self.xmit_timer.kind == XmitTimerKind::None {
            self.arm_xmit_timer(cx, XmitTimerKind::WindowProbe, self.rto_jiffies(cx));
        }
    }
}
