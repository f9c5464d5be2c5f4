//! Claims of Floyd and Jacobson 1993 and of Linux' RED, on a link of 10 Mbit/s.

use super::super::testing::{Link, MTU, mbit, packet, setup};
use super::*;
use crate::packet::Ecn;

const MIN: f64 = 30_000.0;
const MAX: f64 = 90_000.0;

fn red(limit: BufferLimit, changed: &[(&str, f64)]) -> Red {
    let thresholds = [("min", MIN), ("max", MAX)];
    let all: Vec<_> = thresholds.iter().chain(changed).copied().collect();
    Red::new(setup(&KIND, limit, mbit(10), &all))
}

fn link(changed: &[(&str, f64)]) -> Link<Red> {
    let queue = red(BufferLimit::Bytes(360_000), changed);
    Link::new(mbit(10), Box::new(queue))
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_ms(ms)
}

impl Red {
    fn avg_bytes(&self) -> f64 {
        self.avg as f64 / (1_u64 << self.settings.wlog) as f64
    }

    fn set_avg(&mut self, bytes: f64) {
        self.avg = (bytes * (1_u64 << self.settings.wlog) as f64) as u64;
        self.count = None;
    }
}

#[test]
fn red_average_follows_the_backlog_with_its_weight() {
    // 1,000 arrivals that find 20 packets: avg = backlog * (1 - (1 - w)^n).
    let mut red = red(BufferLimit::Unlimited, &[("wlog", 9.0)]);
    let mut dropped = Vec::new();
    red.idle_since = None;
    for _ in 0..19 {
        red.fifo.push(packet(0));
    }
    for n in 0..=1_000 {
        let expected = 28_500.0 * (1.0 - (1.0 - 1.0 / 512.0_f64).powi(n));
        let got = red.avg_bytes();
        assert!(
            (got - expected).abs() < 30.0,
            "{n}: {got} and not {expected}"
        );
        red.enqueue(ms(1), packet(0), &mut dropped);
        red.fifo.pop();
    }
}

#[test]
fn red_drop_probability_ramps_from_min_to_max() {
    // With gaps spread over 1 .. 1/pb a share of 2 pb / (1 + pb) is dropped.
    let mut red = red(BufferLimit::Unlimited, &[("probability", 0.1)]);
    for step in [1.0, 2.0, 3.0, 4.0] {
        red.set_avg(MIN + step / 5.0 * (MAX - MIN));
        let pb = 0.1 * step / 5.0;
        let signals = (0..200_000).filter(|_| red.signals() == Some(Signal::Early));
        let share = signals.count() as f64 / 200_000.0;
        let expected = 2.0 * pb / (1.0 + pb);
        assert!(
            (share / expected - 1.0).abs() < 0.03,
            "{pb}: {share}, {expected}"
        );
    }
    for (avg, signal) in [(MIN - 1.0, None), (MAX, Some(Signal::Forced))] {
        red.set_avg(avg);
        assert!((0..10_000).all(|_| red.signals() == signal), "{avg}");
    }
}

#[test]
fn red_spreads_the_gaps_between_drops_evenly() {
    let mut red = red(BufferLimit::Unlimited, &[("probability", 0.02)]);
    red.set_avg((MIN + MAX) / 2.0);
    let signals: Vec<i32> = (0..1_000_000).filter(|_| red.signals().is_some()).collect();
    let gaps: Vec<i32> = signals.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // pb is 1 %: 1 .. 100, a quarter of them in each quarter.
    assert!(gaps.iter().all(|gap| (1..=100).contains(gap)));
    for quarter in 0..4 {
        let within = gaps
            .iter()
            .filter(|gap| (**gap - 1) / 25 == quarter)
            .count();
        let share = within as f64 / gaps.len() as f64;
        assert!((share - 0.25).abs() < 0.02, "{quarter}: {share}");
    }
}

