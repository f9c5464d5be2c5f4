//! Sockets as sock_diag tells of them, as rows of the table `sockets`.

use super::Diag;
use super::tcp_info::TcpInfo;
use crate::anonymise::Anonymiser;
use crate::column::{Numbers, set};
use crate::tables::Sockets;

/// The states in the kernel's order, from 1, as ss names them.
pub const STATES: [&str; 12] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "NEW-SYN-RECV",
];

const TIMERS: [&str; 5] = ["", "on", "keepalive", "timewait", "persist"];

/// Fills the columns that the kernel tells of a socket; those without a value
/// stay null. Times, places and processes are the caller's.
pub fn fill(
    table: &mut Sockets,
    row: usize,
    diag: &Diag<'_>,
    anonymiser: &Anonymiser,
    text: &mut String,
) {
    if let Some(name) = STATES.get(usize::from(diag.state).wrapping_sub(1)) {
        table.state.set(row, name);
    }
    anonymiser.write(diag.source.0, text);
    table.local_addr.set(row, text);
    anonymiser.write(diag.destination.0, text);
    table.remote_addr.set(row, text);
    table.local_port.set(row, diag.source.1.into());
    table.remote_port.set(row, diag.destination.1.into());
    table.cookie.set(row, diag.cookie);
    if let Some(name) = diag.congestion {
        table.algorithm.set(row, name);
    }
    if let Some(info) = &diag.info {
        fill_info(table, row, info);
        fill_further(table, row, info);
    }
    fill_algorithm(table, row, diag);
}

/// Fills what only a dump tells: a destroy event has none of it.
pub fn fill_dumped(table: &mut Sockets, row: usize, diag: &Diag<'_>) {
    table.recv_q_bytes.set(row, diag.rqueue_bytes.into());
    table.send_q_bytes.set(row, diag.wqueue_bytes.into());
    if let Some(name) = TIMERS
        .get(usize::from(diag.timer))
        .filter(|name| !name.is_empty())
    {
        table.timer.set(row, name);
        table.timer_ms.set(row, diag.timer_ms.into());
        table
            .timer_retransmits
            .set(row, diag.timer_retransmits.into());
    }
    set(&mut table.tos, row, diag.tos);
    set(&mut table.tclass, row, diag.tclass);
    set(&mut table.class_id, row, diag.class_id);
    if let Some(only) = diag.v6only {
        table.v6only.set(row, only);
    }
    if let Some(memory) = diag.memory {
        table.mem_rmem_bytes.set(row, memory.rmem_alloc.into());
        table.mem_wmem_bytes.set(row, memory.wmem_alloc.into());
        table
            .mem_wmem_queued_bytes
            .set(row, memory.wmem_queued.into());
        table
            .mem_forward_alloc_bytes
            .set(row, memory.fwd_alloc.into());
        table.mem_optmem_bytes.set(row, memory.optmem.into());
        table.mem_backlog_bytes.set(row, memory.backlog.into());
        table.sndbuf_bytes.set(row, memory.sndbuf.into());
        table.rcvbuf_bytes.set(row, memory.rcvbuf.into());
        set(&mut table.mem_drops, row, memory.drops);
    }
}

