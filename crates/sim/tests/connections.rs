//! Connections come and go, and leave what they would if they stayed.
//!
//! Method: thousands of short transfers and dialogues on paths that lose, reorder, copy and delay, once with each connection
//! given up when it is over, once with all kept to the end ([`Options::keep_connections`]): tables and captures are the same.

use crate::common::{self, digest};

use digest::digest;
use knee_sim::{Options, Output};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Lines of `[path]`.
const PATHS: [&str; 12] = [
    "",
    "loss = \"3%\"\nack_loss = \"3%\"",
    "loss = \"gilbert 1% burst 5\"",
    "reorder = \"3%\"\nreorder_delay = \"8ms\"",
    "duplicate = \"3%\"",
    "jitter = \"6ms\"\njitter_reorders = true",
    "aggregate = \"9ms\"",
    "buffer = \"0.1bdp\"",
    "queue = \"fq_codel\"",
    "queue = \"step\"\nrtt_change = \"1s to 70ms\"",
    "outage = \"1s for 300ms\"",
    "policer_rate = \"5Mbit/s\"\npolicer_burst = \"30kB\"",
];
/// Lines of `[sender]` and of `[receiver]`.
const HOSTS: [&str; 5] = [
    "",
    "noise = \"40us\"",
    "hosts = 3",
    "hosts = 2\nnoise = \"30us\"",
    "rx_coalesce = \"300us\"",
];
const INTERVALS: [&str; 3] = ["10ms", "130ms", "3s"];
const ALGORITHMS: [&str; 4] = ["cubic", "bbr1", "bbr3", "reno"];

fn text() -> impl Strategy<Value = String> {
    let of = prop::sample::select::<&'static str>;
    let hosts = || of(HOSTS.to_vec());
    let settings = (of(PATHS.to_vec()), hosts(), hosts());
    let run = (
        of(INTERVALS.to_vec()),
        of(ALGORITHMS.to_vec()),
        of(vec!["0s", "500ms"]),
    );
    (settings, run, 1..10_000u32, 1..200u32).prop_map(
        |((path, sender, receiver), (interval, algorithm, warmup), seed, load)| {
            format!(
                "duration = \"3s\"\nwarmup = \"{warmup}\"\nsample_interval = \"{interval}\"\nseed = {seed}\n\
                 [path]\nrate = \"20Mbit/s\"\nrtt = \"30ms\"\n{path}\n\
                 [sender]\n{sender}\n[receiver]\n{receiver}\n\
                 [[flow]]\nalgorithm = \"{algorithm}\"\nname = \"web\"\nworkload = \"web\"\n\
                 load = \"{}kbit/s\"\nsizes = \"pareto shape 1.2 from 1kB\"\n\
                 [[flow]]\nalgorithm = \"{algorithm}\"\nname = \"ask\"\nworkload = \"request-response\"\n\
                 request = \"300B\"\nresponse = \"3kB\"\nrequests = 4\ncount = 40\nstagger = \"50ms\"\n\
                 [[flow]]\nalgorithm = \"{algorithm}\"\nname = \"bursts\"\nworkload = \"on-off\"\n\
                 on = \"300ms\"\noff = \"700ms\"\n",
                load * 100
            )
        },
    )
}

fn run(text: &str, keep_connections: bool) -> Output {
    let options = Options {
        accounts: true,
        capture: true,
        keep_connections,
        ..Options::default()
    };
    let cell = common::cell(text);
    knee_sim::run(&cell, 0, &options, &mut |_, _| true).expect("it can be simulated")
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        rng_seed: RngSeed::Fixed(20_261_123),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_connection_that_is_given_up_leaves_what_it_would_if_it_were_kept(text in text()) {
        let (given_up, kept) = (run(&text, false), run(&text, true));
        prop_assert_eq!(&given_up.accounts, &kept.accounts);
        prop_assert_eq!(digest(&given_up), digest(&kept));
    }
}
