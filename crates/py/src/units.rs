//! Quantities as users write them.

use knee_units::parse;
use pyo3::prelude::*;

use crate::errors;

/// `100ms` in nanoseconds; `what` is what the text was given for.
#[pyfunction]
pub fn duration_ns(py: Python<'_>, what: &str, text: &str) -> PyResult<u64> {
    parse::duration(text)
        .map(|nanos| nanos.0)
        .map_err(|error| errors::usage(py, &format!("{what}: {error}")))
}
