//! Westwood+ comes back to what the path carried.

use crate::common::{Conn, MSS_BYTES};
use knee_cc::ACK_SLOWPATH;

const RTT_US: u32 = 100_000;

/// Rounds of `cwnd` packets at a base RTT of 100 ms.
fn steady(cwnd: u32, rtt_us: u32) -> Conn {
    let mut c = Conn::new("westwood", &[]);
    c.stack.snd_ssthresh = 2;
    for _ in 0..60 {
        c.stack.snd_cwnd = cwnd;
        c.round(rtt_us);
    }
    c
}

#[test]
fn westwood_restores_the_bandwidth_delay_product_after_recovery() {
    let mut c = steady(200, RTT_US);
    c.lose();
    let ratio = f64::from(c.cwnd()) / 200.0;
    assert!(
        (0.93..=1.03).contains(&ratio),
        "{ratio}: a random loss on an empty path costs nothing"
    );
    assert_eq!(c.stack.snd_ssthresh, c.cwnd());
}

#[test]
fn westwood_gives_up_what_stood_in_the_queue() {
    let mut c = steady(100, RTT_US);
    // The same bandwidth, with as much again in the queue.
    for _ in 0..60 {
        c.stack.snd_cwnd = 200;
        c.round(2 * RTT_US);
    }
    c.lose();
    let ratio = f64::from(c.cwnd()) / 100.0;
    assert!(
        (0.9..=1.1).contains(&ratio),
        "{ratio}: bw times the least RTT"
    );
}

#[test]
fn westwood_keeps_the_bandwidth_over_a_timeout() {
    let mut c = steady(200, RTT_US);
    c.time_out();
    let ratio = f64::from(c.stack.snd_ssthresh) / 200.0;
    assert!((0.93..=1.03).contains(&ratio), "{ratio}");
    assert_eq!(c.cwnd(), 1);
}

#[test]
fn westwood_counts_a_packet_once_when_duplicates_told_of_it() {
    let rate = |duplicates: u32, ack_flags: u32| {
        let mut c = Conn::new("westwood", &[]);
        c.stack.snd_ssthresh = 2;
        c.stack.snd_cwnd = 100;
        for _ in 0..400 {
            for _ in 0..duplicates {
                c.pass_us(500);
                c.stack.ack_flags = ACK_SLOWPATH;
                c.op(knee_cc::Op::InAckEvent);
            }
            c.pass_us(u64::from(10 - duplicates) * 500);
            c.stack.snd_cwnd = 100;
            c.stack.ack_flags = ack_flags;
            c.ack(10, RTT_US.into());
        }
        c.lose();
        c.cwnd()
    };
    let without = rate(0, ACK_SLOWPATH);
    // Linux deducts nothing from an ACK that header prediction expected: six packets of ten count twice.
    for (ack_flags, expected) in [(ACK_SLOWPATH, without), (0, without * 16 / 10)] {
        let with = rate(6, ack_flags);
        assert!(
            with.abs_diff(expected) <= expected / 20,
            "{with}, expected {expected} of {MSS_BYTES} B"
        );
    }
}

/// Source: Linux net/ipv4/tcp_westwood.c, TCP_WESTWOOD_INIT_RTT: 20 s.
#[test]
fn westwood_takes_the_rtt_for_twenty_seconds_until_it_has_a_sample() {
    const PACKETS_PER_SEC: u32 = 100;
    // The window of a bandwidth sample lasts an RTT: the first sample comes after 20 s.
    for (seconds, expected) in [(19, 2), (20, 2), (21, 20 * PACKETS_PER_SEC)] {
        let mut c = Conn::new("westwood", &[]);
        c.stack.snd_ssthresh = 2;
        c.stack.snd_cwnd = 10;
        for _ in 0..seconds * 10 {
            c.pass_us(100_000);
            c.ack(PACKETS_PER_SEC / 10, -1);
        }
        c.lose();
        let ratio = f64::from(c.cwnd()) / f64::from(expected);
        assert!((0.98..=1.02).contains(&ratio), "{seconds} s: {}", c.cwnd());
    }
}
