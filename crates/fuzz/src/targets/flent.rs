//! Data files of flent.
//!
//! The claims are those of every importer.

use std::path::Path;

use knee_import::flent::KIND;

use super::{imports, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "flent",
    about: "data files of flent",
    seeds: &seeds,
    words: &[
        "\"raw_values\":{",
        "\"results\":{",
        "\"x_values\":[",
        "\"metadata\":{",
        "\"SERIES_META\":{",
        "\"T0\":\"2026-08-21T12:00:00.5Z\"",
        "\"t\":1787313600.5",
        "\"val\":",
        "\"dur\":",
        "\"tcp_rtt\":",
        "\"tcp_pacing_rate\":",
        "NaN",
        "-Infinity",
        "1e308",
        "9223372036854775807",
        "null",
        "[]",
        "{}",
    ],
    check: &check,
};

fn seeds() -> Vec<Vec<u8>> {
    vec![sample("crates/import/tests/data/test.flent")]
}

fn check(input: &[u8]) -> usize {
    imports::check(&KIND, Path::new("test.flent"), input)
}
