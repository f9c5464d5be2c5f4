//! STARTUP and DRAIN.

use super::{BDP, PACKETS_PER_MS, RTT_US, Round, bbr, gain, overfull, round};
use crate::common::{Conn, MSS_BYTES};
use knee_cc::{INFINITE_SSTHRESH, PacingStatus};

#[test]
fn bbr1_begins_at_high_gain_times_the_window_per_rtt() {
    let mut c = Conn::new("bbr1", &[]);
    let one_ms_guess = c.stack.pacing_rate;
    assert_eq!(c.stack.pacing_status, PacingStatus::Needed as u32);
    assert_eq!(c.stack.snd_ssthresh, INFINITE_SSTHRESH);

    // The first RTT sample replaces the guess of 1 ms.
    c.stack.srtt_us = RTT_US;
    round(
        &mut c,
        Round {
            packets_per_ms: 0,
            app_limited: true,
            ..Round::default()
        },
    );
    let expected =
        |rtt_us: f64| 739.0 / 256.0 * 10.0 * f64::from(MSS_BYTES) * 0.99 / (rtt_us * 1e-6);
    for (rate, rtt_us) in [
        (one_ms_guess, 1000.0),
        (c.stack.pacing_rate, f64::from(RTT_US)),
    ] {
        let ratio = rate as f64 / expected(rtt_us);
        assert!(
            (0.999..=1.001).contains(&ratio),
            "{rate} B/s at {rtt_us} us"
        );
    }
}

#[test]
fn bbr1_startup_goes_on_while_bandwidth_grows_by_a_quarter() {
    let mut c = bbr(&[]);
    let mut rate = 1000;
    for _ in 0..12 {
        round(
            &mut c,
            Round {
                packets_per_ms: rate,
                rtt_us: 1000,
                ..Round::default()
            },
        );
        assert_eq!(gain(&c, rate), 739, "at {rate} packets/ms");
        rate = rate * 5 / 4 + 2;
    }
}

#[test]
fn bbr1_startup_ends_three_rounds_after_the_plateau() {
    let mut c = bbr(&[]);
    for i in 0..3 {
        round(&mut c, overfull());
        assert_eq!(gain(&c, PACKETS_PER_MS), 739, "round {i}");
    }
    // First round sets the mark, three more show no growth. More than a BDP in flight: DRAIN.
    round(&mut c, overfull());
    assert_eq!(gain(&c, PACKETS_PER_MS), 88);
    assert_ne!(c.stack.snd_ssthresh, INFINITE_SSTHRESH);
}

#[test]
fn bbr1_app_limited_rounds_do_not_end_startup() {
    let mut c = bbr(&[]);
    round(&mut c, Round::default());
    for _ in 0..10 {
        round(
            &mut c,
            Round {
                app_limited: true,
                ..Round::default()
            },
        );
    }
    assert_eq!(gain(&c, PACKETS_PER_MS), 739);
}

#[test]
fn bbr1_drains_until_a_bdp_is_in_flight() {
    let mut c = bbr(&[]);
    for _ in 0..8 {
        round(
            &mut c,
            Round {
                in_flight: 2 * BDP,
                ..Round::default()
            },
        );
    }
    assert_eq!(gain(&c, PACKETS_PER_MS), 88);
    round(&mut c, Round::default());
    assert_ne!(gain(&c, PACKETS_PER_MS), 88);
}
