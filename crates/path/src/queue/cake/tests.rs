use std::ops::Range;

use knee_units::Rate;

use super::super::testing::{Link, MTU, mbit, packet, setup};
use super::cobalt::Cobalt;
use super::*;
use crate::packet::Ecn;

fn queue(limit: BufferLimit, changed: &[(&str, f64)]) -> Box<Cake> {
    Box::new(Cake::new(setup(&KIND, limit, mbit(1_000), changed)))
}

/// On a link of 1 Gbit/s, so that the shaper is the bottleneck.
fn link(changed: &[(&str, f64)]) -> Link<Cake> {
    Link::new(mbit(1_000), queue(BufferLimit::Unlimited, changed))
}

/// `host`: the one that sends it; each flow has a receiver of its own.
fn of(flow: u32, host: u32, dscp: u8) -> Packet {
    Packet {
        hosts: [host, flow],
        dscp,
        ..packet(flow)
    }
}

/// Offers packets of each kind at `rate` for so long, and returns the bytes of
/// each that left in the second half.
fn shares(link: &mut Link<Cake>, kinds: &[Packet], rate: Rate, end: Nanos) -> Vec<u64> {
    let gap = rate.transmit_time(u64::from(MTU));
    let mut now = Nanos::ZERO;
    while now < end {
        for kind in kinds {
            link.offer(now, *kind);
        }
        now += gap;
    }
    let same = |a: &Packet, b: &Packet| (a.flow, a.hosts, a.dscp) == (b.flow, b.hosts, b.dscp);
    let bytes = |kind: &Packet| {
        link.sent_between(Nanos(end.0 / 2), end)
            .filter(|sent| same(&sent.packet, kind))
            .map(|sent| u64::from(sent.packet.bytes))
            .sum()
    };
    kinds.iter().map(bytes).collect()
}

/// By tc's word.
fn isolation(word: &str) -> (&'static str, f64) {
    let place = ISOLATION.iter().position(|&known| known == word);
    ("isolation", place.expect("a word") as f64)
}

#[track_caller]
fn assert_share(what: &str, got: u64, of: u64, expected: f64, tolerance: f64) {
    let share = got as f64 / of as f64;
    assert!(
        (share - expected).abs() < tolerance,
        "{what}: {share}, expected {expected}"
    );
}

#[test]
fn cake_shapes_to_its_bandwidth_within_half_a_percent() {
    for (bandwidth, overhead) in [(1e6, 0.0), (17_123_456.0, 0.0), (5e8, 0.0), (2e7, 38.0)] {
        let mut link = link(&[("bandwidth", bandwidth), ("overhead", overhead)]);
        let end = Nanos::from_secs(4);
        let offered = Rate::from_bits_per_sec((bandwidth * 1.3) as u64).unwrap();
        let sent: u64 = shares(&mut link, &[packet(0)], offered, end).iter().sum();
        let bytes = bandwidth / 8.0 * 2.0 * 1_500.0 / (1_500.0 + overhead);
        assert_share("of the bandwidth", sent, bytes as u64, 1.0, 0.005);
    }
}

#[test]
fn cake_says_when_the_shaper_lets_the_next_packet_go() {
    // 1500 bytes at 12 Mbit/s: 1 ms.
    let mut queue = queue(BufferLimit::Unlimited, &[("bandwidth", 12e6)]);
    let mut dropped = Vec::new();
    for _ in 0..3 {
        queue.enqueue(Nanos::from_ms(7), packet(0), &mut dropped);
    }
    assert!(queue.dequeue(Nanos::from_ms(7), &mut dropped).is_some());
    assert!(queue.dequeue(Nanos::from_ms(7), &mut dropped).is_none());
    assert_eq!(queue.retry_at(), Some(Nanos::from_ms(8)));
    assert!(queue.dequeue(Nanos(7_999_999), &mut dropped).is_none());
    assert!(queue.dequeue(Nanos::from_ms(8), &mut dropped).is_some());
    assert!(queue.dequeue(Nanos::from_ms(9), &mut dropped).is_some());
    assert_eq!(queue.retry_at(), None);
    // What it did not send while it was empty it does not send later.
    for _ in 0..3 {
        queue.enqueue(Nanos::from_ms(50), packet(0), &mut dropped);
    }
    assert!(queue.dequeue(Nanos::from_ms(50), &mut dropped).is_some());
    assert!(queue.dequeue(Nanos::from_ms(50), &mut dropped).is_none());
}

