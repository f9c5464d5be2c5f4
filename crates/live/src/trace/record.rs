//! One record of a connection, as `struct trace_record` of
//! `bpf/trace_tcp.bpf.c` has it, and the rows that it becomes.

use std::net::Ipv6Addr;

use knee_collect::turning_point;
use knee_tables::{Ack, TraceEvent};

/// Values of `kind`.
pub const SEGMENT: u32 = 0;
const STATE: u32 = 1;
const CA_STATE: u32 = 2;
const RETRANSMIT: u32 = 3;

/// States of a connection (include/net/tcp_states.h).
const ESTABLISHED: u8 = 1;
const SYN_SENT: u8 = 2;
const SYN_RECV: u8 = 3;
const FIN_WAIT1: u8 = 4;
const FIN_WAIT2: u8 = 5;
const TIME_WAIT: u8 = 6;
const CLOSE: u8 = 7;
const CLOSE_WAIT: u8 = 8;
const LAST_ACK: u8 = 9;
const LISTEN: u8 = 10;
const CLOSING: u8 = 11;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub t_ns: u64,
    pub cookie: u64,
    pacing_rate: u64,
    bytes_sent: u64,
    bytes_acked: u64,
    bytes_retrans: u64,
    pub kind: u32,
    pub netns: u32,
    seq: u32,
    ack_seq: u32,
    payload_bytes: u32,
    snd_una: u32,
    snd_nxt: u32,
    write_seq: u32,
    snd_wnd: u32,
    rcv_wnd: u32,
    snd_cwnd: u32,
    snd_ssthresh: u32,
    srtt_us_x8: u32,
    mdev_us_x4: u32,
    min_rtt_us: u32,
    mss_cache: u32,
    packets_out: u32,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    total_retrans: u32,
    data_segs_out: u32,
    delivered: u32,
    delivered_ce: u32,
    lost: u32,
    rate_delivered: u32,
    rate_interval_us: u32,
    reordering: u32,
    local: [u8; 16],
    remote: [u8; 16],
    pub local_port: u16,
    pub remote_port: u16,
    before: u8,
    after: u8,
    ca_state: u8,
    tcp_state: u8,
    backoff: u8,
    retransmits: u8,
    rate_app_limited: u8,
    tcp_flags: u8,
    pub algorithm: [u8; 16],
    unused: u32,
}

impl Record {
    /// From the bytes that the program wrote; none when there are fewer or more.
    pub fn from_bytes(bytes: &[u8]) -> Option<Record> {
        let bytes: &[u8; size_of::<Record>()] = bytes.try_into().ok()?;
        // SAFETY: Record holds integers alone and no padding, so that all bytes are a value of it.
        Some(unsafe { std::mem::transmute_copy(bytes) })
    }

    /// A socket that listens is no connection.
    pub fn is_of_listener(&self) -> bool {
        self.kind == STATE && (self.before == LISTEN || self.after == LISTEN)
    }

    pub fn closes(&self) -> bool {
        self.kind == STATE && self.after == CLOSE
    }

    /// The first sequence number not acknowledged before the segment, and after it.
    pub fn acknowledged(&self) -> (u32, u32) {
        let new = self.ack_seq.wrapping_sub(self.snd_una);
        let sent = self.snd_nxt.wrapping_sub(self.snd_una);
        // An old ACK, and one of what was never sent, say nothing.
        let after = if new <= sent {
            self.ack_seq
        } else {
            self.snd_una
        };
        (self.snd_una, after)
    }

    /// The address of this end, IPv4 as such.
    pub fn source(&self) -> String {
        Ipv6Addr::from(self.local).to_canonical().to_string()
    }

    pub fn destination(&self) -> String {
        Ipv6Addr::from(self.remote).to_canonical().to_string()
    }

