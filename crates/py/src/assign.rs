//! Which connections get which algorithm, from Python.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use knee_loader::assign;
use pyo3::prelude::*;

use crate::arrow::ArrowTable;
use crate::{asked, errors};

/// See `knee_loader::assign::Assigner`.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct Assigner {
    held: Mutex<assign::Assigner>,
}

/// See `knee_loader::assign::Taken`.
#[pyclass(frozen, get_all, module = "tcpknee._core")]
pub struct Assigned {
    rows: Py<ArrowTable>,
    assigned: Vec<u64>,
    refused: u64,
    lost: u64,
}

#[pymethods]
impl Assigner {
    /// `asked` and `allocation` are JSON objects.
    #[new]
    fn new(py: Python<'_>, asked: &str, allocation: &str, cgroup: PathBuf) -> PyResult<Assigner> {
        let (asked, allocation) = (asked::parse(asked)?, asked::parse(allocation)?);
        let made = py.detach(|| assign::Assigner::new(asked, allocation, &cgroup));
        Ok(Assigner {
            held: Mutex::new(made.map_err(|error| errors::kernel(py, &error))?),
        })
    }

    #[getter]
    fn algorithms(&self) -> BTreeMap<String, String> {
        self.held().algorithms().clone()
    }

    fn allocate(&self, py: Python<'_>, allocation: &str) -> PyResult<()> {
        let allocation = asked::parse(allocation)?;
        (self.held().allocate(allocation)).map_err(|error| errors::kernel(py, &error))
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
    fn held(&self) -> MutexGuard<'_, assign::Assigner> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See `knee_loader::assign::arms_of`.
#[pyfunction]
pub fn arms_of(
    py: Python<'_>,
    asked: &str,
    allocation: &str,
    clients: Vec<IpAddr>,
) -> PyResult<Vec<Option<u32>>> {
    let (asked, allocation) = (asked::parse(asked)?, asked::parse(allocation)?);
    assign::arms_of(&asked, &allocation, &clients).map_err(|error| errors::kernel(py, &error))
}
