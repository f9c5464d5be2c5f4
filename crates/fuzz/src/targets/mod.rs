//! One file a parser. An importer needs none: its `Kind` says enough for the claims
//! that all importers make; those with a file make more, or have more samples.

mod flent;
mod groups;
mod imports;
mod iperf3;
mod mpstat;
mod nginx;
mod nginx_conf;
mod pcap;
mod rtnetlink;
mod scenario;
mod sock_diag;
mod ss;
mod tc;
mod tcp_info;

use std::path::Path;
use std::sync::LazyLock;

use arrow_array::RecordBatch;
use knee_store::Anonymiser;

use crate::Target;

/// The parsers under search.
pub static TARGETS: LazyLock<Vec<Target>> = LazyLock::new(|| {
    let mut targets = vec![
        sock_diag::TARGET,
        rtnetlink::TARGET,
        ss::TARGET,
        nginx::TARGET,
        nginx_conf::TARGET,
        pcap::TARGET,
        iperf3::TARGET,
        flent::TARGET,
        tcp_info::TARGET,
        mpstat::TARGET,
        tc::TARGET,
        groups::TARGET,
        scenario::TARGET,
    ];
    targets.extend(imports::others(&targets).collect::<Vec<_>>());
    targets
});

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

/// Every kind of address and text is hidden.
const HIDING: Anonymiser = Anonymiser::Truncate {
    v4_bits: 24,
    v6_bits: 48,
};

/// What is read when addresses and texts are hidden, for one in eight inputs.
fn hidden<T>(input: &[u8], read: impl FnOnce(&[u8], Anonymiser) -> T) -> Option<T> {
    choice(input).is_multiple_of(8).then(|| read(input, HIDING))
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
