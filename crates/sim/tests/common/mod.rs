//! Cells from scenario text, as a user would write it, and what tests ask of
//! their results.
#![allow(dead_code, reason = "`memory` compiles this too and uses a part of it")]

pub mod bbr;
pub mod digest;
pub mod drawn;
pub mod golden;

use std::collections::BTreeMap;
use std::io;

use knee_scenario::{AlgorithmInfo, Cell, Names};
use knee_sim::{Options, Output};
use knee_tables::{Samples, Table};
use knee_units::files::ReadFile;

/// Payload's share of a full packet: MTU 1500 with TCP timestamps.
pub const PAYLOAD_SHARE: f64 = 1448.0 / 1500.0;
/// Payload of a full packet, bytes.
pub const MSS_BYTES: u64 = 1448;
/// `snd_ssthresh` before the first congestion event (TCP_INFINITE_SSTHRESH).
pub const NO_SSTHRESH: i64 = 0x7fff_ffff;

/// Buffers of the hosts so large that they never bind.
pub const LARGE_BUFFERS: &str = r#"
[sender]
tcp_wmem_max = "1GiB"
[receiver]
tcp_rmem_max = "1GiB"
"#;

/// The greater of the two in the middle, where they are even in number.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The only cell of the scenario.
pub fn cell(text: &str) -> Cell {
    read_cell(text, None)
}

/// The same of a scenario that names files.
pub fn cell_with_files(text: &str, read_file: fn(&str) -> io::Result<String>) -> Cell {
    read_cell(text, Some(ReadFile::of_texts(read_file)))
}

fn read_cell(text: &str, read_file: Option<ReadFile>) -> Cell {
    let known = |algorithm: &knee_cc::Algorithm| AlgorithmInfo {
        name: algorithm.name().to_owned(),
        linux_name: algorithm.linux_name().to_owned(),
        params: Vec::new(),
    };
    let names = Names {
        algorithms: knee_cc::algorithms().iter().map(known).collect(),
        read_file,
        ..Names::default()
    };
    let scenario = knee_scenario::parse(text, "test", &names)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(scenario.n_cells(), 1, "one cell per text");
    scenario.cell(0).expect("it has one")
}

/// Repetition 0 of the scenario's only cell.
pub fn run(text: &str) -> Output {
    run_cell(&cell(text), 0, false)
}

/// The same, with every packet at the sender's interface.
pub fn run_captured(text: &str) -> Output {
    run_cell(&cell(text), 0, true)
}

pub fn run_cell(cell: &Cell, rep: u32, capture: bool) -> Output {
    knee_sim::run(
        cell,
        rep,
        &Options {
            capture,
            accounts: true,
            ..Options::default()
        },
        &mut |_, _| true,
    )
    .expect("the cell can be simulated")
}

/// Payload goodput of all flows over what the link carries at most, in the steady part.
pub fn utilisation(output: &Output, rate_bits_per_sec: f64) -> f64 {
    let goodput: f64 = output.flows.goodput_bits_per_sec.iter().sum();
    goodput / (rate_bits_per_sec * PAYLOAD_SHARE)
}

/// Every algorithm of the registry.
pub fn algorithms() -> impl Iterator<Item = &'static str> {
    knee_cc::algorithms()
        .iter()
        .map(|algorithm| algorithm.name())
}

/// Rows of one flow's samples, by index.
pub fn rows_of(samples: &Samples, flow: i32) -> impl Iterator<Item = usize> + '_ {
    (0..samples.t_ns.len()).filter(move |&row| samples.flow[row] == flow)
}

/// What the table `host_costs` has of a host, by counter.
pub fn counters(output: &Output, host: &str) -> BTreeMap<&'static str, i64> {
    let rows = &output.host_costs;
    (0..rows.rows())
        .filter(|&row| rows.host[row] == host)
        .map(|row| (rows.counter[row], rows.value[row]))
        .collect()
}

/// Asserts `low <= value <= high`, naming the claim.
#[track_caller]
pub fn assert_within(what: &str, value: f64, low: f64, high: f64) {
    println!("{what}: {value:.4} (claimed {low:.4} to {high:.4})");
    assert!(
        (low..=high).contains(&value),
        "{what}: {value:.4} is not within {low:.4} to {high:.4}"
    );
}
