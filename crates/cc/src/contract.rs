//! The mirror of `cc/cc.h`: the blocks an op reads and writes. Meaning and units of every field stand there.

/// Defines a struct of the contract together with the list of its fields, so that the test below can compare
/// every offset with the C compiler's.
macro_rules! mirror {
    ($(#[$attr:meta])* $name:ident { $($(#[$field_attr:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$attr])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_attr])* pub $field: $type,)*
        }

        impl $name {
            /// The names of its fields.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field),)*];

            /// A field by its name.
            pub fn get(&self, name: &str) -> Option<i128> {
                match name {
                    $(stringify!($field) => Some(self.$field.into()),)*
                    _ => None,
                }
            }

            /// Sets a field by its name; false: there is none, or it does not hold that.
            pub fn set(&mut self, name: &str, value: i128) -> bool {
                match name {
                    $(stringify!($field) => value.try_into().map(|value| self.$field = value).is_ok(),)*
                    _ => false,
                }
            }
        }

        #[cfg(test)]
        impl $name {
            const FIELDS: &[(&str, usize, usize)] = &[
                $((stringify!($field), std::mem::offset_of!($name, $field), size_of::<$type>()),)*
            ];
        }
    };
}

mirror! {
    /// What the stack shows an op. Segments unless the name says otherwise; see `struct cc_in` in `cc/cc.h`.
    CcIn {
        /// Time this ACK or timer began, µs.
        now_us: u64,
        /// The same instant, ns.
        clock_ns: u64,
        /// Earliest departure of the next packet, ns.
        wstamp_ns: u64,
        /// Bytes/s.
        pacing_rate: u64,
        /// Bytes/s; `u64::MAX` means no limit.
        max_pacing_rate: u64,
        /// Length of the delivery-rate sample, µs; negative when there is none.
        rs_interval_us: i64,
        /// RTT of this ACK, µs; negative when there is none.
        rs_rtt_us: i64,
        /// When `rs_prior_delivered` was current, µs; 0 when there is none.
        rs_prior_mstamp_us: u64,
        /// RTT of the last segment acked, µs; negative when there is none.
        ack_rtt_us: i64,
        /// The clock of coarse timers, in units of 1/`hz` s; wraps.
        jiffies: u32,
        /// Jiffies per second.
        hz: u32,
        /// Jiffies of the last data transmission.
        lsndtime: u32,
        snd_cwnd: u32,
        /// Credit toward the next increase of `snd_cwnd`, segments.
        snd_cwnd_cnt: u32,
        snd_cwnd_clamp: u32,
        snd_ssthresh: u32,
        /// `snd_cwnd` just before recovery began.
        prior_cwnd: u32,
        /// Sequence number, bytes; wraps.
        snd_una: u32,
        /// Sequence number, bytes; wraps.
        snd_nxt: u32,
        /// Timestamp of the last segment, in a unit that the other end chooses; 0 without timestamps.
        rcv_tsval: u32,
        /// Our timestamp as that segment echoed it, ms; 0 without timestamps.
        rcv_tsecr: u32,
        packets_out: u32,
        sacked_out: u32,
        lost_out: u32,
        retrans_out: u32,
        /// Most `packets_out` in the last window.
        max_packets_out: u32,
        /// Cumulative, including retransmits; wraps.
        delivered: u32,
        /// Cumulative, those of `delivered` that were CE marked; wraps.
        delivered_ce: u32,
        /// Cumulative loss marks; wraps.
        lost: u32,
        /// 0, or the `delivered` at which the application limit ends.
        app_limited: u32,
        /// Smoothed RTT, µs, unscaled; 0 before the first sample.
        srtt_us: u32,
        /// Windowed minimum RTT, µs; `u32::MAX` before the first sample.
        min_rtt_us: u32,
        /// Payload of a full segment, bytes.
        mss_bytes: u32,
        /// Largest offload packet, bytes.
        gso_max_bytes: u32,
        reordering: u32,
        /// A [`PacingStatus`].
        pacing_status: u32,
        /// A [`CaState`].
        ca_state: u32,
        /// 0 or 1: the window stopped sending in this round.
        is_cwnd_limited: u32,
        /// Fresh uniform 32 bits for this call.
        random: u32,
        /// Argument of [`Op::SetState`](crate::Op::SetState): a [`CaState`].
        state: u32,
        /// Argument of [`Op::CwndEvent`](crate::Op::CwndEvent): an [`Event`].
        event: u32,
        /// Argument of `CongControl` and `InAckEvent`: `ACK_*` bits.
        ack_flags: u32,
        /// Argument of `CongAvoid` and `PktsAcked`, segments.
        acked: u32,
        /// Argument of `PktsAcked`, bytes.
        ack_in_flight_bytes: u32,
        /// `delivered` when the sampled packet was sent.
        rs_prior_delivered: u32,
        /// Delivered over the sample's interval; negative when invalid.
        rs_delivered: i32,
        rs_delivered_ce: i32,
        /// Newly delivered by this ACK.
        rs_acked_sacked: u32,
        /// Newly marked lost by this ACK.
        rs_losses: u32,
        /// In flight before this ACK.
        rs_prior_in_flight: u32,
        rs_snd_interval_us: u32,
        rs_rcv_interval_us: u32,
        /// End sequence of the sampled packet.
        rs_last_end_seq: u32,
        rs_is_app_limited: u32,
        rs_is_retrans: u32,
        rs_is_ack_delayed: u32,
        /// 1 when the two fields below are exact, 0 when the stack does not know them.
        rs_has_tx: u32,
        /// In flight just after the sampled packet was sent.
        rs_tx_in_flight: u32,
        /// Marked lost since the sampled packet was sent.
        rs_lost: u32,
        /// Argument of [`Op::SkbMarkedLost`](crate::Op::SkbMarkedLost): in flight just after that packet was sent.
        lost_tx_in_flight: u32,
        /// `lost` when it was sent.
        lost_tx_lost: u32,
        lost_is_app_limited: u32,
        /// An [`EcnMode`].
        ecn_mode: u32,
        /// `ACK_STATE_*` bits.
        ack_state: u32,
        /// Sequence number expected next, bytes; wraps.
        rcv_nxt: u32,
    }
}

