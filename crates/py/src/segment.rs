//! Tables in segments that outlive their writer, from Python.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use knee_store::segment::{Error, Options, Writer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrow::ArrowTable;
use crate::errors;

/// See `knee_store::segment::Writer`: one segment, however large or old.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct SegmentWriter {
    /// Of the table's files, without number and ending.
    path: PathBuf,
    /// `None`: finished.
    writer: Mutex<Option<Writer>>,
}

#[pymethods]
impl SegmentWriter {
    /// `like` has the columns; its rows are not written. `distinct`: columns whose
    /// texts hardly repeat.
    #[new]
    #[pyo3(signature = (folder, table, like, group_ms, distinct = Vec::new()))]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        table: &str,
        like: &ArrowTable,
        group_ms: u64,
        distinct: Vec<String>,
    ) -> PyResult<SegmentWriter> {
        let options = Options {
            group_age: Duration::from_millis(group_ms),
            segment_bytes: u64::MAX,
            segment_age: Duration::MAX,
            // Against kill -9, not against power cuts, which would cost a wait
            // for the disk.
            sync: false,
            even_empty: true,
            distinct,
            ..Options::default()
        };
        let schema = like.batch().schema();
        let writer = Writer::create(&folder, table, schema, options)
            .map_err(|error| errors::segment(py, error))?;
        Ok(SegmentWriter {
            path: folder.join(table),
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Appends rows, and closes the row group when it is old enough.
    fn write(&self, py: Python<'_>, rows: &ArrowTable) -> PyResult<()> {
        let written = (self.held().as_mut())
            .map(|writer| writer.write(rows.batch()).and_then(|()| writer.commit()));
        let written = written.ok_or_else(finished)?;
        written.map_err(|error| errors::segment(py, error))
    }

    /// The file, which is whole now. After an error there may be none.
    fn finish(&self, py: Python<'_>) -> PyResult<PathBuf> {
        let writer = self.held().take();
        let files = writer
            .ok_or_else(finished)?
            .finish()
            .map_err(|error| errors::segment(py, error))?;
        (files.into_iter().next()).ok_or_else(|| errors::segment(py, self.failed()))
    }
}

impl SegmentWriter {
    fn held(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> Error {
        Error::Io {
            path: self.path.clone(),
            what: "make a whole file of it",
            source: io::Error::other("writing to it failed before"),
        }
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("the segment is finished; a new one takes a new writer")
}
