//! Reno does what RFC 5681 says, in Linux' units.

use crate::common::Conn;
use knee_cc::Op;

const RTT_US: u32 = 50_000;

#[test]
fn reno_halves_the_window_at_a_loss() {
    let mut c = Conn::new("reno", &[]);
    for (cwnd, half) in [
        (100, 50),
        (101, 50),
        (4, 2),
        (3, 2),
        (1, 2),
        (u32::MAX, u32::MAX / 2),
    ] {
        c.stack.snd_cwnd = cwnd;
        assert_eq!(c.op(Op::Ssthresh), half, "cwnd {cwnd}");
        assert_eq!(c.cwnd(), cwnd, "the window itself is the stack's to cut");
    }
}

#[test]
fn reno_keeps_the_share_that_beta_says() {
    let mut c = Conn::new("reno", &[("beta", 717)]);
    c.stack.snd_cwnd = 1000;
    assert_eq!(c.op(Op::Ssthresh), 700);
}

#[test]
fn reno_slow_start_doubles_per_round() {
    let mut c = Conn::new("reno", &[]);
    for doubled in [20, 40, 80, 160] {
        c.round(RTT_US);
        assert_eq!(c.cwnd(), doubled);
    }
}

#[test]
fn reno_slow_start_gives_what_is_over_ssthresh_to_avoidance() {
    let mut c = Conn::new("reno", &[]);
    c.stack.snd_cwnd = 10;
    c.stack.snd_ssthresh = 12;
    c.ack(14, RTT_US.into());
    // 2 of 14 reach ssthresh; the other 12 are one window of credit.
    assert_eq!((c.cwnd(), c.stack.snd_cwnd_cnt), (13, 0));
}

#[test]
fn reno_grows_one_segment_per_round_in_avoidance() {
    let mut c = Conn::new("reno", &[]);
    c.stack.snd_cwnd = 100;
    c.stack.snd_ssthresh = 100;
    for _ in 0..50 {
        c.round(RTT_US);
    }
    assert!((149..=150).contains(&c.cwnd()), "{}", c.cwnd());
}

#[test]
fn reno_growth_does_not_depend_on_how_acks_are_stretched() {
    for packets_per_ack in [1, 2, 10, 50] {
        let mut c = Conn::new("reno", &[]);
        c.stack.snd_cwnd = 100;
        c.stack.snd_ssthresh = 100;
        for _ in 0..1000 / packets_per_ack {
            c.ack(packets_per_ack, RTT_US.into());
        }
        assert!(
            (109..=110).contains(&c.cwnd()),
            "{packets_per_ack} per ACK: {}",
            c.cwnd()
        );
    }
}

#[test]
fn reno_does_not_grow_a_window_that_is_not_used() {
    let mut c = Conn::new("reno", &[]);
    c.stack.snd_cwnd = 100;
    c.stack.snd_ssthresh = 50;
    c.stack.is_cwnd_limited = 0;
    c.ack(1000, RTT_US.into());
    assert_eq!(c.cwnd(), 100);
}

#[test]
fn reno_slow_start_grows_to_twice_what_was_in_use() {
    let mut c = Conn::new("reno", &[]);
    c.stack.is_cwnd_limited = 0;
    c.stack.acked = 1;
    c.stack.max_packets_out = 30;
    for _ in 0..200 {
        c.op(Op::CongAvoid);
    }
    assert_eq!(c.cwnd(), 60);
}

#[test]
fn reno_credit_of_a_larger_window_is_one_segment_at_most() {
    let mut c = Conn::new("reno", &[]);
    c.stack.snd_cwnd = 10;
    c.stack.snd_ssthresh = 5;
    c.stack.snd_cwnd_cnt = 95;
    c.ack(1, RTT_US.into());
    assert_eq!((c.cwnd(), c.stack.snd_cwnd_cnt), (11, 1));
}

#[test]
fn reno_undo_takes_back_the_window_before_the_loss() {
    let mut c = Conn::new("reno", &[]);
    c.stack.snd_cwnd = 100;
    c.lose();
    assert_eq!(c.cwnd(), 50);
    assert_eq!(c.op(Op::UndoCwnd), 100);
    c.stack.snd_cwnd = 130;
    assert_eq!(c.op(Op::UndoCwnd), 130);
}

#[test]
fn reno_obeys_the_clamp() {
    let mut c = Conn::new("reno", &[]);
    c.stack.snd_cwnd_clamp = 25;
    for _ in 0..10 {
        c.round(RTT_US);
    }
    assert_eq!(c.cwnd(), 25);
}
