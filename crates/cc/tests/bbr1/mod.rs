//! BBRv1 as published and as in Linux: modes, filters, the policer model, recovery, idle.

mod aggregation;
mod info;
mod pacing;
mod policer;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod startup;

use crate::common::{Conn, MSS_BYTES};
use knee_cc::Op;

const RTT_US: u32 = 40_000;
/// 10 packets per ms, 116 Mbit/s: a BDP of 400 packets.
const PACKETS_PER_MS: u32 = 10;
const BDP: u32 = PACKETS_PER_MS * RTT_US / 1000;

/// One packet-timed round on a path, acked in `acks` equal ACKs; the losses show in the last. One ACK is the simplest
/// clock, but to BBR it is an aggregated one, which adds a BDP to the window.
#[derive(Clone, Copy)]
struct Round {
    packets_per_ms: u32,
    rtt_us: u32,
    losses: u32,
    in_flight: u32,
    app_limited: bool,
    acks: u32,
}

impl Default for Round {
    fn default() -> Self {
        Round {
            packets_per_ms: PACKETS_PER_MS,
            rtt_us: RTT_US,
            losses: 0,
            in_flight: BDP,
            app_limited: false,
            acks: 1,
        }
    }
}

fn bbr(params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("bbr1", params);
    c.stack.srtt_us = RTT_US;
    c
}

const SMOOTH: u32 = 10;

/// The ACKs of a round; the first begins it.
fn round(c: &mut Conn, r: Round) {
    let packets = r.packets_per_ms * r.rtt_us / 1000;
    let begin = c.stack.delivered;
    for i in 1..=r.acks {
        let last = i == r.acks;
        c.pass_us((r.rtt_us / r.acks).into());
        c.stack.rs_prior_delivered = if i == 1 { begin } else { begin.wrapping_sub(1) };
        c.stack.rs_acked_sacked = if last {
            packets - packets / r.acks * (r.acks - 1)
        } else {
            packets / r.acks
        };
        c.stack.delivered = c.stack.delivered.wrapping_add(c.stack.rs_acked_sacked);
        c.stack.rs_losses = if last { r.losses } else { 0 };
        c.stack.lost = c.stack.lost.wrapping_add(c.stack.rs_losses);
        c.stack.rs_delivered = packets as i32;
        c.stack.rs_interval_us = r.rtt_us.into();
        c.stack.rs_rtt_us = r.rtt_us.into();
        c.stack.rs_prior_in_flight = r.in_flight;
        c.stack.rs_is_app_limited = r.app_limited.into();
        c.stack.packets_out = r.in_flight;
        c.op(Op::CongControl);
    }
}

fn smooth() -> Round {
    Round {
        acks: SMOOTH,
        ..Round::default()
    }
}

/// A round with more in flight than the pipe holds.
fn overfull() -> Round {
    Round {
        in_flight: 3 * BDP,
        ..Round::default()
    }
}

/// A round of just over an RTT, in which a phase of the gain cycle ends.
fn longer() -> Round {
    Round {
        rtt_us: RTT_US + 1000,
        ..Round::default()
    }
}

fn lossy() -> Round {
    Round {
        losses: 1,
        ..Round::default()
    }
}

/// A round of the window that PROBE_RTT leaves.
fn four_packets() -> Round {
    Round {
        in_flight: 4,
        packets_per_ms: 1,
        app_limited: true,
        ..Round::default()
    }
}

/// The pacing gain in 1/256, from the pacing rate and the bandwidth that the path has.
fn gain(c: &Conn, packets_per_ms: u32) -> u64 {
    let rate_at_gain_1 = u64::from(packets_per_ms) * 1000 * u64::from(MSS_BYTES) * 99 / 100;
    (c.stack.pacing_rate * 256 + rate_at_gain_1 / 2) / rate_at_gain_1
}

/// Rounds until the pipe is full and the queue drained.
fn in_probe_bw(params: &[(&str, u32)]) -> Conn {
    let mut c = bbr(params);
    for _ in 0..5 {
        round(&mut c, Round::default());
    }
    assert!(
        [192, 256, 320].contains(&gain(&c, PACKETS_PER_MS)),
        "not in PROBE_BW"
    );
    c
}

/// Rounds until the gain cycle of PROBE_BW probes.
fn until_probe(c: &mut Conn) {
    while gain(c, PACKETS_PER_MS) != 320 {
        round(c, longer());
    }
}

/// One ACK of `packets` amid a round, `gap_us` after the last; the sample shows the path's rate.
fn lump(c: &mut Conn, gap_us: u64, packets: u32) {
    c.pass_us(gap_us);
    c.stack.rs_prior_delivered = c.stack.delivered.wrapping_sub(BDP);
    c.stack.delivered += packets;
    c.stack.rs_delivered = BDP as i32;
    c.stack.rs_interval_us = RTT_US.into();
    c.stack.rs_rtt_us = RTT_US.into();
    c.stack.rs_acked_sacked = packets;
    c.stack.rs_losses = 0;
    c.stack.packets_out = BDP;
    c.stack.rs_prior_in_flight = BDP;
    c.op(Op::CongControl);
}

/// PROBE_BW on a path without aggregation: a late ACK ends the epoch of the round-sized ones, and their excess ages.
fn in_smooth_probe_bw(params: &[(&str, u32)]) -> Conn {
    let mut c = in_probe_bw(params);
    lump(&mut c, 2 * u64::from(RTT_US), BDP / SMOOTH);
    for _ in 0..12 {
        round(&mut c, smooth());
    }
    c
}
