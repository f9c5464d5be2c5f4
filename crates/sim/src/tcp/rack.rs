//! RACK (RFC 8985): a segment is lost when one sent later has been delivered
//! and it has had its round trip and some time for reordering.

use knee_cc::Op;

use super::rate::RateSample;
use super::rtx::{APP_LIMITED, EVER_RETRANS, LOST, RETRANS, SACKED};
use super::timers::XmitTimerKind;
use super::{CaState, Cx, Endpoint};

/// Resolution that keeps RACK's timer from firing at once (TCP_TIMEOUT_MIN_US).
const TIMEOUT_MIN_US: u64 = 2_000;
/// Recoveries for which a widened reordering window lasts (TCP_RACK_RECOVERY_THRESH).
pub(super) const REO_WND_PERSIST: u8 = 16;

/// RACK's view of the connection.
#[derive(Clone, Debug)]
pub struct Rack {
    /// Transmission time, end and RTT of the most recently sent segment delivered.
    pub mstamp_ns: u64,
    pub end_seq: u64,
    pub rtt_us: u32,
    pub advanced: bool,
    pub dsack_seen: bool,
    /// The window in quarters of the minimum RTT.
    pub reo_wnd_steps: u8,
    pub reo_wnd_persist: u8,
    /// `tp.delivered` when the window last changed.
    pub last_delivered: u32,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            mstamp_ns: 0,
            end_seq: 0,
            rtt_us: 0,
            advanced: false,
            dsack_seen: false,
            reo_wnd_steps: 1,
            reo_wnd_persist: 0,
            last_delivered: 0,
        }
    }
}

impl Rack {
    /// tcp_rack_advance(): a segment was delivered.
    #[inline]
    pub fn advance(
        &mut self,
        now_us: u64,
        min_rtt_us: u32,
        seg_flags: u8,
        end_seq: u64,
        sent_ns: u64,
    ) {
        let rtt_us = now_us.saturating_sub(sent_ns / 1_000) as u32;
        if rtt_us < min_rtt_us && seg_flags & (RETRANS | EVER_RETRANS) != 0 {
            // Too fast for the retransmission: the original was delivered.
            return;
        }
        self.advanced = true;
        self.rtt_us = rtt_us;
        if sent_after(sent_ns, end_seq, self.mstamp_ns, self.end_seq) {
            self.mstamp_ns = sent_ns;
            self.end_seq = end_seq;
        }
    }
}

/// tcp_skb_sent_after(): later, or at once and further on.
fn sent_after(t1_ns: u64, seq1: u64, t2_ns: u64, seq2: u64) -> bool {
    let (t1_us, t2_us) = (t1_ns / 1_000, t2_ns / 1_000);
    t1_us > t2_us || t1_us == t2_us && seq1 > seq2
}

impl Endpoint {
    fn rack_reo_wnd_us(&self) -> u64 {
        if self.reord_seen == 0
            && (self.ca_state >= CaState::Recovery || self.cc.sacked_out >= self.cc.reordering)
        {
            return 0;
        }
        let steps = u64::from(self.rack.reo_wnd_steps);
        (u64::from(self.min_rtt.get() >> 2) * steps).min(u64::from(self.srtt_us()))
    }

    /// tcp_rack_mark_lost(): returns whether the reordering timer was armed.
    pub(super) fn rack_mark_lost(&mut self, cx: &mut Cx) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let timeout_us = self.rack_detect_loss(cx);
        if timeout_us == 0 {
            return false;
        }
        let jiffies = cx.host.us_to_jiffies(timeout_us + TIMEOUT_MIN_US);
        self.arm_xmit_timer(cx, XmitTimerKind::Reorder, jiffies);
        true
    }

    /// tcp_rack_detect_loss(): marks what was sent long enough before the last
    /// delivered; returns how long the rest still has to wait, in us.
    pub(super) fn rack_detect_loss(&mut self, cx: &Cx) -> u64 {
        let reo_wnd_us = self.rack_reo_wnd_us();
        let deadline_us = u64::from(self.rack.rtt_us) + reo_wnd_us;
        let now_us = cx.now_us();
        let mut timeout_us = 0;
        let mut next = self.rtx.oldest_sent();
        while let Some(id) = next {
            let seg = self.rtx.get(id);
            if !sent_after(
                self.rack.mstamp_ns,
                self.rack.end_seq,
                seg.sent_ns,
                seg.end_seq(),
            ) {
                break;
            }
            next = self.rtx.sent_next(id);
            let waited_us = now_us.saturating_sub(seg.sent_ns / 1_000);
            if waited_us >= deadline_us {
                self.mark_lost(cx, id);
            } else {
                timeout_us = timeout_us.max(deadline_us - waited_us);
            }
        }
        timeout_us
    }

    /// tcp_rack_update_reo_wnd()
    pub(super) fn rack_update_reo_wnd(&mut self, sample: &RateSample) {
        if sample.is_empty() {
            return;
        }
        let rack = &mut self.rack;
        if (sample.prior_delivered().wrapping_sub(rack.last_delivered) as i32) < 0 {
            // Not a round trip since the last change.
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.reo_wnd_steps = rack.reo_wnd_steps.saturating_add(1);
            rack.dsack_seen = false;
            rack.last_delivered = self.cc.delivered;
            rack.reo_wnd_persist = REO_WND_PERSIST;
        } else if rack.reo_wnd_persist == 0 {
            rack.reo_wnd_steps = 1;
        }
    }

    /// tcp_mark_skb_lost()
    pub(super) fn mark_lost(&mut self, cx: &Cx, id: u32) {
        let seg = self.rtx.get_mut(id);
        if seg.has(SACKED) {
            return;
        }
        if seg.has(LOST) {
            if !seg.has(RETRANS) {
                return;
            }
            seg.flags &= !RETRANS;
            self.cc.retrans_out -= 1;
        } else {
            seg.flags |= LOST;
            self.cc.lost_out += 1;
        }
        self.cc.lost += 1;
        let (seq, end_seq) = (seg.seq, seg.end_seq());
        let (tx, is_app_limited) = (seg.tx, seg.has(APP_LIMITED));
        // Undo takes the mark from a segment, not its retransmission: marked anew, it is not sent
        // again before the timeout (tcp_xmit_retransmit_queue() skips it), and not counted twice.
        if !seg.has(RETRANS) {
            self.to_retransmit.insert(seq, end_seq, |_, _| {});
        }
        self.rtx.unlink(id);
        // One that was delivered before says nothing of its flight.
        if self.alg.has(Op::SkbMarkedLost) && tx.delivered_ns != 0 {
            self.cc.lost_tx_in_flight = tx.in_flight;
            self.cc.lost_tx_lost = tx.lost;
            self.cc.lost_is_app_limited = u32::from(is_app_limited);
            self.call_cc(cx, Op::SkbMarkedLost);
        }
    }
}