#[test]
fn red_keeps_the_average_of_reno_flows_between_its_thresholds() {
    let mut link = link(&[("probability", 0.1)]);
    link.run_reno(5, ms(50), ms(0), ms(60_000), Ecn::NotEct);
    // 30 kB take 24 ms and 90 kB take 72 ms.
    let wait = link.mean_wait(ms(10_000), ms(60_000));
    assert!(ms(24) < wait && wait < ms(72), "{wait}");
    let sent = link.sent_between(ms(10_000), ms(60_000)).count();
    assert!(sent > 41_000, "{sent}");
}

#[test]
fn red_burst_sets_the_weight() {
    // Most packets that may come at once with a min of 32 packets: the table in
    // the comment of Linux' red.h, where its figures are not rounded up.
    for (wlog, most) in [(5, 57), (6, 75), (7, 101)] {
        assert_eq!(wlog_of_burst(most, 32.0), wlog, "{most}");
        assert_eq!(wlog_of_burst(most + 1, 32.0), wlog + 1, "{most} + 1");
    }
}

#[test]
fn red_lets_a_burst_of_its_size_pass() {
    let changed = [("avpkt", 1_500.0), ("burst", 55.0)];
    let mut link = link(&changed);
    for _ in 0..=55 {
        link.offer(ms(1), packet(0));
    }
    assert!(link.dropped.is_empty());
    assert!(link.queue().len_bytes() > MIN as u64);
}

#[test]
fn red_average_decays_while_the_link_is_idle() {
    // w = 2^-5 and 0.8 ms for a packet of 1000 B: after m packets' time Linux
    // shifts by m * -ln(1 - w), rounded down to cells and to bits.
    let mut red = red(BufferLimit::Unlimited, &[("wlog", 5.0)]);
    red.set_avg(64_000.0);
    for (idle, packets) in [(ms(80), 100.0), (ms(160), 200.0), (ms(320), 400.0)] {
        let bits = packets * -(1.0 - 1.0 / 32.0_f64).ln();
        let got = red.settings.idle.damped(red.avg, idle);
        let least = red.avg >> bits as u32;
        assert!(got == least || got == least * 2, "{idle}: {got}, {least}");
    }
    let mut before = red.avg;
    for us in 0..2_000 {
        let now = red.settings.idle.damped(red.avg, Nanos::from_us(us * 100));
        assert!(now <= before, "{us}: {now}, {before}");
        before = now;
    }
    assert_eq!(red.settings.idle.damped(red.avg, Nanos::from_secs(100)), 0);
}

#[test]
fn red_is_idle_from_the_dequeue_that_finds_nothing() {
    let mut link = link(&[("wlog", 5.0)]);
    link.queue().set_avg(25_000.0);
    link.queue().idle_since = None;
    link.offer(ms(1_000), packet(0));
    link.run_until(ms(1_100));
    // The packet took 1.2 ms.
    assert_eq!(link.queue().idle_since, Some(Nanos::from_us(1_001_200)));
    let before = link.queue().avg;
    link.offer(ms(2_000), packet(0));
    assert!(link.queue().avg < before / 1_000, "{}", link.queue().avg);
}

#[test]
fn red_marks_and_drops_as_ecn_and_harddrop_say() {
    let cases = [
        // (ecn, harddrop, code, average, marks)
        (1.0, 0.0, Ecn::Ect0, MAX * 0.9, true),
        (1.0, 0.0, Ecn::NotEct, MAX * 0.9, false),
        (0.0, 0.0, Ecn::Ect0, MAX * 0.9, false),
        (1.0, 0.0, Ecn::Ect0, MAX * 1.1, true),
        (1.0, 1.0, Ecn::Ect0, MAX * 1.1, false),
        (1.0, 1.0, Ecn::Ect0, MAX * 0.9, true),
    ];
    for (ecn, harddrop, code, avg, marks) in cases {
        let mut red = red(
            BufferLimit::Unlimited,
            &[("ecn", ecn), ("harddrop", harddrop), ("wlog", 20.0)],
        );
        red.set_avg(avg);
        red.idle_since = None;
        let mut dropped = Vec::new();
        let mut marked = 0;
        for _ in 0..1_000 {
            let packet = Packet {
                ecn: code,
                ..packet(0)
            };
            red.enqueue(ms(0), packet, &mut dropped);
            while let Some(packet) = red.fifo.pop() {
                marked += usize::from(packet.ecn == Ecn::Ce);
            }
        }
        let case = format!("{ecn} {harddrop} {code:?} {avg}");
        assert_eq!((marked > 0, !dropped.is_empty()), (marks, !marks), "{case}");
    }
}

