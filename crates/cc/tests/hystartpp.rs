//! HyStart++ as an option of Reno and CUBIC: the rules of RFC 9406 sections 4.2 and 4.3.

use crate::common::{Conn, MSS_BYTES};
use knee_cc::{INFINITE_SSTHRESH, Op};

const RTT_US: u32 = 40_000;
/// N_RTT_SAMPLE
const SAMPLES: u32 = 8;

const WITH: [(&str, u32); 2] = [("reno", 1), ("cubic", 4)];

fn conn(name: &str, hystart: u32) -> Conn {
    let mut c = Conn::new(name, &[("hystart", hystart)]);
    c.stack.snd_cwnd = 100;
    c
}

/// The ACK that ends a round, then the rest of `n` in the next one; `acked` packets and one RTT sample each.
fn round(c: &mut Conn, n: u32, acked: u32, rtt_us: u32) {
    for i in 0..n {
        c.pass_us(3000); // no train of ACKs, for the HyStart that is compared with
        c.stack.acked = acked;
        c.stack.max_packets_out = c.stack.snd_cwnd;
        c.stack.ack_rtt_us = rtt_us.into();
        if i == 0 {
            c.stack.snd_una = c.stack.snd_nxt;
            c.stack.snd_nxt = c.stack.snd_una.wrapping_add(1000 * MSS_BYTES);
        } else {
            c.stack.snd_una = c.stack.snd_una.wrapping_add(1);
        }
        c.op(Op::PktsAcked);
        c.op(Op::CongAvoid);
    }
}

/// Growth of the window by one ACK of `acked` packets inside the round, by the growth of a hundred such.
fn growth_per_hundred_acks(c: &Conn, acked: u32, rtt_us: u32) -> u32 {
    let mut c = c.clone();
    let before = c.cwnd();
    for _ in 0..100 {
        c.stack.acked = acked;
        c.stack.ack_rtt_us = rtt_us.into();
        c.op(Op::CongAvoid);
    }
    c.cwnd() - before
}

fn is_conservative(c: &Conn) -> bool {
    match growth_per_hundred_acks(c, 4, RTT_US) {
        100 => true,
        400 => false,
        other => panic!("grows by {other} for 400 packets"),
    }
}

#[test]
fn hystartpp_enters_css_on_a_rise_of_an_eighth_within_4_and_16_ms() {
    for (name, hystart) in WITH {
        for (last_us, rise_us) in [(1000, 4000), (80_000, 10_000), (400_000, 16_000)] {
            for (short_us, enters) in [(1, false), (0, true)] {
                let mut c = conn(name, hystart);
                round(&mut c, SAMPLES, 1, last_us);
                round(&mut c, SAMPLES, 1, last_us + rise_us - short_us);
                assert_eq!(
                    is_conservative(&c),
                    enters,
                    "{name}: last {last_us} us, rise {rise_us} - {short_us} us"
                );
                assert_eq!(c.stack.snd_ssthresh, INFINITE_SSTHRESH);
            }
        }
    }
}

#[test]
fn hystartpp_needs_eight_samples_of_the_round() {
    for (name, hystart) in WITH {
        for (samples, enters) in [(SAMPLES - 1, false), (SAMPLES, true)] {
            let mut c = conn(name, hystart);
            round(&mut c, SAMPLES, 1, RTT_US);
            round(&mut c, samples, 1, 2 * RTT_US);
            assert_eq!(is_conservative(&c), enters, "{name}: {samples} samples");
        }
    }
}

#[test]
fn hystartpp_forgives_a_round_with_one_fast_sample() {
    for (name, hystart) in WITH {
        let mut c = conn(name, hystart);
        round(&mut c, SAMPLES, 1, RTT_US);
        round(&mut c, 1, 1, RTT_US);
        for _ in 0..30 {
            c.stack.ack_rtt_us = i64::from(2 * RTT_US);
            c.op(Op::PktsAcked);
        }
        assert!(!is_conservative(&c), "{name}");
    }
}

#[test]
fn hystartpp_compares_with_the_round_before_not_with_the_smallest_rtt() {
    for (name, hystart) in WITH {
        // 4 ms more every round is 10 % of 40 ms, and below the eighth of the round before.
        let mut c = conn(name, hystart);
        for rtt_us in (RTT_US..2 * RTT_US).step_by(4000) {
            round(&mut c, SAMPLES, 1, rtt_us);
        }
        assert!(!is_conservative(&c), "{name}");
    }
}

