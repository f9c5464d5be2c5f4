//! The tables: a file and a line each. `docs/tables.md` lists them from here.

mod capture;
mod counters;
mod cpu;
mod flent;
mod iperf3;
mod nic;
mod qdisc;
mod settings;
mod sockets;

pub use capture::{CaptureAcks, CaptureConnections};
pub use counters::Counters;
pub use cpu::Cpu;
pub use flent::{FlentPoints, FlentSamples, FlentTests};
pub use iperf3::{Iperf3Intervals, Iperf3Streams};
pub use nic::Nic;
pub use qdisc::Qdisc;
pub use settings::Settings;
pub use sockets::Sockets;

use crate::table::{Field, Table};

/// The columns of a table.
pub type Fields = fn() -> Vec<Field>;

/// Name and columns of every table.
pub const TABLES: &[(&str, Fields)] = &[
    (Sockets::NAME, Sockets::fields),
    (Counters::NAME, Counters::fields),
    (Cpu::NAME, Cpu::fields),
    (Qdisc::NAME, Qdisc::fields),
    (Nic::NAME, Nic::fields),
    (Settings::NAME, Settings::fields),
    (CaptureAcks::NAME, CaptureAcks::fields),
    (CaptureConnections::NAME, CaptureConnections::fields),
    (Iperf3Intervals::NAME, Iperf3Intervals::fields),
    (Iperf3Streams::NAME, Iperf3Streams::fields),
    (FlentTests::NAME, FlentTests::fields),
    (FlentPoints::NAME, FlentPoints::fields),
    (FlentSamples::NAME, FlentSamples::fields),
];
