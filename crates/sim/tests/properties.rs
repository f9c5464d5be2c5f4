//! What must hold of every run, whatever the scenario.
//!
//! Method: thousands of random scenarios, as text, through the parser and the
//! simulator: 1-4 groups of flows, all algorithms and workloads, rates of
//! 100 kbit/s to 1 Gbit/s and none, RTTs of 0.1-300 ms, hardly any buffer or a lot,
//! loss up to half of the packets, independent and in bursts, a third of the paths
//! uneven (jitter, reordering, duplicates, outages, route changes, aggregation, slow
//! links for ACKs), some at the rate of a trace, a fourth of two or three such hops of which
//! each flow crosses some, small socket buffers, offloads on and off.
//! Each is as long as some thousands of packets take. The generator's seed is
//! fixed, so that a failure is everyone's failure; PROPTEST_CASES asks for more cases.

mod common;

use std::collections::BTreeMap;

use common::run_cell;
use knee_model::queue::QUEUES;
use knee_model::record::{Table, Values};
use knee_model::scenario::{BufferLimit, Cell, WorkloadSpec};
use knee_model::units::Nanos;
use knee_sim::{Options, Output};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Rounds of 16,384 events that no scenario of the generator comes near.
const MOST_PROGRESS_CALLS: u32 = 400;

fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").is_ok();
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: if asked { default.cases } else { cases },
        rng_seed: RngSeed::Fixed(20_240_913),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..default
    }
}

// ---- the generator ---------------------------------------------------------

fn log_uniform(low: f64, high: f64) -> impl Strategy<Value = u64> {
    (low.ln()..high.ln()).prop_map(|x| x.exp().round() as u64)
}

fn loss() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("0%".to_owned()),
        3 => (1u32..=500).prop_map(|tenths| format!("{}%", f64::from(tenths) / 10.0)),
        2 => (1u32..=500).prop_map(|tenths| format!("periodic {}%", f64::from(tenths) / 10.0)),
        1 => (1u32..=500, 1u32..=40)
            .prop_map(|(tenths, burst)| format!("gilbert {}% burst {burst}", f64::from(tenths) / 10.0)),
    ]
}

/// A buffer as a function of rate, RTT and MTU: the parser refuses one that holds no packet.
#[derive(Clone, Copy, Debug)]
enum Buffer {
    Packets(u32),
    Bytes(u64),
    HundredthsOfBdp(u64),
    Ms(u64),
}

impl Buffer {
    fn text(self, rate_kbit: u64, rtt_us: u64, mtu: u32) -> String {
        let holds_one = |time_us: u64| rate_kbit * time_us / 8_000 > u64::from(mtu);
        match self {
            Buffer::Packets(n) => format!("{n}packets"),
            Buffer::Bytes(n) => format!("{}B", n + u64::from(mtu)),
            Buffer::HundredthsOfBdp(n) if holds_one(rtt_us * n / 100) => {
                format!("{}bdp", n as f64 / 100.0)
            }
            Buffer::Ms(n) if holds_one(n * 1_000) => format!("{n}ms"),
            Buffer::HundredthsOfBdp(_) | Buffer::Ms(_) => "1packet".to_owned(),
        }
    }
}

fn buffer() -> impl Strategy<Value = Buffer> {
    prop_oneof![
        (1u32..=200).prop_map(Buffer::Packets),
        log_uniform(1.0, 1e6).prop_map(Buffer::Bytes),
        (1u64..=800).prop_map(Buffer::HundredthsOfBdp),
        (1u64..=100).prop_map(Buffer::Ms),
    ]
}

fn queue() -> impl Strategy<Value = &'static str> {
    let names: Vec<_> = QUEUES.iter().map(|kind| kind.name).collect();
    proptest::sample::select(names)
}

fn algorithm() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(common::algorithms().collect::<Vec<_>>())
}

