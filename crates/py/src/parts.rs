//! Parts of a run, and the tables that are made of them.

use std::fs::File;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use knee_store::parts;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors;
use crate::folder::Folder;

/// See `knee_store::parts::Part`.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct Part {
    /// `None`: kept.
    held: Mutex<Option<parts::Part>>,
}

#[pymethods]
impl Part {
    #[new]
    fn new(folder: &Folder, name: &str, last: &str) -> Part {
        let part = parts::Part::new(folder.held(), name, last);
        Part {
            held: Mutex::new(Some(part)),
        }
    }

    /// Appends what an Arrow stream has.
    fn write(&self, py: Python<'_>, table: &str, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let capsule = rows.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        // SAFETY: the name of the capsule says what it holds, by the rules of the Arrow PyCapsule interface.
        let reader = unsafe {
            RecordBatchStreamReader::from_raw(stream.cast::<FFI_ArrowArrayStream>().as_ptr())
        };
        let reader = reader.map_err(not_arrow)?;
        let none = RecordBatch::new_empty(arrow_array::RecordBatchReader::schema(&reader));
        let mut batches = vec![none];
        for batch in reader {
            batches.push(batch.map_err(not_arrow)?);
        }
        let written = py.detach(|| {
            let mut batches = batches.iter();
            batches.try_for_each(|batch| self.append(table, batch))
        });
        written.map_err(|error| errors::parts(py, error))
    }

    fn keep(&self, py: Python<'_>, note: &str) -> PyResult<()> {
        let held = self
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let part = held.ok_or_else(|| PyValueError::new_err("the part is kept already"))?;
        let kept = py.detach(|| part.keep(note));
        kept.map_err(|error| errors::parts(py, error))
    }
}

impl Part {
    /// Appends rows to a table.
    ///
    /// # Panics
    /// The part is kept already.
    pub fn append(&self, table: &str, rows: &RecordBatch) -> Result<(), parts::Error> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let part = held.as_mut().expect("nobody writes to a part that is kept");
        part.write(table, rows)
    }
}

/// See `knee_store::parts::compose`; `out` is a descriptor, and `path` what errors call it.
#[pyfunction]
pub fn compose(
    py: Python<'_>,
    parts: Vec<PathBuf>,
    order: Option<&str>,
    out: RawFd,
    path: PathBuf,
) -> PyResult<Vec<Option<String>>> {
    // SAFETY: the caller holds it open until this returns.
    let out = unsafe { BorrowedFd::borrow_raw(out) };
    let out = out.try_clone_to_owned();
    let out = File::from(out.map_err(|error| errors::file(&error, &path))?);
    let composed = py.detach(|| parts::compose(&parts, order, out, &path));
    composed.map_err(|error| errors::parts(py, error))
}

fn not_arrow(error: arrow_schema::ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
