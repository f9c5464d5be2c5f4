//! Sockets as sock_diag tells of them, as rows of the table `sockets`.

use super::columns::Stored;
use super::sockets::Sockets;
use super::tcp_info::{KNOWN_BYTES, TcpInfo, place};
use super::{Diag, Memory};
use crate::anonymise::Anonymiser;
use crate::column::{Number, Numbers, RUN, set};
use crate::table::Pending;

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
        let length = info.0.len().min(KNOWN_BYTES);
        if table.told.infos.is_full_at(row) || table.told.length != length {
            Told::settle(table);
            table.told.length = length;
        }
        let bytes = table.told.infos.place(row, [0; KNOWN_BYTES]);
        bytes[..length].copy_from_slice(&info.0[..length]);
        if let Some(flags) = info.flags() {
            table.delivery_rate_app_limited.set(row, flags & 1 != 0);
            // 2 bits above it.
            table.fastopen_client_fail.set(row, (flags >> 1 & 3).into());
        }
    }
    fill_algorithm(table, row, diag);
}

/// Fills what only a dump tells: a destroy event has none of it.
pub fn fill_dumped(table: &mut Sockets, row: usize, diag: &Diag<'_>) {
    if table.told.dumped.is_full_at(row) {
        Told::settle(table);
    }
    let dumped = Dumped {
        rqueue_bytes: diag.rqueue_bytes,
        wqueue_bytes: diag.wqueue_bytes,
        tos: diag.tos,
        tclass: diag.tclass,
        class_id: diag.class_id,
        memory: diag.memory,
    };
    *table.told.dumped.place(row, dumped) = dumped;
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
    if let Some(only) = diag.v6only {
        table.v6only.set(row, only);
    }
}

/// What is told of the rows of a run and goes into columns one column at a time:
/// 80 columns of one row after the other are 80 places in memory for each socket.
#[derive(Default)]
pub struct Told {
    infos: Staged<[u8; KNOWN_BYTES]>,
    /// Of each `tcp_info`: kernels make it as long as they know it.
    length: usize,
    dumped: Staged<Dumped>,
}

/// What a dump alone tells of a socket.
#[derive(Clone, Copy)]
struct Dumped {
    rqueue_bytes: u32,
    wqueue_bytes: u32,
    tos: Option<u8>,
    tclass: Option<u8>,
    class_id: Option<u32>,
    memory: Option<Memory>,
}

/// One thing of each row of a run.
struct Staged<T> {
    things: Option<Box<[T; RUN]>>,
    /// Row of the first, a multiple of [`RUN`].
    first: usize,
    /// A bit per row that has one.
    rows: u64,
}

impl<T> Default for Staged<T> {
    fn default() -> Staged<T> {
        Staged {
            things: None,
            first: 0,
            rows: 0,
        }
    }
}

impl<T: Copy> Staged<T> {
    /// Is the row of another run than those that are here?
    #[inline]
    fn is_full_at(&self, row: usize) -> bool {
        self.rows != 0 && self.first != row / RUN * RUN
    }

    /// Where the row's is kept; `empty` is what stands for those not told yet.
    #[inline]
    fn place(&mut self, row: usize, empty: T) -> &mut T {
        self.first = row / RUN * RUN;
        self.rows |= 1 << (row % RUN);
        let things = self.things.get_or_insert_with(|| Box::new([empty; RUN]));
        &mut things[row % RUN]
    }

    /// Sets a column in the rows that have a value for it.
    #[inline]
    fn set<N: Number, V: Into<N>>(&self, column: &mut Numbers<N>, value: impl Fn(&T) -> Option<V>) {
        if let Some(things) = self.things.as_deref().filter(|_| self.rows != 0) {
            column.set_run(self.first, self.rows, |at| {
                value(&things[at]).map(Into::into)
            });
        }
    }
}

impl Pending for Told {
    type Table = Sockets;

