//! Maps columns of `samples` and `sockets` to fields of `tcp_info`. The recorder, importers and the lab's sampler fill
//! their tables by this one map.

use knee_tables::{Column, Samples, Table as _, TcpInfoSamples, like};

use super::tcp_info::place;

/// Hands every column of `tcp_info` to a macro, as `COLUMN: FIELD, HOW;`: the
/// column of the table, the field of [`place`](crate::sock_diag::tcp_info::place)
/// that the kernel must provide, and the method of
/// [`TcpInfo`](crate::sock_diag::tcp_info::TcpInfo) that gives its value. `samples`
/// are the columns of a run's `samples`, `further` those of its `tcp_info`.
///
/// Flags are absent: they are bits of one byte that every kernel has.
#[macro_export]
macro_rules! tcp_info_columns {
    (samples $then:ident) => {
        $then! {
            ca_state: ca_state, ca_state;
            snd_cwnd: snd_cwnd, snd_cwnd;
            snd_ssthresh: snd_ssthresh, snd_ssthresh;
            inflight: retrans, known_inflight;
            unacked: unacked, unacked;
            sacked: sacked, sacked;
            lost: lost, lost;
            retrans: retrans, retrans;
            total_retrans: total_retrans, total_retrans;
            data_segs_out: data_segs_out, data_segs_out;
            srtt_us: srtt_us, srtt_us;
            rttvar_us: rttvar_us, rttvar_us;
            min_rtt_us: min_rtt_us, min_rtt_or_0_us;
            rto_us: rto_us, rto_without_backoff_us;
            backoff: backoff, backoff;
            pacing_rate_bits_per_sec: pacing_rate, pacing_rate_bits_per_sec;
            delivery_rate_bits_per_sec: delivery_rate, delivery_rate_bits_per_sec;
            delivered: delivered, delivered;
            delivered_ce: delivered_ce, delivered_ce;
            bytes_sent: bytes_sent, bytes_sent;
            bytes_retrans: bytes_retrans, bytes_retrans;
            bytes_acked: bytes_acked, bytes_acked;
            notsent_bytes: notsent_bytes, notsent_bytes;
            snd_wnd_bytes: snd_wnd, snd_wnd;
            busy_us: busy_us, busy_us;
            rwnd_limited_us: rwnd_limited_us, rwnd_limited_us;
            sndbuf_limited_us: sndbuf_limited_us, sndbuf_limited_us;
            reordering: reordering, reordering;
            reord_seen: reord_seen, reord_seen;
            dsack_dups: dsack_dups, dsack_dups;
        }
    };
    (further $then:ident) => {
        $then! {
            tcp_state: state, state;
            retransmits: retransmits, retransmits;
            probes: probes, probes;
            options: options, options;
            snd_wscale: wscales, snd_wscale;
            rcv_wscale: wscales, rcv_wscale;
            ato_us: ato_us, ato_us;
            snd_mss_bytes: snd_mss, snd_mss;
            rcv_mss_bytes: rcv_mss, rcv_mss;
            last_data_sent_ms: last_data_sent_ms, last_data_sent_ms;
            last_data_recv_ms: last_data_recv_ms, last_data_recv_ms;
            last_ack_recv_ms: last_ack_recv_ms, last_ack_recv_ms;
            pmtu_bytes: pmtu, pmtu;
            rcv_ssthresh_bytes: rcv_ssthresh, rcv_ssthresh;
            advmss_bytes: advmss, advmss;
            rcv_rtt_us: rcv_rtt_us, rcv_rtt_us;
            rcv_space_bytes: rcv_space, rcv_space;
            max_pacing_rate_bits_per_sec: max_pacing_rate, max_pacing_rate_bits_per_sec;
            bytes_received: bytes_received, bytes_received;
            segs_out: segs_out, segs_out;
            segs_in: segs_in, segs_in;
            data_segs_in: data_segs_in, data_segs_in;
            rcv_ooopack: rcv_ooopack, rcv_ooopack;
            rcv_wnd_bytes: rcv_wnd, rcv_wnd;
            rehash: rehash, rehash;
            total_rto: total_rto, total_rto;
            total_rto_recoveries: total_rto_recoveries, total_rto_recoveries;
            total_rto_time_ms: total_rto_time_ms, total_rto_time_ms;
            received_ce: received_ce, received_ce;
            delivered_e1_bytes: delivered_e1_bytes, delivered_e1_bytes;
            delivered_e0_bytes: delivered_e0_bytes, delivered_e0_bytes;
            delivered_ce_bytes: delivered_ce_bytes, delivered_ce_bytes;
            received_e1_bytes: received_e1_bytes, received_e1_bytes;
            received_e0_bytes: received_e0_bytes, received_e0_bytes;
            received_ce_bytes: received_ce_bytes, received_ce_bytes;
        }
    };
}

