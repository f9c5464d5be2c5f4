//! BIC: binary search up to W_max, the mirror image beyond (Xu, Harfoush, Rhee 2004), with Linux' constants and its
//! division by packets per ACK.

use crate::common::{Conn, HZ};
use knee_cc::{CaState, Op};

/// In avoidance at `cwnd` after a loss at `w_max`, so many packets per ACK having been the rule.
fn after_loss(w_max: u32, cwnd: u32, packets_per_ack: u32) -> Conn {
    let mut c = Conn::new("bic", &[]);
    c.stack.snd_cwnd = w_max;
    c.lose();
    settle(&mut c, packets_per_ack);
    c.stack.snd_cwnd = cwnd;
    c.stack.snd_ssthresh = 2;
    c.stack.snd_cwnd_cnt = 0;
    c
}

/// Brings the estimate of packets per ACK to just that: from below, where the rounding down of what it forgets does not
/// hold it up.
fn settle(c: &mut Conn, packets_per_ack: u32) {
    acks(c, 0);
    acks(c, packets_per_ack);
}

fn acks(c: &mut Conn, packets_per_ack: u32) {
    c.stack.acked = packets_per_ack;
    for _ in 0..300 {
        c.op(Op::PktsAcked);
    }
}

/// Packets acked for the next segment of growth, seen from a window just set.
fn cnt(c: &mut Conn) -> u32 {
    let from = c.cwnd();
    c.pass_us(1_000_000);
    c.stack.acked = 1;
    let mut packets = 0;
    while c.cwnd() == from {
        c.op(Op::CongAvoid);
        packets += 1;
    }
    packets
}

#[test]
fn bic_gives_up_a_fifth_at_a_loss_and_half_of_a_small_window() {
    let mut c = Conn::new("bic", &[]);
    for (cwnd, kept) in [(1000, 799), (15, 11), (14, 7), (3, 2)] {
        c.stack.snd_cwnd = cwnd;
        assert_eq!(c.op(Op::Ssthresh), kept, "cwnd {cwnd}");
    }
}

#[test]
fn bic_search_grows_by_a_quarter_of_the_way_and_16_segments_at_most() {
    for (cwnd, per_round) in [
        (800, 16.0), // 50 would be a quarter
        (935, 16.0), // 16.25
        (940, 15.0),
        (980, 5.0),
        (990, 2.0),
        (993, 4.0 / 20.0), // 1.75, cut to 1: the smooth part
        (999, 4.0 / 20.0),
    ] {
        let mut c = after_loss(1000, cwnd, 1);
        let grown = f64::from(cwnd) / f64::from(cnt(&mut c));
        assert!(
            (grown / per_round - 1.0).abs() < 0.02,
            "{cwnd}: {grown} per round trip"
        );
    }
}

#[test]
fn bic_probes_beyond_w_max_ever_faster() {
    for (cwnd, per_round) in [
        (1000, 4.0 / 20.0),
        (1003, 4.0 / 20.0),
        (1004, 4.0 / 3.0),
        (1030, 10.0),
        (1047, 47.0 / 3.0),
        (1048, 16.0),
        (2000, 16.0),
    ] {
        let mut c = after_loss(1000, cwnd, 1);
        let grown = f64::from(cwnd) / f64::from(cnt(&mut c));
        assert!(
            (grown / per_round - 1.0).abs() < 0.02,
            "{cwnd}: {grown} per round trip"
        );
    }
}

#[test]
fn bic_is_reno_up_to_14_segments() {
    for (cwnd, packets) in [(10, 10), (14, 14), (15, 1)] {
        assert_eq!(cnt(&mut after_loss(1000, cwnd, 1)), packets, "{cwnd}");
    }
}

#[test]
fn bic_without_a_w_max_grows_five_percent_per_round_trip() {
    let mut c = Conn::new("bic", &[]);
    settle(&mut c, 1);
    c.stack.snd_cwnd = 10_000;
    c.stack.snd_ssthresh = 2;
    assert_eq!(cnt(&mut c), 20);
}

#[test]
fn bic_grows_twice_as_fast_with_delayed_acks() {
    // Since Linux 5.7: packets are counted, and their number is divided by packets per ACK all the same.
    let one = cnt(&mut after_loss(1000, 940, 1));
    let two = cnt(&mut after_loss(1000, 940, 2));
    assert!((one / 2 - 1..=one / 2 + 1).contains(&two), "{one}, {two}");
}

#[test]
fn bic_takes_single_packet_acks_for_nearly_two() {
    // 32/16 at the start; then 31/16, from where a sixteenth rounded down is the one packet that comes in.
    for acked in [None, Some(1), Some(2)] {
        let mut c = Conn::new("bic", &[]);
        if let Some(packets) = acked {
            acks(&mut c, packets);
        }
        c.stack.snd_cwnd = 10_000;
        c.stack.snd_ssthresh = 2;
        assert_eq!(cnt(&mut c), 10, "{acked:?}");
    }
}

#[test]
fn bic_measures_packets_per_ack_in_the_state_open_only() {
    let mut c = after_loss(1000, 940, 1);
    c.stack.ca_state = CaState::Disorder as u32;
    settle(&mut c, 10);
    c.stack.ca_state = CaState::Open as u32;
    assert_eq!(cnt(&mut c), cnt(&mut after_loss(1000, 940, 1)));
}

#[test]
fn bic_fast_convergence_aims_at_nine_tenths_of_a_smaller_loss() {
    for (fast_convergence, w_max) in [(1, 719), (0, 800)] {
        let mut c = Conn::new("bic", &[("fast_convergence", fast_convergence)]);
        c.stack.snd_cwnd = 1000;
        c.lose();
        c.stack.snd_cwnd = 800;
        c.lose();
        settle(&mut c, 1);
        c.stack.snd_ssthresh = 2;
        // The slope is the smooth part's just at W_max, the search's below.
        c.stack.snd_cwnd = w_max;
        assert_eq!(cnt(&mut c), w_max * 5);
        c.stack.snd_cwnd = w_max - 40;
        c.stack.snd_cwnd_cnt = 0;
        assert_eq!(cnt(&mut c), (w_max - 40) / 10);
    }
}

#[test]
fn bic_looks_at_the_slope_again_after_a_32nd_of_a_second() {
    // Packets per ACK change; the window does not.
    for (jiffies, is_updated) in [(HZ / 32, false), (HZ / 32 + 1, true)] {
        let mut c = after_loss(1000, 940, 1);
        c.stack.acked = 1;
        c.op(Op::CongAvoid);
        settle(&mut c, 8);
        c.pass_us(u64::from(jiffies) * 1000);
        // 62 packets per segment before, 7 after: 20 packets make growth only after.
        c.stack.acked = 20;
        c.op(Op::CongAvoid);
        assert_eq!(c.cwnd() > 940, is_updated, "{jiffies} jiffies");
    }
}

#[test]
fn bic_forgets_w_max_at_a_timeout() {
    let mut c = after_loss(1000, 1000, 1);
    c.set_state(CaState::Loss);
    c.set_state(CaState::Open);
    settle(&mut c, 1);
    assert_eq!(cnt(&mut c), 20);
}

#[test]
fn bic_undo_takes_back_the_window_before_the_loss() {
    let mut c = Conn::new("bic", &[]);
    c.stack.snd_cwnd = 1000;
    c.lose();
    assert_eq!(c.op(Op::UndoCwnd), 1000);
}