/// Three sizes in order: least, initial, largest.
fn memory(name: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        [log_uniform(4_096.0, 1e6), log_uniform(4_096.0, 1e6), log_uniform(4_096.0, 1e7)].prop_map(
            move |mut bytes| {
                bytes.sort_unstable();
                let [min, default, max] = bytes;
                format!("{name}_min = \"{min}B\"\n{name}_default = \"{default}B\"\n{name}_max = \"{max}B\"\n")
            }
        ),
    ]
}

/// A host's table; both sides take the same keys.
fn host() -> impl Strategy<Value = String> {
    (
        memory("tcp_wmem"),
        memory("tcp_rmem"),
        proptest::sample::select(vec![100, 250, 300, 1000]),
        any::<bool>(),
        prop_oneof![2 => Just(20u32), 1 => Just(0), 1 => 1..=200u32],
        (prop_oneof![2 => Just(65_536u32), 1 => Just(0), 1 => 9_000..=200_000u32], any::<bool>()),
        proptest::sample::select(vec!["internal", "fq"]),
        prop_oneof![2 => Just(10u32), 1 => 1..=100u32],
        any::<bool>(),
    )
        .prop_map(
            |(wmem, rmem, hz, gro, coalesce_us, (gso_bytes, grow_skb), pacing, initcwnd, after_idle)| {
                format!(
                    "{wmem}{rmem}hz = {hz}\ngro = {gro}\nrx_coalesce = \"{coalesce_us}us\"\n\
                 gso_max = \"{gso_bytes}B\"\ngrow_skb = {grow_skb}\npacing = \"{pacing}\"\ninitcwnd = {initcwnd}\n\
                 tcp_slow_start_after_idle = {after_idle}\n"
                )
            },
        )
}

fn workload() -> impl Strategy<Value = String> {
    let write = || prop_oneof![Just(131_072u64), log_uniform(1.0, 3e5)];
    prop_oneof![
        3 => Just("workload = \"bulk\"\n".to_owned()),
        1 => (log_uniform(1e3, 1e6), log_uniform(1e3, 1e6)).prop_map(|(on_us, off_us)| {
            format!("workload = \"on-off\"\non = \"{on_us}us\"\noff = \"{off_us}us\"\n")
        }),
        // Small writes make an event each: few bytes in those.
        3 => (log_uniform(1.0, 3e6), write()).prop_map(|(bytes, write)| {
            let bytes = bytes.min(write * 2_000);
            format!("workload = \"transfer\"\nbytes = \"{bytes}B\"\nwrite = \"{write}B\"\n")
        }),
        1 => (1.0..20.0f64, log_uniform(1.0, 1e4)).prop_map(|(per_sec, from)| {
            format!("workload = \"web\"\narrivals = \"{per_sec:.2}/s\"\nsizes = \"pareto from {from}B to 3MB\"\n")
        }),
        3 => (log_uniform(1.0, 1e5), log_uniform(1.0, 1e5), 1..=3u32, 1..=8u32, prop_oneof![
            Just("\"unlimited\"".to_owned()),
            (1..=50u32).prop_map(|n| n.to_string()),
        ])
            .prop_map(|(request, response, connections, depth, requests)| format!(
                "workload = \"request-response\"\nrequest = \"{request}B\"\nresponse = \"{response}B\"\n\
                 connections = {connections}\ndepth = {depth}\nrequests = {requests}\n"
            )),
    ]
}

