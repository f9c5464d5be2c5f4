//! Output of `iperf3 -J` and `--json-stream`.
//!
//! Besides that nothing panics: the rows counted are those handed over, and what
//! may not be stored changes nothing but texts.

use knee_observe::Anonymiser;
use knee_observe::import::iperf3::Importer;

use super::{BATCH_BYTES, count_documents, hidden, sample};
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
    if let Some(hidden) = hidden(input, read) {
        assert_eq!(kept, hidden);
    }
    // A value takes many times its text, and a test holds its intervals.
    BATCH_BYTES + 2048 * input.len()
}

/// Rows, documents, and those not understood.
fn read(input: &[u8], anonymiser: Anonymiser) -> [u64; 3] {
    count_documents(input, Importer::new(anonymiser), |importer, sink| {
        importer.read_stream(input, sink)
    })
}
