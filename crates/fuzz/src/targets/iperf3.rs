//! Output of `iperf3 -J` and `--json-stream`.
//!
//! The claims are those of every importer; the samples are of all its versions.

use std::path::Path;

use knee_import::iperf3::KIND;

use super::{imports, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "iperf3",
    about: "output of iperf3",
    seeds: &seeds,
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
    check: &check,
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
    .map(|name| sample(&format!("crates/import/tests/data/iperf3/{name}.json")))
    .to_vec()
}

fn check(input: &[u8]) -> usize {
    imports::check(&KIND, Path::new("stream.json"), input)
}
