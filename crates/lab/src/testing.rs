//! What tests of several files need.

use knee_scenario::{AlgorithmInfo, Cell, Names};

/// The first cell of a scenario whose algorithms are reno.
pub fn cell(text: &str) -> Cell {
    let reno = AlgorithmInfo {
        name: "reno".into(),
        linux_name: "reno".into(),
        params: Vec::new(),
    };
    let names = Names {
        algorithms: vec![reno],
        ..Names::default()
    };
    let scenario = knee_scenario::parse(text, "test", &names).unwrap();
    scenario.cell(0).unwrap()
}
