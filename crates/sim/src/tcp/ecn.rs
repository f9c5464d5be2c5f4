//! Explicit Congestion Notification: agreeing on it, marking what is sent,
//! echoing marks and counting them (RFC 3168 and RFC 9768, as Linux does it).
//!
//! The queue marks, the receiver echoes, the sender reduces once per window.
//! Classic ECN says that there was a mark, by ECE on every ACK until CWR comes;
//! Accurate ECN counts marks, in three bits of every header (ACE) and, where
//! the options leave room, in bytes.

use knee_cc::{ACK_STATE_DELAYED, ACK_STATE_ECHO, AckPrior, EcnMode, Event, Op};
use knee_model::packet::Ecn;

use super::input::AckFlags;
use super::{CaState, Cx, Endpoint, NEVER, State};
use crate::segment::{ACE, AE, CWR, ECE, SYN, Segment};

/// Quick ACKs after a mark (tcp_enter_quickack_mode(sk, 2)).
const QUICKACKS_ON_CE: u32 = 2;
/// ACE begins here, so that a middlebox that clears the bits shows.
const ACE_START: u32 = 5;
const ACE_MASK: u32 = 7;
/// Marks after which AccECN acks at once (RFC 9768, section 3.2.2.5.1).
const CE_PER_ACK: u32 = 2;
/// The option's counters are of 24 bits.
const OPTION_MASK: u32 = 0xff_ffff;

/// ECN of one end.
pub struct EcnState {
    mode: EcnMode,
    /// What the SYN asked for, ours or theirs.
    asked: EcnMode,
    /// The algorithm's wishes: ECN whatever the host's setting, and which.
    needed: bool,
    needs_accurate: bool,
    ect: Ecn,
    /// IP header's bits of the SYN or SYN-ACK received, to be told.
    syn_ecn: Ecn,
    /// The next ACK ends an AccECN handshake: its ACE tells `syn_ecn`.
    ends_handshake: bool,

    // Classic.
    queue_cwr: bool,
    demand_cwr: bool,
    seen: bool,

    // Accurate: marks received, packets and bytes of payload; wrapping.
    received_ce: u32,
    received_ce_bytes: u32,
    ce_since_ack: u32,
    last_was_ce: bool,
    /// The other end's count of bytes, as its last option said.
    delivered_ce_bytes: u32,
}

impl EcnState {
    pub fn new(algorithm: &knee_cc::Algorithm) -> EcnState {
        EcnState {
            mode: EcnMode::None,
            asked: EcnMode::None,
            needed: algorithm.needs_ecn(),
            needs_accurate: algorithm.needs_accurate_ecn(),
            ect: match algorithm.sends_ect_1() {
                true => Ecn::Ect1,
                false => Ecn::Ect0,
            },
            syn_ecn: Ecn::NotEct,
            ends_handshake: false,
            queue_cwr: false,
            demand_cwr: false,
            seen: false,
            received_ce: 0,
            received_ce_bytes: 0,
            ce_since_ack: 0,
            last_was_ce: false,
            delivered_ce_bytes: 0,
        }
    }

    /// tcp_ecn_queue_cwr(): the window is being reduced.
    pub fn queue_cwr(&mut self) {
        self.queue_cwr = self.mode == EcnMode::Classic;
    }

    /// tcp_ecn_withdraw_cwr(): it was not.
    pub fn withdraw_cwr(&mut self) {
        self.queue_cwr = false;
    }

    pub fn on_ack_sent(&mut self) {
        self.ce_since_ack = 0;
    }

    /// The option on an ACK with so many SACK blocks: all three counters, two
    /// where there is no more room, none where there is none.
    pub fn option_bytes(&self, sack_blocks: u8) -> u8 {
        match sack_blocks {
            _ if self.mode != EcnMode::Accurate => 0,
            0 | 1 => 12,
            2 => 8,
            _ => 0,
        }
    }

    /// The CE counter as the option has it.
    pub fn option_ce_bytes(&self) -> u32 {
        self.received_ce_bytes & OPTION_MASK
    }

    /// Three bits that tell what the IP header of a SYN or SYN-ACK had.
    fn handshake_ace(&self) -> u8 {
        match self.syn_ecn {
            Ecn::NotEct => CWR,
            Ecn::Ect1 => CWR | ECE,
            Ecn::Ect0 => AE,
            Ecn::Ce => AE | CWR,
        }
    }

    fn ace(&self) -> u8 {
        ace_bits(self.received_ce.wrapping_add(ACE_START))
    }
}

fn ace_bits(count: u32) -> u8 {
    [0, ECE, CWR, CWR | ECE, AE, AE | ECE, AE | CWR, ACE][(count & ACE_MASK) as usize]
}

