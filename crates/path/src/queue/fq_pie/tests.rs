//! Claims of the description in sch_fq_pie.c: PIE for each flow, flows apart.

use super::super::testing::{Link, mbit, packet, setup};
use super::*;
use crate::packet::Ecn;

fn link(limit: BufferLimit, changed: &[(&str, f64)]) -> Link<FqPie> {
    let setup = setup(&KIND, limit, mbit(10), changed);
    Link::new(mbit(10), Box::new(FqPie::new(setup)))
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_ms(ms)
}

#[test]
fn fq_pie_holds_the_wait_of_reno_flows_near_15_ms() {
    let mut link = link(BufferLimit::Packets(10_240), &[]);
    link.run_reno(4, ms(50), ms(0), ms(100_000), Ecn::NotEct);
    let wait = link.mean_wait(ms(20_000), ms(100_000));
    assert!(ms(10) < wait && wait < ms(20), "{wait}");
    let sent = link.sent_between(ms(20_000), ms(100_000)).count();
    assert!(sent > 64_000, "{sent}");
}

#[test]
fn fq_pie_shares_the_link_equally_within_5_percent() {
    let mut link = link(BufferLimit::Packets(10_240), &[]);
    link.run_reno(4, ms(20), ms(0), ms(60_000), Ecn::NotEct);
    let share = |flow: u32| {
        link.sent_between(ms(10_000), ms(60_000))
            .filter(|sent| sent.packet.flow == flow)
            .count() as f64
    };
    let total: f64 = (0..4).map(share).sum();
    for flow in 0..4 {
        let ratio = share(flow) * 4.0 / total;
        assert!((ratio - 1.0).abs() < 0.05, "flow {flow}: {ratio}");
    }
}

#[test]
fn fq_pie_signals_the_flow_that_overloads_and_no_other() {
    let mut link = link(BufferLimit::Packets(10_000), &[]);
    for i in 0..20_000 {
        let now = Nanos::from_us(240) * i;
        link.offer(now, packet(1));
        if i % 50 == 0 {
            link.offer(now, packet(2));
        }
    }
    let mut of_two = link.sent.iter().filter(|sent| sent.packet.flow == 2);
    assert!(of_two.clone().count() > 390);
    assert!(of_two.all(|sent| sent.waited < ms(5)));
    assert!(link.dropped.iter().all(|(_, packet)| packet.flow == 1));
    assert!(link.dropped.len() > 1_000, "{}", link.dropped.len());
}

#[test]
fn fq_pie_marks_up_to_its_ecn_prob() {
    for (ecn_prob, drops) in [(1.0, false), (0.0, true)] {
        let changed = [("ecn", 1.0), ("ecn_prob", ecn_prob)];
        let mut link = link(BufferLimit::Packets(10_000), &changed);
        link.run_reno(2, ms(20), ms(0), ms(20_000), Ecn::Ect0);
        assert_eq!(!link.dropped.is_empty(), drops, "{ecn_prob}");
        let marks = link.sent.iter().filter(|sent| sent.packet.ecn == Ecn::Ce);
        assert_eq!(marks.count() > 0, !drops, "{ecn_prob}");
    }
}

#[test]
fn fq_pie_corrects_the_pies_of_all_flows_at_the_same_times() {
    let mut link = link(BufferLimit::Packets(10_000), &[]);
    link.offer(ms(3), packet(1));
    link.offer(ms(47), packet(2));
    let due = |link: &mut Link<FqPie>, flow| {
        let i = link.queue().hash.bucket(flow);
        let clock = link.queue().flows.flow(i).state.clock;
        format!("{clock:?}")
    };
    let second = due(&mut link, 2);
    assert_eq!(
        second,
        format!("{:?}", Clock::start(&link.queue().settings, ms(3), ms(47)))
    );
    link.offer(ms(47), packet(1));
    assert_eq!(due(&mut link, 1), second);
}
