//! What tcpknee knows, as lists of dicts for `knee list` and the docs.

use std::path::PathBuf;

use knee_engine::algorithm_param;
use knee_host::COSTS;
use knee_path::impairment::{IMPAIRMENTS, ImpairmentSpec};
use knee_path::loss;
use knee_path::queue;
use knee_scenario::profile::{Profile, SHIPPED};
use knee_scenario::rules::{self, Subject};
use knee_scenario::workload::WORKLOADS;
use knee_scenario::workload::sizes::SIZES;
use knee_tables::{Column, KINDS, Schema};
use knee_units::files::Files;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors;

#[pyfunction]
pub fn algorithms(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for algorithm in knee_cc::algorithms() {
        list.append(of_algorithm(py, algorithm)?)?;
    }
    Ok(list)
}

/// Loads the algorithm of a user's file, compiled, and says what it is; it is called `name`, or as it calls itself.
#[pyfunction]
#[pyo3(signature = (object, digest, name=None))]
pub fn load_algorithm<'py>(
    py: Python<'py>,
    object: PathBuf,
    digest: &str,
    name: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let loaded = py.detach(|| knee_cc::file::load(&object, name, digest));
    let loaded = loaded.map_err(|error| errors::usage(py, &error.to_string()))?;
    of_algorithm(py, loaded)
}

fn of_algorithm<'py>(
    py: Python<'py>,
    algorithm: &knee_cc::Algorithm,
) -> PyResult<Bound<'py, PyDict>> {
    let params = PyList::empty(py);
    for param in algorithm.params() {
        params.append(described(
            py,
            &algorithm_param(param),
            param.unit,
            param.doc,
            "",
        )?)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("name", algorithm.name())?;
    dict.set_item("linux_name", algorithm.linux_name())?;
    dict.set_item("summary", algorithm.summary())?;
    dict.set_item("source", algorithm.source())?;
    dict.set_item("year", algorithm.year())?;
    dict.set_item("use_when", algorithm.use_when())?;
    dict.set_item("params", params)?;
    dict.set_item("kernel_name", algorithm.kernel_name())?;
    dict.set_item("state_bytes", algorithm.state_bytes())?;
    dict.set_item("private_bytes", algorithm.private_bytes())?;
    Ok(dict)
}