fn ace_count(flags: u8) -> u32 {
    let bit = |flag: u8| u32::from(flags & flag != 0);
    bit(AE) << 2 | bit(CWR) << 1 | bit(ECE)
}

/// Marks among the `delivered` packets of an ACK whose ACE has advanced by `delta`. It may have wrapped; the option's
/// bytes tell whether it did, else the worst is assumed (RFC 9768, appendices A.1 and A.2.2).
fn marks_of_ack(
    delta: u32,
    delivered: u32,
    delivered_bytes: u64,
    marked_bytes: Option<u64>,
    mss_bytes: u64,
) -> u32 {
    if delivered <= ACE_MASK {
        return delta;
    }
    let safe = delivered - ((delivered - delta) & ACE_MASK);
    let Some(marked_bytes) = marked_bytes else {
        return safe;
    };
    if marked_bytes == 0 {
        return delta;
    }
    if delivered >= 2 * (ACE_MASK + 1) {
        if delivered_bytes <= marked_bytes {
            return safe;
        }
        let estimate = (marked_bytes * u64::from(delivered)).div_ceil(delivered_bytes) as u32;
        return safe.min(delta + (estimate & !ACE_MASK));
    }
    if marked_bytes > u64::from(delta) * mss_bytes
        || marked_bytes >= u64::from(safe) * mss_bytes / 2
    {
        safe
    } else {
        delta
    }
}

impl Endpoint {
    // ---- the handshake ---------------------------------------------------

    /// tcp_ecn_send_syn(), tcp_ecn_make_synack(): flags and ECT of a SYN.
    pub(super) fn ecn_of_syn(&mut self, cx: &Cx) -> (u8, Ecn) {
        let ecn = &mut self.ecn;
        let ect = if ecn.needed { ecn.ect } else { Ecn::NotEct };
        if self.state == State::SynReceived {
            return match ecn.mode {
                EcnMode::None => (0, Ecn::NotEct),
                EcnMode::Classic => (ECE, ect),
                EcnMode::Accurate => (ecn.handshake_ace(), ect),
            };
        }
        if self.syn_timeouts > 0 {
            // tcp_ecn_fallback: the path may not take such SYNs.
            ecn.asked = EcnMode::None;
            return (0, ect);
        }
        ecn.asked = match cx.host.host.tcp_ecn {
            _ if ecn.needs_accurate => EcnMode::Accurate,
            3 => EcnMode::Accurate,
            1 | 4 => EcnMode::Classic,
            _ if ecn.needed => EcnMode::Classic,
            _ => EcnMode::None,
        };
        match ecn.asked {
            EcnMode::None => (0, Ecn::NotEct),
            EcnMode::Classic => (ECE | CWR, ect),
            EcnMode::Accurate => (ACE, ect),
        }
    }

    /// tcp_ecn_create_request(): the other end's SYN.
    pub(super) fn ecn_on_syn(&mut self, cx: &Cx, segment: &Segment) {
        let ecn = &mut self.ecn;
        let tcp_ecn = cx.host.host.tcp_ecn;
        ecn.syn_ecn = segment.ecn;
        ecn.mode = EcnMode::None;
        if !(segment.has(ECE) && segment.has(CWR)) {
            return;
        }
        if segment.has(AE) && (tcp_ecn >= 3 || ecn.needs_accurate) {
            ecn.mode = EcnMode::Accurate;
            return;
        }
        // An ECT SYN comes of an algorithm that needs its like here: it is
        // refused unless it can read accurate feedback as well.
        let plain = segment.ecn == Ecn::NotEct || segment.has(AE);
        if ecn.needed && !ecn.needs_accurate || tcp_ecn > 0 && plain {
            ecn.mode = EcnMode::Classic;
        }
    }

    /// tcp_ecn_rcv_synack()
    pub(super) fn ecn_on_syn_ack(&mut self, segment: &Segment) {
        let ecn = &mut self.ecn;
        ecn.syn_ecn = segment.ecn;
        ecn.mode = match (ecn.asked, segment.flags & ACE) {
            (EcnMode::None, _) | (_, 0 | ACE) => EcnMode::None,
            // Only ECE, with or without the bit once called NS: classic, which
            // is nothing to an algorithm that needs more.
            (_, flags) if flags & (ECE | CWR) == ECE => match ecn.needs_accurate {
                true => EcnMode::None,
                false => EcnMode::Classic,
            },
            (EcnMode::Accurate, _) => EcnMode::Accurate,
            (EcnMode::Classic, _) => EcnMode::None,
        };
        ecn.ends_handshake = ecn.mode == EcnMode::Accurate;
    }