#[test]
fn cake_gives_a_host_with_one_flow_as_much_as_one_with_ten() {
    let kinds: Vec<Packet> = (0..11)
        .map(|flow| of(flow, u32::from(flow > 0), 0))
        .collect();
    for (word, flows, expected) in [
        ("triple-isolate", true, 0.5),
        ("dual-srchost", true, 0.5),
        ("dual-dsthost", true, 1.0 / 11.0),
        ("flows", true, 1.0 / 11.0),
        ("srchost", false, 0.5),
        ("dsthost", true, 1.0 / 11.0),
    ] {
        for bandwidth in [1e8, f64::INFINITY] {
            let mut link = link(&[("bandwidth", bandwidth), isolation(word)]);
            let rate = if bandwidth < 1e9 { mbit(80) } else { mbit(800) };
            let sent = shares(&mut link, &kinds, rate, Nanos::from_ms(1_000));
            let total = sent.iter().sum();
            assert_share("the one flow", sent[0], total, expected, 0.01);
            if flows {
                // The ten among themselves.
                let fair = (1.0 - expected) / 10.0;
                sent[1..]
                    .iter()
                    .for_each(|&sent| assert_share("each", sent, total, fair, 0.01));
            }
        }
    }
}

#[test]
fn cake_isolates_the_hosts_that_its_word_says() {
    // Sending and receiving host of four flows; the first two share a sender, the first and third a receiver.
    let kinds = [[0, 0], [0, 1], [1, 0], [2, 2]];
    let kinds: Vec<Packet> = (0..)
        .zip(kinds)
        .map(|(flow, hosts)| Packet {
            hosts,
            ..packet(flow)
        })
        .collect();
    for (word, expected) in [
        // A queue for each of three senders, of three receivers, of four pairs.
        ("srchost", [1.0, 1.0, 2.0, 2.0]),
        ("dsthost", [1.0, 2.0, 1.0, 2.0]),
        ("hosts", [1.0; 4]),
        ("flows", [1.0; 4]),
        // A flow's turn is a host's, divided by the flows of the busier of its hosts.
        ("dual-srchost", [1.0, 1.0, 2.0, 2.0]),
        ("dual-dsthost", [1.0, 2.0, 1.0, 2.0]),
        ("triple-isolate", [1.0, 1.0, 1.0, 2.0]),
    ] {
        let mut link = link(&[("bandwidth", 1e8), isolation(word)]);
        let sent = shares(&mut link, &kinds, mbit(80), Nanos::from_ms(1_000));
        let (total, whole) = (sent.iter().sum(), expected.iter().sum::<f64>());
        for (i, (&sent, part)) in sent.iter().zip(expected).enumerate() {
            assert_share(
                &format!("flow {i}, {word}"),
                sent,
                total,
                part / whole,
                0.01,
            );
        }
    }
}

#[test]
fn cake_gives_each_tin_its_share_before_best_effort() {
    // Best effort, bulk, streaming, latency sensitive: 1/16, 1/2 and 1/4 go first.
    let kinds = [of(0, 0, 0), of(1, 0, 8), of(2, 0, 34), of(3, 0, 46)];
    for (tins, expected) in [
        (4.0, [3.0 / 16.0, 1.0 / 16.0, 1.0 / 2.0, 1.0 / 4.0]),
        // AF41 is best effort, which has two flows of one host then.
        (3.0, [11.0 / 32.0, 1.0 / 16.0, 11.0 / 32.0, 1.0 / 4.0]),
        (1.0, [0.25; 4]),
    ] {
        let mut link = link(&[("bandwidth", 2e7), ("tins", tins)]);
        let sent = shares(&mut link, &kinds, mbit(20), Nanos::from_secs(4));
        let total = sent.iter().sum();
        for (i, (&sent, expected)) in sent.iter().zip(expected).enumerate() {
            assert_share(&format!("tin {i} of {tins}"), sent, total, expected, 0.01);
        }
    }
}

#[test]
fn cake_weighs_tins_by_their_quanta_without_a_shaper() {
    let kinds = [of(0, 0, 0), of(1, 0, 8), of(2, 0, 46)];
    let mut link = link(&[]);
    let sent = shares(&mut link, &kinds, mbit(1_000), Nanos::from_ms(400));
    let total = sent.iter().sum();
    // 1024, 64 and 256 bytes in each round.
    for (&sent, quantum) in sent.iter().zip([1_024.0, 64.0, 256.0]) {
        assert_share("a tin", sent, total, quantum / 1_344.0, 0.01);
    }
}

#[test]
fn cake_lends_a_tin_what_the_others_leave() {
    for dscp in [0, 8, 46] {
        let mut link = link(&[("bandwidth", 2e7)]);
        let sent = shares(&mut link, &[of(0, 0, dscp)], mbit(30), Nanos::from_secs(2));
        assert_share("alone", sent[0], 2_500_000, 1.0, 0.005);
    }
}

