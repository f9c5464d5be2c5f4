//! The tables: a file and a line each. `docs/tables.md` lists them from here.

mod sockets;

pub use sockets::Sockets;

use crate::table::{Field, Table};

/// Name and columns of every table.
pub const TABLES: &[(&str, fn() -> Vec<Field>)] = &[(Sockets::NAME, Sockets::fields)];
