//! The model of a policer.

use super::{BDP, PACKETS_PER_MS, RTT_US, Round, gain, in_probe_bw, lossy, round};
use crate::common::{Conn, MSS_BYTES};
use knee_cc::{CaState, Event, Op};

/// An interval that the model may take: `rounds` rounds at `packets_per_ms`, the last with `loss_pct` of all of it.
fn lossy_interval(c: &mut Conn, packets_per_ms: u32, rounds: u32, loss_pct: u32) {
    let r = Round {
        packets_per_ms,
        in_flight: BDP,
        ..Round::default()
    };
    for _ in 1..rounds {
        round(c, r);
    }
    let losses = packets_per_ms * RTT_US / 1000 * rounds * loss_pct / 100;
    round(c, Round { losses, ..r });
}

#[test]
fn bbr1_policer_model_engages_after_two_like_intervals() {
    let mut c = in_probe_bw(&[]);
    let policed = PACKETS_PER_MS / 2;
    round(&mut c, lossy()); // sampling begins
    lossy_interval(&mut c, policed, 5, 25);
    assert_ne!(gain(&c, policed), 256, "one interval is no proof");
    lossy_interval(&mut c, policed, 5, 25);
    assert_eq!(
        gain(&c, policed),
        256,
        "paces at the mean of the two intervals"
    );
}

#[test]
fn bbr1_policer_model_lasts_48_rounds() {
    let mut c = in_probe_bw(&[]);
    let policed = PACKETS_PER_MS / 2;
    round(&mut c, lossy());
    lossy_interval(&mut c, policed, 5, 25);
    lossy_interval(&mut c, policed, 5, 25);
    for i in 1..48 {
        round(&mut c, Round::default());
        assert_eq!(gain(&c, policed), 256, "round {i}");
    }
    round(&mut c, Round::default());
    assert_ne!(gain(&c, policed), 256);
}

/// With the policer's rate in use the gain is 1 in every phase, so eight phases prove it.
fn paces_at_gain_1_for_a_cycle(c: &mut Conn, packets_per_ms: u32) -> bool {
    (0..8).all(|_| {
        round(
            c,
            Round {
                rtt_us: RTT_US + 1000,
                in_flight: 2 * BDP,
                ..Round::default()
            },
        );
        gain(c, packets_per_ms) == 256
    })
}

#[test]
fn bbr1_policer_model_needs_like_rates_enough_loss_and_four_rounds() {
    // (second rate in packets/ms, rounds, loss %): each misses one condition; then all hold.
    for (second, rounds, loss_pct, engages) in [
        (7, 5, 25, false),
        (5, 5, 19, false),
        (5, 3, 25, false),
        (5, 18, 25, false),
        (5, 5, 25, true),
    ] {
        let mut c = in_probe_bw(&[]);
        round(&mut c, lossy());
        for rate in [5, second] {
            lossy_interval(&mut c, rate, rounds, loss_pct);
        }
        let held = paces_at_gain_1_for_a_cycle(&mut c, 5);
        assert_eq!(
            held, engages,
            "second rate {second}, {rounds} rounds, {loss_pct} % lost"
        );
    }
}

#[test]
fn bbr1_policer_model_can_be_switched_off() {
    let mut c = in_probe_bw(&[("policer_model", 0)]);
    round(&mut c, lossy());
    lossy_interval(&mut c, 5, 5, 25);
    lossy_interval(&mut c, 5, 5, 25);
    assert!(!paces_at_gain_1_for_a_cycle(&mut c, 5));
}

/// tp->delivered_mstamp begins anew with the first packet sent while none is out, and an interval that a timeout begins
/// is measured from there. With packets still out it stays where the last ACK left it: here seconds before.
#[test]
fn bbr1_policer_model_measures_an_interval_after_idle_from_the_first_packet() {
    for (packets_out, engages) in [(0, true), (1, false)] {
        let mut c = in_probe_bw(&[]);
        c.pass_us(5_000_000);
        c.stack.packets_out = packets_out;
        c.event(Event::TxStart);
        c.stack.state = CaState::Loss as u32;
        c.op(Op::SetState);
        c.stack.state = CaState::Open as u32;
        lossy_interval(&mut c, 5, 5, 25);
        lossy_interval(&mut c, 5, 5, 25);
        assert_eq!(
            paces_at_gain_1_for_a_cycle(&mut c, 5),
            engages,
            "{packets_out} packets out"
        );
    }
}

#[test]
fn bbr1_tells_the_policers_rate_while_it_is_in_use() {
    let mut c = in_probe_bw(&[]);
    let policed = Round {
        packets_per_ms: PACKETS_PER_MS / 2,
        losses: 100,
        ..Round::default()
    };
    for _ in 0..20 {
        round(&mut c, policed);
    }
    let half = f64::from(PACKETS_PER_MS / 2) * 1000.0 * f64::from(MSS_BYTES);
    let info = c.info().unwrap();
    assert!((info.bw_bytes_per_sec.unwrap() as f64 / half - 1.0).abs() < 0.01);
    assert_eq!(info.pacing_gain, 1.0);
}
