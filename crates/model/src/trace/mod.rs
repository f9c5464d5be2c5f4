//! Traces: what was recorded of a real path, in files beside the scenario.

mod files;

pub(crate) use files::lines;
pub use files::{FileError, Files, ReadFile};