/// A flow's table, its start and its stagger in per cent of the run.
fn flow() -> impl Strategy<Value = (String, u64, u64)> {
    (
        algorithm(),
        workload(),
        1..=3u32,
        prop_oneof![2 => Just(0u64), 1 => 0u64..=90],
        0u64..=3,
        prop_oneof![
            3 => Just(String::new()),
            1 => log_uniform(100.0, 3e5).prop_map(|us| format!("rtt = \"{us}us\"\n")),
        ],
        prop_oneof![
            4 => Just(String::new()),
            1 => log_uniform(100.0, 1e6).prop_map(|k| format!("max_pacing_rate = \"{k}kbit/s\"\n")),
        ],
    )
        .prop_map(
            |(algorithm, workload, count, start_pct, stagger_pct, rtt, max_pacing_rate)| {
                let text = format!(
                    "[[flow]]\nalgorithm = \"{algorithm}\"\n{workload}count = {count}\n\
                     {rtt}{max_pacing_rate}"
                );
                (text, start_pct, stagger_pct)
            },
        )
}

/// How a rate is written, and what it is in kbit/s; `None`: unlimited.
fn rate() -> impl Strategy<Value = (String, Option<u64>)> {
    prop_oneof![
        9 => log_uniform(100.0, 1e6).prop_map(|kbit| (format!("{kbit}kbit/s"), Some(kbit))),
        1 => Just(("unlimited".to_owned(), None)),
        2 => proptest::sample::select(vec![("cellular", 4_394), ("wifi", 12_829), ("satellite", 3_679)])
            .prop_map(|(name, kbit)| (format!("trace {name}"), Some(kbit))),
    ]
}

/// What makes a path uneven; times that depend on the run's length are in per cent of it.
#[derive(Clone, Debug)]
struct Uneven {
    keys: String,
    outage_pct: Option<(u64, u64)>,
    route: Option<(u64, u64)>,
}

fn uneven() -> impl Strategy<Value = Uneven> {
    fn maybe(text: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
        prop_oneof![2 => Just(String::new()), 1 => text]
    }
    let some = (
        maybe((log_uniform(1.0, 5e4), any::<bool>(), any::<bool>()).prop_map(|(us, normal, reorders)| {
            let distribution = if normal { "normal" } else { "uniform" };
            format!(
                "jitter = \"{us}us\"\njitter_distribution = \"{distribution}\"\njitter_reorders = {reorders}\n"
            )
        })),
        maybe((1u32..=500, log_uniform(1.0, 5e4)).prop_map(|(tenths, us)| {
            format!("reorder = \"{}%\"\nreorder_delay = \"{us}us\"\n", f64::from(tenths) / 10.0)
        })),
        maybe((1u32..=500).prop_map(|tenths| format!("duplicate = \"{}%\"\n", f64::from(tenths) / 10.0))),
        maybe(log_uniform(1.0, 2e4).prop_map(|us| format!("aggregate = \"{us}us\"\n"))),
        maybe((log_uniform(20.0, 1e5), 1u32..=200).prop_map(|(kbit, packets)| {
            format!("ack_rate = \"{kbit}kbit/s\"\nack_buffer = \"{packets}packets\"\n")
        })),
        prop_oneof![2 => Just(None), 1 => (0u64..=90, 1u64..=40).prop_map(Some)],
        prop_oneof![2 => Just(None), 1 => (0u64..=90, log_uniform(100.0, 3e5)).prop_map(Some)],
    );
    prop_oneof![
        2 => Just(Uneven { keys: String::new(), outage_pct: None, route: None }),
        1 => some.prop_map(|(jitter, reorder, duplicate, aggregate, ack, outage_pct, route)| Uneven {
            keys: jitter + &reorder + &duplicate + &aggregate + &ack,
            outage_pct,
            route,
        }),
    ]
}

