//! Claims of RFC 8033, on a link of 10 Mbit/s: a full packet takes 1.2 ms.

use super::super::testing::{Link, mbit, packet, setup};
use super::controller::{BURST, DQ_RATE_BITS};
use super::settings::ONE;
use super::*;
use crate::packet::Ecn;
use crate::queue::BufferLimit;

fn link(limit: BufferLimit, changed: &[(&str, f64)]) -> Link<PieQueue> {
    let setup = setup(&KIND, limit, mbit(10), changed);
    Link::new(mbit(10), Box::new(PieQueue::new(setup)))
}

fn settings(changed: &[(&str, f64)]) -> Settings {
    let setup = setup(&KIND, BufferLimit::Unlimited, mbit(10), changed);
    Settings::new(&setup.params, setup.max_packet_bytes, percent(MARK_PERCENT))
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_ms(ms)
}

fn share(prob: u64) -> f64 {
    prob as f64 / ONE as f64
}

fn prob(share: f64) -> u64 {
    (share * ONE as f64) as u64
}

/// A PIE past its burst allowance, at a probability and a delay.
fn pie(probability: f64, delay: Nanos) -> Pie {
    Pie {
        prob: prob(probability),
        delay,
        delay_before: delay,
        burst: Nanos::ZERO,
        ..Pie::default()
    }
}

#[test]
fn pie_holds_the_wait_of_reno_flows_near_15_ms() {
    for estimator in [0.0, 1.0] {
        let mut link = link(
            BufferLimit::Packets(1_000),
            &[("dq_rate_estimator", estimator)],
        );
        link.run_reno(5, ms(50), ms(0), ms(100_000), Ecn::NotEct);
        let wait = link.mean_wait(ms(20_000), ms(100_000));
        assert!(ms(11) < wait && wait < ms(19), "{estimator}: {wait}");
        // And the link stays busy: 833 packets a second.
        let sent = link.sent_between(ms(20_000), ms(100_000)).count();
        assert!(sent > 64_000, "{estimator}: {sent}");
    }
}

#[test]
fn pie_lets_the_first_burst_of_150_ms_pass() {
    // Twice the link's rate, long after the queue was set up.
    let mut link = link(BufferLimit::Packets(1_000), &[]);
    link.offer(ms(0), packet(0));
    let start = ms(10_000);
    link.offer_constant(start, start + ms(3_000), mbit(20), packet(0));
    let first = link.dropped[0].0 - start;
    assert!(first >= ms(150), "{first}");
    assert!(first < ms(250), "{first}");
    let wait = link.sent_between(start + ms(140), start + ms(150)).last();
    assert!(wait.unwrap().waited > ms(60), "the burst did wait");
}

#[test]
fn pie_grants_the_burst_again_after_a_quiet_time() {
    let mut link = link(BufferLimit::Packets(1_000), &[]);
    link.offer_constant(ms(0), ms(2_000), mbit(12), packet(0));
    link.drain();
    assert!(!link.dropped.is_empty());
    let before = link.dropped.len();
    let again = ms(20_000);
    link.offer_constant(again, again + ms(140), mbit(20), packet(0));
    assert_eq!(link.dropped.len(), before);
}

#[test]
fn pie_corrects_its_probability_by_the_equation_of_section_4_2() {
    // At 50 %, where the gains are whole: 1/8 per second of distance and 5/4
    // per second of change.
    let mut pie = pie(0.5, ms(25));
    pie.delay_before = ms(20);
    pie.update(&settings(&[]), 100_000);
    let expected = 0.5 + 0.125 * 0.010 + 1.25 * 0.005;
    assert!(
        (share(pie.prob) - expected).abs() < 1e-6,
        "{}",
        share(pie.prob)
    );
}

