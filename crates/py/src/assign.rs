//! Experiments: which connections get which algorithm.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use crate::arrow::ArrowTable;
use crate::{errors, json};

/// See `knee_assign::Assigner`.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct Assigner {
    held: Mutex<knee_assign::Assigner>,
}

/// See `knee_assign::Taken`.
#[pyclass(frozen, get_all, module = "tcpknee._core")]
pub struct Assigned {
    rows: Py<ArrowTable>,
    assigned: Vec<u64>,
    refused: u64,
    lost: u64,
}

#[pymethods]
impl Assigner {
    /// `request` and `allocation` are JSON objects.
    #[new]
    fn new(py: Python<'_>, request: &str, allocation: &str, cgroup: PathBuf) -> PyResult<Assigner> {
        let (request, allocation) = (json::parse(request)?, json::parse(allocation)?);
        let made = py.detach(|| knee_assign::Assigner::new(request, allocation, &cgroup));
        Ok(Assigner {
            held: Mutex::new(made.map_err(|error| errors::kernel(py, &error))?),
        })
    }

    #[getter]
    fn algorithms(&self) -> BTreeMap<String, String> {
        self.held().algorithms().clone()
    }

    fn allocate(&self, py: Python<'_>, allocation: &str) -> PyResult<()> {
        let allocation = json::parse(allocation)?;
        let allocated = self.held().allocate(allocation);
        allocated.map_err(|error| errors::kernel(py, &error))
    }

    fn take(&self, py: Python<'_>) -> PyResult<Assigned> {
        let taken = py.detach(|| self.held().take());
        let taken = taken.map_err(|error| errors::kernel(py, &error))?;
        Ok(Assigned {
            rows: Py::new(py, ArrowTable::of(taken.rows))?,
            assigned: taken.assigned,
            refused: taken.refused,
            lost: taken.lost,
        })
    }

    fn end(&self) {
        self.held().end();
    }
}

impl Assigner {
    fn held(&self) -> MutexGuard<'_, knee_assign::Assigner> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See `knee_assign::arms_of`.
#[pyfunction]
pub fn arms_of(
    py: Python<'_>,
    request: &str,
    allocation: &str,
    clients: Vec<IpAddr>,
) -> PyResult<Vec<Option<u32>>> {
    let (request, allocation) = (json::parse(request)?, json::parse(allocation)?);
    knee_assign::arms_of(&request, &allocation, &clients)
        .map_err(|error| errors::kernel(py, &error))
}
