//! Data files of flent.
//!
//! Besides that nothing panics: the rows counted are those handed over, and what
//! may not be stored changes nothing but texts.

use std::io;
use std::path::Path;

use knee_observe::Anonymiser;
use knee_observe::import::flent::Importer;
use knee_observe::import::{Filled, Import as _};

use super::{BATCH_BYTES, choice, sample};
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
    if choice(input).is_multiple_of(8) {
        let hidden = read(
            input,
            Anonymiser::Truncate {
                v4_bits: 24,
                v6_bits: 48,
            },
        );
        assert_eq!(kept, hidden);
    }
    // A value takes many times its text, and its rows hold it again.
    BATCH_BYTES + 2048 * input.len()
}

/// Rows, documents, and those not understood.
fn read(input: &[u8], anonymiser: Anonymiser) -> [u64; 3] {
    let mut importer = Importer::new(anonymiser);
    let mut rows = 0;
    let mut count = |filled: Option<Filled>| {
        rows += filled.map_or(0, |(_, batch)| batch.num_rows() as u64);
    };
    importer
        .read_stream(Path::new("test.flent"), input, |_, filled| {
            count(filled);
            Ok::<(), io::Error>(())
        })
        .expect("memory can be read");
    (importer.rest().into_iter()).for_each(|filled| count(Some(filled)));
    let report = importer.report();
    assert_eq!(report.rows, rows);
    assert!(report.bytes <= input.len() as u64);
    assert!(report.documents_not_understood <= report.documents);
    assert!(report.first.len() <= 5);
    [rows, report.documents, report.documents_not_understood]
}
