//! Environments for learners: a batch of actions in, a batch of observations out, on threads without the GIL.

use std::sync::{Arc, Mutex};

use knee_engine::Decisions;
use knee_engine::learn::{CONTROLS, Ended, Env, FIELDS, REWARDS, TRUTH, Task, Told};
use knee_units::Nanos;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors;
use crate::scenario::Scenario;

/// Environments of one task that go on together.
#[pyclass(frozen, module = "tcpknee._core")]
pub struct Learner {
    envs: Mutex<Vec<Env>>,
    fields: usize,
    controls: usize,
    /// `None`: the caller's thread does it.
    pool: Option<ThreadPool>,
}

/// Observations (f32), rewards (f64), how each ended (u8), and what is true (f64): bytes of arrays, environment by environment.
type Batch<'py> = (
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Bound<'py, PyBytes>,
    Bound<'py, PyByteArray>,
);

#[pymethods]
impl Learner {
    /// `every_ns`: decisions by the clock; without it at each ACK, or with `rounds` at the first of each round trip.
    #[new]
    #[pyo3(signature = (scenario, *, group, rounds, every_ns, fields, controls, reward, scaled, count, threads))]
    #[expect(clippy::too_many_arguments, reason = "the names are Python's to see")]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        group: usize,
        rounds: bool,
        every_ns: Option<u64>,
        fields: Vec<usize>,
        controls: Vec<(usize, f64, f64)>,
        reward: usize,
        scaled: bool,
        count: usize,
        threads: usize,
    ) -> PyResult<Learner> {
        let decisions = match (every_ns, rounds) {
            (Some(ns), _) => Decisions::Every(Nanos(ns)),
            (None, true) => Decisions::EachRound,
            (None, false) => Decisions::EachAck,
        };
        let bounded = |(place, low, high): (usize, f64, f64)| CONTROLS[place].within(low, high);
        let task = Arc::new(Task {
            scenario: scenario.scenario.clone(),
            group,
            decisions,
            fields: fields.into_iter().map(|place| &FIELDS[place]).collect(),
            controls: controls.into_iter().map(bounded).collect(),
            reward: &REWARDS[reward],
            scaled,
        });
        let pool = (threads > 1).then(|| ThreadPoolBuilder::new().num_threads(threads).build());
        let no_threads = |error: rayon::ThreadPoolBuildError| {
            let what = format!("threads = {threads}: the system gives no more threads: {error}");
            errors::usage(py, &what)
        };
        Ok(Learner {
            fields: task.fields.len(),
            controls: task.controls.len(),
            envs: Mutex::new((0..count).map(|_| Env::new(task.clone())).collect()),
            pool: pool.transpose().map_err(no_threads)?,
        })
    }

    /// One step of each: those in `resets` (place, cell, seed; in order of places) begin an episode, the others take their
    /// action of `values`, an array of f64.
    fn step<'py>(
        &self,
        py: Python<'py>,
        values: &[u8],
        resets: Vec<(usize, usize, u64)>,
    ) -> PyResult<Batch<'py>> {
        let Ok(mut envs) = self.envs.try_lock() else {
            let what = "got a step while another thread takes one, or after one that failed; expected one after the other. \
                        Give each thread an environment of its own.";
            return Err(errors::usage(py, what));
        };
        let (count, fields, controls) = (envs.len(), self.fields, self.controls);
        let values = values.chunks_exact(8);
        let values = values.map(|bytes| f64::from_ne_bytes(bytes.try_into().expect("8 bytes")));
        let values: Vec<f64> = values.collect();
        let mut seen = vec![0f32; count * fields];
        let mut resets = resets.into_iter().peekable();
        let mut works: Vec<Work<'_>> = (envs.iter_mut().zip(seen.chunks_exact_mut(fields)))
            .enumerate()
            .map(|(place, (env, seen))| Work {
                env,
                seen,
                reset: resets
                    .next_if(|reset| reset.0 == place)
                    .map(|(_, cell, seed)| (cell, seed)),
                values: &values[(place * controls).min(values.len())..],
            })
            .collect();
        let pool = self.pool.as_ref();
        let told: Result<Vec<Told>, knee_engine::SimError> = py.detach(|| match pool {
            Some(pool) => pool.install(|| works.par_iter_mut().map(Work::run).collect()),
            None => works.iter_mut().map(Work::run).collect(),
        });
        let told = told.map_err(|error| errors::engine(py, &error))?;
        let ended: Vec<u8> = told.iter().map(|told| code(told.ended)).collect();
        let bytes = |values: &mut dyn Iterator<Item = f64>| {
            let bytes: Vec<u8> = values.flat_map(f64::to_ne_bytes).collect();
            PyByteArray::new(py, &bytes)
        };
        let seen: Vec<u8> = seen.into_iter().flat_map(f32::to_ne_bytes).collect();
        Ok((
            PyByteArray::new(py, &seen),
            bytes(&mut told.iter().map(|told| told.reward)),
            PyBytes::new(py, &ended),
            bytes(&mut told.iter().flat_map(|told| told.truth)),
        ))
    }
}

/// What a thread does for one environment.
struct Work<'a> {
    env: &'a mut Env,
    seen: &'a mut [f32],
    reset: Option<(usize, u64)>,
    values: &'a [f64],
}

impl Work<'_> {
    fn run(&mut self) -> Result<Told, knee_engine::SimError> {
        match self.reset {
            Some((cell, seed)) => self.env.reset(cell, seed, self.seen),
            None => Ok(self.env.step(self.values, self.seen)),
        }
    }
}

fn code(ended: Ended) -> u8 {
    match ended {
        Ended::No => 0,
        Ended::Complete => 1,
        Ended::OutOfTime => 2,
    }
}

/// What an agent may see (`fields`), set (`controls`) and be rewarded by (`rewards`), and what is told beside that (`truth`): by
/// that name a list of dicts.
#[pyfunction]
pub fn learner_registry(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let [fields, controls, rewards, truth] = [(); 4].map(|()| PyList::empty(py));
    for field in FIELDS {
        let dict = PyDict::new(py);
        dict.set_item("name", field.name)?;
        dict.set_item("unit", field.unit)?;
        dict.set_item("low", field.low)?;
        dict.set_item("high", field.high)?;
        dict.set_item("doc", field.doc)?;
        fields.append(dict)?;
    }
    for control in CONTROLS {
        let dict = PyDict::new(py);
        dict.set_item("name", control.name)?;
        dict.set_item("unit", control.unit)?;
        dict.set_item("low", control.low)?;
        dict.set_item("high", control.high)?;
        dict.set_item("of_window", control.is_of_window())?;
        dict.set_item("doc", control.doc)?;
        controls.append(dict)?;
    }
    for reward in REWARDS {
        let dict = PyDict::new(py);
        dict.set_item("name", reward.name)?;
        dict.set_item("formula", reward.formula)?;
        dict.set_item("source", reward.source)?;
        dict.set_item("needs_rate", reward.needs_rate)?;
        rewards.append(dict)?;
    }
    for (name, unit, doc) in TRUTH {
        let dict = PyDict::new(py);
        dict.set_item("name", name)?;
        dict.set_item("unit", unit)?;
        dict.set_item("doc", doc)?;
        truth.append(dict)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("fields", fields)?;
    dict.set_item("controls", controls)?;
    dict.set_item("rewards", rewards)?;
    dict.set_item("truth", truth)?;
    Ok(dict)
}
