//! What other tools wrote, as tables: a file per tool.

use std::io;
use std::path::Path;

mod addresses;
mod fill;
pub mod flent;
pub mod iperf3;
mod json;
mod lines;
pub mod nginx;
pub mod pcap;
pub mod ss;
mod ss_line;
mod ss_time;
pub mod tcp_info;

pub use json::Report as DocumentsReport;
pub use lines::{Lines, Report as LinesReport};

/// A batch with the name of its table.
pub type Filled = (&'static str, arrow_array::RecordBatch);

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Of all files, once decompressed.
    pub bytes: u64,
    pub rows: u64,
    /// Lines, packets or documents.
    pub not_understood: u64,
}

/// What makes rows of one tool's files, one file after the other.
pub trait Import {
    type Report;

    /// Reads one file and hands batches to `sink`, whose error ends it. `sink` also
    /// gets the counts, without a batch, now and then.
    ///
    /// # Errors
    /// The file cannot be read, or the sink's.
    fn read<E: From<io::Error>>(
        &mut self,
        path: &Path,
        sink: impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E>;

    fn counts(&self) -> Counts;

    /// Ends the import: the rows that no batch has yet.
    fn rest(&mut self) -> Vec<Filled>;

    /// What was found so far.
    fn report(&self) -> &Self::Report;
}
