//! cake between senders that react: what its own tests claim for packets that
//! do not holds for TCP too, and the engine asks its shaper when it says.

mod common;

use common::{PAYLOAD_SHARE, assert_within, run};

/// Goodput of one flow of the first host over that of the second's ten flows.
fn one_over_ten(queue: &str) -> f64 {
    let output = run(&format!(
        r#"
duration = "30s"
warmup = "5s"
[path]
rate = "40Mbit/s"
rtt = "20ms"
buffer = "4bdp"
{queue}
[[flow]]
algorithm = "cubic"
[[flow]]
algorithm = "cubic"
name = "many"
count = 10
"#
    ));
    let goodput = &output.flows.goodput_bits_per_sec;
    goodput[0] / goodput[1..].iter().sum::<f64>()
}

#[test]
fn a_host_with_one_flow_gets_as_much_from_cake_as_one_with_ten() {
    let hosts = one_over_ten(r#"queue = "cake""#);
    assert_within("hosts isolated", hosts, 0.9, 1.05);
    let shaped = one_over_ten("queue = \"cake\"\ncake.bandwidth = \"30Mbit/s\"");
    assert_within("hosts isolated, shaped", shaped, 0.9, 1.05);
    let flows = one_over_ten("queue = \"cake\"\ncake.host_isolation = false");
    assert_within("flows isolated", flows, 0.09, 0.11);
    let fifo = one_over_ten(r#"queue = "fifo""#);
    assert_within("neither", fifo, 0.02, 0.25);
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
