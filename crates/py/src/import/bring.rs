//! Files through an importer, into a folder or memory.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use knee_import::{AnyImport, Counts, Described, Filled, Kind, Report, Stop, Value};
use knee_store::segment::{self, Options as Cut, Staged};
use knee_store::{Anonymiser, RecordBatch};
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
pub struct Asked {
    files: Vec<PathBuf>,
    /// `None`: the rows are handed back.
    out: Option<PathBuf>,
    strict: bool,
    /// Rows are read and forgotten.
    dry_run: bool,
    anonymize: Option<String>,
    /// The importer's own, by name.
    pub options: serde_json::Map<String, serde_json::Value>,
}

impl Asked {
    pub fn anonymiser(&self, py: Python<'_>) -> PyResult<Anonymiser> {
        match self.anonymize.as_deref().map(Anonymiser::from_text) {
            None => Ok(Anonymiser::Keep),
            Some(Ok(Some(anonymiser))) => Ok(anonymiser),
            Some(Ok(None)) => {
                let message = format!("anonymize: expected {}", Anonymiser::FORMS);
                Err(errors::usage(py, &message))
            }
            Some(Err(error)) => Err(io::Error::other(error.to_string()).into()),
        }
    }
}

/// Reads all files: the report, and the rows of each table where no folder was
/// given.
pub fn bring<'py>(
    py: Python<'py>,
    asked: &Asked,
    kind: &Kind,
    mut importer: Box<dyn AnyImport>,
    progress: Option<&Py<PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Option<Vec<ArrowBatches>>)> {
    let mut empty_files = Vec::new();
    let mut at = PathBuf::new();
    let tables = importer.tables();
    let ended = py.detach(|| -> Result<_, Failure> {
        let mut sink = Sink::new(asked, &tables)?;
        let mut looked = Instant::now();
        for path in &asked.files {
            at.clone_from(path);
            let before = importer.counts().bytes;
            let mut failed = None;
            let mut take = |counts, rows| -> Result<(), Failure> {
                if let Some(rows) = rows {
                    sink.take(rows)?;
                } else if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    look(progress, counts).map_err(Failure::Raised)?;
                }
                Ok(())
            };
            let read = importer.read_file(path, &mut |counts, rows| {
                take(counts, rows).map_err(|failure| {
                    failed = Some(failure);
                    Stop::Refused
                })
            });
            match (read, failed) {
                (_, Some(failure)) => return Err(failure),
                (Err(Stop::Unreadable(error)), None) => return Err(Failure::Read(error)),
                (Err(Stop::Refused), None) => unreachable!("a sink that refuses has failed"),
                (Ok(()), None) => {}
            }
            if importer.counts().bytes == before {
                empty_files.push(path);
            }
        }
        for rows in importer.rest() {
            sink.take(rows)?;
        }
        let counts = importer.counts();
        let refused = counts.rows == 0 || (asked.strict && counts.not_understood > 0);
        Ok(match sink {
            Sink::Folder(staged) if !refused => (staged.finish()?, None),
            Sink::Memory(held) if !refused => (Vec::new(), Some(by_table(held, &tables))),
            _ => (Vec::new(), None),
        })
    });
    let (files, batches) = ended.map_err(|failure| match failure {
        Failure::Read(error) => errors::file(&error, &at),
        Failure::Write(error) => errors::segment(py, error),
        Failure::Raised(error) => error,
    })?;
    let told = report(py, kind, importer.found())?;
    told.set_item("empty_files", empty_files)?;
    told.set_item("files", files)?;
    Ok((told, batches))
}

/// What an importer found.
fn report<'py>(
    py: Python<'py>,
    kind: &Kind,
    found: Report<Vec<Value>>,
) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("bytes", found.bytes)?;
    told.set_item("rows", found.rows)?;
    told.set_item(kind.unit, found.units)?;
    told.set_item(
        format!("{}_not_understood", kind.unit),
        found.not_understood,
    )?;
    told.set_item("first_not_understood", found.first)?;
    for (count, value) in kind.counts.iter().zip(found.more) {
        match value {
            Value::Number(number) => told.set_item(count.name, number)?,
            Value::Words(words) => {
                let by_word = PyDict::new(py);
                for (word, count) in words {
                    by_word.set_item(word, count)?;
                }
                told.set_item(count.name, by_word)?;
            }
        }
    }
    Ok(told)
}

enum Failure {
    /// Of the file being read.
    Read(io::Error),
    Write(segment::Error),
    Raised(PyErr),
}

impl From<segment::Error> for Failure {
    fn from(error: segment::Error) -> Failure {
        Failure::Write(error)
    }
}

/// Where rows go.
enum Sink {
    Folder(Box<Staged>),
    Memory(Vec<Filled>),
    Nowhere,
}

impl Sink {
    fn new(asked: &Asked, tables: &[Described]) -> Result<Sink, segment::Error> {
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
        Staged::create(out, tables, cut).map(|staged| Sink::Folder(Box::new(staged)))
    }

    fn take(&mut self, rows: Filled) -> Result<(), segment::Error> {
        match self {
            Sink::Folder(staged) => staged.write(rows.0, &rows.1),
            Sink::Memory(held) => {
                held.push(rows);
                Ok(())
            }
            Sink::Nowhere => Ok(()),
        }
    }
}

/// The batches of each table; one without rows where there is none.
fn by_table(mut held: Vec<Filled>, tables: &[Described]) -> Vec<ArrowBatches> {
    let of = |(name, schema): &Described| {
        let own = held.extract_if(.., |(table, _)| table == name);
        let mut batches: Vec<_> = own.map(|(_, batch)| batch).collect();
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(schema.clone()));
        }
        ArrowBatches::new(batches)
    };
    tables.iter().map(of).collect()
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
