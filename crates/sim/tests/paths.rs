//! Paths that are not even: what each key does to a flow, as far as it can be
//! told in advance.

use crate::common;

use crate::common::{PAYLOAD_SHARE, assert_within, run, run_captured};
use knee_path::impairment::{
    Form, IMPAIRMENTS, Impairment, ImpairmentKind, ImpairmentSpec, Impairments, Key, Passage,
    Stage, Value,
};
use knee_sim::Output;

/// One long flow over a path of these keys.
fn text(path: &str, flow: &str) -> String {
    format!(
        "duration = \"10s\"\nwarmup = \"2s\"\n[path]\n{path}\n[sender]\ntcp_wmem_max = \"64MiB\"\n\
         [[flow]]\nalgorithm = \"cubic\"\n{flow}"
    )
}

fn goodput_mbit(output: &Output) -> f64 {
    output.flows.goodput_bits_per_sec[0] / 1e6
}

#[test]
fn trace_carries_its_mean_rate() {
    // Packets of 1500 bytes use 1500 of an opportunity's 1504, and the next one
    // begins in the rest.
    let text = text(
        "rate = \"trace wifi\"\nrtt = \"20ms\"\nbuffer = \"4bdp\"",
        "",
    );
    let cell = common::cell(&text);
    let mean = cell.path.rate.expect("a trace has a mean").bits_per_sec() as f64;
    // Eight seconds from 2 s on are one turn of the trace.
    let utilisation = common::utilisation(&run(&text), mean);
    assert_within("share of the trace's mean rate", utilisation, 0.97, 1.0);
}

#[test]
fn no_more_leaves_than_a_trace_offered_in_the_run() {
    // A packet a ms in the first 11 s, and the trace's next after 100 s: its mean is a ninth of what the run gets.
    let uneven = |_: &str| {
        let lines: Vec<String> = (0..11_000).map(|ms| ms.to_string()).collect();
        Ok(format!("{}\n100000\n", lines.join("\n")))
    };
    for outage in ["", "\noutage = \"3s for 500ms\""] {
        let path =
            format!("rate = \"trace uneven.up\"\nrtt = \"20ms\"\nbuffer = \"100packets\"{outage}");
        let cell = common::cell_with_files(&text(&path, ""), uneven);
        let queue = common::run_cell(&cell, 0, false).queue;
        let rows: Vec<(i64, i64)> = (queue.sent_bytes.iter().copied())
            .zip((0..).map_while(|row| queue.offered_bytes.get(row)))
            .collect();
        for pair in rows.windows(2) {
            let [sent, offered] = [pair[1].0 - pair[0].0, pair[1].1 - pair[0].1];
            // What leaves at the very time of the first row counts after it.
            assert!(sent <= offered + 1_504, "{sent} of {offered}");
        }
        let (sent, offered) = rows[rows.len() - 1];
        assert_within(
            "share of what was offered",
            sent as f64 / offered as f64,
            0.95,
            1.0,
        );
    }
}

#[test]
fn nothing_leaves_in_an_outage_and_the_flow_comes_back() {
    let output = run(&text(
        "rate = \"20Mbit/s\"\nrtt = \"40ms\"\noutage = [\"3s for 500ms\", \"6s for 1s\"]",
        "",
    ));
    let queue = &output.queue;
    let sent_at = |ms: i64| {
        let row = queue.t_ns.iter().position(|&t_ns| t_ns >= ms * 1_000_000);
        queue.sent_pkts[row.expect("within the run")]
    };
    // A packet on the wire at the start is finished afterwards.
    for (start, end) in [(3_000, 3_500), (6_000, 7_000)] {
        assert_eq!(sent_at(start + 10), sent_at(end), "from {start} ms on");
        assert!(sent_at(end) < sent_at(end + 500), "after {end} ms");
    }
    assert!(
        output.flows.rto_count.get(0) >= Some(1),
        "{:?}",
        output.flows.rto_count
    );
    // What waited, a full buffer of 66 packets, leaves at 20 Mbit/s: 50 in 30 ms.
    let after = (sent_at(7_030) - sent_at(7_000)) as f64;
    assert_within("packets in 30 ms after the outage", after, 49.0, 51.0);
    assert!(sent_at(9_990) > sent_at(9_500), "it goes on");
}

