//! tcpknee's simulator: a packet-level model of one path and the Linux TCP
//! stacks at its ends, in virtual time.
//!
//! Time is u64 nanoseconds, bytes and segments are integers, what is due at one
//! instant has a fixed order, and each component draws from its own random
//! stream: the same cell and repetition give the same bytes, anywhere.

mod capture;
mod cautions;
mod event;
mod flow;
mod gro;
mod host;
mod job;
mod machine;
mod napi;
mod output;
mod processor;
mod world;

use std::sync::Arc;

use knee_scenario::Cell;

pub use cautions::cautions;
pub use host::FourTuple;
pub use knee_tcp::{Answer, Since};
pub use output::{
    Account, CapturedPacket, Decisions, Options, Output, Progress, Rows, SimError, Steered,
};
pub use world::{Sight, Truth, World};

/// Runs one repetition of a cell.
///
/// # Errors
/// The cell names an algorithm or a parameter that does not exist. A run that
/// `progress` ended early is no error: the output reaches as far as it got.
pub fn run(
    cell: &Cell,
    rep: u32,
    options: &Options,
    progress: &mut Progress,
) -> Result<Output, SimError> {
    Ok(World::new(Arc::new(cell.clone()), rep, options)?.run(progress))
}
