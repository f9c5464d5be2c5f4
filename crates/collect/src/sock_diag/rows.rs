//! Fills rows of the table `sockets` from sock_diag's answers.

use std::ops::{Deref, DerefMut};

use knee_store::Anonymiser;
use knee_tables::column::{RUN, set};
use knee_tables::{Batch, Number, Numbers, Schema, Sockets, Table, Values};

use super::columns::Stored;
use super::tcp_info::{KNOWN_BYTES, TcpInfo, bits_per_sec, limited_bits_per_sec, place};
use super::{Diag, Memory};

/// States in the kernel's order, which begins with 1, by the names of ss.
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

/// Rows of the table `sockets`, filled from sock_diag's answers.
///
/// `tcp_info` and memory of up to [`RUN`] rows are staged and then written one column at a time: writing 80 columns for
/// each socket would touch 80 places in memory per row.
#[derive(Default)]
pub struct SocketRows {
    table: Sockets,
    infos: Staged<[u8; KNOWN_BYTES]>,
    /// Length of each staged `tcp_info`; it depends on the kernel's version.
    info_bytes: usize,
    dumped: Staged<Dumped>,
    /// Buffer for an address.
    text: String,
}

impl Deref for SocketRows {
    type Target = Sockets;

    fn deref(&self) -> &Sockets {
        &self.table
    }
}

impl DerefMut for SocketRows {
    fn deref_mut(&mut self) -> &mut Sockets {
        &mut self.table
    }
}

impl Table for SocketRows {
    const SCHEMA: Schema = Sockets::SCHEMA;

    fn values(&self) -> Vec<Values<'_>> {
        self.table.values()
    }

    fn rows(&self) -> usize {
        self.table.rows()
    }
}

impl Batch for SocketRows {
    #[inline]
    fn add_row(&mut self) -> usize {
        self.table.add_row()
    }

    fn take(&mut self, kept: impl Fn(&str) -> bool) -> SocketRows {
        self.settle();
        SocketRows {
            table: self.table.take(kept),
            ..SocketRows::default()
        }
    }
}

impl SocketRows {
    /// Fills the columns that dumps and destroy events have in common. Columns without a value stay null. Times, host,
    /// interface and process are left to the caller.
    pub fn fill(&mut self, row: usize, diag: &Diag<'_>, anonymiser: &Anonymiser) {
        let table = &mut self.table;
        if let Some(name) = STATES.get(usize::from(diag.state).wrapping_sub(1)) {
            table.state.set(row, name);
        }
        anonymiser.write(diag.source.0, &mut self.text);
        table.local_addr.set(row, &self.text);
        anonymiser.write(diag.destination.0, &mut self.text);
        table.remote_addr.set(row, &self.text);
        table.local_port.set(row, diag.source.1.into());
        table.remote_port.set(row, diag.destination.1.into());
        table.cookie.set(row, diag.cookie);
        if let Some(name) = diag.congestion {
            table.algorithm.set(row, name);
        }
        if let Some(info) = &diag.info {
            if let Some(flags) = info.flags() {
                table.delivery_rate_app_limited.set(row, flags & 1 != 0);
                // 2 bits above it.
                table.fastopen_client_fail.set(row, (flags >> 1 & 3).into());
            }
            let length = info.0.len().min(KNOWN_BYTES);
            if self.infos.is_full_at(row) || self.info_bytes != length {
                self.settle();
                self.info_bytes = length;
            }
            let bytes = self.infos.place(row, [0; KNOWN_BYTES]);
            bytes[..length].copy_from_slice(&info.0[..length]);
        }
        fill_algorithm(&mut self.table, row, diag);
    }

