//! Output of `iperf3 -J` and `--json-stream`.
//!
//! Besides that nothing panics: the rows counted are those handed over, and what
//! may not be stored changes nothing but texts.

use std::io;

use knee_observe::Anonymiser;
use knee_observe::import::iperf3::Importer;
use knee_observe::import::{Filled, Import as _};

use super::{BATCH_BYTES, choice, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "iperf3",
    about: "output of iperf3",
    seeds,
    words: &[
        "{\"event\":\"start\",\"data\":{",
        "{\"event\":\"interval\",\"data\":{",
        "{\"event\":\"end\",\"data\":{",
        "\"server_output_json\":{",
        "\"streams\":[{",
        "\"sum_received\":{",
        "\"omitted\":true",
        "\"sender\":false",
        "\"socket\":5",
        "\"seconds\":1e300",
        "\"snd_cwnd\":-1",
        "\"rtt\":",
        "\"start\":",
        "\"end\":",
        "9223372036854775807",
        "1e999",
        "null",
        "[]",
        "{}",
        "}\n{",
    ],
    check,
};

fn seeds() -> Vec<Vec<u8>> {
    [
        "v3.1-tcp",
        "v3.1-reverse-udp",
        "v3.12-bidir",
        "v3.12-interrupted",
        "v3.12-omit",
        "v3.18-error",
        "v3.18-killed",
        "v3.18-stream",
        "v3.21-full",
    ]
    .map(|name| sample(&format!("crates/observe/tests/data/iperf3/{name}.json")))
    .to_vec()
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
    // A value takes many times its text, and a test holds its intervals.
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
        .read_stream(input, |_, filled| {
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
