//! The TCP endpoint when packets are lost: what is retransmitted, when, and what
//! it costs.
//!
//! Method: one flow on a path made so that the rule in question decides the
//! outcome; tables or the capture at the sender's interface tell.

use crate::common::{MSS_BYTES, algorithms, assert_within, run, run_captured};
use knee_sim::CapturedPacket;

fn events(output: &knee_sim::Output, name: &str) -> usize {
    output
        .events
        .event
        .iter()
        .filter(|event| *event == name)
        .count()
}

fn data(packet: &CapturedPacket) -> bool {
    packet.outbound && packet.payload_bytes > 0
}

/// The path neither loses nor reorders: what is retransmitted is spurious.
#[test]
fn nothing_is_retransmitted_on_a_path_without_loss() {
    for algorithm in algorithms() {
        for (rate, rtt) in [
            ("500kbit/s", "50ms"),
            ("10Mbit/s", "10ms"),
            ("100Mbit/s", "100ms"),
            ("1Gbit/s", "200us"),
            ("unlimited", "5ms"),
        ] {
            for receiver in ["gro = true", "gro = false\nrx_coalesce = \"0s\""] {
                let buffer = match rate {
                    "unlimited" => "",
                    _ => "buffer = \"1000000packets\"",
                };
                let output = run(&format!(
                    "duration = \"4s\"\n[path]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\n{buffer}\n\
                     [receiver]\n{receiver}\n[[flow]]\nalgorithm = \"{algorithm}\"\n"
                ));
                let what = format!("{algorithm}, {rate} x {rtt}, {receiver:?}");
                let flows = &output.flows;
                assert!(flows.bytes_read[0] > 0, "{what}: nothing was sent");
                assert_eq!(flows.total_retrans[0], 0, "{what}: retransmissions");
                assert_eq!(flows.rto_count.get(0), Some(0), "{what}: timeouts");
                assert_eq!(flows.recovery_count.get(0), Some(0), "{what}: recoveries");
                assert_eq!(flows.tlp_count.get(0), Some(0), "{what}: tail loss probes");
                assert!(
                    output.samples.dsack_dups.iter().flatten().all(|n| n == 0),
                    "{what}: DSACKs"
                );
            }
        }
    }
}

/// A path that reorders nothing makes no retransmission spurious: there is nothing to undo.
/// Source: RFC 3522 (Eifel), RFC 3708 (DSACK): an undo takes proof that the original arrived.
#[test]
fn no_recovery_of_a_real_loss_is_undone() {
    for algorithm in algorithms() {
        for pacing in ["internal", "fq"] {
            for loss in ["periodic 1%", "1%"] {
                let output = run(&format!(
                    "duration = \"30s\"\n[path]\nrate = \"unlimited\"\nrtt = \"100ms\"\nloss = \"{loss}\"\n\
                     [sender]\npacing = \"{pacing}\"\n[[flow]]\nalgorithm = \"{algorithm}\"\n"
                ));
                let flows = &output.flows;
                assert!(
                    flows.recovery_count.get(0) > Some(5),
                    "{algorithm}: hardly any recovery"
                );
                assert_eq!(
                    flows.undo_count.get(0),
                    Some(0),
                    "{algorithm}, {pacing}, {loss}: undone"
                );
            }
        }
    }
}

/// Source: RFC 6675, RFC 8985: a hole with enough SACKs above it is filled in
/// the round trip after it is seen.
#[test]
fn sack_repairs_one_loss_in_one_round_trip_without_a_timeout() {
    // The SYN is packet 1, so data packet 99 of 200 is lost, far from the tail. The link
    // has a rate: RACK goes by what was sent later, and an unlimited one has it all at once.
    let output = run_captured(
        r#"
duration = "5s"
[path]
rate = "1Gbit/s"
rtt = "100ms"
loss = "periodic 1%"
[sender]
initcwnd = 150
[[flow]]
algorithm = "reno"
workload = "transfer"
bytes = "217200B"
"#,
    );
    let flows = &output.flows;
    assert_eq!(flows.path_lost_pkts.get(0).unwrap(), 1);
    assert_eq!(flows.total_retrans[0], 1);
    assert_eq!(
        (flows.rto_count.get(0), flows.tlp_count.get(0)),
        (Some(0), Some(0))
    );
    assert_eq!(
        (events(&output, "recovery"), events(&output, "recovery_end")),
        (1, 1)
    );
    let at = |name: &str| {
        let row = output
            .events
            .event
            .iter()
            .position(|event| event == name)
            .expect("logged");
        output.events.t_ns[row] as f64 / 1e6
    };
    assert_within(
        "recovery, ms",
        at("recovery_end") - at("recovery"),
        100.0,
        105.0,
    );
    assert!(
        flows.completion_us.get(0).is_some(),
        "the transfer completes"
    );
}

