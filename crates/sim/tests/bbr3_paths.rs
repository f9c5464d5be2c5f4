//! BBR 3 does what the example test cases of draft-ietf-ccwg-bbr ask for: aggregation, BDPs below a packet, rates that
//! change, policers, and losses that were none. A test for each, named by the case.

use crate::common::bbr::{
    BDP, Case, NO_PROBE_RTT, RATE, RTT_MS, bw_at, events, first, found_ms, index_of, least, most,
    phases, retransmitted, rounds, row_at, rows_between, used,
};
use crate::common::{LARGE_BUFFERS, PAYLOAD_SHARE, assert_within, run, utilisation};
use knee_sim::Output;

#[test]
fn startup_finds_the_bandwidth_of_a_link_with_aggregation() {
    let output = Case {
        path: "aggregate = \"10ms\"",
        ..Case::of("bbr3")
    }
    .run();
    let startup = first(&phases(&output), "Startup");
    // A sample over a round trip may hold the packets of 10 ms more.
    assert_within(
        "max_bw, of the link",
        bw_at(&output, startup.end_ms, RATE),
        0.95,
        1.0 + 10.0 / RTT_MS as f64,
    );
    let cwnd =
        most(rows_between(&output, 0, startup.end_ms).map(|row| output.samples.snd_cwnd[row]));
    assert_within("cwnd, BDP", cwnd as f64 / BDP as f64, 2.0, 4.0);
}

#[test]
fn cruise_uses_the_bandwidth_of_a_link_with_aggregation() {
    let case = |path| {
        Case {
            seconds: 20,
            path,
            ..Case::of("bbr3")
        }
        .run()
    };
    let cwnd_in_cruise = |output: &Output| {
        let phases = phases(output);
        let cruise = phases[index_of(&phases, "ProbeBwCruise", 3_000)];
        output.samples.snd_cwnd[row_at(output, cruise.end_ms)]
    };
    let (smooth, lumps) = (case(""), case("aggregate = \"10ms\""));
    assert_within("used of the link", utilisation(&lumps, RATE), 0.95, 1.0);
    // 10 ms of the link's packets come at once.
    let more = cwnd_in_cruise(&lumps) - cwnd_in_cruise(&smooth);
    let in_10_ms = BDP * 10 / RTT_MS;
    assert!(more >= in_10_ms, "{more} segments more");
}

#[test]
fn sub_packet_bdps_are_managed() {
    // 125 bytes.
    let output = run(&format!(
        "duration = \"60s\"\nwarmup = \"10s\"\n[path]\nrate = \"100kbit/s\"\nrtt = \"10ms\"\nbuffer = \"20packets\"\n\
         {LARGE_BUFFERS}[[flow]]\nalgorithm = \"bbr3\"\n"
    ));
    assert_within("used of the link", utilisation(&output, 100e3), 0.9, 1.0);
    let s = &output.samples;
    // The first rate is a guess of 1 ms for the RTT, and falls when STARTUP is over.
    let from_ms = first(&phases(&output), "ProbeBwCruise").start_ms;
    assert!(from_ms < 20_000, "STARTUP and DRAIN end at {from_ms} ms");
    for row in rows_between(&output, from_ms, 60_000) {
        assert!(s.snd_cwnd[row] >= 4, "cwnd {}", s.snd_cwnd[row]);
        let pacing = s.pacing_rate_bits_per_sec.get(row).expect("paced") as f64;
        let pacing = pacing / (100e3 * PAYLOAD_SHARE);
        assert!(
            (0.85..=1.4).contains(&pacing),
            "paced at {pacing} of the link"
        );
    }
}

#[test]
fn a_bandwidth_increased_10x_is_found_in_rounds_of_log_bdp() {
    // With a buffer that never overflows, and with one that did, so that inflight_longterm is set.
    for buffer in ["1000packets", "20packets"] {
        let output = Case {
            seconds: 30,
            rates: vec![(10, 12_000), (100, i64::MAX)],
            buffer,
            ..Case::of("bbr3")
        }
        .run();
        let found_ms = found_ms(&output, 12_000, 0.9, 100e6);
        let phases = phases(&output);
        let up = phases
            .iter()
            .rfind(|phase| phase.name == "ProbeBwUp" && phase.start_ms <= found_ms);
        let in_rounds = rounds(&output, up.expect("by a probe").start_ms, found_ms);
        // log2 of the new BDP, 333 segments, is 8.4. A segment per round would take 300.
        assert!(
            (4..=20).contains(&in_rounds),
            "{buffer}: {in_rounds} rounds"
        );
        assert!(found_ms < 15_000, "{buffer}: {found_ms} ms: the next probe");
    }
}