/// Fills what the two tables of a run have of `tcp_info` in `samples`.
fn fill_info(table: &mut Sockets, row: usize, info: &TcpInfo<'_>) {
    set(&mut table.ca_state, row, info.ca_state());
    set(&mut table.snd_cwnd, row, info.snd_cwnd());
    set(&mut table.snd_ssthresh, row, info.snd_ssthresh());
    if info.retrans().is_some() {
        table.inflight.set(row, info.inflight().into());
    }
    set(&mut table.unacked, row, info.unacked());
    set(&mut table.sacked, row, info.sacked());
    set(&mut table.lost, row, info.lost());
    set(&mut table.retrans, row, info.retrans());
    set(&mut table.total_retrans, row, info.total_retrans());
    set(&mut table.data_segs_out, row, info.data_segs_out());
    set(&mut table.srtt_us, row, info.srtt_us());
    set(&mut table.rttvar_us, row, info.rttvar_us());
    let min_rtt_us = info
        .min_rtt_us()
        .map(|us| if us == u32::MAX { 0 } else { us });
    set(&mut table.min_rtt_us, row, min_rtt_us);
    // Linux keeps the timeout as doubled.
    let rto_us = info
        .rto_us()
        .map(|us| us >> info.backoff().unwrap_or(0).min(31));
    set(&mut table.rto_us, row, rto_us);
    set(&mut table.backoff, row, info.backoff());
    let pacing_rate = limited_bits_per_sec(info.pacing_rate());
    set(&mut table.pacing_rate_bits_per_sec, row, pacing_rate);
    let delivery_rate = info.delivery_rate().map(bits_per_sec);
    set(&mut table.delivery_rate_bits_per_sec, row, delivery_rate);
    if let Some(flags) = info.flags() {
        table.delivery_rate_app_limited.set(row, flags & 1 != 0);
        // 2 bits above it.
        table.fastopen_client_fail.set(row, (flags >> 1 & 3).into());
    }
    set(&mut table.delivered, row, info.delivered());
    set(&mut table.delivered_ce, row, info.delivered_ce());
    set_wide(&mut table.bytes_sent, row, info.bytes_sent());
    set_wide(&mut table.bytes_retrans, row, info.bytes_retrans());
    set_wide(&mut table.bytes_acked, row, info.bytes_acked());
    set(&mut table.notsent_bytes, row, info.notsent_bytes());
    set(&mut table.snd_wnd_bytes, row, info.snd_wnd());
    set_wide(&mut table.busy_us, row, info.busy_us());
    set_wide(&mut table.rwnd_limited_us, row, info.rwnd_limited_us());
    set_wide(&mut table.sndbuf_limited_us, row, info.sndbuf_limited_us());
    set(
        &mut table.reordering,
        row,
        info.reordering().map(|count| count as i32),
    );
    set(
        &mut table.reord_seen,
        row,
        info.reord_seen().map(|count| count as i32),
    );
    set(&mut table.dsack_dups, row, info.dsack_dups());
}

/// And in `tcp_info`.
fn fill_further(table: &mut Sockets, row: usize, info: &TcpInfo<'_>) {
    set(&mut table.tcp_state, row, info.state());
    set(&mut table.retransmits, row, info.retransmits());
    set(&mut table.probes, row, info.probes());
    set(&mut table.options, row, info.options());
    if let Some(scales) = info.wscales() {
        table.snd_wscale.set(row, (scales & 0xf).into());
        table.rcv_wscale.set(row, (scales >> 4).into());
    }
    set(&mut table.ato_us, row, info.ato_us());
    set(&mut table.snd_mss_bytes, row, info.snd_mss());
    set(&mut table.rcv_mss_bytes, row, info.rcv_mss());
    set(&mut table.last_data_sent_ms, row, info.last_data_sent_ms());
    set(&mut table.last_data_recv_ms, row, info.last_data_recv_ms());
    set(&mut table.last_ack_recv_ms, row, info.last_ack_recv_ms());
    set(&mut table.pmtu_bytes, row, info.pmtu());
    set(&mut table.rcv_ssthresh_bytes, row, info.rcv_ssthresh());
    set(&mut table.advmss_bytes, row, info.advmss());
    set(&mut table.rcv_rtt_us, row, info.rcv_rtt_us());
    set(&mut table.rcv_space_bytes, row, info.rcv_space());
    let max_pacing_rate = limited_bits_per_sec(info.max_pacing_rate());
    set(
        &mut table.max_pacing_rate_bits_per_sec,
        row,
        max_pacing_rate,
    );
    set_wide(&mut table.bytes_received, row, info.bytes_received());
    set(&mut table.segs_out, row, info.segs_out());
    set(&mut table.segs_in, row, info.segs_in());
    set(&mut table.data_segs_in, row, info.data_segs_in());
    set(&mut table.rcv_ooopack, row, info.rcv_ooopack());
    set(&mut table.rcv_wnd_bytes, row, info.rcv_wnd());
    set(&mut table.rehash, row, info.rehash());
    set(&mut table.total_rto, row, info.total_rto());
    set(
        &mut table.total_rto_recoveries,
        row,
        info.total_rto_recoveries(),
    );
    set(&mut table.total_rto_time_ms, row, info.total_rto_time_ms());
    set(&mut table.received_ce, row, info.received_ce());
    set(
        &mut table.delivered_e1_bytes,
        row,
        info.delivered_e1_bytes(),
    );
    set(
        &mut table.delivered_e0_bytes,
        row,
        info.delivered_e0_bytes(),
    );
    set(
        &mut table.delivered_ce_bytes,
        row,
        info.delivered_ce_bytes(),
    );
    set(&mut table.received_e1_bytes, row, info.received_e1_bytes());
    set(&mut table.received_e0_bytes, row, info.received_e0_bytes());
    set(&mut table.received_ce_bytes, row, info.received_ce_bytes());
}

