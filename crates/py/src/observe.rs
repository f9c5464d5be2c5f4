//! Imports of what other tools wrote, and folders that a killed recorder left.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use knee_observe::import::ss;
use knee_observe::segment::{self, Options as Cut, Recovered, Staged};
use knee_observe::{Anonymiser, RecordBatch, Sockets, Table, table};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;

use crate::arrow::ArrowBatches;
use crate::errors;

/// Between two looks at signals and words on progress.
const LOOK: Duration = Duration::from_millis(100);
/// Rows whose encoded form is held in memory.
const GROUP_ROWS: usize = 1 << 15;

/// An import, as JSON.
#[derive(Deserialize)]
struct Asked {
    files: Vec<PathBuf>,
    /// `None`: the rows are handed back.
    out: Option<PathBuf>,
    strict: bool,
    /// Rows are read and forgotten.
    dry_run: bool,
    anonymize: Option<String>,
    zone_s: Option<i32>,
    host: Option<String>,
}

enum Failure {
    /// Of the file being read.
    Read(io::Error),
    Write(segment::Error),
    Raised(PyErr),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Read(error)
    }
}

impl From<segment::Error> for Failure {
    fn from(error: segment::Error) -> Failure {
        Failure::Write(error)
    }
}

/// Where rows go.
enum Sink {
    Folder(Box<Staged>),
    Memory(Vec<RecordBatch>),
    Nowhere,
}

impl Sink {
    fn new(asked: &Asked) -> Result<Sink, segment::Error> {
        if asked.dry_run {
            return Ok(Sink::Nowhere);
        }
        let Some(out) = &asked.out else {
            return Ok(Sink::Memory(Vec::new()));
        };
        let cut = Cut {
            group_rows: GROUP_ROWS,
            segment_age: Duration::MAX,
            sync: false,
            ..Cut::default()
        };
        let schema = table::schema::<Sockets>();
        Staged::create(out, Sockets::NAME, schema, cut).map(|staged| Sink::Folder(Box::new(staged)))
    }

    fn take(&mut self, batch: RecordBatch) -> Result<(), segment::Error> {
        match self {
            Sink::Folder(staged) => staged.write(&batch),
            Sink::Memory(batches) => {
                batches.push(batch);
                Ok(())
            }
            Sink::Nowhere => Ok(()),
        }
    }
}

/// Reads dumps of ss; the report, whose `files` are those written, and the rows
/// where no folder was given. `asked` is a JSON object. With `strict`, lines not
/// understood leave nothing behind. `progress` gets bytes read and sockets so far.
#[pyfunction]
pub fn import_ss<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Option<ArrowBatches>)> {
    let asked: Asked = serde_json::from_str(asked)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    let anonymiser = match asked.anonymize.as_deref().map(Anonymiser::from_text) {
        None => Anonymiser::Keep,
        Some(Ok(Some(anonymiser))) => anonymiser,
        Some(Ok(None)) => {
            let message = format!("anonymize: expected {}", Anonymiser::FORMS);
            return Err(errors::usage(py, &message));
        }
        Some(Err(error)) => return Err(io::Error::other(error.to_string()).into()),
    };
    let mut parser = ss::Parser::new(ss::Options {
        anonymiser,
        zone_s: asked.zone_s,
        host: asked.host.clone(),
    });
    let mut empty_files = Vec::new();
    let mut at = PathBuf::new();
    let ended = py.detach(|| -> Result<_, Failure> {
        let mut sink = Sink::new(&asked)?;
        let mut looked = Instant::now();
        for path in &asked.files {
            at.clone_from(path);
            let before = parser.report().bytes;
            ss::read::<Failure>(path, &mut parser, |report, batch| {
                if let Some(batch) = batch {
                    sink.take(batch)?;
                } else if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    look(progress.as_ref(), report).map_err(Failure::Raised)?;
                }
                Ok(())
            })?;
            if parser.report().bytes == before {
                empty_files.push(path.clone());
            }
        }
        if let Some(batch) = parser.rest() {
            sink.take(batch)?;
        }
        let report = parser.report();
        let refused = report.sockets == 0 || (asked.strict && report.lines_not_understood > 0);
        Ok(match sink {
            _ if refused => (Vec::new(), None),
            Sink::Nowhere => (Vec::new(), None),
            Sink::Folder(staged) => (staged.finish()?, None),
            Sink::Memory(batches) => (Vec::new(), Some(ArrowBatches::new(batches))),
        })
    });
    let (written, batches) = ended.map_err(|failure| match failure {
        Failure::Read(error) => errors::file(&error, &at),
        Failure::Write(error) => errors::segment(py, &error),
        Failure::Raised(error) => error,
    })?;
    let told = told(py, parser.report())?;
    told.set_item("empty_files", empty_files)?;
    told.set_item("files", written)?;
    Ok((told, batches))
}

fn look(progress: Option<&Py<PyAny>>, report: &ss::Report) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        match progress {
            Some(progress) => progress.call1(py, (report.bytes, report.sockets)).map(drop),
            None => Ok(()),
        }
    })
}

fn told<'py>(py: Python<'py>, report: &ss::Report) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("lines", report.lines)?;
    dict.set_item("dumps", report.dumps)?;
    dict.set_item("rows", report.sockets)?;
    dict.set_item("rows_without_time", report.without_time)?;
    dict.set_item("other_protocols", report.other_protocols)?;
    dict.set_item("lines_not_understood", report.lines_not_understood)?;
    dict.set_item("first_not_understood", report.first.clone())?;
    dict.set_item("unknown_words", report.unknown_words.clone())?;
    Ok(dict)
}

/// Makes whole files of what killed writers left in a folder: those that are
/// whole now, and those whose writer lives.
#[pyfunction]
pub fn recover(py: Python<'_>, folder: PathBuf) -> PyResult<(Vec<PathBuf>, Vec<PathBuf>)> {
    let found = py
        .detach(|| segment::recover(&folder))
        .map_err(|error| errors::segment(py, &error))?;
    let (mut whole, mut in_use) = (Vec::new(), Vec::new());
    for (part, outcome) in found {
        match outcome {
            Recovered::Whole { path, .. } => whole.push(path),
            Recovered::InUse => in_use.push(part),
            Recovered::Empty => {}
        }
    }
    Ok((whole, in_use))
}
