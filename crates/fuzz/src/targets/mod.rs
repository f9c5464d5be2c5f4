//! One file a parser.

mod flent;
mod groups;
mod iperf3;
mod nginx;
mod nginx_conf;
mod pcap;
mod rtnetlink;
mod scenario;
mod sock_diag;
mod ss;
mod tcp_info;

use std::path::Path;

use arrow_array::RecordBatch;

use crate::Target;

/// The parsers under search.
pub static TARGETS: &[Target] = &[
    sock_diag::TARGET,
    rtnetlink::TARGET,
    ss::TARGET,
    nginx::TARGET,
    nginx_conf::TARGET,
    pcap::TARGET,
    iperf3::TARGET,
    flent::TARGET,
    tcp_info::TARGET,
    groups::TARGET,
    scenario::TARGET,
];

/// Memory that does not depend on the input: a batch's columns, each of 8192 rows.
const BATCH_BYTES: usize = 24 << 20;

/// A file of this repository, by its path from the root.
fn sample(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A number that an input's bytes give, to choose one of many checks.
fn choice(input: &[u8]) -> usize {
    input.iter().fold(0x9dc5usize, |hash, &byte| {
        (hash ^ usize::from(byte)).wrapping_mul(0x0100_0193)
    }) >> 4
}

/// Of row 1, every column is null or as in row 0.
fn assert_kept_or_null(batch: &RecordBatch, what: &str) {
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let kept = || column.slice(0, 1).to_data() == column.slice(1, 1).to_data();
        assert!(
            column.is_null(1) || kept(),
            "{what}: column {} is {:?}, not {:?}",
            field.name(),
            column.slice(1, 1),
            column.slice(0, 1)
        );
    }
}