/// What the congestion control tells of itself.
fn fill_algorithm(table: &mut Sockets, row: usize, diag: &Diag<'_>) {
    if let Some(bbr) = diag.bbr {
        let bw = Some(bbr.bw_bytes_per_sec)
            .filter(|&bw| bw > 0)
            .map(bits_per_sec);
        set(&mut table.bbr_bw_bits_per_sec, row, bw);
        let min_rtt_us = Some(bbr.min_rtt_us).filter(|&us| us != u32::MAX);
        set(&mut table.bbr_min_rtt_us, row, min_rtt_us);
        table.bbr_pacing_gain.set(row, bbr.pacing_gain);
        table.bbr_cwnd_gain.set(row, bbr.cwnd_gain);
        table.cc_phase.set(row, bbr.phase());
        if let Some(v3) = bbr.v3 {
            table.bbr_version.set(row, v3.version.into());
            let bw_hi = limited_bits_per_sec(Some(v3.bw_hi_bytes_per_sec));
            set(&mut table.bbr_bw_hi_bits_per_sec, row, bw_hi);
            let bw_lo = limited_bits_per_sec(Some(v3.bw_lo_bytes_per_sec));
            set(&mut table.bbr_bw_lo_bits_per_sec, row, bw_lo);
            table.bbr_mode.set(row, v3.mode.into());
            table.bbr_phase.set(row, v3.phase.into());
            let bound = |segments: u32| Some(segments).filter(|&bound| bound != u32::MAX);
            set(&mut table.bbr_inflight_lo, row, bound(v3.inflight_lo));
            set(&mut table.bbr_inflight_hi, row, bound(v3.inflight_hi));
            table.bbr_extra_acked.set(row, v3.extra_acked.into());
        }
    }
    if let Some(vegas) = diag.vegas {
        table.vegas_enabled.set(row, vegas.enabled.into());
        table.vegas_rttcnt.set(row, vegas.rttcnt.into());
        table.vegas_rtt_us.set(row, vegas.rtt_us.into());
        table.vegas_minrtt_us.set(row, vegas.minrtt_us.into());
    }
    if let Some(dctcp) = diag.dctcp {
        table.dctcp_enabled.set(row, dctcp.enabled.into());
        table.dctcp_ce_state.set(row, dctcp.ce_state.into());
        table.dctcp_alpha.set(row, dctcp.alpha);
        table.dctcp_ab_ecn_bytes.set(row, dctcp.ab_ecn_bytes.into());
        table.dctcp_ab_tot_bytes.set(row, dctcp.ab_tot_bytes.into());
    }
}

/// Bits per second of a rate in bytes; `None`: unlimited, which Linux writes as ~0.
pub fn limited_bits_per_sec(bytes_per_sec: Option<u64>) -> Option<i64> {
    bytes_per_sec
        .filter(|&rate| rate != u64::MAX)
        .map(bits_per_sec)
}

pub fn bits_per_sec(bytes_per_sec: u64) -> i64 {
    i64::try_from(bytes_per_sec.saturating_mul(8)).unwrap_or(i64::MAX)
}

