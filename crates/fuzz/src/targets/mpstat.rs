//! Output of mpstat.
//!
//! The claims are those of every importer.

use std::path::Path;

use knee_import::mpstat::KIND;

use super::{imports, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "mpstat",
    about: "output of mpstat",
    seeds: &seeds,
    words: &[
        "Linux 6.18 (h) 08/21/26 _x86_64_ (2 CPU)\n",
        "12:00:00 CPU %usr %soft %idle\n",
        "12:00:05 PM 0 1.00 2.00 97.00\n",
        "all",
        "Average:",
        "00:00:00",
        "101.00",
        "\"timestamp\": \"12:00:00\"",
        "\"cpu\": \"0\"",
        "\"date\": \"21.08.2026\"",
        "\"statistics\": [",
        "9999",
        "-1",
        "{",
        "}",
    ],
    check: &check,
};

fn seeds() -> Vec<Vec<u8>> {
    vec![
        sample("crates/import/tests/data/mpstat/text-12.6.txt"),
        sample("crates/import/tests/data/mpstat/json-12.6.json"),
    ]
}

fn check(input: &[u8]) -> usize {
    imports::check(&KIND, Path::new("mpstat.txt"), input)
}
