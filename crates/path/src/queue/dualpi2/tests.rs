use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::testing::{Link, MTU, mbit, packet, setup};
use super::*;

fn queue(changed: &[(&str, f64)]) -> DualPi2 {
    DualPi2::new(setup(&KIND, BufferLimit::Unlimited, mbit(100), changed))
}

fn with_ecn(ecn: Ecn) -> Packet {
    Packet { ecn, ..packet(0) }
}

/// A queue whose controller stands still at a probability.
fn standing(p: f64, changed: &[(&str, f64)]) -> DualPi2 {
    let mut queue = queue(changed);
    queue.pi.probability = p;
    queue.pi.next = Some(Nanos::MAX);
    queue
}

/// Shares of 40,000 packets that were dropped, and marked of those that were
/// not, while the queue has a backlog and no wait.
fn shares(queue: &mut DualPi2, ecn: Ecn) -> (f64, f64) {
    let mut dropped = Vec::new();
    let (mut sent, mut marked) = (0, 0);
    for _ in 0..40_100 {
        queue.enqueue(Nanos::ZERO, with_ecn(ecn), &mut dropped);
        if queue.len_pkts() > 100 {
            let packet = queue.dequeue(Nanos::ZERO, &mut dropped).unwrap();
            sent += 1;
            marked += u32::from(packet.ecn == Ecn::Ce);
        }
    }
    let drops = dropped.len() as f64;
    (
        drops / (drops + f64::from(sent)),
        f64::from(marked) / f64::from(sent),
    )
}

#[track_caller]
fn assert_near(got: f64, expected: f64, tolerance: f64) {
    assert!(
        (got - expected).abs() < tolerance,
        "{got}, expected {expected}"
    );
}

#[test]
fn dualpi2_marks_l4s_with_twice_what_it_squares_for_classic() {
    // Five standard deviations of 40,000 draws.
    let (dropped, marked) = shares(&mut standing(0.1, &[]), Ecn::NotEct);
    assert_near(dropped, 0.01, 0.0025);
    assert_eq!(marked, 0.0);
    let (dropped, marked) = shares(&mut standing(0.1, &[]), Ecn::Ect0);
    assert_eq!(dropped, 0.0, "a classic sender with ECN is marked");
    assert_near(marked, 0.01, 0.0025);
    let (dropped, marked) = shares(&mut standing(0.1, &[]), Ecn::Ect1);
    assert_eq!(dropped, 0.0);
    assert_near(marked, 0.2, 0.01);
}

#[test]
fn dualpi2_drops_whatever_the_ecn_upon_overload() {
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
        let (dropped, marked) = shares(&mut standing(0.6, &[]), ecn);
        assert_near(dropped, 0.36, 0.012);
        let expected = if ecn == Ecn::Ect1 { 1.0 } else { 0.0 };
        assert_eq!(marked, expected, "{ecn:?}");
    }
}

#[test]
fn dualpi2_drops_no_l4s_upon_overload_when_told_not_to() {
    let mut queue = standing(0.5, &[("drop_overload", 0.0)]);
    assert_eq!(shares(&mut queue, Ecn::Ect1), (0.0, 1.0));
    // The controller does not pass the probability that marks all.
    queue.pi.next = Some(Nanos::ZERO);
    queue.catch_up(Nanos::from_secs(100));
    assert_eq!(queue.pi.probability, 0.5);
}

#[test]
fn dualpi2_signals_nothing_to_a_queue_of_less_than_two_packets() {
    let mut queue = standing(0.9, &[]);
    let mut dropped = Vec::new();
    for n in 0..1_000 {
        let ecn = if n % 2 == 0 { Ecn::NotEct } else { Ecn::Ect1 };
        queue.enqueue(Nanos::ZERO, with_ecn(ecn), &mut dropped);
        let sent = queue.dequeue(Nanos::ZERO, &mut dropped).unwrap();
        assert_eq!(sent.ecn, ecn);
    }
    assert!(dropped.is_empty());
}

#[test]
fn dualpi2_marks_l4s_that_waited_longer_than_the_step() {
    let mut queue = standing(0.0, &[]);
    let ms = Nanos::from_ms(1);
    for (ecn, now, expected) in [
        (Ecn::Ect1, ms, Ecn::Ect1),
        (Ecn::Ect1, ms + Nanos(1), Ecn::Ce),
        (Ecn::Ect0, ms + Nanos(1), Ecn::Ect0),
    ] {
        queue.enqueue(Nanos::ZERO, with_ecn(ecn), &mut Vec::new());
        assert_eq!(queue.dequeue(now, &mut Vec::new()).unwrap().ecn, expected);
    }
}

