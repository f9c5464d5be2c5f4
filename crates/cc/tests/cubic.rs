//! CUBIC follows the curve of RFC 9438, Reno where Reno is faster, and HyStart out of slow start.

use crate::common::{Conn, HZ};
use knee_cc::{CaState, Event, INFINITE_SSTHRESH, Op};

const RTT_US: u32 = 100_000;

/// In avoidance just after a loss at `w_max`, with the RTT known.
fn after_loss(w_max: u32, rtt_us: u32, params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("cubic", params);
    c.ack(1, rtt_us.into());
    c.stack.snd_cwnd = w_max;
    c.lose();
    c
}

/// Runs rounds until `seconds` after the call; returns the window then.
fn run_for(c: &mut Conn, seconds: f64, rtt_us: u32) -> u32 {
    let end_us = c.stack.now_us + (seconds * 1e6) as u64;
    while c.stack.now_us + u64::from(rtt_us) <= end_us {
        c.round(rtt_us);
    }
    c.cwnd()
}

fn k_seconds(w_max: f64, start: f64) -> f64 {
    ((w_max - start) / 0.4).cbrt()
}

#[track_caller]
fn assert_near(got: u32, expected: f64, tolerance: f64) {
    assert!(
        (f64::from(got) - expected).abs() <= tolerance,
        "got {got}, expected {expected:.1} ± {tolerance}"
    );
}

#[test]
fn cubic_keeps_seven_tenths_at_a_loss() {
    let mut c = Conn::new("cubic", &[]);
    c.stack.snd_cwnd = 1000;
    assert_eq!(c.op(Op::Ssthresh), 700);
    c.stack.snd_cwnd = 2;
    assert_eq!(c.op(Op::Ssthresh), 2);
    // 717/1024 of a window whose product leaves 32 bits.
    c.stack.snd_cwnd = 100_000_000;
    assert_eq!(c.op(Op::Ssthresh), 70_019_531);
}

#[test]
fn cubic_reaches_w_max_at_time_k() {
    let mut c = after_loss(1000, RTT_US, &[]);
    assert_eq!(c.cwnd(), 700);
    // RFC 9438 section 4.2: W(K) = W_max; K = 9.09 s (section 5.1 has this example).
    let k = k_seconds(1000.0, 700.0);
    assert_near(run_for(&mut c, k, RTT_US), 1000.0, 3.0);
}

#[test]
fn cubic_follows_its_curve_before_and_after_k() {
    let k = k_seconds(1000.0, 700.0);
    for t in [1.0, 2.0, 4.0, 6.0, 8.0, 11.0, 13.0, 15.0] {
        let mut c = after_loss(1000, RTT_US, &[]);
        let curve = 0.4 * (t - k).powi(3) + 1000.0;
        assert_near(run_for(&mut c, t, RTT_US), curve, 0.01 * curve);
    }
}

#[test]
fn cubic_growth_depends_on_time_not_on_the_rtt() {
    let k = k_seconds(1000.0, 700.0);
    for rtt_us in [50_000, 200_000] {
        let mut c = after_loss(1000, rtt_us, &[("tcp_friendliness", 0)]);
        assert_near(run_for(&mut c, k, rtt_us), 1000.0, 8.0);
    }
}

#[test]
fn fast_convergence_aims_below_the_loss_when_room_shrinks() {
    // Second loss at 800, below the W_max of 1000: W_max becomes 800 * (1 + beta) / 2 = 680.
    for (fast_convergence, w_max) in [(1, 680.0), (0, 800.0)] {
        let mut c = after_loss(1000, RTT_US, &[("fast_convergence", fast_convergence)]);
        c.stack.snd_cwnd = 800;
        c.lose();
        assert_eq!(c.cwnd(), 560);
        assert_near(run_for(&mut c, k_seconds(w_max, 560.0), RTT_US), w_max, 4.0);
    }
}

#[test]
fn fast_convergence_rests_when_the_window_passed_the_last_w_max() {
    let mut c = after_loss(1000, RTT_US, &[]);
    c.stack.snd_cwnd = 1200;
    c.lose();
    let k = k_seconds(1200.0, 840.0);
    assert_near(run_for(&mut c, k, RTT_US), 1200.0, 4.0);
}

#[test]
fn cubic_grows_like_reno_on_short_paths() {
    // RTT 1 ms: in 100 rounds the cubic alone would grow by 2 segments; Reno with beta 0.7 by 100 * 8/15.
    let rounds = |params| {
        let mut c = after_loss(100, 1000, params);
        for _ in 0..100 {
            c.round(1000);
        }
        c.cwnd()
    };
    assert_near(rounds(&[]), 70.0 + 100.0 * 8.0 / 15.0, 3.0);
    assert!(rounds(&[("tcp_friendliness", 0)]) < 75);
}

