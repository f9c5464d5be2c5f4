//! The scenario parser and what the front shows of a scenario.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use knee_lab::run::Options;
use knee_loader::Variant;
use knee_path::Path;
use knee_path::queue::BufferLimit;
use knee_path::trace::RateTrace;
use knee_scenario::{AlgorithmFile, Cell, Engine, Names, rules};
use knee_units::Nanos;
use knee_units::files::{Found, ReadFile};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrow::ArrowTable;
use crate::errors;
use crate::kernel::{self, LabOutput};
use crate::parts::Part;
use crate::run::{Cancel, Output, Watch, simulate, simulate_flows, simulate_into};

/// Parameters of an algorithm, by name, in its own unit.
type Params = BTreeMap<String, u32>;

/// A scenario file, resolved into cells.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct Scenario {
    pub(crate) scenario: knee_scenario::Scenario,
    facts: Facts,
}

/// Reads a scenario; `file` stands in errors. The files that it names are
/// `files`, their text by their path, or what `read_file` gives: the text, and
/// whether errors may quote it; it raises `OSError`. With neither it may name none. `kernels`: what kernels that were
/// built call themselves, by their names. `algorithms`: (path, name, digest) of files whose algorithms it may name by their
/// path; they are loaded.
#[pyfunction]
#[pyo3(signature = (text, file, files=None, read_file=None, kernels=BTreeMap::new(), algorithms=Vec::new()))]
pub fn parse(
    py: Python<'_>,
    text: &str,
    file: &str,
    files: Option<BTreeMap<String, String>>,
    read_file: Option<Py<PyAny>>,
    kernels: BTreeMap<String, String>,
    algorithms: Vec<FileOfAlgorithm>,
) -> PyResult<Scenario> {
    let by = |read: Py<PyAny>| {
        ReadFile::new(move |path| {
            Python::attach(|py| {
                let found = read.call1(py, (path,)).and_then(|found| found.extract(py));
                let (text, may_be_quoted) =
                    found.map_err(|error: PyErr| io::Error::other(error.value(py).to_string()))?;
                Ok(Found {
                    text,
                    may_be_quoted,
                })
            })
        })
    };
    let read = files.map(ReadFile::of).or(read_file.map(by));
    let names = Names {
        kernels,
        algorithm_files: algorithm_files(algorithms)?,
        ..knee_engine::names(read)
    };
    match knee_scenario::parse(text, file, &names) {
        Ok(scenario) => Ok(Scenario {
            scenario,
            facts: Facts::default(),
        }),
        Err(error) => Err(errors::scenario(py, &error)),
    }
}

/// Path, name and digest.
type FileOfAlgorithm = (String, String, String);

