//! NV keeps its pad in the queue, and judges only by many ACKs.

use crate::common::{Conn, MSS_BYTES};
use knee_cc::{CaState, Op};

const BASE_US: u32 = 1_000;
const BDP: u32 = 100;

/// A round of single ACKs on a path of 100 packets per base RTT.
fn round(c: &mut Conn) {
    let cwnd = c.cwnd();
    let rtt_us = BASE_US * cwnd.max(BDP) / BDP;
    for _ in 0..cwnd {
        c.pass_us(u64::from((rtt_us / cwnd).max(1)));
        c.stack.ack_in_flight_bytes = cwnd * MSS_BYTES;
        c.ack(1, rtt_us.into());
    }
}

/// In avoidance, with the base RTT learned.
fn in_avoidance() -> Conn {
    let mut c = Conn::new("nv", &[]);
    c.stack.snd_ssthresh = 2;
    c.stack.snd_cwnd = BDP;
    for _ in 0..3 {
        round(&mut c);
    }
    c
}

#[test]
fn nv_settles_with_about_its_pad_in_the_queue() {
    let mut c = in_avoidance();
    for _ in 0..200 {
        round(&mut c);
    }
    let queued = c.cwnd() - BDP;
    assert!((6..=14).contains(&queued), "{queued} of 10 packets");
}

/// Source: Linux net/ipv4/tcp_nv.c, nv_cong_dec_mult: 38 of 128, 0.297.
#[test]
fn nv_takes_three_tenths_of_what_is_too_much() {
    let mut c = in_avoidance();
    c.stack.snd_cwnd = 2 * BDP;
    let mut cuts = Vec::new();
    for _ in 0..6 {
        let before = c.cwnd();
        round(&mut c);
        if c.cwnd() < before {
            // A BDP and the pad of 10 are not too much.
            let too_much = f64::from(before - BDP - 10);
            cuts.push(f64::from(before - c.cwnd()) / too_much);
        }
    }
    // The first cut is left out: it takes 0.19.
    assert!(cuts.len() >= 3, "{cuts:?}");
    assert!(
        cuts[1..3].iter().all(|cut| (0.27..0.31).contains(cut)),
        "{cuts:?}"
    );
}

#[test]
fn nv_does_not_judge_by_a_few_acks() {
    let mut c = in_avoidance();
    c.stack.snd_cwnd = 2 * BDP;
    let before = c.cwnd();
    for _ in 0..30 {
        c.pass_us(20);
        c.stack.ack_in_flight_bytes = 2 * BDP * MSS_BYTES;
        c.ack(1, i64::from(2 * BASE_US));
    }
    assert!(c.cwnd() >= before, "{}", c.cwnd());
}

#[test]
fn nv_keeps_four_fifths_at_a_loss() {
    let mut c = in_avoidance();
    c.stack.snd_cwnd = 1_000;
    assert_eq!(c.op(Op::Ssthresh), 799);
}

#[test]
fn nv_grows_at_half_the_pace_after_a_timeout() {
    let grown = |timeouts: u32| {
        let mut c = in_avoidance();
        for _ in 0..timeouts {
            c.time_out();
            c.set_state(CaState::Open);
        }
        c.stack.snd_ssthresh = 2;
        c.stack.snd_cwnd = 50;
        c.stack.snd_cwnd_cnt = 0;
        // The first judgments come after three rounds.
        for _ in 0..3 {
            round(&mut c);
        }
        let from = c.cwnd();
        for _ in 0..6 {
            round(&mut c);
        }
        c.cwnd() - from
    };
    assert_eq!((grown(0), grown(1)), (6, 3));
}

/// Source: Linux net/ipv4/tcp_nv.c, nv_stop_rtt_cnt: growth stops after more than 10 round trips without a judgment.
#[test]
fn nv_stops_growing_in_the_eleventh_round_trip_without_a_judgment() {
    const CWND: u32 = 40;
    // Too large a window, as the ACKs show one packet in flight; but three ACKs per round trip are too few to judge by.
    let mut c = Conn::new("nv", &[]);
    c.stack.snd_ssthresh = 2;
    c.stack.ack_in_flight_bytes = MSS_BYTES;
    let acks_with_growth = (0..60).position(|_| {
        c.stack.snd_cwnd = CWND;
        c.stack.snd_cwnd_cnt = 0;
        c.pass_us(u64::from(BASE_US) / 2);
        c.ack(CWND / 2, BASE_US.into());
        (c.cwnd(), c.stack.snd_cwnd_cnt) == (CWND, 0)
    });
    assert_eq!(acks_with_growth, Some(10 * 3));
}

/// Source: Linux net/ipv4/tcp_nv.c, tcpnv_acked(): only a negative RTT is none, and a rate is over 1 us at least.
#[test]
fn nv_measures_with_an_rtt_below_one_microsecond() {
    let cwnd_after = |rtt_us: i64| {
        let mut c = Conn::new("nv", &[]);
        c.stack.snd_ssthresh = 2;
        c.stack.snd_cwnd = BDP;
        for _ in 0..4 * BDP {
            c.stack.ack_in_flight_bytes = BDP * MSS_BYTES;
            c.ack(1, rtt_us);
        }
        c.cwnd()
    };
    // A path without delay holds no packets: the window falls towards the pad. Without an RTT it grows as Reno's.
    let (judged, unjudged) = (cwnd_after(0), cwnd_after(-1));
    assert!(judged < BDP && unjudged > BDP, "{judged} {unjudged}");
}
