//! Queueing disciplines: their options and statistics, by rtnetlink.

use std::io;

use knee_tables::Qdisc as Rows;
use netlink_packet_core::{Emitable, Nla};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAttribute, TcFqCodelQdStats, TcFqCodelXstats, TcHandle, TcMessage, TcOption, TcStats2,
    TcStatsBasic, TcStatsQueue, TcXstats,
};

use super::routing::Routing;

/// TCA_STATS_PKT64, which the library leaves to us.
const PACKETS_64: u16 = 8;

/// A qdisc of a device.
#[derive(Clone, Debug, Default)]
pub struct Qdisc {
    pub interface: u32,
    pub kind: String,
    pub handle: TcHandle,
    pub parent: TcHandle,
    pub basic: Option<TcStatsBasic>,
    /// Linux 5.5 and later.
    pub packets: Option<u64>,
    pub queue: Option<TcStatsQueue>,
    pub fq_codel: Option<TcFqCodelQdStats>,
    /// `struct tc_fq_qd_stats`, as long as the kernel made it.
    pub fq: Option<Vec<u8>>,
    /// TCA_OPTIONS as the kernel has it: attributes, or a struct.
    pub options: Vec<u8>,
}

/// The qdiscs of the namespace's devices.
///
/// # Errors
/// The kernel refuses the dump.
pub fn qdiscs(routing: &mut Routing) -> io::Result<Vec<Qdisc>> {
    let mut found = Vec::new();
    let question = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
    routing.dump(question, |answer| {
        if let RouteNetlinkMessage::NewQueueDiscipline(message) = answer {
            found.push(qdisc(message));
        }
    })?;
    Ok(found)
}

