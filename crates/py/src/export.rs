//! Sums over the sockets of this host.

use std::os::fd::BorrowedFd;

use knee_live::export::{Asked, Options};
use pyo3::prelude::*;

use crate::errors;

/// Samples until the descriptor `stop` becomes readable or `publish` raises, which
/// gets each sample's sums as a JSON object. `asked` is one too.
#[pyfunction]
pub fn export(py: Python<'_>, asked: &str, stop: i32, publish: &Bound<'_, PyAny>) -> PyResult<()> {
    let asked: Asked = crate::json::parse(asked)?;
    let publish = publish.clone().unbind();
    let mut raised = None;
    let result = py.detach(|| {
        let options = Options::new(&asked)?;
        // SAFETY: the caller keeps `stop` open until this returns.
        let stop = unsafe { BorrowedFd::borrow_raw(stop) };
        knee_live::export::export(&options, stop, &mut |snapshot| {
            let text = serde_json::to_string(snapshot).expect("a snapshot is plain data");
            raised = Python::attach(|py| publish.call1(py, (text,)).err());
            raised.is_none()
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    result.map_err(|error| errors::kernel(py, &error))
}