    /// Its row of `acks`.
    pub fn ack(&self, begin_ns: u64) -> Ack {
        Ack {
            t_ns: since(begin_ns, self.t_ns),
            cookie: self.cookie.cast_signed(),
            seq: self.seq.into(),
            ack_seq: self.ack_seq.into(),
            payload_bytes: self.payload_bytes.into(),
            tcp_flags: self.tcp_flags.into(),
            snd_una: self.snd_una.into(),
            snd_nxt: self.snd_nxt.into(),
            snd_wnd_bytes: self.snd_wnd.into(),
            rcv_wnd_bytes: self.rcv_wnd.into(),
            ca_state: self.ca_state.into(),
            snd_cwnd: self.snd_cwnd.into(),
            snd_ssthresh: self.snd_ssthresh.into(),
            inflight: i64::from(self.packets_out) + i64::from(self.retrans_out)
                - i64::from(self.sacked_out)
                - i64::from(self.lost_out),
            unacked: self.packets_out.into(),
            sacked: self.sacked_out.into(),
            lost: self.lost_out.into(),
            retrans: self.retrans_out.into(),
            total_retrans: self.total_retrans.into(),
            data_segs_out: self.data_segs_out.into(),
            srtt_us: (self.srtt_us_x8 >> 3).into(),
            rttvar_us: (self.mdev_us_x4 >> 2).into(),
            // The filter begins with the greatest number.
            min_rtt_us: match self.min_rtt_us {
                u32::MAX => 0,
                least => least.into(),
            },
            backoff: self.backoff.into(),
            retransmits: self.retransmits.into(),
            // Bytes; the greatest number stands for no limit, in 32 bits before Linux 4.20.
            pacing_rate_bits_per_sec: i64::try_from(self.pacing_rate)
                .ok()
                .and_then(|rate| rate.checked_mul(8)),
            delivery_rate_bits_per_sec: self.delivery_rate_bits_per_sec(),
            delivery_rate_app_limited: self.rate_app_limited != 0,
            delivered: self.delivered.into(),
            delivered_ce: self.delivered_ce.into(),
            total_lost: self.lost.into(),
            bytes_sent: self.bytes_sent.cast_signed(),
            bytes_retrans: self.bytes_retrans.cast_signed(),
            bytes_acked: self.bytes_acked.cast_signed(),
            notsent_bytes: i64::from(self.write_seq.wrapping_sub(self.snd_nxt).cast_signed())
                .max(0),
            snd_mss_bytes: self.mss_cache.into(),
            reordering: self.reordering.cast_signed(),
        }
    }

    /// As tcp_info reckons it.
    fn delivery_rate_bits_per_sec(&self) -> i64 {
        if self.rate_interval_us == 0 {
            return 0;
        }
        let bits = u128::from(self.rate_delivered) * u128::from(self.mss_cache) * 8 * 1_000_000;
        i64::try_from(bits / u128::from(self.rate_interval_us)).unwrap_or(i64::MAX)
    }

    /// Its row of `trace_events`, if it is a turning point.
    pub fn event(&self, begin_ns: u64) -> Option<TraceEvent> {
        let event = match self.kind {
            RETRANSMIT => "retransmit",
            CA_STATE => turning_point(self.before, self.after)?,
            STATE => match self.after {
                SYN_SENT | SYN_RECV => "open",
                ESTABLISHED => "established",
                FIN_WAIT1 => "fin_wait1",
                FIN_WAIT2 => "fin_wait2",
                CLOSING => "closing",
                CLOSE_WAIT => "close_wait",
                LAST_ACK => "last_ack",
                TIME_WAIT => "time_wait",
                CLOSE => "closed",
                _ => return None,
            },
            _ => return None,
        };
        let resent = |value: u32| (self.kind == RETRANSMIT).then(|| value.into());
        Some(TraceEvent {
            t_ns: since(begin_ns, self.t_ns),
            cookie: self.cookie.cast_signed(),
            event,
            snd_cwnd: self.snd_cwnd.into(),
            snd_ssthresh: self.snd_ssthresh.into(),
            snd_una: self.snd_una.into(),
            seq: resent(self.seq),
            payload_bytes: resent(self.payload_bytes),
        })
    }
}