/// Source: RFC 8985, section 7: a probe repairs the last packet, with no timeout.
/// One packet is left outstanding, so the probe waits for min(2 SRTT + 200 ms, RTO),
/// here SRTT + 200 ms, in jiffies and then in the timer wheel's steps of an eighth at most.
#[test]
fn a_tail_loss_probe_repairs_a_lost_tail() {
    // The server's packets: SYN-ACK, ACK of the request, and 8 of data, of which the last is lost.
    let output = run(&format!(
        r#"
duration = "1s"
[path]
rate = "unlimited"
rtt = "50ms"
loss = "periodic 10%"
[[flow]]
algorithm = "cubic"
workload = "request-response"
requests = 1
response = "{}B"
"#,
        8 * MSS_BYTES
    ));
    let flows = &output.flows;
    assert_eq!(flows.path_lost_pkts.get(0).unwrap(), 1, "the tail is lost");
    assert_eq!(
        (
            flows.tlp_count.get(0),
            flows.rto_count.get(0),
            flows.recovery_count.get(0)
        ),
        (Some(1), Some(0), Some(0))
    );
    assert_eq!(flows.total_retrans[0], 1);
    assert_eq!(flows.bytes_read[0] as u64, 8 * MSS_BYTES);
    let row = output
        .events
        .event
        .iter()
        .position(|event| event == "tlp")
        .expect("logged");
    // Opening and request take 75 ms; the seven before the tail are acked 50 ms later.
    let waited_ms = output.events.t_ns[row] as f64 / 1e6 - 125.0;
    assert_within(
        "wait for the probe, ms",
        waited_ms,
        250.0,
        250.0 * 1.125 + 8.0,
    );
}

