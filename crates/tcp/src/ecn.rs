//! Explicit Congestion Notification: agreeing on it, marking what is sent,
//! echoing marks and counting them (RFC 3168 and RFC 9768, as Linux does it).
//!
//! The queue marks, the receiver echoes, the sender reduces once per window.
//! Classic ECN says that there was a mark, by ECE on every ACK until CWR comes;
//! Accurate ECN counts marks, in three bits of every header (ACE) and, where
//! the options leave room, in bytes.

use knee_cc::EcnMode;
use knee_kit::odds::likely;
use knee_path::packet::Ecn;

use crate::segment::{ACE, AE, CWR, ECE, SYN, Segment};

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
    /// What the algorithm asks for, whatever the host's setting: ECN, and accurate feedback.
    needed: bool,
    needs_accurate: bool,
    ect: Ecn,
    /// ECN bits of the SYN or SYN-ACK received, which are reported back.
    syn_ecn: Ecn,
    /// The next ACK ends an AccECN handshake: its ACE reports `syn_ecn`.
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
    /// The other end's counts: of packets, in either mode, and of bytes, as its last option said.
    delivered_ce: u32,
    delivered_ce_bytes: u32,
}

/// What the ECN bits of a data segment mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataMark {
    Ignored,
    /// A packet without ECT among others that have it: probably a retransmission, so something was lost.
    Suspicious,
    /// ECT or CE.
    Capable,
}

