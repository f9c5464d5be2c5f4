//! Illinois: increase and decrease as functions of the queueing delay (Liu, Basar, Srikant 2008), in Linux' fixed
//! point.

use crate::common::Conn;
use knee_cc::{CaState, Op};

const WINDOW: u32 = 1000;
const BASE_US: u32 = 50_000;
/// Largest queueing delay seen.
const DM_US: u32 = 100_000;

/// In avoidance, with the smallest and the largest RTT known and the round trip of those samples over.
fn with_delays_known() -> Conn {
    let mut c = Conn::new("illinois", &[]);
    c.stack.snd_ssthresh = 2;
    c.stack.snd_cwnd = WINDOW;
    sample(&mut c, BASE_US);
    sample(&mut c, BASE_US + DM_US);
    end_round(&mut c);
    c
}

fn sample(c: &mut Conn, rtt_us: u32) {
    c.stack.acked = 0;
    c.stack.ack_rtt_us = rtt_us.into();
    c.op(Op::PktsAcked);
}

/// Acks all of the round trip; what was sampled in it takes effect.
fn end_round(c: &mut Conn) {
    c.stack.snd_una = c.stack.snd_nxt.wrapping_add(1);
    c.stack.snd_nxt = c.stack.snd_una.wrapping_add(1_000_000);
    c.stack.acked = 0;
    c.op(Op::CongAvoid);
    c.stack.snd_cwnd = WINDOW;
    c.stack.snd_cwnd_cnt = 0;
}

/// Rounds of a queueing delay.
fn rounds(c: &mut Conn, n: u32, delay_us: u32) {
    for _ in 0..n {
        sample(c, BASE_US + delay_us);
        end_round(c);
    }
}

/// Segments per round trip, from the packets that ten segments need.
fn alpha(c: &mut Conn) -> f64 {
    let mut packets = 0;
    while c.cwnd() < WINDOW + 10 {
        c.stack.acked = 1;
        c.stack.ack_rtt_us = -1;
        c.op(Op::PktsAcked);
        c.op(Op::CongAvoid);
        packets += 1;
    }
    c.stack.snd_cwnd = WINDOW;
    c.stack.snd_cwnd_cnt = 0;
    10.0 * f64::from(WINDOW + 5) / f64::from(packets)
}

fn beta(c: &mut Conn) -> f64 {
    1.0 - f64::from(c.op(Op::Ssthresh)) / f64::from(WINDOW)
}

#[track_caller]
fn assert_close(got: f64, expected: f64, tolerance: f64) {
    assert!(
        (got / expected - 1.0).abs() <= tolerance,
        "got {got}, expected {expected} within {tolerance}"
    );
}

#[test]
fn illinois_increase_falls_from_ten_to_a_third_as_the_queue_fills() {
    for percent in [2, 5, 10, 25, 50, 75, 100] {
        let mut c = with_delays_known();
        rounds(&mut c, 1, DM_US / 100 * percent);
        // k1 / (k2 + da) in parts of dm, with d1 = 0.01 dm.
        let da = f64::from(percent) / 100.0;
        let k1 = 0.99 * 0.3 * 10.0 / 9.7;
        let k2 = 0.99 * 0.3 / 9.7 - 0.01;
        assert_close(alpha(&mut c), k1 / (k2 + da), 0.03);
    }
}

#[test]
fn illinois_adds_ten_segments_per_round_trip_while_there_is_no_queue() {
    let mut c = Conn::new("illinois", &[]);
    c.stack.snd_ssthresh = 2;
    c.stack.snd_cwnd = WINDOW;
    sample(&mut c, BASE_US);
    end_round(&mut c);
    assert_close(alpha(&mut c), 10.0, 0.01);
}

#[test]
fn illinois_decrease_rises_from_an_eighth_to_half_with_the_delay() {
    for (percent, expected) in [
        (0, 0.125),
        (10, 0.125),
        // Linear from 10 % to 80 %.
        (45, 0.3125),
        (80, 0.5),
        (100, 0.5),
    ] {
        let mut c = with_delays_known();
        rounds(&mut c, 1, DM_US / 100 * percent);
        assert_close(beta(&mut c), expected, 0.004);
    }
}

