//! BBR 1 in the example test cases of draft-ietf-ccwg-bbr that apply to it, with version 1's figures: one window of 10 s,
//! a gain cycle of eight phases, four segments in PROBE_RTT. A test for each, named by the case; the policer's are in
//! `policer.rs`.

use crate::common::bbr::{
    APP_LIMITED, BDP, Case, RATE, RTT_MS, assert_startup_goes_on_after_probe_rtt, bw_at, events,
    first, found_ms, least, most, names, phases, rounds, row_at, rows_between,
};
use crate::common::{LARGE_BUFFERS, assert_within, run, utilisation};

#[test]
fn startup_exits_on_a_bandwidth_plateau() {
    let output = Case::of("bbr1").run();
    let phases = phases(&output);
    assert_eq!(names(&phases)[..3], ["Startup", "Drain", "ProbeBw"]);
    let end_ms = phases[0].end_ms;
    assert_within(
        "max_bw, of the link",
        bw_at(&output, end_ms, RATE),
        0.98,
        1.02,
    );
    // It looks once per round: three begin after the one that grew last.
    let without_growth = rounds(&output, found_ms(&output, 0, 0.81, RATE), end_ms);
    assert!((2..=4).contains(&without_growth), "{without_growth} rounds");
}

#[test]
fn startup_never_exits_when_application_limited() {
    let output = Case {
        flow: APP_LIMITED,
        seconds: 9,
        ..Case::of("bbr1")
    }
    .run();
    assert_eq!(names(&phases(&output)), ["Startup"]);
}

#[test]
fn drain_exits_on_inflight() {
    let output = Case::of("bbr1").run();
    let drain = first(&phases(&output), "Drain");
    // The queue is at most 1.89 BDP (cwnd gain 2.89), drained at 1 - 0.35 of the rate.
    assert_within(
        "DRAIN, RTTs",
        drain.length_ms() as f64 / RTT_MS as f64,
        0.2,
        4.0,
    );
    let inflight = output.samples.inflight[row_at(&output, drain.end_ms + 1)];
    assert_within(
        "in flight after DRAIN, BDP",
        inflight as f64 / BDP as f64,
        0.5,
        1.1,
    );
}

#[test]
fn probe_rtt_is_entered_each_10_s_and_left_after_200_ms() {
    let output = Case {
        seconds: 45,
        ..Case::of("bbr1")
    }
    .run();
    let phases = phases(&output);
    let probes: Vec<_> = phases
        .iter()
        .filter(|phase| phase.name == "ProbeRtt")
        .collect();
    assert!((3..=4).contains(&probes.len()), "{phases:?}");
    for probe in &probes {
        assert_within("PROBE_RTT, ms", probe.length_ms() as f64, 190.0, 330.0);
        let rows = || rows_between(&output, probe.start_ms, probe.end_ms);
        assert_eq!(least(rows().map(|row| output.samples.snd_cwnd[row])), 4);
        // One that was acknowledged, and whose successor is paced.
        let inflight = least(rows().map(|row| output.samples.inflight[row]));
        assert!((3..=4).contains(&inflight), "{inflight}");
    }
    for pair in probes.windows(2) {
        let apart_s = (pair[1].start_ms - pair[0].start_ms) as f64 / 1e3;
        assert_within("from one to the next, s", apart_s, 10.0, 11.0);
    }
}

#[test]
fn probe_rtt_is_skipped_due_to_application_limited_sending() {
    let flow = "workload = \"on-off\"\non = \"1s\"\noff = \"11s\"";
    let names = names(&phases(
        &Case {
            seconds: 60,
            flow,
            ..Case::of("bbr1")
        }
        .run(),
    ));
    assert!(names.contains(&"ProbeBw"));
    assert!(!names.contains(&"ProbeRtt"), "{names:?}");
}

#[test]
fn probe_rtt_during_startup_returns_to_startup() {
    assert_startup_goes_on_after_probe_rtt("bbr1", 20);
}

