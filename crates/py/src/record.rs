//! Recordings, what killed ones left, and single dumps of the sockets of this host.

use std::os::fd::BorrowedFd;

use knee_live::record::{Asked, Options, Selection, Wanted};
use pyo3::prelude::*;

use crate::arrow::ArrowBatches;
use crate::{errors, json};

/// Records until the duration is over or the descriptor `stop` becomes readable;
/// what it says of itself, as a JSON object. `asked` is one too.
#[pyfunction]
pub fn record(
    py: Python<'_>,
    asked: &str,
    stop: i32,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let asked: Asked = json::parse(asked)?;
    let mut raised = None;
    let result = py.detach(|| {
        let options = Options::new(asked)?;
        // SAFETY: the caller keeps `stop` open until this returns.
        let stop = unsafe { BorrowedFd::borrow_raw(stop) };
        knee_live::record::record(&options, stop, &mut |report| {
            if let Some(progress) = &progress {
                let (sockets, rows) = (report.sockets, report.rows);
                let called = Python::attach(|py| progress.call1(py, (sockets, rows)).map(drop));
                raised = raised.take().or(called.err());
            }
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let report = result.map_err(|error| errors::kernel(py, &error))?;
    Ok(serde_json::to_string(&report).expect("a report is plain data"))
}

/// The sockets as they are now; `wanted` is a JSON object. No columns: all.
#[pyfunction]
pub fn sockets(py: Python<'_>, wanted: &str, columns: Vec<String>) -> PyResult<ArrowBatches> {
    let wanted: Wanted = json::parse(wanted)?;
    let batches = py
        .detach(|| knee_live::record::sockets(&Selection::new(&wanted)?, &columns))
        .map_err(|error| errors::kernel(py, &error))?;
    Ok(ArrowBatches::new(batches))
}

/// See `knee_live::record::exclusions`; a JSON object of a JSON object.
#[pyfunction]
pub fn exclusions(py: Python<'_>, wanted: &str) -> PyResult<String> {
    let wanted: Wanted = json::parse(wanted)?;
    let found = py
        .detach(|| knee_live::record::exclusions(&wanted))
        .map_err(|error| errors::kernel(py, &error))?;
    Ok(serde_json::to_string(&found).expect("counts are plain data"))
}

/// See `knee_live::record::give_back_memory`.
#[pyfunction]
pub fn give_back_memory(py: Python<'_>) {
    py.detach(knee_live::record::give_back_memory);
}
