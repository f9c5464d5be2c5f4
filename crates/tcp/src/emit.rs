//! Building segments, and handing them down to the qdisc.

use super::output::if_set;
use super::rtx::{FIN_SEG, PSH_SEG};
use super::{Cx, Endpoint};
use knee_path::packet::Ecn;
use knee_segment::{ACK, FIN, PSH, SYN, SackBlocks, Segment};

impl Endpoint {
    /// Sends data as one skb, from `seq` on and in as many segments as it takes, which are `segs`: `seg_flags` are those of the last.
    pub(super) fn emit_data(
        &mut self,
        cx: &mut Cx,
        seq: u64,
        (payload_bytes, segs): (u64, u32),
        seg_flags: u8,
        departure_ns: u64,
    ) {
        let mss = u64::from(self.cc.mss_bytes);
        self.counters.data_segs_out += u64::from(segs) * u64::from(payload_bytes > 0);
        self.counters.bytes_sent += payload_bytes;
        let last = wire_flags(seg_flags);
        let mut segment = self.build(cx, seq, payload_bytes.min(mss) as u32, ACK, departure_ns);
        if segs > 1 {
            segment.payload_bytes = payload_bytes as u32;
            segment.packets = segs as u16;
            segment.gso_bytes = mss as u16;
            // The first says what is said once (CWR); all others are alike.
            let (flags, ecn) = self.ecn.of_segment(seq >= self.snd_nxt);
            if (ACK | flags, ecn) != (segment.flags, segment.ecn) {
                let first = segment.cut(1);
                self.hand_down(cx, first);
                (segment.flags, segment.ecn) = (ACK | flags, ecn);
            }
        }
        segment.flags |= last;
        self.hand_down(cx, segment);
    }

    #[inline(never)]
    pub fn send_ack(&mut self, cx: &mut Cx) {
        self.send_ack_of(cx, self.rx.rcv_nxt());
    }

    /// An ACK of less than has arrived (__tcp_send_ack() with an rcv_nxt).
    pub(super) fn send_ack_of(&mut self, cx: &mut Cx, ack: u64) {
        let segment = self.build_acking(cx, ack, self.snd_nxt, 0, ACK, 0);
        self.hand_down(cx, segment);
    }

    pub(super) fn emit(
        &mut self,
        cx: &mut Cx,
        seq: u64,
        payload_bytes: u32,
        flags: u8,
        departure_ns: u64,
    ) {
        let segment = self.build(cx, seq, payload_bytes, flags, departure_ns);
        self.hand_down(cx, segment);
    }

    #[inline(always)]
    fn build(
        &mut self,
        cx: &mut Cx,
        seq: u64,
        payload_bytes: u32,
        flags: u8,
        departure_ns: u64,
    ) -> Segment {
        let ack = self.rx.rcv_nxt();
        self.build_acking(cx, ack, seq, payload_bytes, flags, departure_ns)
    }

    #[inline(always)]
    fn build_acking(
        &mut self,
        cx: &mut Cx,
        ack: u64,
        seq: u64,
        payload_bytes: u32,
        flags: u8,
        departure_ns: u64,
    ) -> Segment {
        let window_bytes = self.rx.offer_window(flags & SYN != 0);
        let sack = match flags & ACK != 0 && payload_bytes == 0 && flags & SYN == 0 {
            true => self.rx.sack_blocks(ack),
            false => SackBlocks::default(),
        };
        if flags & ACK != 0 {
            self.rx.on_ack_sent(ack);
            self.ecn.on_ack_sent();
        }
        let (ecn_flags, ecn) = match flags & SYN {
            0 => {
                let new_data = payload_bytes > 0 && seq >= self.snd_nxt;
                self.ecn.of_segment(new_data)
            }
            _ => self.ecn_of_handshake(cx, flags),
        };
        Segment {
            seq,
            ack,
            window_bytes,
            payload_bytes,
            flags: flags | ecn_flags,
            ecn,
            packets: 1,
            gso_bytes: 0,
            option_bytes: match flags & SYN != 0 || payload_bytes > 0 {
                true => 0,
                false => self.ecn.option_bytes(sack.count()),
            },
            ce_bytes: self.ecn.option_ce_bytes(),
            // Data carries its sending time, as its skb does.
            tsval_ms: (cx.stamp_ns(departure_ns).max(cx.now_ns()) / 1_000_000) as u32,
            tsecr_ms: self.rx.ts_recent_ms(),
            sack,
            departure_ns,
        }
    }

    #[cold]
    fn ecn_of_handshake(&mut self, cx: &Cx, flags: u8) -> (u8, Ecn) {
        match flags & ACK {
            0 => {
                let again = self.handshake.timeouts() > 0;
                self.ecn.of_syn(cx.host.settings.tcp_ecn, again)
            }
            _ => self.ecn.of_syn_ack(),
        }
    }

    /// To the qdisc. What it holds back counts for TSQ, or whatever the NIC has not reported sent.
    #[inline(always)]
    fn hand_down(&mut self, cx: &mut Cx, segment: Segment) {
        let counts = match cx.host.settings.reports_sent {
            false => segment.departure_ns > cx.now_ns(),
            true => segment.payload_bytes > 0,
        };
        if counts {
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
