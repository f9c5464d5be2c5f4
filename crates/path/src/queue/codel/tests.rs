//! Claims of RFC 8289, on a link of 10 Mbit/s: a full packet takes 1.2 ms.

use super::super::testing::{Link, mbit, packet, setup};
use super::*;
use crate::packet::Ecn;
use crate::queue::BufferLimit;

const INTERVAL_NS: f64 = 100e6;

fn link(limit: BufferLimit, changed: &[(&str, f64)]) -> Link<CodelQueue> {
    let setup = setup(&KIND, limit, mbit(10), changed);
    Link::new(mbit(10), Box::new(CodelQueue::new(&setup)))
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_ms(ms)
}

#[test]
fn codel_drops_nothing_below_target() {
    // Four packets every 5 ms: the last waits for three, 3.6 ms.
    let mut link = link(BufferLimit::Unlimited, &[]);
    for burst in 0..4_000 {
        for _ in 0..4 {
            link.offer(ms(5 * burst), packet(0));
        }
    }
    assert_eq!(link.dropped.len(), 0);
    let longest = link.sent.iter().map(|sent| sent.waited).max().unwrap();
    assert!(
        Nanos::from_us(3_500) < longest && longest < ms(5),
        "{longest}"
    );
}

#[test]
fn codel_lets_a_burst_pass_that_is_over_within_the_interval() {
    // 80 packets wait up to 95 ms and are gone before 100 ms have passed.
    let mut link = link(BufferLimit::Unlimited, &[]);
    for second in 0..20 {
        for _ in 0..80 {
            link.offer(ms(1_000 * second), packet(0));
        }
    }
    link.drain();
    assert_eq!(link.dropped.len(), 0);
    assert_eq!(link.sent.len(), 1_600);
}

#[test]
fn codel_never_drops_the_last_packet_of_a_slow_link() {
    // At 1 Mbit/s a packet takes 12 ms, more than the target, and one waits
    // behind the one being sent: section 4.3's reason for the packet on top.
    let setup = setup(&KIND, BufferLimit::Unlimited, mbit(1), &[]);
    let mut link = Link::new(mbit(1), Box::new(CodelQueue::new(&setup)));
    link.offer(ms(0), packet(0));
    for i in 0..1_000 {
        link.offer(ms(12 * i), packet(0));
    }
    assert_eq!(link.dropped.len(), 0);
    assert!(link.sent.iter().skip(1).all(|sent| sent.waited == ms(12)));
}

#[test]
fn codel_drop_spacing_follows_the_inverse_square_root() {
    // 20 % more than the link carries, without reaction.
    let mut link = link(BufferLimit::Unlimited, &[]);
    link.offer_constant(ms(0), ms(4_000), mbit(12), packet(0));
    let drops: Vec<f64> = link.dropped.iter().map(|(at, _)| at.0 as f64).collect();
    assert!(drops.len() > 20, "{}", drops.len());
    // The first one: an interval after the wait passed 5 ms.
    let above = link.sent.iter().find(|sent| sent.waited >= ms(5)).unwrap();
    let packet_ns = 1.2e6;
    let first = drops[0] - above.at.0 as f64;
    assert!(
        (0.0..=packet_ns).contains(&(first - INTERVAL_NS)),
        "{first}"
    );
    // A drop that is due waits for the next dequeue, a packet's time at most.
    for (i, pair) in drops.windows(2).enumerate() {
        let count = (i + 1) as f64;
        // Linux' single Newton step makes the second interval 1/2 instead of 1/sqrt(2).
        let root = if i == 1 { 2.0 } else { count.sqrt() };
        let expected = INTERVAL_NS / root;
        let gap = pair[1] - pair[0];
        assert!(
            (gap - expected).abs() <= packet_ns + 0.03 * expected,
            "gap {i} is {gap} and not {expected}"
        );
    }
}

