//! Building segments, and handing them down to the qdisc.

use super::output::if_set;
use super::rtx::{FIN_SEG, PSH_SEG};
use super::{Cx, EcnState, Endpoint};
use crate::segment::{ACE, ACK, FIN, PSH, SYN, SackBlocks};
use knee_cc::EcnMode;
use knee_kit::odds::{likely, unlikely};
use knee_path::packet::Ecn;

/// What whoever sends a segment decides of it; the rest is the connection's state.
struct Wire {
    seq: u64,
    ack: u64,
    payload_bytes: u32,
    packets: u16,
    gso_bytes: u16,
    flags: u8,
    departure_ns: u64,
}

impl Endpoint {
    /// Sends data as one skb, from `seq` on and in as many segments as it takes, which are `segs`: `seg_flags` are those of the last.
    #[inline(always)]
    pub(super) fn emit_data(
        &mut self,
        cx: &mut Cx,
        seq: u64,
        (payload_bytes, segs): (u64, u32),
        seg_flags: u8,
        departure_ns: u64,
    ) {
        self.counters.data_segs_out += u64::from(segs) * u64::from(payload_bytes > 0);
        self.counters.bytes_sent += payload_bytes;
        let wire = Wire {
            seq,
            ack: self.rx.rcv_nxt(),
            payload_bytes: payload_bytes as u32,
            packets: segs as u16,
            gso_bytes: match segs {
                1 => 0,
                _ => self.cc.mss_bytes as u16,
            },
            flags: ACK | wire_flags(seg_flags),
            departure_ns,
        };
        let handle = self.build(cx, &wire);
        if unlikely(self.ecn.mode() != EcnMode::None) && segs > 1 {
            self.part_first(cx, handle, &wire);
        }
        self.hand_down(cx, handle, &wire);
    }

    /// The first packet of a train says what is said once (CWR); all others are alike.
    #[inline(never)]
    fn part_first(&mut self, cx: &mut Cx, handle: u32, wire: &Wire) {
        let train = cx.slab.get(handle);
        let said = (train.flags & ACE, train.ecn);
        let (flags, ecn) = self.ecn.of_segment(train.seq >= self.snd_nxt);
        if (flags, ecn) != said {
            let first = cx.slab.cut(handle, 1);
            self.hand_down(cx, first, wire);
            let others = cx.slab.get_mut(handle);
            others.flags = others.flags & !ACE | flags;
            others.ecn = ecn;
        }
    }

    #[inline(never)]
    pub fn send_ack(&mut self, cx: &mut Cx) {
        self.emit(cx, self.snd_nxt, self.rx.rcv_nxt(), ACK);
    }

    /// Sends a segment without payload; an ACK may be one of less than has arrived (__tcp_send_ack() with an rcv_nxt).
    #[inline(always)]
    pub(super) fn emit(&mut self, cx: &mut Cx, seq: u64, ack: u64, flags: u8) {
        let wire = Wire {
            seq,
            ack,
            payload_bytes: 0,
            packets: 1,
            gso_bytes: 0,
            flags,
            departure_ns: 0,
        };
        let handle = self.build(cx, &wire);
        self.hand_down(cx, handle, &wire);
    }

    /// Field by field where the segment lies: none waits in a register for the others.
    #[inline(always)]
    fn build(&mut self, cx: &mut Cx, wire: &Wire) -> u32 {
        let flags = wire.flags;
        let (is_syn, is_data) = (flags & SYN != 0, wire.payload_bytes > 0);
        let stamp_ns = cx.stamp_ns(wire.departure_ns).max(cx.now_ns());
        let (ecn_flags, ecn) = match is_syn {
            false => self.ecn.of_segment(is_data && wire.seq >= self.snd_nxt),
            true => self.ecn_of_handshake(cx, flags),
        };
        let (handle, segment) = cx.slab.place();
        segment.seq = wire.seq;
        segment.ack = wire.ack;
        segment.payload_bytes = wire.payload_bytes;
        segment.flags = flags | ecn_flags;
        segment.ecn = ecn;
        segment.packets = wire.packets;
        segment.gso_bytes = wire.gso_bytes;
        segment.departure_ns = wire.departure_ns;
        // Data carries its sending time, as its skb does.
        segment.tsval_ms = (stamp_ns / 1_000_000) as u32;
        segment.tsecr_ms = self.rx.ts_recent_ms();
        segment.window_bytes = self.rx.offer_window(is_syn);
        segment.sack = match flags & ACK != 0 && !is_data && !is_syn {
            true => self.rx.sack_blocks(wire.ack),
            false => SackBlocks::default(),
        };
        let is_accurate = self.ecn.mode() == EcnMode::Accurate;
        segment.option_bytes = match likely(!is_accurate) || is_syn || is_data {
            true => 0,
            false => EcnState::option_bytes(segment.sack.count()),
        };
        segment.ce_bytes = self.ecn.option_ce_bytes();
        if flags & ACK != 0 {
            self.rx.on_ack_sent(wire.ack);
            self.ecn.on_ack_sent();
        }
        handle
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
    fn hand_down(&mut self, cx: &mut Cx, handle: u32, wire: &Wire) {
        let counts = match unlikely(cx.host.settings.reports_sent) {
            false => wire.departure_ns > cx.now_ns(),
            true => wire.payload_bytes > 0,
        };
        if unlikely(counts) {
            self.small_queue.add(cx.slab.get(handle).ip_bytes());
        }
        cx.out.push(handle);
    }
}

/// PSH and FIN, as they stand on the wire.
fn wire_flags(seg_flags: u8) -> u8 {
    if_set(seg_flags & PSH_SEG != 0, PSH) | if_set(seg_flags & FIN_SEG != 0, FIN)
}
