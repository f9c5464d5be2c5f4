//! One repetition of one cell, from Python: cancellable, watched, without the GIL.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use knee_engine::{BATCH_ROWS, CapturedPacket, FourTuple, Options, Rows, Run};
use knee_scenario::Cell;
use knee_store::folder::{Error, Folder, Readers};
use knee_store::parts;
use knee_tables::{KeptSamples, Samples};
use knee_units::Nanos;
use pyo3::prelude::*;

use knee_store::arrow::record_batch;

use crate::arrow::ArrowTable;
use crate::crash;
use crate::errors;
use crate::parts::Part;
use crate::pcapng::{self, HostPacket, Payload};

/// How often a running repetition looks at signals and tells its progress:
/// often enough for a person, too seldom to cost anything.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A flag shared with running repetitions; once set, they stop.
#[pyclass(frozen, module = "tcpknee._core")]
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
#[pyclass(frozen, module = "tcpknee._core")]
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
    cpu_time: Py<ArrowTable>,
    #[pyo3(get)]
    host_costs: Py<ArrowTable>,
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
        into_file(py, &path, |file| {
            pcapng::write(capture, &self.tuples, payload, file)
        })
    }
}

/// Writes the packets of a host as pcapng: of each its time, whether the host sent it, its length and its headers.
#[pyfunction]
pub fn write_packets(
    py: Python<'_>,
    path: PathBuf,
    host: &str,
    packets: Vec<(u64, bool, u32, Vec<u8>)>,
) -> PyResult<()> {
    let packet = |(t_ns, is_outbound, length_bytes, header)| HostPacket {
        t_ns,
        is_outbound,
        length_bytes,
        header,
    };
    let packets: Vec<HostPacket> = packets.into_iter().map(packet).collect();
    into_file(py, &path, |file| {
        pcapng::write_of_host(&packets, host, file)
    })
}

