//! Dumps of tc -s qdisc.
//!
//! The claims are those of every importer.

use std::path::Path;

use knee_import::tc::KIND;

use super::{imports, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "tc",
    about: "dumps of tc -s qdisc",
    seeds: &seeds,
    words: &[
        "qdisc fq 8001: dev eth0 root\n",
        " Sent 1 bytes 2 pkt (dropped 3, overlimits 4 requeues 5)\n",
        " backlog 1.5Kb 2p requeues 3\n",
        "  flows 1 (inactive 2 throttled 3)\n",
        "next packet delay 1 ns",
        "1 gc, 2 ns latency",
        "8.92us",
        "\"kind\":\"fq\"",
        "\"bytes\":",
        "9223372036854775808",
        "-1",
        "class",
        "[{",
        "}]",
        "(",
    ],
    check: &check,
};

fn seeds() -> Vec<Vec<u8>> {
    vec![
        sample("crates/import/tests/data/tc/qdisc.txt"),
        sample("crates/import/tests/data/tc/qdisc.json"),
    ]
}

fn check(input: &[u8]) -> usize {
    imports::check(&KIND, Path::new("qdisc.txt"), input)
}
