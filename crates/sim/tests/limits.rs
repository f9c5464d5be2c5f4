//! What limits a flow when the network does not: buffers, windows, applications.
//!
//! Method: one flow on a path that has room; the limit under test is the only
//! small thing.

use crate::common::{algorithms, assert_within, cell, run};
use knee_sim::{Options, Output};
use knee_tables::{Flows, Numbers};

/// What held the first flow back for most of its time in these runs together.
fn main_limit(runs: &[Output]) -> &'static str {
    let sum = |column: fn(&Flows) -> &Numbers<i64>| {
        let of_first = |run: &Output| column(&run.flows).get(0).expect("the simulator knows");
        runs.iter().map(of_first).sum::<i64>()
    };
    let limits = [
        ("cwnd", sum(|flows| &flows.cwnd_limited_us)),
        ("rwnd", sum(|flows| &flows.rwnd_limited_us)),
        ("sndbuf", sum(|flows| &flows.sndbuf_limited_us)),
        ("pacing", sum(|flows| &flows.pacing_limited_us)),
        ("app", sum(|flows| &flows.app_limited_us)),
    ];
    let (name, us) = limits
        .into_iter()
        .max_by_key(|&(_, us)| us)
        .expect("there are five");
    println!("limits {limits:?}");
    let all_us: i64 = limits.iter().map(|&(_, us)| us).sum();
    assert!(
        2 * us > all_us,
        "no limit holds for more than half of the time: {limits:?}"
    );
    name
}

/// Source: goodput of a full window is window / RTT; the window is what the far end advertised.
///
/// Where an algorithm draws what it begins with, the limit is told of five runs together.
#[test]
fn a_small_receive_buffer_limits_to_window_over_rtt_and_is_named() {
    let behind = |algorithm: &str, seed: u32| {
        run(&format!(
            r#"
duration = "12s"
warmup = "2s"
seed = {seed}
[path]
rate = "1Gbit/s"
rtt = "50ms"
[receiver]
tcp_rmem_max = "262144B"
[[flow]]
algorithm = "{algorithm}"
"#
        ))
    };
    for algorithm in algorithms() {
        let runs: Vec<Output> = (1..=5).map(|seed| behind(algorithm, seed)).collect();
        for output in &runs {
            let flows = &output.flows;
            let window_bytes = output
                .samples
                .snd_wnd_bytes
                .iter()
                .flatten()
                .max()
                .expect("sampled") as f64;
            let law = window_bytes * 8.0 / 0.050;
            assert_within(
                &format!("{algorithm}: goodput over window / RTT"),
                flows.goodput_bits_per_sec[0] / law,
                0.9,
                1.0,
            );
            assert!(
                flows.cwnd_limited_us.get(0).expect("the simulator knows") < 1_000_000,
                "{algorithm}"
            );
        }
        // BBR 2 and 3 spread what the window lets out, so that their pacing shows and not the window behind it.
        if !algorithm.starts_with("bbr2") && !algorithm.starts_with("bbr3") {
            assert_eq!(main_limit(&runs), "rwnd", "{algorithm}");
        }
    }
}

/// Source: a sender keeps what is not acked in its buffer: rate <= buffer / RTT.
#[test]
fn a_small_send_buffer_limits_and_is_named() {
    for algorithm in ["reno", "cubic"] {
        let output = run(&format!(
            r#"
duration = "12s"
warmup = "2s"
[path]
rate = "1Gbit/s"
rtt = "50ms"
[sender]
tcp_wmem_max = "262144B"
[[flow]]
algorithm = "{algorithm}"
"#
        ));
        let flows = &output.flows;
        let law = 262_144.0 * 8.0 / 0.050;
        assert_within(
            &format!("{algorithm}: goodput over buffer / RTT"),
            flows.goodput_bits_per_sec[0] / law,
            0.85,
            1.0,
        );
        assert_eq!(
            main_limit(std::slice::from_ref(&output)),
            "sndbuf",
            "{algorithm}"
        );
        assert_eq!(flows.rwnd_limited_us.get(0).unwrap(), 0);
    }
}

/// A flow of reno for 12 s on 1 Gbit/s and 50 ms, with these keys of its own.
fn asks(keys: &str, hosts: &str) -> Output {
    run(&format!(
        r#"
duration = "12s"
warmup = "2s"
[path]
rate = "1Gbit/s"
rtt = "50ms"
{hosts}
[[flow]]
algorithm = "reno"
{keys}
"#
    ))
}