/// A file of that name, whole or not at all.
fn into_file<F>(py: Python<'_>, path: &Path, write: F) -> PyResult<()>
where
    F: FnOnce(BufWriter<File>) -> io::Result<BufWriter<File>> + Send,
{
    let written = py.detach(|| {
        let (folder, name) = Folder::of(path)?;
        let (temporary, file) = folder.temporary(&name, Readers::Own)?;
        write(BufWriter::new(file))
            .and_then(|mut file| file.flush())
            .map_err(|source| Error::Io {
                path: path.to_path_buf(),
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

/// What watches a run and may end it.
#[derive(Clone, Copy, Default)]
pub struct Watch<'a> {
    pub cancel: Option<&'a Py<Cancel>>,
    /// Called now and then with the virtual time reached.
    pub progress: Option<&'a Py<PyAny>>,
}

/// Runs the cell; raises what the watcher raised, `Cancelled` or `EngineError`.
pub fn simulate(
    py: Python<'_>,
    cell: Cell,
    rep: u32,
    capture: bool,
    watch: Watch<'_>,
) -> PyResult<Output> {
    let kept = cell.samples;
    let output = watched(py, cell, rep, capture, watch, |_| Ok(()))?;
    let samples = record_batch(&Arc::new(output.samples), |column| kept.has(column));
    Ok(Output {
        flows: Py::new(py, ArrowTable::new(output.flows))?,
        samples: Py::new(py, ArrowTable::of(samples))?,
        queue: Py::new(py, ArrowTable::new(output.queue))?,
        events: Py::new(py, ArrowTable::new(output.events))?,
        cpu_time: Py::new(py, ArrowTable::new(output.cpu))?,
        host_costs: Py::new(py, ArrowTable::new(output.host_costs))?,
        data_packets: output.data_packets,
        capture: capture.then_some(output.capture),
        tuples: output.tuples,
    })
}

/// The same with the rows written to a part as they come; returns the packets that entered the path.
pub fn simulate_into(
    py: Python<'_>,
    part: &Part,
    cell: Cell,
    rep: u32,
    watch: Watch<'_>,
) -> PyResult<u64> {
    let kept = cell.samples;
    let mut written = Written::default();
    let output = watched(py, cell, rep, false, watch, |rows| {
        if rows.count() < BATCH_ROWS {
            return Ok(());
        }
        let full = std::mem::take(rows);
        rows.samples = written.reuse();
        write(part, kept, full, &mut written)
    })?;
    let data_packets = output.data_packets;
    let last = Rows {
        flows: output.flows,
        samples: output.samples,
        queue: output.queue,
        events: output.events,
        cpu: output.cpu,
        host_costs: output.host_costs,
    };
    let result = py.detach(|| write(part, kept, last, &mut written));
    result.map_err(|error| errors::parts(py, error))?;
    Ok(data_packets)
}

/// The flows alone: rows of other tables are dropped as they come.
pub fn simulate_flows(
    py: Python<'_>,
    cell: Cell,
    rep: u32,
    watch: Watch<'_>,
) -> PyResult<ArrowTable> {
    let kept = Cell {
        samples: KeptSamples::NONE,
        ..cell
    };
    let output = watched(py, kept, rep, false, watch, |rows| {
        let flows = std::mem::take(&mut rows.flows);
        *rows = Rows {
            flows,
            ..Rows::default()
        };
        Ok(())
    })?;
    Ok(ArrowTable::new(output.flows))
}

/// Tables of samples whose rows were given to a part, which holds the last rows of the last of them until it has more.
#[derive(Default)]
struct Written(Vec<Arc<Samples>>);

impl Written {
    /// The memory of one that nobody holds any more, so that a long run takes no more of it.
    fn reuse(&mut self) -> Samples {
        let free = self
            .0
            .iter_mut()
            .position(|table| Arc::get_mut(table).is_some());
        let table = free.and_then(|place| Arc::into_inner(self.0.swap_remove(place)));
        let mut table = table.unwrap_or_default();
        table.clear();
        table
    }
}

fn write(
    part: &Part,
    kept: KeptSamples,
    rows: Rows,
    written: &mut Written,
) -> Result<(), parts::Error> {
    let samples = Arc::new(rows.samples);
    part.append(
        "samples",
        &record_batch(&samples, |column| kept.has(column)),
    )?;
    written.0.push(samples);
    part.append("queue", &record_batch(&Arc::new(rows.queue), |_| true))?;
    part.append("events", &record_batch(&Arc::new(rows.events), |_| true))?;
    part.append("cpu_time", &record_batch(&Arc::new(rows.cpu), |_| true))?;
    part.append(
        "host_costs",
        &record_batch(&Arc::new(rows.host_costs), |_| true),
    )?;
    part.append("flows", &record_batch(&Arc::new(rows.flows), |_| true))
}

/// Runs the cell without the GIL; `take` may take the rows gathered so far.
fn watched(
    py: Python<'_>,
    cell: Cell,
    rep: u32,
    capture: bool,
    watch: Watch<'_>,
    mut take: impl FnMut(&mut Rows) -> Result<(), parts::Error> + Send,
) -> PyResult<knee_engine::Output> {
    let Watch { cancel, progress } = watch;
    let cancel = cancel.map(|cancel| cancel.get());
    let cancelled = || cancel.is_some_and(|cancel| cancel.set.load(Ordering::Relaxed));
    let options = Options {
        capture,
        ..Options::default()
    };
    let (mut raised, mut failed) = (None, None);
    let told = crash::words(&cell, rep);
    let result = py.detach(|| {
        let mut reported = Instant::now();
        let mut watch = |now, rows: &mut Rows| {
            if cancelled() {
                return false;
            }
            failed = take(rows).err();
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                raised = report(now, progress).err();
            }
            raised.is_none() && failed.is_none()
        };
        Run::new(cell, rep, &options).map(|run| {
            let _watched = crash::watch(told, &run);
            run.to_end(&mut watch)
        })
    });
    if let Some(error) = failed {
        return Err(errors::parts(py, error));
    }
    if let Some(error) = raised {
        return Err(error);
    }
    if cancelled() {
        return Err(errors::cancelled(py));
    }
    result.map_err(|error| errors::engine(py, &error))
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
