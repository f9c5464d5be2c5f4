//! `knee shell`, from Python: the lab is another process's, which this one waits for.

use std::collections::HashMap;
use std::ffi::OsString;

use knee_lab::shell::{Carried, Outcome, Request, run};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::scenario::Scenario;

/// How a command behind the path ended.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct ShellOutcome {
    outcome: Outcome,
}

#[pymethods]
impl ShellOutcome {
    #[getter]
    fn exit_code(&self) -> i32 {
        self.outcome.exit_code
    }

    /// What the link carried towards the command and from it, one dict each.
    #[getter]
    fn links<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let links = self.outcome.links.iter();
        links.map(|carried| link_dict(py, carried)).collect()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.outcome.warnings.clone()
    }
}

/// Runs `command` behind the path of the scenario's first cell and returns when
/// it has ended. `algorithms`: what the kernel calls each that the scenario
/// names. Raises `KernelUnsupported` and `EngineError` where there can be no lab.
#[pyfunction]
pub fn shell(
    py: Python<'_>,
    scenario: &Scenario,
    command: Vec<OsString>,
    algorithms: HashMap<String, String>,
) -> PyResult<ShellOutcome> {
    let cell = scenario.scenario.cell(0).expect("a matrix has a cell");
    let request = Request {
        command,
        algorithms,
    };
    match py.detach(|| run(&cell, &request)) {
        Ok(outcome) => Ok(ShellOutcome { outcome }),
        Err(refused) => Err(errors::refused(py, refused)),
    }
}

fn link_dict<'py>(py: Python<'py>, carried: &Carried) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("forwarded_pkts", carried.forwarded_pkts)?;
    dict.set_item("forwarded_bytes", carried.forwarded_bytes)?;
    dict.set_item("lost_pkts", carried.lost_pkts)?;
    dict.set_item("dropped_pkts", carried.dropped_pkts)?;
    dict.set_item(
        "achieved_rate_bits_per_sec",
        carried.achieved_rate_bits_per_sec,
    )?;
    dict.set_item("added_delay_us_p99", carried.added_delay_us_p99)?;
    Ok(dict)
}
