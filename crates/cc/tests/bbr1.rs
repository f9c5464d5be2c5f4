//! BBRv1 as published and as in Linux: modes, filters, the policer model, recovery, idle.

mod common;

use common::{Conn, MSS_BYTES};
use knee_cc::{CaState, Event, INFINITE_SSTHRESH, Op, PacingStatus};

const RTT_US: u32 = 40_000;
/// 10 packets per ms, 116 Mbit/s: a BDP of 400 packets.
const PACKETS_PER_MS: u32 = 10;
const BDP: u32 = PACKETS_PER_MS * RTT_US / 1000;

/// One packet-timed round on a path, acked in `acks` equal ACKs; the losses show in the last. One ACK is the simplest
/// clock, but to BBR it is an aggregated one, which adds a BDP to the window.
#[derive(Clone, Copy)]
struct Round {
    packets_per_ms: u32,
    rtt_us: u32,
    losses: u32,
    in_flight: u32,
    app_limited: bool,
    acks: u32,
}

impl Default for Round {
    fn default() -> Self {
        Round {
            packets_per_ms: PACKETS_PER_MS,
            rtt_us: RTT_US,
            losses: 0,
            in_flight: BDP,
            app_limited: false,
            acks: 1,
        }
    }
}

fn bbr(params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("bbr1", params);
    c.stack.srtt_us = RTT_US;
    c
}

const SMOOTH: u32 = 10;

/// The ACKs of a round; the first begins it.
fn round(c: &mut Conn, r: Round) {
    let packets = r.packets_per_ms * r.rtt_us / 1000;
    let begin = c.stack.delivered;
    for i in 1..=r.acks {
        let last = i == r.acks;
        c.pass_us((r.rtt_us / r.acks).into());
        c.stack.rs_prior_delivered = if i == 1 { begin } else { begin.wrapping_sub(1) };
        c.stack.rs_acked_sacked = if last {
            packets - packets / r.acks * (r.acks - 1)
        } else {
            packets / r.acks
        };
        c.stack.delivered = c.stack.delivered.wrapping_add(c.stack.rs_acked_sacked);
        c.stack.rs_losses = if last { r.losses } else { 0 };
        c.stack.lost = c.stack.lost.wrapping_add(c.stack.rs_losses);
        c.stack.rs_delivered = packets as i32;
        c.stack.rs_interval_us = r.rtt_us.into();
        c.stack.rs_rtt_us = r.rtt_us.into();
        c.stack.rs_prior_in_flight = r.in_flight;
        c.stack.rs_is_app_limited = r.app_limited.into();
        c.stack.packets_out = r.in_flight;
        c.op(Op::CongControl);
    }
}

fn smooth() -> Round {
    Round {
        acks: SMOOTH,
        ..Round::default()
    }
}

/// The pacing gain in 1/256, from the pacing rate and the bandwidth that the path has.
fn gain(c: &Conn, packets_per_ms: u32) -> u64 {
    let rate_at_gain_1 = u64::from(packets_per_ms) * 1000 * u64::from(MSS_BYTES) * 99 / 100;
    (c.stack.pacing_rate * 256 + rate_at_gain_1 / 2) / rate_at_gain_1
}

/// Rounds until the pipe is full and the queue drained.
fn in_probe_bw(params: &[(&str, u32)]) -> Conn {
    let mut c = bbr(params);
    for _ in 0..5 {
        round(&mut c, Round::default());
    }
    assert!(
        [192, 256, 320].contains(&gain(&c, PACKETS_PER_MS)),
        "not in PROBE_BW"
    );
    c
}

/// One ACK of `packets` amid a round, `gap_us` after the last; the sample shows the path's rate.
fn lump(c: &mut Conn, gap_us: u64, packets: u32) {
    c.pass_us(gap_us);
    c.stack.rs_prior_delivered = c.stack.delivered.wrapping_sub(BDP);
    c.stack.delivered += packets;
    c.stack.rs_delivered = BDP as i32;
    c.stack.rs_interval_us = RTT_US.into();
    c.stack.rs_rtt_us = RTT_US.into();
    c.stack.rs_acked_sacked = packets;
    c.stack.rs_losses = 0;
    c.stack.packets_out = BDP;
    c.stack.rs_prior_in_flight = BDP;
    c.op(Op::CongControl);
}

