//! H-TCP: the increase as a function of the time since the last loss, the adaptive decrease, and Linux' counting of
//! ACKs (draft-leith-tcp-htcp-06; Linux 6.12 tcp_htcp.c).

use crate::common::{Conn, HZ};
use knee_cc::{CaState, Op};

const RTT_US: u32 = 100_000;
const WINDOW: u32 = 1_000_000;
/// 2 (1 - beta), with beta at its largest: what keeps H-TCP fair when it gives up less.
const FAIR: f64 = 2.0 * 26.0 / 128.0;

/// In avoidance with the RTT known, `since_loss_ms` after the last loss.
fn after_loss(cwnd: u32, rtt_us: u32, since_loss_ms: u32, params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("htcp", params);
    c.stack.snd_ssthresh = 2;
    c.stack.is_cwnd_limited = 0;
    c.ack(1, rtt_us.into());
    c.stack.is_cwnd_limited = 1;
    c.stack.snd_cwnd = cwnd;
    c.lose();
    c.stack.snd_cwnd = cwnd;
    c.pass_us(u64::from(since_loss_ms) * 1000);
    c
}

/// Segments per round trip at a window of a million: the window over the packets, acked one by one, that one segment
/// needs. The ACK that adds it is not counted, as in Linux; and the first addition brings alpha up to date.
fn increase_of(c: &mut Conn) -> f64 {
    let mut acks_of_one = || {
        let from = c.cwnd();
        let mut acks = 0;
        while c.cwnd() == from {
            c.ack(1, -1);
            acks += 1;
        }
        acks
    };
    acks_of_one();
    f64::from(WINDOW) / f64::from(acks_of_one() - 1)
}

fn increase(rtt_us: u32, since_loss_ms: u32, params: &[(&str, u32)]) -> f64 {
    increase_of(&mut after_loss(WINDOW, rtt_us, since_loss_ms, params))
}

#[track_caller]
fn assert_close(got: f64, expected: f64, tolerance: f64) {
    assert!(
        (got / expected - 1.0).abs() <= tolerance,
        "got {got}, expected {expected} within {tolerance}"
    );
}

#[test]
fn htcp_is_reno_in_the_first_second_after_a_loss() {
    for ms in [0, 500, 999] {
        assert_close(increase(RTT_US, ms, &[]), 1.0, 0.001);
    }
}

#[test]
fn htcp_increase_is_a_quadratic_of_the_time_since_the_loss() {
    // alpha(D) = 1 + 10 (D - 1) + ((D - 1) / 2)^2, times 2 (1 - 0.5), in whole segments.
    for (seconds, alpha) in [(2, 11.0), (3, 22.0), (5, 45.0), (11, 126.0), (21, 301.0)] {
        assert_close(increase(RTT_US, seconds * 1000, &[]), alpha, 0.005);
    }
}

#[test]
fn htcp_growth_per_second_is_alike_at_every_rtt_within_the_limits() {
    // alpha is divided by 100 ms / min RTT within [0.5, 10]: 20 s after the loss it is 281.
    for (rtt_ms, ratio) in [
        (400, 0.5),
        (200, 0.5),
        (100, 1.0),
        (50, 2.0),
        (20, 5.0),
        (5, 10.0),
    ] {
        assert_close(increase(rtt_ms * 1000, 20_000, &[]), 281.25 / ratio, 0.02);
        assert_close(
            increase(rtt_ms * 1000, 20_000, &[("use_rtt_scaling", 0)]),
            281.0,
            0.005,
        );
    }
}

#[test]
fn htcp_increase_never_falls_below_renos() {
    assert_close(increase(5_000, 500, &[]), 1.0, 0.001);
}

/// A flow with its throughput steady and its queue seen: RTTs from `min_ms` to `max_ms`, then losses at 1000 segments.
fn adapted(min_ms: u32, max_ms: u32, losses: u32) -> (Conn, u32) {
    let mut c = Conn::new("htcp", &[("use_bandwidth_switch", 0)]);
    let mut kept = 0;
    for _ in 0..losses {
        for ms in min_ms..=max_ms {
            c.ack(1, i64::from(ms) * 1000);
        }
        c.stack.snd_cwnd = 1000;
        kept = c.op(Op::Ssthresh);
        c.set_state(CaState::Recovery);
        c.set_state(CaState::Open);
    }
    (c, kept)
}