    /// The mode is settled: what algorithms see of it.
    pub(super) fn ecn_established(&mut self) {
        self.cc.ecn_mode = self.ecn.mode as u32;
    }

    // ---- sending ---------------------------------------------------------

    /// tcp_ecn_send(): flags and ECT of anything but a SYN.
    #[inline]
    pub(super) fn ecn_of(&mut self, seq: u64, payload_bytes: u32) -> (u8, Ecn) {
        match self.ecn.mode {
            EcnMode::None => (0, Ecn::NotEct),
            EcnMode::Classic => self.ecn_of_classic(payload_bytes > 0 && seq >= self.snd_nxt),
            EcnMode::Accurate if std::mem::take(&mut self.ecn.ends_handshake) => {
                (self.ecn.handshake_ace(), self.ecn.ect)
            }
            EcnMode::Accurate => (self.ecn.ace(), self.ecn.ect),
        }
    }

    fn ecn_of_classic(&mut self, new_data: bool) -> (u8, Ecn) {
        let ecn = &mut self.ecn;
        let mut flags = if ecn.demand_cwr { ECE } else { 0 };
        if new_data && std::mem::take(&mut ecn.queue_cwr) {
            flags |= CWR;
        }
        // ECT(1) promises more than classic feedback can keep (RFC 9331).
        match (new_data || ecn.needed) && ecn.ect == Ecn::Ect0 {
            true => (flags, Ecn::Ect0),
            false => (flags, Ecn::NotEct),
        }
    }

    // ---- the sender's half -----------------------------------------------

    /// An ACK's ECE, where that is what it says.
    pub(super) fn ecn_echo_of(&self, segment: &Segment) -> bool {
        self.ecn.mode == EcnMode::Classic && segment.has(ECE) && !segment.has(SYN)
    }

    /// The marks that an ACK tells, after all else it delivers is counted:
    /// tcp_accecn_process(); in classic ECN all that an ECE acks is marked.
    pub(super) fn ecn_count(
        &mut self,
        segment: &Segment,
        flags: &mut AckFlags,
        delivered: u32,
        delivered_bytes: u64,
    ) {
        match self.ecn.mode {
            EcnMode::None => {}
            EcnMode::Classic => {
                let marked = if flags.ece { delivered } else { 0 };
                self.cc.delivered_ce = self.cc.delivered_ce.wrapping_add(marked);
            }
            EcnMode::Accurate => {
                // A reordered ACK tells of the past.
                if !(flags.una_advanced || flags.data_sacked || flags.data_acked) {
                    return;
                }
                let marked = self.accurate_marks(segment, delivered, delivered_bytes);
                self.cc.delivered_ce = self.cc.delivered_ce.wrapping_add(marked);
                flags.ece = marked > 0;
            }
        }
    }

    /// __tcp_accecn_process()
    fn accurate_marks(&mut self, segment: &Segment, delivered: u32, delivered_bytes: u64) -> u32 {
        let ace = ace_count(segment.flags);
        let delta = ace.wrapping_sub(ACE_START + self.cc.delivered_ce) & ACE_MASK;
        let mut marked_bytes = None;
        if segment.option_bytes > 0 {
            let bytes = segment.ce_bytes.wrapping_sub(self.ecn.delivered_ce_bytes) & OPTION_MASK;
            // Half the range ahead is behind: an older ACK.
            if bytes <= OPTION_MASK / 2 {
                self.ecn.delivered_ce_bytes = segment.ce_bytes;
                marked_bytes = Some(u64::from(bytes));
            }
        }
        let mss = u64::from(self.cc.mss_bytes);
        marks_of_ack(delta, delivered, delivered_bytes, marked_bytes, mss)
    }

    /// tcp_enter_cwr(): the network asks to slow down, nothing was lost.
    pub(super) fn enter_cwr(&mut self, cx: &mut Cx) {
        self.prior_ssthresh = 0;
        if self.ca_state < CaState::Cwr {
            self.undo_marker = 0;
            self.init_cwnd_reduction(cx);
            self.set_ca_state(cx, CaState::Cwr);
        }
    }

    // ---- the receiver's half ---------------------------------------------

    /// tcp_ecn_received_counters(): AccECN counts every packet, ACKs too.
    pub(super) fn ecn_on_arrival(&mut self, segment: &Segment) {
        let ecn = &mut self.ecn;
        if ecn.mode != EcnMode::Accurate || segment.has(SYN) {
            return;
        }
        let ce = segment.ecn == Ecn::Ce;
        if ce {
            ecn.received_ce = ecn.received_ce.wrapping_add(u32::from(segment.packets));
            ecn.ce_since_ack += u32::from(segment.packets);
            ecn.received_ce_bytes = ecn.received_ce_bytes.wrapping_add(segment.payload_bytes);
        }
        if segment.payload_bytes > 0 {
            self.rx.ack_now |= ce != ecn.last_was_ce || ecn.ce_since_ack >= CE_PER_ACK;
            ecn.last_was_ce = ce;
        }
    }