#[test]
fn codel_keeps_its_roots_within_three_percent_after_the_second() {
    let mut codel = Codel {
        count: 1,
        inv_sqrt: u16::MAX,
        ..Codel::default()
    };
    for count in 2..1_000_u32 {
        codel.count = count;
        codel.newton_step();
        let root = f64::from(codel.inv_sqrt) / 65_536.0 * f64::from(count).sqrt();
        assert!(count == 2 || (root - 1.0).abs() < 0.03, "{count}: {root}");
    }
}

#[test]
fn codel_computes_the_root_where_newtons_step_diverges() {
    // fq_codel adds up to 64 drops at once.
    let mut codel = Codel {
        count: 65,
        inv_sqrt: u16::MAX,
        ..Codel::default()
    };
    codel.newton_step();
    assert_eq!(codel.inv_sqrt, (65_536.0 / 65_f64.sqrt()) as u16);
}

#[test]
fn codel_resumes_its_rate_within_sixteen_intervals_and_not_later() {
    for (pause_ms, resumes) in [(1_000, true), (2_500, false)] {
        let mut link = link(BufferLimit::Unlimited, &[]);
        link.offer_constant(ms(0), ms(3_000), mbit(12), packet(0));
        link.drain();
        let delta = link.queue().codel.count - link.queue().codel.last_count;
        assert!(delta > 5);
        let again = link.sent.last().unwrap().at + ms(pause_ms);
        let before = link.dropped.len();
        let mut now = again;
        while link.dropped.len() == before {
            link.offer(now, packet(0));
            now += ms(1);
        }
        let count = link.queue().codel.last_count;
        assert_eq!(count, if resumes { delta } else { 1 }, "{pause_ms} ms");
    }
}

#[test]
fn codel_brings_the_wait_of_reno_flows_to_its_target() {
    let mut link = link(BufferLimit::Unlimited, &[]);
    link.run_reno(4, ms(50), ms(0), ms(60_000), Ecn::NotEct);
    let wait = link.mean_wait(ms(20_000), ms(60_000));
    assert!(ms(2) < wait && wait < ms(10), "{wait}");
    // And the link stays busy: 833 packets a second.
    let sent = link.sent_between(ms(20_000), ms(60_000)).count();
    assert!(sent > 32_000, "{sent}");
}

#[test]
fn codel_marks_what_understands_ecn_and_drops_the_rest() {
    for (ecn, code, marks) in [
        (1.0, Ecn::Ect0, true),
        (1.0, Ecn::Ect1, true),
        (1.0, Ecn::NotEct, false),
        (0.0, Ecn::Ect0, false),
    ] {
        let mut link = link(BufferLimit::Unlimited, &[("ecn", ecn)]);
        let packet = Packet {
            ecn: code,
            ..packet(0)
        };
        link.offer_constant(ms(0), ms(2_000), mbit(12), packet);
        let marked = link.sent.iter().filter(|sent| sent.packet.ecn == Ecn::Ce);
        assert_eq!(marked.count() > 0, marks, "ecn = {ecn}, {code:?}");
        assert_eq!(link.dropped.is_empty(), marks, "ecn = {ecn}, {code:?}");
    }
}

#[test]
fn codel_marks_above_the_ce_threshold_at_once() {
    let mut link = link(BufferLimit::Unlimited, &[("ce_threshold", 2e6)]);
    let packet = Packet {
        ecn: Ecn::Ect1,
        ..packet(0)
    };
    for _ in 0..5 {
        link.offer(ms(0), packet);
    }
    link.drain();
    let marked = |sent: &super::super::testing::Sent| sent.packet.ecn == Ecn::Ce;
    let marks: Vec<bool> = link.sent.iter().map(marked).collect();
    assert_eq!(marks, [false, false, true, true, true]);
}

#[test]
fn codel_drops_the_arriving_packet_at_its_limit() {
    let mut link = link(BufferLimit::Packets(10), &[]);
    for handle in 0..15 {
        let packet = Packet {
            handle,
            ..packet(0)
        };
        link.offer(ms(0), packet);
    }
    // One is on the wire, ten wait.
    let dropped: Vec<u32> = link.dropped.iter().map(|(_, p)| p.handle).collect();
    assert_eq!(dropped, [11, 12, 13, 14]);
}