/// What a tin sent beyond its share while it was alone is not held against it.
#[test]
fn cake_gives_a_tin_its_share_after_it_had_everything() {
    let mut link = link(&[("bandwidth", 2e7)]);
    let (bulk, other) = (of(0, 0, 8), of(1, 1, 0));
    let gap = mbit(20).transmit_time(u64::from(MTU));
    let (joins, end) = (Nanos::from_secs(1), Nanos::from_secs(2));
    let mut now = Nanos::ZERO;
    while now < end {
        link.offer(now, bulk);
        if now >= joins {
            link.offer(now, other);
        }
        now += gap;
    }
    let sent: Vec<_> = link.sent_between(joins, end).collect();
    let of_bulk = sent.iter().filter(|sent| sent.packet.flow == bulk.flow);
    let share = of_bulk.count() as u64;
    assert_share("bulk", share, sent.len() as u64, 1.0 / 16.0, 0.01);
}

#[test]
fn cake_sends_a_latency_sensitive_tin_first_below_its_threshold() {
    let mut link = link(&[("bandwidth", 2e7)]);
    let gap = mbit(20).transmit_time(1_500);
    for n in 0..20_000 {
        link.offer(gap * n, of(0, 0, 0));
        // A tenth of the bandwidth; the threshold is a quarter.
        if n % 10 == 0 {
            link.offer(gap * n, of(1, 1, 46));
        }
    }
    let urgent = link.sent.iter().filter(|sent| sent.packet.dscp == 46);
    let longest = urgent.map(|sent| sent.waited).max().unwrap();
    assert!(longest < gap * 2, "waits {longest}");
}

#[test]
fn cake_sorts_the_classes_of_rfc_4594() {
    let tins = |n, dscps: &[u8]| {
        dscps
            .iter()
            .map(|&dscp| tin_of(n, dscp))
            .collect::<Vec<_>>()
    };
    // CS0, CS1, AF11, AF21, AF31, AF41, CS4, EF, CS7, LE.
    let dscps = [0, 8, 10, 18, 26, 34, 32, 46, 56, 1];
    assert_eq!(tins(1, &dscps), [0; 10]);
    assert_eq!(tins(3, &dscps), [0, 1, 0, 0, 0, 0, 0, 2, 2, 1]);
    assert_eq!(tins(4, &dscps), [0, 1, 0, 2, 2, 2, 3, 3, 3, 1]);
    assert_eq!(tins(8, &dscps), [2, 1, 1, 4, 3, 3, 6, 6, 7, 0]);
    for (n, _) in [(1, ()), (3, ()), (4, ()), (8, ())] {
        assert!((0..64).all(|dscp| tin_of(n, dscp) < n));
    }
}

fn ack(flow: u32, number: u32) -> Packet {
    Packet {
        bytes: 52,
        pure_ack: Some(number),
        ..packet(flow)
    }
}

/// The ACKs of flow 0 that are left when the filter has seen these packets.
fn filtered(ack_filter: f64, packets: &[Packet]) -> Vec<Option<u32>> {
    let changed = [("ack_filter", ack_filter), isolation("srchost")];
    let mut queue = queue(BufferLimit::Unlimited, &changed);
    let mut dropped = Vec::new();
    for packet in packets {
        queue.enqueue(Nanos::ZERO, *packet, &mut dropped);
    }
    let left = std::iter::from_fn(|| queue.dequeue(Nanos::ZERO, &mut Vec::new()));
    let left: Vec<Packet> = left.collect();
    assert_eq!(left.len() + dropped.len(), packets.len());
    assert_eq!(
        (queue.len_pkts(), queue.len_bytes(), queue.tins[0].pkts),
        (0, 0, 0)
    );
    let of_flow = left.into_iter().filter(|packet| packet.flow == 0);
    of_flow.map(|packet| packet.pure_ack).collect()
}

#[test]
fn cakes_ack_filter_keeps_the_newest() {
    let wrap = u32::MAX - 3;
    let train: Vec<Packet> = (0..10).map(|n| ack(0, wrap.wrapping_add(n))).collect();
    let all: Vec<_> = train.iter().map(|packet| packet.pure_ack).collect();
    assert_eq!(filtered(0.0, &train), all);
    assert_eq!(filtered(1.0, &train), all[8..]);
    assert_eq!(filtered(2.0, &train), all[9..]);
}

