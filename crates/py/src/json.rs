//! Options that Python passes as JSON.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

pub fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}
