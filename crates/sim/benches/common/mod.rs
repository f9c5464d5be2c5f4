//! Cells for the benchmarks, from scenario text as a user would write it.

use knee_model::scenario::{self, AlgorithmInfo, Cell, Names};
use knee_sim::{Options, Output};

/// The only cell of the scenario.
///
/// # Panics
///
/// When the text is no scenario: the benchmark is wrong.
pub fn cell(text: &str) -> Cell {
    let known = |algorithm: &knee_cc::Algorithm| AlgorithmInfo {
        name: algorithm.name().to_owned(),
        params: Vec::new(),
    };
    let names = Names {
        algorithms: knee_cc::algorithms().iter().map(known).collect(),
    };
    let mut scenario = scenario::parse(text, "benchmark", &names).expect("a valid scenario");
    assert_eq!(
        scenario.cells.len(),
        1,
        "a benchmark measures one cell at a time"
    );
    scenario.cells.remove(0)
}

/// One flow on 1 Gbit/s x 20 ms with a buffer of 1 BDP for 10 simulated
/// seconds, sampled every 10 ms.
pub fn one_flow(algorithm: &str) -> Cell {
    cell(&format!(
        r#"
        title = "one flow"
        duration = "10s"
        [path]
        rate = "1Gbit/s"
        rtt = "20ms"
        buffer = "1bdp"
        [[flow]]
        algorithm = "{algorithm}"
        "#
    ))
}

/// Repetition 0 of the cell.
///
/// # Panics
///
/// When it cannot be simulated.
pub fn run(cell: &Cell) -> Output {
    knee_sim::run(cell, 0, &Options::default(), &mut |_| true).expect("the cell can be simulated")
}
