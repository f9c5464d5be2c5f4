//! Answers of rtnetlink: counters of devices and of their queues.

use std::sync::Arc;

use knee_collect::{nic, qdisc, qdisc_options, routing};
use knee_tables::{Batch, Nic, Qdisc};
use netlink_packet_route::RouteNetlinkMessage;

use super::{BATCH_BYTES, choice, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "rtnetlink",
    about: "netlink: counters of devices and statistics of queues",
    seeds: &seeds,
    words: &["fq", "fq_codel", "noqueue", "lo"],
    check: &check,
};

fn seeds() -> Vec<Vec<u8>> {
    let qdisc = sample("crates/fuzz/seeds/rtnetlink-qdisc.bin");
    let mut seeds = vec![
        sample("crates/fuzz/seeds/rtnetlink-link.bin"),
        qdisc.clone(),
    ];
    // Queues that tell more: struct tc_fq_qd_stats, and tc_fq_codel_xstats of a qdisc.
    for (kind, length) in [("fq", 112), ("fq_codel", 40)] {
        // struct nlmsghdr and struct tcmsg.
        let mut bytes = qdisc[..36].to_vec();
        let stats: Vec<u8> = (0..length).map(|at| if at < 4 { 0 } else { at }).collect();
        attribute(&mut bytes, 1, &[kind.as_bytes(), b"\0"].concat());
        let mut parts = Vec::new();
        attribute(&mut parts, 1, &[1; 16]);
        attribute(&mut parts, 3, &[2; 20]);
        attribute(&mut parts, 8, &[3; 8]);
        attribute(&mut parts, 4, &stats);
        attribute(&mut bytes, 7, &parts);
        let whole = (bytes.len() as u32).to_ne_bytes();
        bytes[..4].copy_from_slice(&whole);
        seeds.push(bytes);
    }
    seeds
}

fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn check(input: &[u8]) -> usize {
    let sequence = input.get(8..12).map_or(0, |word| {
        u32::from_ne_bytes(word.try_into().expect("four bytes"))
    });
    let (mut devices, mut queues) = (Vec::new(), Vec::new());
    // Whether it is an answer is not the claim.
    let _ = routing::answers(input, sequence, &mut |message| match message {
        RouteNetlinkMessage::NewLink(link) => devices.push(nic::device(link)),
        RouteNetlinkMessage::NewQueueDiscipline(queue) => queues.push(qdisc::qdisc(queue)),
        _ => {}
    });
    let name = Arc::from("eth0");
    let mut told = |setting: knee_collect::setting::Setting| {
        assert!(!setting.place.name.is_empty());
    };
    for device in &devices {
        nic::settings(device, &name, &mut told);
    }
    for queue in &queues {
        qdisc_options::settings(queue, &name, &mut told);
    }
    // The tables have many columns: they are filled for some.
    if choice(input).is_multiple_of(8) {
        let (mut nics, mut qdiscs) = (Nic::default(), Qdisc::default());
        for device in &devices {
            let row = nics.add_row();
            nic::fill(&mut nics, row, device);
        }
        for queue in &queues {
            let row = qdiscs.add_row();
            qdisc::fill(&mut qdiscs, row, queue);
        }
        assert_eq!(knee_store::take(&mut nics).num_rows(), devices.len());
        assert_eq!(knee_store::take(&mut qdiscs).num_rows(), queues.len());
    }
    BATCH_BYTES + 64 * input.len()
}