/// Source: Linux 6.12, tcp_send_loss_probe() repeats the last segment even if it was SACKed, as a FIN behind lost data may
/// be; tcp_mark_skb_lost() leaves out what is SACKed. Two flows fill a buffer of two packets on a path of a modem's rate.
#[test]
fn a_probe_of_a_fin_that_was_sacked_loses_nothing() {
    let output = run(r#"
duration = "20s"
[path]
rate = "103846bit/s"
rtt = "21400us"
buffer = "3000B"
[sender]
noise = "100us"
[receiver]
noise = "100us"
[[flow]]
algorithm = "vegas"
workload = "request-response"
response = "165072B"
service_time = "10s"
[[flow]]
algorithm = "cubic"
workload = "transfer"
bytes = "8673B"
"#);
    let flows = &output.flows;
    assert!(flows.tlp_count.get(1) > Some(0), "no probe");
    assert!(flows.completion_us.get(1).is_some(), "it does not end");
    assert_eq!(flows.bytes_read[1], 8673);
}

/// Source: Linux since 6.5, ip-sysctl.rst, tcp_syn_linear_timeouts = 4: timeouts of
/// 1 s until the fifth, then doubled; the wheel adds an eighth at most. Nine in ten
/// packets are lost each way, so the SYN is sent many times.
#[test]
fn a_syn_is_repeated_every_second_five_times_before_timeouts_double() {
    let output = run_captured(
        r#"
duration = "60s"
[path]
rate = "unlimited"
rtt = "50ms"
ack_loss = "90%"
loss = "90%"
[[flow]]
algorithm = "reno"
workload = "transfer"
bytes = "1B"
"#,
    );
    let syns: Vec<f64> = output
        .capture
        .iter()
        .filter(|packet| packet.outbound && packet.syn)
        .map(|packet| packet.t.0 as f64 / 1e9)
        .collect();
    println!("SYNs at {syns:?} s");
    assert!(syns.len() >= 7, "SYNs at {syns:?} s");
    let law = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    for (pair, expected) in syns.windows(2).zip(law) {
        assert_within(
            "timeout of a SYN, s",
            pair[1] - pair[0],
            expected,
            expected * 1.125 + 0.01,
        );
    }
}

/// Source: RFC 6298, section 5.5; Linux TCP_RTO_MAX = 120 s. Method: half of all packets
/// are lost each way; with this seed the second packet is lost twelve times.
#[test]
fn the_timeout_of_data_doubles_up_to_120_s() {
    let output = run_captured(
        r#"
duration = "600s"
sample_interval = "1s"
[path]
rate = "10Mbit/s"
rtt = "50ms"
loss = "50%"
ack_loss = "50%"
[[flow]]
algorithm = "cubic"
workload = "transfer"
bytes = "30000B"
"#,
    );
    let sent: Vec<f64> = output
        .capture
        .iter()
        .filter(|packet| data(packet) && packet.t.0 > 400_000_000)
        .map(|packet| packet.t.0 as f64 / 1e9)
        .collect();
    let gaps: Vec<f64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    println!("timeouts {gaps:?} s");
    assert!(gaps.len() >= 9, "only {} timeouts in a row", gaps.len());
    // Each is a doubling of the first, and the wheel adds an eighth at most.
    let mut expected = gaps[0] / 1.125;
    for gap in gaps {
        assert!(
            gap >= expected && gap <= expected * 1.125 * 1.125 + 0.01,
            "a timeout of {gap} s, expected {expected} s"
        );
        expected = (expected * 2.0).min(120.0);
    }
}

/// The connection goes on when packets pass again.
#[test]
fn a_transfer_completes_through_timeouts() {
    for algorithm in algorithms() {
        let output = run(&format!(
            r#"
duration = "3600s"
sample_interval = "100ms"
[path]
rate = "10Mbit/s"
rtt = "50ms"
loss = "30%"
ack_loss = "30%"
[[flow]]
algorithm = "{algorithm}"
workload = "transfer"
bytes = "400001B"
"#
        ));
        let flows = &output.flows;
        assert!(
            flows.completion_us.get(0).is_some(),
            "{algorithm}: the transfer completes"
        );
        assert_eq!(flows.bytes_read[0], 400_001);
        // BBR keeps its window through this draw of losses, and needs no timeout.
        if algorithm.starts_with("bbr") {
            continue;
        }
        assert!(
            flows.rto_count.get(0) >= Some(3),
            "{algorithm}: {:?} timeouts",
            flows.rto_count.get(0)
        );
        let most_backoff = output.samples.backoff.iter().max();
        assert!(most_backoff >= Some(&1), "{algorithm}: nothing backed off");
    }
}

/// After a timeout that proved spurious, a retransmission may be under way of a segment that is no longer marked lost.
/// Method: slow and duplicating, with a buffer of one packet and a link for the ACKs that drops most of them.
#[test]
fn a_retransmission_that_an_undo_left_under_way_is_counted_once() {
    let output = run(r#"
duration = "1400ms"
seed = 2533724802
sample_interval = "1ms"
[path]
rate = "339kbit/s"
rtt = "100us"
buffer = "1packet"
mtu = "6010B"
reorder = "18.9%"
reorder_delay = "7251us"
duplicate = "8.4%"
ack_rate = "29kbit/s"
ack_buffer = "1packets"
[sender]
hz = 100
gso_max = "0B"
[receiver]
tcp_rmem_default = "32737B"
tcp_rmem_max = "330037B"
hz = 100
gro = false
[[flow]]
algorithm = "reno"
count = 2
"#);
    let samples = &output.samples;
    assert!(events(&output, "undo") > 0, "nothing proved spurious");
    for row in 0..samples.t_ns.len() {
        let outstanding = samples.unacked[row] - samples.sacked[row];
        assert!(
            samples.retrans[row] <= outstanding,
            "{} retransmitted of {outstanding} outstanding, flow {} at {} ns",
            samples.retrans[row],
            samples.flow[row],
            samples.t_ns[row]
        );
    }
}

/// CWR lasts until something sent after its beginning is acknowledged. A timeout before that, with all acknowledged that was
/// sent before, is a congestion of its own (tcp_enter_loss()): the threshold is cut again.
#[test]
fn a_timeout_cuts_again_when_all_that_the_mark_was_about_has_arrived() {
    // A burst whose last packets are marked; the next goes into an outage.
    let output = run(r#"
duration = "3s"
sample_interval = "10ms"
[path]
rate = "10Mbit/s"
rtt = "40ms"
queue = "step"
step.ce_packets = 1
outage = "480ms for 2s"
[sender]
initcwnd = 60
tcp_wmem_default = "32KiB"
tcp_wmem_max = "32KiB"
tcp_ecn = 1
tcp_slow_start_after_idle = false
[receiver]
tcp_ecn = 1
[[flow]]
algorithm = "reno"
workload = "on-off"
on = "1ms"
off = "500ms"
write = "1448B"
"#);
    let samples = &output.samples;
    let in_state = |state: i32| {
        let mut rows = (0..samples.t_ns.len()).filter(|&row| samples.ca_state[row] == state);
        rows.next().map(|row| samples.snd_ssthresh[row])
    };
    const CWR: i32 = 2;
    const LOSS: i32 = 4;
    assert_eq!((in_state(CWR), in_state(LOSS)), (Some(30), Some(7)));
}