#[test]
fn pie_scales_its_gains_as_section_4_2_says() {
    let steps = [
        (5e-7, 2_048.0),
        (5e-6, 512.0),
        (5e-5, 128.0),
        (5e-4, 32.0),
        (5e-3, 8.0),
        (5e-2, 2.0),
        (0.5, 1.0),
    ];
    for (probability, divisor) in steps {
        let mut pie = pie(probability, ms(23));
        pie.update(&settings(&[]), 100_000);
        let step = share(pie.prob) - probability;
        let expected = 0.125 * 0.008 / divisor;
        assert!(
            (step / expected - 1.0).abs() < 1e-3,
            "{probability}: {step} and not {expected}"
        );
    }
}

#[test]
fn pie_raises_a_high_probability_by_2_percent_at_most_unless_the_wait_is_long() {
    let pie_of = |before, delay| {
        let mut pie = pie(0.2, delay);
        pie.delay_before = before;
        pie.update(&settings(&[]), 100_000);
        share(pie.prob) - 0.2
    };
    let capped = pie_of(ms(0), ms(200));
    assert!((capped - 0.02).abs() < 1e-6, "{capped}");
    let long = pie_of(ms(0), ms(300));
    assert!((long - 0.04).abs() < 1e-6, "{long}");
}

#[test]
fn pie_forgets_on_an_unused_link_and_keeps_within_0_and_1() {
    let settings = settings(&[]);
    let mut pie = pie(1.0, ms(1_000));
    for _ in 0..10 {
        pie.update(&settings, 100_000);
        assert_eq!(pie.prob, ONE);
    }
    pie.delay = Nanos::ZERO;
    for _ in 0..2_000 {
        let before = pie.prob;
        pie.update(&settings, 0);
        assert!(pie.prob < before || before == 0);
    }
    assert_eq!(pie.prob, 0);
    assert_eq!(pie.burst, BURST);
}

#[test]
fn pie_never_drops_while_two_packets_wait_or_fewer_or_the_wait_is_short() {
    let mut rng = Stream::new(1, "pie");
    let settings = settings(&[]);
    let cases = [
        // (probability, wait, backlog, burst left, may drop)
        (0.9, ms(100), 2_999, ms(0), false),
        (0.9, ms(100), 3_000, ms(0), true),
        (0.19, ms(7), 100_000, ms(0), false),
        (0.21, ms(7), 100_000, ms(0), true),
        // Half of the target is not short.
        (0.19, Nanos(7_499_999), 100_000, ms(0), false),
        (0.19, Nanos(7_500_000), 100_000, ms(0), true),
        (0.9, ms(100), 100_000, ms(1), false),
    ];
    for (probability, delay, backlog, burst, drops) in cases {
        let mut pie = pie(probability, delay);
        pie.burst = burst;
        let dropped = (0..1_000)
            .filter(|_| pie.drops(&settings, &mut packet(0), backlog, &mut rng))
            .count();
        assert_eq!(dropped > 0, drops, "{probability}, {delay}, {backlog}");
    }
}

#[test]
fn pie_spaces_its_drops_as_section_5_4_says() {
    // Neither before 0.85 / p packets have passed nor after 8.5 / p.
    let mut rng = Stream::new(1, "pie");
    let settings = settings(&[]);
    let mut pie = pie(0.05, ms(20));
    let drops: Vec<i32> = (0..100_000)
        .filter(|_| pie.drops(&settings, &mut packet(0), 100_000, &mut rng))
        .collect();
    let gaps: Vec<i32> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() > 1_000);
    let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
    assert_eq!(*least, 17, "0.85 / 0.05");
    assert!(*most <= 170 && *most > 60, "{most}");
}