#[test]
fn htcp_gives_up_half_at_the_first_loss_and_the_queue_at_later_ones() {
    assert_eq!(adapted(60, 100, 1).1, 500);
    // 60 ms / 100 ms in 128ths: 76 / 128.
    assert_eq!(adapted(60, 100, 2).1, 1000 * 76 / 128);
    // Within [0.5, 0.8].
    assert_eq!(adapted(95, 100, 2).1, 1000 * 102 / 128);
    assert_eq!(adapted(20, 100, 2).1, 500);
}

#[test]
fn htcp_gives_up_half_where_the_minimum_rtt_is_10_ms_or_less() {
    assert_eq!(adapted(10, 14, 2).1, 500);
    assert_eq!(adapted(11, 14, 2).1, 1000 * (11 * 128 / 14) / 128);
}

#[test]
fn htcp_does_not_take_a_leap_of_the_rtt_for_a_queue() {
    let (mut c, _) = adapted(60, 100, 1);
    c.ack(1, 500_000);
    c.stack.snd_cwnd = 1000;
    // Max RTT is 60 + 0.95 * 40 = 98 ms after the first loss, and stays.
    assert_eq!(c.op(Op::Ssthresh), 1000 * (60 * 128 / 98) / 128);
}

#[test]
fn htcp_gives_up_half_when_the_throughput_changed_by_a_fifth() {
    // 100 ms rounds of 1000 packets, then of 1000 packets in 75 ms: 10,000 to 13,333 packets/s.
    let mut c = Conn::new("htcp", &[]);
    c.stack.snd_ssthresh = 2;
    c.stack.snd_cwnd = 1000;
    let mut epoch = |rtt_us: u32| {
        for _ in 0..20 {
            c.stack.snd_cwnd = 1000;
            c.round(rtt_us);
        }
        c.stack.snd_cwnd = 1000;
        let kept = c.op(Op::Ssthresh);
        c.set_state(CaState::Recovery);
        c.set_state(CaState::Open);
        kept
    };
    assert_eq!(epoch(100_000), 500, "the first");
    assert_eq!(epoch(100_000), 500, "beta may adapt from here on");
    assert_eq!(epoch(100_000), 1000 * 102 / 128, "steady");
    assert_eq!(epoch(75_000), 500, "changed");
}

#[test]
fn htcp_adds_at_most_one_segment_per_ack_however_many_packets_it_acks() {
    let mut c = after_loss(100, RTT_US, 0, &[]);
    c.stack.snd_cwnd_cnt = 0;
    // Needs 100 packets counted; this ACK counts 1000, the next grows by one and drops the other 900 and its own.
    c.ack(1000, -1);
    assert_eq!((c.cwnd(), c.stack.snd_cwnd_cnt), (100, 1000));
    c.ack(1000, -1);
    assert_eq!((c.cwnd(), c.stack.snd_cwnd_cnt), (101, 0));
}

#[test]
fn htcp_counts_an_rtt_below_a_jiffy_as_one() {
    // With HZ 250 a LAN of 0.2 ms has 4 ms: the scaling is at its limit of 10 in both cases.
    let mut c = Conn::new("htcp", &[]);
    c.stack.hz = 250;
    c.stack.snd_ssthresh = 2;
    c.ack(1, 200);
    c.stack.snd_cwnd = WINDOW;
    c.lose();
    c.stack.snd_cwnd = WINDOW;
    c.pass_us(20_000_000);
    assert_close(increase_of(&mut c), 28.0, 0.02);
}

#[test]
fn htcp_undo_takes_back_the_window_and_the_clock() {
    let mut c = after_loss(WINDOW, RTT_US, 11_000, &[]);
    c.stack.prior_cwnd = c.cwnd();
    c.stack.snd_ssthresh = c.op(Op::Ssthresh);
    c.set_state(CaState::Recovery);
    c.stack.snd_cwnd = c.stack.snd_ssthresh;
    assert_eq!(c.op(Op::UndoCwnd), WINDOW);
    c.stack.snd_cwnd = WINDOW;
    c.set_state(CaState::Open);
    assert_close(increase_of(&mut c), 126.0 * FAIR, 0.005);
}

#[test]
fn htcp_clock_starts_when_the_loss_is_repaired() {
    let mut c = after_loss(WINDOW, RTT_US, 11_000, &[]);
    c.stack.snd_ssthresh = c.op(Op::Ssthresh);
    c.set_state(CaState::Recovery);
    c.pass_us(u64::from(5 * HZ) * 1000);
    c.set_state(CaState::Open);
    c.stack.snd_cwnd = WINDOW;
    c.pass_us(500_000);
    assert_close(increase_of(&mut c), FAIR, 0.001);
}