#[test]
fn cubic_grows_at_most_half_a_window_per_round() {
    // W_max far away: the cubic wants far more than 1.5 x.
    let mut c = after_loss(1000, RTT_US, &[]);
    c.stack.snd_cwnd = 20;
    c.stack.snd_ssthresh = 20;
    c.round(RTT_US);
    assert!((25..=30).contains(&c.cwnd()), "{}", c.cwnd());
}

#[test]
fn cubic_without_a_w_max_grows_five_percent_per_round() {
    let mut c = Conn::new("cubic", &[]);
    c.stack.snd_cwnd = 1000;
    c.stack.snd_ssthresh = 1000;
    c.round(RTT_US);
    assert_near(c.cwnd(), 1050.0, 3.0);
}

#[test]
fn a_timeout_makes_cubic_forget_w_max() {
    let mut c = after_loss(1000, RTT_US, &[]);
    c.time_out();
    c.set_state(CaState::Open);
    c.stack.snd_cwnd = 500;
    c.stack.snd_ssthresh = 500;
    c.round(RTT_US);
    // With W_max = 1000 the first round would add the limit of half a window.
    assert_near(c.cwnd(), 525.0, 3.0);
}

#[test]
fn idle_time_does_not_count_on_the_curve() {
    let mut c = after_loss(1000, RTT_US, &[]);
    run_for(&mut c, 2.0, RTT_US);
    let before = c.cwnd();
    let sent_at = c.stack.lsndtime;
    c.pass_us(20_000_000);
    c.stack.lsndtime = sent_at;
    c.event(Event::TxStart);
    c.stack.lsndtime = c.stack.jiffies;
    let after = run_for(&mut c, 0.5, RTT_US);
    // On the curve from 2.0 s to 2.5 s; 22 s would be far past W_max, where 1.5 x per round is the limit.
    let k = k_seconds(1000.0, 700.0);
    assert_near(after, 0.4 * (2.5 - k).powi(3) + 1000.0, 12.0);
    assert!(after > before);
}

#[test]
fn cubic_looks_at_the_curve_once_per_jiffy_at_most() {
    // Two flows get the same packets acked in the same jiffy, in one ACK or in forty: same slope, same window.
    let window = |acks: u32| {
        let mut c = after_loss(1000, RTT_US, &[("tcp_friendliness", 0)]);
        c.pass_us(3_000_000);
        c.ack(1, -1);
        for _ in 0..acks {
            c.ack(40 / acks, -1);
        }
        (c.cwnd(), c.stack.snd_cwnd_cnt)
    };
    assert_eq!(window(1), window(40));
}

#[test]
fn cubic_undo_takes_back_the_window_before_the_loss() {
    let mut c = after_loss(1000, RTT_US, &[]);
    assert_eq!(c.op(Op::UndoCwnd), 1000);
}

/// In slow start at 100 segments with a known minimum RTT, at the beginning of a round.
fn in_slow_start(min_rtt_us: u32, params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("cubic", params);
    c.ack(1, min_rtt_us.into());
    c.stack.snd_cwnd = 100;
    // Out of every train so far.
    c.pass_us(1_000_000);
    c
}

/// An RTT sample alone, `gap_us` after the last; returns whether slow start has ended.
fn sample(c: &mut Conn, gap_us: u64, rtt_us: u32) -> bool {
    c.pass_us(gap_us);
    c.stack.ack_rtt_us = rtt_us.into();
    c.op(Op::PktsAcked);
    c.stack.snd_ssthresh != INFINITE_SSTHRESH
}

/// Begins a round: everything sent so far is acked.
fn begin_round(c: &mut Conn) {
    c.stack.snd_una = c.stack.snd_nxt.wrapping_add(1);
    c.stack.snd_nxt = c.stack.snd_una.wrapping_add(1_000_000);
}

#[test]
fn hystart_leaves_on_a_delay_rise_after_eight_samples() {
    let mut c = in_slow_start(40_000, &[("hystart", 2)]);
    begin_round(&mut c);
    // Threshold: 40 ms + clamp(40 / 8, 4, 16) = 45 ms, exceeded strictly.
    for i in 0..8 {
        assert!(!sample(&mut c, 3000, 45_001), "left at sample {i}");
    }
    assert!(sample(&mut c, 3000, 45_001));
    assert_eq!(c.stack.snd_ssthresh, 100);
}