/// A column that is filled from `tcp_info`.
#[derive(Clone, Debug)]
pub struct InfoColumn {
    pub column: Column,
    /// First byte of the field in the struct.
    pub at: usize,
    /// Length of the shortest struct that contains the field.
    pub since_bytes: usize,
}

macro_rules! of_samples {
    ($($column:ident: $field:ident, $how:ident;)*) => {
        &[$(of(like(stringify!($column), Samples::COLUMNS), &place::$field)),*]
    };
}

macro_rules! of_further {
    ($($column:ident: $field:ident, $how:ident;)*) => {
        &[$(of(like(stringify!($column), TcpInfoSamples::COLUMNS), &place::$field)),*]
    };
}

const fn of(column: Column, place: &std::ops::Range<usize>) -> InfoColumn {
    InfoColumn {
        column,
        at: place.start,
        since_bytes: place.end,
    }
}

/// Columns of `samples`.
pub const SAMPLES: &[InfoColumn] = tcp_info_columns!(samples of_samples);
/// Columns of a run's `tcp_info`.
pub const FURTHER: &[InfoColumn] = tcp_info_columns!(further of_further);

/// A field's value as a column stores it.
pub trait Stored<T> {
    fn stored(self) -> T;
}

macro_rules! stored {
    ($($from:ty => $to:ty),*) => {$(
        impl Stored<$to> for $from {
            #[inline]
            fn stored(self) -> $to {
                self as $to
            }
        }
    )*};
}
// No counter of 64 bits reaches 2^63; values stored in 32 bits are small.
stored!(u8 => i32, u8 => i64, u16 => i64, u32 => i32, u32 => i64, u64 => i64, i64 => i64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sock_diag::tcp_info::KNOWN_BYTES;

    /// `last_data_sent_ms` of `tcp_info.tcpi_last_data_sent`.
    fn field(column: &Column) -> Option<&'static str> {
        column.source.strip_prefix("tcp_info.tcpi_")
    }

    #[test]
    fn columns_name_the_field_that_they_come_of() {
        for one in SAMPLES.iter().chain(FURTHER) {
            let column = one.column;
            assert!(one.at < one.since_bytes && one.since_bytes <= KNOWN_BYTES);
            // The kernel's own name of it; what is derived has another source.
            let Some(field) = field(&column) else {
                assert_eq!(column.name, "inflight");
                continue;
            };
            let same = (SAMPLES.iter().chain(FURTHER))
                .filter(|other| self::field(&other.column) == Some(field))
                .count();
            assert_eq!(same, 1, "{} is of a field of another column", column.name);
        }
    }

    #[test]
    fn every_column_that_says_it_is_of_tcp_info_is_in_the_table() {
        let ours = |name| (SAMPLES.iter().chain(FURTHER)).any(|one| one.column.name == name);
        for column in Samples::COLUMNS.iter().chain(TcpInfoSamples::COLUMNS) {
            let is_flag = column.name == "delivery_rate_app_limited";
            if field(column).is_some() && !is_flag {
                assert!(ours(column.name), "{}", column.name);
            }
        }
    }
}
