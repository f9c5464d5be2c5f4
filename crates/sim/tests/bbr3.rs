//! BBR 3 does what the example test cases of draft-ietf-ccwg-bbr ask for: a test for each, named by the case.
//! The cases of one phase after the other are here, those of paths in `bbr3_paths.rs`.

use crate::common::assert_within;
use crate::common::bbr::{
    APP_LIMITED, BDP, Case, NO_PROBE_RTT, RATE, RTT_MS, assert_startup_goes_on_after_probe_rtt,
    bw_at, each_nth_after, first, found_ms, index_of, least, most, names, phases, rounds, row_at,
    rows_between,
};
use crate::common::utilisation;
use knee_sim::Output;

fn gain_in(output: &Output, at_ms: i64) -> f64 {
    output
        .samples
        .bbr_pacing_gain
        .get(row_at(output, at_ms))
        .expect("it has a gain")
}

#[test]
fn startup_exits_on_a_bandwidth_plateau() {
    let output = Case::of("bbr3").run();
    let phases = phases(&output);
    assert_eq!(names(&phases)[..2], ["Startup", "Drain"]);
    let end_ms = first(&phases, "Startup").end_ms;
    assert_within(
        "max_bw, of the link",
        bw_at(&output, end_ms, RATE),
        0.98,
        1.02,
    );
    // No round from here on can grow by 25 %. Three begin: two whole ones, and what was left of the one under way.
    let plateau_ms = found_ms(&output, 0, 0.81, RATE);
    let without_growth = rounds(&output, plateau_ms, end_ms);
    assert!((2..=3).contains(&without_growth), "{without_growth} rounds");
    assert_eq!(output.flows.total_retrans[0], 0);
}

#[test]
fn startup_exits_on_loss_in_a_shallow_buffer() {
    let output = Case {
        buffer: "0.1bdp",
        ..Case::of("bbr3")
    }
    .run();
    let end_ms = first(&phases(&output), "Startup").end_ms;
    assert!(output.flows.total_retrans[0] > 6, "the buffer overflowed");
    assert_within("end, RTTs", end_ms as f64 / RTT_MS as f64, 4.0, 9.0);
}

#[test]
fn startup_exits_on_loss_when_application_limited() {
    let case = || Case {
        flow: APP_LIMITED,
        seconds: 4,
        ..Case::of("bbr3")
    };
    let undisturbed = case().run();
    assert_eq!(names(&phases(&undisturbed)), ["Startup"]);
    // One in eight, over more than two rounds.
    let lost = each_nth_after(&undisturbed, 2_000, 8, 200);
    let output = Case { lost, ..case() }.run();
    // DRAIN ends with the ACK that begins it: less than a BDP is in flight.
    let phases = phases(&output);
    assert_eq!(phases[0].name, "Startup");
    assert!(phases[1].name.starts_with("ProbeBw"), "{phases:?}");
    let end_ms = phases[0].end_ms;
    assert_within(
        "end, RTTs after the first loss",
        (end_ms - 2_000) as f64 / RTT_MS as f64,
        1.0,
        6.0,
    );
    assert!(
        rows_between(&output, 1_500, end_ms)
            .all(|row| output.samples.delivery_rate_app_limited[row])
    );
}

#[test]
fn startup_never_exits_when_application_limited_without_loss() {
    let output = Case {
        flow: APP_LIMITED,
        seconds: 30,
        params: NO_PROBE_RTT,
        ..Case::of("bbr3")
    }
    .run();
    assert_eq!(names(&phases(&output)), ["Startup"]);
    assert_within("used of the link", utilisation(&output, RATE), 0.1, 0.5);
}

