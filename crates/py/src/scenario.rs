//! The scenario parser and what the front shows of a scenario.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use knee_kernel::loader::Variant;
use knee_model::scenario::{self as model, BufferLimit, Cell, Path};
use knee_model::trace::RateTrace;
use knee_model::units::Nanos;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors;
use crate::kernel::{self, LabOutput};
use crate::run::{Cancel, Output, simulate};

/// A scenario file, resolved into cells.
#[pyclass(frozen, module = "kneepoint._core")]
pub struct Scenario {
    pub(crate) scenario: model::Scenario,
}

/// Reads a scenario; `file` stands in errors.
#[pyfunction]
pub fn parse(py: Python<'_>, text: &str, file: &str) -> PyResult<Scenario> {
    match model::parse(text, file, &names()) {
        Ok(scenario) => Ok(Scenario { scenario }),
        Err(error) => Err(errors::scenario(py, &error)),
    }
}

#[pymethods]
impl Scenario {
    #[getter]
    fn title(&self) -> &str {
        &self.scenario.title
    }

    #[getter]
    fn claim(&self) -> Option<&str> {
        self.scenario.claim.as_deref()
    }

    #[getter]
    fn repeat(&self) -> u32 {
        self.scenario.repeat
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.scenario.seed
    }

    #[getter]
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let cells: Vec<_> = self
            .scenario
            .cells
            .iter()
            .map(|cell| cell_dict(py, cell))
            .collect::<PyResult<_>>()?;
        PyList::new(py, cells)
    }

    /// (`assert`, line in the file) of each `[[expect]]`.
    #[getter]
    fn expects(&self) -> Vec<(&str, u32)> {
        self.scenario
            .expects
            .iter()
            .map(|expect| (expect.assert.as_str(), expect.line))
            .collect()
    }

    /// (`value`, `figure`, `source`, line of `value` in the file) of each `[[published]]`.
    #[getter]
    fn published(&self) -> Vec<(&str, &str, &str, u32)> {
        self.scenario
            .published
            .iter()
            .map(|p| (&*p.value, &*p.figure, &*p.source, p.line))
            .collect()
    }

    /// Simulates one repetition of one cell without the GIL; `noise_ns`: with
    /// that noise at both hosts, whatever the scenario says of it.
    #[pyo3(signature = (index, rep, *, capture=false, cancel=None, progress=None, noise_ns=None))]
    #[expect(clippy::too_many_arguments, reason = "the names are Python's to see")]
    fn run_cell(
        &self,
        py: Python<'_>,
        index: usize,
        rep: u32,
        capture: bool,
        cancel: Option<Py<Cancel>>,
        progress: Option<Py<PyAny>>,
        noise_ns: Option<u64>,
    ) -> PyResult<Output> {
        let mut cell = Cow::Borrowed(self.cell(index)?);
        if let Some(ns) = noise_ns {
            let cell = cell.to_mut();
            (cell.sender.noise, cell.receiver.noise) = (Nanos(ns), Nanos(ns));
        }
        simulate(py, &cell, rep, capture, cancel.as_ref(), progress.as_ref())
    }

    /// The bottleneck of a cell in mahimahi's format: one turn of its trace, or as
    /// long as the run where its rate stays; `None` where it has no limit, or one
    /// too small for a packet.
    fn rate_trace(&self, py: Python<'_>, index: usize) -> PyResult<Option<String>> {
        let cell = self.cell(index)?;
        let path = &cell.path;
        let Some(rate) = path.rate else {
            return Ok(None);
        };
        Ok(py.detach(|| match &path.rate_trace {
            Some(trace) => Some(trace.write()),
            None => RateTrace::constant(rate, cell.duration).map(|trace| trace.write()),
        }))
    }

    /// Runs one repetition of one cell on the kernel, in a process that
    /// `enter_lab` returned in. `run_as`: the user of the scenario's programs,
    /// a JSON object; `None`: the lab's own.
    #[pyo3(signature = (index, rep, *, algorithms, output, progress, run_as=None))]
    #[expect(clippy::too_many_arguments, reason = "the names are Python's to see")]
    fn run_in_lab(
        &self,
        py: Python<'_>,
        index: usize,
        rep: u32,
        algorithms: BTreeMap<String, String>,
        output: PathBuf,
        progress: Py<PyAny>,
        run_as: Option<&str>,
    ) -> PyResult<LabOutput> {
        let run_as = run_as.map(|text| serde_json::from_str(text).expect("the front writes it"));
        kernel::run(
            py,
            self.cell(index)?,
            rep,
            algorithms,
            output,
            run_as,
            &progress,
        )
    }
}