#[test]
fn cakes_ack_filter_keeps_duplicates_data_and_other_flows() {
    let duplicates = [ack(0, 7), ack(0, 7), ack(0, 7)];
    assert_eq!(filtered(2.0, &duplicates), [Some(7); 3]);
    // An older ACK that comes late makes nothing superfluous.
    assert_eq!(filtered(2.0, &[ack(0, 7), ack(0, 5)]), [Some(7), Some(5)]);
    let mixed = [ack(0, 1), packet(0), ack(1, 9), ack(0, 2)];
    assert_eq!(filtered(1.0, &mixed), [Some(1), None, Some(2)]);
    assert_eq!(
        filtered(2.0, &mixed),
        [Some(1), None, Some(2)],
        "not next to each other"
    );
    let more = [ack(0, 1), packet(0), ack(0, 2), ack(1, 9), ack(0, 3)];
    assert_eq!(filtered(1.0, &more), [None, Some(2), Some(3)]);
}

#[test]
fn cake_gives_flows_queues_of_their_own_where_plain_hashing_shares() {
    let mut queue = queue(BufferLimit::Unlimited, &[]);
    let mut plain = vec![0; QUEUES];
    for flow in 0..256 {
        plain[queue.hash.bucket(flow)] += 1;
        queue.enqueue(Nanos::ZERO, packet(flow), &mut Vec::new());
    }
    assert!(plain.iter().any(|&flows| flows > 1));
    let used = queue.tins[0]
        .flows
        .iter()
        .filter(|flow| !flow.chain.is_empty());
    assert_eq!(used.count(), 256);
}

#[test]
fn cake_counts_hosts_right_when_flows_must_share_queues() {
    // Ten times as many flows as queues, of 2000 hosts, that come and go.
    let mut queue = queue(BufferLimit::Packets(2_000), &[]);
    let mut rng = Stream::new(1, "test");
    let mut dropped = Vec::new();
    for n in 0..200_000_u64 {
        let flow = rng.next_u32() % 10_240;
        queue.enqueue(Nanos(n * 12_000), of(flow, flow % 2_000, 0), &mut dropped);
        // In turns it fills and empties.
        let takes = if n / 20_000 % 2 == 0 { n % 2 } else { 3 };
        for _ in 0..takes {
            queue.dequeue(Nanos(n * 12_000), &mut dropped);
        }
    }
    let tin = &queue.tins[0];
    let bulk = tin
        .flows
        .iter()
        .filter(|flow| flow.set == Set::Bulk)
        .count();
    assert_eq!(tin.bulk_flows as usize, bulk);
    assert_eq!(tin.host_counts(), [bulk as u32; 2]);
    while queue
        .dequeue(Nanos::from_secs(1_000), &mut dropped)
        .is_some()
    {}
    assert_eq!(queue.len_pkts(), 0);
    assert_eq!(queue.tins[0].pkts, 0);
}

#[test]
fn cake_does_not_let_a_sparse_flow_wait_behind_a_bulk_one() {
    let mut link = link(&[("bandwidth", 1e7)]);
    let gap = mbit(10).transmit_time(1_500);
    for n in 0..10_000 {
        link.offer(gap * n, packet(0));
        link.offer(gap * n, packet(0));
        if n % 50 == 0 {
            link.offer(gap * n, packet(1));
        }
    }
    let waits = |flow| {
        let sent = link
            .sent
            .iter()
            .filter(move |sent| sent.packet.flow == flow);
        sent.map(|sent| sent.waited).max().unwrap()
    };
    assert!(waits(1) < gap * 2, "{} of the sparse flow", waits(1));
    assert!(waits(0) > Nanos::from_ms(50), "{} of the other", waits(0));
}

#[test]
fn cake_keeps_responsive_flows_near_its_target() {
    let (from, to) = (Nanos::from_secs(10), Nanos::from_secs(60));
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let mut link = link(&[("bandwidth", 2e7)]);
        link.run_reno(16, Nanos::from_ms(40), Nanos::ZERO, to, ecn);
        let wait = link.mean_wait(from, to);
        assert!(wait < Nanos::from_ms(10), "{wait} at a target of 5 ms");
        let sent = link.sent_between(from, to).count() as u64 * 1_500;
        assert_share(
            "of the link",
            sent,
            mbit(20).bytes_in(to - from),
            0.99,
            0.01,
        );
        if ecn == Ecn::Ect0 {
            assert!(link.dropped.is_empty(), "marks do");
        }
    }
}

