//! What tcpknee keeps of live hosts: tables that a recorder or an importer
//! (crate `knee-import`) fills, and the Parquet files that hold them.
//!
//! Three steps, each usable by itself:
//!
//! 1. A table ([`Sockets`]) is filled row by row and hands out Arrow record
//!    batches of at most [`ROWS`] rows.
//! 2. A [`segment::Writer`] appends batches to compressed Parquet segments that
//!    outlive `kill -9` and a full disk.
//! 3. [`segment::recover`] makes whole files of what a killed writer left.
//!
//! No kernel's facility is needed: it runs on any Linux.

pub mod anonymise;
pub mod column;
pub mod folder;
pub mod parts;
pub mod segment;
pub mod table;
pub mod tables;

pub use anonymise::Anonymiser;
pub use arrow_array::RecordBatch;
pub use table::{Field, ROWS, Table};
pub use tables::{Sockets, TABLES};
