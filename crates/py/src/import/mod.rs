//! Imports of what other tools wrote: every importer by its name.

mod bring;

use std::path::PathBuf;

use knee_import::{
    Columns, Count, IMPORTERS, Kind, Opt, TableKind, Takes, find, programs, recognise,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use self::bring::{Asked, bring};
use crate::arrow::ArrowBatches;
use crate::registry::columns_of;
use crate::{errors, json};

/// The report, and the rows of each table where no folder was given.
type Imported<'py> = (Bound<'py, PyDict>, Option<Vec<ArrowBatches>>);

/// Reads files by the importer of that name; the report, whose `files` are those
/// written, and the rows of its tables where no folder was given. `asked` is a JSON
/// object. With `strict`, what is not understood leaves nothing behind. `progress`
/// gets bytes read and rows so far.
#[pyfunction]
pub fn import_files<'py>(
    py: Python<'py>,
    name: &str,
    asked: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Imported<'py>> {
    let usage = |error: String| errors::usage(py, &error);
    let kind = find(name).ok_or_else(|| {
        usage(format!(
            "got the importer \"{name}\"; expected {}.",
            names()
        ))
    })?;
    let asked: Asked = json::parse(asked)?;
    let given = kind
        .given(asked.anonymiser(py)?, &asked.options)
        .map_err(usage)?;
    let importer = (kind.build)(&given).map_err(usage)?;
    bring(py, &asked, kind, importer, progress.as_ref())
}

/// Names of the importers whose own the file looks like, by its first bytes.
#[pyfunction]
pub fn recognise_import(py: Python<'_>, path: PathBuf) -> PyResult<Vec<&'static str>> {
    let found = py.detach(|| recognise(&path));
    let found = found.map_err(|error| errors::file(&error, &path))?;
    Ok(found.into_iter().map(|kind| kind.name).collect())
}

/// What a program that a run started printed about itself, by the columns of `client_output`; `None`: nobody here reads
/// that program, or it measured nothing.
#[pyfunction]
pub fn client_output<'py>(
    py: Python<'py>,
    program: &str,
    text: &str,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(test) = programs::measured(program, text) else {
        return Ok(None);
    };
    let found = PyDict::new(py);
    found.set_item("requests_per_sec", test.requests_per_sec)?;
    found.set_item("latency_us_p50", test.latency_us_p50)?;
    found.set_item("latency_us_p95", test.latency_us_p95)?;
    found.set_item("latency_us_p99", test.latency_us_p99)?;
    found.set_item("goodput_bits_per_sec", test.goodput_bits_per_sec)?;
    Ok(Some(found))
}

fn names() -> String {
    let names: Vec<_> = IMPORTERS.iter().map(|kind| kind.name).collect();
    names.join(", ")
}

/// Every importer, as its `Kind` describes it.
#[pyfunction]
pub fn importers(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    described(py, IMPORTERS, kind_dict)
}

fn described<'py, T>(
    py: Python<'py>,
    all: &[T],
    describe: fn(&Bound<'py, PyDict>, &T) -> PyResult<()>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for one in all {
        let dict = PyDict::new(py);
        describe(&dict, one)?;
        list.append(dict)?;
    }
    Ok(list)
}

fn kind_dict(dict: &Bound<'_, PyDict>, kind: &&'static Kind) -> PyResult<()> {
    let py = dict.py();
    dict.set_item("name", kind.name)?;
    dict.set_item("summary", kind.summary)?;
    dict.set_item("about", kind.about)?;
    dict.set_item("page", kind.page)?;
    dict.set_item("examples", kind.examples)?;
    dict.set_item("tables", described(py, kind.tables, table_dict)?)?;
    dict.set_item("options", described(py, kind.options, option_dict)?)?;
    dict.set_item("unit", kind.unit)?;
    dict.set_item("row", kind.row)?;
    dict.set_item("expected", kind.expected)?;
    dict.set_item("told", kind.told)?;
    dict.set_item("counts", described(py, kind.counts, count_dict)?)
}

fn table_dict(dict: &Bound<'_, PyDict>, table: &TableKind) -> PyResult<()> {
    dict.set_item("name", table.name)?;
    dict.set_item("short", table.short)?;
    dict.set_item("rows", table.rows)?;
    dict.set_item("recorded", matches!(table.columns, Columns::Recorded(_)))?;
    dict.set_item(
        "columns",
        columns_of(dict.py(), &table.columns.described())?,
    )
}

fn option_dict(dict: &Bound<'_, PyDict>, option: &Opt) -> PyResult<()> {
    let (takes, metavar): (&str, String) = match option.takes {
        Takes::Text(metavar) => ("text", metavar.into()),
        Takes::File(_) => ("file", "FILE".into()),
        Takes::Time => ("time", "TIME".into()),
        Takes::Choice(words) => ("choice", words.join("|")),
        Takes::Flag => ("flag", String::new()),
    };
    dict.set_item("name", option.name)?;
    dict.set_item("takes", takes)?;
    dict.set_item("metavar", metavar)?;
    dict.set_item("default", option.default)?;
    dict.set_item("help", option.help)
}

fn count_dict(dict: &Bound<'_, PyDict>, count: &Count) -> PyResult<()> {
    dict.set_item("name", count.name)?;
    dict.set_item("doc", count.doc)?;
    dict.set_item("doubt", count.doubt)?;
    dict.set_item("alone", count.alone)
}
