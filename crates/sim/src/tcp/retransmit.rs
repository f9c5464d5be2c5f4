//! Sending again: what was lost, what a probe repeats.

use super::input::Rexmit;
use super::output::Push;
use super::rtx::{EVER_RETRANS, RETRANS, SKB_END};
use super::timers::XmitTimerKind;
use super::{Cx, Endpoint};
use crate::segment::ACK;

impl Endpoint {
    /// tcp_xmit_recovery()
    pub(super) fn send_retransmissions(&mut self, cx: &mut Cx, rexmit: Rexmit) {
        match rexmit {
            Rexmit::None => return,
            Rexmit::Lost => {}
            Rexmit::New => {
                self.write_xmit(cx, Push::Normal);
                if self.snd_nxt > self.high_seq {
                    return;
                }
                self.frto = false;
            }
        }
        self.retransmit_lost(cx);
    }

    /// tcp_xmit_retransmit_queue(): lowest lost first.
    pub(super) fn retransmit_lost(&mut self, cx: &mut Cx) {
        let mut rearm = false;
        while let Some((seq, end_seq)) = self.to_retransmit.first() {
            if self.pacing_blocks(cx) {
                break;
            }
            let quota = self.cc.snd_cwnd.saturating_sub(self.packets_in_flight());
            let quota = quota.min(self.tso_segs(cx));
            if quota == 0 || self.tsq_blocks(cx, quota, 2) {
                break;
            }
            let id = self
                .rtx
                .find(seq)
                .expect("what is to be retransmitted is queued");
            let segs = self.run_of_lost(id, end_seq, quota);
            self.retransmit(cx, id, segs);
            if self.in_cwnd_reduction() {
                self.prr_out += segs;
            }
            rearm |= id == self.rtx.front_id() && self.xmit_timer.kind != XmitTimerKind::Reorder;
        }
        if rearm {
            self.arm_xmit_timer(cx, XmitTimerKind::Retransmit, self.rto_jiffies(cx));
        }
    }

    /// Lost segments from `id` on that were sent as one skb, at most `quota`.
    fn run_of_lost(&self, id: u32, end_seq: u64, quota: u32) -> u32 {
        let mut segs = 1;
        let mut last = self.rtx.get(id);
        while segs < quota && last.end_seq() < end_seq && !last.has(SKB_END) {
            last = self.rtx.get(id.wrapping_add(segs));
            segs += 1;
        }
        segs
    }

    /// tcp_retransmit_skb(): counted as under way again, and for undo.
    pub(super) fn retransmit(&mut self, cx: &mut Cx, id: u32, segs: u32) {
        let departure_ns = self.transmit_again(cx, id, segs);
        for i in 0..segs {
            let seg = self.rtx.get_mut(id.wrapping_add(i));
            // After an undo the timer may repeat a segment whose last retransmission still counts.
            self.cc.retrans_out += u32::from(!seg.has(RETRANS));
            seg.flags |= RETRANS;
        }
        let last = self.rtx.get(id.wrapping_add(segs - 1));
        self.to_retransmit
            .remove(self.rtx.get(id).seq, last.end_seq());
        if self.retrans_stamp_ms == 0 {
            self.retrans_stamp_ms = (departure_ns / 1_000_000) as u32;
        }
        self.undo_retrans = self.undo_retrans.max(0) + i64::from(segs);
    }

    /// __tcp_retransmit_skb(): sends queued segments once more, as one skb.
    pub(super) fn transmit_again(&mut self, cx: &mut Cx, id: u32, segs: u32) -> u64 {
        let departure_ns = self.departure(cx);
        self.on_data_sent(cx);
        let in_flight = self.packets_in_flight() + segs;
        let tx = self.rate_on_send(departure_ns, in_flight);
        let app_limited = self.cc.app_limited != 0;
        let mut payload_bytes = 0;
        for i in 0..segs {
            let id = id.wrapping_add(i);
            let seg = self.rtx.get_mut(id);
            seg.record_sent(departure_ns, tx, app_limited);
            seg.flags |= EVER_RETRANS;
            let (seq, payload, flags) = (seg.seq, u32::from(seg.payload_bytes), seg.flags);
            self.emit_data(cx, seq, payload, flags, departure_ns);
            self.rtx.touch(id);
            payload_bytes += u64::from(payload);
        }
        self.counters.total_retrans += u64::from(segs);
        self.counters.bytes_retrans += payload_bytes;
        self.after_departure(payload_bytes);
        departure_ns
    }

    /// tcp_write_wakeup(): what the window allows, or an old byte to force an ACK.
    pub(super) fn probe_window(&mut self, cx: &mut Cx) {
        let window = (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt);
        let len = window
            .min(self.notsent_bytes())
            .min(u64::from(self.cc.mss_bytes));
        if len > 0 {
            self.transmit_new(cx, len);
        } else {
            self.emit(cx, self.snd_una - 1, 0, ACK, 0);
        }
    }
}
