//! Parquet files that outlive their writer.
//!
//! A Parquet file is read from its footer, which stands at the end: a file
//! whose writer was killed cannot be read. So while `sockets-000001.parquet` is
//! being written it is three files:
//!
//! - `sockets-000001.parquet.part`, the file without its footer;
//! - `sockets-000001.parquet.groups`, what the footer will say of each row
//!   group, appended when the group is complete and on the disk;
//! - `sockets-000001.parquet.reserve`, room for the footer on a full disk.
//!
//! [`Writer::finish`] writes the footer and renames the part. [`recover`] does
//! the same for a writer that is gone: the part is cut after the last row group
//! that `groups` describes. A lock on the part tells the living from the dead.
//! Readers never write: [`unfinished`] tells them what the whole file would be.
//!
//! [`Staged`] is for what can be done again: its segments appear when all are whole.

mod error;
mod groups;
mod keep;
mod recover;
mod reserve;
mod staged;
mod unfinished;
mod writer;

pub use error::Error;
pub use groups::Groups;
pub use keep::{Segment, keep, segments};
pub use recover::{Recovered, recover};
pub use staged::Staged;
pub use unfinished::{Content, Unfinished, unfinished};
pub(crate) use writer::properties;
pub use writer::{Options, Writer};

/// `NAME.parquet.ENDING` of the part `NAME.parquet.part`.
fn sibling(part: &str, ending: &str) -> String {
    let whole = part.strip_suffix(".part").expect("it is a part's name");
    format!("{whole}.{ending}")
}