/// Counters of 64 bits: none comes to 2^63.
#[inline]
fn set_wide(column: &mut Numbers<i64>, row: usize, value: Option<u64>) {
    if let Some(value) = value {
        column.set(row, value as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sock_diag::tcp_info::{BbrInfo, DctcpInfo, KNOWN_BYTES, VegasInfo};
    use crate::sock_diag::{AF_INET, MESSAGE_BYTES, Memory};
    use crate::table::Table;

    /// A socket of nothing but its `tcp_info`.
    fn diag(info: &[u8]) -> Diag<'_> {
        let mut head = [0; MESSAGE_BYTES];
        (head[0], head[1]) = (AF_INET, 1);
        head[8..12].copy_from_slice(&[10, 77, 0, 1]);
        let diag = Diag::head(&head);
        Diag {
            info: Some(TcpInfo(info)),
            congestion: Some("cubic"),
            ..diag
        }
    }

    fn filled(diag: &Diag<'_>) -> Sockets {
        let mut table = Sockets::default();
        let row = table.add_row();
        fill(&mut table, row, diag, &Anonymiser::Keep, &mut String::new());
        fill_dumped(&mut table, row, diag);
        table
    }

    /// Names of the columns without a value.
    fn nulls(table: &mut Sockets) -> Vec<String> {
        let batch = table.take();
        let schema = batch.schema();
        (schema.fields().iter().zip(batch.columns()))
            .filter(|(_, column)| column.null_count() > 0)
            .map(|(field, _)| field.name().clone())
            .collect()
    }

    #[test]
    fn kernel_that_tells_everything_leaves_only_what_others_fill() {
        let info = [1; KNOWN_BYTES];
        let everything = Diag {
            timer: 1,
            bbr: BbrInfo::decode(&[1; 52]),
            vegas: VegasInfo::decode(&[1; 16]),
            dctcp: DctcpInfo::decode(&[1; 16]),
            memory: Some(Memory {
                rmem_alloc: 1,
                rcvbuf: 1,
                wmem_alloc: 1,
                sndbuf: 1,
                fwd_alloc: 1,
                wmem_queued: 1,
                optmem: 1,
                backlog: 1,
                drops: Some(1),
            }),
            tos: Some(1),
            tclass: Some(1),
            v6only: Some(true),
            class_id: Some(1),
            ..diag(&info)
        };
        let by_others = [
            "t_unix_ns",
            "t_mono_ns",
            "sample",
            "host",
            "netns",
            "final",
            "interface",
            "uid",
            "inode",
            "cgroup_id",
            "cgroup",
            "mark",
            "process",
            "pid",
            // Before Linux 4.15, or by ss.
            "fackets",
            "send_rate_bits_per_sec",
            "qack",
        ];
        assert_eq!(nulls(&mut filled(&everything)), by_others);
    }

    #[test]
    fn field_that_this_kernel_lacks_is_null_and_never_another_one() {
        let info: Vec<u8> = (0..KNOWN_BYTES).map(|at| at as u8).collect();
        // Linux 4.19 ends after reord_seen.
        let mut table = filled(&diag(&info[..224]));
        assert_eq!(
            table.reord_seen.get(0),
            Some(i32::from_ne_bytes([220, 221, 222, 223]))
        );
        let nulls = nulls(&mut table);
        for later in ["rcv_ooopack", "snd_wnd_bytes", "rcv_wnd_bytes", "total_rto"] {
            assert!(nulls.iter().any(|name| name == later), "{later}");
        }
    }

    #[test]
    fn units_are_those_of_a_run() {
        let mut info = vec![0; KNOWN_BYTES];
        info[4] = 2; // backoff
        info[8..12].copy_from_slice(&800_000u32.to_ne_bytes());
        info[104..112].copy_from_slice(&125_000u64.to_ne_bytes());
        info[112..120].copy_from_slice(&u64::MAX.to_ne_bytes());
        info[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        info[7] = 0b101;
        let table = filled(&diag(&info));
        assert_eq!(table.rto_us.get(0), Some(200_000));
        assert_eq!(table.pacing_rate_bits_per_sec.get(0), Some(1_000_000));
        assert_eq!(table.max_pacing_rate_bits_per_sec.get(0), None);
        assert_eq!(table.min_rtt_us.get(0), Some(0));
        assert_eq!(table.delivery_rate_app_limited.get(0), Some(true));
        assert_eq!(table.fastopen_client_fail.get(0), Some(2));
        assert_eq!(table.state.get(0), Some("ESTAB"));
        assert_eq!(table.local_addr.get(0), Some("10.77.0.1"));
    }
}