fn algorithm_files(files: Vec<FileOfAlgorithm>) -> PyResult<Vec<AlgorithmFile>> {
    let named = |(path, name, digest): FileOfAlgorithm| {
        let algorithm = knee_cc::file::find(&name, &digest)
            .ok_or_else(|| PyValueError::new_err(format!("{path}: it is not loaded")))?;
        Ok(AlgorithmFile {
            path,
            digest,
            info: knee_engine::algorithm_info(algorithm),
        })
    };
    files.into_iter().map(named).collect()
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

    /// A sequence that resolves a cell when it is asked for it.
    #[getter]
    fn cells(slf: Py<Self>) -> Cells {
        Cells { scenario: slf }
    }

    /// What the file sets for a cell and the engine of that name does not do.
    fn without_effect(&self, index: usize, engine: &str) -> PyResult<Vec<String>> {
        let known = Engine::ALL.into_iter().find(|one| one.name() == engine);
        let known = known.ok_or_else(|| PyValueError::new_err(format!("no engine {engine:?}")))?;
        Ok(self.scenario.without_effect(index, known))
    }

    /// Text of each file that the scenario names, by its path.
    #[getter]
    fn files(&self) -> BTreeMap<String, String> {
        self.scenario.files()
    }

    /// Algorithms that the scenario calls by Linux's name: that, and ours.
    #[getter]
    fn renamed(&self) -> BTreeMap<String, String> {
        self.scenario.renamed()
    }

    /// (path, name, digest) of each file whose algorithm it names.
    #[getter]
    fn algorithm_files(&self) -> Vec<(&str, &str, &str)> {
        let files = self.scenario.names().algorithm_files.iter();
        files
            .map(|file| (&*file.path, &*file.info.name, &*file.digest))
            .collect()
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

    /// Simulates one repetition of one cell without the GIL.
    #[pyo3(signature = (index, rep, *, capture=false, cancel=None, progress=None))]
    fn run_cell(
        &self,
        py: Python<'_>,
        index: usize,
        rep: u32,
        capture: bool,
        cancel: Option<Py<Cancel>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Output> {
        let watch = Watch {
            cancel: cancel.as_ref(),
            progress: progress.as_ref(),
        };
        simulate(py, self.cell(index)?, rep, capture, watch)
    }

    /// The flows of one repetition with that noise at both hosts, whatever the scenario says of it; no other rows are
    /// gathered.
    #[pyo3(signature = (index, rep, noise_ns, *, cancel=None, progress=None))]
    fn run_late(
        &self,
        py: Python<'_>,
        index: usize,
        rep: u32,
        noise_ns: u64,
        cancel: Option<Py<Cancel>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<ArrowTable> {
        let mut cell = self.cell(index)?;
        (cell.sender.noise, cell.receiver.noise) = (Nanos(noise_ns), Nanos(noise_ns));
        let watch = Watch {
            cancel: cancel.as_ref(),
            progress: progress.as_ref(),
        };
        simulate_flows(py, cell, rep, watch)
    }

    /// The same with the rows written to a part while it runs, which is not kept yet; returns the data packets that
    /// entered the path.
    #[pyo3(signature = (part, index, rep, *, cancel=None, progress=None))]
    fn run_cell_into(
        &self,
        py: Python<'_>,
        part: &Part,
        index: usize,
        rep: u32,
        cancel: Option<Py<Cancel>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let watch = Watch {
            cancel: cancel.as_ref(),
            progress: progress.as_ref(),
        };
        simulate_into(py, part, self.cell(index)?, rep, watch)
    }

    /// One cell with the files that it needs, as JSON: `read_cell` reads it, in another process as well.
    fn write_cell(&self, index: usize) -> PyResult<String> {
        self.cell(index)?;
        Ok((self.scenario.write_cell(index)).expect("there is such a cell"))
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

    /// Each algorithm of a cell, by its name with the parameters that are set: what Linux calls its own build
    /// and what ours, its parameters but those that are a rule of the cell's kernel, and whether a flow has it, and not the far
    /// ends alone.
    fn variants(&self, index: usize) -> PyResult<BTreeMap<String, (String, String, Params, bool)>> {
        let cell = self.cell(index)?;
        let release = cell.kernel.as_ref().map(|kernel| kernel.release);
        let is_rule = |algorithm: &str, (name, value): &(String, u32)| {
            release.is_some_and(|release| {
                rules::params(algorithm, release).any(|rule| rule == (name, *value))
            })
        };
        let of_flows: BTreeSet<Variant> = cell.flows.iter().map(Variant::of_flow).collect();
        let told = |variant: Variant| {
            let (name, of_flow) = (variant.to_string(), of_flows.contains(&variant));
            let builtin = knee_loader::builtin_name(&variant.algorithm).to_owned();
            let ours = knee_loader::kernel_name(&variant.algorithm);
            let params = variant.params.into_iter();
            let params = params.filter(|param| !is_rule(&variant.algorithm, param));
            (name, (builtin, ours, params.collect(), of_flow))
        };
        Ok(Variant::of_cell(&cell).map(told).collect())
    }

    /// Refuses what this machine cannot do, as far as that is known before a lab is made. Returns the settings of the whole
    /// machine that the cells need.
    fn check_lab(&self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, u64>> {
        let mut wanted = BTreeMap::new();
        for cell in self.scenario.cells() {
            knee_lab::check(&cell).map_err(|error| errors::kernel(py, &error))?;
            if let Some((name, value)) = knee_lab::host_wide(&cell) {
                let most = wanted.entry(name).or_insert(value);
                *most = value.max(*most);
            }
        }
        Ok(wanted)
    }

    /// Refuses what two hosts of the user's cannot be asked.
    fn check_hosts(&self, py: Python<'_>) -> PyResult<()> {
        for cell in self.scenario.cells() {
            knee_lab::hosts::check(&cell).map_err(|error| errors::kernel(py, &error))?;
        }
        Ok(())
    }

    /// The tables of a repetition of which two helpers told: what each said at its end, as JSON, and its samples; and the
    /// packets that two more captured, of the sender and of the receiver.
    #[pyo3(signature = (index, rep, sender, receiver, captured=None))]
    fn between_hosts(
        &self,
        py: Python<'_>,
        index: usize,
        rep: u32,
        sender: (&str, &[u8]),
        receiver: (&str, &[u8]),
        captured: Option<(Vec<u8>, Vec<u8>)>,
    ) -> PyResult<LabOutput> {
        let captured = captured.as_ref();
        let captured = captured.map(|(sender, receiver)| [&sender[..], &receiver[..]]);
        let cell = self.cell(index)?;
        kernel::between_hosts(py, &cell, rep, [sender, receiver], captured)
    }

    /// Our name and Linux's of each algorithm that a scenario may name.
    #[getter]
    fn names(&self) -> Vec<(&str, &str)> {
        let algorithms = self.scenario.names().algorithms.iter();
        algorithms
            .map(|algorithm| (&*algorithm.name, &*algorithm.linux_name))
            .collect()
    }

    /// Runs one repetition of one cell on the kernel, in a process that
    /// `enter_lab` returned in. `run_as`: the user of the scenario's programs,
    /// a JSON object; `None`: the lab's own.
    #[pyo3(signature = (index, rep, *, algorithms, output, progress, run_as=None, capture_bytes=0))]
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
        capture_bytes: u64,
    ) -> PyResult<LabOutput> {
        let options = Options {
            congestion: algorithms,
            output,
            run_as: run_as.map(|text| serde_json::from_str(text).expect("the front writes it")),
            capture_bytes,
        };
        kernel::run(py, &self.cell(index)?, rep, &options, &progress)
    }
}

impl Scenario {
    /// Every algorithm that some connection's end uses, with the parameters that are set.
    pub fn all_variants(&self) -> BTreeSet<Variant> {
        (self.scenario.cells())
            .flat_map(|cell| Variant::of_cell(&cell).collect::<Vec<_>>())
            .collect()
    }

    fn cell(&self, index: usize) -> PyResult<Cell> {
        self.scenario.cell(index).ok_or_else(|| {
            let count = self.scenario.n_cells();
            PyIndexError::new_err(format!("cell {index} of a scenario with {count} cells"))
        })
    }
}

/// The cells of a scenario, each resolved when it is asked for.
#[pyclass(frozen, sequence, module = "tcpknee._core")]
pub struct Cells {
    scenario: Py<Scenario>,
}

#[pymethods]
impl Cells {
    fn __len__(&self) -> usize {
        self.scenario.get().scenario.n_cells()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyDict>> {
        let from_end = if index < 0 {
            self.__len__() as isize
        } else {
            0
        };
        let index = usize::try_from(index + from_end)
            .map_err(|_| PyIndexError::new_err("a cell before the first"))?;
        let scenario = self.scenario.get();
        let names = scenario.scenario.names();
        cell_dict(py, &scenario.cell(index)?, names, &scenario.facts)
    }
}

fn cell_dict<'py>(
    py: Python<'py>,
    cell: &Cell,
    names: &Names,
    facts: &Facts,
) -> PyResult<Bound<'py, PyDict>> {
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
    dict.set_item("hash", cell.hash())?;
    dict.set_item("axes", &cell.axes)?;
    dict.set_item("describe", facts.of(py, cell, names)?)?;
    dict.set_item("cautions", knee_engine::cautions(cell))?;
    dict.set_item(
        "phase_noise_ns",
        knee_scenario::phase_noise(cell).map(|noise| noise.0),
    )?;
    dict.set_item("is_random", knee_scenario::is_random(cell))?;
    dict.set_item("kernel", cell.kernel.as_ref().map(|kernel| &kernel.name))?;
    dict.set_item("duration_ns", cell.duration.0)?;
    dict.set_item("warmup_ns", cell.warmup.0)?;
    dict.set_item("samples", cell.samples.chosen())?;
    dict.set_item("bottleneck_hop", bottleneck_hop)?;
    dict.set_item("rate_bits_per_sec", rate.map(|rate| rate.bits_per_sec()))?;
    dict.set_item("rtt_ns", rtt.0)?;
    dict.set_item(
        "bdp_bytes",
        rate.map(|rate| knee_scenario::bdp_bytes(rate, rtt)),
    )?;
    dict.set_item("buffer_bytes", buffer_bytes)?;
    dict.set_item("buffer_pkts", buffer_pkts)?;
    dict.set_item("flows", flows)?;
    Ok(dict)
}

/// The facts of cells as Python has them. Thousands of cells have nearly all of theirs in common, so each is made once.
#[derive(Default)]
struct Facts(Mutex<HashMap<knee_scenario::Fact, Py<PyTuple>>>);

impl Facts {
    /// Key, value and meaning of each fact of a cell.
    fn of(&self, py: Python<'_>, cell: &Cell, names: &Names) -> PyResult<Vec<Py<PyTuple>>> {
        let facts = knee_scenario::describe(cell, names);
        (facts.into_iter().map(|fact| self.one(py, fact))).collect()
    }

    fn one(&self, py: Python<'_>, fact: knee_scenario::Fact) -> PyResult<Py<PyTuple>> {
        if let Some(tuple) = self.known().get(&fact) {
            return Ok(tuple.clone_ref(py));
        }
        // Not while what is known is held: to make an object may collect garbage, whose code may let another thread go
        // on, which would wait for what is held.
        let tuple = PyTuple::new(py, [&fact.0, &fact.1, &fact.2])?.unbind();
        Ok(self.known().entry(fact).or_insert(tuple).clone_ref(py))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<knee_scenario::Fact, Py<PyTuple>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cell by itself, as `Scenario.write_cell` wrote it.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct LoneCell {
    cell: Cell,
    names: Names,
}

/// Reads what `Scenario.write_cell` wrote; `file` stands in errors, and `algorithms` is as for `parse`. Raises `UsageError`.
#[pyfunction]
#[pyo3(signature = (text, file, algorithms=Vec::new()))]
pub fn read_cell(
    py: Python<'_>,
    text: &str,
    file: &str,
    algorithms: Vec<FileOfAlgorithm>,
) -> PyResult<LoneCell> {
    let names = Names {
        algorithm_files: algorithm_files(algorithms)?,
        ..knee_engine::names(None)
    };
    match knee_engine::read_cell(text, file, &names) {
        Ok(cell) => Ok(LoneCell { cell, names }),
        Err(error) => Err(errors::usage(py, &error.to_string())),
    }
}

#[pymethods]
impl LoneCell {
    /// As an element of `Scenario.cells`.
    #[getter]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        cell_dict(py, &self.cell, &self.names, &Facts::default())
    }

    /// As `Scenario.run_cell`.
    #[pyo3(signature = (rep, *, capture=false, cancel=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        rep: u32,
        capture: bool,
        cancel: Option<Py<Cancel>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Output> {
        let watch = Watch {
            cancel: cancel.as_ref(),
            progress: progress.as_ref(),
        };
        simulate(py, self.cell.clone(), rep, capture, watch)
    }
}
