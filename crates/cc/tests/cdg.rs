//! CDG backs off by the gradient of the delay, as Hayes and Armitage (2011) say, in Linux' units.

use crate::common::{Conn, MSS_BYTES};
use knee_cc::{CaState, Event, INFINITE_SSTHRESH, Op};

const RTT_US: u32 = 20_000;
/// The random number with which even an unlikely back-off happens, and that with which none does.
const BACK_OFF: u32 = u32::MAX;
const STAY: u32 = 0;

fn cdg(cwnd: u32, params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("cdg", params);
    c.stack.snd_cwnd = cwnd;
    c.stack.snd_ssthresh = 2;
    // What init saw was another window: a pause makes this one the shadow window, too.
    c.event(Event::CwndRestart);
    c.stack.random = STAY;
    c
}

fn sample(c: &mut Conn, acked: u32, rtt_us: u32) {
    c.stack.acked = acked;
    c.stack.ack_rtt_us = rtt_us.into();
    c.op(Op::PktsAcked);
}

/// Growth for `acked` packets inside the round.
fn grow(c: &mut Conn, acked: u32) {
    c.stack.acked = acked;
    c.op(Op::CongAvoid);
}

/// The ACK that ends the round.
fn end_round(c: &mut Conn) {
    c.stack.snd_una = c.stack.snd_nxt.wrapping_add(1);
    c.stack.snd_nxt = c.stack.snd_una.wrapping_add(c.cwnd() * MSS_BYTES);
    grow(c, 1);
}

/// A round whose smallest and largest RTT are these. Returns whether it ended in a back-off.
fn round(c: &mut Conn, min_us: u32, max_us: u32) -> bool {
    let before = c.stack.snd_ssthresh;
    sample(c, 2, max_us);
    sample(c, 2, min_us);
    end_round(c);
    c.stack.snd_ssthresh != before
}

/// Rounds whose RTTs change by `step_us` each, none of which backs off, then the one that may.
fn rising(params: &[(&str, u32)], rounds: u32, step_us: u32, random: u32) -> bool {
    let mut c = cdg(1000, params);
    for i in 0..rounds {
        assert!(!round(&mut c, RTT_US + i * step_us, RTT_US + i * step_us));
    }
    c.stack.random = random;
    let rtt_us = RTT_US + rounds * step_us;
    round(&mut c, rtt_us, rtt_us)
}

