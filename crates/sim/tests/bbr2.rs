//! BBR 2 in the example test cases of draft-ietf-ccwg-bbr that apply to it. A test for each, named by the case.

use crate::common::bbr::{
    APP_LIMITED, BDP, Case, NO_PROBE_RTT, RATE, RTT_MS, assert_startup_goes_on_after_probe_rtt,
    bw_at, each_nth_after, events, first, found_ms, index_of, least, most, names, phases,
    retransmitted, rounds, row_at, rows_between, used,
};
use crate::common::{LARGE_BUFFERS, MSS_BYTES, assert_within, run, utilisation};

#[test]
fn startup_exits_on_a_bandwidth_plateau() {
    let output = Case::of("bbr2").run();
    let phases = phases(&output);
    assert_eq!(names(&phases)[..2], ["Startup", "Drain"]);
    let end_ms = phases[0].end_ms;
    assert_within(
        "max_bw, of the link",
        bw_at(&output, end_ms, RATE),
        0.98,
        1.02,
    );
    // It looks once per round: three begin after the one that grew last.
    let plateau_ms = found_ms(&output, 0, 0.81, RATE);
    let without_growth = rounds(&output, plateau_ms, end_ms);
    assert!((2..=4).contains(&without_growth), "{without_growth} rounds");
}

#[test]
fn startup_exits_on_loss_when_application_limited() {
    let case = || Case {
        flow: APP_LIMITED,
        seconds: 4,
        ..Case::of("bbr2")
    };
    let undisturbed = case().run();
    assert_eq!(names(&phases(&undisturbed)), ["Startup"]);
    // Eight ACKs with loss in a round end it: one packet in four.
    let lost = each_nth_after(&undisturbed, 2_000, 4, 200);
    let phases = phases(&Case { lost, ..case() }.run());
    assert!(phases.len() > 1, "{phases:?}");
    let after = (phases[0].end_ms - 2_000) as f64 / RTT_MS as f64;
    assert_within("end, RTTs after the first loss", after, 1.0, 8.0);
}