#[test]
fn illinois_goes_back_to_ten_after_five_round_trips_of_low_delay() {
    let mut c = with_delays_known();
    // The round of the two first samples was at half of dm.
    let before = alpha(&mut c);
    assert!(before < 1.0, "{before}");
    rounds(&mut c, 4, 0);
    assert_close(alpha(&mut c), before, 0.01);
    rounds(&mut c, 1, 0);
    assert_close(alpha(&mut c), 10.0, 0.01);
}

#[test]
fn illinois_counts_low_round_trips_across_a_high_one() {
    let mut c = with_delays_known();
    rounds(&mut c, 4, 0);
    rounds(&mut c, 1, DM_US / 2);
    rounds(&mut c, 1, 0);
    assert_close(alpha(&mut c), 10.0, 0.01);
}

#[test]
fn illinois_is_reno_below_fifteen_segments() {
    for (cwnd, is_reno) in [(14, true), (15, false)] {
        let mut c = with_delays_known();
        sample(&mut c, BASE_US);
        c.stack.snd_cwnd = cwnd;
        c.stack.snd_una = c.stack.snd_nxt.wrapping_add(1);
        c.stack.snd_nxt = c.stack.snd_una.wrapping_add(1_000_000);
        c.stack.acked = 0;
        c.op(Op::CongAvoid);
        c.stack.snd_cwnd = WINDOW;
        assert_eq!((beta(&mut c) - 0.5).abs() < 0.001, is_reno, "{cwnd}");
        if is_reno {
            assert_close(alpha(&mut c), 1.0, 0.01);
        }
    }
}

#[test]
fn illinois_is_reno_after_a_timeout_until_it_has_measured_a_round_trip() {
    let mut c = with_delays_known();
    rounds(&mut c, 5, 0);
    c.set_state(CaState::Loss);
    c.set_state(CaState::Open);
    c.stack.snd_cwnd = WINDOW;
    assert_close(alpha(&mut c), 1.0, 0.01);
    assert_close(beta(&mut c), 0.5, 0.001);
    rounds(&mut c, 1, 0);
    assert_close(alpha(&mut c), 10.0, 0.01);
}

#[test]
fn illinois_takes_the_mean_delay_of_the_round_trip_and_not_its_largest() {
    let mut c = with_delays_known();
    for delay_us in [0, 0, 0, DM_US] {
        sample(&mut c, BASE_US + delay_us);
    }
    end_round(&mut c);
    // A quarter of dm: 1/8 + 3/8 * (25 - 10) / 70.
    assert_close(beta(&mut c), 0.125 + 0.375 * 15.0 / 70.0, 0.03);
}

#[test]
fn illinois_never_forgets_the_largest_rtt() {
    let mut c = with_delays_known();
    rounds(&mut c, 1, 2_900_000);
    rounds(&mut c, 1000, DM_US);
    // 100 ms of 2.9 s is below a tenth: an eighth, where it was half before.
    assert_close(beta(&mut c), 0.125, 0.001);
}

#[test]
fn illinois_takes_no_rtt_for_longer_than_3_36_seconds() {
    let mut c = with_delays_known();
    rounds(&mut c, 1, 60_000_000);
    // The largest delay is 3,355,443 - 50,000 us; an eighth up to a tenth of it.
    rounds(&mut c, 1, 330_543);
    assert_close(beta(&mut c), 0.125, 0.001);
    rounds(&mut c, 1, 1_000_000);
    assert!(beta(&mut c) > 0.2);
}

#[test]
fn illinois_counts_packets_and_not_acks() {
    let mut c = with_delays_known();
    rounds(&mut c, 5, 0);
    c.stack.acked = WINDOW;
    c.stack.ack_rtt_us = -1;
    c.op(Op::PktsAcked);
    c.op(Op::CongAvoid);
    assert_eq!((c.cwnd(), c.stack.snd_cwnd_cnt), (WINDOW + 10, 0));
}

#[test]
fn illinois_undo_takes_back_the_window_before_the_loss() {
    let mut c = with_delays_known();
    rounds(&mut c, 5, 0);
    c.lose();
    assert_eq!(c.cwnd(), 875);
    assert_eq!(c.op(Op::UndoCwnd), WINDOW);
}
