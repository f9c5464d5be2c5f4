//! A host as its packets meet it: processors that are busy, a NIC with rings and queues, and what each operation costs.
//!
//! Like the path it has no clock: it is told the time, and says what is due when. What a job does (the TCP of an end, an
//! application) it does not know either; whoever owns the jobs runs them and presents a [`Bill`].
//!
//! - `costs`: what an operation costs, and the classes that reports show; `bill`: what one job did
//! - `cpu`: one processor: interrupts, softirqs before threads, ksoftirqd, fair sharing, stolen time
//! - `steer`: which queue, which processor (RSS, RPS, RFS)
//! - `ring`: descriptors of a receive queue and the NAPI that polls them

mod bill;
mod costs;
mod cpu;
mod ring;
mod steal;
mod steer;

pub use bill::{Bill, Spent};
pub use costs::{COSTS, Class, Cost, CostKind, Costs};
pub use cpu::{Cpu, Done, Next, Thread};
pub use ring::Ring;
pub use steal::Steal;
pub use steer::{Rfs, hash, pick};
