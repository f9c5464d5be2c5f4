//! Tables of live hosts, which `knee record` and `knee assign` write.

use crate::{Assignments, Counters, Cpu, Nic, Qdisc, Schema, Settings, Sockets, Table};

/// Tables of a recording; `assignments` is the log of an experiment.
pub const RECORDING: &[Schema] = &[
    Sockets::SCHEMA,
    Counters::SCHEMA,
    Cpu::SCHEMA,
    Qdisc::SCHEMA,
    Nic::SCHEMA,
    Settings::SCHEMA,
    Assignments::SCHEMA,
];
