//! Algorithms in the running kernel.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use knee_loader::ForRun;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyList};

use crate::errors;
use crate::scenario::Scenario;

/// Algorithms that the kernel has until this is closed; a context manager.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct LoadedAlgorithms {
    #[pyo3(get)]
    names: BTreeMap<String, String>,
    held: Mutex<Option<ForRun>>,
}

#[pymethods]
impl LoadedAlgorithms {
    fn close(&self) {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, _kind: Py<PyAny>, _error: Py<PyAny>, _traceback: Py<PyAny>) {
        self.close();
    }
}

/// See `knee_loader::for_run`.
#[pyfunction]
#[pyo3(signature = (scenario, *, ours))]
pub fn load_for_run(py: Python<'_>, scenario: &Scenario, ours: bool) -> PyResult<LoadedAlgorithms> {
    let variants = scenario.all_variants();
    let held = py
        .detach(|| knee_loader::for_run(&variants, ours))
        .map_err(|error| errors::kernel(py, &error))?;
    Ok(LoadedAlgorithms {
        names: held.names.clone(),
        held: Mutex::new(Some(held)),
    })
}

/// See `knee_loader::add`.
#[pyfunction]
pub fn add_object(
    name: &str,
    kernel_name: &str,
    params: Vec<String>,
    with_flag: Vec<u8>,
    without_flag: Vec<u8>,
) {
    knee_loader::add(name, kernel_name, params, with_flag, without_flag);
}

/// See `knee_loader::load`.
#[pyfunction]
#[pyo3(signature = (name, *, default_in=None))]
pub fn load(py: Python<'_>, name: &str, default_in: Option<&str>) -> PyResult<(String, bool)> {
    let loaded = py
        .detach(|| knee_loader::load(name, default_in))
        .map_err(|error| errors::kernel(py, &error))?;
    Ok((loaded.called, loaded.was_there))
}

/// See `knee_loader::pinned`.
#[pyfunction]
pub fn pinned() -> Vec<String> {
    knee_loader::pinned()
}

/// See `knee_loader::unload`.
#[pyfunction]
pub fn unload<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
    let users = py
        .detach(|| knee_loader::unload(name))
        .map_err(|error| errors::kernel(py, &error))?;
    let list = PyList::empty(py);
    for user in users {
        let dict = PyDict::new(py);
        dict.set_item("namespace", user.namespace)?;
        dict.set_item("source", format!("{}:{}", user.source.0, user.source.1))?;
        dict.set_item(
            "destination",
            format!("{}:{}", user.destination.0, user.destination.1),
        )?;
        list.append(dict)?;
    }
    Ok(list)
}

/// What the running kernel has of each algorithm.
#[pyfunction]
pub fn in_kernel(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for status in knee_loader::list() {
        let entry = PyDict::new(py);
        entry.set_item("builtin", status.builtin)?;
        entry.set_item("loaded", status.loaded)?;
        entry.set_item("pin", status.pin.map(|pin| pin.display().to_string()))?;
        entry.set_item("loadable", status.not_loadable.is_none())?;
        entry.set_item("not_loadable", status.not_loadable)?;
        dict.set_item(status.name, entry)?;
    }
    Ok(dict)
}