/// The timeout marks all as lost, and takes it back when what the queue had held arrives; what did not fit into the queue
/// is then found by RACK.
#[test]
fn what_an_outage_lost_is_found_although_its_timeout_was_taken_back() {
    let output = run(&text(
        "rate = \"5Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"1bdp\"\noutage = \"4s for 3s\"",
        "",
    ));
    let samples = &output.samples;
    let acked_at = |ms: i64| {
        let row = samples.t_ns.iter().position(|&t_ns| t_ns >= ms * 1_000_000);
        let row = row.expect("within the run");
        samples.bytes_acked.get(row).expect("the simulator tells") as f64
    };
    let rate = (acked_at(9_500) - acked_at(7_500)) * 8.0 / 2.0;
    let share = rate / (5e6 * PAYLOAD_SHARE);
    assert_within("share of the link, after the outage", share, 0.95, 1.05);
}

#[test]
fn route_change_moves_the_round_trip_time_of_every_flow() {
    let output = run_captured(&text(
        "rate = \"10Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"20packets\"\nrtt_change = \"5s to 90ms\"",
        "max_pacing_rate = \"1Mbit/s\"\n[[flow]]\nalgorithm = \"reno\"\nrtt = \"60ms\"\nmax_pacing_rate = \"1Mbit/s\"",
    ));
    let srtt_ms = |flow: i32, second: i64| {
        let mut rows = common::rows_of(&output.samples, flow);
        let row = rows.find(|&row| output.samples.t_ns[row] >= second * 1_000_000_000);
        output.samples.srtt_us[row.expect("a flow is sampled")] as f64 / 1e3
    };
    // Transmission, interrupts and delayed ACKs add some ms.
    assert_within("flow of 40 ms before, ms", srtt_ms(0, 4), 40.0, 46.0);
    assert_within("flow of 60 ms before, ms", srtt_ms(1, 4), 60.0, 66.0);
    assert_within("flow of 90 ms after, ms", srtt_ms(0, 9), 90.0, 96.0);
    assert_within("flow of 110 ms after, ms", srtt_ms(1, 9), 110.0, 116.0);
}

#[test]
fn jitter_that_keeps_order_reorders_nothing() {
    let path = |keys: &str| {
        text(
            &format!(
                "rate = \"20Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"unlimited\"\njitter = \"3ms\"\n{keys}"
            ),
            "max_pacing_rate = \"10Mbit/s\"",
        )
    };
    let kept = run(&path(""));
    assert_eq!(kept.flows.total_retrans[0], 0);
    assert!(
        kept.samples
            .reord_seen
            .iter()
            .flatten()
            .all(|seen| seen == 0)
    );
    let loose = run(&path("jitter_reorders = true"));
    assert!(
        loose
            .samples
            .reord_seen
            .iter()
            .flatten()
            .any(|seen| seen > 0)
    );
}

#[test]
fn packets_that_overtake_are_seen_as_reordering() {
    let output = run(&text(
        "rate = \"20Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"unlimited\"\nreorder = \"2%\"\nreorder_delay = \"5ms\"",
        "max_pacing_rate = \"10Mbit/s\"",
    ));
    assert!(
        output
            .samples
            .reord_seen
            .iter()
            .flatten()
            .any(|seen| seen > 0)
    );
    assert_within(
        "Mbit/s paced at 10",
        goodput_mbit(&output),
        10.0 * PAYLOAD_SHARE * 0.97,
        10.0,
    );
}

#[test]
fn duplicates_are_told_by_dsack_and_change_no_rate() {
    let output = run(&text(
        "rate = \"20Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"unlimited\"\nduplicate = \"1%\"",
        "max_pacing_rate = \"10Mbit/s\"",
    ));
    let account = &output.accounts[0];
    let share = account.duplicated_bytes as f64 / account.sent_bytes as f64;
    assert_within("share of bytes that come twice", share, 0.007, 0.013);
    let told = output.samples.dsack_dups.last().unwrap().unwrap();
    assert!(
        told as u64 * 1_448 * 10 > account.duplicated_bytes * 9,
        "{told}"
    );
    assert_eq!(output.flows.total_retrans[0], 0);
}