/// What an answer tells of a qdisc; what it does not tell stays empty.
pub fn qdisc(message: TcMessage) -> Qdisc {
    let mut qdisc = Qdisc {
        interface: message.header.index as u32,
        handle: message.header.handle,
        parent: message.header.parent,
        ..Qdisc::default()
    };
    let mut app = None;
    for attribute in message.attributes {
        match attribute {
            TcAttribute::Kind(kind) => qdisc.kind = kind,
            TcAttribute::Options(options) => qdisc.options = bytes_of(&options),
            TcAttribute::Stats2(parts) => {
                for part in parts {
                    match part {
                        TcStats2::Basic(basic) => qdisc.basic = Some(basic),
                        TcStats2::Queue(queue) => qdisc.queue = Some(queue),
                        TcStats2::App(stats) => app = Some(stats),
                        TcStats2::Other(other) if other.kind() == PACKETS_64 => {
                            let mut bytes = vec![0; other.value_len()];
                            other.emit_value(&mut bytes);
                            qdisc.packets =
                                bytes.first_chunk().map(|&word| u64::from_ne_bytes(word));
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    match app {
        Some(TcXstats::FqCodel(TcFqCodelXstats::Qdisc(stats))) => qdisc.fq_codel = Some(stats),
        Some(TcXstats::Other(bytes)) if qdisc.kind == "fq" => qdisc.fq = Some(bytes),
        _ => {}
    }
    qdisc
}

/// The library knows the attributes of some kinds, and has those of others as one
/// of the kind TCA_OPTIONS.
fn bytes_of(options: &[TcOption]) -> Vec<u8> {
    const OPTIONS: u16 = 2;
    match options {
        [TcOption::Other(whole)] if whole.kind() == OPTIONS => {
            let mut bytes = vec![0; whole.value_len()];
            whole.emit_value(&mut bytes);
            bytes
        }
        known => {
            let mut bytes = vec![0; known.buffer_len()];
            known.emit(&mut bytes);
            bytes
        }
    }
}

/// As tc prints it: hexadecimal.
pub fn handle(handle: TcHandle) -> String {
    match (handle.major, handle.minor) {
        (0xffff, 0xffff) => "root".to_owned(),
        (0xffff, 0xfff1) => "ingress".to_owned(),
        (major, 0) => format!("{major:x}:"),
        (0, minor) => format!(":{minor:x}"),
        (major, minor) => format!("{major:x}:{minor:x}"),
    }
}

/// Fills the qdisc's columns of a row.
pub fn fill(table: &mut Rows, row: usize, qdisc: &Qdisc) {
    table.kind.set(row, &qdisc.kind);
    table.handle.set(row, &handle(qdisc.handle));
    table.parent.set(row, &handle(qdisc.parent));
    if let Some(basic) = qdisc.basic {
        table.bytes.set(row, basic.bytes as i64);
        let packets = qdisc.packets.unwrap_or(basic.packets.into());
        table.packets.set(row, packets as i64);
    }
    if let Some(queue) = qdisc.queue {
        table.drops.set(row, queue.drops.into());
        table.overlimits.set(row, queue.overlimits.into());
        table.requeues.set(row, queue.requeues.into());
        table.backlog_bytes.set(row, queue.backlog.into());
        table.qlen_pkts.set(row, queue.qlen.into());
    }
    if let Some(stats) = qdisc.fq_codel {
        for (column, value) in [
            (&mut table.fq_codel_maxpacket_bytes, stats.maxpacket),
            (&mut table.fq_codel_drop_overlimit, stats.drop_overlimit),
            (&mut table.fq_codel_drop_overmemory, stats.drop_overmemory),
            (&mut table.fq_codel_ecn_mark, stats.ecn_mark),
            (&mut table.fq_codel_ce_mark, stats.ce_mark),
            (&mut table.fq_codel_new_flow_count, stats.new_flow_count),
            (&mut table.fq_codel_new_flows, stats.new_flows_len),
            (&mut table.fq_codel_old_flows, stats.old_flows_len),
            (&mut table.fq_codel_memory_bytes, stats.memory_usage),
        ] {
            column.set(row, value.into());
        }
    }
    if let Some(bytes) = &qdisc.fq {
        fill_fq(table, row, bytes);
    }
}

// Places in `struct tc_fq_qd_stats`.
pub(crate) const THROTTLED: usize = 24;
pub(crate) const FLOWS_PLIMIT: usize = 32;
pub(crate) const HORIZON_DROPS: usize = 88;
pub(crate) const HORIZON_CAPS: usize = 96;
pub(crate) const FASTPATH_PACKETS: usize = 104;

/// `struct tc_fq_qd_stats` has only ever grown at its end: 64 bytes of words, then
/// four of half the size, then words again.
/// Source: Linux 6.18, include/uapi/linux/pkt_sched.h.
fn fill_fq(table: &mut Rows, row: usize, bytes: &[u8]) {
    for (column, at) in [
        (&mut table.fq_gc_flows, 0),
        (&mut table.fq_highprio_packets, 8),
        (&mut table.fq_tcp_retrans, 16),
        (&mut table.fq_throttled, THROTTLED),
        (&mut table.fq_flows_plimit, FLOWS_PLIMIT),
        (&mut table.fq_pkts_too_long, 40),
        (&mut table.fq_allocation_errors, 48),
        (&mut table.fq_time_next_delayed_flow_ns, 56),
        (&mut table.fq_ce_mark, 80),
        (&mut table.fq_horizon_drops, HORIZON_DROPS),
        (&mut table.fq_horizon_caps, HORIZON_CAPS),
        (&mut table.fq_fastpath_packets, FASTPATH_PACKETS),
    ] {
        if let Some(&word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            column.set(row, i64::from_ne_bytes(word));
        }
    }
    for (column, at) in [
        (&mut table.fq_flows, 64),
        (&mut table.fq_inactive_flows, 68),
        (&mut table.fq_throttled_flows, 72),
        (&mut table.fq_unthrottle_latency_ns, 76),
    ] {
        if let Some(&word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            column.set(row, u32::from_ne_bytes(word).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use knee_tables::Batch;

    use super::*;

    #[test]
    fn handles_read_as_tc_prints_them() {
        let text = |word: u32| handle(TcHandle::from(word));
        assert_eq!(text(0x8001_0000), "8001:");
        assert_eq!(text(0x0001_000a), "1:a");
        assert_eq!(text(0xffff_ffff), "root");
        assert_eq!(text(0xffff_fff1), "ingress");
        assert_eq!(text(0), "0:");
    }

    #[test]
    fn statistics_of_fq_are_read_as_far_as_the_kernel_goes() {
        let bytes: Vec<u8> = (0..18u8).flat_map(|n| u64::from(n).to_ne_bytes()).collect();
        let mut table = Rows::default();
        let row = table.add_row();
        fill_fq(&mut table, row, &bytes);
        assert_eq!(table.fq_gc_flows.get(row), Some(0));
        assert_eq!(table.fq_throttled.get(row), Some(3));
        // The low half of the ninth word on a little-endian host.
        assert_eq!(table.fq_flows.get(row), Some(8));
        assert_eq!(table.fq_fastpath_packets.get(row), Some(13));
        // Linux 4.19 ends after unthrottle_latency_ns and ce_mark.
        let row = table.add_row();
        fill_fq(&mut table, row, &bytes[..88]);
        assert_eq!(table.fq_ce_mark.get(row), Some(10));
        assert_eq!(table.fq_horizon_drops.get(row), None);
    }

    #[test]
    fn every_qdisc_of_this_namespace_has_a_device_and_a_kind() {
        let mut routing = Routing::new().unwrap();
        for qdisc in qdiscs(&mut routing).unwrap() {
            assert!(qdisc.interface > 0 && !qdisc.kind.is_empty());
            assert!(qdisc.basic.is_some() && qdisc.queue.is_some());
        }
    }
}