/// The clock is the same, so that nothing is before the beginning.
fn since(begin_ns: u64, t_ns: u64) -> i64 {
    t_ns.saturating_sub(begin_ns).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record::from_bytes(&[0; size_of::<Record>()]).expect("so many bytes are a record")
    }

    #[test]
    fn records_of_another_length_are_refused() {
        assert!(Record::from_bytes(&[0; size_of::<Record>() - 1]).is_none());
        assert!(Record::from_bytes(&[0; size_of::<Record>() + 8]).is_none());
    }

    #[test]
    fn scaled_times_of_the_kernel_become_microseconds() {
        let row = Record {
            srtt_us_x8: 8 * 40_000,
            mdev_us_x4: 4 * 700,
            min_rtt_us: u32::MAX,
            ..record()
        }
        .ack(0);
        assert_eq!(
            (row.srtt_us, row.rttvar_us, row.min_rtt_us),
            (40_000, 700, 0)
        );
    }

    #[test]
    fn rates_are_bits_per_second_and_no_limit_is_null() {
        let row = Record {
            pacing_rate: 1_250_000,
            rate_delivered: 10,
            rate_interval_us: 1_000,
            mss_cache: 1_000,
            ..record()
        }
        .ack(0);
        assert_eq!(row.pacing_rate_bits_per_sec, Some(10_000_000));
        assert_eq!(row.delivery_rate_bits_per_sec, 80_000_000);
        let unlimited = Record {
            pacing_rate: u64::MAX,
            ..record()
        };
        assert_eq!(unlimited.ack(0).pacing_rate_bits_per_sec, None);
    }

    #[test]
    fn sequence_numbers_wrap_between_what_is_sent_and_what_is_written() {
        let row = Record {
            snd_nxt: u32::MAX - 9,
            write_seq: 90,
            ..record()
        };
        assert_eq!(row.ack(0).notsent_bytes, 100);
    }

    #[test]
    fn only_an_ack_of_what_was_sent_advances_what_is_acknowledged() {
        let of = |ack_seq| {
            let record = Record {
                snd_una: u32::MAX - 99,
                snd_nxt: 100,
                ack_seq,
                ..record()
            };
            record.acknowledged().1
        };
        assert_eq!(of(50), 50);
        assert_eq!(of(100), 100);
        assert_eq!(of(101), u32::MAX - 99);
        assert_eq!(of(u32::MAX - 200), u32::MAX - 99);
    }

    #[test]
    fn states_have_the_words_of_a_runs_events() {
        let of = |kind, before, after| {
            let record = Record {
                kind,
                before,
                after,
                ..record()
            };
            record.event(0).map(|row| row.event)
        };
        assert_eq!(of(STATE, CLOSE, SYN_SENT), Some("open"));
        assert_eq!(of(STATE, SYN_SENT, ESTABLISHED), Some("established"));
        assert_eq!(of(STATE, TIME_WAIT, CLOSE), Some("closed"));
        assert_eq!(of(CA_STATE, 0, 3), Some("recovery"));
        assert_eq!(of(CA_STATE, 3, 0), Some("recovery_end"));
        assert_eq!(of(CA_STATE, 0, 0), None);
        assert_eq!(of(SEGMENT, 0, 0), None);
    }

    #[test]
    fn addresses_are_written_as_their_family_does() {
        let mapped = Record {
            local: std::net::Ipv4Addr::new(10, 0, 0, 1)
                .to_ipv6_mapped()
                .octets(),
            remote: Ipv6Addr::LOCALHOST.octets(),
            ..record()
        };
        assert_eq!(mapped.source(), "10.0.0.1");
        assert_eq!(mapped.destination(), "::1");
    }
}
