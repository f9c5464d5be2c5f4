//! What samples the kernel: one file a collector.

pub mod clock;
pub mod cpu;
mod error;
pub mod ethtool;
mod generic;
pub mod identity;
mod netlink;
pub mod nic;
pub mod proc_net;
pub mod processes;
pub mod qdisc;
pub mod qdisc_options;
pub mod routing;
pub mod settings;
pub mod sock_diag;
pub mod sysctl;
#[doc(hidden)]
pub mod testing;
pub mod text;
pub mod threads;
pub mod totals;
mod turning_point;

pub use error::KernelError;
pub use turning_point::turning_point;
