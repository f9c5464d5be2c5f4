//! CDG, LP and Compound on a drop-tail path: what the delay does for them.
//!
//! Linux means 6.12.117 over netem in user-mode Linux, with the same path and without offloads, one run of 30 s each.

use crate::common::{LARGE_BUFFERS, NO_SSTHRESH, assert_within, median, run};
use knee_sim::Output;

fn as_linux(algorithm: &str, rate: &str, rtt: &str, buffer: &str, seed: u32) -> Output {
    run(&format!(
        r#"
duration = "30s"
warmup = "8s"
seed = {seed}
[path]
rate = "{rate}"
rtt = "{rtt}"
buffer = "{buffer}"
[sender]
tcp_limit_output_bytes = "1MiB"
gro = false
rx_coalesce = "0s"
[receiver]
rcvbuf_growth = "margin"
gro = false
rx_coalesce = "0s"
[[flow]]
algorithm = "{algorithm}"
"#
    ))
}

fn first_ssthresh(output: &Output) -> f64 {
    let samples = &output.samples;
    let left = samples.snd_ssthresh.iter().find(|&&s| s < NO_SSTHRESH);
    *left.expect("slow start ends within 30 s") as f64
}

/// A back-off by chance may come before HyStart: the median of 41 runs. In Linux: 76, 245, 63 and 246 segments,
/// and 17.7, 44.5, 47.8 and 16.2 Mbit/s, the last the median of eight runs from 13.3 to 17.1.
#[test]
fn cdg_leaves_slow_start_and_fills_the_link_as_in_linux() {
    for (rate, rtt, buffer, ssthresh, mbit_per_sec) in [
        ("20Mbit/s", "40ms", "1bdp", 76.0, 17.73),
        ("50Mbit/s", "40ms", "0.5bdp", 245.0, 44.47),
        ("50Mbit/s", "10ms", "1bdp", 63.0, 47.76),
        ("20Mbit/s", "100ms", "4bdp", 246.0, 16.17),
    ] {
        let runs: Vec<_> = (0..41)
            .map(|seed| as_linux("cdg", rate, rtt, buffer, seed))
            .collect();
        let left = median(runs.iter().map(first_ssthresh));
        assert_within(
            &format!("{rate} x {rtt}: first ssthresh over Linux'"),
            left / ssthresh,
            0.97,
            1.03,
        );
        let goodput = median(runs.iter().map(|run| run.flows.goodput_bits_per_sec[0]));
        assert_within(
            &format!("{rate} x {rtt}: goodput over Linux'"),
            goodput / (mbit_per_sec * 1e6),
            0.95,
            1.05,
        );
    }
}

/// Source: Hayes and Armitage, IFIP Networking 2011, section 4: the queue stays short, whatever the buffer.
#[test]
fn cdg_keeps_a_tenth_of_the_delay_that_reno_does_in_a_large_buffer() {
    let srtt_us = |algorithm| {
        let output = as_linux(algorithm, "20Mbit/s", "100ms", "4bdp", 0);
        output.flows.srtt_us_p50.get(0).expect("an RTT") - 100_000.0
    };
    let (cdg, reno) = (srtt_us("cdg"), srtt_us("reno"));
    assert_within("queueing delay over Reno's", cdg / reno, 0.0, 0.1);
}

/// The other end's clock has a random offset, which Linux' arithmetic does not take out: no delay is a sign then. In
/// Linux: 19.29 Mbit/s at 64.3 ms and 48.27 Mbit/s at 134.9 ms.
#[test]
fn lp_is_reno_where_timestamps_have_an_offset_as_in_linux() {
    for (rate, rtt, mbit_per_sec, srtt_ms) in [
        ("20Mbit/s", "40ms", 19.29, 64.3),
        ("50Mbit/s", "100ms", 48.27, 134.9),
    ] {
        let output = as_linux("lp", rate, rtt, "1bdp", 0);
        let goodput = output.flows.goodput_bits_per_sec[0] / (mbit_per_sec * 1e6);
        assert_within(&format!("{rate} x {rtt}: goodput"), goodput, 0.95, 1.05);
        let srtt = output.flows.srtt_us_p50.get(0).expect("an RTT") / (srtt_ms * 1e3);
        assert_within(&format!("{rate} x {rtt}: srtt"), srtt, 0.9, 1.1);
    }
}

fn long_path(algorithm: &str, seed: u32) -> f64 {
    let output = run(&format!(
        r#"
duration = "120s"
warmup = "20s"
seed = {seed}
[path]
rate = "200Mbit/s"
rtt = "100ms"
buffer = "1bdp"
loss = "0.01%"
{LARGE_BUFFERS}
[[flow]]
algorithm = "{algorithm}"
"#
    ));
    output.flows.goodput_bits_per_sec[0]
}

/// Source: Tan et al., INFOCOM 2006, section V: on long fast paths with a little loss, much more than Reno.
#[test]
fn compound_carries_more_than_reno_over_a_long_path_with_loss() {
    let mean = |algorithm| (0..3).map(|seed| long_path(algorithm, seed)).sum::<f64>() / 3.0;
    let (compound, reno) = (mean("compound"), mean("reno"));
    assert_within("goodput over Reno's", compound / reno, 1.5, 4.0);
}

/// Source: the same, section III: where the queue is long, dwnd is 0 and what is left is Reno.
#[test]
fn compound_shares_a_deep_buffer_with_reno() {
    let output = run(r#"
duration = "300s"
warmup = "60s"
[path]
rate = "20Mbit/s"
rtt = "40ms"
buffer = "3bdp"
[[flow]]
algorithm = "compound"
[[flow]]
algorithm = "reno"
"#);
    let goodput = &output.flows.goodput_bits_per_sec;
    assert_within("Compound's over Reno's", goodput[0] / goodput[1], 0.7, 1.4);
}