/// Source: socket(7), SO_SNDBUF: the kernel doubles it, wmem_max is the most that may be asked for; and a sender keeps what is
/// not acked in its buffer.
#[test]
fn a_send_buffer_that_is_asked_for_is_doubled_and_does_not_grow() {
    for (keys, hosts, bytes) in [
        ("sndbuf = \"128KiB\"", "", 262_144),
        (
            "sndbuf = \"1MiB\"",
            "[sender]\nwmem_max = \"64KiB\"",
            131_072,
        ),
        // tcp_wmem has no say in it.
        (
            "sndbuf = \"128KiB\"",
            "[sender]\ntcp_wmem_max = \"16KiB\"",
            262_144,
        ),
    ] {
        let output = asks(keys, hosts);
        let mut sizes = output.samples.sndbuf_bytes.iter().flatten();
        assert!(sizes.all(|size| size == bytes), "{keys} {hosts}");
        let law = bytes as f64 * 8.0 / 0.050;
        let share = output.flows.goodput_bits_per_sec[0] / law;
        assert_within(
            &format!("{keys} {hosts}: goodput over buffer / RTT"),
            share,
            0.85,
            1.0,
        );
        assert_eq!(main_limit(std::slice::from_ref(&output)), "sndbuf");
    }
}

/// Source: socket(7), SO_RCVBUF; tcp(7), TCP_WINDOW_CLAMP; goodput of a full window is window / RTT.
#[test]
fn a_receive_buffer_that_is_asked_for_or_that_does_not_grow_and_a_clamp_bound_the_window() {
    for (keys, hosts, rcvbuf_bytes, window_bytes) in [
        // Full segments are 1448 of 2304 bytes of memory, in 1/256 rounded down.
        (
            "rcvbuf = \"128KiB\"",
            "",
            Some(262_144),
            262_144 * 160 / 256,
        ),
        (
            "rcvbuf = \"1MiB\"",
            "[receiver]\nrmem_max = \"64KiB\"",
            Some(131_072),
            131_072 * 160 / 256,
        ),
        (
            "",
            "[receiver]\ntcp_moderate_rcvbuf = false",
            Some(131_072),
            131_072 * 160 / 256,
        ),
        ("", "[sender]\ntcp_window_scaling = false", None, 65_535),
        ("window_clamp = \"65535B\"", "", None, 65_535),
    ] {
        let output = asks(keys, hosts);
        if let Some(bytes) = rcvbuf_bytes {
            let mut sizes = output.samples.rcvbuf_bytes.iter().flatten();
            assert!(sizes.all(|size| size == bytes), "{keys} {hosts}");
        }
        let most = output.samples.snd_wnd_bytes.iter().flatten().max();
        assert_within(
            &format!("{keys} {hosts}: largest window over the buffer's"),
            most.expect("sampled") as f64 / f64::from(window_bytes),
            0.98,
            1.0001,
        );
        let law = f64::from(window_bytes) * 8.0 / 0.050;
        let share = output.flows.goodput_bits_per_sec[0] / law;
        assert_within(
            &format!("{keys} {hosts}: goodput over window / RTT"),
            share,
            0.9,
            1.0,
        );
        assert_eq!(main_limit(std::slice::from_ref(&output)), "rwnd");
    }
}

/// On a 512 KiB send buffer and 100 ms, 41.9 Mbit/s would be a buffer per round
/// trip. What Linux makes of it depends on the length of the writes: a small
/// buffer costs BBR more than its share, and CUBIC goes beyond it, because an
/// unsent packet is filled up without asking for memory.
/// Source: measured on Linux 6.12.117 (user-mode, netem, GRO off, blocking writes).
#[test]
fn a_small_send_buffer_carries_what_it_carries_in_linux() {
    for (algorithm, write, linux_mbit_per_sec) in [
        ("bbr1", "128KiB", 25.2),
        ("bbr1", "16KiB", 30.7),
        ("cubic", "128KiB", 30.67),
        ("cubic", "16KiB", 167.0),
    ] {
        let output = run(&format!(
            r#"
duration = "8s"
warmup = "4s"
[path]
rate = "500Mbit/s"
rtt = "100ms"
[sender]
tcp_wmem_max = "512KiB"
[receiver]
tcp_rmem_max = "32MiB"
gro = false
rx_coalesce = "0s"
[[flow]]
algorithm = "{algorithm}"
write = "{write}"
blocking = true
"#
        ));
        assert_within(
            &format!("{algorithm}, writes of {write}: goodput over that of Linux"),
            output.flows.goodput_bits_per_sec[0] / 1e6 / linux_mbit_per_sec,
            0.95,
            1.05,
        );
    }
}

