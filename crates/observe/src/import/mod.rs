//! What other tools wrote, as tables: a file per tool.

mod lines;
pub mod nginx;
pub mod pcap;
pub mod ss;
mod ss_line;
mod ss_time;
pub mod tcp_info;

pub use lines::{Counts, Lines, read};