impl Scenario {
    /// Every algorithm that some connection's end uses, with the parameters that are set.
    pub fn variants(&self) -> BTreeSet<Variant> {
        self.scenario
            .cells
            .iter()
            .flat_map(Variant::of_cell)
            .collect()
    }

    fn cell(&self, index: usize) -> PyResult<&Cell> {
        self.scenario.cells.get(index).ok_or_else(|| {
            let count = self.scenario.cells.len();
            PyIndexError::new_err(format!("cell {index} of a scenario with {count} cells"))
        })
    }
}

fn cell_dict<'py>(py: Python<'py>, cell: &Cell) -> PyResult<Bound<'py, PyDict>> {
    // The bottleneck is the hop with the least rate, the first of those alike.
    let slowness =
        |(_, hop): &(usize, &Path)| hop.rate.map_or(u64::MAX, |rate| rate.bits_per_sec());
    let narrowest = cell.hops().enumerate().min_by_key(slowness);
    let (bottleneck_hop, bottleneck) = narrowest.expect("a path has a hop");
    let (rate, rtt) = (bottleneck.rate, cell.rtt());
    let (buffer_bytes, buffer_pkts) = match bottleneck.buffer {
        BufferLimit::Unlimited => (None, None),
        BufferLimit::Bytes(bytes) => (Some(bytes), None),
        BufferLimit::Packets(packets) => (None, Some(packets)),
    };
    let mut flows = Vec::with_capacity(cell.flows.len());
    for (group, flow) in cell.flows.iter().enumerate() {
        let dict = PyDict::new(py);
        dict.set_item("group", group)?;
        dict.set_item("name", &flow.name)?;
        dict.set_item("algorithm", &flow.algorithm)?;
        dict.set_item("workload", flow.workload.kind().name)?;
        dict.set_item("count", flow.count)?;
        flows.push(dict);
    }
    let dict = PyDict::new(py);
    dict.set_item("index", cell.index)?;
    dict.set_item("axes", &cell.axes)?;
    dict.set_item("describe", model::describe(cell, &names()))?;
    dict.set_item("cautions", model::cautions(cell))?;
    dict.set_item(
        "phase_noise_ns",
        model::phase_noise(cell).map(|noise| noise.0),
    )?;
    dict.set_item("duration_ns", cell.duration.0)?;
    dict.set_item("warmup_ns", cell.warmup.0)?;
    dict.set_item("bottleneck_hop", bottleneck_hop)?;
    dict.set_item("rate_bits_per_sec", rate.map(|rate| rate.bits_per_sec()))?;
    dict.set_item("rtt_ns", rtt.0)?;
    dict.set_item("bdp_bytes", rate.map(|rate| model::bdp_bytes(rate, rtt)))?;
    dict.set_item("buffer_bytes", buffer_bytes)?;
    dict.set_item("buffer_pkts", buffer_pkts)?;
    dict.set_item("flows", flows)?;
    Ok(dict)
}

/// A parameter of an algorithm as a scenario writes it.
pub fn algorithm_param(param: &knee_cc::Param) -> model::ParamInfo {
    model::ParamInfo::of_algorithm(param.name, param.unit, param.default, param.min, param.max)
}

/// What scenarios may name.
fn names() -> model::Names {
    model::Names {
        algorithms: knee_cc::algorithms().iter().map(algorithm_info).collect(),
        read_file: Some(|path| std::fs::read_to_string(path)),
    }
}

fn algorithm_info(algorithm: &knee_cc::Algorithm) -> model::AlgorithmInfo {
    model::AlgorithmInfo {
        name: algorithm.name().to_owned(),
        params: algorithm.params().iter().map(algorithm_param).collect(),
    }
}