/// Without GRO an ACK stands for two packets of 1448 bytes at most. As long as none is dropped, two for each of the 48
/// ACKs of 52 bytes that 20 kbit/s carry in a second are the most that can be sent into a window that does not grow.
#[test]
fn slow_link_for_acks_bounds_the_data_rate_where_no_ack_is_dropped() {
    let path = "rate = \"100Mbit/s\"\nrtt = \"40ms\"\nack_rate = \"20kbit/s\"\nack_buffer = \"unlimited\"\n[receiver]\ngro = false";
    let output = run(&text(path, "window_clamp = \"64KiB\"")
        .replace("duration = \"10s\"", "duration = \"30s\"")
        .replace("warmup = \"2s\"", "warmup = \"10s\""));
    let bound = 20e3 / (52.0 * 8.0) * 2.0 * 1448.0 * 8.0 / 1e6;
    assert_within(
        "goodput over the bound",
        goodput_mbit(&output) / bound,
        0.85,
        1.0,
    );
}

/// A later ACK stands for those that were dropped, so the rate of the ACKs is no bound there. They wait, and come in
/// longer intervals.
#[test]
fn slow_link_for_acks_that_drops_some_delays_them_and_lowers_the_data_rate() {
    let slow = run(&text(
        "rate = \"100Mbit/s\"\nrtt = \"40ms\"\nack_rate = \"20kbit/s\"\nack_buffer = \"5packets\"",
        "",
    ));
    let open = run(&text("rate = \"100Mbit/s\"\nrtt = \"40ms\"", ""));
    let delay_ms = slow.flows.srtt_us_mean.get(0).expect("it ran") / 1e3 - 40.0;
    // Five ACKs wait, one is on the wire: 6 × 20.8 = 125 ms. The data's own queue is 11 ms.
    assert_within("ms that round trips are longer", delay_ms, 125.0, 165.0);
    assert!(goodput_mbit(&open) > 85.0, "{}", goodput_mbit(&open));
    assert!(goodput_mbit(&slow) < goodput_mbit(&open));
}

/// Data waits for half an interval in the mean. It arrives 20 ms after a multiple of 10 ms, and so does its ACK, which
/// is just too late for its own and waits for a whole one.
#[test]
fn aggregation_adds_half_an_interval_to_data_and_a_whole_one_to_its_ack() {
    let srtt_ms = |keys: &str| {
        let output = run(&text(
            &format!("rate = \"20Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"unlimited\"\n{keys}"),
            "max_pacing_rate = \"5Mbit/s\"",
        ));
        output.flows.srtt_us_mean.get(0).expect("it ran") / 1e3
    };
    let added = srtt_ms("aggregate = \"10ms\"") - srtt_ms("");
    assert_within("ms more", added, 14.0, 15.0);
}

#[test]
fn on_off_traffic_takes_its_share_of_the_time() {
    let output = run(&text(
        "rate = \"10Mbit/s\"\nrtt = \"10ms\"",
        "workload = \"on-off\"\non = \"300ms\"\noff = \"700ms\"",
    ));
    // On for 30 % of the time; what it has written by then, a send buffer of some
    // windows, is still sent.
    let full = 10.0 * PAYLOAD_SHARE;
    assert_within("Mbit/s", goodput_mbit(&output), 0.28 * full, 0.45 * full);
    let queue = &output.queue;
    let quiet = queue
        .sent_pkts
        .windows(2)
        .filter(|two| two[0] == two[1])
        .count();
    assert_within(
        "share of quiet samples",
        quiet as f64 / queue.sent_pkts.len() as f64,
        0.5,
        0.72,
    );
}

