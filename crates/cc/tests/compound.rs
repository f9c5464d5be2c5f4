//! Compound does what draft-sridharan-tcpm-ctcp-02 says of its two windows.

use crate::common::Conn;
use knee_cc::{CaState, Op};

const BASE_US: u32 = 100_000;

/// In avoidance at a window, with the smallest RTT known.
fn compound(cwnd: u32, params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("compound", params);
    c.stack.snd_cwnd = cwnd;
    c.stack.snd_ssthresh = cwnd;
    for _ in 0..2 {
        c.ack(1, BASE_US.into()); // closes the round that init began
    }
    c.stack.snd_cwnd = cwnd;
    c.stack.snd_cwnd_cnt = 0;
    c
}

/// The RTT at which `queued` of `cwnd` packets stand in the queue.
fn rtt_with_queue(cwnd: u32, queued: f64) -> u32 {
    (f64::from(BASE_US) * f64::from(cwnd) / (f64::from(cwnd) - queued)).ceil() as u32
}

/// A window of ACKs and the one that ends the round; returns by how much the window changed.
fn round(c: &mut Conn, rtt_us: u32) -> i64 {
    let before = i64::from(c.cwnd());
    c.round(rtt_us);
    c.ack(1, rtt_us.into());
    i64::from(c.cwnd()) - before
}

/// Rounds without a queue until the window is `cwnd` or more.
fn grow_to(c: &mut Conn, cwnd: u32) {
    for _ in 0..10_000 {
        if c.cwnd() >= cwnd {
            return;
        }
        round(c, BASE_US);
    }
    panic!("the window stays at {}", c.cwnd());
}

#[test]
fn compound_grows_by_an_eighth_of_the_window_to_the_three_quarters() {
    for cwnd in [40, 100, 1000, 10_000, 100_000] {
        let mut c = compound(cwnd, &[]);
        // dwnd + alpha win^k - 1, and 1 for Reno. The window itself grows meanwhile by at most 2.
        let expected = f64::from(cwnd).powf(0.75) / 8.0;
        let got = round(&mut c, BASE_US) as f64;
        assert!(
            (got - expected).abs() <= 0.002 * expected + 1.5,
            "{cwnd}: grew by {got}, expected {expected:.1}"
        );
    }
}

#[test]
fn compound_keeps_the_fraction_of_a_segment() {
    // At 40 segments dwnd grows by 40^0.75 / 8 - 1 = 0.99 per round at first, Reno by 1.
    let mut c = compound(40, &[]);
    let grown: i64 = (0..4).map(|_| round(&mut c, BASE_US)).sum();
    assert!((7..=11).contains(&grown), "grew by {grown}");
}

#[test]
fn compound_is_reno_below_38_segments() {
    let mut c = compound(20, &[]);
    for _ in 0..15 {
        let grown = round(&mut c, BASE_US);
        assert!((0..=2).contains(&grown), "grew by {grown} at {}", c.cwnd());
    }
}

#[test]
fn compound_slow_start_is_renos() {
    let mut c = Conn::new("compound", &[]);
    for doubled in [20, 40, 80, 160, 320] {
        c.round(BASE_US);
        assert_eq!(c.cwnd(), doubled);
    }
}

#[test]
fn compound_gives_back_what_stands_in_the_queue() {
    for queued in [30, 50, 80] {
        let mut c = compound(500, &[]);
        grow_to(&mut c, 1000);
        let rtt_us = rtt_with_queue(c.cwnd(), f64::from(queued) + 0.9);
        round(&mut c, rtt_us); // its smallest RTT may be of the round before
        let grown = round(&mut c, rtt_us);
        assert!(
            (1 - i64::from(queued) - 3..=1 - i64::from(queued) + 3).contains(&grown),
            "{queued} in the queue: the window changed by {grown}"
        );
    }
}

#[test]
fn compound_grows_while_fewer_than_gamma_are_queued() {
    let mut c = compound(1000, &[]);
    let rtt_us = rtt_with_queue(1000, 25.0);
    round(&mut c, rtt_us);
    assert!(round(&mut c, rtt_us) > 20);
    let mut c = compound(1000, &[("gamma_max", 20)]);
    round(&mut c, rtt_us);
    assert!(round(&mut c, rtt_us) <= 1);
}

#[test]
fn compound_on_a_full_path_is_left_with_renos_window() {
    let mut c = compound(100, &[]);
    grow_to(&mut c, 1000);
    for _ in 0..100 {
        let rtt_us = rtt_with_queue(c.cwnd(), 60.0);
        round(&mut c, rtt_us);
    }
    // What Reno had: 100 and 1 per round since, and 1 per round from now on.
    assert!(c.cwnd() < 300, "{}", c.cwnd());
    let rtt_us = rtt_with_queue(c.cwnd(), 60.0);
    assert!((0..=2).contains(&round(&mut c, rtt_us)));
}

