//! The workloads on real sockets: one process per side drives the state
//! machines of `knee_scenario::workload` for all its connections. The sides
//! are those of a lab, or two hosts of the user's.
//!
//! `generator` is a side, with a `connection` for each of its ends; `socket`
//! makes these with the scenario's options; `ends` says how they find each
//! other, `strangers` are those who have not said yet who they are; `shared` is what a sampler sees of them meanwhile.
//! `program` is one of the user's own, which opens its own connections.

mod clock;
mod connection;
mod ends;
mod error;
mod generator;
mod pinning;
mod program;
mod shared;
mod socket;
mod start;
mod strangers;

pub use connection::{read_option, read_tcp_info};
pub use ends::{Addresses, Ends, GREETING_BYTES, Secret, greeted, greeting};
pub use error::Error;
pub use generator::{EndReport, Plan, generate};
pub use pinning::{affinity, pin};
pub use program::{Ended, Listeners, Program, Task, await_listener};
pub use shared::{Progress, Shared};
pub use socket::{Algorithm, Side, listen_at, socket};
pub use start::Start;
pub use strangers::{Strangers, peer};

use knee_scenario::Cell;
use knee_scenario::workload::in_turn;
use knee_units::Nanos;

/// One connection of the scenario, in the order of the simulator's flow numbers.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub number: u32,
    /// Index of its `[[flow]]`.
    pub group: usize,
    /// When it is opened, after the start.
    pub open: Nanos,
    /// How much it carries, where the workload draws that.
    pub bytes: u64,
    pub receiver_opens: bool,
    /// Which thread serves it at the sender's host, and at the receiver's.
    pub threads: [usize; 2],
}

/// Every connection that the engine itself opens; programs open their own.
pub fn flows(cell: &Cell, rep: u32) -> Vec<Flow> {
    let receiver_opens: Vec<bool> = cell
        .flows
        .iter()
        .map(|spec| {
            spec.workload
                .apps(0)
                .is_some_and(|apps| apps.receiver_opens)
        })
        .collect();
    (0..)
        .zip(cell.connections(rep))
        .map(|(number, connection)| Flow {
            number,
            group: connection.group,
            open: connection.open,
            bytes: connection.bytes,
            receiver_opens: receiver_opens[connection.group],
            threads: cell.flows[connection.group]
                .workload
                .threads()
                .map(|threads| in_turn(connection.place, threads)),
        })
        .collect()
}
