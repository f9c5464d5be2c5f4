//! LP yields to a rise of the one-way delay, as Kuzmanovic and Knightly (2003) say, in Linux' arithmetic. The other
//! end's clock has no offset, as with net.ipv4.tcp_timestamps = 2.

use crate::common::{Conn, MSS_BYTES};
use knee_cc::Op;

const OWD_MS: u32 = 20;
const RTT_MS: u32 = 40;
const STEP_MS: u32 = 10;

/// A connection, the clock of its other end, and the delays of the path.
struct Path {
    conn: Conn,
    remote_hz: u32,
    /// Between two ACKs.
    step_ms: u32,
    /// Added to the other end's clock.
    offset: u32,
}

impl Path {
    fn ack(&mut self, owd_ms: u32, rtt_ms: u32) {
        let c = &mut self.conn;
        c.pass_us(u64::from(self.step_ms) * 1000);
        let sent_ms = (c.stack.now_us / 1000) as u32 - rtt_ms;
        let arrived_ms = u64::from(sent_ms + owd_ms);
        c.stack.rcv_tsecr = sent_ms;
        let remote = (arrived_ms * u64::from(self.remote_hz) / 1000) as u32;
        c.stack.rcv_tsval = remote.wrapping_add(self.offset);
        c.stack.snd_una = c.stack.snd_una.wrapping_add(MSS_BYTES);
        c.stack.acked = 1;
        c.stack.ack_rtt_us = i64::from(rtt_ms) * 1000;
        c.op(Op::PktsAcked);
        c.op(Op::CongAvoid);
    }

    /// ACKs until the window falls; how many, up to `most`.
    fn acks_to_sign(&mut self, owd_ms: u32, rtt_ms: u32, most: u32) -> Option<u32> {
        (1..=most).find(|_| {
            let before = self.conn.cwnd();
            self.ack(owd_ms, rtt_ms);
            self.conn.cwnd() < before
        })
    }

    /// ACKs of an idle path, until no inference is on and the delay is smooth.
    fn settle(&mut self, owd_ms: u32) {
        for _ in 0..100 {
            self.ack(owd_ms, RTT_MS);
        }
    }
}

fn new_path(remote_hz: u32, step_ms: u32, params: &[(&str, u32)]) -> Path {
    let mut conn = Conn::new("lp", params);
    conn.stack.snd_ssthresh = 2;
    conn.stack.snd_cwnd = 1000;
    Path {
        conn,
        remote_hz,
        step_ms,
        offset: 0,
    }
}

/// In avoidance at 1000 segments, the delay known to be 20 ms: the first sample was a sign, and made the range 20 ms
/// as well.
fn settled(params: &[(&str, u32)]) -> Path {
    let mut path = new_path(1000, STEP_MS, params);
    // The first difference of clocks looks like 900 Hz; the estimate stays a little below 1000 from then on, where
    // Linux' arithmetic of whole Hz has it in the long run.
    path.ack(OWD_MS + 1, RTT_MS);
    path.settle(OWD_MS);
    path.conn.stack.snd_cwnd = 1000;
    path
}

#[test]
fn lp_takes_its_first_delay_for_a_sign_as_linux_does() {
    let mut path = new_path(1000, STEP_MS, &[]);
    // The second ACK is the first with a clock to compare.
    assert_eq!(path.acks_to_sign(OWD_MS, RTT_MS, 10), Some(2));
    assert_eq!(path.conn.cwnd(), 500);
}

#[test]
fn lp_halves_the_window_when_the_delay_has_risen_by_15_percent_of_its_range() {
    // From 20 ms with a range of 20 ms: at 23 ms.
    for (owd_ms, sees) in [(21, false), (22, false), (24, true), (30, true)] {
        let mut path = settled(&[]);
        let sign = path.acks_to_sign(owd_ms, RTT_MS, 60);
        assert_eq!(sign.is_some(), sees, "{owd_ms} ms: {sign:?}");
        if sees {
            assert!((500..=501).contains(&path.conn.cwnd()));
        }
    }
}

#[test]
fn lp_smooths_the_delay_by_an_eighth() {
    // One late packet of 20 + 8 * 3 ms would raise the smoothed delay by 3 ms.
    for (owd_ms, sees) in [(43, false), (44, true)] {
        let mut path = settled(&[]);
        assert_eq!(
            path.acks_to_sign(owd_ms, 80, 1).is_some(),
            sees,
            "{owd_ms} ms"
        );
    }
    // A step to 24 ms passes 23 ms after ln 4 / ln (8 / 7) = 10.4 samples, or one or two less for whole ms.
    let mut path = settled(&[]);
    let sign = path.acks_to_sign(24, RTT_MS, 60);
    assert!(matches!(sign, Some(9..=11)), "{sign:?}");
}

