//! Cells one by one: resolved when asked for, written with their files and read again, told apart by their hash.

use std::collections::HashSet;

use crate::common::{GOOD, edited, names, read};
use knee_scenario::{Cell, Names, Scenario, parse, read_cell};
use knee_units::files::ReadFile;

/// Lists, defaults, files, hops, several flows, parameters of algorithms and queues.
const RICH: &[&str] = &[
    GOOD,
    r#"
title = "Two paths"   # as others have it
duration = ["10s", "0.5min"]
[path]
rate = "trace traces/drive.up"
rtt = "100ms"
loss = ["trace losses.txt", "gilbert 1% burst 5"]
outage = ["1s for 2s", "5s for 1s"]
queue = ["codel", "fifo"]
codel.target = ["5ms", "20ms"]
[sender]
pacing = "fq"
[[flow]]
algorithm = ["bbr1", "cubic"]
bbr1.drain_gain = [0.5, 1]
cubic.beta = 0.7
[[flow]]
algorithm = "reno"
workload = ["web", "transfer"]
load = "2Mbit/s"
sizes = "cdf sizes.txt"
bytes = "1MB"
[[expect]]
assert = "reno.goodput > 1Mbit/s"
"#,
    r#"
duration = "10s"
[path]
mtu = "9000B"
[[hop]]
rate = ["10Mbit/s", "unlimited"]
rtt = "10ms"
[[hop]]
rate = "20Mbit/s"
rtt = "10ms"
buffer = "1bdp"
[[flow]]
algorithm = "cubic"
hops = ["1", "1..2"]
"#,
];

