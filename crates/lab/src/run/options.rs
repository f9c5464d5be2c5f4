//! How a repetition is run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::RunAs;

/// What the caller settles.
pub struct Options {
    /// What the kernel calls each of the scenario's algorithms.
    pub congestion: BTreeMap<String, String>,
    /// Where what programs print is kept.
    pub output: PathBuf,
    /// Who programs run as; `None`: as the lab does.
    pub run_as: Option<RunAs>,
    /// Memory for the headers of packets at each host, which are captured; 0: none are.
    pub capture_bytes: u64,
}