    /// Fills the columns that only a dump has; a destroy event lacks them.
    pub fn fill_dumped(&mut self, row: usize, diag: &Diag<'_>) {
        if self.dumped.is_full_at(row) {
            self.settle();
        }
        let dumped = Dumped {
            rqueue_bytes: diag.rqueue_bytes,
            wqueue_bytes: diag.wqueue_bytes,
            tos: diag.tos,
            tclass: diag.tclass,
            class_id: diag.class_id,
            memory: diag.memory,
        };
        *self.dumped.place(row, dumped) = dumped;
        let table = &mut self.table;
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

    /// Writes staged values to their columns.
    fn settle(&mut self) {
        if self.infos.rows != 0 {
            self.fill_info();
            self.infos.rows = 0;
        }
        if self.dumped.rows != 0 {
            fill_memory(&mut self.table, &self.dumped);
            self.dumped.rows = 0;
        }
    }

    /// Writes the columns of `tcp_info`.
    fn fill_info(&mut self) {
        let SocketRows {
            table,
            infos,
            info_bytes,
            ..
        } = self;
        macro_rules! each {
            ($($column:ident: $field:ident, $how:ident;)*) => {$(
                // The kernel has a field if it ends within the length: one check for all rows.
                if *info_bytes >= place::$field.end {
                    infos.set(&mut table.$column, |bytes| TcpInfo(bytes).$how());
                }
            )*};
        }
        tcp_info_columns!(samples each);
        tcp_info_columns!(further each);
    }
}

/// What only a dump says of a socket.
#[derive(Clone, Copy)]
struct Dumped {
    rqueue_bytes: u32,
    wqueue_bytes: u32,
    tos: Option<u8>,
    tclass: Option<u8>,
    class_id: Option<u32>,
    memory: Option<Memory>,
}

/// One value for each row of a run.
struct Staged<T> {
    values: Option<Box<[T; RUN]>>,
    /// Row of the first, a multiple of [`RUN`].
    first: usize,
    /// A bit for each row that has a value.
    rows: u64,
}

impl<T> Default for Staged<T> {
    fn default() -> Staged<T> {
        Staged {
            values: None,
            first: 0,
            rows: 0,
        }
    }
}

impl<T: Copy> Staged<T> {
    /// Returns whether the row belongs to another run than the staged rows.
    #[inline]
    fn is_full_at(&self, row: usize) -> bool {
        self.rows != 0 && self.first != row / RUN * RUN
    }

    /// Returns the row's value; `empty` fills a new array.
    #[inline]
    fn place(&mut self, row: usize, empty: T) -> &mut T {
        self.first = row / RUN * RUN;
        self.rows |= 1 << (row % RUN);
        let values = self.values.get_or_insert_with(|| Box::new([empty; RUN]));
        &mut values[row % RUN]
    }

    /// Sets a column in the rows that have a value for it, converted to the column's type.
    #[inline]
    fn set<N: Number, V: Stored<N>>(
        &self,
        column: &mut Numbers<N>,
        value: impl Fn(&T) -> Option<V>,
    ) {
        if let Some(values) = self.values.as_deref().filter(|_| self.rows != 0) {
            column.set_run(self.first, self.rows, |at| {
                value(&values[at]).map(Stored::stored)
            });
        }
    }
}

/// Writes the columns of queues, classes and memory.
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

/// Fills the columns of the congestion control's own state.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sock_diag::tcp_info::{BbrInfo, DctcpInfo, VegasInfo};
    use crate::testing::diag;

    fn filled(diag: &Diag<'_>) -> SocketRows {
        let mut table = SocketRows::default();
        let row = table.add_row();
        table.fill(row, diag, &Anonymiser::Keep);
        table.fill_dumped(row, diag);
        table.settle();
        table
    }

    /// Names of the columns without a value.
    fn nulls(table: &mut SocketRows) -> Vec<String> {
        let batch = knee_store::take(table);
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
        let mut together = SocketRows::default();
        for info in infos.clone() {
            let row = together.add_row();
            together.fill(row, &alone(info), &Anonymiser::Keep);
        }
        let together = knee_store::take(&mut together);
        for (row, info) in infos.enumerate() {
            let mut one = SocketRows::default();
            one.add_row();
            one.fill(0, &alone(info), &Anonymiser::Keep);
            assert_eq!(
                knee_store::take(&mut one),
                together.slice(row, 1),
                "row {row}"
            );
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
