//! Data files of flent.
//!
//! Besides that nothing panics: the rows counted are those handed over, and what
//! may not be stored changes nothing but texts.

use std::path::Path;

use knee_observe::Anonymiser;
use knee_observe::import::flent::Importer;

use super::{BATCH_BYTES, count_documents, hidden, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "flent",
    about: "data files of flent",
    seeds,
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
    check,
};

fn seeds() -> Vec<Vec<u8>> {
    vec![sample("crates/fuzz/seeds/test.flent")]
}

fn check(input: &[u8]) -> usize {
    let kept = read(input, Anonymiser::Keep);
    if let Some(hidden) = hidden(input, read) {
        assert_eq!(kept, hidden);
    }
    // A value takes many times its text, and its rows hold it again.
    BATCH_BYTES + 2048 * input.len()
}

/// Rows, documents, and those not understood.
fn read(input: &[u8], anonymiser: Anonymiser) -> [u64; 3] {
    count_documents(input, Importer::new(anonymiser), |importer, sink| {
        importer.read_stream(Path::new("test.flent"), input, sink)
    })
}