#[test]
fn drain_exits_on_inflight() {
    let output = Case::of("bbr3").run();
    let phases = phases(&output);
    let drain = first(&phases, "Drain");
    assert_within("pacing gain", gain_in(&output, drain.end_ms), 0.34, 0.35);
    // The queue is at most one BDP (cwnd gain 2), drained at 1 - 0.34 of the rate.
    assert_within(
        "DRAIN, RTTs",
        drain.length_ms() as f64 / RTT_MS as f64,
        0.2,
        3.0,
    );
    let s = &output.samples;
    let inflight = |at_ms| s.inflight[row_at(&output, at_ms)] as f64 / BDP as f64;
    assert_within(
        "in flight in DRAIN, BDP",
        inflight(drain.start_ms),
        1.3,
        2.4,
    );
    assert_within(
        "in flight after DRAIN, BDP",
        inflight(drain.end_ms + 1),
        0.5,
        1.1,
    );
}

#[test]
fn drain_exits_on_time() {
    let end_ms = first(&phases(&Case::of("bbr3").run()), "Startup").end_ms;
    // At 0.34 of a rate that was three times as high the queue does not fall.
    let slower = |params| {
        let output = Case {
            rates: vec![(50, end_ms), (15, i64::MAX)],
            params,
            ..Case::of("bbr3")
        }
        .run();
        let drain = first(&phases(&output), "Drain");
        (rounds(&output, drain.start_ms, drain.end_ms), output, drain)
    };
    let (bounded, output, drain) = slower(&[]);
    assert!((3..=4).contains(&bounded), "{bounded} rounds");
    let inflight = output.samples.inflight[row_at(&output, drain.end_ms)];
    assert!(inflight > BDP, "{inflight} in flight");
    let (unbounded, ..) = slower(&[("drain_rounds", 0)]);
    assert!(unbounded > 4, "{unbounded} rounds without the bound");
}

#[test]
fn probe_up_exits_on_a_bandwidth_plateau() {
    let output = Case {
        seconds: 30,
        ..Case::of("bbr3")
    }
    .run();
    let phases = phases(&output);
    let ups: Vec<usize> = (0..phases.len() - 1)
        .filter(|&i| phases[i].name == "ProbeBwUp")
        .collect();
    assert!(ups.len() >= 6, "a probe each 2 to 3 s: {phases:?}");
    for &up in &ups {
        let without_growth = rounds(&output, phases[up].start_ms, phases[up].end_ms);
        // As in STARTUP: three begin.
        assert!((2..=3).contains(&without_growth), "{without_growth} rounds");
        assert_eq!(phases[up + 1].name, "ProbeBwDown");
    }
    assert_eq!(output.flows.total_retrans[0], 0);
}

/// A flow that fills 10 Mbit/s. The path becomes a hundred times as fast when PROBE_UP begins: from there on the
/// application is the limit.
fn application_limited_up(seconds: u32, lost: Vec<i64>) -> (Output, i64) {
    let case = |rates, seconds, lost| {
        Case {
            rates,
            seconds,
            lost,
            flow: "workload = \"request-response\"\nresponse = \"100kB\"\ndepth = 4",
            params: NO_PROBE_RTT,
            ..Case::of("bbr3")
        }
        .run()
    };
    // The trace's mean differs, but nothing here rests on it.
    let before = case(vec![(10, 5_000), (10, i64::MAX)], seconds, Vec::new());
    let up_ms = first(&phases(&before), "ProbeBwUp").start_ms;
    (
        case(vec![(10, up_ms), (1000, i64::MAX)], seconds, lost),
        up_ms,
    )
}

#[test]
fn probe_up_never_exits_when_application_limited_without_loss() {
    let (output, up_ms) = application_limited_up(20, Vec::new());
    let phases = phases(&output);
    let up = phases[index_of(&phases, "ProbeBwUp", up_ms - 1)];
    assert_eq!(up.end_ms, phases[phases.len() - 1].end_ms, "{phases:?}");
    let limited = &output.samples.delivery_rate_app_limited;
    assert!(rows_between(&output, up_ms + 2_000, 20_000).all(|row| limited[row]));
}

