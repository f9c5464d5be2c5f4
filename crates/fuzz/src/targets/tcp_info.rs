//! Files of M-Lab's tcp-info.
//!
//! Besides that nothing panics: the rows counted are those handed over, and what
//! may not be stored changes nothing but texts.

use std::path::Path;

use knee_import::tcp_info::{Options, Parser};
use knee_import::{Import as _, Lines as _};
use knee_store::Anonymiser;
use knee_tables::ROWS;

use super::{BATCH_BYTES, hidden, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "tcp-info",
    about: "files of M-Lab's tcp-info",
    seeds: &seeds,
    words: &[
        "{\"Timestamp\":\"2026-07-01T02:00:12.5+02:00\",",
        "\"RawIDM\":\"",
        "\"Attributes\":[",
        "\"Metadata\":{\"UUID\":\"",
        "ndt-abcde_1559749627_unsafe_0000000000062D84",
        "null,",
        "AAAA",
        "/////w==",
        "\"\"",
        "]}\n{",
    ],
    check: &check,
};

fn seeds() -> Vec<Vec<u8>> {
    vec![sample("crates/import/tests/data/tcp_info.jsonl")]
}

fn check(input: &[u8]) -> usize {
    let kept = read(input, Anonymiser::Keep);
    if let Some(hidden) = hidden(input, read) {
        assert_eq!(kept, hidden);
    }
    BATCH_BYTES + 64 * input.len()
}

/// Rows, lines, and those not understood.
fn read(input: &[u8], anonymiser: Anonymiser) -> [u64; 3] {
    let mut parser = Parser::new(Options {
        anonymiser,
        host: None,
    });
    parser.file(Path::new("tcp-info.jsonl"));
    let mut rows = 0;
    for line in input.split(|&byte| byte == b'\n') {
        let before = parser.report().clone();
        if let Some(batch) = parser.line(line) {
            assert_eq!(batch.num_rows(), ROWS, "a batch leaves when it is full");
            rows += batch.num_rows() as u64;
        }
        let now = parser.report();
        let told = (now.rows - before.rows) + (now.not_understood - before.not_understood);
        assert!(
            told <= 1,
            "a line is one socket, metadata, or not understood"
        );
        assert_eq!(now.units, before.units + 1);
    }
    rows += parser
        .take()
        .iter()
        .map(|batch| batch.num_rows() as u64)
        .sum::<u64>();
    let report = parser.report();
    assert_eq!(report.rows, rows);
    assert!(report.more.rows_without_time <= rows);
    assert!(report.first.len() <= 5);
    [rows, report.units, report.not_understood]
}