#[test]
fn lp_threshold_is_a_parameter() {
    for (threshold, sees) in [(15, true), (25, false)] {
        let mut path = settled(&[("threshold", threshold)]);
        assert_eq!(path.acks_to_sign(24, RTT_MS, 60).is_some(), sees);
    }
}

#[test]
fn lp_does_not_heed_the_way_back() {
    let mut path = settled(&[]);
    assert_eq!(path.acks_to_sign(OWD_MS, RTT_MS + 100, 60), None);
}

#[test]
fn lp_waits_three_round_trips_after_a_sign() {
    for inference in [0, 3, 10] {
        let mut path = settled(&[("inference", inference)]);
        path.acks_to_sign(24, RTT_MS, 60).unwrap();
        path.conn.stack.snd_cwnd = 1;
        let waited = (1..100).find(|_| {
            path.ack(24, RTT_MS);
            path.conn.cwnd() > 1
        });
        let expected = (inference * RTT_MS / STEP_MS).max(1);
        assert_eq!(waited, Some(expected), "{inference} round trips");
    }
}

#[test]
fn lp_makes_the_window_one_at_a_second_sign_within_the_inference() {
    for (later_acks, expected) in [(0, 1), (9, 1), (13, 500)] {
        let mut path = settled(&[]);
        path.acks_to_sign(24, RTT_MS, 60).unwrap();
        for _ in 0..later_acks {
            path.ack(24, RTT_MS);
        }
        path.conn.stack.snd_cwnd = 1000;
        // Above 26 ms, which is 15 % of the new range, at once.
        assert_eq!(path.acks_to_sign(60, RTT_MS, 2), Some(1));
        assert_eq!(path.conn.cwnd(), expected, "{later_acks} ACKs later");
    }
}

#[test]
fn lp_starts_anew_from_the_delay_of_the_sign() {
    let mut path = settled(&[]);
    path.acks_to_sign(24, RTT_MS, 60).unwrap();
    // Now 23 ms with a range of 23 ms: the next sign is at 26 ms.
    path.settle(24);
    path.conn.stack.snd_cwnd = 1000;
    assert_eq!(path.acks_to_sign(25, RTT_MS, 100), None);
    assert!(path.acks_to_sign(28, RTT_MS, 100).is_some());
}

#[test]
fn lp_understands_slower_clocks_at_the_other_end() {
    for remote_hz in [100, 250, 500] {
        let tick_ms = 1000 / remote_hz;
        let mut path = new_path(remote_hz, 20, &[]);
        path.settle(OWD_MS);
        path.conn.stack.snd_cwnd = 1000;
        // Tick by tick: a leap would pass for a faster clock.
        let mut owd_ms = OWD_MS;
        while owd_ms + tick_ms < 23 {
            owd_ms += tick_ms;
            assert_eq!(
                path.acks_to_sign(owd_ms, RTT_MS, 20),
                None,
                "{remote_hz} Hz"
            );
        }
        let sign = path.acks_to_sign(24.max(owd_ms + tick_ms), RTT_MS, 20);
        assert!(matches!(sign, Some(2..=20)), "{remote_hz} Hz: {sign:?}");
        assert!((500..=503).contains(&path.conn.cwnd()), "{remote_hz} Hz");
    }
}

#[test]
fn lp_without_timestamps_is_reno() {
    let mut c = Conn::new("lp", &[]);
    for doubled in [20, 40, 80, 160] {
        c.round(50_000);
        assert_eq!(c.cwnd(), doubled);
    }
    c.lose();
    assert_eq!(c.cwnd(), 80);
    for _ in 0..10 {
        c.round(200_000);
    }
    assert!((89..=90).contains(&c.cwnd()), "{}", c.cwnd());
}

#[test]
fn lp_loss_and_undo_are_renos() {
    let mut path = settled(&[]);
    path.conn.lose();
    assert_eq!(path.conn.cwnd(), 500);
    assert_eq!(path.conn.op(Op::UndoCwnd), 1000);
}

#[test]
fn lp_sees_no_sign_behind_a_random_clock_offset_as_linux_does_not() {
    for offset in [1 << 29, 1 << 30, 3_000_000_000, 4_000_000_000] {
        let mut path = new_path(1000, STEP_MS, &[]);
        path.offset = offset;
        path.ack(OWD_MS + 1, RTT_MS);
        assert_eq!(path.acks_to_sign(OWD_MS, RTT_MS, 100), None, "{offset}");
        for owd_ms in OWD_MS..200 {
            let sign = path.acks_to_sign(owd_ms, 2 * owd_ms, 10);
            assert_eq!(sign, None, "{offset}: {owd_ms} ms");
        }
    }
}
