//! The workloads on real sockets: one process per side drives the state
//! machines of `knee_model::workload` for all its connections.

mod connection;
mod generator;
mod shared;

pub use generator::{EndReport, Plan, Side, generate};
pub use shared::{Progress, Shared};

use knee_model::scenario::Cell;
use knee_model::units::Nanos;

/// One connection of the scenario, in the order of the simulator's flow numbers.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub number: u32,
    /// Index of its `[[flow]]`.
    pub group: usize,
    /// When it is opened, after the start.
    pub open: Nanos,
    pub receiver_opens: bool,
}

/// Every connection that the engine itself opens; programs open their own.
pub fn flows(cell: &Cell) -> Vec<Flow> {
    let mut flows = Vec::new();
    for (group, spec) in cell.flows.iter().enumerate() {
        let Some(apps) = spec.workload.apps() else {
            continue;
        };
        for member in 0..spec.count {
            for _ in 0..spec.workload.connections() {
                flows.push(Flow {
                    number: flows.len() as u32,
                    group,
                    open: spec.start + spec.stagger * u64::from(member),
                    receiver_opens: apps.receiver_opens,
                });
            }
        }
    }
    flows
}
