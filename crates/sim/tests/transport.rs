//! The TCP endpoint: sharing, ACK policy, windows, bursts.
//!
//! Method: one flow (two where sharing is the claim) on a path made so that the
//! rule in question decides the outcome; tables or the capture at the sender's
//! interface are compared with what the rule says.

use crate::common::{
    LARGE_BUFFERS, MSS_BYTES, algorithms, assert_within, rows_of, run, run_captured,
};
use knee_sim::CapturedPacket;

fn data(packet: &CapturedPacket) -> bool {
    packet.outbound && packet.payload_bytes > 0
}

fn pure_ack(packet: &CapturedPacket) -> bool {
    !packet.outbound && packet.payload_bytes == 0 && !packet.syn
}

// ---- sharing ---------------------------------------------------------------------

/// Source: Chiu, Jain: Computer Networks 17(1) 1989: AIMD converges to equal shares.
#[test]
fn two_reno_flows_with_equal_rtt_share_within_10_pct() {
    let output = run(r#"
duration = "330s"
warmup = "30s"
sample_interval = "1s"
[path]
rate = "20Mbit/s"
rtt = "40ms"
buffer = "1bdp"
[[flow]]
algorithm = "reno"
count = 2
stagger = "1s"
"#);
    let goodput = &output.flows.goodput_bits_per_sec;
    assert_within(
        "one flow's share over the other's",
        goodput[0] / goodput[1],
        0.9,
        1.0 / 0.9,
    );
}

// ---- ACKs ---------------------------------------------------------------------------

fn acks_per_data_packet(rate: &str, sender: &str, receiver: &str) -> f64 {
    let output = run_captured(&format!(
        "duration = \"3s\"\n[path]\nrate = \"{rate}\"\nrtt = \"20ms\"\nbuffer = \"1bdp\"\n\
         [sender]\n{sender}\n[receiver]\n{receiver}\n[[flow]]\nalgorithm = \"bbr1\"\n"
    ));
    // While the receive window grows, each step of it is acked at once.
    let late = || {
        output
            .capture
            .iter()
            .filter(|packet| packet.t.0 > 1_000_000_000)
    };
    let count = |of: fn(&CapturedPacket) -> bool| late().filter(|packet| of(packet)).count();
    count(pure_ack) as f64 / count(data) as f64
}

/// Source: RFC 9293, section 3.8.6.3: every second full segment. TSO is off,
/// because its packets end with PSH, at which Linux acks an odd segment too.
#[test]
fn every_second_packet_is_acked_without_gro() {
    let share = acks_per_data_packet(
        "50Mbit/s",
        "gso_max = \"0B\"",
        "gro = false\nrx_coalesce = \"0s\"",
    );
    assert_within("ACKs per data packet", share, 0.48, 0.52);
}

/// Source: Linux counts what GRO merged as one skb: one ACK for it.
#[test]
fn gro_thins_acks_at_a_high_rate() {
    let share = acks_per_data_packet("2Gbit/s", "", "gro = true\nrx_coalesce = \"50us\"");
    assert_within("ACKs per data packet", share, 0.02, 0.25);
}

// ---- windows --------------------------------------------------------------------------

fn first_flight(initcwnd: u32) -> usize {
    let output = run_captured(&format!(
        r#"
duration = "190ms"
[path]
rate = "unlimited"
rtt = "100ms"
[sender]
initcwnd = {initcwnd}
tcp_wmem_default = "1MiB"
[receiver]
tcp_rmem_default = "1MiB"
[[flow]]
algorithm = "cubic"
"#
    ));
    output.capture.iter().filter(|packet| data(packet)).count()
}

/// Source: RFC 6928; route option initcwnd.
#[test]
fn the_first_flight_is_the_initial_window() {
    assert_eq!(first_flight(1), 1);
    assert_eq!(first_flight(10), 10);
    assert_eq!(first_flight(40), 40);
}

/// Opening takes a round trip, the first window half of one more.
#[test]
fn ten_packets_arrive_in_one_and_a_half_round_trips() {
    // Hybla begins with a window of RTT / 25 ms segments, as in Linux.
    for algorithm in algorithms().filter(|&name| name != "hybla") {
        let output = run(&format!(
            r#"
duration = "2s"
[path]
rate = "unlimited"
rtt = "100ms"
[[flow]]
algorithm = "{algorithm}"
workload = "transfer"
bytes = "{}B"
"#,
            10 * MSS_BYTES
        ));
        let completion_ms = output.flows.completion_us.get(0).expect("it completes") as f64 / 1e3;
        assert_within(
            &format!("{algorithm}: completion, ms"),
            completion_ms,
            150.0,
            151.0,
        );
    }
}

/// Source: RFC 7323, section 2: the windows of data packets are scaled, that of a SYN is not.
#[test]
fn windows_beyond_64_kib_are_scaled() {
    let output = run_captured(&format!(
        "duration = \"2s\"\n[path]\nrate = \"1Gbit/s\"\nrtt = \"50ms\"\n{LARGE_BUFFERS}[[flow]]\nalgorithm = \"cubic\"\n"
    ));
    let syn_ack = output
        .capture
        .iter()
        .find(|p| !p.outbound && p.syn)
        .expect("a SYN-ACK");
    assert!(
        syn_ack.wscale > 7 && syn_ack.wscale <= 14,
        "scale {}",
        syn_ack.wscale
    );
    let most = output
        .capture
        .iter()
        .filter(|p| pure_ack(p))
        .map(|p| u64::from(p.window) << p.wscale)
        .max();
    assert!(most > Some(1 << 20), "largest window {most:?}");
    for packet in output.capture.iter().filter(|p| data(p)) {
        assert!(packet.seq + u64::from(packet.payload_bytes) <= 1 + (1 << 30));
    }
}

/// Source: Linux tcp_grow_window(): what a buffer has room for is reckoned while the segment that opens the window
/// lies in it. Method: a buffer that may not grow; 160 of 256 bytes of it are window once full packets were seen.
#[test]
fn the_window_stops_a_packet_below_the_buffer() {
    const RCVBUF_BYTES: u64 = 131_072;
    const PACKET_BYTES: u64 = 2_304;
    let output = run_captured(
        r#"
duration = "2s"
[path]
rate = "20Mbit/s"
rtt = "40ms"
[receiver]
tcp_rmem_default = "128KiB"
tcp_rmem_max = "128KiB"
gro = false
[[flow]]
algorithm = "cubic"
"#,
    );
    let last = output.capture.iter().rfind(|p| pure_ack(p));
    let last = last.expect("an ACK");
    let window_bytes = u64::from(last.window) << last.wscale;
    let expected_bytes = (RCVBUF_BYTES - PACKET_BYTES) * 160 / 256;
    let unit = 1 << last.wscale;
    assert_eq!(window_bytes, expected_bytes.next_multiple_of(unit));
}

/// Source: Linux 6.11, tcp_select_initial_window(): the first window is all that the buffer gives; RFC 7323,
/// section 2.2: what a SYN can say of it is 65,535 bytes.
#[test]
fn a_large_buffer_is_offered_from_the_first_ack_on() {
    let output = run_captured(
        r#"
duration = "1s"
[path]
rate = "20Mbit/s"
rtt = "40ms"
[receiver]
tcp_rmem_default = "8MiB"
tcp_rmem_max = "8MiB"
[sender]
initcwnd = 100
tcp_wmem_default = "1MiB"
[[flow]]
algorithm = "cubic"
"#,
    );
    let from_receiver = || output.capture.iter().filter(|p| !p.outbound);
    let syn_ack = from_receiver().find(|p| p.syn).expect("a SYN-ACK");
    assert_eq!(syn_ack.window, 65_535);
    let first = from_receiver().find(|p| !p.syn).expect("an ACK");
    let window_bytes = u64::from(first.window) << first.wscale;
    assert!(window_bytes >= 4 << 20, "{window_bytes}");
    let sent = output.capture.iter().filter(|p| data(p) && p.t < first.t);
    let first_flight_bytes: u64 = sent.map(|p| u64::from(p.payload_bytes)).sum();
    assert_eq!(first_flight_bytes, 65_535);
}

/// Source: RFC 5681, section 4.1; Linux tcp_cwnd_restart(): the window halves for
/// each timeout of idleness, down to the initial one. Method: a client with 4 KiB of
/// send buffer takes some fifteen round trips, five timeouts, to ask for each large
/// answer; the server's window is read when it begins to answer.
#[test]
fn an_idle_connection_restarts_from_its_initial_window_if_so_set() {
    let windows_after_idle = |on: bool| {
        let output = run(&format!(
            r#"
duration = "20s"
sample_interval = "10ms"
[path]
rate = "unlimited"
rtt = "100ms"
[sender]
tcp_slow_start_after_idle = {on}
[receiver]
gso_max = "0B"
tcp_wmem_default = "4096B"
tcp_wmem_max = "4096B"
[[flow]]
algorithm = "cubic"
workload = "request-response"
request = "60000B"
response = "300000B"
"#
        ));
        let samples = &output.samples;
        let rows: Vec<usize> = rows_of(samples, 0).collect();
        rows.windows(2)
            .filter(|pair| samples.unacked[pair[0]] == 0 && samples.unacked[pair[1]] > 0)
            .map(|pair| samples.snd_cwnd[pair[1]])
            .collect::<Vec<_>>()
    };
    let (on, off) = (windows_after_idle(true), windows_after_idle(false));
    println!("on {on:?}\noff {off:?}");
    assert!(on.len() >= 3 && off.len() >= 3, "too few answers");
    assert!(on.iter().all(|&cwnd| cwnd == 10), "after idleness: {on:?}");
    assert!(off[1..].iter().all(|&cwnd| cwnd > 100), "kept: {off:?}");
}

// ---- pacing -----------------------------------------------------------------------------

/// Source: both pace at sk_pacing_rate; only who holds the packets differs.
#[test]
fn fq_and_internal_pacing_give_bbr1_the_same_goodput() {
    for (rate, rtt) in [("20Mbit/s", "40ms"), ("200Mbit/s", "20ms")] {
        let goodput = |pacing: &str| {
            run(&format!(
                "duration = \"25s\"\nwarmup = \"5s\"\n[path]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\nbuffer = \"1bdp\"\n\
                 [sender]\npacing = \"{pacing}\"\n[[flow]]\nalgorithm = \"bbr1\"\n"
            ))
            .flows
            .goodput_bits_per_sec[0]
        };
        assert_within(
            &format!("{rate}: fq over internal"),
            goodput("fq") / goodput("internal"),
            0.98,
            1.02,
        );
    }
}

/// Source: Linux a88e24f270eb, which ended that "TCP RTT samples would be inflated by the sojourn time of the packets in FQ".
/// fq holds two packets of two segments, each of which takes 2.4 ms at this rate.
#[test]
fn a_stamp_at_the_handover_counts_the_time_in_fq_as_rtt() {
    let srtt_us = |pacing: &str, stamps: &str| {
        let output = run(&format!(
            "duration = \"10s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"20ms\"\nbuffer = \"2bdp\"\n\
             [sender]\npacing = \"{pacing}\"\nsend_stamps = \"{stamps}\"\n[[flow]]\nalgorithm = \"bbr1\"\n"
        ));
        let mut found: Vec<i64> = rows_of(&output.samples, 0)
            .filter(|&row| output.samples.t_ns[row] > 3_000_000_000)
            .map(|row| output.samples.srtt_us[row])
            .collect();
        found.sort_unstable();
        found[found.len() / 2] as f64
    };
    let [departure, handover] = ["departure", "handover"].map(|stamps| srtt_us("fq", stamps));
    assert_within("time in fq, us", handover - departure, 1_000.0, 10_000.0);
    // TCP's own timer hands packets down when they may leave.
    let [departure, handover] = ["departure", "handover"].map(|stamps| srtt_us("internal", stamps));
    assert_within("without fq", handover / departure, 0.99, 1.01);
}

/// Longest train of data packets at one instant at each flow's interface, once slow start is over.
fn longest_trains(host: &str, flows: [&str; 2]) -> [u32; 2] {
    let flows = flows.map(|pacing| format!("[[flow]]\nalgorithm = \"cubic\"\n{pacing}\n"));
    let output = run_captured(&format!(
        "duration = \"8s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"1bdp\"\n\
         [sender]\ngso_max = \"0B\"\n{host}\n{}",
        flows.concat()
    ));
    [0, 1].map(|flow| {
        let sent = output
            .capture
            .iter()
            .filter(|packet| data(packet) && packet.flow == flow && packet.t.0 > 3_000_000_000);
        let (mut longest, mut train) = (0, (0, 0));
        for packet in sent {
            train = match packet.t.0 == train.1 {
                true => (train.0 + 1, train.1),
                false => (1, packet.t.0),
            };
            longest = longest.max(train.0);
        }
        longest
    })
}

/// Source: tcp_tso_autosize() makes packets of at least two segments; what is paced leaves one such at a time,
/// CUBIC's ACK-clocked trains are as long as what an ACK frees.
#[test]
fn a_flow_is_paced_as_it_says_beside_one_that_is_not() {
    for pacing in ["timer", "fq"] {
        let own = format!("pacing = \"{pacing}\"");
        let [paced, unpaced] = longest_trains("", [&own, ""]);
        assert!(paced <= 2 && unpaced > 2, "{pacing}: {paced} and {unpaced}");
        // The flow's own word holds, whatever its host's is.
        let [unpaced, paced] = longest_trains(&own, ["pacing = \"internal\"", ""]);
        assert!(paced <= 2 && unpaced > 2, "{pacing}: {unpaced} and {paced}");
    }
}

/// Source: Linux tcp_tso_autosize(): a burst is what the pacing rate sends in 1 ms
/// (rate >> 10 bytes), at least two segments; at an RTT beyond 3 ms nothing is added.
/// Trains are data packets at one instant at the sender's interface.
#[test]
fn a_tso_burst_of_bbr1_is_bounded_by_a_millisecond_of_its_pacing_rate() {
    for rate_mbit in [5, 50, 500] {
        let output = run_captured(&format!(
            "duration = \"6s\"\n[path]\nrate = \"{rate_mbit}Mbit/s\"\nrtt = \"20ms\"\nbuffer = \"2bdp\"\n\
             {LARGE_BUFFERS}[[flow]]\nalgorithm = \"bbr1\"\n"
        ));
        // The fastest it paces once the start is over: 1.25 of the bandwidth, which is
        // seen with at most a few per cent of error.
        let most_rate = output
            .samples
            .pacing_rate_bits_per_sec
            .iter()
            .zip(&output.samples.t_ns)
            .filter(|(_, t)| **t > 3_000_000_000)
            .filter_map(|(rate, _)| rate)
            .max()
            .expect("sampled");
        let most_segs = (most_rate as u64 / 8 / 1024 / MSS_BYTES).max(2);
        let mut longest = 0;
        let mut train = (0, 0u64);
        for packet in output
            .capture
            .iter()
            .filter(|p| data(p) && p.t.0 > 3_000_000_000)
        {
            train = match packet.t.0 == train.1 {
                true => (train.0 + 1, train.1),
                false => (1, packet.t.0),
            };
            longest = longest.max(train.0);
        }
        println!("{rate_mbit} Mbit/s: longest train {longest}, bound {most_segs}");
        assert!(
            longest >= 2 && longest <= most_segs,
            "{rate_mbit} Mbit/s: a train of {longest}, bound {most_segs}"
        );
    }
}
