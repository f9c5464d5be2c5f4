//! Queueing disciplines in a snapshot: options and statistics of each.

use std::collections::BTreeMap;

use serde::Serialize;

use super::qdisc::{
    FASTPATH_PACKETS, FLOWS_PLIMIT, HORIZON_CAPS, HORIZON_DROPS, Qdisc, THROTTLED, handle,
};
use super::qdisc_options::{Form, each_option};

/// A qdisc of a snapshot.
#[derive(Debug, Default, Serialize)]
pub struct QdiscState {
    pub interface: String,
    pub kind: String,
    pub handle: String,
    pub parent: String,
    /// As the kernel has them; a unit stands at the end of the name: `flow_limit_pkts`.
    pub options: BTreeMap<String, u64>,
    pub bytes: Option<u64>,
    pub packets: Option<u64>,
    pub drops: Option<u32>,
    pub overlimits: Option<u32>,
    pub requeues: Option<u32>,
    pub backlog_pkts: Option<u32>,
    // Of fq.
    pub throttled: Option<u64>,
    pub flows_plimit: Option<u64>,
    pub horizon_drops: Option<u64>,
    pub horizon_caps: Option<u64>,
    pub fastpath_pkts: Option<u64>,
}

/// Makes the row of a snapshot.
pub fn state(qdisc: &Qdisc, interface: &str) -> QdiscState {
    let mut options = BTreeMap::new();
    each_option(qdisc, &mut |name, form: Form, value| {
        options.insert(format!("{name}{}", form.suffix()), value);
    });
    let fq = |at: usize| {
        let bytes = qdisc.fq.as_ref()?.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    QdiscState {
        interface: interface.to_owned(),
        kind: qdisc.kind.clone(),
        handle: handle(qdisc.handle),
        parent: handle(qdisc.parent),
        options,
        bytes: qdisc.basic.map(|basic| basic.bytes),
        packets: (qdisc.packets).or(qdisc.basic.map(|basic| basic.packets.into())),
        drops: qdisc.queue.map(|queue| queue.drops),
        overlimits: qdisc.queue.map(|queue| queue.overlimits),
        requeues: qdisc.queue.map(|queue| queue.requeues),
        backlog_pkts: qdisc.queue.map(|queue| queue.qlen),
        throttled: fq(THROTTLED),
        flows_plimit: fq(FLOWS_PLIMIT),
        horizon_drops: fq(HORIZON_DROPS),
        horizon_caps: fq(HORIZON_CAPS),
        fastpath_pkts: fq(FASTPATH_PACKETS),
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::tc::TcHandle;

    use super::*;

    #[test]
    fn options_and_counters_of_fq_are_in_its_row_and_damage_ends_them() {
        let words: Vec<u8> = (0..14u64).flat_map(u64::to_ne_bytes).collect();
        let mut options = Vec::new();
        for (kind, value) in [(1, 10_000u32), (2, 100), (7, u32::MAX), (99, 5)] {
            knee_uapi::netlink::put(&mut options, kind, &value.to_ne_bytes());
        }
        options.extend([3, 0, 1, 0]);
        let mut qdisc = Qdisc {
            interface: 2,
            kind: "fq".to_owned(),
            handle: TcHandle::from(0x8001_0000),
            parent: TcHandle::from(0xffff_ffff),
            fq: Some(words),
            options,
            ..Qdisc::default()
        };
        let row = state(&qdisc, "eth0");
        assert_eq!((&*row.handle, &*row.parent), ("8001:", "root"));
        let options: Vec<_> = row
            .options
            .iter()
            .map(|(name, &value)| (&**name, value))
            .collect();
        assert_eq!(options, [("flow_limit_pkts", 100), ("limit_pkts", 10_000)]);
        assert_eq!((row.throttled, row.flows_plimit), (Some(3), Some(4)));
        assert_eq!((row.horizon_drops, row.horizon_caps), (Some(11), Some(12)));
        assert_eq!((row.fastpath_pkts, row.bytes), (Some(13), None));
        qdisc.fq.as_mut().unwrap().truncate(40);
        let row = state(&qdisc, "eth0");
        assert_eq!((row.flows_plimit, row.horizon_drops), (Some(4), None));
    }
}
