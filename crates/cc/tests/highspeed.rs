//! HighSpeed TCP: every row of RFC 3649's table computed anew, the points its response function is drawn through, and
//! Linux' counting of ACKs.

use crate::common::Conn;
use knee_cc::Op;

const RTT_US: u32 = 100_000;

/// b(w), RFC 3649 section 5.
fn decrease(w: f64) -> f64 {
    0.5 - 0.4 * (w.ln() - 38f64.ln()) / (83_000f64.ln() - 38f64.ln())
}

/// a(w) as the program of appendix B has it, with p(w) = 1 / (12.8 w^1.2).
fn increase(w: f64) -> f64 {
    let b = decrease(w);
    w * w * 2.0 * b / ((2.0 - b) * w.powf(1.2) * 12.8)
}

/// The windows of appendix B's table, from 38 to 100,000 segments.
fn table() -> Vec<u32> {
    let mut rows = vec![38];
    let mut last = 1.0;
    for w in 39..100_000 {
        let a = increase(w.into());
        if a > last + 1.0 {
            rows.push(w);
            last = a;
        }
    }
    rows
}

/// What one ACK adds to the credit of growth at a window, and what a loss then leaves.
fn at(cwnd: u32) -> (u32, u32) {
    let mut c = Conn::new("highspeed", &[]);
    c.stack.snd_ssthresh = 2;
    c.stack.snd_cwnd = cwnd;
    c.ack(1, RTT_US.into());
    (c.stack.snd_cwnd_cnt, c.op(Op::Ssthresh))
}

#[test]
fn highspeed_has_every_row_of_the_table_of_rfc_3649() {
    let table = table();
    assert_eq!(table.len(), 73);
    // The last row, 94717, is not in Linux: the increase stays that of the row before.
    for (i, &w) in table[..72].iter().enumerate() {
        let a = i as u32 + 1;
        let b = (256.0 * decrease(w.into())) as u32;
        let kept = w - ((w * b) >> 8);
        assert_eq!(at(w), (a, kept), "row {i}, window {w}");
        assert_eq!(at(w + 1).0, (a + 1).min(72), "above row {i}, window {w}");
    }
    assert_eq!(at(94_718).0, 72);
}

#[test]
fn highspeed_keeps_the_response_function_at_both_ends() {
    // a = w^2 p 2b / (2 - b) at (1e-3, 38) is Reno, at (1e-7, 83000) it is RFC 3649's 72 with b = 0.1.
    assert_eq!(at(38), (1, 19));
    let (a, kept) = at(83_000);
    assert_eq!(a, 71);
    let b = 1.0 - f64::from(kept) / 83_000.0;
    assert!((b - 0.1).abs() < 0.004, "{b}");
}

#[test]
fn highspeed_is_reno_up_to_38_segments() {
    let mut high = Conn::new("highspeed", &[]);
    let mut reno = Conn::new("reno", &[]);
    for c in [&mut high, &mut reno] {
        c.stack.snd_cwnd = 20;
        c.stack.snd_ssthresh = 20;
    }
    // One packet per ACK, where the two count alike.
    for ack in 0..500 {
        high.ack(1, RTT_US.into());
        reno.ack(1, RTT_US.into());
        assert_eq!(high.cwnd(), reno.cwnd(), "ACK {ack}");
    }
    assert!((36..=38).contains(&high.cwnd()), "{}", high.cwnd());
    // b is subtracted, so that half a segment is kept.
    assert_eq!(high.op(Op::Ssthresh), high.cwnd().div_ceil(2));
}

#[test]
fn highspeed_adds_a_of_w_per_round_trip_of_one_ack_per_packet() {
    for (w, a) in [(1000, 8), (10_000, 30), (80_000, 71)] {
        let mut c = Conn::new("highspeed", &[]);
        c.stack.snd_ssthresh = 2;
        c.stack.snd_cwnd = w;
        for _ in 0..w {
            c.ack(1, RTT_US.into());
        }
        assert!((a - 1..=a).contains(&(c.cwnd() - w)), "{w}: {}", c.cwnd());
    }
}

#[test]
fn highspeed_counts_acks_and_not_packets() {
    for packets_per_ack in [1, 2, 10] {
        let mut c = Conn::new("highspeed", &[]);
        c.stack.snd_ssthresh = 2;
        c.stack.snd_cwnd = 9_000;
        for _ in 0..9_000 / packets_per_ack {
            c.ack(packets_per_ack, RTT_US.into());
        }
        let expected = 28 / packets_per_ack;
        let grown = c.cwnd() - 9_000;
        assert!(
            (expected.saturating_sub(1)..=expected).contains(&grown),
            "{packets_per_ack} per ACK: {grown}"
        );
    }
}

#[test]
fn highspeed_halves_at_a_loss_in_the_first_slow_start() {
    let mut c = Conn::new("highspeed", &[]);
    c.stack.snd_cwnd = 10_000;
    c.ack(100, RTT_US.into());
    assert_eq!(c.cwnd(), 10_100);
    assert_eq!(c.op(Op::Ssthresh), 5_050);
}

#[test]
fn highspeed_undo_takes_back_the_window_before_the_loss() {
    let mut c = Conn::new("highspeed", &[]);
    c.stack.snd_ssthresh = 2;
    c.stack.snd_cwnd = 1000;
    c.ack(1, RTT_US.into());
    c.lose();
    assert_eq!(c.cwnd(), 1000 - ((1000 * 83) >> 8));
    assert_eq!(c.op(Op::UndoCwnd), 1000);
}
