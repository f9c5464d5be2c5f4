//! What other tools wrote, as tables: a file per tool.

mod lines;
pub mod nginx;
pub mod pcap;
pub mod ss;
mod ss_line;
mod ss_time;

pub use lines::{Counts, Lines, read};
