//! Labs: network namespaces, their processes and the devices that join them.
//!
//! Nothing of a lab has a name that outlives it: its namespaces are held by
//! descriptors, its devices by the link, and every process belongs to a PID
//! namespace whose first process ends all others with it. That first process
//! ends with the one that asked for the lab. There is nothing to sweep.

mod build;
mod child;
mod enter;
mod facts;
pub mod hosts;
mod joint;
mod limits;
mod module;
mod namespace;
pub mod netem;
pub(crate) mod netlink;
mod nic;
mod packets;
mod repetition;
mod rows;
pub mod run;
mod run_as;
mod sample;
mod sampler;
mod settings;
pub mod shell;
#[cfg(test)]
mod testing;
mod tool;
mod veth;

pub use build::{Addresses, FIRST_PORT, Lab, check_flows};
pub use child::{Child, reap_orphans, spawn};
pub use enter::enter;
pub use facts::Facts;
pub use joint::Joint;
pub use module::load_module;
pub use namespace::{DEVICE, Namespace};
pub use nic::{check, host_wide};
pub use run_as::RunAs;
pub use settings::qdisc;
