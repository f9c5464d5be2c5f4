//! Imports of what other tools wrote, and folders that a killed recorder left.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use knee_observe::import::{
    Counts, DocumentsReport, Lines, flent, iperf3, nginx, pcap, read, ss, tcp_info,
};
use knee_observe::segment::{self, Options as Cut, Recovered, Staged};
use knee_observe::tables::{
    CaptureAcks, CaptureConnections, FlentPoints, FlentSamples, FlentTests, Iperf3Intervals,
    Iperf3Streams,
};
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

#[derive(Deserialize)]
struct AskedTcpInfo {
    #[serde(flatten)]
    asked: Asked,
    host: Option<String>,
}

#[derive(Deserialize)]
struct AskedPcap {
    #[serde(flatten)]
    asked: Asked,
    host: Option<String>,
    /// A row per interval; `None`: per ACK.
    every_ns: Option<i64>,
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

/// A table's name and columns.
type Described = (&'static str, SchemaRef);
/// Rows of the table of that name.
type Rows = (&'static str, RecordBatch);

/// Where rows go.
enum Sink {
    Folder(Box<Staged>),
    Memory(Vec<Rows>),
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

    fn take(&mut self, rows: Rows) -> Result<(), segment::Error> {
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
    let mut lines = OfLines {
        parser: &mut parser,
        table: Sockets::NAME,
    };
    let tables = [described::<Sockets>()];
    let (brought, rows) = bring(py, &asked, &mut lines, &tables, progress.as_ref())?;
    let told = told(py, parser.report())?;
    brought.tell(&told)?;
    Ok((told, rows.map(|[rows]| rows)))
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
    let tables = [(nginx::TABLE, parser.schema())];
    let mut lines = OfLines {
        parser: &mut parser,
        table: nginx::TABLE,
    };
    let (brought, rows) = bring(py, &asked, &mut lines, &tables, progress.as_ref())?;
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
    Ok((told, rows.map(|[rows]| rows)))
}

/// Reads files of M-Lab's tcp-info, as [`import_ss`] reads dumps of ss.
#[pyfunction]
pub fn import_tcp_info<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Option<ArrowBatches>)> {
    let AskedTcpInfo { asked, host } = from_json(asked)?;
    let mut parser = tcp_info::Parser::new(tcp_info::Options {
        anonymiser: anonymiser(py, &asked)?,
        host,
    });
    let mut lines = OfLines {
        parser: &mut parser,
        table: Sockets::NAME,
    };
    let tables = [described::<Sockets>()];
    let (brought, rows) = bring(py, &asked, &mut lines, &tables, progress.as_ref())?;
    let report = parser.report();
    let told = PyDict::new(py);
    told.set_item("bytes", report.bytes)?;
    told.set_item("lines", report.lines)?;
    told.set_item("rows", report.sockets)?;
    told.set_item("rows_without_time", report.without_time)?;
    told.set_item("lines_not_understood", report.lines_not_understood)?;
    told.set_item("first_not_understood", report.first.clone())?;
    brought.tell(&told)?;
    Ok((told, rows.map(|[rows]| rows)))
}

/// The report of an import of captures, and their rows.
type Captured<'py> = (Bound<'py, PyDict>, Option<(ArrowBatches, ArrowBatches)>);

/// Reads packet captures, as [`import_ss`] reads dumps of ss, into two tables.
#[pyfunction]
pub fn import_pcap<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Captured<'py>> {
    let AskedPcap {
        asked,
        host,
        every_ns,
    } = from_json(asked)?;
    let mut analyser = pcap::Analyser::new(pcap::Options {
        anonymiser: anonymiser(py, &asked)?,
        host,
        every_ns,
        ..pcap::Options::default()
    });
    let tables = [
        described::<CaptureAcks>(),
        described::<CaptureConnections>(),
    ];
    let (brought, rows) = bring(py, &asked, &mut analyser, &tables, progress.as_ref())?;
    let report = analyser.report();
    let told = PyDict::new(py);
    told.set_item("bytes", report.bytes)?;
    told.set_item("packets", report.packets)?;
    told.set_item("tcp_packets", report.tcp_packets)?;
    told.set_item("rows", analyser.counts().rows)?;
    told.set_item("connections", report.connections)?;
    told.set_item("ack_rows", report.ack_rows)?;
    told.set_item("other_packets", report.other_packets)?;
    told.set_item("unknown_links", report.unknown_links.clone())?;
    told.set_item("fragments", report.fragments)?;
    told.set_item("captured_again", report.captured_again)?;
    told.set_item("options_cut", report.options_cut)?;
    told.set_item("packets_not_understood", report.packets_not_understood)?;
    told.set_item("first_not_understood", report.first.clone())?;
    told.set_item("dropped_by_capture", report.dropped_by_capture)?;
    told.set_item("bytes_not_captured", report.bytes_not_captured)?;
    told.set_item("one_way", report.one_way)?;
    told.set_item("at_receiver", report.at_receiver)?;
    told.set_item("in_the_middle", report.in_the_middle)?;
    told.set_item("left", report.left)?;
    told.set_item("forgotten", report.forgotten)?;
    brought.tell(&told)?;
    Ok((told, rows.map(<(ArrowBatches, ArrowBatches)>::from)))
}

/// The report of an import of iperf3's output, and the rows of its two tables.
type Iperf3<'py> = (Bound<'py, PyDict>, Option<(ArrowBatches, ArrowBatches)>);

