//! Sending again: what was lost, what a probe repeats.

use super::input::Rexmit;
use super::output::Push;
use super::xmit_timer::XmitTimerKind;
use super::{Cx, Endpoint};
use crate::segment::ACK;

impl Endpoint {
    /// tcp_xmit_recovery()
    pub(super) fn send_retransmissions(&mut self, cx: &mut Cx, rexmit: Rexmit) {
        match rexmit {
            _ if self.waits_for_agent() => self.leave_until_answer(rexmit),
            Rexmit::None => {}
            Rexmit::Lost => self.retransmit_lost(cx),
            Rexmit::New => self.send_new_first(cx),
        }
    }

    #[cold]
    fn send_new_first(&mut self, cx: &mut Cx) {
        self.write_xmit(cx, Push::Normal);
        if self.snd_nxt <= self.recovery.high_seq() {
            self.recovery.end_frto();
            self.retransmit_lost(cx);
        }
    }

    /// tcp_xmit_retransmit_queue(): lowest lost first.
    #[inline(never)]
    pub(super) fn retransmit_lost(&mut self, cx: &mut Cx) {
        let mut rearm = false;
        while self.board.has_lost() {
            if self.pacing_blocks(cx) {
                break;
            }
            let quota = self.cc.snd_cwnd.saturating_sub(self.packets_in_flight());
            let quota = quota.min(self.tso_segs(cx));
            if quota == 0 || self.tsq_blocks(cx, quota, 2) {
                break;
            }
            let Some((id, segs)) = self.board.next_lost(quota) else {
                break;
            };
            self.retransmit(cx, id, segs);
            if self.recovery.in_cwnd_reduction() {
                self.prr.on_sent(segs);
            }
            rearm |= id == self.board.head_id() && self.xmit_timer.kind() != XmitTimerKind::Reorder;
        }
        if rearm {
            self.arm_xmit_timer(cx, XmitTimerKind::Retransmit, self.rto_jiffies(cx));
        }
    }

    /// tcp_retransmit_skb(): counted as under way again, and for undo.
    pub(super) fn retransmit(&mut self, cx: &mut Cx, id: u32, segs: u32) {
        let stamp_ns = self.transmit_again(cx, id, segs);
        self.board.count_retransmission(id, segs);
        self.undo.on_retransmit(segs, stamp_ns);
    }

    /// __tcp_retransmit_skb(): sends queued segments once more, as one skb. Returns their sending time.
    pub(super) fn transmit_again(&mut self, cx: &mut Cx, id: u32, segs: u32) -> u64 {
        let departure_ns = self.pacer.departure(cx.now_ns());
        let stamp_ns = cx.stamp_ns(departure_ns);
        self.on_data_sent(cx);
        let in_flight = self.packets_in_flight() + segs;
        let is_first = self.board.packets_out() == 0;
        let tx = self
            .rate
            .on_send(stamp_ns / 1_000, self.totals(), in_flight, is_first);
        let app_limited = self.rate.app_limited() != 0;
        let mut payload_bytes = 0;
        let mut sent = 0;
        while sent < segs {
            let id = id.wrapping_add(sent);
            let alone = self.board.isolate(id, segs - sent);
            sent += alone;
            let skb = self.board.send_again(id, stamp_ns, tx, app_limited);
            let (seq, payload, flags) = (skb.seq, u64::from(skb.payload_bytes), skb.flags);
            self.emit_data(cx, seq, (payload, alone), flags, departure_ns);
            payload_bytes += payload;
        }
        self.counters.total_retrans += u64::from(segs);
        self.counters.bytes_retrans += payload_bytes;
        self.after_departure(payload_bytes);
        stamp_ns
    }

    /// tcp_write_wakeup(): what the window allows, or an old byte to force an ACK.
    pub(super) fn probe_window(&mut self, cx: &mut Cx) {
        let window = self.peer_window.room_bytes(self.snd_una, self.snd_nxt);
        let len = window
            .min(self.notsent_bytes())
            .min(u64::from(self.cc.mss_bytes));
        if len > 0 {
            self.transmit_new(cx, (len, 1), false);
        } else {
            self.emit(cx, self.snd_una - 1, self.rx.rcv_nxt(), ACK);
        }
    }
}
