//! Axes, and the cells that they make.

use crate::common::{GOOD, edited, read};
use knee_path::loss::{LossSpec, Pattern};
use knee_scenario::workload::{Bulk, Transfer, Write};
use knee_scenario::{WorkloadSpec, keys};

#[test]
fn axes_follow_the_file_and_the_last_is_fastest() {
    let text = r#"
        duration = "10s"
        [[flow]]
        algorithm = ["reno", "cubic"]
        [path]
        rtt = "100ms"
        loss = ["0%", "periodic 1.5%"]
        rate = ["50Mbit/s"]
    "#;
    let scenario = read(text).unwrap();
    let axes: Vec<Vec<(String, String)>> = scenario.cells().map(|cell| cell.axes).collect();
    let point = |algorithm, loss| {
        vec![
            ("flow.0.algorithm".to_owned(), String::from(algorithm)),
            ("path.loss".to_owned(), String::from(loss)),
            ("path.rate".to_owned(), "50Mbit/s".to_owned()),
        ]
    };
    assert_eq!(
        axes,
        [
            point("reno", "0%"),
            point("reno", "periodic 1.5%"),
            point("cubic", "0%"),
            point("cubic", "periodic 1.5%")
        ]
    );
    assert!(
        scenario
            .cells()
            .enumerate()
            .all(|(i, cell)| cell.index == i as u32)
    );
    assert_eq!(
        scenario.cell(3).unwrap().path.loss,
        LossSpec {
            kind: "periodic",
            share: 0.015,
            pattern: Pattern::Share,
        }
    );
}

#[test]
fn every_scalar_key_but_those_of_the_whole_scenario_may_be_an_axis() {
    let not: Vec<String> = keys()
        .into_iter()
        .filter(|key| !key.axis)
        .map(|key| key.path)
        .collect();
    assert_eq!(
        not,
        [
            "title",
            "claim",
            "repeat",
            "samples",
            "path.outage",
            "path.rtt_change",
            "flow.name",
            "zip.keys",
            "sample.file",
            "sample.rows",
            "sample.count",
            "sample.seed",
            "expect.assert",
            "published.value",
            "published.figure",
            "published.source"
        ]
    );
}

#[test]
fn an_axis_multiplies_only_the_cells_it_acts_in() {
    let text = edited(
        "algorithm = \"cubic\"",
        "algorithm = [\"cubic\", \"bbr1\"]\nbbr1.drain_gain = [0.34375, 1.2]\nbbr1.cwnd_gain = 2.5",
    );
    let cells: Vec<_> = read(&text).unwrap().cells().collect();
    let seen: Vec<_> = cells
        .iter()
        .map(|cell| (cell.flows[0].params.clone(), cell.axes.len()))
        .collect();
    let bbr1 = |drain| {
        vec![
            ("drain_gain".to_string(), drain),
            ("cwnd_gain".to_string(), 640),
        ]
    };
    assert_eq!(seen, [(vec![], 1), (bbr1(88), 2), (bbr1(307), 2)]);
}

#[test]
fn a_key_of_one_workload_is_no_axis_of_another() {
    let text = edited(
        "algorithm = \"cubic\"",
        "algorithm = \"cubic\"\nworkload = [\"bulk\", \"transfer\"]\nbytes = [\"1MB\", \"2MB\"]",
    );
    let workloads: Vec<_> = read(&text)
        .unwrap()
        .cells()
        .map(|mut cell| cell.flows.remove(0).workload)
        .collect();
    let write_bytes = Write(128 << 10);
    let transfer = |bytes| WorkloadSpec::from(Transfer { bytes, write_bytes });
    assert_eq!(
        workloads,
        [
            Bulk { write_bytes }.into(),
            transfer(1_000_000),
            transfer(2_000_000),
        ]
    );
}

#[test]
fn a_matrix_of_the_largest_size_is_read() {
    let list = |n: u32| {
        (1..=n)
            .map(|i| i.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let hosts = format!(
        "[sender]\ninitcwnd = [{}]\n[receiver]\ninitcwnd = [{}]\n",
        list(500),
        list(200)
    );
    let cells: Vec<_> = read(&(GOOD.to_string() + &hosts))
        .unwrap()
        .cells()
        .collect();
    assert_eq!(cells.len(), 100_000);
    assert_eq!(
        (
            cells[99_999].sender.initcwnd,
            cells[99_999].receiver.initcwnd
        ),
        (500, 200)
    );
}
