//! What `samples` tell of an algorithm's own view of the path.

use crate::common::{PAYLOAD_SHARE, run};

fn alone(algorithm: &str) -> knee_sim::Output {
    run(&format!(
        r#"
duration = "12s"
[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "8bdp"
[[flow]]
algorithm = "{algorithm}"
"#
    ))
}

#[test]
fn bbr1_passes_through_its_phases_in_their_order() {
    let phases = alone("bbr1").samples.cc_phase;
    let mut phases: Vec<_> = phases.iter().collect();
    phases.dedup();
    // Empty during the handshake.
    assert_eq!(
        phases
            .into_iter()
            .filter(|p| !p.is_empty())
            .collect::<Vec<_>>(),
        ["Startup", "Drain", "ProbeBw", "ProbeRtt", "ProbeBw"]
    );
}

#[test]
fn bbr1_tells_the_rate_and_the_rtt_of_the_path() {
    let samples = alone("bbr1").samples;
    let mut seen = 0;
    for row in 0..samples.t_ns.len() {
        if samples.cc_phase[row] != "ProbeBw" {
            continue;
        }
        seen += 1;
        let bw = samples.bbr_bw_bits_per_sec.get(row).unwrap() as f64 / (10e6 * PAYLOAD_SHARE);
        assert!((0.95..1.05).contains(&bw), "row {row}: {bw} of the link");
        let min_rtt_us = samples.bbr_min_rtt_us.get(row).unwrap();
        assert!(
            (40_000..45_000).contains(&min_rtt_us),
            "row {row}: {min_rtt_us} us"
        );
        assert!([0.75, 1.0, 1.25].contains(&samples.bbr_pacing_gain.get(row).unwrap()));
        assert_eq!(samples.bbr_cwnd_gain.get(row), Some(2.0));
    }
    assert!(seen > 100);
}

#[test]
fn an_algorithm_without_a_model_leaves_the_columns_empty() {
    let samples = alone("cubic").samples;
    assert!(!samples.t_ns.is_empty());
    assert!(samples.cc_phase.iter().all(|phase| phase.is_empty()));
    assert!(
        samples
            .bbr_bw_bits_per_sec
            .iter()
            .all(|value| value.is_none())
    );
    assert!(samples.bbr_min_rtt_us.iter().all(|value| value.is_none()));
    assert!(samples.bbr_pacing_gain.iter().all(|value| value.is_none()));
    assert!(samples.bbr_cwnd_gain.iter().all(|value| value.is_none()));
}

/// Linux takes the ACK of one segment below the MSS, sent with nothing else in flight, for a delayed one
/// (rs->is_ack_delayed), and BBR does not let such a sample replace a shorter RTT, however old that is.
#[test]
fn acks_of_single_small_segments_do_not_lengthen_the_rtt_of_bbr1() {
    for (response_bytes, expected_ms) in [(500, 20), (1_448, 100)] {
        let samples = run(&format!(
            r#"
duration = "14s"
[path]
rate = "10Mbit/s"
rtt = "20ms"
rtt_change = "1s to 100ms"
buffer = "8bdp"
[[flow]]
algorithm = "bbr1"
workload = "request-response"
request = "500B"
response = "{response_bytes}B"
"#
        ))
        .samples;
        let last = samples.t_ns.len() - 1;
        let min_rtt_us = samples.bbr_min_rtt_us.get(last).expect("BBR tells it");
        assert_eq!(
            min_rtt_us / 10_000 * 10,
            expected_ms,
            "responses of {response_bytes} bytes: {min_rtt_us} us"
        );
    }
}