/// As the tests of a file on a disk would find them.
fn with_files() -> Names {
    let read = |path: &str| match path.strip_prefix("lab/").unwrap_or(path) {
        "losses.txt" => Ok("0000000001\n".into()),
        "traces/drive.up" => Ok("1\n3\n3\n7\n".into()),
        "sizes.txt" => Ok("1000 0.5\n20000 1\n".into()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    Names {
        read_file: Some(ReadFile::of_texts(read)),
        ..names()
    }
}

fn scenario(text: &str) -> Scenario {
    parse(text, "lab/s.toml", &with_files()).unwrap_or_else(|error| panic!("{error}"))
}

fn hash(text: &str) -> String {
    scenario(text).cell(0).expect("it has one").hash()
}

#[test]
fn a_cell_of_a_large_matrix_needs_no_other() {
    let losses: Vec<String> = (0..300)
        .map(|i| format!("\"{}%\"", f64::from(i) / 10.0))
        .collect();
    let rtts: Vec<String> = (1..=300).map(|ms| format!("\"{ms}ms\"")).collect();
    let text = edited(
        "rtt = \"100ms\"",
        &format!("rtt = [{}]\nloss = [{}]", rtts.join(","), losses.join(",")),
    );
    let scenario = read(&text).unwrap();
    assert_eq!(scenario.n_cells(), 90_000);
    for (index, rtt, loss) in [
        (0, "1ms", "0%"),
        (301, "2ms", "0.1%"),
        (89_999, "300ms", "29.9%"),
    ] {
        let cell = scenario.cell(index).unwrap();
        assert_eq!(cell.index as usize, index);
        let labels: Vec<&str> = cell.axes.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, [rtt, loss]);
    }
    assert!(scenario.cell(90_000).is_none());
}

#[test]
fn every_cell_reads_back_as_it_was_written() {
    for text in RICH {
        let scenario = scenario(text);
        for cell in scenario.cells() {
            let form = scenario.write_cell(cell.index as usize).unwrap();
            // It needs no file any more.
            let again = read_cell(&form, "cell.json", &names()).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(format!("{cell:?}"), format!("{again:?}"));
            assert_eq!(cell.hash(), again.hash());
        }
        assert!(scenario.write_cell(scenario.n_cells()).is_none());
    }
}

#[test]
fn cells_of_a_matrix_have_hashes_of_their_own() {
    for text in RICH {
        let scenario = scenario(text);
        let hashes: HashSet<String> = scenario.cells().map(|cell| cell.hash()).collect();
        assert_eq!(hashes.len(), scenario.n_cells());
    }
}

#[test]
fn how_a_file_says_it_is_not_in_the_hash() {
    let same = [
        format!("title = \"Another\"\nclaim = \"loss-1.5\"\nrepeat = 9\n# why\n{GOOD}"),
        edited("duration = \"10s\"", "duration = [\"10000ms\"]"),
        edited(
            "rate = \"50Mbit/s\"",
            "rate = \"0.05Gbit/s\"\nloss = \"0%\"\nbuffer = \"625000B\"",
        ),
        format!("{GOOD}workload = \"bulk\"\n[[expect]]\nassert = \"cubic.goodput > 1Mbit/s\"\n"),
    ];
    for text in same {
        assert_eq!(hash(GOOD), hash(&text), "{text}");
    }
    let trace = |name: &str| edited("rate = \"50Mbit/s\"", &format!("rate = \"trace {name}\""));
    let other = Names {
        read_file: Some(ReadFile::of_texts(|_| Ok("1\n3\n3\n7\n".into()))),
        ..names()
    };
    let elsewhere = parse(&trace("b.up"), "s.toml", &other).unwrap();
    assert_eq!(
        hash(&trace("traces/drive.up")),
        elsewhere.cell(0).unwrap().hash()
    );
    let changed = Names {
        read_file: Some(ReadFile::of_texts(|_| Ok("1\n3\n3\n8\n".into()))),
        ..names()
    };
    let changed = parse(&trace("traces/drive.up"), "s.toml", &changed).unwrap();
    assert_ne!(
        hash(&trace("traces/drive.up")),
        changed.cell(0).unwrap().hash()
    );
}

#[test]
fn whatever_an_engine_is_given_is_in_the_hash() {
    let different = [
        format!("seed = 2\n{GOOD}"),
        format!("warmup = \"1s\"\n{GOOD}"),
        format!("sample_interval = \"20ms\"\n{GOOD}"),
        edited("rate = \"50Mbit/s\"", "rate = \"50.000001Mbit/s\""),
        edited("rtt = \"100ms\"", "rtt = \"100ms\"\nloss = \"0.0001%\""),
        edited("rtt = \"100ms\"", "rtt = \"100ms\"\nqueue = \"codel\""),
        edited(
            "rtt = \"100ms\"",
            "rtt = \"100ms\"\nqueue = \"codel\"\ncodel.target = \"6ms\"",
        ),
        edited("rtt = \"100ms\"", "rtt = \"100ms\"\njitter = \"1ns\""),
        format!("{GOOD}[sender]\ninitcwnd = 11\n"),
        format!("{GOOD}[receiver]\ngro = false\n"),
        format!("{GOOD}name = \"mine\"\n"),
        format!("{GOOD}cubic.beta = 0.5\n"),
        format!("{GOOD}count = 2\n"),
        format!("{GOOD}workload = \"transfer\"\nbytes = \"1MB\"\n"),
    ];
    let mut seen = HashSet::from([hash(GOOD)]);
    for text in &different {
        assert!(seen.insert(hash(text)), "{text}");
    }
}

fn refusal(form: &str) -> String {
    let refused: Result<Cell, _> = read_cell(form, "cells/7.json", &names());
    let said = refused.expect_err("it is no good").to_string();
    assert!(!said.contains('\n') && said.len() < 500, "{said}");
    said
}

#[test]
fn a_form_that_is_no_good_is_refused_in_a_paragraph() {
    let form = scenario(GOOD).write_cell(0).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let old = form.replacen(&format!("\"{version}\""), "\"0.0.9\"", 1);
    assert_eq!(
        refusal(&old),
        format!(
            "cells/7.json:1: got a cell of tcpknee \"0.0.9\"; expected one of {version}, which this is. Run it with the \
             version that wrote it, or make it anew from its scenario."
        )
    );
    // Another version may have whatever it likes besides.
    assert!(refusal("{\"tcpknee_cell\": \"9.0.0\", \"x\": 1}").contains("\"9.0.0\""));
    assert_eq!(
        refusal(""),
        "cells/7.json:1: not a cell that tcpknee wrote: EOF while parsing a value. Make it anew from its scenario."
    );
    assert!(refusal(GOOD).contains("not a cell that tcpknee wrote"));
    assert!(refusal("{}").contains("it has no \"tcpknee_cell\""));
    assert!(refusal(&format!("{{\"tcpknee_cell\": \"{version}\"}}")).contains("missing field"));
    assert!(refusal(&form[..form.len() / 2]).contains("not a cell that tcpknee wrote"));
    let edited = form.replace("50Mbit/s", "51Mbit/s");
    assert!(refusal(&edited).contains("the cell is not as tcpknee wrote it: its hash would be"));
    let broken = form.replace("50Mbit/s", "51Mbit");
    assert!(
        refusal(&broken).contains("path.rate"),
        "{}",
        refusal(&broken)
    );
}
