//! Hybla: growth per second as over the reference RTT (Caini and Firrincieli 2004), with Linux' fixed point and its
//! counting of ACKs.

use crate::common::Conn;
use knee_cc::{CaState, CcIn, CcOut, Instance, Op, find};

/// A connection whose handshake measured `srtt_us`.
fn started(srtt_us: u32, params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("hybla", params);
    c.stack.srtt_us = srtt_us;
    c.op(Op::Init);
    c
}

fn in_avoidance(srtt_us: u32, cwnd: u32) -> Conn {
    let mut c = started(srtt_us, &[]);
    c.stack.snd_cwnd = cwnd;
    c.stack.snd_ssthresh = cwnd;
    c
}

/// One ACK per packet, a window's worth of them.
fn round(c: &mut Conn) {
    for _ in 0..c.cwnd() {
        c.ack(1, c.stack.srtt_us.into());
    }
}

#[test]
fn hybla_starts_with_a_window_of_rho() {
    for (rtt_ms, rho) in [(1, 1), (25, 1), (49, 1), (50, 2), (100, 4), (600, 24)] {
        assert_eq!(started(rtt_ms * 1000, &[]).cwnd(), rho, "{rtt_ms} ms");
    }
    assert_eq!(started(100_000, &[("rtt0", 50)]).cwnd(), 2);
}

#[test]
fn hybla_slow_start_adds_two_to_the_rho_less_one_per_ack() {
    // rho of 1, 2, 4, and 4.5: 2^4.5 - 1 = 21.63; 181/128 stands for the root of 2.
    for (rtt_us, added) in [
        (10_000, 1.0),
        (50_000, 3.0),
        (100_000, 15.0),
        (112_500, 21.63),
    ] {
        let mut c = started(rtt_us, &[]);
        c.stack.snd_cwnd = 10;
        for _ in 0..100 {
            c.ack(1, rtt_us.into());
        }
        let per_ack = f64::from(c.cwnd() - 10) / 100.0;
        assert!((per_ack - added).abs() < 0.015, "{rtt_us} us: {per_ack}");
    }
}

/// Source: Linux net/ipv4/tcp_hybla.c, hybla_fraction(): 2^(i/8), in 128ths, rounded down.
#[test]
fn hybla_eighths_of_rho_are_powers_of_two_rounded_down() {
    for eighths in 8..=40u32 {
        let srtt_us = 25_000 * eighths / 8;
        let mut c = started(srtt_us, &[]);
        c.stack.snd_cwnd = 1;
        for _ in 0..128 {
            c.ack(1, srtt_us.into());
        }
        // 128 ACKs add each 128th of an increment as one segment.
        let power_128ths = c.cwnd() - 1 + 128;
        let fraction_128ths = (128.0 * (f64::from(eighths % 8) / 8.0).exp2()) as u32;
        assert_eq!(power_128ths, fraction_128ths << (eighths / 8), "{eighths}");
    }
}

#[test]
fn hybla_adds_rho_squared_segments_per_round_trip_in_avoidance() {
    for (rtt_ms, rho_squared) in [(10, 1), (25, 1), (50, 4), (100, 16), (250, 100)] {
        let mut c = in_avoidance(rtt_ms * 1000, 8 * rho_squared);
        for _ in 0..8 {
            round(&mut c);
        }
        let grown = f64::from(c.cwnd() - 8 * rho_squared) / f64::from(8 * rho_squared);
        // An ACK adds whole 128ths of a segment; at these windows that are 8 to 16, of which up to one is cut.
        assert!((0.85..=1.0).contains(&grown), "{rtt_ms} ms: {grown}");
    }
}

