//! What samples the kernel: one file a collector.

pub mod cpu;
pub mod sock_diag;
pub mod tcp_info;
