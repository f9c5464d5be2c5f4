//! CUBIC before Linux 4.0: cubic's code with growth counted in ACKs, and nothing else.

use crate::common::Conn;
use knee_cc::{CaState, Op, find};

const RTT_US: u32 = 100_000;

/// In avoidance just after a loss at `w_max`, with the RTT and the number of packets per ACK known.
fn after_loss(name: &str, w_max: u32, packets_per_ack: u32, params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new(name, params);
    c.stack.acked = packets_per_ack;
    c.stack.ack_rtt_us = RTT_US.into();
    for _ in 0..2000 {
        c.op(Op::PktsAcked);
    }
    c.stack.snd_cwnd = w_max;
    c.lose();
    c
}

/// Runs round trips of ACKs for so many packets each; returns the window after.
fn run(c: &mut Conn, rounds: u32, packets_per_ack: u32) -> u32 {
    for _ in 0..rounds {
        let acks = c.cwnd() / packets_per_ack;
        for _ in 0..acks {
            c.pass_us(u64::from(RTT_US / acks));
            c.ack(packets_per_ack, RTT_US.into());
        }
    }
    c.cwnd()
}

#[test]
fn cubic_preack_is_cubic_with_per_ack_at_1() {
    let other = |name: &str| {
        let own: Vec<_> = find(name)
            .unwrap()
            .params()
            .iter()
            .map(|p| (p.name, p.default, p.min, p.max))
            .collect();
        own
    };
    let (cubic, preack) = (other("cubic"), other("cubic_preack"));
    assert_eq!(cubic.len(), preack.len());
    for (a, b) in cubic.iter().zip(&preack) {
        if a.0 == "per_ack" {
            assert_eq!((a.1, b.1), (0, 1));
        } else {
            assert_eq!(a, b);
        }
    }
    for (name, per_ack) in [("cubic", 1), ("cubic_preack", 0)] {
        let twin = if per_ack == 1 {
            "cubic_preack"
        } else {
            "cubic"
        };
        let mut a = after_loss(name, 1000, 2, &[("per_ack", per_ack)]);
        let mut b = after_loss(twin, 1000, 2, &[]);
        for _ in 0..100 {
            assert_eq!(run(&mut a, 1, 2), run(&mut b, 1, 2));
        }
    }
}

#[test]
fn cubic_preack_is_as_fast_as_cubic_with_ordinary_delayed_acks() {
    // d is 2: cnt / 2 ACKs are cnt packets.
    let old = run(&mut after_loss("cubic_preack", 1000, 2, &[]), 60, 2);
    let new = run(&mut after_loss("cubic", 1000, 2, &[]), 60, 2);
    assert!(old.abs_diff(new) <= new / 50, "{old}, {new}");
}

#[test]
fn cubic_preack_loses_the_growth_of_reno_as_acks_are_stretched() {
    // RTT 1 ms, where Reno is faster than the curve: W_reno grows per ACK, and the window follows it.
    let grown = |name: &str, tcp_friendliness: u32| {
        let mut c = after_loss(name, 1000, 44, &[("tcp_friendliness", tcp_friendliness)]);
        for _ in 0..200 {
            let acks = c.cwnd() / 44;
            for _ in 0..acks {
                c.pass_us((1000 / acks).into());
                c.ack(44, 1000);
            }
        }
        c.cwnd() - 700
    };
    // 8/15 per round trip are 106; a round trip here is whole ACKs of 44, up to 6 % less than a window.
    let new = grown("cubic", 1);
    assert!((85..=107).contains(&new), "{new}");
    // The old way, W_reno grows by 200 * 16 ACKs / (1.875 * 700) = 2.4: what is left is the curve's growth.
    assert_eq!(grown("cubic_preack", 1), grown("cubic_preack", 0));
    assert!(grown("cubic_preack", 1) < new / 3);
}

#[test]
fn cubic_preack_divides_by_32_packets_per_ack_at_most() {
    // Without a W_max cnt is 20 packets, and a segment takes one ACK at least.
    for (packets_per_ack, cnt) in [(4, 5), (16, 1), (32, 1), (64, 1)] {
        let mut c = Conn::new("cubic_preack", &[("tcp_friendliness", 0)]);
        c.stack.acked = packets_per_ack;
        for _ in 0..2000 {
            c.op(Op::PktsAcked);
        }
        c.stack.snd_cwnd = 1000;
        c.stack.snd_ssthresh = 1000;
        c.stack.acked = packets_per_ack;
        let mut acks = 0;
        while c.cwnd() == 1000 {
            c.op(Op::CongAvoid);
            acks += 1;
        }
        assert_eq!(acks, cnt, "{packets_per_ack} per ACK");
    }
    // At the plateau cnt is 100 windows: above 32 packets per ACK the ACKs needed fall no more.
    let acks = |packets_per_ack: u32| {
        let mut c = after_loss(
            "cubic_preack",
            100,
            packets_per_ack,
            &[("tcp_friendliness", 0)],
        );
        c.stack.snd_cwnd = 100;
        c.stack.acked = packets_per_ack;
        c.stack.snd_ssthresh = 2;
        let mut acks = 0;
        while c.cwnd() == 100 {
            c.op(Op::CongAvoid);
            acks += 1;
        }
        acks
    };
    assert_eq!(acks(32), 10_000 / 32);
    assert_eq!(acks(64), 10_000 / 32);
}

#[test]
fn cubic_preack_slow_start_counts_packets_as_ever() {
    let mut c = Conn::new("cubic_preack", &[]);
    c.ack(10, RTT_US.into());
    assert_eq!(c.cwnd(), 20);
}

#[test]
fn cubic_preack_forgets_packets_per_ack_at_a_timeout() {
    let mut c = after_loss("cubic_preack", 1000, 32, &[]);
    c.set_state(CaState::Loss);
    c.set_state(CaState::Open);
    c.stack.snd_cwnd = 1000;
    c.stack.snd_ssthresh = 1000;
    c.stack.acked = 1;
    for _ in 0..9 {
        c.op(Op::CongAvoid);
    }
    assert_eq!(c.cwnd(), 1000);
    // d is 2 again: 20 / 2 ACKs.
    c.op(Op::CongAvoid);
    assert_eq!(c.cwnd(), 1001);
}

#[test]
fn slow_start_counts_packets_unless_it_is_to_count_acks() {
    for name in ["cubic", "cubic_preack"] {
        for (slow_start_per_ack, grown) in [(0, 44), (1, 1)] {
            let params = [("slow_start_per_ack", slow_start_per_ack)];
            let mut c = Conn::new(name, &params);
            let before = c.cwnd();
            c.ack(44, RTT_US.into());
            assert_eq!(c.cwnd() - before, grown, "{name}, {slow_start_per_ack}");
        }
    }
}