/// PROBE_BW on a path without aggregation: a late ACK ends the epoch of the round-sized ones, and their excess ages.
fn in_smooth_probe_bw(params: &[(&str, u32)]) -> Conn {
    let mut c = in_probe_bw(params);
    lump(&mut c, 2 * u64::from(RTT_US), BDP / SMOOTH);
    for _ in 0..12 {
        round(&mut c, smooth());
    }
    c
}

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
fn bbr1_leaves_pacing_to_fq_where_fq_paces() {
    let mut c = Conn::new("bbr1", &[]);
    c.stack.pacing_status = PacingStatus::Fq as u32;
    c.op(Op::Init);
    assert_eq!(c.stack.pacing_status, PacingStatus::Fq as u32);
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
        round(
            &mut c,
            Round {
                in_flight: 3 * BDP,
                ..Round::default()
            },
        );
        assert_eq!(gain(&c, PACKETS_PER_MS), 739, "round {i}");
    }
    // First round sets the mark, three more show no growth. More than a BDP in flight: DRAIN.
    round(
        &mut c,
        Round {
            in_flight: 3 * BDP,
            ..Round::default()
        },
    );
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
        while gain(&c, PACKETS_PER_MS) != 320 {
            round(
                &mut c,
                Round {
                    rtt_us: RTT_US + 1000,
                    ..Round::default()
                },
            );
        }
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

// ---- PROBE_RTT ----

/// Rounds at a longer RTT until the window drops; returns the time since `c.stack.now_us` was `since_us`.
fn until_probe_rtt(c: &mut Conn, since_us: u64) -> u64 {
    for _ in 0..1000 {
        round(
            c,
            Round {
                rtt_us: RTT_US + 1000,
                ..Round::default()
            },
        );
        if c.cwnd() == 4 {
            return c.stack.now_us - since_us;
        }
    }
    panic!("no PROBE_RTT in {} us", c.stack.now_us - since_us);
}

#[test]
fn bbr1_probes_the_rtt_when_its_minimum_is_ten_seconds_old() {
    let mut c = in_probe_bw(&[]);
    // The RTT has been the minimum since the first round; equal samples do not renew it.
    let first_us = c.stack.now_us - 4 * u64::from(RTT_US);
    let waited_us = until_probe_rtt(&mut c, first_us);
    assert!(
        (10_000_000..10_000_000 + 2 * u64::from(RTT_US)).contains(&waited_us),
        "{waited_us} us"
    );
    assert_eq!(gain(&c, PACKETS_PER_MS), 256);
    assert_ne!(c.stack.app_limited, 0, "the low rate must be marked");
}

#[test]
fn bbr1_probe_rtt_lasts_200_ms_from_when_four_packets_are_in_flight() {
    let mut c = in_probe_bw(&[]);
    let full = c.cwnd();
    until_probe_rtt(&mut c, 0);
    let before = c.stack.now_us;
    // Still draining: the clock does not run.
    for _ in 0..20 {
        round(
            &mut c,
            Round {
                in_flight: 50,
                packets_per_ms: 1,
                app_limited: true,
                ..Round::default()
            },
        );
        assert_eq!(c.cwnd(), 4);
    }
    assert!(c.stack.now_us - before > 700_000);

    round(
        &mut c,
        Round {
            in_flight: 4,
            packets_per_ms: 1,
            app_limited: true,
            ..Round::default()
        },
    );
    let start_us = c.stack.now_us;
    while c.cwnd() == 4 {
        assert!(
            c.stack.now_us - start_us < 1_000_000,
            "PROBE_RTT does not end"
        );
        c.pass_us(1000);
        c.stack.rs_prior_delivered = c.stack.delivered; // a round has passed
        c.stack.delivered += 1;
        c.stack.rs_acked_sacked = 1;
        c.op(Op::CongControl);
    }
    assert_eq!(
        c.stack.now_us - start_us,
        201_000,
        "200 ticks of 1 ms, and strictly after"
    );
    assert!(
        c.cwnd() >= full.min(BDP),
        "the window before is restored: {} of {full}",
        c.cwnd()
    );
}