#[test]
fn a_link_with_aggregation_is_used() {
    let output = Case {
        seconds: 20,
        path: "aggregate = \"10ms\"",
        ..Case::of("bbr1")
    }
    .run();
    assert_within("used of the link", utilisation(&output, RATE), 0.95, 1.0);
    let cwnd = most(rows_between(&output, 3_000, 9_000).map(|row| output.samples.snd_cwnd[row]));
    assert_within("cwnd in PROBE_BW, BDP", cwnd as f64 / BDP as f64, 2.2, 4.0);
}

#[test]
fn sub_packet_bdps_are_managed() {
    let output = run(&format!(
        "duration = \"60s\"\nwarmup = \"10s\"\n[path]\nrate = \"100kbit/s\"\nrtt = \"10ms\"\nbuffer = \"20packets\"\n\
         {LARGE_BUFFERS}[[flow]]\nalgorithm = \"bbr1\"\n"
    ));
    assert_within("used of the link", utilisation(&output, 100e3), 0.9, 1.0);
    let from_ms = first(&phases(&output), "ProbeBw").start_ms;
    assert!(from_ms < 20_000, "STARTUP and DRAIN end at {from_ms} ms");
    assert!(
        least(rows_between(&output, from_ms, 60_000).map(|row| output.samples.snd_cwnd[row])) >= 4
    );
}

#[test]
fn a_bandwidth_increased_10x_is_found_by_one_probe() {
    let output = Case {
        seconds: 30,
        rates: vec![(10, 12_000), (100, i64::MAX)],
        ..Case::of("bbr1")
    }
    .run();
    // A probe begins within a cycle of eight RTTs. It lasts until it shows in flight, which it does not while the rate
    // grows: ln 10 / ln 1.25 = 10.3 rounds of a quarter more, of up to 1.25 RTTs.
    let rtts = (found_ms(&output, 12_000, 0.9, 100e6) - 12_000) as f64 / RTT_MS as f64;
    assert_within("RTTs", rtts, 10.0, 22.0);
}

#[test]
fn a_bandwidth_decreased_10x_is_adapted_to_within_twelve_rounds() {
    let output = Case {
        seconds: 30,
        rates: vec![(100, 12_000), (10, i64::MAX)],
        buffer: "2000packets",
        ..Case::of("bbr1")
    }
    .run();
    assert_within("before", bw_at(&output, 11_900, 10e6), 9.5, 10.5);
    let adapted_ms = (12_000..30_000)
        .step_by(10)
        .find(|&at_ms| bw_at(&output, at_ms, 10e6) < 1.1);
    let within = rounds(&output, 12_000, adapted_ms.expect("it adapts"));
    // Ten rounds after the newest sample that the filter holds. It holds three, and takes a new one for the third
    // when none came for a quarter of its window after the second, for half of it after the first.
    assert!((5..=12).contains(&within), "{within} rounds");
}

/// A disturbance amid PROBE_BW: the window from before comes back, and the bandwidth was never given up.
fn window_comes_back(path: &str, timeouts: i64, least: f64) {
    let at_ms = 3_000;
    let output = Case {
        path,
        ..Case::of("bbr1")
    }
    .run();
    assert_eq!(output.flows.rto_count.get(0), Some(timeouts));
    assert_eq!(output.flows.queue_dropped_pkts.get(0).unwrap(), 0);
    let undone_ms = *events(&output, "undo").last().expect("undone");
    assert_within("undo, ms later", (undone_ms - at_ms) as f64, 1.0, 1_000.0);
    let s = &output.samples;
    let cwnd = s.snd_cwnd[row_at(&output, undone_ms + 100)] as f64
        / s.snd_cwnd[row_at(&output, at_ms)] as f64;
    assert_within("cwnd over the one before", cwnd, least, 1.5);
    let bw = bw_at(&output, undone_ms + 100, RATE) / bw_at(&output, at_ms, RATE);
    assert!(bw > 0.98, "{bw} of the bandwidth before");
}

#[test]
fn spurious_fast_recovery_is_undone() {
    // Of two BDPs of 40 ms: those of 10 ms are a quarter, and the packets of 30 ms that came at once when the path got
    // shorter, which count as aggregation for five to ten round trips, nearly three eighths.
    window_comes_back("rtt_change = \"3000ms to 10ms\"", 0, 0.6);
}

#[test]
fn spurious_rto_recovery_is_undone() {
    window_comes_back("outage = \"3000ms for 900ms\"", 1, 0.9);
}
