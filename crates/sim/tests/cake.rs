//! cake between senders that react: what its own tests claim for packets that
//! do not holds for TCP too, and the engine asks its shaper when it says.

use crate::common::{PAYLOAD_SHARE, assert_within, run};

/// Goodput of each of `count` flows, besides that of one flow of another table.
fn goodputs(path: &str, hosts: &str, count: u32) -> Vec<f64> {
    let output = run(&format!(
        r#"
duration = "30s"
warmup = "5s"
[path]
rate = "40Mbit/s"
rtt = "20ms"
buffer = "4bdp"
{path}
{hosts}
[[flow]]
algorithm = "cubic"
[[flow]]
algorithm = "cubic"
name = "more"
count = {count}
"#
    ));
    output.flows.goodput_bits_per_sec.clone()
}

/// Of three flows that two hosts have in turn, the goodput of the one with a host for itself over that of the other two.
fn alone_over_together(path: &str, hosts: &str) -> f64 {
    let goodputs = goodputs(path, hosts, 2);
    goodputs[1] / (goodputs[0] + goodputs[2])
}

#[test]
fn a_host_with_one_flow_gets_as_much_from_cake_as_one_with_two() {
    let two_senders = "[sender]\nhosts = 2";
    let two_receivers = "[receiver]\nhosts = 2";
    for (path, hosts, expected) in [
        ("", two_senders, 1.0),
        ("cake.bandwidth = \"30Mbit/s\"", two_senders, 1.0),
        ("cake.isolation = \"dual-srchost\"", two_senders, 1.0),
        ("cake.isolation = \"dual-dsthost\"", two_senders, 0.5),
        ("cake.isolation = \"flows\"", two_senders, 0.5),
        ("", two_receivers, 1.0),
        ("cake.isolation = \"dual-srchost\"", two_receivers, 0.5),
        ("cake.isolation = \"dual-dsthost\"", two_receivers, 1.0),
    ] {
        let got = alone_over_together(&format!("queue = \"cake\"\n{path}"), hosts);
        assert_within(&format!("{path} {hosts}"), got / expected, 0.93, 1.05);
    }
}

#[test]
fn a_flow_table_is_no_host_to_cake() {
    // Each connection has hosts of its own unless the scenario says how many there are.
    let goodputs = goodputs(r#"queue = "cake""#, "", 10);
    let one_over_ten = goodputs[0] / goodputs[1..].iter().sum::<f64>();
    assert_within("one flow over ten", one_over_ten, 0.09, 0.11);
}

#[test]
fn cakes_shaper_is_the_bottleneck_below_the_links_rate() {
    let output = run(r#"
duration = "20s"
warmup = "5s"
[path]
rate = "100Mbit/s"
rtt = "20ms"
buffer = "unlimited"
queue = "cake"
cake.bandwidth = "20Mbit/s"
[[flow]]
algorithm = "cubic"
count = 4
"#);
    let goodput: f64 = output.flows.goodput_bits_per_sec.iter().sum();
    // What was lost before the steady part may reach the reader in it.
    let used = goodput / (20e6 * PAYLOAD_SHARE);
    assert_within("goodput over the shaper's", used, 0.97, 1.01);
    let wait_us = output
        .flows
        .queue_delay_us_p50
        .get(0)
        .expect("packets waited");
    assert_within("median wait, ms", wait_us / 1e3, 1.0, 15.0);
}

#[test]
fn cakes_ack_filter_lets_answers_through_that_acks_would_fill_the_link_for() {
    let acks = |filter: u32| {
        // The server's ACKs of large requests share the bottleneck with its answers.
        let output = run(&format!(
            r#"
duration = "20s"
[path]
rate = "200kbit/s"
rtt = "20ms"
buffer = "unlimited"
queue = "cake"
cake.ack_filter = {filter}
[[flow]]
algorithm = "cubic"
workload = "request-response"
request = "2MB"
response = "1B"
"#
        ));
        let dropped = output.queue.dropped_pkts.iter().max().copied();
        (output.flows.requests.get(0).unwrap(), dropped.unwrap())
    };
    let (answers, dropped) = acks(0);
    let (answers_filtered, dropped_filtered) = acks(1);
    assert!(
        dropped_filtered > dropped,
        "{dropped_filtered} and {dropped}"
    );
    assert!(
        answers_filtered > answers,
        "{answers_filtered} and {answers}"
    );
}
