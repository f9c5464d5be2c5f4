//! Which segments are lost: what RACK says, and what a timeout does.

use knee_cc::Op;

use super::rack::Verdict;
use super::rtx::Seg;
use super::xmit_timer::XmitTimerKind;
use super::{CaState, Cx, Endpoint};

/// Resolution that keeps RACK's timer from firing at once (TCP_TIMEOUT_MIN_US).
const TIMEOUT_MIN_US: u64 = 2_000;

impl Endpoint {
    /// tcp_rack_reo_wnd()
    fn reo_wnd_us(&self) -> u64 {
        if self.board.reord_seen() == 0
            && (self.recovery.state() >= CaState::Recovery
                || self.board.flight().sacked_out >= self.board.reordering())
        {
            return 0;
        }
        self.rack.reo_wnd_us(self.min_rtt.get(), self.srtt_us())
    }

    /// tcp_rack_mark_lost(): returns whether the reordering timer was armed.
    #[inline]
    pub(super) fn mark_losses(&mut self, cx: &mut Cx) -> bool {
        if !self.rack.take_advanced() {
            return false;
        }
        let timeout_us = self.detect_losses(cx);
        if timeout_us == 0 {
            return false;
        }
        let jiffies = cx.host.us_to_jiffies(timeout_us + TIMEOUT_MIN_US);
        self.arm_xmit_timer(cx, XmitTimerKind::Reorder, jiffies);
        true
    }

    /// tcp_rack_detect_loss(): marks what was sent long enough before the last
    /// delivered; returns how long the rest still has to wait, in us.
    pub(super) fn detect_losses(&mut self, cx: &Cx) -> u64 {
        let reo_wnd_us = self.reo_wnd_us();
        let now_us = cx.now_us();
        let mut timeout_us = 0;
        let mut next = self.board.oldest_sent();
        while let Some(id) = next {
            let verdict = self.rack.judge(now_us, reo_wnd_us, self.board.get(id));
            if verdict == Verdict::NotYet {
                break;
            }
            next = self.board.sent_next(id);
            if self.board.get(id).is_to_be_resent() {
                continue;
            }
            match verdict {
                Verdict::Waits(us) => timeout_us = timeout_us.max(us),
                _ => {
                    self.mark_lost(cx, id);
                    self.board.leave_order(id);
                }
            }
        }
        timeout_us
    }

    /// tcp_timeout_mark_lost(): the head, and what RACK thinks is overdue.
    pub(super) fn mark_overdue_lost(&mut self, cx: &Cx) {
        let deadline_us = u64::from(self.rack.rtt_us());
        let head = self.board.head_id();
        self.board.isolate(head, 1);
        let is_overdue = |seg: &Seg| cx.now_us().saturating_sub(seg.sent_us) >= deadline_us;
        let is_lost = |seg: &Seg| seg.can_be_lost() && (seg.holds(head) || is_overdue(seg));
        for id in self.board.ids(is_lost) {
            self.mark_lost(cx, id);
        }
    }

    /// tcp_mark_skb_lost(), which the algorithm may want to know.
    fn mark_lost(&mut self, cx: &Cx, id: u32) {
        let Some(lost) = self.board.mark_lost(id) else {
            return;
        };
        for _ in 0..lost.segs {
            self.board.count_lost(&lost);
            // One that was delivered before says nothing of its flight.
            if self.alg.has(Op::SkbMarkedLost) && lost.tx.delivered_us != 0 {
                self.cc.lost_tx_in_flight = lost.tx.in_flight;
                self.cc.lost_tx_lost = lost.tx.lost;
                self.cc.lost_is_app_limited = u32::from(lost.is_app_limited);
                self.call_cc(cx, Op::SkbMarkedLost);
            }
        }
    }
}
