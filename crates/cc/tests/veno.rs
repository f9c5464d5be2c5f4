//! Veno tells random loss from a full queue.

use crate::common::Conn;
use knee_cc::Op;

const BASE_US: u32 = 50_000;

/// In avoidance at `cwnd`, the last RTT being `queued` packets above the base.
fn with_queue(cwnd: u32, queued: f64) -> Conn {
    let mut c = Conn::new("veno", &[]);
    c.stack.snd_cwnd = cwnd;
    c.stack.snd_ssthresh = 2;
    for _ in 0..4 {
        c.ack(1, BASE_US.into());
    }
    let share = queued / f64::from(cwnd);
    // N = w (1 - base / rtt)
    let rtt_us = (f64::from(BASE_US) / (1.0 - share)) as i64;
    c.ack(1, rtt_us);
    c
}

#[test]
fn veno_loses_a_fifth_when_the_queue_is_short() {
    let mut c = with_queue(100, 1.0);
    assert_eq!(c.op(Op::Ssthresh), 80);
}

#[test]
fn veno_halves_when_the_queue_is_long() {
    let mut c = with_queue(100, 10.0);
    assert_eq!(c.op(Op::Ssthresh), 50);
}

#[test]
fn veno_grows_at_half_the_pace_on_a_long_queue() {
    let grown = |queued: f64| {
        let mut c = with_queue(100, queued);
        let rtt_us = (f64::from(BASE_US) / (1.0 - queued / 100.0)) as i64;
        let begin = c.cwnd();
        for _ in 0..1_000 {
            c.ack(1, rtt_us);
        }
        c.cwnd() - begin
    };
    let (short, long) = (grown(0.0), grown(12.0));
    assert!((9..=11).contains(&short), "one per window: {short}");
    assert!((4..=6).contains(&long), "one per two windows: {long}");
}

#[test]
fn veno_counts_what_slow_start_left_of_an_ack() {
    let mut c = with_queue(100, 10.0);
    c.stack.snd_cwnd = 98;
    c.stack.snd_cwnd_cnt = 0;
    c.stack.snd_ssthresh = 100;
    let long_us = i64::from(BASE_US) * 2;
    c.ack(5, long_us);
    assert_eq!((c.cwnd(), c.stack.snd_cwnd_cnt), (100, 3));
}

#[test]
fn veno_counts_the_handshakes_rtt_as_its_first_sample() {
    // The second packet's RTT is the third sample, or the second.
    let after_two = |handshake_us: u32| {
        let mut c = Conn::new("veno", &[]);
        c.stack.srtt_us = handshake_us;
        c.op(Op::Init);
        c.stack.snd_cwnd = 100;
        c.stack.snd_ssthresh = 2;
        c.ack(1, BASE_US.into());
        c.ack(1, i64::from(BASE_US) * 2);
        c.op(Op::Ssthresh)
    };
    assert_eq!((after_two(BASE_US), after_two(0)), (50, 80));
}