mirror! {
    /// What an op may change. Fill it from the connection before the call and copy it back after; an op that
    /// does nothing changes nothing.
    CcOut {
        /// Bytes/s.
        pacing_rate: u64,
        /// A [`PacingStatus`]; only None to Needed is honoured.
        pacing_status: u32,
        /// Segments, never 0.
        snd_cwnd: u32,
        snd_cwnd_cnt: u32,
        snd_ssthresh: u32,
        app_limited: u32,
        /// Result of `Ssthresh`, `UndoCwnd`, `MinTsoSegs` and `SndbufExpand`.
        ret: u32,
        /// An [`AckPrior`], of `CwndEvent` with an ECN event: goes out before the new echo holds.
        ack_prior: u32,
        /// What that ACK acknowledges; a sequence number, bytes.
        ack_prior_seq: u32,
        /// 0 or 1: ACKs carry ECE from now on.
        ecn_echo: u32,
        /// 1: ack what arrives at once.
        ack_now: u16,
        /// 1: `random` was drawn: the next call gets another.
        random_drawn: u8,
        /// 1, of `CongAvoid` and `CongControl`: the stack is to begin a reduction, as after a mark.
        enter_cwr: u8,
    }
}

mirror! {
    /// What `get_info` fills; see `struct cc_info` in `cc/cc.h`.
    CcInfo {
        /// Bytes/s; 0 before the first sample.
        bw: u64,
        /// `u32::MAX` before the first sample.
        min_rtt_us: u32,
        /// 1/256.
        pacing_gain: u32,
        /// 1/256.
        cwnd_gain: u32,
        /// Index into the names of the phases.
        phase: u32,
    }
}

/// The loss-recovery state, numbered as in Linux.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    Open = 0,
    Disorder = 1,
    Cwr = 2,
    Recovery = 3,
    Loss = 4,
}