#[test]
fn dualpi2_applies_the_step_from_min_qlen_step_waiting_l4s_packets_on() {
    for (least, expected) in [
        (0.0, [Ecn::Ce; 4]),
        (1.0, [Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::Ce]),
        (2.0, [Ecn::Ect1, Ecn::Ect1, Ecn::Ce, Ecn::Ce]),
    ] {
        let mut queue = standing(0.0, &[("min_qlen_step", least)]);
        let mut dropped = Vec::new();
        // Classic packets do not count.
        for ecn in [Ecn::NotEct, Ecn::NotEct].into_iter().chain([Ecn::Ect1; 4]) {
            queue.enqueue(Nanos::ZERO, with_ecn(ecn), &mut dropped);
        }
        let late = Nanos::from_ms(2);
        let sent = [(); 4].map(|()| queue.dequeue(late, &mut dropped).unwrap().ecn);
        assert_eq!(sent, expected, "{least}");
    }
}

#[test]
fn dualpi2_cautions_where_one_packet_takes_longer_than_the_step() {
    let caution = |rate, changed: &[(&str, f64)]| {
        let setup = setup(&KIND, BufferLimit::Unlimited, rate, changed);
        KIND.caution.unwrap()(&setup.params, rate, MTU)
    };
    // 12 Mbit/s are 1 ms for 1500 bytes, exactly.
    assert_eq!(caution(mbit(12), &[]), None);
    let text = caution(mbit(10), &[]).unwrap();
    for part in [
        "1500 bytes",
        "1200us",
        "10Mbit/s",
        "dualpi2.step = 1ms",
        "min_qlen_step = 1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(caution(mbit(10), &[("min_qlen_step", 1.0)]), None);
    assert_eq!(caution(mbit(10), &[("step", 1.2e6)]), None);
    assert!(caution(mbit(12), &[("step", 999_999.0)]).is_some());
}

#[test]
fn dualpi2_gives_classic_a_tenth_while_both_wait() {
    for (protection, expected) in [(0.1, 0.1), (0.5, 0.5), (0.0, 0.0)] {
        let mut queue = standing(0.0, &[("classic_protection", protection)]);
        let mut dropped = Vec::new();
        for n in 0..40_000 {
            let ecn = if n % 2 == 0 { Ecn::NotEct } else { Ecn::Ect1 };
            queue.enqueue(Nanos::ZERO, with_ecn(ecn), &mut dropped);
        }
        let sent = (0..10_000).map(|_| queue.dequeue(Nanos::ZERO, &mut dropped).unwrap());
        let classic = sent.filter(|packet| packet.ecn == Ecn::NotEct).count();
        assert_near(classic as f64 / 10_000.0, expected, 0.002);
    }
}

/// The probability after a second, when the controller is asked every `ask` ns.
fn asked_every(ask: usize, waits: bool) -> f64 {
    // So small that a packet's wait of a second stays below 1.
    let mut queue = if waits {
        queue(&[("alpha", 0.001), ("beta", 0.1)])
    } else {
        queue(&[])
    };
    queue.catch_up(Nanos::ZERO);
    queue.pi.probability = 0.7;
    queue.pi.wait_s = 0.002;
    if waits {
        queue.enqueue(Nanos::ZERO, with_ecn(Ecn::NotEct), &mut Vec::new());
    }
    for at in (0..=1_000_000_000).step_by(ask) {
        queue.catch_up(Nanos(at));
    }
    queue.pi.probability
}

#[test]
fn dualpi2_catches_up_with_what_it_would_have_computed_in_time() {
    // 62 times: the empty queue is 15 ms below the target, and was at 2 ms; the
    // packet waits 16 ms more each time.
    let empty = 0.7 - 62.0 * 0.16 * 0.015 - 3.2 * 0.002;
    let mean_wait = 0.016 * 63.0 / 2.0;
    let waiting = 0.7 + 62.0 * 0.001 * (mean_wait - 0.015) + 0.1 * (62.0 * 0.016 - 0.002);
    for (waits, expected) in [(false, empty), (true, waiting)] {
        let often = asked_every(1_000_000, waits);
        let once = asked_every(1_000_000_000, waits);
        assert!((often - once).abs() < 1e-9, "{waits}: {often} and {once}");
        assert_near(often, expected, 1e-9);
    }
    // However long it rested, at once.
    let mut queue = standing(1.0, &[]);
    queue.pi.next = Some(Nanos::ZERO);
    queue.catch_up(Nanos::from_secs(1_000_000_000));
    assert_eq!(queue.pi.probability, 0.0);
}

/// Reno senders (half the window upon a loss or mark, once per round trip) and
/// scalable ones (half a segment per mark) share a link for a while.
fn run(link: &mut Link<DualPi2>, classic: u32, scalable: u32, rtt: Nanos, end: Nanos) {
    struct Sender {
        cwnd: f64,
        inflight: u32,
        reduced: Nanos,
        ecn: Ecn,
    }
    let sender = |flow| Sender {
        cwnd: 10.0,
        inflight: 0,
        reduced: Nanos::ZERO,
        ecn: if flow < classic {
            Ecn::NotEct
        } else {
            Ecn::Ect1
        },
    };
    let mut senders: Vec<Sender> = (0..classic + scalable).map(sender).collect();
    let offer = |link: &mut Link<DualPi2>, sender: &mut Sender, flow, now| {
        while f64::from(sender.inflight) < sender.cwnd.floor() {
            sender.inflight += 1;
            let ecn = sender.ecn;
            link.offer(
                now,
                Packet {
                    ecn,
                    ..packet(flow)
                },
            );
        }
    };
    let mut acks = BinaryHeap::new();
    for (flow, sender) in (0..).zip(&mut senders) {
        offer(link, sender, flow, Nanos::ZERO);
    }
    let (mut seen_sent, mut seen_dropped) = (0, 0);
    let mut now = Nanos::ZERO;
    while now < end {
        for sent in &link.sent[seen_sent..] {
            acks.push(Reverse((
                sent.at + rtt,
                sent.packet.flow,
                sent.packet.ecn == Ecn::Ce,
            )));
        }
        for (at, packet) in &link.dropped[seen_dropped..] {
            acks.push(Reverse((*at + rtt, packet.flow, true)));
        }
        (seen_sent, seen_dropped) = (link.sent.len(), link.dropped.len());
        let Some(Reverse((at, flow, congested))) = acks.pop() else {
            now += Nanos::from_us(10);
            link.run_until(now);
            continue;
        };
        if at > now + Nanos::from_us(10) {
            // Packets that leave meanwhile may be acked before it.
            acks.push(Reverse((at, flow, congested)));
            now += Nanos::from_us(10);
            link.run_until(now);
            continue;
        }
        now = now.max(at);
        let sender = &mut senders[flow as usize];
        sender.inflight -= 1;
        if !congested {
            sender.cwnd += 1.0 / sender.cwnd;
        } else if sender.ecn == Ecn::Ect1 {
            sender.cwnd = (sender.cwnd - 0.5).max(2.0);
        } else if now.saturating_sub(sender.reduced) > rtt {
            sender.cwnd = (sender.cwnd / 2.0).max(2.0);
            sender.reduced = now;
        }
        offer(link, sender, flow, now);
    }
}

#[test]
fn dualpi2_keeps_l4s_below_2_ms_and_classic_at_its_target() {
    let rate = mbit(100);
    let mut link = Link::new(rate, Box::new(queue(&[])));
    let (from, to) = (Nanos::from_secs(20), Nanos::from_secs(60));
    run(&mut link, 2, 2, Nanos::from_ms(10), to);
    let mut waits = [Vec::new(), Vec::new()];
    let mut bytes = [0_u64; 2];
    for sent in link.sent_between(from, to) {
        let l4s = usize::from(sent.packet.flow >= 2);
        waits[l4s].push(sent.waited);
        bytes[l4s] += u64::from(MTU);
    }
    waits.iter_mut().for_each(|waits| waits.sort());
    let mean = |waits: &[Nanos]| {
        waits.iter().map(|wait| wait.as_secs_f64()).sum::<f64>() / waits.len() as f64
    };
    let l4s_p99 = waits[1][waits[1].len() * 99 / 100];
    assert!(l4s_p99 < Nanos::from_ms(2), "L4S waits {l4s_p99}");
    let classic = mean(&waits[0]);
    assert_near(classic, 0.015, 0.004);
    let total: u64 = bytes.iter().sum();
    let full = rate.bytes_in(to - from) as f64;
    assert!(total as f64 > 0.97 * full, "{}", total as f64 / full);
    // Windows alike (RFC 9332 section 2.1); rates differ as the round trips do.
    let windows =
        bytes[1] as f64 * (0.010 + mean(&waits[1])) / (bytes[0] as f64 * (0.010 + classic));
    assert!(
        (0.5..2.0).contains(&windows),
        "windows of L4S over classic: {windows}"
    );
}

#[test]
fn classic_has_its_turn_while_it_has_credit() {
    for (credit, first) in [(1, Ecn::NotEct), (0, Ecn::Ect1)] {
        let (mut queue, mut dropped) = (queue(&[]), Vec::new());
        for ecn in [Ecn::Ect1, Ecn::NotEct] {
            queue.enqueue(Nanos::ZERO, with_ecn(ecn), &mut dropped);
        }
        queue.credit = credit;
        let sent = queue.dequeue(Nanos::ZERO, &mut dropped).unwrap();
        assert_eq!(sent.ecn, first, "{credit}");
    }
}
