//! Losses, recovery, undo and idle.

use super::{
    BDP, PACKETS_PER_MS, RTT_US, Round, bbr, gain, in_probe_bw, in_smooth_probe_bw, longer, lump,
    overfull, round, until_probe,
};
use crate::common::Conn;
use knee_cc::{CaState, Event, Op};

#[test]
fn bbr1_conserves_packets_in_the_first_round_of_recovery_and_restores_after() {
    let mut c = in_smooth_probe_bw(&[]);
    let before = c.cwnd();
    c.op(Op::Ssthresh);
    assert_eq!(c.cwnd(), before, "ssthresh only notes the window");
    c.stack.ca_state = CaState::Recovery as u32;

    // Mid-round ACK of 10: the window becomes what is in flight plus what was acked.
    let conserve = |c: &mut Conn, in_flight: u32| {
        c.pass_us(1000);
        c.stack.rs_prior_delivered = c.stack.delivered.wrapping_sub(BDP);
        c.stack.delivered += 10;
        c.stack.rs_delivered = BDP as i32;
        c.stack.rs_interval_us = RTT_US.into();
        c.stack.rs_acked_sacked = 10;
        c.stack.rs_losses = 3;
        c.stack.packets_out = in_flight;
        c.op(Op::CongControl);
        c.cwnd()
    };
    assert_eq!(conserve(&mut c, 300), 310);
    assert_eq!(conserve(&mut c, 290), 307, "3 lost, at least 290 + 10");

    c.stack.ca_state = CaState::Open as u32;
    lump(&mut c, 1000, 1);
    assert!(c.cwnd() >= before - 20, "{} of {before}", c.cwnd());
}

#[test]
fn bbr1_undo_keeps_the_window_and_looks_for_the_full_pipe_anew() {
    let mut c = bbr(&[]);
    for _ in 0..3 {
        round(&mut c, overfull());
    }
    let cwnd = c.cwnd();
    assert_eq!(c.op(Op::UndoCwnd), cwnd);
    // One more flat round would have ended STARTUP; now a new mark and three rounds are needed.
    for _ in 0..3 {
        round(&mut c, overfull());
        assert_eq!(gain(&c, PACKETS_PER_MS), 739);
    }
    round(&mut c, overfull());
    assert_eq!(gain(&c, PACKETS_PER_MS), 88);
}

#[test]
fn bbr1_restarts_from_idle_at_exactly_the_bandwidth() {
    let mut c = in_probe_bw(&[]);
    until_probe(&mut c);
    c.stack.app_limited = 0;
    c.event(Event::TxStart);
    assert_eq!(
        gain(&c, PACKETS_PER_MS),
        320,
        "not app-limited: nothing changes"
    );
    c.stack.app_limited = 1;
    c.event(Event::TxStart);
    assert_eq!(gain(&c, PACKETS_PER_MS), 256);
}

#[test]
fn bbr1_idle_is_no_reason_to_probe_the_rtt() {
    let mut c = in_probe_bw(&[]);
    c.pass_us(20_000_000);
    c.stack.app_limited = 1;
    c.event(Event::TxStart);
    round(&mut c, longer());
    assert!(c.cwnd() > 4);
}

#[test]
fn bbr1_does_not_slow_down_for_five_percent_loss() {
    let mut c = in_probe_bw(&[]);
    for _ in 0..100 {
        c.op(Op::Ssthresh);
        c.stack.ca_state = CaState::Recovery as u32;
        round(
            &mut c,
            Round {
                losses: BDP / 20,
                ..Round::default()
            },
        );
        c.stack.ca_state = CaState::Open as u32;
        round(&mut c, Round::default());
    }
    assert!(gain(&c, PACKETS_PER_MS) >= 192);
    assert!(c.cwnd() >= 2 * BDP, "{}", c.cwnd());
}
