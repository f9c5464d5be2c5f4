//! What samples the kernel: one file a collector.

pub mod cpu;
pub mod nic;
pub mod proc_net;
pub mod processes;
pub mod qdisc;
pub mod routing;
pub mod sock_diag;
