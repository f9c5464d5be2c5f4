//! What theory and published results say of the algorithms on a drop-tail path.
//!
//! Method: one bulk flow; utilisation is payload goodput over rate x 1448/1500,
//! in the steady part after a warm-up that leaves slow start out.

use crate::common;

use crate::common::{LARGE_BUFFERS, NO_SSTHRESH, PAYLOAD_SHARE, assert_within, run, utilisation};

fn drop_tail_utilisation(algorithm: &str, buffer: &str) -> f64 {
    utilisation_of(algorithm, buffer, "40ms", "")
}

fn utilisation_of(algorithm: &str, buffer: &str, rtt: &str, sender: &str) -> f64 {
    let output = run(&format!(
        r#"
duration = "180s"
warmup = "30s"
[path]
rate = "20Mbit/s"
rtt = "{rtt}"
buffer = "{buffer}"
[sender]
{sender}
[[flow]]
algorithm = "{algorithm}"
"#
    ));
    utilisation(&output, 20e6)
}

/// Source: Villamizar, Song: CCR 24(5) 1994; a window that halves at 2 BDP never empties the queue.
#[test]
fn reno_fills_a_link_with_1_bdp_of_buffer() {
    let share = drop_tail_utilisation("reno", "1bdp");
    assert_within("utilisation", share, 0.98, 1.0);
}

/// The sawtooth runs from 0.75 to 1.5 BDP: a quarter of the climb is below the BDP.
#[test]
fn reno_uses_90_to_97_pct_of_a_link_with_half_a_bdp_of_buffer() {
    let share = drop_tail_utilisation("reno", "0.5bdp");
    assert_within("utilisation", share, 0.90, 0.97);
}

/// Without a buffer the sawtooth runs from 0.5 to 1 BDP, 75 % on average. That is
/// of packets sent one by one: at 40 ms 0.02 BDP is one packet.
#[test]
fn reno_uses_60_to_80_pct_of_a_link_almost_without_buffer() {
    let single_packets = "pacing = \"fq\"\ngso_max = \"0B\"";
    let share = utilisation_of("reno", "0.02bdp", "40ms", single_packets);
    assert_within("utilisation at 40 ms, paced", share, 0.60, 0.80);
    let share = utilisation_of("reno", "0.02bdp", "100ms", "");
    assert_within("utilisation at 100 ms", share, 0.60, 0.80);
}

/// Where one packet is sent and one waits, a burst of three loses one: growing
/// past two segments, which an ACK for both releases at once, never succeeds.
#[test]
fn reno_unpaced_cannot_grow_through_a_buffer_of_one_packet() {
    let share = utilisation_of("reno", "1packet", "40ms", "");
    assert_within("utilisation", share, 0.01, 0.05);
}

/// The window falls to 0.7 x 1.5 BDP, above the BDP. Source: RFC 9438, section 4.6.
#[test]
fn cubic_fills_a_link_with_half_a_bdp_of_buffer() {
    assert_within(
        "utilisation",
        drop_tail_utilisation("cubic", "0.5bdp"),
        0.98,
        1.0,
    );
}

