//! PROBE_RTT, and the minimum of RTTs.

use super::{
    BDP, PACKETS_PER_MS, RTT_US, Round, SMOOTH, four_packets, gain, in_probe_bw,
    in_smooth_probe_bw, longer, round,
};
use crate::common::Conn;
use knee_cc::Op;

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

    round(&mut c, four_packets());
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
    round(&mut c, four_packets());
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
    round(&mut c, four_packets());
    assert_ne!(c.cwnd(), 4);
}

#[test]
fn bbr1_probe_rtt_can_be_switched_off() {
    let mut c = in_probe_bw(&[("probe_rtt_time", 0)]);
    for _ in 0..600 {
        round(&mut c, longer());
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
