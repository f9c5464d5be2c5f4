//! What samples the kernel: one file a collector.

pub mod cpu;
mod error;
pub mod ethtool;
pub mod files;
mod generic;
pub mod host_state;
pub mod identity;
pub mod interrupts;
pub mod nic;
pub mod proc_net;
pub mod processes;
pub mod programs;
pub mod qdisc;
pub mod qdisc_options;
pub mod qdisc_state;
pub mod routes;
pub mod routing;
pub mod setting;
pub mod settings;
pub mod sock_diag;
pub mod stacks;
pub mod sysctl;
pub mod sysfs;
#[doc(hidden)]
pub mod testing;
pub mod text;
pub mod threads;
pub mod totals;
mod turning_point;

pub use error::KernelError;
pub use turning_point::turning_point;
