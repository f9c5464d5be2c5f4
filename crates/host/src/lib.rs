//! A host as its packets meet it: processors that are busy, a NIC with rings and queues, and what each operation costs.
//!
//! Like the path it has no clock: it is told the time, and says what is due when. What a job does (the TCP of an end, an
//! application) it does not know either; whoever owns the jobs runs them and charges the processor.
//!
//! - `costs`: what an operation costs, and the classes that reports show; `bundles`: operations that come together; `spent`: what a
//!   processor has spent
//! - `cpu`: one processor: interrupts, softirqs before threads, ksoftirqd, fair sharing, stolen time
//! - `steer`: which queue, which processor (RSS, RPS, RFS, XPS)
//! - `ring`: descriptors of a receive queue and the NAPI that polls them; `budget`: how much polls may do at a time
//! - `flow_limit`: whose packets a backlog refuses that fills up
//! - `dim`: how long a queue gathers packets, by what comes

mod budget;
mod bundles;
mod costs;
mod cpu;
mod dim;
mod flow_limit;
mod ring;
mod spent;
mod steal;
mod steer;

pub use budget::Budget;
pub use bundles::Bundle;
pub use costs::{COSTS, Class, Cost, CostKind, Costs};
pub use cpu::{Cpu, Done, Next, Thread};
pub use dim::{Dim, Traffic};
pub use flow_limit::FlowLimit;
pub use ring::Ring;
pub use spent::Spent;
pub use steal::Steal;
pub use steer::{Rfs, hash, pick, sends_by};
