//! What must hold of every run, whatever the scenario.
//!
//! Method: thousands of random scenarios (common/drawn.rs), as text, through the parser and the simulator. The
//! generator's seed is fixed, so that a failure is everyone's failure; PROPTEST_CASES asks for more cases.

use crate::common::{self, drawn};

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::common::run_cell;
use drawn::{algorithm, scenario};
use knee_path::queue::BufferLimit;
use knee_scenario::{Cell, WorkloadSpec};
use knee_sim::{Options, Output, World};
use knee_tables::{Table, Values};
use knee_units::Nanos;
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

// ---- what must hold ----------------------------------------------------------

/// Runs within the event budget.
fn run_bounded(cell: &Cell, capture: bool) -> Result<Output, TestCaseError> {
    let options = Options {
        capture,
        accounts: true,
        ..Options::default()
    };
    run_bounded_with(cell, &options)
}

fn run_bounded_with(cell: &Cell, options: &Options) -> Result<Output, TestCaseError> {
    let mut calls = 0;
    let output = knee_sim::run(cell, 0, options, &mut |_, _| {
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
            _ => None,
        };
        prop_assert!(
            bad.is_none(),
            "{}.{} in row {}: {:?}",
            T::NAME,
            column.name,
            bad.unwrap_or(0),
            values
        );
        prop_assert_eq!(values.len(), table.rows(), "{}.{}", T::NAME, column.name);
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
        prop_assert_eq!(
            account.sent_bytes as i64,
            flows.bytes_sent.get(flow).unwrap()
        );
        // As in Linux, bytes_acked counts SYN and FIN, too: RFC 4898's HCThruOctetsAcked.
        let payload_acked = flows.bytes_acked.get(flow).unwrap() - 2;
        let new_bytes =
            flows.bytes_sent.get(flow).unwrap() - flows.bytes_retrans.get(flow).unwrap();
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
        let fins: i64 = timers.iter().filter_map(|count| count.get(flow)).sum();
        prop_assert!(flows.total_retrans[flow] <= flows.data_segs_out.get(flow).unwrap() + fins);

        let spec = &cell.flows[flows.group[flow] as usize];
        if let Some(bytes) = spec.workload.transfer_bytes(connections[flow].bytes) {
            prop_assert!(account.written_bytes <= bytes);
            prop_assert_eq!(
                flows.completion_us.get(flow).is_some(),
                account.read_bytes == bytes,
                "flow {}: {:?}",
                flow,
                account
            );
        }
        if let WorkloadSpec::RequestResponse(asked) = &spec.workload {
            if let Some(requests) = asked.requests {
                prop_assert!(account.written_bytes <= requests * asked.response_bytes);
            }
            let answered = flows
                .requests
                .get(flow)
                .expect("a request/response workload counts");
            prop_assert!(answered as u64 * asked.response_bytes <= account.read_bytes);
        }
        if let Some(end_ns) = flows.end_ns.get(flow) {
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
                    column.get(before).is_some() && column.get(row).is_some(),
                    "{name} is null near row {row}"
                );
                prop_assert!(
                    column.get(before) <= column.get(row),
                    "{name} fell in row {row}"
                );
            }
        }
    }
    for (&flow, &row) in &last_row {
        prop_assert!(
            samples.rwnd_limited_us.get(row).unwrap() + samples.sndbuf_limited_us.get(row).unwrap()
                <= samples.busy_us.get(row).unwrap() + 2,
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

    /// The link that takes a step for each packet is the oracle of the one that knows when they leave.
    #[test]
    fn foreseen_departures_change_no_table(text in scenario()) {
        let cell = common::cell(&text);
        let run = |step_links| run_bounded_with(&cell, &Options { capture: true, accounts: true, step_links, ..Options::default() });
        prop_assert!(content(&run(false)?) == content(&run(true)?));
    }

    /// Connections may share hosts, and NICs then hand over packets of several: nothing gets lost, and each connection with a
    /// host of its own is what it is when nothing is said of hosts.
    #[test]
    fn hosts_are_shared_as_the_scenario_says(text in scenario(), senders in 1..4u64, receivers in 1..4u64) {
        let own = common::cell(&text);
        let mut cell = own.clone();
        (cell.sender.hosts, cell.receiver.hosts) = (Some(senders), Some(receivers));
        let options = Options { capture: true, accounts: true, ..Options::default() };
        let shared = run_bounded_with(&cell, &options)?;
        every_byte_is_accounted_for(&cell, &shared)?;
        let stepped = run_bounded_with(&cell, &Options { step_links: true, ..options.clone() })?;
        prop_assert!(content(&shared) == content(&stepped));
        let hosts = |output: &Output| {
            let ends = output.tuples.iter().flat_map(|tuple| [*tuple.sender.ip(), *tuple.receiver.ip()]);
            ends.collect::<BTreeSet<_>>().len() as u64
        };
        let flows = shared.flows.rows() as u64;
        prop_assert_eq!(hosts(&shared), senders.min(flows) + receivers.min(flows));
        prop_assert_eq!(shared.tuples.iter().collect::<HashSet<_>>().len() as u64, flows);

        let alone = run_bounded(&own, true)?;
        prop_assert_eq!(hosts(&alone), 2 * flows);
        (cell.sender.hosts, cell.receiver.hosts) = (Some(flows.max(1)), Some(flows.max(1)));
        prop_assert!(content(&alone) == content(&run_bounded(&cell, true)?));
    }

    /// Whoever steps a run, a page that draws or a debugger, sees what a run in one go gives.
    #[test]
    fn however_a_run_is_cut_into_steps_its_output_is_the_same(
        text in scenario(),
        steps in prop::collection::vec(prop_oneof![Just(0), 1..1_000_000u64, 1..900_000_000u64], 1..12),
    ) {
        let cell = common::cell(&text);
        let whole = run_bounded(&cell, true)?;
        let options = Options { capture: true, accounts: true, ..Options::default() };
        let mut world = World::new(Arc::new(cell), 0, &options).expect("it has run before");
        let mut until = Nanos::ZERO;
        for step in steps.into_iter().chain(std::iter::repeat(500_000_000)) {
            until += Nanos(step);
            let goes_on = world.step(until);
            prop_assert!(world.now() <= until);
            if !goes_on {
                break;
            }
            prop_assert_eq!(world.now(), until);
        }
        prop_assert!(content(&whole) == content(&world.finish()));
    }

    /// A flow that never gets to start draws nothing and moves nothing.
    #[test]
    fn a_flow_that_starts_after_the_end_changes_no_other(text in scenario(), algorithm in algorithm()) {
        let mut cell = common::cell(&text);
        let alone = run_bounded(&cell, false)?;
        // What draws its transfers has none after the end, and no numbers before others'.
        let drawn = cell.flows.iter().find(|flow| flow.workload.kind().draws);
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
        prop_assert!(alone.flows.srtt_us_mean.iter().eq(beside.flows.srtt_us_mean.iter().take(n)));
        prop_assert!(alone.flows.end_ns.iter().eq(beside.flows.end_ns.iter().take(n)));
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