/// Reads output of iperf3, as [`import_ss`] reads dumps of ss, into two tables.
#[pyfunction]
pub fn import_iperf3<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Iperf3<'py>> {
    let asked: Asked = from_json(asked)?;
    let mut importer = iperf3::Importer::new(anonymiser(py, &asked)?);
    let tables = [described::<Iperf3Intervals>(), described::<Iperf3Streams>()];
    let (brought, rows) = bring(py, &asked, &mut importer, &tables, progress.as_ref())?;
    let told = told_of_documents(py, importer.report())?;
    told.set_item("documents_without_end", importer.without_end())?;
    brought.tell(&told)?;
    Ok((told, rows.map(Into::into)))
}

/// The report of an import of flent's files, and the rows of its three tables.
type Flent<'py> = (
    Bound<'py, PyDict>,
    Option<(ArrowBatches, ArrowBatches, ArrowBatches)>,
);

/// Reads data files of flent, as [`import_ss`] reads dumps of ss, into three tables.
#[pyfunction]
pub fn import_flent<'py>(
    py: Python<'py>,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Flent<'py>> {
    let asked: Asked = from_json(asked)?;
    let mut importer = flent::Importer::new(anonymiser(py, &asked)?);
    let tables = [
        described::<FlentTests>(),
        described::<FlentPoints>(),
        described::<FlentSamples>(),
    ];
    let (brought, rows) = bring(py, &asked, &mut importer, &tables, progress.as_ref())?;
    let told = told_of_documents(py, importer.report())?;
    brought.tell(&told)?;
    Ok((told, rows.map(Into::into)))
}

fn described<T: Table>() -> Described {
    (T::NAME, table::schema::<T>())
}

fn told_of_documents<'py>(
    py: Python<'py>,
    report: &DocumentsReport,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("documents", report.documents)?;
    dict.set_item("rows", report.rows)?;
    dict.set_item("documents_not_understood", report.documents_not_understood)?;
    dict.set_item("first_not_understood", report.first.clone())?;
    Ok(dict)
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

/// What reads files and makes rows of them.
trait Source: Send {
    fn read(
        &mut self,
        path: &Path,
        sink: impl FnMut(Counts, Option<Rows>) -> Result<(), Failure>,
    ) -> Result<(), Failure>;
    fn counts(&self) -> Counts;
    /// The rows that no batch has yet.
    fn rest(&mut self) -> Vec<Rows>;
}

struct OfLines<'a, P> {
    parser: &'a mut P,
    table: &'static str,
}

