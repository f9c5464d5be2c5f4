//! What the network costs this host, from Python.

use std::path::PathBuf;

use knee_live::host::{self, Asked, INSTRUMENTS, Session};
use knee_tables::COUNTERS;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::Deserialize;

use crate::arrow::ArrowTable;
use crate::errors;
use crate::json::parse;
use crate::trace::cost;

/// What is asked of a session.
#[derive(Deserialize)]
struct PyAsked {
    instruments: Vec<String>,
    stacks_hz: u64,
    netns: Option<(u32, PathBuf)>,
    pid: Option<u32>,
    is_lab: bool,
}

/// Its tables, the counters of one of them, and the instruments.
#[pyfunction]
pub fn profile_registry(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let counters = PyList::empty(py);
    for one in COUNTERS {
        let dict = PyDict::new(py);
        dict.set_item("name", one.name)?;
        dict.set_item("unit", one.unit)?;
        dict.set_item("doc", one.doc)?;
        counters.append(dict)?;
    }
    let instruments = PyList::empty(py);
    for one in INSTRUMENTS {
        let dict = PyDict::new(py);
        dict.set_item("name", one.name)?;
        dict.set_item("summary", one.summary)?;
        dict.set_item("bpf", one.bpf)?;
        instruments.append(dict)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("counters", counters)?;
    dict.set_item("instruments", instruments)?;
    Ok(dict)
}

/// See `knee_live::host::Session`. It belongs to the thread that made it.
#[pyclass(unsendable, module = "tcpknee._core")]
pub struct HostSession {
    session: Option<Session>,
}

#[pymethods]
impl HostSession {
    #[new]
    fn new(py: Python<'_>, asked: &str) -> PyResult<HostSession> {
        let asked: PyAsked = parse(asked)?;
        let known = |name: &String| {
            host::instrument(name)
                .ok_or_else(|| errors::usage(py, &format!("there is no instrument \"{name}\"")))
        };
        let asked = Asked {
            instruments: asked
                .instruments
                .iter()
                .map(known)
                .collect::<PyResult<_>>()?,
            netns: asked.netns,
            is_lab: asked.is_lab,
            pid: asked.pid,
            stacks_hz: asked.stacks_hz,
        };
        let session = Session::start(asked).map_err(|error| errors::kernel(py, &error))?;
        Ok(HostSession {
            session: Some(session),
        })
    }

    /// The hosts of a lab, by the inodes of their network namespaces.
    fn list(&mut self, py: Python<'_>, sender: u32, receiver: u32) -> PyResult<()> {
        let session = self.under_way();
        session
            .list("sender", sender)
            .and_then(|()| session.list("receiver", receiver))
            .map_err(|error| errors::kernel(py, &error))
    }

    /// Takes the programs out of the kernel, if it is not finished.
    fn close(&mut self) {
        self.session = None;
    }

    fn begin(&mut self, py: Python<'_>) -> PyResult<()> {
        let begun = self.under_way().begin();
        begun.map_err(|error| errors::kernel(py, &error))
    }

    /// Ends it; its tables, and an object that says what they do not.
    #[pyo3(signature = (cell=0, rep=0))]
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
        cell: i32,
        rep: i32,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let session = self.session.take().expect("it is finished once");
        let found = session
            .finish(cell, rep)
            .map_err(|error| errors::kernel(py, &error))?;
        let about = PyDict::new(py);
        about.set_item("seconds", found.seconds)?;
        about.set_item("idle_samples", found.idle_samples)?;
        about.set_item("lost_samples", found.lost_samples)?;
        about.set_item("unreadable", found.unreadable)?;
        about.set_item("cost", cost(py, &found.cost)?)?;
        let tables = PyDict::new(py);
        tables.set_item("host_costs", ArrowTable::new(found.host_costs))?;
        tables.set_item("stacks", ArrowTable::new(found.stacks))?;
        tables.set_item("histograms", ArrowTable::new(found.histograms))?;
        tables.set_item("processors", ArrowTable::new(found.processors))?;
        tables.set_item("softirqs", ArrowTable::new(found.softirqs))?;
        tables.set_item("threads", ArrowTable::new(found.threads))?;
        Ok((tables, about))
    }
}

impl HostSession {
    fn under_way(&mut self) -> &mut Session {
        self.session.as_mut().expect("it is not finished yet")
    }
}
