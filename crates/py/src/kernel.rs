//! One repetition of one cell on the kernel, from the Python process that a lab
//! begins as.

use pyo3::prelude::*;

use crate::errors;

/// Makes the calling process the first of a lab; see `knee_kernel::lab::enter`.
#[pyfunction]
pub fn enter_lab(py: Python<'_>, parent: i32) -> PyResult<()> {
    knee_kernel::lab::enter(parent).map_err(|error| errors::kernel(py, &error))
}