#[test]
fn bbr1_probe_rtt_needs_a_whole_round_as_well() {
    let mut c = in_probe_bw(&[]);
    until_probe_rtt(&mut c, 0);
    round(
        &mut c,
        Round {
            in_flight: 4,
            packets_per_ms: 1,
            app_limited: true,
            ..Round::default()
        },
    );
    // ACKs of packets sent before the window fell do not begin a round.
    let old = c.stack.delivered.wrapping_sub(1);
    for _ in 0..5 {
        c.pass_us(100_000);
        c.stack.rs_prior_delivered = old;
        c.stack.delivered += 1;
        c.stack.rs_acked_sacked = 1;
        c.op(Op::CongControl);
        assert_eq!(c.cwnd(), 4);
    }
    round(
        &mut c,
        Round {
            in_flight: 4,
            packets_per_ms: 1,
            app_limited: true,
            ..Round::default()
        },
    );
    assert_ne!(c.cwnd(), 4);
}

#[test]
fn bbr1_probe_rtt_can_be_switched_off() {
    let mut c = in_probe_bw(&[("probe_rtt_time", 0)]);
    for _ in 0..600 {
        round(
            &mut c,
            Round {
                rtt_us: RTT_US + 1000,
                ..Round::default()
            },
        );
        assert!(c.cwnd() > 4);
    }
}

#[test]
fn bbr1_expired_minimum_takes_no_delayed_ack() {
    // After the window of 10 s any RTT becomes the minimum, unless the receiver delayed the ACK.
    for (delayed, bdp_rtt_us) in [(1, RTT_US), (0, 2 * RTT_US)] {
        let mut c = in_smooth_probe_bw(&[("probe_rtt_time", 0)]);
        c.stack.rs_is_ack_delayed = delayed;
        for _ in 0..200 {
            round(
                &mut c,
                Round {
                    rtt_us: 2 * RTT_US,
                    in_flight: 4 * BDP,
                    acks: 2 * SMOOTH,
                    ..Round::default()
                },
            );
        }
        let bdp = 2 * PACKETS_PER_MS * bdp_rtt_us / 1000;
        assert!(
            (bdp + 40..=bdp + 41 + 3 * 12 + 3).contains(&c.cwnd()),
            "delayed {delayed}: {} for {bdp}",
            c.cwnd()
        );
    }
}

// ---- policer model ----

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
    round(
        &mut c,
        Round {
            losses: 1,
            ..Round::default()
        },
    ); // sampling begins
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
    round(
        &mut c,
        Round {
            losses: 1,
            ..Round::default()
        },
    );
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
        round(
            &mut c,
            Round {
                losses: 1,
                ..Round::default()
            },
        );
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
    round(
        &mut c,
        Round {
            losses: 1,
            ..Round::default()
        },
    );
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

// ---- ACK aggregation ----

#[test]
fn bbr1_adds_the_excess_of_aggregated_acks_for_five_to_ten_rounds() {
    let mut c = in_smooth_probe_bw(&[]);
    let before = c.cwnd();
    // ACKs compressed: 200 packets come at once, and nothing for as long as they would have taken.
    lump(&mut c, 1, 200);
    lump(&mut c, 24_000, 40);
    let windows: Vec<_> = (0..15)
        .map(|_| {
            round(&mut c, smooth());
            c.cwnd()
        })
        .collect();
    let grown = windows.iter().max().unwrap() - before;
    assert!((190..=215).contains(&grown), "grew by {grown}");
    let lasted = windows.iter().filter(|&&w| w > before + 100).count();
    assert!(
        (5..=10).contains(&lasted),
        "lasted {lasted} rounds: {windows:?}"
    );
}

#[test]
fn bbr1_without_ack_aggregation_adds_nothing_for_aggregated_acks() {
    let mut c = in_smooth_probe_bw(&[("ack_aggregation", 0)]);
    lump(&mut c, 1, 200);
    lump(&mut c, 24_000, 40);
    // Two BDP, three bursts of 7 to 12 segments, 1 to be even and 2 while probing: no extra_acked (41 when smooth).
    for _ in 0..15 {
        round(&mut c, smooth());
        let (least, most) = (2 * BDP + 3 * 7, 2 * BDP + 3 * 12 + 1 + 2);
        assert!((least..=most).contains(&c.cwnd()), "{}", c.cwnd());
    }
}