/// sent + duplicated = arrived + dropped + under way, of every flow; and data gets through.
fn assert_books_balance(what: &str, output: &Output) {
    for account in &output.accounts {
        assert_eq!(
            account.sent_bytes + account.duplicated_bytes,
            account.arrived_bytes + account.dropped_bytes + account.under_way_bytes,
            "{what}: {account:?}"
        );
        assert!(account.read_bytes > 100_000, "{what}: {account:?}");
    }
}

/// Two seconds of two flows over this impairment, behind a link with a rate or without one.
fn impaired(rate: &str, spec: ImpairmentSpec) -> Output {
    let mut cell = common::cell(&format!(
        "duration = \"2s\"\n[path]\nrate = \"{rate}\"\nrtt = \"20ms\"\n\
         [[flow]]\nalgorithm = \"cubic\"\nmax_pacing_rate = \"4Mbit/s\"\ncount = 2\n"
    ));
    cell.path.impairments = Impairments::NONE.with(spec);
    common::run_cell(&cell, 0, false)
}

#[test]
fn books_balance_behind_every_impairment() {
    for rate in ["10Mbit/s", "unlimited"] {
        for kind in IMPAIRMENTS {
            let output = impaired(rate, ImpairmentSpec::example(kind));
            assert_books_balance(kind.name, &output);
        }
    }
}

/// Takes every fiftieth packet.
struct Gaps(u32);

impl Impairment for Gaps {
    fn act(&mut self, passage: &mut Passage) {
        self.0 += 1;
        if self.0.is_multiple_of(50) {
            passage.copies = 0;
        }
    }
}

#[test]
fn packet_that_an_impairment_takes_is_lost_on_the_path_in_both_directions() {
    static GAPS: ImpairmentKind = ImpairmentKind {
        name: "gaps",
        summary: "every fiftieth packet is lost",
        source: "this test",
        keys: &[Key {
            name: "gaps",
            form: Form::Flag,
            default: Value::Flag(false),
            example: Value::Flag(true),
            doc: "",
            source: "",
        }],
        stage: Stage::Arrival,
        both_ways: true,
        is_random: false,
        keeps_order: |_| true,
        netem: None,
        build: |_, _| Box::new(Gaps(0)),
    };
    let output = impaired("10Mbit/s", ImpairmentSpec::example(&GAPS));
    assert_books_balance(GAPS.name, &output);
    let lost: i64 = output.flows.path_lost_pkts.iter().flatten().sum();
    let sent: u64 = output.accounts.iter().map(|flow| flow.sent_bytes).sum();
    assert_within(
        "packets lost per packet sent",
        lost as f64 * common::MSS_BYTES as f64 / sent as f64,
        0.018,
        0.022,
    );
}

/// Source: tc-netem(8), as the qdisc of a host that sends: it draws for a TSO packet before the NIC cuts it.
#[test]
fn super_packet_is_lost_as_a_whole_and_as_often_as_asked() {
    // A shallow queue at rest and bbr1, which sends on: packets are lost on the path alone. With jitter they enter one by one.
    let lost = |loss: &str, path: &str| {
        let output = run(&format!(
            "duration = \"8s\"\nsample_interval = \"1ms\"\n[path]\nrate = \"1Gbit/s\"\nrtt = \"20ms\"\nbuffer = \"4bdp\"\n\
             loss = \"{loss}\"\n{path}[[flow]]\nalgorithm = \"bbr1\"\n"
        ));
        assert_books_balance(loss, &output);
        let queue = &output.queue;
        let [lost, sent] =
            [&queue.lost_pkts, &queue.sent_pkts].map(|of| *of.last().expect("sampled"));
        assert_eq!(output.flows.path_lost_pkts.get(0).unwrap(), lost);
        assert_within(
            "share lost",
            lost as f64 / (lost + sent) as f64,
            0.007,
            0.013,
        );
        let steps = queue.lost_pkts.windows(2).map(|two| two[1] - two[0]);
        steps.max().expect("sampled")
    };
    for path in ["", "jitter = \"100us\"\n"] {
        let (whole, single) = (lost("super-packets 1%", path), lost("1%", path));
        assert!(
            whole > 2 * single,
            "{path}: {whole} at once, {single} of single packets"
        );
    }
}
