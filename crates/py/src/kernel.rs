//! One repetition of one cell on the kernel, from the Python process that a lab
//! begins as.

use std::path::PathBuf;

use knee_lab::run::{Moment, Options, Output, run_in_lab};
use knee_scenario::Cell;
use knee_tables::{HostCosts, Stacks};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow::ArrowTable;
use crate::errors;

/// What one repetition of one cell produced on the kernel.
#[pyclass(frozen, get_all, module = "tcpknee._core")]
pub struct LabOutput {
    flows: Py<ArrowTable>,
    samples: Py<ArrowTable>,
    tcp_info: Py<ArrowTable>,
    queue: Py<ArrowTable>,
    events: Py<ArrowTable>,
    cpu_time: Py<ArrowTable>,
    links: Py<ArrowTable>,
    programs: Py<ArrowTable>,
    /// Without rows: the front measures them, outside the lab.
    host_costs: Py<ArrowTable>,
    stacks: Py<ArrowTable>,
    packets: Py<ArrowTable>,
    data_packets: u64,
    /// Of the lab, as a JSON object.
    facts: String,
    warnings: Vec<String>,
}

/// Makes the calling process the first of a lab; see `knee_lab::enter`.
#[pyfunction]
pub fn enter_lab(py: Python<'_>, parent: i32) -> PyResult<()> {
    knee_lab::enter(parent).map_err(|error| errors::kernel(py, &error))
}

/// Loads a module into the kernel; see `knee_lab::load_module`.
#[pyfunction]
pub fn load_module(path: PathBuf, words: &str) -> PyResult<()> {
    Ok(knee_lab::load_module(&path, words)?)
}

/// Runs the cell; raises what the watcher raised, or what went wrong.
pub fn run(
    py: Python<'_>,
    cell: &Cell,
    rep: u32,
    options: &Options,
    progress: &Py<PyAny>,
) -> PyResult<LabOutput> {
    let mut raised = None;
    // The interpreter is held throughout: this process does nothing else, and
    // its forks must not find a lock in a thread that they do not have.
    let result = run_in_lab(cell, rep, options, &mut |moment: Moment| {
        raised = tell(py, progress, moment).err();
        raised.is_none()
    });
    if let Some(error) = raised {
        return Err(error);
    }
    given(py, result.map_err(|error| errors::kernel(py, &error))?)
}

fn given(py: Python<'_>, found: Output) -> PyResult<LabOutput> {
    Ok(LabOutput {
        flows: Py::new(py, ArrowTable::new(found.flows))?,
        samples: Py::new(py, ArrowTable::new(found.samples))?,
        tcp_info: Py::new(py, ArrowTable::new(found.tcp_info))?,
        queue: Py::new(py, ArrowTable::new(found.queue))?,
        events: Py::new(py, ArrowTable::new(found.events))?,
        cpu_time: Py::new(py, ArrowTable::new(found.cpu))?,
        links: Py::new(py, ArrowTable::new(found.links))?,
        programs: Py::new(py, ArrowTable::new(found.programs))?,
        host_costs: Py::new(py, ArrowTable::new(HostCosts::default()))?,
        stacks: Py::new(py, ArrowTable::new(Stacks::default()))?,
        packets: Py::new(py, ArrowTable::new(found.packets))?,
        data_packets: found.data_packets,
        facts: found.facts.to_json(),
        warnings: found.warnings,
    })
}

/// What two helpers said of a repetition: the JSON of each, and its samples; and the packets that two more captured, in the
/// order of the sender and the receiver.
pub fn between_hosts(
    py: Python<'_>,
    cell: &Cell,
    rep: u32,
    [sender, receiver]: [(&str, &[u8]); 2],
    captured: Option<[&[u8]; 2]>,
) -> PyResult<LabOutput> {
    let read = |(said, records): (&str, &[u8])| {
        let mut end: knee_lab::hosts::End =
            serde_json::from_str(said).map_err(|error| PyValueError::new_err(error.to_string()))?;
        end.records = records.to_vec();
        Ok::<_, PyErr>(end)
    };
    let (sender, receiver) = (read(sender)?, read(receiver)?);
    let found = py.detach(|| knee_lab::hosts::output(cell, rep, &sender, &receiver, captured));
    let found = found.map_err(|error| errors::kernel(py, &error))?;
    given(py, found)
}

/// Calls the watcher with the words of the moment.
fn tell(py: Python<'_>, progress: &Py<PyAny>, moment: Moment) -> PyResult<()> {
    let said = PyDict::new(py);
    match moment {
        Moment::Built { sender, receiver } => {
            said.set_item("hosts", (sender, receiver))?;
        }
        Moment::Warm => said.set_item("measuring", true)?,
        Moment::At(now) => said.set_item("t_ns", now.0)?,
        Moment::Over => said.set_item("measuring", false)?,
    }
    progress.call1(py, (said,)).map(drop)
}