#[test]
fn hybla_rate_grows_alike_over_paths_of_every_rtt() {
    // At the same rate, w is in proportion to the RTT; w / RTT grows by rho^2 / RTT^2 per second, the same for all.
    const RATE_PER_MS: u32 = 1;
    for rtt_ms in [25, 50, 100, 200, 400] {
        let mut c = in_avoidance(rtt_ms * 1000, RATE_PER_MS * rtt_ms);
        let from = c.cwnd();
        for _ in 0..400 / rtt_ms {
            round(&mut c);
        }
        // 0.4 s of one segment per 25 ms and round trip of 25 ms: 0.64 segments/ms, less what 128ths cut off: at
        // w / rho^2 of 25 to 41, up to a quarter of an increment.
        let growth = f64::from(c.cwnd() - from) / f64::from(rtt_ms);
        assert!((0.5..=0.64).contains(&growth), "{rtt_ms} ms: {growth}");
    }
}

#[test]
fn hybla_counts_acks_and_not_packets() {
    let mut c = in_avoidance(100_000, 1000);
    for _ in 0..500 {
        c.ack(2, 100_000);
    }
    let grown = c.cwnd() - 1000;
    assert!((7..=8).contains(&grown), "{grown}: rho^2 is 16");
}

#[test]
fn hybla_beyond_128_rho_squared_grows_like_reno() {
    // rho^2 / w is below 1/128 segment per ACK, and cut.
    for (rtt_us, rho_squared) in [(25_000, 1), (50_000, 4), (100_000, 16)] {
        let mut c = in_avoidance(rtt_us, 128 * rho_squared + 1);
        round(&mut c);
        assert_eq!(c.cwnd(), 128 * rho_squared + 2, "{rtt_us} us");
    }
}

#[test]
fn hybla_is_reno_outside_the_state_open() {
    let mut c = in_avoidance(250_000, 100);
    c.set_state(CaState::Disorder);
    c.ack(100, 250_000);
    assert_eq!(c.cwnd(), 101);
    c.set_state(CaState::Open);
    for _ in 0..2 {
        c.ack(1, 250_000);
    }
    assert_eq!(c.cwnd(), 102, "rho^2 is 100: one segment per ACK nearly");
}

#[test]
fn hybla_takes_up_a_smaller_smoothed_rtt_and_no_larger_one() {
    // From 100 ms, rho^2 of 16; at 50 ms it is 4.
    for (srtt_us, per_round) in [(400_000, 14..=16), (50_000, 3..=4)] {
        let mut c = in_avoidance(100_000, 128);
        c.stack.srtt_us = srtt_us;
        round(&mut c);
        let grown = c.cwnd() - 128;
        assert!(per_round.contains(&grown), "{srtt_us} us: {grown}");
    }
}

#[test]
fn hybla_halves_at_a_loss_and_undoes_it() {
    let mut c = in_avoidance(100_000, 1001);
    assert_eq!(c.op(Op::Ssthresh), 500);
    c.lose();
    assert_eq!(c.op(Op::UndoCwnd), 1001);
}

#[test]
fn hybla_slow_start_stops_at_ssthresh() {
    let mut c = started(600_000, &[]);
    c.stack.snd_ssthresh = 100;
    c.ack(1, 600_000);
    assert_eq!(c.cwnd(), 100);
}

#[test]
fn hybla_keeps_within_65535_segments_at_any_rtt() {
    let mut hybla = Instance::new(find("hybla").unwrap(), &[]).unwrap();
    let input = CcIn {
        srtt_us: u32::MAX,
        snd_cwnd: 10,
        snd_ssthresh: u32::MAX,
        snd_cwnd_clamp: u32::MAX,
        is_cwnd_limited: 1,
        ..CcIn::default()
    };
    let mut out = CcOut {
        snd_cwnd: 10,
        snd_ssthresh: u32::MAX,
        ..CcOut::default()
    };
    hybla.call(Op::Init, &input, &mut out);
    for _ in 0..10 {
        hybla.call(Op::CongAvoid, &input, &mut out);
        assert!(out.snd_cwnd <= 65_535);
    }
    assert_eq!(out.snd_cwnd, 65_535);
}