impl<P: Lines + Send> Source for OfLines<'_, P> {
    fn read(
        &mut self,
        path: &Path,
        mut sink: impl FnMut(Counts, Option<Rows>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let table = self.table;
        read(path, self.parser, |counts, batch| {
            sink(counts, batch.map(|batch| (table, batch)))
        })
    }

    fn counts(&self) -> Counts {
        self.parser.counts()
    }

    fn rest(&mut self) -> Vec<Rows> {
        let rest = self.parser.rest();
        rest.map(|batch| (self.table, batch)).into_iter().collect()
    }
}

impl Source for iperf3::Importer {
    fn read(
        &mut self,
        path: &Path,
        sink: impl FnMut(Counts, Option<Rows>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        iperf3::Importer::read(self, path, sink)
    }

    fn counts(&self) -> Counts {
        iperf3::Importer::counts(self)
    }

    fn rest(&mut self) -> Vec<Rows> {
        iperf3::Importer::rest(self)
    }
}

impl Source for flent::Importer {
    fn read(
        &mut self,
        path: &Path,
        sink: impl FnMut(Counts, Option<Rows>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        flent::Importer::read(self, path, sink)
    }

    fn counts(&self) -> Counts {
        flent::Importer::counts(self)
    }

    fn rest(&mut self) -> Vec<Rows> {
        flent::Importer::rest(self)
    }
}

impl Source for pcap::Analyser {
    fn read(
        &mut self,
        path: &Path,
        mut sink: impl FnMut(Counts, Option<Rows>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        pcap::read(path, self, |counts, filled| {
            sink(counts, filled.map(|filled| (filled.table, filled.batch)))
        })
    }

    fn counts(&self) -> Counts {
        pcap::Analyser::counts(self)
    }

    fn rest(&mut self) -> Vec<Rows> {
        let rest = pcap::Analyser::rest(self).into_iter();
        rest.map(|filled| (filled.table, filled.batch)).collect()
    }
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

/// Reads all files; the rows of each table where no folder was given.
fn bring<S: Source, const TABLES: usize>(
    py: Python<'_>,
    asked: &Asked,
    source: &mut S,
    tables: &[Described; TABLES],
    progress: Option<&Py<PyAny>>,
) -> PyResult<(Brought, Option<[ArrowBatches; TABLES]>)> {
    let mut empty_files = Vec::new();
    let mut at = PathBuf::new();
    let ended = py.detach(|| -> Result<_, Failure> {
        let mut sink = Sink::new(asked, tables)?;
        let mut looked = Instant::now();
        for path in &asked.files {
            at.clone_from(path);
            let before = source.counts().bytes;
            source.read(path, |counts, rows| {
                if let Some(rows) = rows {
                    sink.take(rows)?;
                } else if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    look(progress, counts).map_err(Failure::Raised)?;
                }
                Ok(())
            })?;
            if source.counts().bytes == before {
                empty_files.push(path.clone());
            }
        }
        for rows in source.rest() {
            sink.take(rows)?;
        }
        let counts = source.counts();
        let refused = counts.rows == 0 || (asked.strict && counts.not_understood > 0);
        Ok(match sink {
            Sink::Folder(staged) if !refused => (staged.finish()?, None),
            Sink::Memory(held) if !refused => (Vec::new(), Some(by_table(held, tables))),
            _ => (Vec::new(), None),
        })
    });
    let (files, batches) = ended.map_err(|failure| match failure {
        Failure::Read(error) => errors::file(&error, &at),
        Failure::Write(error) => errors::segment(py, &error),
        Failure::Raised(error) => error,
    })?;
    Ok((Brought { empty_files, files }, batches))
}

/// The batches of each table; one without rows where there is none.
fn by_table<const TABLES: usize>(
    mut held: Vec<Rows>,
    tables: &[Described; TABLES],
) -> [ArrowBatches; TABLES] {
    tables.each_ref().map(|(name, schema)| {
        let own = held.extract_if(.., |(table, _)| table == name);
        let mut batches: Vec<_> = own.map(|(_, batch)| batch).collect();
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(schema.clone()));
        }
        ArrowBatches::new(batches)
    })
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
