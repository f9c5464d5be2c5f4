//! Vegas keeps between alpha and beta packets in the queue.

use crate::common::Conn;
use knee_cc::CaState;

const BASE_US: u32 = 50_000;

/// In avoidance, with a window of `cwnd` and a base RTT learned on an empty path.
fn in_avoidance(cwnd: u32) -> Conn {
    let mut c = Conn::new("vegas", &[]);
    c.stack.snd_cwnd = cwnd;
    c.stack.snd_ssthresh = 2;
    c.round(BASE_US);
    c.round(BASE_US);
    c.stack.snd_cwnd = cwnd;
    c
}

/// The RTT at which `queued` of `cwnd` packets stand in the queue.
fn rtt_us(cwnd: u32, queued: f64) -> u32 {
    (f64::from(BASE_US) * (1.0 + queued / f64::from(cwnd))) as u32
}

#[test]
fn vegas_grows_by_one_per_round_below_alpha() {
    let mut c = in_avoidance(100);
    c.round(rtt_us(100, 1.0));
    c.round(rtt_us(100, 1.0));
    assert_eq!(c.cwnd(), 102);
}

#[test]
fn vegas_holds_still_between_alpha_and_beta() {
    let mut c = in_avoidance(100);
    for _ in 0..5 {
        c.round(rtt_us(100, 3.5));
    }
    // The first round's ACKs still end the round before.
    assert!((100..=101).contains(&c.cwnd()), "{}", c.cwnd());
}

#[test]
fn vegas_shrinks_by_one_per_round_above_beta() {
    let mut c = in_avoidance(100);
    c.round(rtt_us(100, 8.0));
    let begin = c.cwnd();
    for _ in 0..3 {
        c.round(rtt_us(100, 8.0));
    }
    assert_eq!(c.cwnd(), begin - 3);
}

#[test]
fn vegas_leaves_slow_start_when_a_packet_waits() {
    let mut c = Conn::new("vegas", &[]);
    for _ in 0..4 {
        c.round(BASE_US);
    }
    let full = c.cwnd();
    assert!(full > 40, "slow start grows: {full}");
    for _ in 0..3 {
        c.round(rtt_us(full, 5.0));
    }
    assert!(c.stack.snd_ssthresh <= 4 * full, "slow start is over");
    assert!(c.cwnd() >= c.stack.snd_ssthresh);
}

#[test]
fn vegas_is_reno_while_something_is_lost() {
    let mut c = in_avoidance(100);
    c.set_state(CaState::Disorder);
    for _ in 0..3 {
        c.round(rtt_us(100, 50.0));
    }
    assert!(
        c.cwnd() >= 102,
        "Reno grows on, whatever the delay: {}",
        c.cwnd()
    );
}

#[test]
fn vegas_needs_three_samples_in_a_round() {
    let mut c = in_avoidance(4);
    // Two ACKs per round: the delay is not believed, Reno's growth holds.
    for _ in 0..8 {
        c.round(rtt_us(4, 100.0));
    }
    assert!(c.cwnd() >= 4, "{}", c.cwnd());
}