fn scenario() -> impl Strategy<Value = String> {
    (
        rate(),
        log_uniform(100.0, 3e5),
        (buffer(), queue()),
        (loss(), loss()),
        uneven(),
        host(),
        host(),
        proptest::collection::vec(flow(), 1..=4),
        0.05..1.0f64,
        0u32..=50,
        any::<u32>(),
        prop_oneof![3 => Just(1500u32), 1 => 576..=9000u32],
    )
        .prop_map(
            |((rate, rate_kbit), rtt_us, (buffer, queue), (loss, ack_loss), uneven, sender, receiver, flows, length, warmup_pct, seed, mtu)| {
                let n_hops = [1, 1, 1, 1, 1, 1, 2, 3][seed as usize % 8];
                // As long as 3,000 packets take, or six round trips, and not forever.
                let packets_us = rate_kbit.map_or(0, |kbit| 3_000 * 12_000_000 / (kbit * 1_000));
                let most_us = packets_us.max(6 * rtt_us).min(20_000_000);
                let duration_us = ((most_us as f64 * length) as u64).max(10);
                let warmup_us = duration_us * u64::from(warmup_pct) / 100;
                let sample_us = (duration_us / 20).max(10);
                let flow_tables: String = flows
                    .into_iter()
                    .enumerate()
                    .map(|(number, (text, start_pct, stagger_pct))| {
                        let hops = hops_crossed(n_hops, seed as usize + number, &text);
                        format!(
                            "{text}{hops}start = \"{}us\"\nstagger = \"{}us\"\n",
                            duration_us * start_pct / 100,
                            duration_us * stagger_pct / 100
                        )
                    })
                    .collect();
                let mut link = format!("rate = \"{rate}\"\n{}", uneven.keys);
                if let Some(kbit) = rate_kbit {
                    link += &format!("buffer = \"{}\"\n", buffer.text(kbit, rtt_us, mtu));
                }
                if let Some((start_pct, length_pct)) = uneven.outage_pct {
                    let (start_us, length_us) = (duration_us * start_pct / 100, duration_us * length_pct / 100);
                    link += &format!("outage = [\"{start_us}us for {}us\"]\n", length_us.max(1));
                }
                if let Some((at_pct, rtt_us)) = uneven.route {
                    link += &format!("rtt_change = \"{}us to {rtt_us}us\"\n", duration_us * at_pct / 100);
                }
                let hop = format!(
                    "{link}queue = \"{queue}\"\nrtt = \"{rtt_us}us\"\nloss = \"{loss}\"\nack_loss = \"{ack_loss}\"\n"
                );
                let hops = match n_hops {
                    1 => hop,
                    n => format!("[[hop]]\n{hop}").repeat(n),
                };
                let (before, after) = if n_hops == 1 { (hops.as_str(), "") } else { ("", hops.as_str()) };
                format!(
                    "duration = \"{duration_us}us\"\nwarmup = \"{warmup_us}us\"\nseed = {seed}\n\
                     sample_interval = \"{sample_us}us\"\n\
                     [path]\n{before}mtu = \"{mtu}B\"\n{after}\
                     [sender]\n{sender}[receiver]\n{receiver}{}",
                    flow_tables
                )
            },
        )
}

/// The hops that a flow crosses, of so many; a flow with an RTT of its own crosses one,
/// because several may take longer.
fn hops_crossed(n_hops: usize, choice: usize, flow: &str) -> String {
    if n_hops == 1 {
        return String::new();
    }
    let first = choice % n_hops;
    let more = match flow.contains("\nrtt = ") {
        true => 0,
        false => choice / n_hops % (n_hops - first),
    };
    format!("hops = \"{}..{}\"\n", first + 1, first + more + 1)
}

// ---- what must hold ----------------------------------------------------------

/// Runs within the event budget.
fn run_bounded(cell: &Cell, capture: bool) -> Result<Output, TestCaseError> {
    let mut calls = 0;
    let output = knee_sim::run(cell, 0, &Options { capture }, &mut |_| {
        calls += 1;
        calls < MOST_PROGRESS_CALLS
    });
    prop_assert!(calls < MOST_PROGRESS_CALLS, "the run does not end");
    output.map_err(|error| TestCaseError::fail(error.to_string()))
}