#[test]
fn drain_exits_on_inflight() {
    let output = Case::of("bbr2").run();
    let drain = first(&phases(&output), "Drain");
    // The queue is at most 1.89 BDP (cwnd gain 2.89), drained at 1 - 0.34 of the rate.
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
fn probe_up_exits_with_a_queue_of_a_quarter_bdp() {
    let output = Case {
        seconds: 20,
        params: NO_PROBE_RTT,
        ..Case::of("bbr2")
    }
    .run();
    let phases = phases(&output);
    let ups: Vec<_> = phases
        .iter()
        .filter(|phase| phase.name == "ProbeBwUp")
        .collect();
    assert!(ups.len() >= 4, "a probe each 2 to 3 s: {phases:?}");
    for up in ups {
        let inflight = output.samples.inflight[row_at(&output, up.end_ms)];
        assert_within("in flight, BDP", inflight as f64 / BDP as f64, 1.2, 1.5);
    }
}

#[test]
fn probe_down_exits_on_inflight() {
    let output = Case {
        params: NO_PROBE_RTT,
        ..Case::of("bbr2")
    }
    .run();
    let phases = phases(&output);
    let up = index_of(&phases, "ProbeBwUp", 0);
    assert_eq!(
        names(&phases)[up..up + 3],
        ["ProbeBwUp", "ProbeBwDown", "ProbeBwCruise"]
    );
    let down = phases[up + 1];
    assert_eq!(
        output
            .samples
            .bbr_pacing_gain
            .get(row_at(&output, down.end_ms)),
        Some(0.75)
    );
    let inflight = output.samples.inflight[row_at(&output, down.end_ms)];
    assert_within(
        "in flight at last, BDP",
        inflight as f64 / BDP as f64,
        0.9,
        1.1,
    );
}

/// Jitter, because an RTT equal to the lowest puts PROBE_RTT off, and without any the lowest comes again and again.
#[test]
fn probe_rtt_is_entered_each_5_s_and_left_after_200_ms() {
    let output = Case {
        seconds: 32,
        path: "jitter = \"500us\"",
        ..Case::of("bbr2")
    }
    .run();
    let phases = phases(&output);
    let probes: Vec<_> = phases
        .iter()
        .filter(|phase| phase.name == "ProbeRtt")
        .collect();
    assert!((4..=6).contains(&probes.len()), "{phases:?}");
    for probe in &probes {
        assert_within("PROBE_RTT, ms", probe.length_ms() as f64, 190.0, 330.0);
        let inflight = rows_between(&output, probe.start_ms, probe.end_ms)
            .map(|row| output.samples.inflight[row]);
        assert_within(
            "least in flight, BDP",
            least(inflight) as f64 / BDP as f64,
            0.35,
            0.6,
        );
    }
    for pair in probes.windows(2) {
        let apart_s = (pair[1].start_ms - pair[0].start_ms) as f64 / 1e3;
        assert_within("from one to the next, s", apart_s, 5.0, 6.0);
    }
}

/// As in v2alpha; version 3 enters PROBE_RTT whatever the RTT (bbr3.rs).
#[test]
fn probe_rtt_is_put_off_by_an_rtt_equal_to_the_lowest() {
    let output = Case {
        seconds: 32,
        ..Case::of("bbr2")
    }
    .run();
    let phases = phases(&output);
    let probes = phases.iter().filter(|phase| phase.name == "ProbeRtt");
    // The first follows STARTUP, whose queue left no time for the lowest.
    assert!(probes.count() <= 1, "{phases:?}");
}

#[test]
fn probe_rtt_is_skipped_due_to_application_limited_sending() {
    let flow = "workload = \"on-off\"\non = \"1s\"\noff = \"6s\"";
    let names = names(&phases(
        &Case {
            seconds: 40,
            flow,
            ..Case::of("bbr2")
        }
        .run(),
    ));
    assert!(names.contains(&"ProbeBwCruise"));
    assert!(!names.contains(&"ProbeRtt"), "{names:?}");
}

#[test]
fn probe_rtt_during_startup_returns_to_startup() {
    assert_startup_goes_on_after_probe_rtt("bbr2", 14);
}

#[test]
fn a_link_with_aggregation_is_used() {
    let output = Case {
        seconds: 20,
        path: "aggregate = \"10ms\"",
        ..Case::of("bbr2")
    }
    .run();
    assert_within("used of the link", utilisation(&output, RATE), 0.95, 1.0);
    let phases = phases(&output);
    let startup = first(&phases, "Startup");
    // A sample over a round trip has at most one aggregate more than its share, 10 ms of 40.
    assert_within(
        "max_bw, of the link",
        bw_at(&output, startup.end_ms, RATE),
        0.95,
        1.25,
    );
    let cruise = phases[index_of(&phases, "ProbeBwCruise", 3_000)];
    let cwnd = most(
        rows_between(&output, cruise.start_ms, cruise.end_ms)
            .map(|row| output.samples.snd_cwnd[row]),
    );
    assert_within("cwnd in CRUISE, BDP", cwnd as f64 / BDP as f64, 2.2, 4.0);
}

#[test]
fn sub_packet_bdps_are_managed() {
    let output = run(&format!(
        "duration = \"60s\"\nwarmup = \"10s\"\n[path]\nrate = \"100kbit/s\"\nrtt = \"10ms\"\nbuffer = \"20packets\"\n\
         {LARGE_BUFFERS}[[flow]]\nalgorithm = \"bbr2\"\n"
    ));
    assert_within("used of the link", utilisation(&output, 100e3), 0.9, 1.0);
    let from_ms = first(&phases(&output), "ProbeBwCruise").start_ms;
    assert!(from_ms < 20_000, "STARTUP and DRAIN end at {from_ms} ms");
    assert!(
        least(rows_between(&output, from_ms, 60_000).map(|row| output.samples.snd_cwnd[row])) >= 4
    );
}

#[test]
fn a_bandwidth_increased_10x_is_found_within_twelve_probes() {
    // UP ends at a queue of a quarter bdp: each probe finds a quarter more, and what its overshoot shows.
    let output = Case {
        seconds: 60,
        rates: vec![(10, 12_000), (100, i64::MAX)],
        ..Case::of("bbr2")
    }
    .run();
    let found_ms = found_ms(&output, 12_000, 0.9, 100e6);
    let phases = phases(&output);
    let probes = phases
        .iter()
        .filter(|p| p.name == "ProbeBwUp" && (12_000..=found_ms).contains(&p.start_ms))
        .count();
    assert!((1..=12).contains(&probes), "{probes} probes, {found_ms} ms");
}

#[test]
fn a_bandwidth_decreased_10x_is_adapted_to_in_two_cycles() {
    let output = Case {
        seconds: 30,
        rates: vec![(100, 12_000), (10, i64::MAX)],
        buffer: "330packets",
        params: NO_PROBE_RTT,
        ..Case::of("bbr2")
    }
    .run();
    assert_within("before", bw_at(&output, 11_900, 10e6), 9.5, 10.5);
    let phases = phases(&output);
    // The buffer holds 0.4 s: until then ACKs tell of the old rate, too.
    let probe = index_of(&phases, "ProbeBwUp", 12_500);
    let second = index_of(&phases, "ProbeBwUp", phases[probe].end_ms + 1);
    let cruise = phases[index_of(&phases, "ProbeBwCruise", phases[second].end_ms)];
    assert_within(
        "max_bw after two cycles",
        bw_at(&output, cruise.start_ms, 10e6),
        0.95,
        1.1,
    );
}

#[test]
fn token_bucket_policers_are_handled() {
    let output = Case {
        seconds: 20,
        rates: vec![(100, i64::MAX)],
        path: "policer_rate = \"10Mbit/s\"\npolicer_burst = \"50kB\"",
        ..Case::of("bbr2")
    }
    .run();
    assert_within(
        "used of the tokens",
        used(&output, 10_000, 20_000, 10e6),
        0.85,
        1.0,
    );
    assert_within(
        "retransmitted",
        retransmitted(&output, 10_000, 20_000),
        0.0,
        0.03,
    );
}

/// A disturbance amid a CRUISE, where losses cut bw_lo and inflight_lo: what comes back with the undo.
fn window_comes_back(disturbance: impl Fn(i64) -> String, timeouts: i64) {
    let case = |path: &str| {
        Case {
            path,
            params: NO_PROBE_RTT,
            ..Case::of("bbr2")
        }
        .run()
    };
    let at_ms = first(&phases(&case("")), "ProbeBwCruise").start_ms + 700;
    let output = case(&disturbance(at_ms));
    assert_eq!(output.flows.rto_count.get(0), Some(timeouts));
    assert_eq!(output.flows.queue_dropped_pkts.get(0).unwrap(), 0);
    let undone_ms = *events(&output, "undo").last().expect("undone");
    assert_within("undo, ms later", (undone_ms - at_ms) as f64, 1.0, 1_000.0);
    let bw = bw_at(&output, undone_ms + 100, RATE) / bw_at(&output, at_ms, RATE);
    assert!(bw > 0.98, "{bw} of the bandwidth before");
    // Two of the model's BDPs: nothing of a shorter term bounds it.
    let s = &output.samples;
    let row = row_at(&output, undone_ms + 100);
    let bytes_per_us = s.bbr_bw_bits_per_sec.get(row).expect("measured") as f64 / 8e6;
    let bdp = bytes_per_us * s.bbr_min_rtt_us.get(row).expect("measured") as f64 / MSS_BYTES as f64;
    assert_within("cwnd, BDP", s.snd_cwnd[row] as f64 / bdp, 1.95, 4.0);
}

#[test]
fn spurious_fast_recovery_is_undone() {
    window_comes_back(|at_ms| format!("rtt_change = \"{at_ms}ms to 10ms\""), 0);
}

#[test]
fn spurious_rto_recovery_is_undone() {
    window_comes_back(|at_ms| format!("outage = \"{at_ms}ms for 600ms\""), 1);
}
