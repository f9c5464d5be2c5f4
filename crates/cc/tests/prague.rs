//! Prague does what its draft says: a window with a fraction that marks cut by half their share.

use crate::common::{Conn, MSS_BYTES};
use knee_cc::{ACK_ECE, CaState, EcnMode, Event, Op, PacingStatus};

const RTT_US: u32 = 50_000;

fn prague(params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("prague", params);
    c.stack.ecn_mode = EcnMode::Accurate as u32;
    c.stack.srtt_us = RTT_US;
    c.op(Op::Init);
    c
}

/// One in congestion avoidance, with that window.
fn avoiding(cwnd: u32, params: &[(&str, u32)]) -> Conn {
    let mut c = prague(params);
    c.stack.snd_cwnd = cwnd;
    c.stack.snd_ssthresh = cwnd;
    c.op(Op::Init);
    c
}

/// An ACK of so many packets, some of them marked, as the stack handles it.
fn ack(c: &mut Conn, acked: u32, marked: u32) {
    let stack = &mut c.stack;
    stack.delivered += acked;
    stack.delivered_ce += marked;
    stack.rs_acked_sacked = acked;
    stack.ack_flags = if marked > 0 { ACK_ECE } else { 0 };
    stack.snd_una = stack.snd_una.wrapping_add(acked * MSS_BYTES);
    stack.snd_nxt = stack.snd_una.wrapping_add(stack.snd_cwnd * MSS_BYTES);
    if marked > 0 {
        c.stack.snd_ssthresh = c.op(Op::Ssthresh);
        c.set_state(CaState::Cwr);
    }
    c.op(Op::CongControl);
}

/// A window's worth of ACKs of one packet each over a round trip; the last of them tells all marks.
fn round(c: &mut Conn, rtt_us: u32, marked: u32) {
    c.stack.srtt_us = rtt_us;
    let acks = c.cwnd();
    for i in 0..acks {
        c.pass_us(u64::from(rtt_us / acks));
        ack(c, 1, if i + 1 == acks { marked } else { 0 });
    }
    c.set_state(CaState::Open);
}

#[test]
fn prague_doubles_in_slow_start_and_leaves_it_at_the_first_mark() {
    let mut c = prague(&[]);
    for doubled in [20, 40, 80] {
        round(&mut c, RTT_US, 0);
        assert_eq!(c.cwnd(), doubled);
    }
    ack(&mut c, 2, 1);
    assert_eq!(c.stack.snd_ssthresh, 40);
    c.set_state(CaState::Open);
    for _ in 0..60 {
        ack(&mut c, 1, 0);
    }
    assert!((40..=42).contains(&c.cwnd()), "{}", c.cwnd());
}

/// The window follows by one per ACK, so that nothing stalls and no burst comes of it.
#[test]
fn prague_moves_the_window_by_one_per_ack() {
    let mut c = avoiding(100, &[]);
    for _ in 0..3 {
        let before = c.cwnd();
        ack(&mut c, 10, 1);
        assert_eq!(c.cwnd(), before - 1);
        c.set_state(CaState::Open);
    }
}

#[test]
fn prague_grows_one_segment_per_round_also_while_it_is_cut() {
    let mut c = avoiding(100, &[("alpha_on_init", 0)]);
    for _ in 0..20 {
        round(&mut c, RTT_US, 0);
    }
    assert!((119..=121).contains(&c.cwnd()), "{}", c.cwnd());
    c.set_state(CaState::Cwr);
    let before = c.cwnd();
    for _ in 0..2 * before {
        ack(&mut c, 1, 0);
    }
    assert!((1..=2).contains(&(c.cwnd() - before)), "{}", c.cwnd());
}

/// Balance of one segment per round and unmarked packet, and half the share of marks: W (p / 2) = 1 - p.
#[test]
fn prague_comes_to_rest_at_two_over_p_less_two() {
    for p in [0.02, 0.1, 0.3] {
        let mut c = avoiding(20, &[]);
        let (mut due, mut sum) = (0.0, 0.0);
        for i in 0..2_000 {
            due += p * f64::from(c.cwnd());
            let marked = f64::floor(due);
            due -= marked;
            round(&mut c, RTT_US, marked as u32);
            sum += if i < 1_000 { 0.0 } else { f64::from(c.cwnd()) };
        }
        let (mean, law) = (sum / 1_000.0, 2.0 * (1.0 - p) / p);
        // The window is W rounded up: half a segment more on average.
        assert!(
            (mean - 0.5 - law).abs() < 0.1 * law,
            "p {p}: {mean}, not {law}"
        );
    }
}

/// Source: draft-briscoe-iccrg-prague-congestion-control, section 2.4.4: (rtt / 25 ms)^2 of a segment per round.
#[test]
fn prague_of_a_short_rtt_grows_as_one_of_25_ms_would() {
    let grown = |transition, rtt_us| {
        let params = [("alpha_on_init", 0), ("rtt_transition", transition)];
        let mut c = avoiding(100, &params);
        c.stack.srtt_us = rtt_us;
        c.op(Op::Init);
        for _ in 0..400 {
            round(&mut c, rtt_us, 0);
        }
        c.cwnd() - 100
    };
    assert!((398..=402).contains(&grown(1_000, 5_000)), "too early");
    assert!((14..=18).contains(&grown(0, 5_000)), "{}", grown(0, 5_000));
    assert!(
        (398..=402).contains(&grown(0, 30_000)),
        "long RTTs are left alone"
    );
}

#[test]
fn prague_paces_at_the_window_per_round_trip() {
    let mut c = avoiding(100, &[]);
    assert_eq!(c.stack.pacing_status, PacingStatus::Needed as u32);
    ack(&mut c, 1, 0);
    let rate = 100 * u64::from(MSS_BYTES) * 1_000_000 / u64::from(RTT_US);
    let ratio = c.stack.pacing_rate as f64 / rate as f64;
    assert!((1.0..1.001).contains(&ratio), "{ratio}");

    let mut starting = prague(&[]);
    ack(&mut starting, 1, 0);
    let rate = 11 * u64::from(MSS_BYTES) * 1_000_000 / u64::from(RTT_US);
    assert_eq!(starting.stack.pacing_rate, 2 * rate);
}

#[test]
fn prague_halves_at_a_loss_and_waits_with_growing_until_it_is_repaired() {
    let mut c = avoiding(100, &[("alpha_on_init", 0)]);
    c.set_state(CaState::Recovery);
    assert_eq!(c.stack.snd_ssthresh, 50);
    for _ in 0..80 {
        ack(&mut c, 1, 0);
    }
    assert_eq!(c.cwnd(), 50);
    assert_eq!(c.op(Op::UndoCwnd), 100);

    let mut c = avoiding(100, &[("alpha_on_init", 0)]);
    c.event(Event::Loss);
    assert_eq!(c.stack.snd_ssthresh, 50);
}

/// Nothing shows yet that the path marks: what was no mark must not lower alpha.
#[test]
fn prague_learns_nothing_before_the_first_mark() {
    let mut c = avoiding(100, &[]);
    for _ in 0..50 {
        round(&mut c, RTT_US, 0);
    }
    let before = c.cwnd();
    ack(&mut c, 1, 1);
    assert!(
        c.stack.snd_ssthresh.abs_diff(before / 2) <= 1,
        "alpha was not 1"
    );
}
