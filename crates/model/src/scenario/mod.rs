//! The scenario: one file, many cells.
//!
//! [`parse`] reads a TOML scenario into [`Scenario`]: a list of [`Cell`]s, one
//! per point of the matrix, with every value resolved (defaults filled in, BDP
//! turned into bytes). Engines see only cells.

mod cell;

pub use cell::*;