// ---- recovery, undo, idle ----

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
        round(
            &mut c,
            Round {
                in_flight: 3 * BDP,
                ..Round::default()
            },
        );
    }
    let cwnd = c.cwnd();
    assert_eq!(c.op(Op::UndoCwnd), cwnd);
    // One more flat round would have ended STARTUP; now a new mark and three rounds are needed.
    for _ in 0..3 {
        round(
            &mut c,
            Round {
                in_flight: 3 * BDP,
                ..Round::default()
            },
        );
        assert_eq!(gain(&c, PACKETS_PER_MS), 739);
    }
    round(
        &mut c,
        Round {
            in_flight: 3 * BDP,
            ..Round::default()
        },
    );
    assert_eq!(gain(&c, PACKETS_PER_MS), 88);
}

#[test]
fn bbr1_restarts_from_idle_at_exactly_the_bandwidth() {
    let mut c = in_probe_bw(&[]);
    while gain(&c, PACKETS_PER_MS) != 320 {
        round(
            &mut c,
            Round {
                rtt_us: RTT_US + 1000,
                ..Round::default()
            },
        );
    }
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
    round(
        &mut c,
        Round {
            rtt_us: RTT_US + 1000,
            ..Round::default()
        },
    );
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

#[test]
fn bbr1_sends_single_segments_below_1200_kbit_per_sec() {
    let mut c = bbr(&[]);
    for (rate, segments) in [(149_999, 1), (150_000, 2), (1 << 40, 2)] {
        c.stack.pacing_rate = rate;
        assert_eq!(c.op(Op::MinTsoSegs), segments, "{rate} B/s");
    }
    assert_eq!(c.op(Op::SndbufExpand), 3);
}

#[test]
fn bbr1_obeys_the_pacing_limit_of_the_socket() {
    let mut c = bbr(&[]);
    c.stack.max_pacing_rate = 1_000_000;
    c.op(Op::Init);
    for _ in 0..10 {
        round(&mut c, Round::default());
        assert!(c.stack.pacing_rate <= 1_000_000);
    }
}

#[test]
fn bbr1_tells_nothing_of_the_path_before_the_first_ack() {
    let info = Conn::new("bbr1", &[]).info().unwrap();
    assert_eq!(info.bw_bytes_per_sec, None);
    assert_eq!(info.min_rtt_us, None);
    assert_eq!(info.phase, "Startup");
}

#[test]
fn bbr1_tells_the_bandwidth_without_margin_and_the_gains_of_each_phase() {
    let mut c = bbr(&[]);
    round(&mut c, Round::default());
    let info = c.info().unwrap();
    let bw = f64::from(PACKETS_PER_MS) * 1000.0 * f64::from(MSS_BYTES);
    // 2^-24 segments/us is the grain of bw.
    assert!((info.bw_bytes_per_sec.unwrap() as f64 / bw - 1.0).abs() < 1e-4);
    assert_eq!(info.min_rtt_us, Some(RTT_US));
    let gains = |c: &Conn| {
        let info = c.info().unwrap();
        (info.phase, info.pacing_gain * 256.0, info.cwnd_gain * 256.0)
    };
    assert_eq!(gains(&c), ("Startup", 739.0, 739.0));

    // The plateau is seen, the queue not yet drained.
    let queue = Round {
        in_flight: 3 * BDP,
        ..Round::default()
    };
    for _ in 0..3 {
        round(&mut c, queue);
    }
    assert_eq!(gains(&c), ("Drain", 88.0, 739.0));
    round(&mut c, Round::default());
    let (phase, pacing_gain, cwnd_gain) = gains(&c);
    assert_eq!((phase, cwnd_gain), ("ProbeBw", 512.0));
    assert!([192.0, 256.0, 320.0].contains(&pacing_gain));

    let rounds_in_10_s = 10_000_000 / RTT_US + 1;
    let late = Round {
        rtt_us: RTT_US + 1000,
        ..Round::default()
    };
    for _ in 0..rounds_in_10_s {
        round(&mut c, late);
    }
    assert_eq!(gains(&c), ("ProbeRtt", 256.0, 256.0));
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

#[test]
fn algorithms_without_a_model_of_the_path_tell_nothing() {
    assert_eq!(Conn::new("reno", &[]).info(), None);
    assert_eq!(Conn::new("cubic", &[]).info(), None);
}
