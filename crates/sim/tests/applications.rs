//! What applications do beside writing and reading at once: servers that compute, and writes that come in crumbs.

use crate::common::{MSS_BYTES, assert_within, run};
use knee_sim::Output;
use knee_tables::Table;

fn asked(keys: &str) -> Output {
    run(&format!(
        r#"
duration = "1s"
warmup = "200ms"
[path]
rate = "1Gbit/s"
rtt = "100us"
[[flow]]
algorithm = "cubic"
workload = "request-response"
connections = 8
{keys}
"#
    ))
}

fn answers_per_sec(output: &Output) -> f64 {
    output.flows.requests_per_sec.iter().flatten().sum()
}

/// Source: a server that takes 50 us for each request answers 20,000 a second, and each further thread as many.
#[test]
fn server_answers_one_request_at_a_time_in_each_thread() {
    for (threads, most) in [(1, 20_000.0), (2, 40_000.0)] {
        let keys = format!("service_time = \"50us\"\nthreads = {threads}");
        let found = answers_per_sec(&asked(&keys));
        assert_within("answers per second", found, 0.99 * most, 1.001 * most);
    }
    assert!(answers_per_sec(&asked("")) > 50_000.0, "it need not wait");
}

/// Source: with 8 connections and one thread a request waits for the 7 others.
#[test]
fn what_a_request_waits_for_is_in_its_latency() {
    let latency = |keys: &str| {
        let output = asked(keys);
        output.flows.latency_us_p50.get(0).unwrap()
    };
    assert_within("us", latency("service_time = \"50us\""), 392.0, 408.0);
    let alone = latency("service_time = \"50us\"\nthreads = 8");
    assert_within("us, a thread each", alone, 150.0, 200.0);
}

fn written(keys: &str) -> Output {
    run(&format!(
        r#"
duration = "5s"
[path]
rate = "100Mbit/s"
rtt = "1ms"
[[flow]]
algorithm = "cubic"
workload = "small-writes"
{keys}
"#
    ))
}

#[test]
fn small_writes_arrive_whole_and_each_is_counted() {
    for (keys, writes, bytes) in [
        ("", 4_096, 4_096 * 128),
        ("writes = 100\nwrite = \"32B\"", 100, 3_200),
    ] {
        let flows = written(keys).flows;
        assert_eq!(flows.bytes_read[0], bytes);
        // One that finds the send buffer all but full is taken in two parts: 12 of the 4,096.
        assert!(
            (writes..=writes + writes / 100).contains(&flows.writes[0]),
            "{}",
            flows.writes[0]
        );
        assert_eq!(flows.transfer_bytes.get(0), Some(bytes));
        assert!(flows.completion_us.get(0).unwrap() > 1_000);
        let reads = flows.reads.get(0).unwrap();
        assert!(0 < reads && reads <= writes, "{reads}");
        // On average as much as there was.
        let [median, p99] = [
            flows.read_bytes_p50.get(0).unwrap(),
            flows.read_bytes_p99.get(0).unwrap(),
        ];
        assert!(
            median <= p99 && p99 * reads as f64 >= bytes as f64,
            "{median} {p99}"
        );
        assert!(flows.read_gap_us_p50.get(0).unwrap() <= flows.read_gap_us_p99.get(0).unwrap());
    }
}

/// Source: RFC 896. With data under way a small segment waits until it is full; TCP_NODELAY sends it.
#[test]
fn writes_leave_one_by_one_where_nagle_does_not_hold_them_back() {
    let segments = |keys: &str| {
        let keys = format!("writes = 100\nwrite = \"32B\"\n{keys}");
        written(&keys).flows.data_segs_out.get(0).unwrap()
    };
    let full = (3_200_u64.div_ceil(MSS_BYTES) + 1) as i64;
    assert!(segments("nodelay = false") <= full);
    assert_eq!(segments(""), segments("nodelay = false"), "as sockets are");
    assert!(segments("nodelay = true") > full);
}

#[test]
fn reads_of_other_workloads_are_not_timed() {
    let flows = asked("").flows;
    assert!(flows.reads.iter().all(|reads| reads.is_none()));
    // Each answer of a byte is a write.
    let answers: Vec<i64> = flows.bytes_read.clone();
    assert!(
        flows
            .writes
            .iter()
            .zip(&answers)
            .all(|(writes, bytes)| writes - bytes <= 1)
    );
}

#[test]
fn runs_with_servers_and_small_writes_are_twice_the_same() {
    let values = |output: &Output| format!("{:?}", output.flows.values());
    for keys in [
        "service_time = \"30us\"\nthreads = 3\ndepth = 4",
        "nodelay = false",
    ] {
        assert_eq!(values(&asked(keys)), values(&asked(keys)));
    }
    assert_eq!(values(&written("")), values(&written("")));
}

/// Source: the transfer itself, which is the same whenever the warm-up ends; 100,000 B in the time that it took.
#[test]
fn transfer_counts_as_a_whole_whenever_the_warm_up_ends() {
    let flows = |keys: &str, warmup: &str| {
        run(&format!(
            r#"
duration = "2s"
warmup = "{warmup}"
[path]
rate = "50Mbit/s"
rtt = "100ms"
[[flow]]
algorithm = "cubic"
{keys}
"#
        ))
        .flows
    };
    for keys in [
        "workload = \"transfer\"\nbytes = \"100kB\"",
        "workload = \"small-writes\"\nwrites = 70\nwrite = \"1448B\"",
        "workload = \"transfer\"\nbytes = \"1GB\"",
    ] {
        let whole = flows(keys, "0s");
        let took_us = whole.completion_us.get(0).unwrap_or(2_000_000) as f64;
        let bits = 8.0 * whole.bytes_read[0] as f64;
        assert_within(
            "goodput over bytes and time",
            whole.goodput_bits_per_sec[0] * took_us / 1e6 / bits,
            0.999_99,
            1.000_01,
        );
        for warmup in ["300ms", "350ms", "1s"] {
            let found = flows(keys, warmup);
            assert_eq!(
                format!("{:?}", found.values()),
                format!("{:?}", whole.values())
            );
        }
    }
    let bulk = |warmup| flows("", warmup).goodput_bits_per_sec[0];
    assert!(bulk("1s") > 1.2 * bulk("0s"), "slow start is left out");
}