#[test]
fn pie_drops_small_packets_less_in_byte_mode() {
    let mut rng = Stream::new(1, "pie");
    let drops = |settings: &Settings, bytes: u32, rng: &mut Stream| {
        let mut pie = pie(0.2, ms(20));
        (0..100_000)
            .filter(|_| {
                let mut packet = Packet { bytes, ..packet(0) };
                pie.drops(settings, &mut packet, 100_000, rng)
            })
            .count() as f64
    };
    let on = settings(&[("bytemode", 1.0)]);
    let ratio = drops(&on, 150, &mut rng) / drops(&on, 1_500, &mut rng);
    assert!((ratio / 0.1 - 1.0).abs() < 0.15, "{ratio}");
    let off = settings(&[]);
    let ratio = drops(&off, 150, &mut rng) / drops(&off, 1_500, &mut rng);
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn pie_measures_the_rate_over_16_kib_as_section_5_3_says() {
    let settings = settings(&[("dq_rate_estimator", 1.0)]);
    let mut pie = Pie::default();
    for n in 0..11 {
        assert_eq!(pie.dq_rate, 0, "of {n} packets nothing is known");
        pie.departed(&settings, &packet(0), 20_000, ms(n));
    }
    assert_eq!(pie.dq_rate, ((11 * 1_500) << DQ_RATE_BITS) / ms(10).0);
}

#[test]
fn pie_marks_up_to_10_percent_and_drops_beyond() {
    let mut rng = Stream::new(1, "pie");
    let cases = [
        // (ecn, probability, code, marks)
        (1.0, 0.09, Ecn::Ect0, true),
        (1.0, 0.11, Ecn::Ect0, false),
        (1.0, 0.09, Ecn::NotEct, false),
        (0.0, 0.09, Ecn::Ect0, false),
    ];
    for (ecn, probability, code, marks) in cases {
        let settings = settings(&[("ecn", ecn)]);
        let mut pie = pie(probability, ms(20));
        let (mut marked, mut dropped) = (0, 0);
        for _ in 0..1_000 {
            let mut packet = Packet {
                ecn: code,
                ..packet(0)
            };
            if pie.drops(&settings, &mut packet, 100_000, &mut rng) {
                dropped += 1;
            } else {
                marked += u32::from(packet.ecn == Ecn::Ce);
            }
        }
        let expected = (marks, !marks);
        assert_eq!(
            (marked > 0, dropped > 0),
            expected,
            "{ecn} {probability} {code:?}"
        );
    }
    let settings = settings(&[("ecn", 1.0)]);
    let mut at_10 = Pie {
        prob: settings.mark_prob,
        ..pie(0.0, ms(20))
    };
    let drops = (0..1_000).filter(|_| {
        let mut packet = Packet {
            ecn: Ecn::Ect0,
            ..packet(0)
        };
        at_10.drops(&settings, &mut packet, 100_000, &mut rng)
    });
    assert_eq!(drops.count(), 0, "at 10 % it marks");
}

#[test]
fn pie_that_catches_up_late_is_where_one_is_that_was_on_time() {
    for backlog in [0, 50_000] {
        for (probability, delay) in [(0.3, ms(0)), (0.3, ms(14)), (0.001, ms(16)), (0.0, ms(3))] {
            let settings = settings(&[]);
            let start = pie(probability, delay);
            let (mut on_time, mut late) = (start, start);
            let clock = || Clock::start(&settings, ms(0), ms(0));
            let (mut clock_on_time, mut clock_late) = (clock(), clock());
            for t in 0..=10_000 {
                clock_on_time.catch_up(&mut on_time, &settings, backlog, ms(t));
            }
            clock_late.catch_up(&mut late, &settings, backlog, ms(10_000));
            assert_eq!(on_time, late, "{backlog} {probability} {delay}");
            assert_eq!(clock_on_time.0, clock_late.0);
        }
    }
}

#[test]
fn pie_drops_the_arriving_packet_at_its_limit() {
    let mut link = link(BufferLimit::Bytes(15_000), &[]);
    for handle in 0..15 {
        let packet = Packet {
            handle,
            ..packet(0)
        };
        link.offer(ms(0), packet);
    }
    let dropped: Vec<u32> = link.dropped.iter().map(|(_, p)| p.handle).collect();
    assert_eq!(dropped, [11, 12, 13, 14], "one is on the wire");
}
