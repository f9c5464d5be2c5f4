//! What other tools wrote, as tables: a file or folder per tool, and its line in
//! [`IMPORTERS`]. It runs on any Linux.
//!
//! A tool's [`Kind`] says all that the command line, the Python functions, the
//! pages and the search for bytes that break it need. What reads its files is an
//! [`Import`]; files of lines need only [`Lines`].

mod addresses;
mod counts;
mod fill;
pub mod flent;
pub mod iperf3;
mod json;
mod kind;
mod lines;
pub mod nginx;
pub mod pcap;
mod reading;
pub mod ss;
pub mod tcp_info;

pub use counts::{Count, More, Report, Value};
pub use kind::{Columns, Given, Kind, Opt, Sample, TableKind, Takes};
pub use lines::Lines;
pub use reading::{AnyImport, Counts, Described, Filled, Import, Sink, Stop};

/// Every importer, in the order in which `knee import --help` lists them.
pub static IMPORTERS: &[&Kind] = &[
    &ss::KIND,
    &nginx::KIND,
    &pcap::KIND,
    &tcp_info::KIND,
    &iperf3::KIND,
    &flent::KIND,
];

/// The importer of that name.
pub fn find(name: &str) -> Option<&'static Kind> {
    IMPORTERS.iter().copied().find(|kind| kind.name == name)
}
