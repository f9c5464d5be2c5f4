//! Claims of RFC 8290.

use super::super::testing::{Link, mbit, packet, setup};
use super::*;
use crate::packet::Ecn;

fn link(limit: BufferLimit, changed: &[(&str, f64)]) -> Link<FqCodel> {
    let setup = setup(&KIND, limit, mbit(10), changed);
    Link::new(mbit(10), Box::new(FqCodel::new(setup)))
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_ms(ms)
}

fn numbered(flow: u32, handle: u32) -> Packet {
    Packet {
        handle,
        ..packet(flow)
    }
}

#[test]
fn fq_codel_keeps_a_sparse_flow_below_its_target_beside_ten_bulk_flows() {
    // A packet of 200 B every 20 ms, the voice call of RFC 8290 section 1,
    // beside ten flows that want twice the link.
    const CALL: u32 = 99;
    let mut link = link(BufferLimit::Packets(1_000), &[]);
    let buckets: Vec<usize> = (0..10)
        .chain([CALL])
        .map(|flow| link.queue().hash.bucket(flow))
        .collect();
    assert!(
        !buckets[..10].contains(&buckets[10]),
        "the call has a queue of its own"
    );
    for i in 0..10_000 {
        let now = Nanos::from_us(600) * u64::from(i);
        link.offer(now, packet(i % 10));
        if i % 33 == 0 {
            let call = Packet {
                bytes: 200,
                ..packet(CALL)
            };
            link.offer(now, call);
        }
    }
    let calls = link.sent.iter().filter(|sent| sent.packet.flow == CALL);
    assert!(calls.clone().count() >= 300);
    let longest = calls.map(|sent| sent.waited).max().unwrap();
    // At most the packet on the wire and the new flows of the same moment.
    assert!(longest < ms(5), "{longest}");
    assert!(link.dropped.iter().all(|(_, packet)| packet.flow != CALL));
}

#[test]
fn fq_codel_shares_the_link_equally_within_5_percent() {
    // Reno flows of one path, and one flow that does not react.
    let mut link = link(BufferLimit::Packets(10_240), &[]);
    let flows = 4;
    let buckets: std::collections::BTreeSet<usize> = (0..flows)
        .map(|flow| link.queue().hash.bucket(flow))
        .collect();
    assert_eq!(buckets.len(), flows as usize);
    link.run_reno(flows, ms(20), ms(0), ms(40_000), Ecn::NotEct);
    let share = |flow: u32| {
        link.sent_between(ms(10_000), ms(40_000))
            .filter(|sent| sent.packet.flow == flow)
            .count() as f64
    };
    let total: f64 = (0..flows).map(share).sum();
    for flow in 0..flows {
        let ratio = share(flow) * f64::from(flows) / total;
        assert!((ratio - 1.0).abs() < 0.05, "flow {flow}: {ratio}");
    }
}

#[test]
fn fq_codel_shares_bytes_and_not_packets() {
    // Packets of 1500 B and of 300 B, both always waiting.
    let mut link = link(BufferLimit::Unlimited, &[]);
    for _ in 0..100 {
        link.offer(ms(0), packet(1));
        for _ in 0..5 {
            let small = Packet {
                bytes: 300,
                ..packet(2)
            };
            link.offer(ms(0), small);
        }
    }
    link.run_until(ms(90));
    let bytes = |flow| -> u32 {
        let of = link.sent.iter().filter(|sent| sent.packet.flow == flow);
        of.map(|sent| sent.packet.bytes).sum()
    };
    assert!(
        bytes(1).abs_diff(bytes(2)) <= 1_500,
        "{} {}",
        bytes(1),
        bytes(2)
    );
}

#[test]
fn fq_codel_serves_a_new_flow_before_the_old_ones() {
    let mut link = link(BufferLimit::Unlimited, &[]);
    for handle in 0..10 {
        link.offer(ms(0), numbered(1, handle));
    }
    // Flow 1 has had turns: it is an old flow now.
    let now = Nanos::from_us(3_000);
    link.offer(now, numbered(1, 10));
    link.offer(now, numbered(2, 20));
    link.run_until(Nanos::from_us(3_600));
    assert_eq!(link.sent.last().unwrap().packet.handle, 20);
}

#[test]
fn fq_codel_gives_a_returning_flow_no_second_new_turn_in_a_round() {
    // Flow 2 sends one packet whenever its last one has left. RFC 8290 section
    // 4.2: an emptied new flow goes behind the old ones first, so it gets every
    // other packet and not all.
    let mut link = link(BufferLimit::Unlimited, &[]);
    for handle in 0..50 {
        link.offer(ms(0), numbered(1, handle));
    }
    let mut of_two = 0;
    for _ in 0..40 {
        if link.queue().flows.pkts() > 0 && link.sent.last().unwrap().packet.flow == 1 {
            link.offer(link.sent.last().unwrap().at, packet(2));
        }
        let next = link.sent.last().unwrap().at + Nanos::from_us(1_200);
        link.run_until(next);
        of_two += u32::from(link.sent.last().unwrap().packet.flow == 2);
    }
    assert_eq!(of_two, 20);
}

#[test]
fn fq_codel_takes_the_drops_of_a_full_queue_from_the_fattest_flow() {
    let mut link = link(BufferLimit::Packets(100), &[]);
    for handle in 0..30 {
        link.offer(ms(0), numbered(1, handle));
    }
    for handle in 0..200 {
        link.offer(ms(0), numbered(2, 1_000 + handle));
    }
    assert!(!link.dropped.is_empty());
    assert!(link.dropped.iter().all(|(_, packet)| packet.flow == 2));
    // From its head: half of the 71 that it holds when the 101st packet comes.
    let first: Vec<u32> = link
        .dropped
        .iter()
        .map(|(_, p)| p.handle)
        .take(36)
        .collect();
    assert_eq!(first, (1_000..1_036).collect::<Vec<u32>>());
}

#[test]
fn fq_codel_drops_64_packets_of_a_fat_flow_at_once_and_not_more() {
    let mut link = link(BufferLimit::Packets(1_000), &[]);
    for handle in 0..1_001 {
        link.offer(ms(0), numbered(1, handle));
    }
    assert_eq!(link.dropped.len(), 0, "one is on the wire");
    link.offer(ms(0), numbered(1, 1_001));
    assert_eq!(link.dropped.len(), 64);
}

#[test]
fn fq_codel_keeps_its_memory_limit_though_the_buffer_is_unlimited() {
    let mut link = link(BufferLimit::Unlimited, &[("memory_limit", 150_000.0)]);
    for handle in 0..1_000 {
        link.offer(ms(0), numbered(handle % 3, handle));
        assert!(link.queue().len_bytes() <= 150_000);
    }
    assert!(!link.dropped.is_empty());
}

#[test]
fn fq_codel_controls_each_flow_for_itself() {
    // A flow at 5 times the link's rate; one at a tenth of it: only one is signalled.
    let mut link = link(BufferLimit::Packets(10_000), &[]);
    for i in 0..20_000 {
        let now = Nanos::from_us(240) * i;
        link.offer(now, packet(1));
        if i % 50 == 0 {
            link.offer(now, packet(2));
        }
    }
    let of_two = link.dropped.iter().filter(|(_, packet)| packet.flow == 2);
    assert_eq!(of_two.count(), 0);
    assert!(link.dropped.len() > 50);
}
