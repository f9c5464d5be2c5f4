//! Imports of what other tools wrote, and folders that a killed recorder left.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use knee_observe::import::{Counts, Lines, nginx, read, ss};
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
}

#[derive(Deserialize)]
struct AskedSs {
    #[serde(flatten)]
    asked: Asked,
    zone_s: Option<i32>,
    host: Option<String>,
}

#[derive(Deserialize)]
struct AskedNginx {
    #[serde(flatten)]
    asked: Asked,
    /// A `log_format`, or the name of one within `conf`.
    format: String,
    /// The text of a configuration.
    conf: Option<String>,
    escape: Option<String>,
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
    fn new(asked: &Asked, table: &str, schema: SchemaRef) -> Result<Sink, segment::Error> {
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
        Staged::create(out, table, schema, cut).map(|staged| Sink::Folder(Box::new(staged)))
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
    let AskedSs {
        asked,
        zone_s,
        host,
    } = from_json(asked)?;
    let mut parser = ss::Parser::new(ss::Options {
        anonymiser: anonymiser(py, &asked)?,
        zone_s,
        host,
    });
    let rows = Rows {
        table: Sockets::NAME,
        schema: table::schema::<Sockets>(),
    };
    let (brought, batches) = bring(py, &asked, &mut parser, rows, progress.as_ref())?;
    let told = told(py, parser.report())?;
    brought.tell(&told)?;
    Ok((told, batches))
}

/// Reads access logs of nginx, as [`import_ss`] reads dumps of ss.
#[pyfunction]
pub fn import_nginx<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Option<ArrowBatches>)> {
    let asked: AskedNginx = from_json(asked)?;
    let usage = |error: String| errors::usage(py, &error);
    let word = asked.escape.as_deref().unwrap_or("default");
    let escape = nginx::Escape::parse(word).ok_or_else(|| {
        usage(format!(
            "escape: got {word:?}; expected default, json or none."
        ))
    })?;
    let (text, escape) = match &asked.conf {
        // nginx has this one without a directive, and refuses another of its name.
        Some(conf) if asked.format != "combined" => nginx::log_format(conf, &asked.format)
            .map_err(|error| usage(format!("conf: {error}.")))?,
        _ => (asked.format, escape),
    };
    let format = nginx::Format::compile(&text, escape)
        .map_err(|error| usage(format!("log_format: {error}.")))?;
    let asked = asked.asked;
    let mut parser = nginx::Parser::new(nginx::Options {
        format,
        anonymiser: anonymiser(py, &asked)?,
    });
    let rows = Rows {
        table: nginx::TABLE,
        schema: parser.schema(),
    };
    let (brought, batches) = bring(py, &asked, &mut parser, rows, progress.as_ref())?;
    let report = parser.report();
    let told = PyDict::new(py);
    told.set_item("bytes", report.bytes)?;
    told.set_item("lines", report.lines)?;
    told.set_item("rows", report.requests)?;
    told.set_item("lines_not_understood", report.lines_not_understood)?;
    let first = report.first.iter().map(|odd| {
        let text = format!("{}: {}", odd.reason, odd.text);
        (odd.file.clone(), odd.line, text)
    });
    told.set_item("first_not_understood", first.collect::<Vec<_>>())?;
    brought.tell(&told)?;
    Ok((told, batches))
}

fn from_json<'a, T: Deserialize<'a>>(asked: &'a str) -> PyResult<T> {
    serde_json::from_str(asked)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
}

fn anonymiser(py: Python<'_>, asked: &Asked) -> PyResult<Anonymiser> {
    match asked.anonymize.as_deref().map(Anonymiser::from_text) {
        None => Ok(Anonymiser::Keep),
        Some(Ok(Some(anonymiser))) => Ok(anonymiser),
        Some(Ok(None)) => {
            let message = format!("anonymize: expected {}", Anonymiser::FORMS);
            Err(errors::usage(py, &message))
        }
        Some(Err(error)) => Err(io::Error::other(error.to_string()).into()),
    }
}

/// What an importer makes.
struct Rows {
    table: &'static str,
    schema: SchemaRef,
}

/// Files read and written.
struct Brought {
    empty_files: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Brought {
    fn tell(&self, told: &Bound<'_, PyDict>) -> PyResult<()> {
        told.set_item("empty_files", &self.empty_files)?;
        told.set_item("files", &self.files)
    }
}

fn bring<P: Lines + Send>(
    py: Python<'_>,
    asked: &Asked,
    parser: &mut P,
    Rows { table, schema }: Rows,
    progress: Option<&Py<PyAny>>,
) -> PyResult<(Brought, Option<ArrowBatches>)> {
    let mut empty_files = Vec::new();
    let mut at = PathBuf::new();
    let ended = py.detach(|| -> Result<_, Failure> {
        let mut sink = Sink::new(asked, table, schema)?;
        let mut looked = Instant::now();
        for path in &asked.files {
            at.clone_from(path);
            let before = parser.counts().bytes;
            read(path, parser, |counts, batch| -> Result<(), Failure> {
                if let Some(batch) = batch {
                    sink.take(batch)?;
                } else if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    look(progress, counts).map_err(Failure::Raised)?;
                }
                Ok(())
            })?;
            if parser.counts().bytes == before {
                empty_files.push(path.clone());
            }
        }
        if let Some(batch) = parser.rest() {
            sink.take(batch)?;
        }
        let counts = parser.counts();
        let refused = counts.rows == 0 || (asked.strict && counts.lines_not_understood > 0);
        Ok(match sink {
            _ if refused => (Vec::new(), None),
            Sink::Nowhere => (Vec::new(), None),
            Sink::Folder(staged) => (staged.finish()?, None),
            Sink::Memory(batches) => (Vec::new(), Some(ArrowBatches::new(batches))),
        })
    });
    let (files, batches) = ended.map_err(|failure| match failure {
        Failure::Read(error) => errors::file(&error, &at),
        Failure::Write(error) => errors::segment(py, &error),
        Failure::Raised(error) => error,
    })?;
    Ok((Brought { empty_files, files }, batches))
}

fn look(progress: Option<&Py<PyAny>>, counts: Counts) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        match progress {
            Some(progress) => progress.call1(py, (counts.bytes, counts.rows)).map(drop),
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
