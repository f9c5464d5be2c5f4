//! One repetition of one cell, from Python: cancellable, watched, without the GIL.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use knee_observe::folder::{Error, Folder, Readers};
use knee_run::{CapturedPacket, FourTuple, Options, Run};
use knee_scenario::Cell;
use knee_units::Nanos;
use pyo3::prelude::*;

use crate::arrow::ArrowTable;
use crate::errors;
use crate::pcapng::{self, Payload};

/// How often a running repetition looks at signals and tells its progress:
/// often enough for a person, too seldom to cost anything.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A flag shared with running repetitions; once set, they stop.
#[pyclass(frozen, module = "kneepoint._core")]
#[derive(Default)]
pub struct Cancel {
    set: AtomicBool,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn cancel(&self) {
        self.set.store(true, Ordering::Relaxed);
    }

    #[getter]
    fn cancelled(&self) -> bool {
        self.set.load(Ordering::Relaxed)
    }
}

/// What one repetition of one cell produced.
#[pyclass(frozen, module = "kneepoint._core")]
pub struct Output {
    #[pyo3(get)]
    flows: Py<ArrowTable>,
    #[pyo3(get)]
    samples: Py<ArrowTable>,
    #[pyo3(get)]
    queue: Py<ArrowTable>,
    #[pyo3(get)]
    events: Py<ArrowTable>,
    #[pyo3(get)]
    data_packets: u64,
    /// `None`: not asked for.
    capture: Option<Vec<CapturedPacket>>,
    tuples: Vec<FourTuple>,
}

#[pymethods]
impl Output {
    /// Writes the packets captured as pcapng, headers only unless `payload`.
    #[pyo3(signature = (path, *, payload=false))]
    fn write_pcapng(&self, py: Python<'_>, path: PathBuf, payload: bool) -> PyResult<()> {
        let capture = self
            .capture
            .as_ref()
            .ok_or_else(|| errors::not_captured(py))?;
        let payload = if payload {
            Payload::Zeros
        } else {
            Payload::Omit
        };
        let written = py.detach(|| {
            let (folder, name) = Folder::of(&path)?;
            let (temporary, file) = folder.temporary(&name, Readers::Own)?;
            pcapng::write(capture, &self.tuples, payload, BufWriter::new(file))
                .and_then(|mut file| file.flush())
                .map_err(|source| Error::Io {
                    path: path.clone(),
                    what: "write",
                    source,
                })
                .and_then(|()| folder.replace(&temporary, &name))
                .inspect_err(|_| {
                    let _ = folder.remove(&temporary);
                })
        });
        written.map_err(|error| errors::folder(py, error))
    }
}

/// Runs the cell; raises what the watcher raised, `Cancelled` or `EngineError`.
pub fn simulate(
    py: Python<'_>,
    cell: Cell,
    rep: u32,
    capture: bool,
    cancel: Option<&Py<Cancel>>,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Output> {
    let cancel = cancel.map(|cancel| cancel.get());
    let cancelled = || cancel.is_some_and(|cancel| cancel.set.load(Ordering::Relaxed));
    let options = Options {
        capture,
        ..Options::default()
    };
    let mut raised = None;
    let result = py.detach(|| {
        let mut reported = Instant::now();
        let mut watch = |now| {
            if cancelled() {
                return false;
            }
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                raised = report(now, progress).err();
            }
            raised.is_none()
        };
        Run::new(cell, rep, &options).map(|run| run.to_end(&mut watch))
    });
    if let Some(error) = raised {
        return Err(error);
    }
    if cancelled() {
        return Err(errors::cancelled(py));
    }
    let output = result.map_err(|error| errors::engine(py, &error))?;
    Ok(Output {
        flows: Py::new(py, ArrowTable::new(output.flows))?,
        samples: Py::new(py, ArrowTable::new(output.samples))?,
        queue: Py::new(py, ArrowTable::new(output.queue))?,
        events: Py::new(py, ArrowTable::new(output.events))?,
        data_packets: output.data_packets,
        capture: capture.then_some(output.capture),
        tuples: output.tuples,
    })
}

/// Lets Python handle signals (on the main thread) and tells it the time reached.
fn report(now: Nanos, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        if let Some(progress) = progress {
            progress.call1(py, (now.0,))?;
        }
        Ok(())
    })
}
