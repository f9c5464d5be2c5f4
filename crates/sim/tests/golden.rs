//! Key results of every algorithm on six paths, which a change of behaviour moves.
//!
//! Method: the table at tests/golden/sim.txt in the repository's root must match
//! to the letter. When a change is meant, write it anew and say why in the commit:
//! `KNEE_WRITE_GOLDEN=1 cargo test -p knee-sim --test golden`.

mod common;

use std::fmt::Write as _;

const SCENARIOS: [(&str, &str); 6] = [
    (
        "1bdp",
        "duration = \"20s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"1bdp\"\n",
    ),
    (
        "shallow",
        "duration = \"20s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"30ms\"\nbuffer = \"0.1bdp\"\n",
    ),
    (
        "loss",
        "duration = \"20s\"\n[path]\nrate = \"100Mbit/s\"\nrtt = \"100ms\"\nloss = \"1%\"\n",
    ),
    (
        "lan",
        "duration = \"1s\"\n[path]\nrate = \"1Gbit/s\"\nrtt = \"200us\"\nbuffer = \"256KiB\"\n",
    ),
    (
        "acks_lost",
        "duration = \"20s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"40ms\"\nloss = \"periodic 0.5%\"\n\
         ack_loss = \"20%\"\n[sender]\npacing = \"fq\"\n[receiver]\ngro = false\n",
    ),
    (
        "harsh",
        "duration = \"60s\"\n[path]\nrate = \"5Mbit/s\"\nrtt = \"80ms\"\nloss = \"20%\"\nack_loss = \"20%\"\n",
    ),
];

fn table() -> String {
    let mut table = format!(
        "{:<10} {:<12} {:>12} {:>8} {:>12}\n",
        "scenario", "algo", "bytes_acked", "retrans", "srtt_us_p50"
    );
    for (name, path) in SCENARIOS {
        for algorithm in common::algorithms() {
            let flows = common::run(&format!(
                "seed = 7\n{path}[[flow]]\nalgorithm = \"{algorithm}\"\n"
            ))
            .flows;
            writeln!(
                table,
                "{name:<10} {algorithm:<12} {:>12} {:>8} {:>12.1}",
                flows.bytes_acked[0],
                flows.total_retrans[0],
                flows.srtt_us_p50[0].unwrap_or(0.0)
            )
            .expect("a string takes everything");
        }
    }
    table
}

#[test]
fn results_are_those_of_the_golden_table() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/sim.txt");
    let table = table();
    if std::env::var("KNEE_WRITE_GOLDEN").is_ok() {
        std::fs::write(file, &table).expect("the golden table can be written");
    }
    let golden = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        table == golden,
        "results differ from tests/golden/sim.txt:\n{golden}\nnow:\n{table}\n\
         If that is meant: KNEE_WRITE_GOLDEN=1 cargo test -p knee-sim --test golden"
    );
}