    /// tcp_ecn_accept_cwr(): the sender has reduced, and may wait for this ACK.
    #[inline]
    pub(super) fn accept_cwr(&mut self, segment: &Segment) {
        if self.ecn.mode == EcnMode::Classic && segment.has(CWR) {
            self.ecn.demand_cwr = false;
            self.rx.ack_now = true;
        }
    }

    /// tcp_data_ecn_check(): new data arrived, with or without a mark.
    #[inline]
    pub(super) fn check_ce(&mut self, cx: &mut Cx, segment: &Segment) {
        if self.ecn.mode == EcnMode::None {
            return;
        }
        if segment.ecn == Ecn::NotEct {
            // Probably a retransmission: something was lost.
            if self.ecn.mode == EcnMode::Classic && self.ecn.seen {
                self.rx.enter_quickack(QUICKACKS_ON_CE);
            }
            return;
        }
        self.ecn.seen = true;
        let ce = segment.ecn == Ecn::Ce;
        if self.ecn.needed && self.alg.has(Op::CwndEvent) {
            self.ecn_event(cx, if ce { Event::EcnIsCe } else { Event::EcnNoCe });
        }
        if ce && self.ecn.mode == EcnMode::Classic && !self.ecn.demand_cwr {
            self.rx.enter_quickack(QUICKACKS_ON_CE);
            self.ecn.demand_cwr = true;
        }
    }

    /// The algorithm decides what the echo says.
    fn ecn_event(&mut self, cx: &mut Cx, event: Event) {
        self.cc.event = event as u32;
        self.cc.ack_state = (u32::from(self.ecn.demand_cwr) * ACK_STATE_ECHO)
            | (u32::from(self.rx.delack_at_ns != NEVER) * ACK_STATE_DELAYED);
        let out = self.call_cc_out(cx, Op::CwndEvent);
        if out.ack_prior != AckPrior::None as u32 {
            self.ecn.demand_cwr = out.ack_prior == AckPrior::Ece as u32;
            let behind = (self.rx.rcv_nxt() as u32).wrapping_sub(out.ack_prior_seq);
            self.send_ack_of(cx, self.rx.rcv_nxt().saturating_sub(u64::from(behind)));
        }
        self.ecn.demand_cwr = out.ecn_echo != 0;
        self.rx.ack_now |= out.ack_now != 0;
    }
}

#[cfg(test)]
mod tests {
    use super::marks_of_ack;

    /// Of packets of 1000 bytes.
    fn marks(delta: u32, delivered: u32, marked_bytes: Option<u64>) -> u32 {
        marks_of_ack(
            delta,
            delivered,
            u64::from(delivered) * 1_000,
            marked_bytes,
            1_000,
        )
    }

    /// tcp_accecn_process(): a marked byte where none is counted says that the count has wrapped, however few bytes.
    #[test]
    fn one_marked_byte_tells_of_a_wrapped_count() {
        assert_eq!(marks(0, 8, Some(0)), 0);
        assert_eq!(marks(0, 8, Some(1)), 8);
    }

    /// RFC 9768, appendix A.1: the most that agrees with the three bits.
    #[test]
    fn without_the_option_the_count_has_wrapped_if_it_can_have() {
        for delta in 0..8 {
            assert_eq!(marks(delta, 7, None), delta);
            for delivered in 8..40 {
                let most = (delta..=delivered).step_by(8).last().unwrap();
                assert_eq!(
                    marks(delta, delivered, None),
                    most,
                    "{delta} of {delivered}"
                );
            }
        }
    }

    /// RFC 9768, appendix A.2.2.
    #[test]
    fn the_bytes_that_were_marked_tell_how_often_the_count_has_wrapped() {
        for (delta, delivered, marked_packets, expected) in [
            (3, 12, 0, 3),
            (3, 12, 3, 3),
            (3, 12, 4, 11),
            (2, 10, 10, 10),
            // From 16 packets on: as many as the bytes say.
            (0, 16, 3, 0),
            (3, 40, 19, 19),
            (3, 40, 11, 11),
            (0, 40, 40, 40),
            (1, 40, 40, 33),
        ] {
            let found = marks(delta, delivered, Some(marked_packets * 1_000));
            assert_eq!(
                found, expected,
                "{delta} of {delivered}, {marked_packets} marked"
            );
        }
    }
}
