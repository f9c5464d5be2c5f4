//! Scalable TCP: growth and decrease in proportion to the window (Kelly 2003), packets counted as Linux counts them.

use crate::common::Conn;
use knee_cc::Op;

const RTT_US: u32 = 50_000;

fn in_avoidance(cwnd: u32, params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("scalable", params);
    c.stack.snd_cwnd = cwnd;
    c.stack.snd_ssthresh = cwnd;
    c
}

#[test]
fn scalable_gives_up_an_eighth_at_a_loss() {
    let mut c = Conn::new("scalable", &[]);
    for (cwnd, kept) in [(800, 700), (1000, 875), (15, 14), (7, 7), (2, 2), (1, 2)] {
        c.stack.snd_cwnd = cwnd;
        assert_eq!(c.op(Op::Ssthresh), kept, "cwnd {cwnd}");
        assert_eq!(c.cwnd(), cwnd, "the window itself is the stack's to cut");
    }
}

#[test]
fn scalable_grows_one_percent_per_round_at_every_large_window() {
    for cwnd in [1000, 10_000, 100_000] {
        let mut c = in_avoidance(cwnd, &[]);
        for _ in 0..10 {
            c.round(RTT_US);
        }
        let grown = f64::from(c.cwnd()) / f64::from(cwnd);
        assert!(
            (grown / 1.01f64.powi(10) - 1.0).abs() < 0.005,
            "{cwnd}: {grown}"
        );
    }
}

#[test]
fn scalable_recovers_from_a_loss_in_13_round_trips_at_every_rate() {
    // Kelly 2003, section 3: ln(1 - b) / ln(1 + a) round trips; ln(8/7) / ln(1.01) = 13.4.
    for cwnd in [1000, 10_000, 100_000] {
        let mut c = in_avoidance(cwnd, &[]);
        c.lose();
        let mut rounds = 0;
        while c.cwnd() < cwnd {
            c.round(RTT_US);
            rounds += 1;
        }
        assert!((13..=14).contains(&rounds), "{cwnd}: {rounds} round trips");
    }
}

#[test]
fn scalable_grows_like_reno_below_a_hundred_segments() {
    let mut c = in_avoidance(20, &[]);
    for _ in 0..50 {
        c.round(RTT_US);
    }
    assert!((68..=70).contains(&c.cwnd()), "{}", c.cwnd());
}

#[test]
fn scalable_growth_does_not_depend_on_how_acks_are_stretched() {
    for packets_per_ack in [1, 2, 10, 50] {
        let mut c = in_avoidance(1000, &[]);
        for _ in 0..1000 / packets_per_ack {
            c.ack(packets_per_ack, RTT_US.into());
        }
        assert_eq!(c.cwnd(), 1010, "{packets_per_ack} per ACK");
    }
}

#[test]
fn scalable_gives_what_is_over_ssthresh_to_avoidance() {
    let mut c = Conn::new("scalable", &[]);
    c.stack.snd_cwnd = 190;
    c.stack.snd_ssthresh = 200;
    c.ack(160, RTT_US.into());
    // 10 of 160 reach ssthresh; 150 are one segment and half of the next.
    assert_eq!((c.cwnd(), c.stack.snd_cwnd_cnt), (201, 50));
}

#[test]
fn scalable_shares_are_the_parameters_to_set() {
    let mut c = in_avoidance(1000, &[("ai_cnt", 50), ("md_shift", 1)]);
    c.ack(1000, RTT_US.into());
    assert_eq!(c.cwnd(), 1020);
    c.lose();
    assert_eq!(c.cwnd(), 510);
    assert_eq!(c.op(Op::UndoCwnd), 1020);
}

#[test]
fn scalable_does_not_grow_a_window_that_is_not_used() {
    let mut c = in_avoidance(1000, &[]);
    c.stack.is_cwnd_limited = 0;
    c.ack(1000, RTT_US.into());
    assert_eq!(c.cwnd(), 1000);
}
