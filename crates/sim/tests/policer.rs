//! BBR behind a policer: a token bucket without a queue, which lets a burst
//! through at the rate of the link and then drops all that exceeds its own.
//!
//! Source: Linux net/ipv4/tcp_bbr.c, "long-term" sampling: two intervals that
//! begin and end with losses, lose a fifth of what they deliver and agree in
//! their rate are a policer, whose rate is then used for 48 round trips.

use crate::common;

use crate::common::{LARGE_BUFFERS, PAYLOAD_SHARE, assert_within, median};
use knee_sim::Output;

const POLICED_BITS_PER_SEC: f64 = 10e6;

/// A flow of bbr1 on a link of 100 Mbit/s that is policed to 10 Mbit/s.
fn policed(policer_model: bool, seed: u32) -> Output {
    let mut cell = common::cell(&format!(
        r#"
duration = "30s"
warmup = "5s"
seed = {seed}
[path]
rate = "100Mbit/s"
rtt = "40ms"
policer_rate = "10Mbit/s"
policer_burst = "64KiB"
{LARGE_BUFFERS}
[[flow]]
algorithm = "bbr1"
"#
    ));
    let model = ("policer_model".to_owned(), u32::from(policer_model));
    cell.flows[0].params.push(model);
    common::run_cell(&cell, 0, false)
}

/// Share of the data packets that were lost.
fn dropped(output: &Output) -> f64 {
    let dropped: u64 = output
        .flows
        .queue_dropped_pkts
        .iter()
        .flatten()
        .sum::<i64>() as u64;
    dropped as f64 / output.data_packets as f64
}

/// Share of the steady samples in which the flow sends at the policed rate.
fn at_policed_rate(output: &Output) -> f64 {
    // BBR paces payload, 1 % below the bandwidth it found.
    let expected = POLICED_BITS_PER_SEC * PAYLOAD_SHARE * 0.99;
    let samples = &output.samples;
    let rows: Vec<usize> = common::rows_of(samples, 0)
        .filter(|&row| samples.t_ns[row] > 5_000_000_000)
        .collect();
    let paced = |&&row: &&usize| {
        samples
            .pacing_rate_bits_per_sec
            .get(row)
            .is_some_and(|rate| (rate as f64 / expected - 1.0).abs() < 0.02)
    };
    rows.iter().filter(paced).count() as f64 / rows.len() as f64
}

#[test]
fn bbr1_detects_a_policer_and_sends_at_its_rate() {
    let runs = |policer_model| (0..9).map(move |seed| policed(policer_model, seed));
    let [with, without]: [Vec<Output>; 2] = [true, false].map(|model| runs(model).collect());
    for output in &with {
        let goodput = common::utilisation(output, POLICED_BITS_PER_SEC);
        assert_within("goodput over the policed rate", goodput, 0.9, 1.0);
    }
    // A rate found is used for 48 round trips, and found again within 16, or later where two intervals differ.
    let time = median(with.iter().map(at_policed_rate));
    assert_within("time at the policed rate", time, 0.5, 1.0);
    let time = median(without.iter().map(at_policed_rate));
    assert_within("the same without the model", time, 0.0, 0.1);
    let [with, without] = [with, without].map(|runs| median(runs.iter().map(dropped)));
    assert!(with < without, "{with} {without}");
}

#[test]
fn what_a_policer_drops_counts_as_dropped_by_the_queue() {
    let output = policed(true, 0);
    assert!(dropped(&output) > 0.0);
    assert_eq!(output.flows.path_lost_pkts.get(0).unwrap(), 0);
    // The queue behind it, ten times as fast, never fills.
    let waited_us = output.queue.queue_delay_us.iter().max();
    assert!(waited_us < Some(&5_000), "{waited_us:?} us");
}

#[test]
fn a_policer_that_marks_drops_nothing_that_understands_ecn() {
    for rate in ["100Mbit/s", "unlimited"] {
        let output = common::run(&format!(
            r#"
duration = "10s"
[path]
rate = "{rate}"
rtt = "20ms"
buffer = "unlimited"
policer_rate = "10Mbit/s"
policer_burst = "64KiB"
policer_action = "mark"
[sender]
tcp_ecn = 1
[receiver]
tcp_ecn = 1
[[flow]]
algorithm = "reno"
"#
        ));
        let marks = output.samples.delivered_ce.iter().flatten().max();
        assert!(marks > Some(10), "{marks:?} marks echoed at {rate}");
        assert_eq!(dropped(&output), 0.0, "{rate}");
    }
}

/// The window goes out as one train, and a little of it 40 ms later, because the receiver delays its last ACK. Where
/// the odd segments of a growing window go decides which of the two grows, and only the train meets the bucket's end.
/// From Linux 6.10 on they go elsewhere: a packet takes what it lacks from the next skb.
///
/// Source: Linux 6.12.117 and 6.1.192 (user-mode Linux, HZ 250), TSO and GRO off, netem at 100 Mbit/s behind `tc
/// police`, 20 s from 5 s on, at 98, 100 and 102 ms.
#[test]
fn reno_behind_a_policer_gets_what_it_gets_in_linux() {
    for (grow_skb, linux_mbit) in [
        (true, [17.40, 16.96, 17.33]),
        (false, [21.94, 21.63, 21.08]),
    ] {
        let mut goodput = 0.0;
        for rtt_ms in [98, 100, 102] {
            let output = common::run(&format!(
                r#"
duration = "25s"
warmup = "5s"
[path]
rate = "100Mbit/s"
rtt = "{rtt_ms}ms"
buffer = "unlimited"
policer_rate = "50Mbit/s"
policer_burst = "125000B"
[sender]
tcp_limit_output_bytes = "1MiB"
grow_skb = {grow_skb}
gro = false
rx_coalesce = "0s"
[receiver]
gro = false
rx_coalesce = "0s"
[[flow]]
algorithm = "reno"
blocking = true
"#
            ));
            goodput += output.flows.goodput_bits_per_sec[0];
        }
        let linux = 1e6 * linux_mbit.iter().sum::<f64>();
        let name = format!("goodput over that of Linux, grow_skb = {grow_skb}");
        assert_within(&name, goodput / linux, 0.95, 1.05);
    }
}