#[test]
fn compound_halves_the_sum_of_both_windows_at_a_loss() {
    let mut c = compound(100, &[]);
    grow_to(&mut c, 1000);
    let cwnd = c.cwnd();
    c.lose();
    assert!(
        (cwnd / 2 - 1..=cwnd / 2).contains(&c.cwnd()),
        "{}",
        c.cwnd()
    );
    // Both halves are there still: a queue takes the delay's away.
    for _ in 0..20 {
        let rtt_us = rtt_with_queue(c.cwnd(), 60.0);
        round(&mut c, rtt_us);
    }
    assert!(c.cwnd() < cwnd / 3, "{}", c.cwnd());
}

#[test]
fn compound_keeps_at_least_renos_half_whatever_beta() {
    let mut c = compound(1000, &[("beta", 900)]);
    assert_eq!(c.op(Op::Ssthresh), 500);
    let mut c = compound(1000, &[("beta", 128)]);
    assert_eq!(c.op(Op::Ssthresh), 875);
    let mut c = compound(2, &[]);
    assert_eq!(c.op(Op::Ssthresh), 2);
}

/// Rounds with `queued` packets in the queue, then a loss. Reno's share is all there is of the window.
fn lose_with_queue(c: &mut Conn, queued: f64) {
    c.stack.snd_cwnd = 200;
    for _ in 0..3 {
        let rtt_us = rtt_with_queue(c.cwnd(), queued);
        round(c, rtt_us);
    }
    c.lose();
}

#[test]
fn compound_lowers_gamma_where_losses_come_with_short_queues() {
    // Losses at 8 packets in the queue: gamma nears 6, and 10 packets shrink dwnd, which 30 would not.
    for (weight, grows) in [(205, false), (0, true)] {
        let mut c = compound(200, &[("gamma_weight", weight), ("beta", 512)]);
        for _ in 0..5 {
            lose_with_queue(&mut c, 8.5);
        }
        c.stack.snd_cwnd = 1000;
        round(&mut c, BASE_US);
        let rtt_us = rtt_with_queue(c.cwnd(), 12.0);
        round(&mut c, rtt_us);
        assert_eq!(round(&mut c, rtt_us) > 2, grows, "weight {weight}");
    }
}

#[test]
fn compound_gamma_stays_within_its_bounds() {
    // Losses without any queue would make it 0.
    let mut c = compound(200, &[]);
    for _ in 0..20 {
        lose_with_queue(&mut c, 0.0);
    }
    c.stack.snd_cwnd = 1000;
    round(&mut c, BASE_US);
    let rtt_us = rtt_with_queue(c.cwnd(), 4.0);
    round(&mut c, rtt_us);
    assert!(round(&mut c, rtt_us) > 20, "4 packets are fewer than 5");
}

#[test]
fn compound_undo_takes_back_both_windows() {
    let mut c = compound(100, &[]);
    grow_to(&mut c, 1000);
    let cwnd = c.cwnd();
    c.lose();
    c.stack.snd_cwnd = c.op(Op::UndoCwnd);
    assert_eq!(c.cwnd(), cwnd);
    // The delay's share is as large as before: a queue of 60 shrinks it for many rounds.
    for _ in 0..12 {
        let rtt_us = rtt_with_queue(c.cwnd(), 60.0);
        round(&mut c, rtt_us);
    }
    assert!(c.cwnd() < cwnd * 45 / 100, "{}", c.cwnd());
}

#[test]
fn compound_undo_before_any_loss_brings_back_nothing() {
    for cwnd in 40..240 {
        let growth = |undoes: bool| {
            let mut c = compound(cwnd, &[]);
            if undoes {
                c.op(Op::UndoCwnd);
            }
            [(); 4].map(|()| round(&mut c, BASE_US))
        };
        assert_eq!(growth(true), growth(false), "from {cwnd}");
    }
}

#[test]
fn after_a_timeout_compound_has_renos_window_only() {
    let mut c = compound(100, &[]);
    grow_to(&mut c, 1000);
    c.time_out();
    c.set_state(CaState::Open);
    c.stack.snd_cwnd = 500;
    c.stack.snd_ssthresh = 500;
    let rtt_us = rtt_with_queue(500, 100.0);
    round(&mut c, rtt_us);
    assert!(
        (0..=2).contains(&round(&mut c, rtt_us)),
        "nothing to shrink"
    );
}

#[test]
fn compound_does_not_grow_a_window_that_is_not_used() {
    let mut c = compound(1000, &[]);
    c.stack.is_cwnd_limited = 0;
    for _ in 0..3 {
        assert_eq!(round(&mut c, BASE_US), 0);
    }
}

#[test]
fn compound_does_not_slow_start_into_what_the_delay_took_back() {
    let mut c = compound(100, &[]);
    grow_to(&mut c, 1000);
    c.lose();
    for _ in 0..10 {
        let rtt_us = rtt_with_queue(c.cwnd(), 60.0);
        assert!(round(&mut c, rtt_us) <= 1);
    }
}