#[test]
fn css_grows_at_a_quarter_of_slow_start() {
    for (name, hystart) in WITH {
        let mut c = conn(name, hystart);
        round(&mut c, SAMPLES, 1, RTT_US);
        assert_eq!(growth_per_hundred_acks(&c, 2, RTT_US), 200, "{name}");
        round(&mut c, SAMPLES, 1, 2 * RTT_US);
        assert_eq!(growth_per_hundred_acks(&c, 2, RTT_US), 50, "{name}");
        assert_eq!(growth_per_hundred_acks(&c, 1, RTT_US), 25, "{name}");
    }
}

#[test]
fn hystartpp_resumes_slow_start_when_the_rtt_falls_below_where_css_began() {
    for (name, hystart) in WITH {
        for (fall_us, resumes) in [(0, false), (1, true)] {
            let mut c = conn(name, hystart);
            round(&mut c, SAMPLES, 1, RTT_US);
            round(&mut c, SAMPLES, 1, 2 * RTT_US);
            round(&mut c, SAMPLES, 1, 2 * RTT_US - fall_us);
            assert_eq!(!is_conservative(&c), resumes, "{name}: fall {fall_us} us");
        }
    }
}

#[test]
fn a_resumed_slow_start_may_enter_css_again() {
    for (name, hystart) in WITH {
        let mut c = conn(name, hystart);
        for rtt_us in [RTT_US, 2 * RTT_US, RTT_US] {
            round(&mut c, SAMPLES, 1, rtt_us);
        }
        assert!(!is_conservative(&c), "{name}");
        round(&mut c, SAMPLES, 1, 2 * RTT_US);
        assert!(is_conservative(&c), "{name}");
        // With its five rounds anew.
        for _ in 0..4 {
            round(&mut c, SAMPLES, 1, 2 * RTT_US);
            assert_eq!(c.stack.snd_ssthresh, INFINITE_SSTHRESH, "{name}");
        }
    }
}

#[test]
fn css_ends_in_avoidance_after_five_rounds() {
    for (name, hystart) in WITH {
        let mut c = conn(name, hystart);
        round(&mut c, SAMPLES, 1, RTT_US);
        // CSS begins within this round, which counts.
        for i in 1..=5 {
            round(&mut c, SAMPLES, 1, 2 * RTT_US);
            assert_eq!(c.stack.snd_ssthresh, INFINITE_SSTHRESH, "{name}: {i}");
        }
        let cwnd = c.cwnd();
        round(&mut c, 1, 1, 2 * RTT_US);
        assert_eq!(c.stack.snd_ssthresh, cwnd, "{name}");
    }
}

#[test]
fn an_unpaced_ack_adds_eight_segments_at_most() {
    for (name, hystart) in WITH {
        let c = conn(name, hystart);
        assert_eq!(growth_per_hundred_acks(&c, 44, RTT_US), 800, "{name}");
        let c = c.paced();
        assert_eq!(growth_per_hundred_acks(&c, 44, RTT_US), 4400, "{name}");
    }
}

#[test]
fn hystartpp_leaves_every_later_slow_start_alone() {
    for (name, hystart) in WITH {
        let mut c = conn(name, hystart);
        c.stack.snd_cwnd = 1000;
        c.time_out();
        c.stack.snd_cwnd = 20;
        for rtt_us in [RTT_US, 3 * RTT_US] {
            round(&mut c, SAMPLES, 1, rtt_us);
        }
        assert_eq!(growth_per_hundred_acks(&c, 2, RTT_US), 200, "{name}");
    }
}

#[test]
fn without_the_option_slow_start_is_as_before() {
    for (name, hystart) in [("reno", 0), ("cubic", 0)] {
        let mut c = conn(name, hystart);
        round(&mut c, SAMPLES, 1, RTT_US);
        for _ in 0..10 {
            round(&mut c, SAMPLES, 1, 3 * RTT_US);
        }
        assert_eq!(c.stack.snd_ssthresh, INFINITE_SSTHRESH, "{name}");
        assert_eq!(growth_per_hundred_acks(&c, 44, RTT_US), 4400, "{name}");
    }
}
