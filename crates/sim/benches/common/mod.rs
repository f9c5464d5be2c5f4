//! Cells for the benchmarks, from scenario text as a user would write it.

use knee_scenario::{AlgorithmInfo, Cell, Names};
use knee_sim::{Options, Output, Rows};
use knee_units::Nanos;

/// The only cell of the scenario.
///
/// # Panics
///
/// When the text is no scenario: the benchmark is wrong.
pub fn cell(text: &str) -> Cell {
    let known = |algorithm: &knee_cc::Algorithm| AlgorithmInfo {
        name: algorithm.name().to_owned(),
        linux_name: algorithm.linux_name().to_owned(),
        params: Vec::new(),
    };
    let names = Names {
        algorithms: knee_cc::algorithms().iter().map(known).collect(),
        ..Names::default()
    };
    let scenario = knee_scenario::parse(text, "benchmark", &names).expect("a valid scenario");
    assert_eq!(
        scenario.n_cells(),
        1,
        "a benchmark measures one cell at a time"
    );
    scenario.cell(0).expect("it has one")
}

/// Repetition 0 of the cell.
///
/// # Panics
///
/// When it cannot be simulated.
pub fn run(cell: &Cell) -> Output {
    watched(cell, |_| ())
}

/// The same, while `watch` is told the virtual time reached now and then.
///
/// # Panics
///
/// When it cannot be simulated.
pub fn watched(cell: &Cell, mut watch: impl FnMut(Nanos)) -> Output {
    let mut progress = |now, _: &mut Rows| {
        watch(now);
        true
    };
    knee_sim::run(cell, 0, &Options::default(), &mut progress).expect("the cell can be simulated")
}
