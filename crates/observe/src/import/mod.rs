//! What other tools wrote, as tables: a file per tool.

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
pub use lines::{Counts, Lines, read};

/// A batch with the name of its table.
pub type Filled = (&'static str, arrow_array::RecordBatch);
