//! Looks on at the running kernel through its tracepoints: connections, segment
//! by segment, and how long packets wait in qdiscs.
//!
//! The programs are those of `bpf/trace_tcp.bpf.c` and `bpf/trace_qdisc.bpf.c`. They and their links are held
//! by descriptors alone, so that the kernel takes them out with the process,
//! however it ends.

pub(crate) mod attached;
mod cost;
pub mod drops;
mod filter;
pub mod qdisc;
mod record;
pub mod tcp;

pub use cost::{Cost, ProgramCost};
pub use filter::{Prefix, TcpFilter};
