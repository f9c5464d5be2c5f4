//! Building segments, and handing them down to the qdisc.

use super::output::if_set;
use super::rtx::{FIN_SEG, PSH_SEG};
use super::{Cx, Endpoint};
use crate::segment::{ACK, FIN, PSH, SYN, SackBlocks, Segment};

impl Endpoint {
    pub(super) fn emit_data(
        &mut self,
        cx: &mut Cx,
        seq: u64,
        payload: u32,
        seg_flags: u8,
        departure_ns: u64,
    ) {
        self.count_sent(payload);
        self.emit(cx, seq, payload, ACK | wire_flags(seg_flags), departure_ns);
    }

    /// A further segment of an skb, as a copy of the one before, which stands at the end of `cx.out`. The first segment of
    /// an skb says what is said once (CWR, a delayed ACK), so the second is the first that may be copied.
    pub(super) fn emit_another(
        &mut self,
        cx: &mut Cx,
        seq: u64,
        payload_bytes: u32,
        seg_flags: u8,
    ) {
        self.count_sent(payload_bytes);
        let &last = cx.out.last().expect("a segment of this skb");
        let last = cx.slab.get(last);
        let segment = Segment {
            seq,
            payload_bytes,
            flags: last.flags | wire_flags(seg_flags),
            ..last.clone()
        };
        self.hand_down(cx, segment);
    }

    /// __tcp_transmit_skb(): a bare FIN is no data.
    fn count_sent(&mut self, payload_bytes: u32) {
        self.counters.data_segs_out += u64::from(payload_bytes > 0);
        self.counters.bytes_sent += u64::from(payload_bytes);
    }

    pub fn send_ack(&mut self, cx: &mut Cx) {
        self.send_ack_of(cx, self.rx.rcv_nxt());
    }

    /// An ACK of less than has arrived (__tcp_send_ack() with an rcv_nxt).
    pub(super) fn send_ack_of(&mut self, cx: &mut Cx, ack: u64) {
        self.emit_acking(cx, ack, self.snd_nxt, 0, ACK, 0);
    }

    pub(super) fn emit(
        &mut self,
        cx: &mut Cx,
        seq: u64,
        payload_bytes: u32,
        flags: u8,
        departure_ns: u64,
    ) {
        let ack = self.rx.rcv_nxt();
        self.emit_acking(cx, ack, seq, payload_bytes, flags, departure_ns);
    }

    fn emit_acking(
        &mut self,
        cx: &mut Cx,
        ack: u64,
        seq: u64,
        payload_bytes: u32,
        flags: u8,
        departure_ns: u64,
    ) {
        let window_bytes = self.rx.offer_window(flags & SYN != 0);
        let sack = match flags & ACK != 0 && payload_bytes == 0 && flags & SYN == 0 {
            true => self.rx.sack_blocks(ack),
            false => SackBlocks::default(),
        };
        if flags & ACK != 0 {
            self.rx.on_ack_sent(ack);
            self.ecn.on_ack_sent();
        }
        let (ecn_flags, ecn) = match flags & (SYN | ACK) {
            SYN => {
                let again = self.handshake.timeouts() > 0;
                self.ecn.of_syn(cx.host.settings.tcp_ecn, again)
            }
            ACK => {
                let new_data = payload_bytes > 0 && seq >= self.snd_nxt;
                self.ecn.of_segment(new_data)
            }
            _ => self.ecn.of_syn_ack(),
        };
        let segment = Segment {
            seq,
            ack,
            window_bytes,
            payload_bytes,
            flags: flags | ecn_flags,
            ecn,
            packets: 1,
            option_bytes: match flags & SYN != 0 || payload_bytes > 0 {
                true => 0,
                false => self.ecn.option_bytes(sack.count()),
            },
            ce_bytes: self.ecn.option_ce_bytes(),
            // Data carries the time of its departure, as its skb does.
            tsval_ms: (departure_ns.max(cx.now_ns) / 1_000_000) as u32,
            tsecr_ms: self.rx.ts_recent_ms(),
            sack,
            departure_ns,
        };
        self.hand_down(cx, segment);
    }

    /// To the qdisc, which counts what it holds back.
    #[inline]
    fn hand_down(&mut self, cx: &mut Cx, segment: Segment) {
        if segment.departure_ns > cx.now_ns {
            self.small_queue.add(segment.ip_bytes());
        }
        let handle = cx.slab.insert(segment);
        cx.out.push(handle);
    }
}

/// PSH and FIN, as they stand on the wire.
fn wire_flags(seg_flags: u8) -> u8 {
    if_set(seg_flags & PSH_SEG != 0, PSH) | if_set(seg_flags & FIN_SEG != 0, FIN)
}
