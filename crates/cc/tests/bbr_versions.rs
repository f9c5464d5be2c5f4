//! What BBR 2 and 3 do each their own way, as Google's files do it (docs/against.md).

use crate::common::Conn;
use knee_cc::{CaState, Op};

const RTT_US: u32 = 40_000;
/// 10 packets per 4 ms.
const BDP: u32 = 100;

/// An ACK of ten packets, 4 ms after the last one, that shows this share of the path's rate.
fn ack(c: &mut Conn, percent: u32) {
    c.pass_us(4000);
    c.stack.srtt_us = RTT_US;
    c.stack.packets_out = BDP;
    c.stack.delivered += 10;
    c.stack.rs_prior_delivered = c.stack.delivered.saturating_sub(BDP);
    c.stack.rs_delivered = (BDP * percent / 100) as i32;
    c.stack.rs_interval_us = RTT_US.into();
    c.stack.rs_rtt_us = RTT_US.into();
    c.stack.rs_acked_sacked = 10;
    c.stack.rs_prior_in_flight = BDP;
    c.op(Op::CongControl);
}

fn phase(c: &Conn) -> &'static str {
    c.info().unwrap().phase
}

fn cruising(name: &str, params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new(name, params);
    for _ in 0..1000 {
        ack(&mut c, 100);
        if phase(&c) == "ProbeBwCruise" {
            return c;
        }
    }
    panic!("{name} does not cruise, but is in {}", phase(&c));
}

#[test]
fn an_rtt_equal_to_the_lowest_puts_probe_rtt_off_in_version_2_only() {
    for (name, probes) in [("bbr2", false), ("bbr3", true)] {
        let mut c = cruising(name, &[]);
        let mut probed = false;
        for _ in 0..6000 / 4 {
            ack(&mut c, 100);
            probed |= phase(&c) == "ProbeRtt";
        }
        assert_eq!(probed, probes, "{name}");
    }
}

#[test]
fn below_1_2_mbit_per_second_a_burst_is_one_segment_in_version_2_only() {
    for (name, pacing_rate, segments) in [
        ("bbr2", 149_999, 1),
        ("bbr2", 150_000, 2),
        ("bbr3", 149_999, 2),
    ] {
        let mut c = Conn::new(name, &[]);
        c.stack.pacing_rate = pacing_rate;
        assert_eq!(
            c.op(Op::MinTsoSegs),
            segments,
            "{name} at {pacing_rate} B/s"
        );
    }
}

/// At half the rate for some rounds: CWR and out of it, with so many bytes acked in between. What is left of the bandwidth
/// in use?
fn share_after_cwr(name: &str, acked_bytes: u32) -> f64 {
    let mut c = cruising(name, &[]);
    let before = c.info().unwrap().bw_bytes_per_sec.unwrap();
    for _ in 0..25 {
        ack(&mut c, 50);
    }
    c.op(Op::Ssthresh);
    c.set_state(CaState::Cwr);
    c.stack.snd_una += acked_bytes;
    c.set_state(CaState::Open);
    for _ in 0..15 {
        ack(&mut c, 50);
    }
    assert_eq!(phase(&c), "ProbeBwCruise");
    c.info().unwrap().bw_bytes_per_sec.unwrap() as f64 / before as f64
}

#[test]
fn cwr_left_in_the_ack_that_entered_it_is_a_loss_that_a_tail_probe_repaired_in_version_3() {
    assert!((share_after_cwr("bbr3", 0) - 0.7).abs() < 0.01);
    // The host's own queue was full: no loss.
    assert_eq!(share_after_cwr("bbr3", 1448), 1.0);
    assert_eq!(share_after_cwr("bbr2", 0), 1.0);
}

#[test]
fn the_fast_path_leaves_the_window_of_an_application_that_sends_less_than_bw() {
    for name in ["bbr2", "bbr3"] {
        let window = |fast_path| {
            let mut c = cruising(name, &[("fast_path", fast_path)]);
            for _ in 0..50 {
                ack(&mut c, 100);
            }
            let before = c.cwnd();
            c.stack.rs_is_app_limited = 1;
            // Sixty at once: four times what the bandwidth delivers in that time.
            c.stack.delivered += 50;
            c.stack.rs_acked_sacked = 60;
            c.pass_us(4000);
            c.stack.rs_delivered = 60;
            c.op(Op::CongControl);
            (before, c.cwnd())
        };
        let (before, after) = window(1);
        assert_eq!(before, after, "{name}");
        let (before, after) = window(0);
        assert!(after > before, "{name}: {before}, {after}");
    }
}

/// Where the stack does not tell what was lost since a packet was sent, it is rebuilt from what init() and later ACKs saw.
/// What the connection had delivered and lost before, under another algorithm, is no loss of this one's probes.
#[test]
fn losses_from_before_the_algorithm_are_not_its_own() {
    for name in ["bbr2", "bbr3"] {
        let paces = |delivered: u32, lost: u32| {
            let mut c = Conn::new(name, &[("approximate", 1), ("ecn", 1)]);
            c.stack.delivered = delivered;
            c.stack.lost = lost;
            c.op(Op::Init);
            let mut paces = Vec::new();
            for n in 0..3000u32 {
                // Marks in bursts, and a loss now and then.
                c.stack.rs_delivered_ce = i32::from(n / 64 % 4 == 1) * 5;
                c.stack.delivered_ce += c.stack.rs_delivered_ce as u32;
                c.stack.rs_losses = u32::from(n % 499 == 498);
                c.stack.lost += c.stack.rs_losses;
                ack(&mut c, 100);
                paces.push((c.stack.pacing_rate, c.cwnd(), phase(&c)));
            }
            paces
        };
        assert_eq!(paces(5_000, 1_000), paces(5_000, 0), "{name}");
    }
}