#[test]
fn red_adaptive_moves_the_average_into_the_middle() {
    // So many flows that 2 % at max are far too few: without adaptation the
    // average stands at max.
    let run = |adaptive| {
        let mut link = link(&[("adaptive", adaptive), ("wlog", 9.0)]);
        link.run_reno(30, ms(50), ms(0), ms(120_000), Ecn::NotEct);
        (
            link.mean_wait(ms(60_000), ms(120_000)),
            link.queue().max_prob,
        )
    };
    // The middle fifth: 54 kB take 43 ms and 66 kB take 53 ms.
    let (wait, prob) = run(1.0);
    assert!(ms(43) < wait && wait < ms(53), "{wait}");
    assert!(prob > ONE / 50 && prob <= MOST_PROB + LEAST_PROB, "{prob}");
    let (wait, prob) = run(0.0);
    assert!(wait > ms(60), "{wait}");
    assert_eq!(prob, (0.02 * ONE as f64) as u64);
}

#[test]
fn red_adaptive_that_catches_up_late_is_where_one_is_that_was_on_time() {
    for avg in [10_000.0, 50_000.0, 80_000.0] {
        for idle_since in [None, Some(ms(0))] {
            let make = || {
                let mut red = red(BufferLimit::Unlimited, &[("adaptive", 1.0)]);
                red.set_avg(avg);
                red.idle_since = idle_since;
                red.adapt_at = ADAPT_INTERVAL;
                red
            };
            let (mut on_time, mut late) = (make(), make());
            for i in 1..=40 {
                on_time.adapt(Nanos(ADAPT_INTERVAL.0 * i));
            }
            late.adapt(Nanos(ADAPT_INTERVAL.0 * 40));
            assert_eq!(on_time.max_prob, late.max_prob);
            assert_eq!(on_time.adapt_at, late.adapt_at);
        }
    }
}

#[test]
fn red_takes_its_thresholds_from_the_limit_as_tc_does() {
    let of = |limit, rate, changed: &[(&str, f64)]| {
        let setup = setup(&KIND, limit, rate, changed);
        thresholds(&setup)
    };
    let bytes = BufferLimit::Bytes(600_000);
    assert_eq!(of(bytes, mbit(10), &[]), (50_000, 150_000));
    assert_eq!(of(bytes, mbit(10), &[("min", 40_000.0)]), (40_000, 120_000));
    assert_eq!(of(bytes, mbit(10), &[("max", 90_000.0)]), (30_000, 90_000));
    let packets = BufferLimit::Packets(400);
    assert_eq!(of(packets, mbit(10), &[]), (50_000, 150_000));
    // Without a limit: five packets, or 2.5 ms of the link.
    let unlimited = BufferLimit::Unlimited;
    let five = u64::from(5 * MTU);
    assert_eq!(of(unlimited, mbit(10), &[]), (five, 3 * five));
    assert_eq!(of(unlimited, mbit(1_000), &[]), (312_500, 937_500));
}

#[test]
fn red_drops_the_arriving_packet_at_its_limit() {
    let mut link = Link::new(
        mbit(10),
        Box::new(red(BufferLimit::Packets(50), &[("wlog", 20.0)])),
    );
    for handle in 0..55 {
        let packet = Packet {
            handle,
            ..packet(0)
        };
        link.offer(ms(0), packet);
    }
    let dropped: Vec<u32> = link.dropped.iter().map(|(_, p)| p.handle).collect();
    assert_eq!(dropped, [51, 52, 53, 54], "one is on the wire");
}
