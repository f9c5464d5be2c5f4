//! Claims of the description in sch_fq.c that concern fairness.

use super::super::testing::{Link, mbit, packet, setup};
use super::*;
use crate::packet::Ecn;

fn link(limit: BufferLimit, changed: &[(&str, f64)]) -> Link<Fq> {
    let setup = setup(&KIND, limit, mbit(10), changed);
    Link::new(mbit(10), Box::new(Fq::new(&setup)))
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_ms(ms)
}

fn flows_sent(link: &Link<Fq>) -> Vec<u32> {
    link.sent.iter().map(|sent| sent.packet.flow).collect()
}

#[test]
fn fq_shares_the_link_equally_among_flows_however_much_they_offer() {
    // Flow 0 offers the link's rate, flow 9 ten times that.
    let mut link = link(BufferLimit::Packets(10_000), &[]);
    for i in 0..5_500_u64 {
        let now = Nanos::from_us(1_200) * i;
        for flow in 0..10 {
            for _ in 0..=flow {
                link.offer(now, packet(flow));
            }
        }
    }
    let sent = |flow| {
        link.sent_between(ms(1_000), ms(6_000))
            .filter(|sent| sent.packet.flow == flow)
            .count() as f64
    };
    let total: f64 = (0..10).map(sent).sum();
    assert!(total > 4_000.0);
    for flow in 0..10 {
        let ratio = sent(flow) * 10.0 / total;
        assert!((ratio - 1.0).abs() < 0.05, "flow {flow}: {ratio}");
    }
}

#[test]
fn fq_holds_100_packets_of_a_flow_and_not_more() {
    let mut link = link(BufferLimit::Unlimited, &[]);
    for _ in 0..150 {
        link.offer(ms(0), packet(0));
    }
    link.offer(ms(0), packet(1));
    // One of flow 0 is on the wire.
    assert_eq!(link.queue().len_pkts(), 101);
    assert_eq!(link.dropped.len(), 49);
    assert!(link.dropped.iter().all(|(_, packet)| packet.flow == 0));
}

#[test]
fn fq_gives_a_flow_ten_packets_first_and_then_two_in_turn() {
    let mut link = link(BufferLimit::Unlimited, &[]);
    // The first of all is sent at once, which is flow 0's.
    for flow in 0..2 {
        for _ in 0..20 {
            link.offer(ms(0), packet(flow));
        }
    }
    link.drain();
    let sent = flows_sent(&link);
    let runs: Vec<(u32, usize)> = sent
        .chunk_by(|a, b| a == b)
        .map(|run| (run[0], run.len()))
        .collect();
    assert_eq!(runs[..4], [(0, 10), (1, 10), (0, 2), (1, 2)]);
}

#[test]
fn fq_keeps_a_sparse_flow_ahead_of_bulk_flows() {
    let mut link = link(BufferLimit::Packets(10_000), &[]);
    for i in 0..10_000_u64 {
        let now = Nanos::from_us(600) * i;
        link.offer(now, packet(1 + (i % 10) as u32));
        if i % 100 == 0 {
            link.offer(now, packet(0));
        }
    }
    // After the first turns, in which each flow sends ten packets.
    let sparse = link
        .sent_between(ms(1_000), ms(6_000))
        .filter(|sent| sent.packet.flow == 0);
    assert!(sparse.clone().count() > 80);
    let longest = sparse.map(|sent| sent.waited).max().unwrap();
    assert!(longest < ms(5), "{longest}");
}

#[test]
fn fq_refills_a_flow_that_was_empty_for_40_ms() {
    // Flow 0 sends nine of its first ten packets, so that one is left to it.
    for (pause, order) in [(39, [0, 1, 0]), (41, [0, 0, 1])] {
        let mut link = link(BufferLimit::Unlimited, &[]);
        for _ in 0..9 {
            link.offer(ms(0), packet(0));
        }
        link.drain();
        // Found empty when the ninth had left.
        let now = Nanos::from_us(10_800) + ms(pause);
        let mut dropped = Vec::new();
        for flow in [0, 0, 1] {
            link.queue().enqueue(now, packet(flow), &mut dropped);
        }
        let sent = [(); 3].map(|()| link.queue().dequeue(now, &mut dropped).unwrap().flow);
        assert_eq!(sent, order, "{pause} ms");
    }
}

#[test]
fn fq_marks_above_its_ce_threshold_only() {
    let mut link = link(BufferLimit::Unlimited, &[("ce_threshold", 2e6)]);
    let packet = Packet {
        ecn: Ecn::Ect1,
        ..packet(0)
    };
    for _ in 0..4 {
        link.offer(ms(0), packet);
    }
    link.drain();
    let marks: Vec<bool> = link
        .sent
        .iter()
        .map(|sent| sent.packet.ecn == Ecn::Ce)
        .collect();
    assert_eq!(marks, [false, false, true, true]);
}

#[test]
fn fq_drops_the_arriving_packet_at_its_limit() {
    let mut link = link(BufferLimit::Bytes(15_000), &[]);
    for handle in 0..15 {
        let packet = Packet {
            handle,
            flow: handle % 3,
            ..packet(0)
        };
        link.offer(ms(0), packet);
    }
    let dropped: Vec<u32> = link.dropped.iter().map(|(_, p)| p.handle).collect();
    assert_eq!(dropped, [11, 12, 13, 14], "one is on the wire");
}

/// fq_change() takes no less than 256 bytes for a turn.
#[test]
fn fq_lets_a_flow_send_256_bytes_in_turn_whatever_the_quantum() {
    let mut link = link(
        BufferLimit::Unlimited,
        &[("quantum", 1.0), ("initial_quantum", 1.0)],
    );
    for flow in 0..2 {
        for _ in 0..4 {
            let packet = packet(flow);
            link.offer(
                ms(0),
                Packet {
                    bytes: 256,
                    ..packet
                },
            );
        }
    }
    link.drain();
    assert_eq!(flows_sent(&link), [0, 1, 0, 1, 0, 1, 0, 1]);
}
