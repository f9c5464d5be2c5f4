//! PROBE_BW: its gain cycle, the window, and the filter of bandwidths.

use super::{
    BDP, PACKETS_PER_MS, RTT_US, Round, bbr, gain, in_probe_bw, in_smooth_probe_bw, round,
    until_probe,
};
use crate::common::MSS_BYTES;

#[test]
fn bbr1_gain_cycle_is_probe_drain_and_six_cruises() {
    let mut c = in_probe_bw(&[]);
    let mut gains = Vec::new();
    for _ in 0..32 {
        // Just over an RTT per ACK: each phase lasts one. In flight as the probe wants it.
        round(
            &mut c,
            Round {
                rtt_us: RTT_US + 1000,
                in_flight: 2 * BDP,
                ..Round::default()
            },
        );
        gains.push(gain(&c, PACKETS_PER_MS));
    }
    let first = gains.iter().position(|&g| g == 320).unwrap();
    assert!(first < 8);
    for (i, &g) in gains[first..].iter().enumerate() {
        assert_eq!(
            g,
            [320, 192, 256, 256, 256, 256, 256, 256][i % 8],
            "phase {i} of {gains:?}"
        );
    }
}

#[test]
fn bbr1_gain_cycle_never_begins_with_the_drain_phase() {
    let mut seen = std::collections::BTreeSet::new();
    for i in 0..70u64 {
        let mut c = bbr(&[]);
        c.stack.random = (i * (u64::from(u32::MAX) / 69)) as u32;
        for _ in 0..4 {
            round(&mut c, Round::default());
        }
        // Rounds until the next probe tell the phase that was first.
        let mut rounds = 0;
        while gain(&c, PACKETS_PER_MS) != 320 {
            assert_ne!(
                (rounds, gain(&c, PACKETS_PER_MS)),
                (0, 192),
                "began in the drain phase"
            );
            round(
                &mut c,
                Round {
                    rtt_us: RTT_US + 1000,
                    in_flight: 2 * BDP,
                    ..Round::default()
                },
            );
            rounds += 1;
        }
        seen.insert((8 - rounds) % 8);
    }
    assert_eq!(Vec::from_iter(seen), [0, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn bbr1_probe_lasts_until_its_inflight_or_a_loss() {
    for (in_flight, losses, ends) in [
        (BDP, 0, false),
        (BDP * 5 / 4 + 200, 0, true),
        (BDP, 1, true),
    ] {
        let mut c = in_probe_bw(&[]);
        until_probe(&mut c);
        for _ in 0..3 {
            round(
                &mut c,
                Round {
                    rtt_us: RTT_US + 1000,
                    in_flight,
                    losses,
                    ..Round::default()
                },
            );
            if ends {
                break;
            }
        }
        let expected = if ends { 192 } else { 320 };
        assert_eq!(
            gain(&c, PACKETS_PER_MS),
            expected,
            "{in_flight} in flight, {losses} lost"
        );
    }
}

#[test]
fn bbr1_window_is_two_bdp_and_the_quantum() {
    let c = in_smooth_probe_bw(&[]);
    // 40 packets per ACK are aggregated, 41 with the rounding of bw. Bursts are of (rate / 1024) / MSS, 7 to 12
    // segments by the gain; three of them, then 1 to be even and 2 while probing.
    let (least, most) = (2 * BDP + 40 + 3 * 7, 2 * BDP + 41 + 3 * 12 + 1 + 2);
    assert!((least..=most).contains(&c.cwnd()), "{}", c.cwnd());
}

#[test]
fn bbr1_forgets_a_bandwidth_after_ten_rounds() {
    let mut c = in_probe_bw(&[]);
    let slow = Round {
        packets_per_ms: PACKETS_PER_MS / 2,
        in_flight: BDP / 2,
        ..Round::default()
    };
    let rounds = (1..40).find(|_| {
        round(&mut c, slow);
        c.stack.pacing_rate < u64::from(PACKETS_PER_MS) * 1000 * u64::from(MSS_BYTES) * 7 / 10
    });
    assert!(matches!(rounds, Some(10..=12)), "{rounds:?}");
}

/// Application-limited rounds bring no samples, so two of the three best samples expire between two updates.
#[test]
fn bbr1_forgets_every_bandwidth_that_is_older_than_ten_rounds() {
    let mut c = bbr(&[]);
    for number in 0..=14 {
        let sample = match number {
            0 => Some(10),
            3 => Some(9),
            6 => Some(8),
            14 => Some(7),
            _ => None,
        };
        round(
            &mut c,
            Round {
                packets_per_ms: sample.unwrap_or(5),
                app_limited: sample.is_none(),
                ..Round::default()
            },
        );
    }
    // The samples of 10, 9 and 8 packets per ms are 14, 11 and 8 rounds old.
    let packets_per_ms =
        c.info().unwrap().bw_bytes_per_sec.unwrap() as f64 / f64::from(MSS_BYTES) / 1000.0;
    assert!((packets_per_ms - 8.0).abs() < 0.01, "{packets_per_ms}");
}

#[test]
fn bbr1_takes_app_limited_samples_only_when_they_raise_the_estimate() {
    let mut c = in_probe_bw(&[]);
    for _ in 0..30 {
        round(
            &mut c,
            Round {
                packets_per_ms: 1,
                app_limited: true,
                ..Round::default()
            },
        );
    }
    assert!(
        gain(&c, PACKETS_PER_MS) >= 192,
        "an idle application lowered the estimate"
    );
    round(
        &mut c,
        Round {
            packets_per_ms: 3 * PACKETS_PER_MS,
            app_limited: true,
            ..Round::default()
        },
    );
    assert!(
        gain(&c, 3 * PACKETS_PER_MS) >= 192,
        "a higher sample was not used"
    );
}
