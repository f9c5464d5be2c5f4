//! Every value of every table, and every packet on the wire, of hundreds of drawn scenarios (common/drawn.rs), as digests:
//! what the chosen ones of golden_tables.rs do not come to.
//!
//! Method: the rows at tests/golden/sim_drawn.txt must match to the letter. When a change is meant, write them anew and
//! say why in the commit: `KNEE_WRITE_GOLDEN=1 cargo test -p knee-sim --test all golden_drawn::`. Another version of proptest
//! may draw others.

use crate::common::{self, digest, drawn, golden};

use std::fmt::Write as _;

use digest::digest;
use golden::assert_golden;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const ROWS: usize = 30;
const SCENARIOS_PER_ROW: usize = 200;

fn table() -> String {
    let seed = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), seed);
    let scenario = drawn::scenario();
    let mut table = String::new();
    for row in 0..ROWS {
        let (mut packets, mut digests) = (0, 0u64);
        for _ in 0..SCENARIOS_PER_ROW {
            let drawn = scenario.new_tree(&mut runner).expect("any draw will do");
            let text = drawn.current();
            // A link without a rate carries millions of packets.
            if text.contains("rate = \"unlimited\"") {
                continue;
            }
            let output = common::run_captured(&text);
            packets += output.data_packets;
            digests = digests.rotate_left(1) ^ digest(&output);
        }
        writeln!(table, "{row:<4} packets={packets:<8} digest={digests:016x}")
            .expect("a string takes everything");
    }
    table
}

#[test]
fn every_value_and_packet_is_that_of_the_golden_digests() {
    assert_golden(&table(), "sim_drawn.txt", "all golden_drawn::");
}
