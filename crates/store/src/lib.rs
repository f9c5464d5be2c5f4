//! What tcpknee keeps of live hosts and runs: tables as Arrow record batches, and the Parquet files that hold them.
//!
//! 1. A recorder or an importer fills a table of `knee-tables` by row number; [`take`] hands out a record batch of at
//!    most [`ROWS`](knee_tables::ROWS) rows.
//! 2. A [`segment::Writer`] appends batches to compressed Parquet segments, which outlive `kill -9` and a full disk.
//! 3. [`segment::recover`] makes whole files of what a killed writer left.
//!
//! ```
//! use knee_tables::{Batch, Sockets, Table};
//!
//! let mut sockets = Sockets::default();
//! let row = sockets.add_row();
//! sockets.srtt_us.set(row, 40_000); // columns without a value are null
//! let batch = knee_store::take(&mut sockets);
//! assert_eq!((batch.num_rows(), sockets.rows()), (1, 0));
//! ```
//!
//! It runs on any Linux: no kernel's facility is needed.

pub mod anonymise;
pub mod arrow;
pub mod folder;
pub mod parts;
pub mod segment;

pub use anonymise::Anonymiser;
pub use arrow::{schema, take};
pub use arrow_array::RecordBatch;