/// Source: RFC 5681, section 3.1, with appropriate byte counting: one segment
/// per segment acked, so delayed ACKs do not slow it. Sampled 10 ms before
/// the end of rounds, when the last delayed ACK, 40 ms late, has come.
#[test]
fn slow_start_doubles_per_round_with_delayed_acks() {
    let output = run(r#"
duration = "1000ms"
sample_interval = "10ms"
[path]
rate = "unlimited"
rtt = "100ms"
[sender]
tcp_wmem_max = "1GiB"
[receiver]
tcp_rmem_max = "1GiB"
gro = false
rx_coalesce = "0s"
[[flow]]
algorithm = "reno"
"#);
    let samples = &output.samples;
    // The handshake takes the first 100 ms; the first window leaves then.
    for round in 0..9 {
        let t_ns = 190_000_000 + round * 100_000_000;
        // A row stands until the next: where nothing moves there is none.
        let row = samples.t_ns.partition_point(|&t| t <= t_ns) - 1;
        assert_eq!(
            samples.snd_cwnd[row],
            10 << round,
            "window in round {round}"
        );
    }
}

/// Source: Ha, Rhee: Computer Networks 55(9) 2011 (HyStart); the queue has room for
/// one BDP, so leaving on delay or on a train as long as the RTT comes before any drop.
#[test]
fn hystart_leaves_slow_start_before_a_queue_of_1_bdp_overflows() {
    for (rate, rtt) in [
        ("20Mbit/s", "40ms"),
        ("100Mbit/s", "40ms"),
        ("100Mbit/s", "100ms"),
        ("1Gbit/s", "20ms"),
    ] {
        let output = run(&format!(
            r#"
duration = "5s"
sample_interval = "1ms"
[path]
rate = "{rate}"
rtt = "{rtt}"
buffer = "1bdp"
{LARGE_BUFFERS}
[[flow]]
algorithm = "cubic"
"#
        ));
        let samples = &output.samples;
        let left = (0..samples.t_ns.len())
            .find(|&row| samples.snd_ssthresh[row] < NO_SSTHRESH)
            .expect("slow start ends within 5 s");
        let queue = &output.queue;
        let at = queue
            .t_ns
            .iter()
            .position(|&t| t == samples.t_ns[left])
            .expect("sampled together");
        assert_eq!(
            queue.dropped_pkts[at], 0,
            "{rate} x {rtt}: dropped before slow start ended"
        );
        assert_eq!(samples.ca_state[left], 0, "{rate} x {rtt}: left by a loss");
    }
}

fn bbr1_from_the_start(duration: &str) -> knee_sim::Output {
    run(&format!(
        r#"
duration = "{duration}"
sample_interval = "1ms"
[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "8bdp"
[[flow]]
algorithm = "bbr1"
"#
    ))
}

/// Source: Cardwell et al., CACM 60(2) 2017, figures 4 and 5 (10 Mbit/s, 40 ms).
/// STARTUP ends when ssthresh is set, which Linux does on entering DRAIN. Rounds
/// are counted in packets, as the algorithm does, from the first delivery rate
/// that is within 1.25 of the link's: nothing after it can grow by as much.
#[test]
fn bbr1_leaves_startup_within_3_rounds_of_the_plateau_and_drains_its_queue() {
    let output = bbr1_from_the_start("3s");
    let samples = &output.samples;
    let plateau = (0..samples.t_ns.len())
        .find(|&row| {
            samples.delivery_rate_bits_per_sec.get(row).unwrap() as f64
                >= 10e6 * PAYLOAD_SHARE / 1.25
        })
        .expect("the plateau is reached");
    let exit = (0..samples.t_ns.len())
        .find(|&row| samples.snd_ssthresh[row] < NO_SSTHRESH)
        .expect("STARTUP ends");
    let mut rounds = 0;
    let mut end_of_round = samples.delivered.get(plateau).unwrap() + samples.inflight[plateau];
    for row in plateau..=exit {
        if samples.delivered.get(row).unwrap() >= end_of_round {
            rounds += 1;
            end_of_round = samples.delivered.get(row).unwrap() + samples.inflight[row];
        }
    }
    println!(
        "plateau at {} ms, exit at {} ms, {rounds} rounds",
        samples.t_ns[plateau] / 1_000_000,
        samples.t_ns[exit] / 1_000_000
    );
    assert!(exit > plateau, "left before the plateau");
    assert!(rounds <= 3, "left {rounds} rounds after the plateau");

    // The window is 2.89 BDP and three bursts of two, rounded up to an even number;
    // the path holds one BDP of it. The BDP is of the least RTT: 40 ms and 1.2 ms on the wire.
    let bdp_pkts: f64 = 10e6 * 41.2e-3 / 8.0 / 1500.0;
    let most_pkts = ((2.887 * bdp_pkts).ceil() + 6.0 + 1.0) - bdp_pkts.floor();
    let queued = *output.queue.queue_bytes_max.iter().max().expect("sampled") as f64 / 1500.0;
    assert!(
        queued <= most_pkts,
        "STARTUP queued {queued} packets, more than its window less the path: {most_pkts}"
    );
    // DRAIN ends at one BDP and three bursts of two in flight. At 0.35 of the
    // bandwidth, 2 BDP of queue leave within about three RTTs, seen half of one later.
    let drained = (0..output.queue.t_ns.len())
        .find(|&row| {
            output.queue.t_ns[row] > samples.t_ns[exit] && output.queue.queue_pkts[row] <= 6
        })
        .expect("the queue drains");
    let took_ms = (output.queue.t_ns[drained] - samples.t_ns[exit]) as f64 / 1e6;
    assert_within("DRAIN, RTTs of 40 ms", took_ms / 40.0, 1.0, 4.5);
}

/// Source: Cardwell et al., CACM 60(2) 2017; draft-cardwell-iccrg-bbr-congestion-control-00,
/// section 4.3.5: every 10 s, at least 200 ms and a round with at most 4 in flight.
#[test]
fn bbr1_probes_the_rtt_every_10_s_for_200_ms() {
    let output = bbr1_from_the_start("65s");
    let samples = &output.samples;
    let mut probes: Vec<(i64, i64)> = Vec::new();
    let mut since = None;
    // The window is small at the start, too.
    for row in (0..samples.t_ns.len()).filter(|&row| samples.t_ns[row] > 1_000_000_000) {
        if samples.inflight[row] <= 4 {
            since.get_or_insert(samples.t_ns[row]);
        } else if let Some(start) = since.take() {
            probes.push((start, samples.t_ns[row] - start));
        }
    }
    println!("{probes:?}");
    probes.retain(|&(_, length_ns)| length_ns > 50_000_000);
    assert_eq!(probes.len(), 6, "probes within 65 s: {probes:?}");
    for &(_, length_ns) in &probes {
        // 200 ms from when the flight is small, a jiffy's rounding, and the last round.
        assert_within("PROBE_RTT, ms", length_ns as f64 / 1e6, 200.0, 300.0);
    }
    for pair in probes.windows(2) {
        assert_within(
            "between probes, s",
            (pair[1].0 - pair[0].0) as f64 / 1e9,
            10.0,
            10.6,
        );
    }
}

/// Socket buffers are out of the way, as in the paper: retransmissions lost again
/// hold back more than the 4 MiB that a sender has by default.
fn fig_8_goodput(algorithm: &str, loss: &str) -> f64 {
    let cell = common::cell(&format!(
        r#"
duration = "60s"
sample_interval = "1s"
[path]
rate = "100Mbit/s"
rtt = "100ms"
loss = "{loss}"
{LARGE_BUFFERS}
[[flow]]
algorithm = "{algorithm}"
"#
    ));
    let shares = (0..3).map(|rep| utilisation(&common::run_cell(&cell, rep, false), 100e6));
    shares.sum::<f64>() / 3.0
}

/// Source: Cardwell et al., CACM 60(2) 2017, figure 8: 60 s flows; mean of three runs.
#[test]
fn bbr1_keeps_85_pct_of_the_bound_at_5_pct_of_loss() {
    let share = fig_8_goodput("bbr1", "5%") / (1.0 - 0.05);
    assert_within("bbr1's goodput over rate x (1 - p)", share, 0.85, 1.0);
}

/// Source: the same figure: a tenth is left of CUBIC's at 0.1 %.
#[test]
fn cubic_falls_more_than_tenfold_at_a_loss_of_1_in_1000() {
    assert_within(
        "cubic's utilisation",
        fig_8_goodput("cubic", "0.1%"),
        0.005,
        0.1,
    );
}

/// Source: Linux net/ipv4/tcp_output.c, tcp_update_skb_after_send: the length
/// that pacing divides by the rate is the skb's without headers.
#[test]
fn pacing_counts_payload_so_that_the_wire_is_faster_by_the_headers() {
    for (algorithm, pacing) in [
        ("reno", "fq"),
        ("cubic", "internal"),
        ("bbr1", "fq"),
        ("bbr1", "internal"),
    ] {
        let output = run(&format!(
            r#"
duration = "8s"
[path]
rate = "1Gbit/s"
rtt = "20ms"
buffer = "4bdp"
[sender]
pacing = "{pacing}"
[[flow]]
algorithm = "{algorithm}"
max_pacing_rate = "50Mbit/s"
"#
        ));
        let queue = &output.queue;
        let last = queue.t_ns.len() - 1;
        let first = queue
            .t_ns
            .iter()
            .position(|&t| t >= 3_000_000_000)
            .expect("3 s are simulated");
        let wire = (queue.sent_bytes[last] - queue.sent_bytes[first]) as f64 * 8e9
            / (queue.t_ns[last] - queue.t_ns[first]) as f64;
        assert_within(
            &format!("{algorithm} with {pacing}: wire rate over pacing rate x 1500/1448"),
            wire / (50e6 / PAYLOAD_SHARE),
            0.99,
            1.01,
        );
    }
}
