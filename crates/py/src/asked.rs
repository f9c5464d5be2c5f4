//! What Python asks for, as JSON.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

pub fn parse<'a, T: Deserialize<'a>>(asked: &'a str) -> PyResult<T> {
    serde_json::from_str(asked).map_err(|error| PyValueError::new_err(error.to_string()))
}
