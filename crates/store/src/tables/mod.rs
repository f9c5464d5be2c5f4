//! The tables that `knee record` and `knee assign` write: a file and a line each. `docs/observe.md` lists them from here.
//! An importer's own tables are beside the importer.

mod assignments;
mod counters;
mod cpu;
mod nic;
mod qdisc;
mod settings;
mod sockets;

pub use assignments::Assignments;
pub use counters::Counters;
pub use cpu::Cpu;
pub use nic::Nic;
pub use qdisc::Qdisc;
pub use settings::Settings;
pub use sockets::Sockets;

use crate::table::{Field, Table};

/// The columns of a table.
pub type Fields = fn() -> Vec<Field>;

/// Name and columns of each.
pub const TABLES: &[(&str, Fields)] = &[
    (Sockets::NAME, Sockets::fields),
    (Counters::NAME, Counters::fields),
    (Cpu::NAME, Cpu::fields),
    (Qdisc::NAME, Qdisc::fields),
    (Nic::NAME, Nic::fields),
    (Settings::NAME, Settings::fields),
    (Assignments::NAME, Assignments::fields),
];
