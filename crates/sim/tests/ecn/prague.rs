//! Prague.

use super::{ECT_0, NOT_ECT, assert_exact, marked_path};
use crate::common::{assert_within, run, run_captured, utilisation};

const ECT_1: u8 = 1;

/// A queue that marks what waited longer than a millisecond, as an L4S queue does.
fn with_a_millisecond(scenario: &str) -> String {
    scenario.replace(
        "queue = \"step\"",
        "queue = \"step\"\nstep.ce_threshold = \"1ms\"",
    )
}

/// Source: RFC 9331, section 4.1: ECT(1); RFC 9768 for the feedback it needs; without it, no ECN at all.
#[test]
fn prague_sends_ect_1_where_the_feedback_is_accurate() {
    let output = run_captured(&marked_path("prague", "", "tcp_ecn = 5"));
    assert!(output.capture.iter().all(|p| !p.outbound || p.ecn == ECT_1));
    let acks = output.capture.iter().filter(|p| !p.outbound && !p.syn);
    assert!(acks.clone().all(|p| p.ecn == ECT_0));
    let output = run_captured(&marked_path("prague", "", "tcp_ecn = 1"));
    assert!(output.capture.iter().all(|p| p.syn || p.ecn == NOT_ECT));
}

/// Source: draft-briscoe-iccrg-prague-congestion-control, section 1: full utilisation, queue about that of the AQM.
#[test]
fn prague_fills_the_link_with_a_millisecond_of_queue() {
    for rtt in ["2ms", "10ms"] {
        let scenario = marked_path("prague", "", "tcp_ecn = 3");
        let scenario = scenario.replace("10ms", rtt).replace("4bdp", "1MiB");
        let output = run(&with_a_millisecond(&scenario.replace("6s", "20s")));
        assert_eq!(output.flows.total_retrans[0], 0);
        assert_within(
            &format!("Prague's share of the link at {rtt}"),
            utilisation(&output, 1e8),
            0.95,
            1.0,
        );
        assert_within(
            &format!("99th percentile of the queue at {rtt}, us"),
            output.flows.queue_delay_us_p99.get(0).unwrap(),
            0.0,
            1_500.0,
        );
        assert_exact(rtt, &output);
    }
}

/// Goodput of a flow of 20 ms over that of one of 5 ms.
fn long_over_short(algorithm: &str) -> f64 {
    let output = run(&with_a_millisecond(&format!(
        r#"
duration = "120s"
warmup = "40s"
[path]
rate = "100Mbit/s"
rtt = "5ms"
buffer = "1MiB"
queue = "step"
[receiver]
algorithm = "dctcp"
tcp_ecn = 3
[[flow]]
algorithm = "{algorithm}"
[[flow]]
algorithm = "{algorithm}"
rtt = "20ms"
"#
    )));
    let goodput = &output.flows.goodput_bits_per_sec;
    println!("{algorithm} {goodput:?}");
    goodput[1] / goodput[0]
}

/// Source: draft-briscoe-iccrg-prague-congestion-control, section 2.4.4: RTTs below 25 ms count as such. Behind a
/// threshold, which marks all or nothing for a round, shares come nearer and not equal.
#[test]
fn prague_gives_a_long_rtt_at_least_twice_the_share_that_dctcp_does() {
    let (dctcp, prague) = (long_over_short("dctcp"), long_over_short("prague"));
    assert_within("DCTCP, 20 ms over 5 ms", dctcp, 0.18, 0.28);
    assert_within("Prague's share over DCTCP's", prague / dctcp, 2.0, 5.0);
    assert_within("Prague, 20 ms over 5 ms", prague, 0.6, 1.0);
}

/// Source: RFC 9332, sections 1 and 2.1: about equal rates, a queue of a millisecond for the one, the AQM's target
/// of 15 ms for the other.
#[test]
fn prague_shares_a_coupled_queue_with_cubic_and_hardly_waits() {
    for rate in ["40Mbit/s", "120Mbit/s"] {
        let output = run(&format!(
            r#"
duration = "100s"
warmup = "20s"
[path]
rate = "{rate}"
rtt = "10ms"
buffer = "1000packets"
queue = "dualpi2"
[receiver]
tcp_ecn = 3
[[flow]]
algorithm = "prague"
[[flow]]
algorithm = "cubic"
"#
        ));
        let flows = &output.flows;
        let goodput = &flows.goodput_bits_per_sec;
        // By seed Prague has 55 to 60 % of 40 Mbit/s and 55 to 62 % of 120 Mbit/s.
        let share = goodput[0] / (goodput[0] + goodput[1]);
        assert_within(&format!("Prague's share of {rate}"), share, 0.5, 0.67);
        let waited = |flow: usize| flows.queue_delay_us_mean.get(flow).unwrap();
        assert_within("Prague's mean wait, us", waited(0), 0.0, 1_000.0);
        let p99_us = flows.queue_delay_us_p99.get(0).unwrap();
        assert_within("99th percentile of Prague's wait, us", p99_us, 0.0, 2_000.0);
        assert_within("CUBIC's mean wait, us", waited(1), 10_000.0, 20_000.0);
        assert_eq!(flows.total_retrans[0], 0, "Prague lost packets");
    }
}