/// What `CwndEvent` reports, numbered as in Linux.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// First transmit with nothing in flight.
    TxStart = 0,
    /// Congestion window restart after idle.
    CwndRestart = 1,
    /// End of CWR or Recovery.
    CompleteCwr = 2,
    /// Retransmission timeout.
    Loss = 3,
    /// Receiver side: packet without CE.
    EcnNoCe = 4,
    /// Receiver side: packet with CE.
    EcnIsCe = 5,
}

/// Who paces the connection, numbered as in Linux.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacingStatus {
    None = 0,
    /// TCP's own timer.
    Needed = 1,
    /// The fq qdisc.
    Fq = 2,
}

/// What the handshake agreed on, for the contract.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    #[default]
    None = 0,
    /// RFC 3168.
    Classic = 1,
    /// RFC 9768.
    Accurate = 2,
}

/// An ACK that an algorithm asks for at once, for what had arrived before.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPrior {
    None = 0,
    /// Without ECE.
    Plain = 1,
    /// With ECE.
    Ece = 2,
}

/// `ack_state`: ACKs carry ECE (classic ECN).
pub const ACK_STATE_ECHO: u32 = 0x1;
/// `ack_state`: an ACK waits for its timer.
pub const ACK_STATE_DELAYED: u32 = 0x2;
/// `ack_flags`: the ACK carried ECE.
pub const ACK_ECE: u32 = 0x40;
/// `ack_flags`: the ACK is not what header prediction expects: window, SACK blocks, ECE.
pub const ACK_SLOWPATH: u32 = 0x100;
/// `ack_flags`: the ACK moved `snd_una`.
pub const ACK_SND_UNA_ADVANCED: u32 = 0x400;
/// `ack_flags`: the ACK may have been delayed by the receiver.
pub const ACK_MAYBE_DELAYED: u32 = 0x10000;
/// `snd_ssthresh` before the first congestion event.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{CStr, c_char};

    #[repr(C)]
    struct RawField {
        name: *const c_char,
        offset_bytes: u32,
        size_bytes: u32,
    }

    #[repr(C)]
    struct RawLayout {
        in_bytes: u32,
        out_bytes: u32,
        n_in: u32,
        n_out: u32,
        info_bytes: u32,
        n_info: u32,
        fields_in: *const RawField,
        fields_out: *const RawField,
        fields_info: *const RawField,
    }

    unsafe extern "C" {
        static cc_layout: RawLayout;
    }

    fn fields(first: *const RawField, n: u32) -> Vec<(&'static str, usize, usize)> {
        // SAFETY: cc_native.c lays out `n` fields at `first`, with static names.
        let raw = unsafe { std::slice::from_raw_parts(first, n as usize) };
        raw.iter()
            .map(|f| {
                let name = unsafe { CStr::from_ptr(f.name) }.to_str().unwrap();
                (name, f.offset_bytes as usize, f.size_bytes as usize)
            })
            .collect()
    }

    #[test]
    fn every_field_lies_where_the_c_compiler_put_it() {
        let layout = unsafe { &cc_layout };
        assert_eq!(fields(layout.fields_in, layout.n_in), CcIn::FIELDS);
        assert_eq!(fields(layout.fields_out, layout.n_out), CcOut::FIELDS);
        assert_eq!(fields(layout.fields_info, layout.n_info), CcInfo::FIELDS);
        assert_eq!(layout.in_bytes as usize, size_of::<CcIn>());
        assert_eq!(layout.out_bytes as usize, size_of::<CcOut>());
        assert_eq!(layout.info_bytes as usize, size_of::<CcInfo>());
    }

    /// A field missing in both tables would pass the test above; it would leave a hole here.
    #[test]
    fn the_fields_leave_no_hole() {
        for (fields, size) in [
            (CcIn::FIELDS, size_of::<CcIn>()),
            (CcOut::FIELDS, size_of::<CcOut>()),
            (CcInfo::FIELDS, size_of::<CcInfo>()),
        ] {
            let mut end = 0;
            for &(name, offset, bytes) in fields {
                assert_eq!(offset, end, "hole before {name}");
                end += bytes;
            }
            assert_eq!(size, end.next_multiple_of(8));
        }
    }
}