/// Source: one small request in flight costs one round trip.
#[test]
fn a_request_at_depth_1_takes_one_round_trip() {
    for algorithm in algorithms() {
        let output = run(&format!(
            r#"
duration = "10s"
warmup = "1s"
[path]
rate = "100Mbit/s"
rtt = "20ms"
[[flow]]
algorithm = "{algorithm}"
workload = "request-response"
request = "100B"
response = "500B"
"#
        ));
        let flows = &output.flows;
        for (name, latency_us) in [
            ("p50", flows.latency_us_p50.get(0)),
            ("p99", flows.latency_us_p99.get(0)),
        ] {
            assert_within(
                &format!("{algorithm}: latency {name}, us"),
                latency_us.expect("answered"),
                19_900.0,
                21_000.0,
            );
        }
        assert_within(
            "requests per second",
            flows.requests_per_sec.get(0).expect("answered"),
            47.0,
            50.1,
        );
        assert_eq!(
            flows.cwnd_limited_us.get(0),
            Some(0),
            "{algorithm} is not limited by its window"
        );
    }
}

/// A nonblocking writer finds everything sent when it is woken, and that write marks the flow as limited by its
/// application. BBR then never has a sample that counts, stays in STARTUP and overruns the buffer again and again.
/// Source: measured on Linux 6.12.117 (user-mode, exact time, netem, GRO off): 19.7 % retransmitted and 75.3 ms for
/// nonblocking writes, 0 % and 41.9 ms for blocking ones.
#[test]
fn bbr1_stays_in_startup_behind_a_send_buffer_that_a_nonblocking_writer_fills() {
    let steady = |blocking: bool| {
        let output = run(&format!(
            r#"
duration = "12s"
warmup = "4s"
[path]
rate = "200Mbit/s"
rtt = "40ms"
buffer = "1bdp"
[sender]
tcp_limit_output_bytes = "1MiB"
[receiver]
gro = false
rx_coalesce = "0s"
[[flow]]
algorithm = "bbr1"
blocking = {blocking}
"#
        ));
        output.flows.srtt_us_p50.get(0).expect("it ran") / 1e3
    };
    assert_within(
        "nonblocking: srtt over that of Linux",
        steady(false) / 75.35,
        0.93,
        1.07,
    );
    assert_within(
        "blocking: srtt over that of Linux",
        steady(true) / 41.92,
        0.93,
        1.07,
    );
}

/// A window below the MSS is filled by the probe timer (tcp_write_wakeup()), and what the probe sent is retransmitted
/// when it is lost, as any other data.
#[test]
fn what_a_window_probe_sent_is_retransmitted() {
    let output = run(r#"
duration = "600s"
seed = 3
[path]
rate = "10Mbit/s"
rtt = "20ms"
mtu = "9000B"
loss = "20%"
[receiver]
tcp_rmem_min = "4608B"
tcp_rmem_default = "4608B"
tcp_rmem_max = "4608B"
[[flow]]
algorithm = "reno"
workload = "transfer"
bytes = "200kB"
"#);
    let windows = output.samples.snd_wnd_bytes.iter().flatten();
    let last = windows.last().expect("sampled");
    assert!(last < 8_948, "{last} hold a segment");
    let flows = &output.flows;
    assert!(flows.completion_us.get(0).is_some(), "it never completes");
    assert!(flows.total_retrans[0] > 0);
}

/// A path without rate and length, with keys of its own for the receiver's host.
fn direct(receiver: &str) -> String {
    format!(
        r#"
duration = "200ms"
[path]
rate = "unlimited"
rtt = "0s"
backend = "veth"
[receiver]
{receiver}
[sender]
rx_coalesce = "0s"
[[flow]]
algorithm = "cubic"
"#
    )
}

/// Source: without a rate nothing waits, and without a length a round trip ends within the 20 us for which the NIC gathers.
#[test]
fn on_a_path_without_rate_and_length_only_the_hosts_take_time() {
    let output = run(&direct("rx_coalesce = \"20us\""));
    assert_within(
        "p99 of the RTT",
        output.flows.srtt_us_p99.get(0).unwrap(),
        1.0,
        21.0,
    );
    assert!(output.queue.queue_pkts.iter().all(|&pkts| pkts == 0));
    assert_eq!(output.flows.total_retrans[0], 0);
    assert!(output.flows.goodput_bits_per_sec[0] > 1e9);
}

#[test]
fn a_round_trip_that_takes_no_time_is_refused() {
    let cell = cell(&direct("rx_coalesce = \"0s\""));
    let ran = knee_sim::run(&cell, 0, &Options::default(), &mut |_, _| true);
    let error = ran.map(drop).unwrap_err().to_string();
    assert!(
        error.contains("simulated time would stand still"),
        "{error}"
    );
}