#[test]
fn a_bandwidth_decreased_10x_is_adapted_to_in_two_cycles() {
    let output = Case {
        seconds: 30,
        rates: vec![(100, 12_000), (10, i64::MAX)],
        buffer: "330packets",
        params: NO_PROBE_RTT,
        ..Case::of("bbr3")
    }
    .run();
    let bw = |at_ms| bw_at(&output, at_ms, 10e6);
    assert_within("before", bw(11_900), 9.5, 10.5);
    let s = &output.samples;
    let lowest = least(
        rows_between(&output, 12_000, 16_000).filter_map(|row| s.bbr_bw_bits_per_sec.get(row)),
    );
    assert_within(
        "bw_shortterm within 4 s",
        lowest as f64 / (10e6 * PAYLOAD_SHARE),
        1.0,
        6.0,
    );
    let phases = phases(&output);
    // The buffer holds 0.4 s: until then ACKs tell of the old rate, too.
    let probe = index_of(&phases, "ProbeBwUp", 12_500);
    let second = index_of(&phases, "ProbeBwUp", phases[probe].end_ms + 1);
    // The cycle ends a round after the probe.
    let cruise = phases[index_of(&phases, "ProbeBwCruise", phases[second].end_ms)];
    assert_within("max_bw after two cycles", bw(cruise.start_ms), 0.95, 1.1);
}

/// When it probes is drawn, and so is how often: the mean of several repetitions counts.
#[test]
fn token_bucket_policers_are_handled() {
    const REPETITIONS: u32 = 5;
    let policed = |algorithm| {
        let case = Case {
            seconds: 20,
            rates: vec![(100, i64::MAX)],
            path: "policer_rate = \"10Mbit/s\"\npolicer_burst = \"50kB\"",
            ..Case::of(algorithm)
        };
        (0..REPETITIONS).map(|rep| case.repetition(rep)).collect()
    };
    let (v3, v1): (Vec<_>, Vec<_>) = (policed("bbr3"), policed("bbr1"));
    for output in &v3 {
        assert_within(
            "used of the tokens",
            used(output, 10_000, 20_000, 10e6),
            0.9,
            1.0,
        );
    }
    let lost = |outputs: &[Output]| {
        let shares = outputs.iter().map(|o| retransmitted(o, 10_000, 20_000));
        shares.sum::<f64>() / f64::from(REPETITIONS)
    };
    assert_within("retransmitted", lost(&v3), 0.0, 0.02);
    assert!(lost(&v3) < lost(&v1), "bbr1 {}", lost(&v1));
}

/// A first PROBE_UP that something disturbs 60 ms after it began; when that is.
fn disturbed_up(path: impl Fn(i64) -> String) -> (Output, i64) {
    let case = |path: &str| {
        Case {
            path,
            params: NO_PROBE_RTT,
            ..Case::of("bbr3")
        }
        .run()
    };
    let at_ms = first(&phases(&case("")), "ProbeBwUp").start_ms + 60;
    (case(&path(at_ms)), at_ms)
}

/// It probes again within the time, with the window from before.
fn is_back_in_its_probe(output: &Output, at_ms: i64, undone_ms: i64) {
    let phases = phases(output);
    assert!(
        phases
            .iter()
            .any(|p| p.name == "ProbeBwDown" && p.end_ms > at_ms)
    );
    let up = phases[index_of(&phases, "ProbeBwUp", undone_ms)];
    assert_within(
        "next UP, ms after undo",
        (up.start_ms - undone_ms) as f64,
        0.0,
        // REFILL takes a round, of two RTTs while the queue holds a BDP.
        120.0,
    );
    let cwnd = |at_ms| output.samples.snd_cwnd[row_at(output, at_ms)] as f64;
    assert_within(
        "cwnd over the one before",
        cwnd(up.end_ms) / cwnd(at_ms),
        0.9,
        1.4,
    );
    let before = bw_at(output, at_ms, RATE);
    assert_within(
        "bw over the one before",
        bw_at(output, up.end_ms, RATE) / before,
        1.0,
        1.6,
    );
}

#[test]
fn spurious_fast_recovery_is_undone() {
    // A shorter route: its first packets overtake the last of the old one.
    let (output, at_ms) = disturbed_up(|at_ms| format!("rtt_change = \"{at_ms}ms to 10ms\""));
    assert_eq!(output.flows.rto_count.get(0), Some(0));
    assert_eq!(output.flows.queue_dropped_pkts.get(0).unwrap(), 0);
    let undone_ms = *events(&output, "undo").last().expect("undone");
    assert_within("undo, ms later", (undone_ms - at_ms) as f64, 1.0, 80.0);
    is_back_in_its_probe(&output, at_ms, undone_ms);
}

#[test]
fn spurious_rto_recovery_is_undone() {
    // Everything waits, and arrives after the timeout.
    let (output, at_ms) = disturbed_up(|at_ms| format!("outage = \"{at_ms}ms for 900ms\""));
    assert_eq!(output.flows.rto_count.get(0), Some(1));
    assert_eq!(output.flows.queue_dropped_pkts.get(0).unwrap(), 0);
    let undone_ms = *events(&output, "undo").last().expect("undone");
    assert_within("undo, ms later", (undone_ms - at_ms) as f64, 900.0, 1000.0);
    is_back_in_its_probe(&output, at_ms, undone_ms);
}
