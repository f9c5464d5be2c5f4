//! Looking on at the running kernel, from Python.

use std::net::IpAddr;
use std::path::PathBuf;

use knee_live::trace::{Cost, Prefix, TcpFilter, drops, qdisc, tcp};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrow::ArrowTable;
use crate::errors;

/// What came since the last batch.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct TraceBatch {
    #[pyo3(get)]
    acks: Py<ArrowTable>,
    #[pyo3(get)]
    events: Py<ArrowTable>,
    #[pyo3(get)]
    connections: Py<ArrowTable>,
    #[pyo3(get)]
    lost: u64,
}

impl TraceBatch {
    fn new(py: Python<'_>, batch: tcp::Batch) -> PyResult<TraceBatch> {
        Ok(TraceBatch {
            acks: Py::new(py, ArrowTable::new(batch.acks))?,
            events: Py::new(py, ArrowTable::new(batch.events))?,
            connections: Py::new(py, ArrowTable::new(batch.connections))?,
            lost: batch.lost,
        })
    }
}

/// Address and length of a prefix.
type PyPrefix = Option<(IpAddr, u8)>;

fn prefix(given: PyPrefix) -> Option<Prefix> {
    given.map(|(address, bits)| Prefix { address, bits })
}

/// See `knee_live::trace::tcp::trace`.
#[pyfunction]
#[pyo3(signature = (take, *, cookie=None, netns=None, port=None, local_port=None, remote_port=None, address=None,
                    local=None, remote=None))]
#[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
pub fn trace_tcp<'py>(
    py: Python<'py>,
    take: Py<PyAny>,
    cookie: Option<u64>,
    netns: Option<u32>,
    port: Option<u16>,
    local_port: Option<u16>,
    remote_port: Option<u16>,
    address: PyPrefix,
    local: PyPrefix,
    remote: PyPrefix,
) -> PyResult<Bound<'py, PyDict>> {
    let filter = TcpFilter {
        cookie,
        netns,
        port,
        local_port,
        remote_port,
        address: prefix(address),
        local: prefix(local),
        remote: prefix(remote),
    };
    let mut raised = None;
    let ended = py.detach(|| {
        tcp::trace(&filter, |batch| {
            if raised.is_some() {
                return false;
            }
            Python::attach(|py| {
                let goes_on = py.check_signals().and_then(|()| {
                    let batch = TraceBatch::new(py, batch)?;
                    take.call1(py, (batch,))?.is_truthy(py)
                });
                goes_on.unwrap_or_else(|error| {
                    raised = Some(error);
                    false
                })
            })
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let ended = ended.map_err(|error| errors::kernel(py, &error))?;
    let dict = PyDict::new(py);
    dict.set_item("lost", ended.lost)?;
    dict.set_item("gaps", ended.gaps)?;
    dict.set_item("cost", cost(py, &ended.cost)?)?;
    Ok(dict)
}

/// See `knee_live::trace::qdisc::devices`.
#[pyfunction]
#[pyo3(signature = (netns=None))]
pub fn devices(py: Python<'_>, netns: Option<PathBuf>) -> PyResult<Vec<String>> {
    py.detach(|| qdisc::devices(netns.as_deref()))
        .map_err(|error| errors::kernel(py, &error))
}

/// See `knee_live::trace::drops::root_qdiscs`: device, kind, handle, packets dropped.
#[pyfunction]
#[pyo3(signature = (netns=None))]
pub fn root_qdiscs(
    py: Python<'_>,
    netns: Option<PathBuf>,
) -> PyResult<Vec<(String, String, String, u32)>> {
    let found = py.detach(|| drops::root_qdiscs(netns.as_deref()));
    let found = found.map_err(|error| errors::kernel(py, &error))?;
    let rows = found.into_iter();
    Ok(rows
        .map(|one| (one.device, one.kind, one.handle, one.dropped))
        .collect())
}

/// See `knee_live::trace::qdisc::trace`.
#[pyfunction]
#[pyo3(signature = (is_over, *, device=None, netns=None))]
pub fn trace_qdisc<'py>(
    py: Python<'py>,
    is_over: Py<PyAny>,
    device: Option<String>,
    netns: Option<u32>,
) -> PyResult<Bound<'py, PyDict>> {
    let filter = qdisc::QdiscFilter { device, netns };
    let mut raised = None;
    let ended = py.detach(|| {
        qdisc::trace(&filter, || {
            Python::attach(|py| {
                let over = py
                    .check_signals()
                    .and_then(|()| is_over.call0(py)?.is_truthy(py));
                over.unwrap_or_else(|error| {
                    raised = Some(error);
                    true
                })
            })
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    let ended = ended.map_err(|error| errors::kernel(py, &error))?;
    let qdiscs = PyList::empty(py);
    for one in ended.qdiscs {
        let entry = PyDict::new(py);
        entry.set_item("netns", one.netns)?;
        entry.set_item("ifindex", one.ifindex)?;
        entry.set_item("handle", one.handle)?;
        entry.set_item("device", one.device)?;
        entry.set_item("kind", one.kind)?;
        entry.set_item("taken_in", one.taken_in)?;
        entry.set_item("measured", one.measured)?;
        entry.set_item("unknown", one.unknown)?;
        entry.set_item("sum_ns", one.sum_ns)?;
        entry.set_item("max_ns", one.max_ns)?;
        let filled: Vec<(u64, u64, u64)> = one
            .buckets
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0)
            .map(|(bucket, &count)| {
                let (begin, end) = (bucket, bucket + 1);
                (
                    qdisc::bucket_begin_ns(begin),
                    qdisc::bucket_begin_ns(end),
                    count,
                )
            })
            .collect();
        entry.set_item("buckets", filled)?;
        qdiscs.append(entry)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("qdiscs", qdiscs)?;
    dict.set_item("lost", ended.lost)?;
    dict.set_item("cost", cost(py, &ended.cost)?)?;
    Ok(dict)
}

pub fn cost<'py>(py: Python<'py>, cost: &Cost) -> PyResult<Bound<'py, PyDict>> {
    let programs = PyList::empty(py);
    for program in &cost.programs {
        let entry = PyDict::new(py);
        entry.set_item("tracepoint", &program.tracepoint)?;
        entry.set_item("runs", program.runs)?;
        entry.set_item("run_time_ns", program.run_time_ns)?;
        entry.set_item("missed", program.missed)?;
        programs.append(entry)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("programs", programs)?;
    dict.set_item("not_measured", cost.not_measured.as_deref())?;
    Ok(dict)
}