#[test]
fn probe_up_exits_on_loss_when_application_limited() {
    let (undisturbed, up_ms) = application_limited_up(8, Vec::new());
    let at_ms = up_ms + 2_000;
    let (output, _) = application_limited_up(8, each_nth_after(&undisturbed, at_ms, 8, 300));
    let phases = phases(&output);
    let up = index_of(&phases, "ProbeBwUp", up_ms - 1);
    let end_ms = phases[up].end_ms;
    assert_within(
        "end, RTTs after the first loss",
        (end_ms - at_ms) as f64 / RTT_MS as f64,
        0.5,
        4.0,
    );
    // DOWN may be over at once: the application leaves the path empty.
    assert!(["ProbeBwDown", "ProbeBwCruise"].contains(&phases[up + 1].name));
    // A flight that the application kept small shows no limit: the window does not shrink to it.
    let s = &output.samples;
    let flight = most(rows_between(&output, at_ms - 1_000, at_ms).map(|row| s.inflight[row]));
    let next = phases[index_of(&phases, "ProbeBwUp", end_ms)];
    let cwnd = s.snd_cwnd[row_at(&output, next.end_ms)];
    assert!(
        cwnd > flight,
        "cwnd {cwnd}, {flight} in flight before the loss"
    );
}

#[test]
fn probe_down_exits_on_inflight() {
    let output = Case {
        seconds: 30,
        ..Case::of("bbr3")
    }
    .run();
    let phases = phases(&output);
    let up = index_of(&phases, "ProbeBwUp", 0);
    let down = phases[up + 1];
    assert_eq!(
        names(&phases)[up..up + 3],
        ["ProbeBwUp", "ProbeBwDown", "ProbeBwCruise"]
    );
    assert_within("pacing gain", gain_in(&output, down.end_ms), 0.9, 0.91);
    let inflight = |at_ms| output.samples.inflight[row_at(&output, at_ms)] as f64 / BDP as f64;
    assert_within("in flight at first, BDP", inflight(down.start_ms), 1.1, 2.5);
    assert_within("in flight at last, BDP", inflight(down.end_ms), 0.9, 1.1);
}

#[test]
fn probe_down_exits_after_max_time() {
    let case = |rates| {
        Case {
            rates,
            params: NO_PROBE_RTT,
            ..Case::of("bbr3")
        }
        .run()
    };
    let up_ms = first(
        &phases(&case(vec![(50, 5_000), (50, i64::MAX)])),
        "ProbeBwUp",
    )
    .end_ms;
    // At 0.90 of the old rate the queue stays on a path that has 0.86 of it.
    let output = case(vec![(50, up_ms), (43, i64::MAX)]);
    let phases = phases(&output);
    let down = index_of(&phases, "ProbeBwDown", up_ms - 1);
    assert_eq!(
        names(&phases)[down..down + 2],
        ["ProbeBwDown", "ProbeBwRefill"]
    );
    assert_within("DOWN, s", phases[down].length_ms() as f64 / 1e3, 1.9, 3.1);
}

#[test]
fn probe_rtt_is_entered_each_5_s_and_left_after_200_ms() {
    let output = Case {
        seconds: 32,
        ..Case::of("bbr3")
    }
    .run();
    let phases = phases(&output);
    let probes: Vec<usize> = (0..phases.len() - 1)
        .filter(|&i| phases[i].name == "ProbeRtt")
        .collect();
    assert!((4..=6).contains(&probes.len()), "{phases:?}");
    for &probe in &probes {
        assert_within(
            "PROBE_RTT, ms",
            phases[probe].length_ms() as f64,
            190.0,
            330.0,
        );
        assert_eq!(phases[probe + 1].name, "ProbeBwCruise");
    }
    for pair in probes.windows(2) {
        let apart_ms = phases[pair[1]].start_ms - phases[pair[0]].start_ms;
        assert_within("from one to the next, s", apart_ms as f64 / 1e3, 5.0, 6.0);
    }
    let probe = phases[probes[0]];
    let s = &output.samples;
    assert_eq!(
        s.bbr_cwnd_gain.get(row_at(&output, probe.end_ms)),
        Some(1.0)
    );
    let least =
        least(rows_between(&output, probe.start_ms, probe.end_ms).map(|row| s.inflight[row]));
    assert_within("least in flight, BDP", least as f64 / BDP as f64, 0.35, 0.6);
}