/// What the two ends of a connection agree on, by their algorithms and `tcp_ecn`. The first end opens it.
pub fn agreed_ecn(
    algorithms: [&knee_cc::Algorithm; 2],
    [of_opener, of_listener]: [u8; 2],
) -> EcnMode {
    let [mut opener, mut listener] = algorithms.map(EcnState::new);
    let sent = |(flags, ecn)| Segment {
        flags,
        ecn,
        ..Segment::default()
    };
    listener.on_syn(of_listener, &sent(opener.of_syn(of_opener, false)));
    opener.on_syn_ack(&sent(listener.of_syn_ack()));
    opener.mode()
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
            delivered_ce: 0,
            delivered_ce_bytes: 0,
        }
    }

    /// tcp_ecn_queue_cwr(): the window is being reduced.
    pub fn queue_cwr(&mut self) {
        self.queue_cwr = self.mode == EcnMode::Classic;
    }

    /// tcp_ecn_withdraw_cwr(): the reduction was taken back.
    pub fn withdraw_cwr(&mut self) {
        self.queue_cwr = false;
    }

    pub fn on_ack_sent(&mut self) {
        self.ce_since_ack = 0;
    }

    /// Size of AccECN's option on an ACK with that many SACK blocks: all three
    /// counters, two where no more fit, none where there is no room.
    pub fn option_bytes(sack_blocks: u8) -> u8 {
        match sack_blocks {
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

impl EcnState {
    // ---- the handshake ---------------------------------------------------

    /// tcp_ecn_make_synack(): flags and ECT of a SYN-ACK.
    pub fn of_syn_ack(&self) -> (u8, Ecn) {
        match self.mode {
            EcnMode::None => (0, Ecn::NotEct),
            EcnMode::Classic => (ECE, self.syn_ect()),
            EcnMode::Accurate => (self.handshake_ace(), self.syn_ect()),
        }
    }

    /// tcp_ecn_send_syn(): flags and ECT of a SYN, sent for the first time or again.
    pub fn of_syn(&mut self, tcp_ecn: u8, again: bool) -> (u8, Ecn) {
        if again {
            // tcp_ecn_fallback: the path may not take such SYNs.
            self.asked = EcnMode::None;
            return (0, self.syn_ect());
        }
        self.asked = match tcp_ecn {
            _ if self.needs_accurate => EcnMode::Accurate,
            3 => EcnMode::Accurate,
            1 | 4 => EcnMode::Classic,
            _ if self.needed => EcnMode::Classic,
            _ => EcnMode::None,
        };
        match self.asked {
            EcnMode::None => (0, Ecn::NotEct),
            EcnMode::Classic => (ECE | CWR, self.syn_ect()),
            EcnMode::Accurate => (ACE, self.syn_ect()),
        }
    }

    fn syn_ect(&self) -> Ecn {
        if self.needed { self.ect } else { Ecn::NotEct }
    }

    /// tcp_ecn_create_request(): the other end's SYN.
    pub fn on_syn(&mut self, tcp_ecn: u8, segment: &Segment) {
        self.syn_ecn = segment.ecn;
        self.mode = EcnMode::None;
        if !(segment.has(ECE) && segment.has(CWR)) {
            return;
        }
        if segment.has(AE) && (tcp_ecn >= 3 || self.needs_accurate) {
            self.mode = EcnMode::Accurate;
            return;
        }
        // An ECT SYN comes from an algorithm that needs the same here: it is
        // refused unless it can read accurate feedback as well.
        let plain = segment.ecn == Ecn::NotEct || segment.has(AE);
        if self.needed && !self.needs_accurate || tcp_ecn > 0 && plain {
            self.mode = EcnMode::Classic;
        }
    }

    /// tcp_ecn_rcv_synack()
    pub fn on_syn_ack(&mut self, segment: &Segment) {
        self.syn_ecn = segment.ecn;
        self.mode = match (self.asked, segment.flags & ACE) {
            (EcnMode::None, _) | (_, 0 | ACE) => EcnMode::None,
            // Only ECE, with or without the bit once called NS: classic, which
            // is of no use to an algorithm that needs more.
            (_, flags) if flags & (ECE | CWR) == ECE => match self.needs_accurate {
                true => EcnMode::None,
                false => EcnMode::Classic,
            },
            (EcnMode::Accurate, _) => EcnMode::Accurate,
            (EcnMode::Classic, _) => EcnMode::None,
        };
        self.ends_handshake = self.mode == EcnMode::Accurate;
    }

    /// What was agreed on.
    #[inline]
    pub fn mode(&self) -> EcnMode {
        self.mode
    }

    // ---- sending ---------------------------------------------------------

    /// tcp_ecn_send(): flags and ECT of anything but a SYN.
    #[inline]
    pub fn of_segment(&mut self, new_data: bool) -> (u8, Ecn) {
        match likely(self.mode == EcnMode::None) {
            true => (0, Ecn::NotEct),
            false => self.of_capable(new_data),
        }
    }

    #[inline(never)]
    fn of_capable(&mut self, new_data: bool) -> (u8, Ecn) {
        match self.mode {
            EcnMode::Accurate if std::mem::take(&mut self.ends_handshake) => {
                (self.handshake_ace(), self.ect)
            }
            EcnMode::Accurate => (self.ace(), self.ect),
            _ => self.of_classic(new_data),
        }
    }

    fn of_classic(&mut self, new_data: bool) -> (u8, Ecn) {
        let mut flags = if self.demand_cwr { ECE } else { 0 };
        if new_data && std::mem::take(&mut self.queue_cwr) {
            flags |= CWR;
        }
        // ECT(1) promises more than classic feedback can keep (RFC 9331).
        match (new_data || self.needed) && self.ect == Ecn::Ect0 {
            true => (flags, Ecn::Ect0),
            false => (flags, Ecn::NotEct),
        }
    }

    // ---- the sender's half -----------------------------------------------

    /// Does an ACK say ECE, in the mode in which that is a mark's echo?
    #[inline]
    pub fn is_echo(&self, segment: &Segment) -> bool {
        self.mode == EcnMode::Classic && segment.has(ECE) && !segment.has(SYN)
    }

    /// The marks that an ACK reports, after all else it delivers is counted: tcp_accecn_process(); in classic ECN all
    /// that an ECE acks is marked. `echo` is what [`is_echo`](EcnState::is_echo) said, `is_news` whether the ACK delivered
    /// anything. Returns whether it tells of marks.
    #[inline]
    pub fn count_marks(
        &mut self,
        segment: &Segment,
        (echo, is_news): (bool, bool),
        delivered: u32,
        delivered_bytes: impl FnOnce() -> u64,
        mss_bytes: u32,
    ) -> bool {
        match self.mode {
            EcnMode::None => echo,
            EcnMode::Classic => {
                let marked = if echo { delivered } else { 0 };
                self.delivered_ce = self.delivered_ce.wrapping_add(marked);
                echo
            }
            // A reordered ACK tells of the past.
            EcnMode::Accurate if !is_news => echo,
            EcnMode::Accurate => {
                let marked = self.accurate_marks(segment, delivered, delivered_bytes(), mss_bytes);
                self.delivered_ce = self.delivered_ce.wrapping_add(marked);
                marked > 0
            }
        }
    }

    /// __tcp_accecn_process()
    fn accurate_marks(
        &mut self,
        segment: &Segment,
        delivered: u32,
        delivered_bytes: u64,
        mss_bytes: u32,
    ) -> u32 {
        let ace = ace_count(segment.flags);
        let delta = ace.wrapping_sub(ACE_START + self.delivered_ce) & ACE_MASK;
        let mut marked_bytes = None;
        if segment.option_bytes > 0 {
            let bytes = segment.ce_bytes.wrapping_sub(self.delivered_ce_bytes) & OPTION_MASK;
            // Half the range ahead is behind: an older ACK.
            if bytes <= OPTION_MASK / 2 {
                self.delivered_ce_bytes = segment.ce_bytes;
                marked_bytes = Some(u64::from(bytes));
            }
        }
        let mss = u64::from(mss_bytes);
        marks_of_ack(delta, delivered, delivered_bytes, marked_bytes, mss)
    }

    /// Packets delivered with a mark so far; wraps.
    #[inline]
    pub fn delivered_ce(&self) -> u32 {
        self.delivered_ce
    }

    // ---- the receiver's half ---------------------------------------------

    /// tcp_ecn_received_counters(): AccECN counts every packet, ACKs too. Returns whether to ack at once.
    #[inline]
    pub fn on_arrival(&mut self, segment: &Segment) -> bool {
        if likely(self.mode != EcnMode::Accurate) || segment.has(SYN) {
            return false;
        }
        let ce = segment.ecn == Ecn::Ce;
        if ce {
            self.received_ce = self.received_ce.wrapping_add(u32::from(segment.packets));
            self.ce_since_ack += u32::from(segment.packets);
            self.received_ce_bytes = self.received_ce_bytes.wrapping_add(segment.payload_bytes);
        }
        if segment.payload_bytes == 0 {
            return false;
        }
        let changed = std::mem::replace(&mut self.last_was_ce, ce) != ce;
        changed || self.ce_since_ack >= CE_PER_ACK
    }

    /// tcp_ecn_accept_cwr(): the sender has reduced. Returns whether to ack at once, because it may wait for that.
    #[inline]
    pub fn accept_cwr(&mut self, segment: &Segment) -> bool {
        if likely(self.mode == EcnMode::None) {
            return false;
        }
        let accepts = self.mode == EcnMode::Classic && segment.has(CWR);
        self.demand_cwr &= !accepts;
        accepts
    }

    /// tcp_data_ecn_check(): new data arrived, with or without a mark.
    #[inline]
    pub fn on_data(&mut self, ecn: Ecn) -> DataMark {
        match (self.mode, ecn) {
            _ if likely(self.mode == EcnMode::None) => DataMark::Ignored,
            (EcnMode::Classic, Ecn::NotEct) if self.seen => DataMark::Suspicious,
            (_, Ecn::NotEct) => DataMark::Ignored,
            _ => {
                self.seen = true;
                DataMark::Capable
            }
        }
    }

    /// Is the algorithm of this end to be told of marks?
    pub fn is_needed(&self) -> bool {
        self.needed
    }

    /// A mark arrived: the echo begins, if it has not. Returns whether it did.
    pub fn start_echo(&mut self) -> bool {
        self.mode == EcnMode::Classic && !std::mem::replace(&mut self.demand_cwr, true)
    }

    /// Do ACKs carry ECE?
    pub fn echoes(&self) -> bool {
        self.demand_cwr
    }

    /// An algorithm decides whether they do.
    pub fn set_echo(&mut self, echo: bool) {
        self.demand_cwr = echo;
    }
}

#[cfg(test)]
mod tests;
