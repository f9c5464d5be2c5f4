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
mod gathered;
pub mod iperf3;
mod json;
mod kind;
mod lines;
pub mod memtier;
pub mod mpstat;
pub mod netperf;
pub mod nginx;
pub mod pcap;
pub mod perf;
mod prefix;
pub mod programs;
mod reading;
pub mod ss;
pub mod tc;
pub mod tcp_info;
mod text;
mod time;

use std::io::{self, Read as _};
use std::path::Path;

pub use counts::{Count, Counts, More, Report, Value};
pub use kind::{Columns, Given, Kind, Opt, Sample, TableKind, Takes};
pub use lines::Lines;
pub use reading::{AnyImport, Described, Filled, Import, Sink, Stop};

/// Every importer, in the order in which `knee import --help` lists them.
pub static IMPORTERS: &[&Kind] = &[
    &ss::KIND,
    &nginx::KIND,
    &pcap::KIND,
    &tcp_info::KIND,
    &iperf3::KIND,
    &flent::KIND,
    &netperf::KIND,
    &memtier::KIND,
    &perf::KIND,
    &mpstat::KIND,
    &tc::KIND,
];

/// Of a file, as much as its importer is known by.
const BEGINNING_BYTES: u64 = 64 << 10;

/// The importers whose own the file looks like, by its first bytes.
///
/// # Errors
/// It cannot be read.
pub fn recognise(path: &Path) -> io::Result<Vec<&'static Kind>> {
    let mut begin = Vec::new();
    let input = reading::open(path)?;
    input.take(BEGINNING_BYTES).read_to_end(&mut begin)?;
    let all = IMPORTERS.iter().copied();
    Ok(all.filter(|kind| (kind.looks)(&begin)).collect())
}

/// The importer of that name.
pub fn find(name: &str) -> Option<&'static Kind> {
    IMPORTERS.iter().copied().find(|kind| kind.name == name)
}