#[test]
fn probe_rtt_is_skipped_due_to_application_limited_sending() {
    let output = Case {
        seconds: 40,
        flow: "workload = \"on-off\"\non = \"1s\"\noff = \"6s\"",
        ..Case::of("bbr3")
    }
    .run();
    let names = names(&phases(&output));
    assert!(names.contains(&"ProbeBwCruise"));
    assert!(
        !names.contains(&"ProbeRtt"),
        "a pause has shown the empty path: {names:?}"
    );
}

#[test]
fn probe_rtt_during_startup_returns_to_startup() {
    assert_startup_goes_on_after_probe_rtt("bbr3", 14);
}

#[test]
fn loss_during_probe_up_lowers_an_inflight_longterm_that_is_set() {
    let case = |lost: Vec<i64>| {
        Case {
            lost,
            params: NO_PROBE_RTT,
            ..Case::of("bbr3")
        }
        .run()
    };
    let base = case(Vec::new());
    let first_ms = first(&phases(&base), "ProbeBwUp").start_ms;
    let mut lost = each_nth_after(&base, first_ms + 50, 12, 150);
    let once = case(lost.clone());
    let of_once = phases(&once);
    let second = of_once[index_of(&of_once, "ProbeBwUp", first_ms + 500)];
    lost.extend(each_nth_after(&once, second.start_ms + 20, 12, 150));
    let twice = case(lost);
    let phases = phases(&twice);
    let up = index_of(&phases, "ProbeBwUp", first_ms + 500);
    assert_eq!(phases[up + 1].name, "ProbeBwDown");
    assert_within(
        "UP, RTTs",
        phases[up].length_ms() as f64 / RTT_MS as f64,
        0.5,
        2.0,
    );
    // While cruising the window is what is left of inflight_longterm: 0.85 of it.
    let cruising = |from_ms| {
        let cruise = phases[index_of(&phases, "ProbeBwCruise", from_ms)];
        twice.samples.snd_cwnd[row_at(&twice, cruise.end_ms)] as f64
    };
    let change = cruising(second.start_ms) / cruising(first_ms);
    assert_within("inflight_longterm over the one before", change, 0.7, 0.95);
}

#[test]
fn application_limited_sending_during_probe_refill_leaves_max_bw() {
    // One write() of so many bytes at the start, and again each `every_ms`.
    let paused = |bytes: i64, every_ms: i64| {
        Case {
            params: NO_PROBE_RTT,
            flow: &format!(
                "workload = \"on-off\"\non = \"1ms\"\noff = \"{every_ms}ms\"\nwrite = \"{bytes}B\""
            ),
            ..Case::of("bbr3")
        }
        .run()
    };
    let base = paused(1 << 30, 60_000);
    let refill = first(&phases(&base), "ProbeBwRefill");
    let bytes = base
        .samples
        .bytes_sent
        .get(row_at(&base, refill.start_ms + 5))
        .unwrap();
    let output = paused(bytes, refill.start_ms + 300);
    let phases = phases(&output);
    let at = index_of(&phases, "ProbeBwRefill", 0);
    assert_eq!(phases[at].start_ms, refill.start_ms);
    assert_eq!(phases[at + 1].name, "ProbeBwUp");
    let s = &output.samples;
    let idle = least(
        rows_between(&output, refill.start_ms, refill.end_ms + 60).map(|row| s.inflight[row]),
    );
    assert_eq!(idle, 0, "the pause empties the path");
    let bw = |at_ms| bw_at(&output, at_ms, RATE);
    for row in rows_between(&output, refill.start_ms, refill.end_ms + 1_000) {
        assert_within("bw", bw(s.t_ns[row] / 1_000_000), 0.98, 1.02);
    }
    let next = index_of(&phases, "ProbeBwRefill", refill.end_ms + 1_000);
    assert_eq!(phases[next + 1].name, "ProbeBwUp");
}