/// Method: packets a ms apart, each with the same wait; ms of the drops.
#[test]
fn cobalt_drops_early_in_its_first_wait_above_target_and_an_interval_into_later_ones() {
    let settings = Settings {
        target: Nanos::from_ms(5),
        interval: Nanos::from_ms(100),
        packet_time: Nanos::from_us(240),
    };
    let mut cobalt = Cobalt::default();
    let mut rng = Stream::new(1, "path.queue");
    let mut drops = |ms: Range<u64>, wait: Nanos| -> Vec<u64> {
        ms.filter(|&ms| {
            let now = Nanos::from_ms(ms);
            let enqueued = now - wait;
            let mut packet = Packet {
                enqueued,
                ..of(0, 0, 0)
            };
            cobalt.drops(&settings, &mut packet, now, &mut rng)
        })
        .collect()
    };
    let (short, long) = (Nanos::from_ms(4), Nanos::from_ms(6));
    assert!(drops(100..200, short).is_empty());
    // The second packet, and 100 ms / sqrt(2) later.
    assert_eq!(drops(200..300, long), [201, 271]);
    assert!(drops(300..1_000, short).is_empty());
    assert_eq!(drops(1_000..1_150, long), [1_100]);
}

#[test]
fn blue_rises_when_the_buffer_overflows_and_falls_when_it_is_empty() {
    let settings = Settings {
        target: Nanos::from_ms(5),
        interval: Nanos::from_ms(100),
        packet_time: Nanos::ZERO,
    };
    let mut cobalt = Cobalt::default();
    let mut rng = Stream::new(1, "test");
    let mut share = |cobalt: &Cobalt, now: Nanos| {
        let drops = (0..20_000).filter(|_| {
            let mut fresh = packet(0);
            fresh.enqueued = now;
            cobalt.clone().drops(&settings, &mut fresh, now, &mut rng)
        });
        drops.count() as f64 / 20_000.0
    };
    // 64 overflows, more than a target apart: 64/256.
    let mut now = Nanos::from_secs(1);
    for _ in 0..64 {
        cobalt.buffer_full(&settings, now);
        cobalt.buffer_full(&settings, now + Nanos::from_ms(1));
        now += Nanos::from_ms(6);
    }
    let risen = share(&cobalt, now);
    assert!((risen - 0.25).abs() < 0.016, "{risen}");
    // 512 times 1/4096 less.
    for _ in 0..512 {
        cobalt.queue_empty(&settings, now);
        now += Nanos::from_ms(6);
    }
    let fallen = share(&cobalt, now);
    assert!((fallen - 0.125).abs() < 0.012, "{fallen}");
    assert!(!cobalt.rests(now));
    for _ in 0..600 {
        cobalt.queue_empty(&settings, now);
        now += Nanos::from_ms(6);
    }
    assert!(cobalt.rests(now + Nanos::from_secs(1)));
}

#[test]
fn cake_that_is_full_drops_from_the_longest_queue() {
    let mut queue = queue(BufferLimit::Unlimited, &[("memory_limit", 30_000.0)]);
    let mut dropped = Vec::new();
    for flow in [0, 0, 0, 1, 1, 2].into_iter().chain([3; 40]) {
        queue.enqueue(Nanos::ZERO, packet(flow), &mut dropped);
    }
    assert_eq!(queue.len_bytes(), 30_000);
    assert_eq!(dropped.len(), 46 - 20);
    assert!(dropped.iter().all(|packet| packet.flow == 3));
}

#[test]
fn cakes_memory_limit_follows_bandwidth_and_rtt() {
    let limit = |changed: &[(&str, f64)]| queue(BufferLimit::Unlimited, changed).memory_limit;
    assert_eq!(limit(&[]), 10_240 * 1_500);
    // 4 × 10 Mbit/s × 100 ms is less than 4 MiB; 4 × 200 Mbit/s × 100 ms are 10 MB.
    assert_eq!(limit(&[("bandwidth", 1e7)]), 4 << 20);
    assert_eq!(limit(&[("bandwidth", 2e8)]), 10_000_000);
    assert_eq!(
        limit(&[("bandwidth", 2e8), ("memory_limit", 5e6)]),
        5_000_000
    );
}

#[test]
fn cake_lengthens_its_target_where_a_packet_takes_long() {
    // At 1 Mbit/s a packet takes 12 ms, 192 ms in the tin of a sixteenth.
    let queue = queue(BufferLimit::Unlimited, &[("bandwidth", 1e6)]);
    let settings: Vec<_> = queue.tins.iter().map(|tin| tin.settings).collect();
    assert_eq!(settings[0].target, Nanos::from_ms(18));
    assert_eq!(settings[0].interval, Nanos::from_ms(113));
    let long = settings[1].target;
    assert!(
        Nanos::from_ms(288) <= long && long < Nanos::from_ms(289),
        "{long}"
    );
    assert_eq!(settings[1].interval, long * 2);
}
