//! Key results of every algorithm on nine paths, which a change of behaviour moves.
//!
//! Method: the table at tests/golden/sim.txt in the repository's root must match
//! to the letter. When a change is meant, write it anew and say why in the commit:
//! `KNEE_WRITE_GOLDEN=1 cargo test -p knee-sim --test all golden::`.
//!
//! Rows of one path may be equal: dctcp and lp are Reno on every path that
//! does not mark, compound and cdg on some (their rows of `1bdp` differ), yeah
//! is Scalable on some (likewise). The path `marks` tells dctcp from Reno. lp is
//! Reno on all of them: simulated hosts add a random offset to their
//! timestamps, as Linux does by default, and lp then sees no delay.

use crate::common::{self, golden};

use std::collections::BTreeMap;
use std::fmt::Write as _;

use golden::assert_golden;
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/sim.txt");

const SCENARIOS: [(&str, &str); 9] = [
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
    (
        "marks",
        "duration = \"20s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"20ms\"\nbuffer = \"4bdp\"\nqueue = \"step\"\n\
         [sender]\ntcp_ecn = 3\n[receiver]\ntcp_ecn = 3\n",
    ),
    (
        "reorder",
        "duration = \"20s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"40ms\"\nreorder = \"1%\"\n\
         reorder_delay = \"60ms\"\n",
    ),
    (
        "on_off",
        "duration = \"20s\"\n[path]\nrate = \"50Mbit/s\"\nrtt = \"60ms\"\nbuffer = \"0.5bdp\"\n",
    ),
];

/// What a path's flow does besides sending without end.
fn workload(scenario: &str) -> &'static str {
    match scenario {
        "on_off" => "workload = \"on-off\"\non = \"700ms\"\noff = \"900ms\"\n",
        _ => "",
    }
}

fn table() -> String {
    let mut table = format!(
        "{:<10} {:<12} {:>12} {:>8} {:>12}\n",
        "scenario", "algo", "bytes_acked", "retrans", "srtt_us_p50"
    );
    for (name, path) in SCENARIOS {
        for algorithm in common::algorithms() {
            let flows = common::run(&format!(
                "seed = 7\n{path}[[flow]]\nalgorithm = \"{algorithm}\"\n{}",
                workload(name)
            ))
            .flows;
            writeln!(
                table,
                "{name:<10} {algorithm:<12} {:>12} {:>8} {:>12.1}",
                flows.bytes_acked.get(0).unwrap(),
                flows.total_retrans[0],
                flows.srtt_us_p50.get(0).unwrap_or(0.0)
            )
            .expect("a string takes everything");
        }
    }
    table
}

#[test]
fn results_are_those_of_the_golden_table() {
    assert_golden(&table(), "sim.txt", "all golden::");
}

/// Read from the table, which the test above holds to what is simulated.
#[test]
fn no_two_algorithms_have_the_same_rows_but_lp_and_reno() {
    let table = std::fs::read_to_string(FILE).expect("the golden table");
    let mut rows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in table.lines().skip(1) {
        let words: Vec<_> = line.split_whitespace().collect();
        let [scenario, algorithm, figures @ ..] = &words[..] else {
            panic!("{FILE}: {line}: got fewer than two words");
        };
        let row = format!("{scenario} {}", figures.join(" "));
        rows.entry(algorithm).or_default().push(row);
    }
    let alike: Vec<_> = rows
        .iter()
        .flat_map(|(a, of_a)| rows.iter().map(move |(b, of_b)| (a, of_a, b, of_b)))
        .filter(|(a, of_a, b, of_b)| a < b && of_a == of_b)
        .map(|(a, _, b, _)| (*a, *b))
        .collect();
    assert_eq!(alike, [("lp", "reno")]);
}
