//! The connections of a run: which there will be, in which order they open, and which have closed.

use std::sync::Arc;

use knee_cc::{Algorithm, Instance, UnderWay};
use knee_scenario::workload::Thread;
use knee_scenario::{Cell, Connection};

use crate::{Options, SimError};

/// Connections that are closed are looked at when there are as many: enough that it costs little, and few enough that they are
/// still in a cache.
pub const REAP_AT: usize = 64;

/// The connections of a run: which there will be, and in which order they open.
pub struct Plan {
    /// By number.
    pub list: Vec<Connection>,
    /// Their numbers, by when they open.
    order: Vec<u32>,
    pub begun: usize,
    /// The algorithm of each `[[flow]]` and that of the receivers, before their first op.
    pub senders: Vec<Instance>,
    pub receiver: Instance,
    /// What they all are doing.
    pub under_way: Arc<UnderWay>,
    /// Of the applications at the sender.
    pub threads: Vec<Thread>,
}

impl Plan {
    pub fn new(cell: &Cell, rep: u32, options: &Options) -> Result<Plan, SimError> {
        let list = cell.connections(rep);
        let mut order: Vec<u32> = (0..list.len() as u32).collect();
        // Of those that open at one instant the lowest number is first.
        order.sort_by_key(|&number| list[number as usize].open);
        let under_way = Arc::default();
        let instance = |algorithm: &str, params: &[(String, u32)]| {
            instance(cell, algorithm, params).map(|made| made.telling(&under_way))
        };
        let steered = options.agent.map(|steered| steered.group);
        let senders = cell.flows.iter().enumerate().map(|(group, spec)| {
            match steered == Some(group) {
                // What a loss does to ssthresh, and what undo gives back, it says for the agent.
                true => instance("reno", &[]),
                false => instance(&spec.algorithm, &spec.params),
            }
        });
        Ok(Plan {
            list,
            order,
            begun: 0,
            senders: senders.collect::<Result<_, _>>()?,
            receiver: instance(&cell.receiver.algorithm, &[])?,
            under_way,
            threads: (0..cell.threads()[0]).map(|_| Thread::default()).collect(),
        })
    }

    /// The one that opens next.
    pub fn next(&self) -> Option<u32> {
        self.order.get(self.begun).copied()
    }
}

/// The algorithm of that name, which may be of a file.
pub fn algorithm_of(cell: &Cell, name: &str) -> Option<&'static Algorithm> {
    match cell.algorithm_files.get(name) {
        Some(digest) => knee_cc::file::find(name, digest),
        None => knee_cc::find(name),
    }
}

fn instance(cell: &Cell, algorithm: &str, params: &[(String, u32)]) -> Result<Instance, SimError> {
    let found = algorithm_of(cell, algorithm).ok_or_else(|| SimError::UnknownAlgorithm {
        name: algorithm.to_owned(),
    })?;
    let params: Vec<(&str, u32)> = params
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    Ok(Instance::new(found, &params)?)
}

/// Closed connections whose packets or events may still be under way.
pub struct Closing {
    pub numbers: Vec<u32>,
    /// How many there are when they are looked at again; no fewer than [`REAP_AT`].
    pub look_at: usize,
}

impl Default for Closing {
    fn default() -> Closing {
        Closing {
            numbers: Vec::new(),
            look_at: REAP_AT,
        }
    }
}

impl Closing {
    pub fn push(&mut self, number: u32) {
        self.numbers.push(number);
    }

    #[inline]
    pub fn is_due(&self) -> bool {
        self.numbers.len() >= self.look_at
    }

    /// Those that waited for their last sample need not any more.
    pub fn sampled(&mut self) {
        self.look_at = REAP_AT;
    }
}