#[pyfunction]
pub fn queues(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for kind in queue::QUEUES {
        let params = PyList::empty(py);
        for param in kind.params {
            let info = knee_scenario::ParamInfo::of_queue(param);
            params.append(described(py, &info, "", param.doc, param.source)?)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("name", kind.name)?;
        dict.set_item("summary", kind.summary)?;
        dict.set_item("source", kind.source)?;
        dict.set_item("params", params)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// A parameter: default and bounds as a scenario writes them, and the unit in which its owner counts.
fn described<'py>(
    py: Python<'py>,
    info: &knee_scenario::ParamInfo,
    unit: &str,
    doc: &str,
    source: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", &info.name)?;
    dict.set_item("default", info.written(info.default))?;
    dict.set_item("min", info.written(info.min))?;
    dict.set_item("max", info.written(info.max))?;
    dict.set_item("unit", unit)?;
    dict.set_item("doc", doc)?;
    dict.set_item("source", source)?;
    Ok(dict)
}

/// What differs between releases of Linux, a dict per rule: `rule` (as a scenario has it, or words), `subject` ("hosts",
/// "param" or "not modelled"), `doc`, `changes`: dicts `since` `value` `source`, the oldest first.
#[pyfunction]
pub fn kernel_rules(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for rule in rules::RULES {
        let changes = PyList::empty(py);
        for change in rule.changes {
            let dict = PyDict::new(py);
            dict.set_item("since", change.since.to_string())?;
            dict.set_item("value", change.value)?;
            dict.set_item("source", change.source)?;
            changes.append(dict)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("rule", rule.name())?;
        let subject = match rule.subject {
            Subject::Hosts(_) => "hosts",
            Subject::Param { .. } => "param",
            Subject::NotModelled(_) => "not modelled",
        };
        dict.set_item("subject", subject)?;
        dict.set_item("doc", rule.doc)?;
        dict.set_item("changes", changes)?;
        list.append(dict)?;
    }
    Ok(list)
}

#[pyfunction]
pub fn losses(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    named(
        py,
        loss::KINDS
            .iter()
            .map(|kind| (kind.name, kind.summary, kind.source)),
    )
}

#[pyfunction]
pub fn impairments(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = named(
        py,
        IMPAIRMENTS
            .iter()
            .map(|kind| (kind.name, kind.summary, kind.source)),
    )?;
    for (item, kind) in list.iter().zip(IMPAIRMENTS) {
        let keys: Vec<&str> = kind.keys.iter().map(|key| key.name).collect();
        item.set_item("keys", keys)?;
        item.set_item("both_ways", kind.both_ways)?;
        let netem = kind
            .netem
            .map(|words| words(&ImpairmentSpec::example(kind)));
        item.set_item("netem", netem)?;
    }
    Ok(list)
}

/// Operations of a host that cost time.
#[pyfunction]
pub fn costs(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for kind in COSTS {
        let dict = PyDict::new(py);
        dict.set_item("name", kind.name)?;
        dict.set_item("class", kind.class.name())?;
        dict.set_item("counter", kind.class.counter())?;
        dict.set_item("doc", kind.doc)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Names of the cost profiles that come with tcpknee.
#[pyfunction]
pub fn cost_profiles(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for shipped in SHIPPED {
        let dict = PyDict::new(py);
        dict.set_item("name", shipped.name)?;
        dict.set_item("summary", shipped.summary)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// ns of each operation in a profile that comes with tcpknee.
#[pyfunction]
pub fn cost_profile<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let found = Profile::read(name, Files::NONE).ok().flatten();
    let unknown = || PyValueError::new_err(format!("there is no cost profile {name:?}"));
    let profile = found.ok_or_else(unknown)?;
    let dict = PyDict::new(py);
    for (position, kind) in COSTS.iter().enumerate() {
        dict.set_item(kind.name, profile.costs.ns_at(position))?;
    }
    Ok(dict)
}

/// Distributions of the sizes of workload web.
#[pyfunction]
pub fn sizes(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = named(
        py,
        SIZES
            .iter()
            .map(|kind| (kind.name, kind.summary, kind.source)),
    )?;
    for (item, kind) in list.iter().zip(SIZES) {
        item.set_item("example", kind.example)?;
    }
    Ok(list)
}

#[pyfunction]
pub fn workloads(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for kind in WORKLOADS {
        let dict = PyDict::new(py);
        dict.set_item("name", kind.name)?;
        dict.set_item("summary", kind.summary)?;
        dict.set_item("keys", kind.key_names().collect::<Vec<_>>())?;
        dict.set_item("counts", kind.counts.name())?;
        dict.set_item("draws", kind.draws)?;
        list.append(dict)?;
    }
    Ok(list)
}

fn named<'py>(
    py: Python<'py>,
    kinds: impl Iterator<Item = (&'static str, &'static str, &'static str)>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (name, summary, source) in kinds {
        let dict = PyDict::new(py);
        dict.set_item("name", name)?;
        dict.set_item("summary", summary)?;
        dict.set_item("source", source)?;
        list.append(dict)?;
    }
    Ok(list)
}

#[pyfunction]
pub fn keys(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for key in knee_scenario::keys() {
        let dict = PyDict::new(py);
        dict.set_item("path", key.path)?;
        dict.set_item("default", key.default)?;
        dict.set_item("accepts", key.forms)?;
        dict.set_item("axis", key.axis)?;
        dict.set_item("engines", key.engines)?;
        dict.set_item("doc", key.doc)?;
        dict.set_item("source", key.source)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Columns of each table that a run, a recording, … has, by the table's name.
#[pyfunction]
pub fn tables<'py>(py: Python<'py>, of: &str) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for schema in schemas(of)? {
        dict.set_item(schema.name, columns_of(py, schema.columns)?)?;
    }
    Ok(dict)
}

/// What a row of each of these tables is.
#[pyfunction]
pub fn table_docs<'py>(py: Python<'py>, of: &str) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for schema in schemas(of)? {
        dict.set_item(schema.name, schema.doc.trim())?;
    }
    Ok(dict)
}

fn schemas(of: &str) -> PyResult<&'static [Schema]> {
    let found = KINDS.iter().find(|(name, _)| *name == of);
    let unknown = || PyValueError::new_err(format!("there are no tables of a {of:?}"));
    found.map(|(_, schemas)| *schemas).ok_or_else(unknown)
}

pub(crate) fn columns_of<'py>(py: Python<'py>, columns: &[Column]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for column in columns {
        let dict = PyDict::new(py);
        dict.set_item("name", column.name)?;
        dict.set_item("type", column.kind.name())?;
        dict.set_item("unit", column.unit)?;
        dict.set_item("doc", column.doc)?;
        dict.set_item("source", column.source)?;
        list.append(dict)?;
    }
    Ok(list)
}

#[pyfunction]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