fn no_value_is_negative_or_not_finite<T: Table>(table: &T) -> Result<(), TestCaseError> {
    for (column, values) in T::COLUMNS.iter().zip(table.values()) {
        let bad = match values {
            Values::I32(values) => values.iter().position(|v| *v < 0),
            Values::I64(values) => values.iter().position(|v| *v < 0),
            Values::F64(values) => values.iter().position(|v| !v.is_finite() || *v < 0.0),
            Values::OptI64(values) => values.iter().position(|v| v.is_some_and(|v| v < 0)),
            Values::OptF64(values) => values
                .iter()
                .position(|v| v.is_some_and(|v| !v.is_finite() || v < 0.0)),
            Values::Bool(_) | Values::Text(_) | Values::Name(_) => None,
        };
        prop_assert!(
            bad.is_none(),
            "{}.{} in row {}: {:?}",
            T::NAME,
            column.name,
            bad.unwrap_or(0),
            values
        );
        let rows = match values {
            Values::I32(values) => values.len(),
            Values::I64(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::Bool(values) => values.len(),
            Values::OptI64(values) => values.len(),
            Values::OptF64(values) => values.len(),
            Values::Text(values) => values.len(),
            Values::Name(values) => values.len(),
        };
        prop_assert_eq!(rows, table.rows(), "{}.{}", T::NAME, column.name);
    }
    Ok(())
}

/// sent + duplicated = arrived + dropped + under way; nothing is read that was not written,
/// and nothing twice.
fn every_byte_is_accounted_for(cell: &Cell, output: &Output) -> Result<(), TestCaseError> {
    let flows = &output.flows;
    prop_assert_eq!(output.accounts.len(), flows.rows());
    let connections = cell.connections(0);
    for (flow, account) in output.accounts.iter().enumerate() {
        prop_assert_eq!(
            account.sent_bytes + account.duplicated_bytes,
            account.arrived_bytes + account.dropped_bytes + account.under_way_bytes,
            "flow {}: {:?}",
            flow,
            account
        );
        prop_assert!(
            account.read_bytes <= account.written_bytes,
            "flow {flow}: {account:?}"
        );
        prop_assert!(
            account.read_bytes <= account.arrived_bytes,
            "flow {flow}: {account:?}"
        );
        prop_assert_eq!(account.read_bytes as i64, flows.bytes_read[flow]);
        prop_assert_eq!(account.sent_bytes as i64, flows.bytes_sent[flow].unwrap());
        // As in Linux, bytes_acked counts SYN and FIN, too: RFC 4898's HCThruOctetsAcked.
        let payload_acked = flows.bytes_acked[flow].unwrap() - 2;
        let new_bytes = flows.bytes_sent[flow].unwrap() - flows.bytes_retrans[flow].unwrap();
        prop_assert!(
            payload_acked <= new_bytes,
            "flow {flow}: acked what was not sent"
        );
        prop_assert!(
            payload_acked <= flows.bytes_read[flow],
            "flow {flow}: acked what was not read"
        );
        prop_assert!(
            new_bytes <= account.written_bytes as i64,
            "flow {flow}: sent what was not written"
        );
        // A bare FIN that is sent again is a retransmission and, as in Linux, no data; a timeout,
        // a probe or a recovery sends it.
        let timers = [&flows.rto_count, &flows.tlp_count, &flows.recovery_count];
        let fins: i64 = timers.iter().filter_map(|count| count[flow]).sum();
        prop_assert!(flows.total_retrans[flow] <= flows.data_segs_out[flow].unwrap() + fins);

        let spec = &cell.flows[flows.group[flow] as usize];
        match spec.workload {
            WorkloadSpec::Bulk { .. }
            | WorkloadSpec::OnOff { .. }
            | WorkloadSpec::Programs { .. } => {}
            WorkloadSpec::Transfer { bytes, .. } => {
                prop_assert!(account.written_bytes <= bytes);
                prop_assert_eq!(
                    flows.completion_us[flow].is_some(),
                    account.read_bytes == bytes,
                    "flow {}: {:?}",
                    flow,
                    account
                );
            }
            WorkloadSpec::Web { .. } => {
                prop_assert!(account.written_bytes <= connections[flow].bytes);
                prop_assert_eq!(
                    flows.completion_us[flow].is_some(),
                    account.read_bytes == connections[flow].bytes
                );
            }
            WorkloadSpec::RequestResponse {
                response_bytes,
                requests,
                ..
            } => {
                if let Some(requests) = requests {
                    prop_assert!(account.written_bytes <= requests * response_bytes);
                }
                let answered = flows.requests[flow].expect("a request/response workload counts");
                prop_assert!(answered as u64 * response_bytes <= account.read_bytes);
            }
        }
        if let Some(end_ns) = flows.end_ns[flow] {
            prop_assert!(end_ns >= flows.start_ns[flow] && end_ns as u64 <= cell.duration.0);
        }
    }
    Ok(())
}

/// The link carries no more than its rate, the queue holds no more than its
/// limit, and every packet that entered is somewhere.
fn the_path_keeps_its_bounds(cell: &Cell, output: &Output) -> Result<(), TestCaseError> {
    let queue = &output.queue;
    for (number, path) in cell.hops().enumerate() {
        let rows: Vec<usize> = (0..queue.rows())
            .filter(|&row| queue.hop[row] as usize == number)
            .collect();
        let last = *rows.last().expect("every hop is sampled at the end");
        // Of several hops the bytes' account alone tells what entered each.
        if cell.further.is_empty() {
            let outbound = output.capture.iter().filter(|packet| packet.outbound);
            let entered = outbound.count() as i64;
            let found = queue.sent_pkts[last]
                + queue.dropped_pkts[last]
                + queue.lost_pkts[last]
                + queue.queue_pkts[last];
            // One more may be on the wire.
            prop_assert!(
                entered == found || entered == found + 1,
                "{entered} entered, {found} found"
            );
        }
        if let Some(rate) = path.rate.filter(|_| path.rate_trace.is_none()) {
            let most_bits = rate.bits_per_sec() as f64 * cell.duration.0 as f64 / 1e9;
            prop_assert!(
                queue.sent_bytes[last] as f64 * 8.0 <= most_bits + 1.0,
                "faster than the link"
            );
        }
        let most = match path.buffer {
            BufferLimit::Unlimited => None,
            BufferLimit::Bytes(bytes) => Some(bytes),
            BufferLimit::Packets(packets) => {
                Some(u64::from(packets) * u64::from(path.mtu_bytes + path.overhead_bytes))
            }
        };
        if let (Some(most), Some(_)) = (most, path.rate) {
            prop_assert!(
                rows.iter()
                    .all(|&row| queue.queue_bytes_max[row] as u64 <= most),
                "more than the buffer holds"
            );
        }
    }
    Ok(())
}

/// Linux's identity of packets in flight; counters never fall; a flow's time
/// has one limit at a time.
fn the_senders_books_are_in_order(output: &Output) -> Result<(), TestCaseError> {
    let samples = &output.samples;
    let mut last_row: BTreeMap<i32, usize> = BTreeMap::new();
    let events = &output.events;
    let mut undone_ns: BTreeMap<i32, i64> = BTreeMap::new();
    for row in (0..events.rows()).filter(|&row| events.event[row] == "undo") {
        undone_ns
            .entry(events.flow[row])
            .or_insert(events.t_ns[row]);
    }
    for row in 0..samples.rows() {
        prop_assert_eq!(
            samples.inflight[row],
            samples.unacked[row] - samples.sacked[row] - samples.lost[row] + samples.retrans[row]
        );
        prop_assert!(samples.sacked[row] + samples.lost[row] <= samples.unacked[row]);
        // What was retransmitted was marked lost, and a SACK ends both. But an undo
        // takes the marks and leaves the retransmissions: SACKed later, such a packet
        // counts as both until it is acknowledged or reported as a duplicate
        // (Linux tcp_undo_cwnd_reduction(), tcp_sacktag_one()).
        let undone = undone_ns.get(&samples.flow[row]);
        let sacked_too = undone.is_some_and(|&t_ns| t_ns <= samples.t_ns[row]);
        let others = if sacked_too { 0 } else { samples.sacked[row] };
        prop_assert!(samples.retrans[row] <= samples.unacked[row] - others);
        prop_assert!(samples.snd_cwnd[row] >= 1);
        prop_assert!(samples.snd_ssthresh[row] >= 1);
        if let Some(before) = last_row.insert(samples.flow[row], row) {
            for (name, column) in [
                ("total_retrans", &samples.total_retrans),
                ("bytes_read", &samples.bytes_read),
            ] {
                prop_assert!(column[before] <= column[row], "{name} fell in row {row}");
            }
            // Null is for kernels that do not tell; the simulator always does.
            for (name, column) in [
                ("data_segs_out", &samples.data_segs_out),
                ("delivered", &samples.delivered),
                ("bytes_sent", &samples.bytes_sent),
                ("bytes_retrans", &samples.bytes_retrans),
                ("bytes_acked", &samples.bytes_acked),
                ("busy_us", &samples.busy_us),
                ("rwnd_limited_us", &samples.rwnd_limited_us),
                ("sndbuf_limited_us", &samples.sndbuf_limited_us),
                ("dsack_dups", &samples.dsack_dups),
            ] {
                prop_assert!(
                    column[before].is_some() && column[row].is_some(),
                    "{name} is null near row {row}"
                );
                prop_assert!(column[before] <= column[row], "{name} fell in row {row}");
            }
        }
    }
    for (&flow, &row) in &last_row {
        prop_assert!(
            samples.rwnd_limited_us[row].unwrap() + samples.sndbuf_limited_us[row].unwrap()
                <= samples.busy_us[row].unwrap() + 2,
            "flow {flow} was limited while not busy"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(5_000))]
    #[test]
    fn every_run_ends_and_its_books_balance(text in scenario()) {
        let cell = common::cell(&text);
        let output = run_bounded(&cell, true)?;
        no_value_is_negative_or_not_finite(&output.flows)?;
        no_value_is_negative_or_not_finite(&output.samples)?;
        no_value_is_negative_or_not_finite(&output.queue)?;
        no_value_is_negative_or_not_finite(&output.events)?;
        every_byte_is_accounted_for(&cell, &output)?;
        the_path_keeps_its_bounds(&cell, &output)?;
        the_senders_books_are_in_order(&output)?;
    }
}

// ---- determinism ---------------------------------------------------------------

/// Everything an output holds, floats to the last bit.
fn content(output: &Output) -> String {
    format!("{output:?}")
}

proptest! {
    #![proptest_config(config(500))]
    #[test]
    fn the_same_seed_gives_the_same_output(text in scenario()) {
        let cell = common::cell(&text);
        let (one, two) = (run_bounded(&cell, true)?, run_bounded(&cell, true)?);
        prop_assert!(content(&one) == content(&two));
    }

    /// A flow that never gets to start draws nothing and moves nothing.
    #[test]
    fn a_flow_that_starts_after_the_end_changes_no_other(text in scenario(), algorithm in algorithm()) {
        let mut cell = common::cell(&text);
        let alone = run_bounded(&cell, false)?;
        // What draws its transfers has none after the end, and no numbers before others'.
        let drawn = cell.flows.iter().find(|flow| matches!(flow.workload, WorkloadSpec::Web { .. }));
        let draws = drawn.is_some();
        let mut late = drawn.unwrap_or(&cell.flows[0]).clone();
        late.algorithm = algorithm.to_owned();
        late.start = cell.duration + Nanos::from_secs(1);
        cell.flows.push(late);
        let beside = run_bounded(&cell, false)?;
        let happened = |output: &Output| format!("{:?}", output.events);
        prop_assert!(happened(&alone) == happened(&beside));
        let n = alone.flows.rows();
        prop_assert_eq!(beside.flows.rows() == n, draws);
        prop_assert!(alone.accounts[..] == beside.accounts[..n]);
        prop_assert!(alone.flows.goodput_bits_per_sec[..] == beside.flows.goodput_bits_per_sec[..n]);
        prop_assert!(alone.flows.srtt_us_mean[..] == beside.flows.srtt_us_mean[..n]);
        prop_assert!(alone.flows.end_ns[..] == beside.flows.end_ns[..n]);
    }
}

/// The fate of the n-th packet on the path is drawn from the path's own stream:
/// who else draws, and how much, does not move it. Method: an unlimited link,
/// where packets lost among the first n are known at each sample.
#[test]
fn adding_a_flow_leaves_the_draws_of_the_path_unchanged() {
    let lost_of_first = |more: &str| {
        let output = common::run(&format!(
            r#"
duration = "5s"
sample_interval = "100us"
[path]
rate = "unlimited"
rtt = "20ms"
loss = "2%"
[[flow]]
algorithm = "bbr1"
{more}"#
        ));
        let queue = output.queue;
        (0..queue.rows())
            .map(|row| {
                (
                    queue.sent_pkts[row] + queue.lost_pkts[row],
                    queue.lost_pkts[row],
                )
            })
            .collect::<BTreeMap<i64, i64>>()
    };
    let alone = lost_of_first("");
    for more in [
        "[[flow]]\nalgorithm = \"cubic\"\nworkload = \"request-response\"\n",
        "[[flow]]\nalgorithm = \"bbr1\"\nname = \"second\"\nrtt = \"33ms\"\ncount = 3\n",
    ] {
        let beside = lost_of_first(more);
        let common: Vec<_> = alone
            .iter()
            .filter_map(|(n, lost)| Some((n, lost, beside.get(n)?)))
            .collect();
        assert!(common.len() > 20, "only {} places to compare", common.len());
        for (n, lost, lost_beside) in common {
            assert_eq!(lost, lost_beside, "lost among the first {n} packets");
        }
    }
}

/// Method: the same cells by one, two and four threads that take the next undone one.
#[test]
fn any_number_of_threads_gives_the_same_tables() {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let mut cells = Vec::new();
    for algorithm in common::algorithms() {
        for loss in ["0%", "1%"] {
            cells.push(common::cell(&format!(
                r#"
duration = "2s"
[path]
rate = "20Mbit/s"
rtt = "30ms"
loss = "{loss}"
[[flow]]
algorithm = "{algorithm}"
count = 2
[[flow]]
algorithm = "bbr1"
name = "other"
start = "300ms"
"#
            )));
        }
    }
    let run_all = |threads: usize| {
        let jobs: Vec<(usize, u32)> = (0..cells.len())
            .flat_map(|cell| (0..3).map(move |rep| (cell, rep)))
            .collect();
        let next = AtomicUsize::new(0);
        let results = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(&(cell, rep)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let output = content(&run_cell(&cells[cell], rep, false));
                        results
                            .lock()
                            .expect("no panic")
                            .insert((cell, rep), output);
                    }
                });
            }
        });
        results.into_inner().expect("no panic")
    };
    let one = run_all(1);
    assert_eq!(one.len(), cells.len() * 3);
    assert!(one == run_all(2));
    assert!(one == run_all(4));
}

/// Repetitions differ where something is random.
#[test]
fn each_repetition_has_its_own_draws() {
    let cell = common::cell(
        "duration = \"3s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"30ms\"\nloss = \"1%\"\n[[flow]]\nalgorithm = \"cubic\"\n",
    );
    let lost = |rep| run_cell(&cell, rep, false).queue.lost_pkts;
    assert_ne!(lost(0), lost(1));
    assert_eq!(lost(1), lost(1));
}