/// Asserts P[back off] within 10^-4.
#[track_caller]
fn assert_probability(expected: f64, backs_off: impl Fn(u32) -> bool) {
    let random_at = |p: f64| ((1.0 - p).clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
    assert!(
        backs_off(random_at(expected - 1e-4)),
        "less likely than {expected}"
    );
    assert!(
        !backs_off(random_at(expected + 1e-4)),
        "more likely than {expected}"
    );
}

#[test]
fn cdg_backs_off_with_one_minus_exp_of_the_gradient() {
    for step_us in [10, 100, 1000, 3000, 10_000] {
        // Linux: factor 42 on the sum over 8 rounds.
        let linux = 1.0 - (-f64::from(8 * step_us) * 42e-6).exp();
        assert_probability(linux, |random| rising(&[], 12, step_us, random));
        // The paper: G = 3 ms, on the mean.
        let paper = 1.0 - (-f64::from(step_us) / 3000.0).exp();
        assert!((linux - paper).abs() < 0.01, "{linux} {paper}");
    }
}

#[test]
fn cdg_takes_unseen_rounds_to_be_like_those_seen() {
    let expected = 1.0 - (-8000.0 * 42e-6_f64).exp();
    for rounds in [1, 2, 3, 5, 7, 8, 20] {
        assert_probability(expected, |random| rising(&[], rounds, 1000, random));
    }
}

#[test]
fn cdg_sums_over_as_many_rounds_as_its_window() {
    for window in [1, 2, 7, 32] {
        let expected = 1.0 - (-f64::from(window) * 500.0 * 42e-6).exp();
        assert_probability(expected, |random| {
            rising(&[("window", window)], 40, 500, random)
        });
    }
}

#[test]
fn cdg_does_not_back_off_while_the_delay_stays_or_falls() {
    for fall_us in [0, 1, 500] {
        let mut c = cdg(1000, &[]);
        c.stack.random = BACK_OFF;
        for i in 0..20 {
            let rtt_us = RTT_US - i * fall_us;
            assert!(!round(&mut c, rtt_us, rtt_us), "fall of {fall_us} us");
        }
    }
}

#[test]
fn cdg_heeds_the_largest_rtt_where_the_smallest_does_not_rise() {
    let mut c = cdg(1000, &[]);
    for i in 0..5 {
        assert!(!round(&mut c, RTT_US, RTT_US + i * 1000));
    }
    c.stack.random = BACK_OFF;
    assert!(round(&mut c, RTT_US, RTT_US + 6000));
    // And only the smallest where that rises: the largest may fall.
    let mut c = cdg(1000, &[]);
    for i in 0..5 {
        assert!(!round(
            &mut c,
            RTT_US + i * 1000,
            RTT_US + 20_000 - i * 1000
        ));
    }
    c.stack.random = BACK_OFF;
    assert!(round(&mut c, RTT_US + 6000, RTT_US + 14_000));
}

/// Just backed off from a window, with the RTT risen.
fn backed_off(cwnd: u32, params: &[(&str, u32)]) -> Conn {
    let mut c = cdg(cwnd, params);
    assert!(!round(&mut c, RTT_US, RTT_US));
    c.stack.snd_cwnd = cwnd;
    c.stack.random = BACK_OFF;
    assert!(round(&mut c, RTT_US + 1000, RTT_US + 1000));
    c.stack.random = STAY;
    c
}

#[test]
fn cdg_cuts_the_window_to_its_root_half_over_one_round() {
    let mut c = backed_off(1000, &[]);
    assert_eq!(c.stack.snd_ssthresh, 707);
    assert_eq!(c.cwnd(), 1000);
    let mut last = 1000;
    for acked in 1..=10 {
        grow(&mut c, 100);
        assert!(c.cwnd() < last);
        last = c.cwnd();
        let expected = 1000 - 293 * acked / 10;
        assert!(last.abs_diff(expected) <= 1, "{last}, expected {expected}");
    }
    // More ACKs of that round grow nothing; the next round grows as Reno's.
    grow(&mut c, 5000);
    assert_eq!(c.cwnd(), 707);
    end_round(&mut c);
    grow(&mut c, 707);
    assert_eq!(c.cwnd(), 708);
}

#[test]
fn cdg_pays_once_for_a_back_off_and_a_loss_of_the_same_round() {
    let mut c = backed_off(1000, &[]);
    grow(&mut c, 500);
    c.lose();
    assert_eq!(c.cwnd(), 707);
    // The next one costs half again (the shadow window of 1000 keeps 500 at most).
    c.lose();
    assert_eq!(c.cwnd(), 500);
}

#[test]
fn cdg_ignores_the_gradient_over_its_own_reduction() {
    let mut c = backed_off(1000, &[]);
    sample(&mut c, 2, RTT_US + 50_000); // of the reduced round: becomes the base of the next gradient
    end_round(&mut c);
    c.stack.random = BACK_OFF;
    // Falls from there: 1000 before, -500 and -1000 now.
    assert!(
        round(&mut c, RTT_US + 49_500, RTT_US + 49_500),
        "+1000 - 500"
    );
    let mut c = backed_off(1000, &[]);
    sample(&mut c, 2, RTT_US + 50_000);
    end_round(&mut c);
    c.stack.random = BACK_OFF;
    assert!(
        !round(&mut c, RTT_US + 49_000, RTT_US + 49_000),
        "+1000 - 1000"
    );
}

/// Back-offs until one does not come, the RTT rising all the while.
fn back_offs_in_a_row(c: &mut Conn, rtt_us: &mut u32) -> u32 {
    c.stack.random = BACK_OFF;
    let mut n = 0;
    for _ in 0..50 {
        *rtt_us += 1000;
        c.stack.snd_cwnd = 1000;
        if round(c, *rtt_us, *rtt_us) {
            n += 1;
            sample(c, 2, *rtt_us);
            end_round(c); // of the reduction
        }
        c.stack.snd_ssthresh = 2;
    }
    n
}

#[test]
fn cdg_stops_after_five_ineffectual_back_offs() {
    for (use_ineff, expected) in [(5, 5), (1, 1), (0, 49)] {
        let mut c = cdg(1000, &[("use_ineff", use_ineff)]);
        let mut rtt_us = RTT_US;
        assert_eq!(back_offs_in_a_row(&mut c, &mut rtt_us), expected);
    }
}

#[test]
fn cdg_backs_off_again_once_the_delay_has_fallen() {
    let mut c = cdg(1000, &[]);
    let mut rtt_us = RTT_US;
    assert_eq!(back_offs_in_a_row(&mut c, &mut rtt_us), 5);
    // A fall so large that the sum over the window falls.
    rtt_us -= 30_000;
    round(&mut c, rtt_us, rtt_us);
    for _ in 0..10 {
        round(&mut c, rtt_us, rtt_us);
    }
    assert_eq!(back_offs_in_a_row(&mut c, &mut rtt_us), 5);
}

#[test]
fn cdg_halves_the_shadow_window_at_a_loss() {
    let mut c = cdg(1000, &[]);
    c.lose();
    assert_eq!(c.cwnd(), 500, "without back-offs, Reno's half");

    for (use_shadow, expected) in [(1, 500), (0, 353)] {
        let mut c = backed_off(1000, &[("use_shadow", use_shadow)]);
        sample(&mut c, 2, RTT_US);
        end_round(&mut c);
        c.stack.snd_cwnd = 707;
        assert_eq!(c.op(Op::Ssthresh), expected);
    }
}

#[test]
fn cdg_shadow_window_leaves_no_more_than_the_window() {
    // Three back-offs: the window is 353, half the shadow window 500.
    let mut c = cdg(1000, &[]);
    round(&mut c, RTT_US, RTT_US);
    for i in 1..=3 {
        c.stack.random = BACK_OFF;
        assert!(round(&mut c, RTT_US + i * 1000, RTT_US + i * 1000));
        sample(&mut c, 2, RTT_US + i * 1000);
        end_round(&mut c);
    }
    let cwnd = c.cwnd();
    assert!((351..=354).contains(&cwnd), "{cwnd}");
    assert_eq!(c.op(Op::Ssthresh), cwnd);
}

#[test]
fn cdg_with_tolerance_keeps_the_window_at_a_loss_with_room_in_the_queue() {
    for (use_tolerance, max_step_us, expected) in [(1, 1000, 1000), (0, 1000, 500), (1, 0, 500)] {
        let mut c = cdg(1000, &[("use_tolerance", use_tolerance)]);
        for i in 0..4 {
            // Both rise: not full. Only the smallest rises: full.
            round(&mut c, RTT_US + i * 1000, RTT_US + 40_000 + i * max_step_us);
        }
        c.stack.snd_cwnd = 1000;
        assert_eq!(c.op(Op::Ssthresh).max(500), expected, "{max_step_us} us");
    }
}

#[test]
fn cdg_takes_no_largest_rtt_from_a_delayed_ack() {
    // Single packets among stretched ACKs: 40 ms more each round, of the receiver's timer.
    let backs_off = |acked: u32| {
        let mut c = cdg(1000, &[]);
        c.stack.random = BACK_OFF;
        (0..5).any(|i| {
            sample(&mut c, 2, RTT_US);
            sample(&mut c, 2, RTT_US);
            sample(&mut c, acked, RTT_US + 40_000 * i);
            let before = c.stack.snd_ssthresh;
            end_round(&mut c);
            c.stack.snd_ssthresh != before
        })
    };
    assert!(!backs_off(1));
    assert!(backs_off(2));
}

#[test]
fn cdg_in_a_reduction_of_the_stack_leaves_the_window() {
    let mut c = cdg(1000, &[]);
    round(&mut c, RTT_US, RTT_US);
    c.stack.ca_state = CaState::Loss as u32;
    c.stack.random = BACK_OFF;
    assert!(!round(&mut c, RTT_US + 10_000, RTT_US + 10_000));
}

#[test]
fn cdg_forgets_the_path_after_a_pause() {
    let mut c = cdg(1000, &[]);
    for i in 0..10 {
        round(&mut c, RTT_US + i * 1000, RTT_US + i * 1000);
    }
    c.event(Event::CwndRestart);
    c.stack.random = BACK_OFF;
    assert!(!round(&mut c, 10 * RTT_US, 10 * RTT_US), "no round before");
    assert!(!round(&mut c, 10 * RTT_US, 10 * RTT_US), "and no rise");
}

#[test]
fn cdg_undo_takes_back_the_window_before_the_loss() {
    let mut c = cdg(1000, &[]);
    c.lose();
    assert_eq!(c.op(Op::UndoCwnd), 1000);
}

/// In slow start with the smallest RTT known and a round just begun.
fn in_slow_start(params: &[(&str, u32)]) -> Conn {
    let mut c = cdg(100, params);
    c.stack.snd_ssthresh = INFINITE_SSTHRESH;
    c.stack.max_packets_out = 100;
    round(&mut c, RTT_US, RTT_US);
    c
}

#[test]
fn cdg_leaves_slow_start_on_an_ack_train_of_half_the_rtt() {
    for (gap_us, left_at_us) in [(2999, Some(11_996)), (3000, None)] {
        let mut c = in_slow_start(&[("hystart", 1)]);
        grow(&mut c, 1);
        let start_us = c.stack.now_us;
        let left = (0..20).find(|_| {
            c.pass_us(gap_us);
            grow(&mut c, 1);
            c.stack.snd_ssthresh != INFINITE_SSTHRESH
        });
        assert_eq!(left.map(|_| c.stack.now_us - start_us), left_at_us);
    }
}

#[test]
fn cdg_leaves_slow_start_when_a_round_is_an_eighth_slower() {
    for (rtt_us, leaves) in [(RTT_US * 9 / 8, false), (RTT_US * 9 / 8 + 1, true)] {
        let mut c = in_slow_start(&[("hystart", 2)]);
        let left = (0..9).position(|_| {
            sample(&mut c, 2, rtt_us);
            grow(&mut c, 1);
            c.stack.snd_ssthresh != INFINITE_SSTHRESH
        });
        assert_eq!(left, leaves.then_some(8), "{rtt_us} us");
    }
}

#[test]
fn cdg_slow_start_without_hystart_is_renos() {
    let mut c = in_slow_start(&[("hystart", 0)]);
    let before = c.cwnd();
    for _ in 0..50 {
        sample(&mut c, 2, 3 * RTT_US);
        c.pass_us(1000);
        grow(&mut c, 2);
    }
    assert_eq!(c.cwnd(), before + 100);
}

#[test]
fn cdg_takes_the_handshakes_rtt_for_its_first_sample() {
    // The smallest RTT rises from it: its gradient counts, and not the much larger one of the largest.
    let backs_off = |srtt_us: u32, random: u32| {
        let mut c = cdg(1000, &[]);
        c.stack.srtt_us = srtt_us;
        c.op(Op::Init);
        c.stack.random = STAY;
        assert!(!round(&mut c, RTT_US + 100, RTT_US + 100));
        c.stack.random = random;
        round(&mut c, RTT_US + 100, RTT_US + 5100)
    };
    let small = 1.0 - (-100.0 * 8.0 * 42e-6_f64).exp();
    assert_probability(small, |random| backs_off(RTT_US, random));
    let large = 1.0 - (-5000.0 * 8.0 * 42e-6_f64).exp();
    assert_probability(large, |random| backs_off(0, random));
}
