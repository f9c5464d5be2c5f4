//! YeAH: fast on a short queue, Reno on a long one, and decongestion before the queue overflows.

use crate::common::Conn;
use knee_cc::Op;

const BASE_US: u32 = 100_000;

fn in_avoidance(cwnd: u32) -> Conn {
    let mut c = Conn::new("yeah", &[]);
    c.stack.snd_cwnd = cwnd;
    c.stack.snd_ssthresh = 2;
    c.round(BASE_US);
    c.round(BASE_US);
    c.stack.snd_cwnd = cwnd;
    c
}

/// Q = w (rtt - base) / rtt
fn rtt_us(cwnd: u32, queued: f64) -> u32 {
    (f64::from(BASE_US) / (1.0 - queued / f64::from(cwnd))) as u32
}

#[test]
fn yeah_grows_by_1_pct_per_round_on_an_empty_path() {
    let mut c = in_avoidance(1_000);
    c.round(BASE_US);
    let grown = c.cwnd() - 1_000;
    assert!((9..=11).contains(&grown), "{grown}");
}

#[test]
fn yeah_takes_the_queue_out_when_it_is_longer_than_alpha() {
    let mut c = in_avoidance(1_000);
    c.round(rtt_us(1_000, 100.0));
    let before = c.cwnd();
    c.round(rtt_us(before, 100.0));
    c.round(rtt_us(before, 100.0));
    assert!(c.cwnd() < before - 80, "{} of {before}", c.cwnd());
    assert_eq!(c.stack.snd_ssthresh.min(before), c.stack.snd_ssthresh);
}

#[test]
fn yeah_grows_as_reno_once_the_delay_has_risen_by_an_eighth() {
    let mut c = in_avoidance(100);
    // 13 of 100 packets: below alpha, but an eighth of the RTT.
    for _ in 0..3 {
        c.round(rtt_us(100, 13.0));
    }
    let before = c.cwnd();
    for _ in 0..4 {
        c.round(rtt_us(100, 13.0));
    }
    assert_eq!(c.cwnd(), before + 4);
}

#[test]
fn yeah_cuts_an_eighth_at_a_loss_on_an_empty_path() {
    let mut c = in_avoidance(800);
    c.round(BASE_US);
    let cwnd = c.cwnd();
    assert_eq!(c.op(Op::Ssthresh), cwnd - cwnd / 8);
}

#[test]
fn yeah_halves_when_reno_flows_have_been_there_for_rho_rounds() {
    let mut c = in_avoidance(100);
    for _ in 0..20 {
        c.round(rtt_us(100, 13.0));
    }
    let cwnd = c.cwnd();
    assert_eq!(c.op(Op::Ssthresh), cwnd - cwnd / 2);
}