#[test]
fn hystart_delay_threshold_is_an_eighth_within_4_and_16_ms() {
    for (min_rtt_us, rise_us) in [(1000, 4000), (40_000, 5000), (400_000, 16_000)] {
        for (extra_us, leaves) in [(0, false), (1, true)] {
            let mut c = in_slow_start(min_rtt_us, &[("hystart", 2)]);
            begin_round(&mut c);
            let left = (0..20).any(|_| sample(&mut c, 3000, min_rtt_us + rise_us + extra_us));
            assert_eq!(
                left, leaves,
                "min RTT {min_rtt_us} us, rise {rise_us} + {extra_us} us"
            );
        }
    }
}

#[test]
fn hystart_forgives_a_round_with_one_fast_sample() {
    let mut c = in_slow_start(40_000, &[("hystart", 2)]);
    begin_round(&mut c);
    assert!(!sample(&mut c, 3000, 41_000));
    assert!((0..30).all(|_| !sample(&mut c, 3000, 60_000)));
    begin_round(&mut c);
    assert!((0..9).any(|_| sample(&mut c, 3000, 60_000)));
}

/// Length of the ACK train (1 ms apart) at which slow start ends, us.
fn train_us(c: &mut Conn) -> Option<u64> {
    begin_round(c);
    let start_us = c.stack.now_us;
    sample(c, 0, 40_000);
    (0..200)
        .find(|_| sample(c, 1000, 40_000))
        .map(|_| c.stack.now_us - start_us)
}

#[test]
fn hystart_leaves_on_an_ack_train_of_half_the_rtt() {
    let mut c = in_slow_start(40_000, &[("hystart", 1)]);
    assert_eq!(train_us(&mut c), Some(21_000));
}

#[test]
fn hystart_allows_a_paced_sender_a_train_of_the_whole_rtt() {
    let mut c = in_slow_start(40_000, &[("hystart", 1)]).paced();
    assert_eq!(train_us(&mut c), Some(41_000));
}

#[test]
fn hystart_allows_four_bursts_at_the_pacing_rate_up_to_a_millisecond() {
    // 4 * 65536 B at 262.144 MB/s are 1 ms, at ten times that 0.1 ms.
    for (rate, expected_us) in [
        (262_144_000, 42_000),
        (2_621_440_000, 41_000),
        (1000, 42_000),
    ] {
        let mut c = in_slow_start(40_000, &[("hystart", 1)]).paced();
        c.stack.pacing_rate = rate;
        assert_eq!(train_us(&mut c), Some(expected_us), "{rate} B/s");
    }
}

#[test]
fn a_gap_of_more_than_two_milliseconds_ends_the_train() {
    let mut c = in_slow_start(40_000, &[("hystart", 1)]);
    begin_round(&mut c);
    sample(&mut c, 0, 40_000);
    assert!((0..100).all(|_| !sample(&mut c, 2001, 40_000)));
}

#[test]
fn hystart_waits_for_a_window_of_sixteen() {
    for (cwnd, leaves) in [(15, false), (16, true)] {
        let mut c = in_slow_start(40_000, &[]);
        c.stack.snd_cwnd = cwnd;
        begin_round(&mut c);
        assert_eq!(
            (0..50).any(|_| sample(&mut c, 1000, 80_000)),
            leaves,
            "cwnd {cwnd}"
        );
    }
}

#[test]
fn hystart_can_be_switched_off() {
    let mut c = in_slow_start(40_000, &[("hystart", 0)]);
    begin_round(&mut c);
    assert!((0..100).all(|_| !sample(&mut c, 1000, 80_000)));
}

#[test]
fn hystart_found_stays_found_until_a_timeout() {
    let mut c = in_slow_start(40_000, &[("hystart", 2)]);
    begin_round(&mut c);
    assert!((0..9).any(|_| sample(&mut c, 3000, 60_000)));
    c.stack.snd_ssthresh = INFINITE_SSTHRESH;
    begin_round(&mut c);
    assert!((0..30).all(|_| !sample(&mut c, 3000, 60_000)));

    c.set_state(CaState::Loss);
    c.stack.snd_ssthresh = INFINITE_SSTHRESH;
    sample(&mut c, 3000, 40_000);
    begin_round(&mut c);
    assert!((0..9).any(|_| sample(&mut c, 3000, 60_000)));
}

#[test]
fn rtt_samples_are_ignored_for_a_second_after_an_epoch_began() {
    // The minimum RTT shifts the curve; a sample of 1 us in the first second must not become the minimum.
    let target = |wait_jiffies: u32| {
        let mut c = after_loss(1000, 1_000_000, &[]);
        c.ack(1, -1);
        c.stack.jiffies += wait_jiffies;
        c.stack.ack_rtt_us = 1;
        c.op(Op::PktsAcked);
        c.stack.jiffies += 3 * HZ - wait_jiffies;
        c.ack(100, -1);
        (c.cwnd(), c.stack.snd_cwnd_cnt)
    };
    assert_eq!(target(HZ - 1), target(0));
    assert_ne!(target(HZ), target(0));
}