    fn settle(table: &mut Sockets) {
        let mut told = std::mem::take(&mut table.told);
        if told.infos.rows != 0 {
            fill_info(table, &told);
            told.infos.rows = 0;
        }
        if told.dumped.rows != 0 {
            fill_memory(table, &told.dumped);
            told.dumped.rows = 0;
        }
        table.told = told;
    }
}

/// Sets a column from the `tcp_info` of each row.
#[inline]
fn run<T: Number, V: Stored<T>>(
    column: &mut Numbers<T>,
    told: &Told,
    since_bytes: usize,
    value: impl Fn(&TcpInfo<'_>) -> Option<V>,
) {
    // A field is told if it ends within the length, whatever its value: asked once,
    // and not for each row.
    if told.length >= since_bytes {
        told.infos
            .set(column, |bytes| value(&TcpInfo(bytes)).map(Stored::stored));
    }
}

/// Fills queues, classes and memory.
fn fill_memory(table: &mut Sockets, dumped: &Staged<Dumped>) {
    dumped.set(&mut table.recv_q_bytes, |of| Some(of.rqueue_bytes));
    dumped.set(&mut table.send_q_bytes, |of| Some(of.wqueue_bytes));
    dumped.set(&mut table.tos, |of| of.tos);
    dumped.set(&mut table.tclass, |of| of.tclass);
    dumped.set(&mut table.class_id, |of| of.class_id);
    let memory = |of: &Dumped| of.memory;
    dumped.set(&mut table.mem_rmem_bytes, |of| Some(memory(of)?.rmem_alloc));
    dumped.set(&mut table.mem_wmem_bytes, |of| Some(memory(of)?.wmem_alloc));
    dumped.set(&mut table.mem_wmem_queued_bytes, |of| {
        Some(memory(of)?.wmem_queued)
    });
    dumped.set(&mut table.mem_forward_alloc_bytes, |of| {
        Some(memory(of)?.fwd_alloc)
    });
    dumped.set(&mut table.mem_optmem_bytes, |of| Some(memory(of)?.optmem));
    dumped.set(&mut table.mem_backlog_bytes, |of| Some(memory(of)?.backlog));
    dumped.set(&mut table.sndbuf_bytes, |of| Some(memory(of)?.sndbuf));
    dumped.set(&mut table.rcvbuf_bytes, |of| Some(memory(of)?.rcvbuf));
    dumped.set(&mut table.mem_drops, |of| memory(of)?.drops);
}

/// Fills what the two tables of a run have of `tcp_info`.
fn fill_info(table: &mut Sockets, told: &Told) {
    macro_rules! each {
        ($($column:ident: $field:ident, $how:ident;)*) => {$(
            run(&mut table.$column, told, place::$field.end, |info| info.$how());
        )*};
    }
    tcp_info_columns!(samples each);
    tcp_info_columns!(further each);
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
        Told::settle(&mut table);
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
            "boot_id",
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
    fn rows_of_any_lengths_in_a_batch_are_those_of_each_by_itself() {
        let bytes: Vec<u8> = (0..KNOWN_BYTES * 4).map(|n| (n * 37) as u8).collect();
        // Kernels do not mix; destroy events, listeners and imports of several hosts do.
        let length = |row: usize| match row {
            0..70 => Some(280),
            70 | 71 | 300 => None,
            _ => Some([280, 248, 224, 0, 300][row / 7 % 5]),
        };
        let infos = (0..400).map(|row| {
            let from = row * 11 % 800;
            length(row).map(|length| TcpInfo(&bytes[from..from + length]))
        });
        let alone = |info| Diag { info, ..diag(&[]) };
        let mut together = Sockets::default();
        let mut text = String::new();
        for info in infos.clone() {
            let row = together.add_row();
            fill(
                &mut together,
                row,
                &alone(info),
                &Anonymiser::Keep,
                &mut text,
            );
        }
        let together = together.take();
        for (row, info) in infos.enumerate() {
            let mut one = Sockets::default();
            one.add_row();
            fill(&mut one, 0, &alone(info), &Anonymiser::Keep, &mut text);
            assert_eq!(one.take(), together.slice(row, 1), "row {row}");
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
