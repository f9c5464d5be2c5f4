//! BBR 3 does what the example cases of draft-ietf-ccwg-bbr's appendix ask for. Each test is named by its case.

mod common;

use common::{LARGE_BUFFERS, PAYLOAD_SHARE, assert_within, run, utilisation};
use knee_sim::Output;

const RATE: f64 = 50e6;
const RTT_MS: i64 = 40;
/// Segments of 1500 bytes: 50 Mbit/s x 40 ms.
const BDP: i64 = 167;

/// One flow on 50 Mbit/s x 40 ms; `path`, `flow`: further keys.
fn alone(duration: &str, path: &str, flow: &str) -> Output {
    run(&format!(
        "duration = \"{duration}\"\nwarmup = \"2s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"40ms\"\n{path}\n\
         {LARGE_BUFFERS}[[flow]]\nalgorithm = \"bbr3\"\n{flow}\n"
    ))
}

/// Stretches of one phase: its name, its begin and its end, ms.
fn phases(output: &Output, flow: i32) -> Vec<(&'static str, i64, i64)> {
    let s = &output.samples;
    let mut found: Vec<(&'static str, i64, i64)> = Vec::new();
    for row in common::rows_of(s, flow).filter(|&row| !s.cc_phase[row].is_empty()) {
        let (name, t_ms) = (s.cc_phase[row], s.t_ns[row] / 1_000_000);
        match found.last_mut() {
            Some((last, _, end)) if *last == name => *end = t_ms,
            _ => found.push((name, t_ms, t_ms)),
        }
    }
    found
}

fn first<'a>(phases: &'a [(&'static str, i64, i64)], name: &str) -> &'a (&'static str, i64, i64) {
    phases
        .iter()
        .find(|(phase, ..)| *phase == name)
        .unwrap_or_else(|| panic!("no {name} among {phases:?}"))
}

/// The bandwidth estimate over the link's, at the last sample before `t_ms`.
fn bw_at(output: &Output, flow: i32, t_ms: i64, rate: f64) -> f64 {
    let s = &output.samples;
    let row = common::rows_of(s, flow)
        .take_while(|&row| s.t_ns[row] <= t_ms * 1_000_000)
        .last()
        .expect("it has begun");
    s.bbr_bw_bits_per_sec[row].expect("it has a model") as f64 / (rate * PAYLOAD_SHARE)
}

#[test]
fn startup_exits_by_a_plateau_with_max_bw_within_2_pct_of_the_link() {
    let output = alone("6s", "buffer = \"8bdp\"", "");
    let phases = phases(&output, 0);
    let &(_, _, end_ms) = first(&phases, "Startup");
    assert_within(
        "max_bw over the link",
        bw_at(&output, 0, end_ms, RATE),
        0.98,
        1.02,
    );
    // From 10 to 2 x 167 segments takes 5.1 doublings; 3 rounds without growth, of up to 2 RTTs with a BDP in the queue.
    assert_within(
        "end of STARTUP, RTTs",
        end_ms as f64 / RTT_MS as f64,
        6.0,
        14.0,
    );
    assert_eq!(output.flows.total_retrans[0], 0);
}

#[test]
fn startup_exits_by_loss_in_a_shallow_buffer() {
    let output = alone("3s", "buffer = \"0.1bdp\"", "");
    let end_ms = first(&phases(&output, 0), "Startup").2;
    let lost = output.flows.total_retrans[0];
    assert!(lost > 6, "{lost} lost: the buffer overflowed");
    assert_within(
        "end of STARTUP, RTTs",
        end_ms as f64 / RTT_MS as f64,
        4.0,
        9.0,
    );
}

#[test]
fn drain_takes_the_queue_of_startup_out() {
    let output = alone("6s", "buffer = \"8bdp\"", "");
    let phases = phases(&output, 0);
    let &(_, start_ms, end_ms) = first(&phases, "Drain");
    // The queue is at most one BDP (cwnd gain 2), drained at 1 - 0.34 of the rate.
    assert_within(
        "DRAIN, RTTs",
        (end_ms - start_ms) as f64 / RTT_MS as f64,
        0.2,
        4.0,
    );
    let s = &output.samples;
    // With nothing above the headroom DOWN is over at once.
    let row = (0..s.t_ns.len())
        .find(|&row| s.cc_phase[row].starts_with("ProbeBw"))
        .expect("ProbeBW follows");
    assert_within(
        "in flight after DRAIN, BDP",
        s.inflight[row] as f64 / BDP as f64,
        0.5,
        1.1,
    );
}

#[test]
fn probe_up_ends_without_growth_and_down_leaves_headroom() {
    let output = alone("30s", "buffer = \"4bdp\"", "");
    let phases = phases(&output, 0);
    let ups: Vec<_> = phases
        .iter()
        .filter(|(name, ..)| *name == "ProbeBwUp")
        .collect();
    assert!(ups.len() >= 6, "a probe each 2 to 3 s: {ups:?}");
    for (_, start_ms, end_ms) in &ups[1..] {
        let rounds = (end_ms - start_ms) as f64 / RTT_MS as f64;
        assert!(rounds <= 8.0, "UP of {rounds} RTTs on a full pipe");
    }
    for pair in phases.windows(2) {
        if pair[0].0 == "ProbeBwUp" {
            assert_eq!(pair[1].0, "ProbeBwDown");
        }
    }
    assert!(utilisation(&output, RATE) > 0.95);
    assert_eq!(output.flows.total_retrans[0], 0);
}

#[test]
fn probes_for_bandwidth_are_two_to_three_seconds_apart() {
    // A BDP above 63 segments, so that the clock decides and not the rounds: 63 x 100 ms.
    let output = run(&format!(
        "duration = \"120s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"100ms\"\nbuffer = \"2bdp\"\n{LARGE_BUFFERS}\
         [[flow]]\nalgorithm = \"bbr3\"\n"
    ));
    let phases = phases(&output, 0);
    let at = |wanted: &str| -> Vec<i64> {
        let named = phases.iter().filter(|(name, ..)| *name == wanted);
        named.map(|&(_, start_ms, _)| start_ms).collect()
    };
    let (starts, pauses) = (at("ProbeBwRefill"), at("ProbeRtt"));
    assert!(starts.len() >= 6, "{starts:?}");
    let mut undisturbed = 0;
    for pair in starts.windows(2) {
        // PROBE_RTT starts the wait anew.
        if pauses.iter().any(|at| (pair[0]..pair[1]).contains(at)) {
            continue;
        }
        undisturbed += 1;
        let apart_s = (pair[1] - pair[0]) as f64 / 1e3;
        assert!(
            (2.0..=4.5).contains(&apart_s),
            "{apart_s} s from probe to probe"
        );
    }
    assert!(undisturbed >= 2, "{starts:?} {pauses:?}");
}

#[test]
fn probe_rtt_comes_each_5_s_for_200_ms_at_half_a_bdp() {
    let output = alone("32s", "buffer = \"4bdp\"", "");
    let phases = phases(&output, 0);
    let probes: Vec<_> = phases
        .iter()
        .filter(|(name, ..)| *name == "ProbeRtt")
        .collect();
    assert!((4..=6).contains(&probes.len()), "{probes:?}");
    for (_, start_ms, end_ms) in &probes {
        assert!(
            (190..=330).contains(&(end_ms - start_ms)),
            "{start_ms} to {end_ms} ms"
        );
    }
    for pair in probes.windows(2) {
        let apart_s = (pair[1].1 - pair[0].1) as f64 / 1e3;
        assert!((5.0..=6.0).contains(&apart_s), "{apart_s} s apart");
    }
    let s = &output.samples;
    let least = (0..s.t_ns.len())
        .filter(|&row| s.cc_phase[row] == "ProbeRtt")
        .map(|row| s.inflight[row])
        .min()
        .expect("sampled");
    assert_within("least in flight, BDP", least as f64 / BDP as f64, 0.35, 0.6);
}

#[test]
fn probe_rtt_is_skipped_after_idle() {
    let output = alone(
        "40s",
        "buffer = \"4bdp\"",
        "workload = \"on-off\"\non = \"1s\"\noff = \"6s\"",
    );
    let phases = phases(&output, 0);
    assert!(
        phases.iter().all(|(name, ..)| *name != "ProbeRtt"),
        "a pause has shown the empty path: {phases:?}"
    );
}

#[test]
fn a_path_with_a_bdp_below_a_packet_is_used() {
    let output = run(&format!(
        "duration = \"60s\"\nwarmup = \"10s\"\n[path]\nrate = \"100kbit/s\"\nrtt = \"10ms\"\nbuffer = \"20packets\"\n\
         {LARGE_BUFFERS}[[flow]]\nalgorithm = \"bbr3\"\n"
    ));
    assert!(utilisation(&output, 100e3) > 0.9);
}

#[test]
fn bandwidth_that_another_flow_frees_is_found_within_two_probes() {
    // Another flow takes what it can from 10 s on, and leaves.
    let output = run(&format!(
        "duration = \"45s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"1bdp\"\n{LARGE_BUFFERS}\
         [[flow]]\nalgorithm = \"bbr3\"\n\
         [[flow]]\nalgorithm = \"reno\"\nworkload = \"transfer\"\nbytes = \"10MB\"\nstart = \"10s\"\n"
    ));
    let s = &output.samples;
    let left_ms = common::rows_of(s, 1)
        .map(|row| s.t_ns[row] / 1_000_000)
        .max()
        .expect("the other flow was there");
    assert!(left_ms < 40_000, "the other flow ends at {left_ms} ms");
    assert_within(
        "alone again, 6 s later",
        bw_at(&output, 0, left_ms + 6_000, RATE),
        0.9,
        1.02,
    );
}

#[test]
fn aggregated_acks_do_not_starve_it() {
    let output = alone("20s", "buffer = \"4bdp\"\naggregate = \"10ms\"", "");
    assert!(utilisation(&output, RATE) > 0.9);
}

#[test]
fn spurious_recovery_is_undone() {
    let output = alone(
        "20s",
        "buffer = \"4bdp\"\nreorder = \"0.5%\"\nreorder_delay = \"12ms\"",
        "",
    );
    assert!(
        utilisation(&output, RATE) > 0.9,
        "{}",
        utilisation(&output, RATE)
    );
}

#[test]
fn a_policer_costs_it_less_than_bbr1() {
    let retransmit_pct = |algorithm: &str| {
        let output = run(&format!(
            "duration = \"20s\"\nwarmup = \"5s\"\n[path]\nrate = \"100Mbit/s\"\nrtt = \"40ms\"\n\
             policer_rate = \"10Mbit/s\"\npolicer_burst = \"50kB\"\n{LARGE_BUFFERS}[[flow]]\nalgorithm = \"{algorithm}\"\n"
        ));
        let flows = &output.flows;
        assert!(
            flows.goodput_bits_per_sec[0] > 0.6 * 10e6 * PAYLOAD_SHARE,
            "{algorithm}"
        );
        100.0 * flows.total_retrans[0] as f64 / flows.data_segs_out[0] as f64
    };
    let (v3, v1) = (retransmit_pct("bbr3"), retransmit_pct("bbr1"));
    assert!(v3 < v1, "bbr3 {v3} %, bbr1 {v1} %");
}

#[test]
fn sustained_loss_below_the_threshold_leaves_it_most_of_the_link() {
    let output = alone("30s", "buffer = \"1bdp\"\nloss = \"0.5%\"", "");
    assert!(
        utilisation(&output, RATE) > 0.75,
        "{}",
        utilisation(&output, RATE)
    );
}
