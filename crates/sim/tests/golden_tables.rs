//! Every value of every table, and every packet on the wire, of runs that mix algorithms and workloads over each queue,
//! each trouble of a path and each setting of the hosts, as digests; before them every parameter of a queue and its bounds.
//!
//! Method: the rows at tests/golden/sim_tables.txt must match to the letter. When a change is meant, write them anew and
//! say why in the commit: `KNEE_WRITE_GOLDEN=1 cargo test -p knee-sim --test all golden_tables::`.

use crate::common::{self, digest, golden};

use std::fmt::Write as _;

use digest::digest;
use golden::assert_golden;
use knee_path::queue::QUEUES;

const FLOWS: &str = r#"
[[flow]]
algorithm = "cubic"
[[flow]]
name = "held"
algorithm = "bbr1"
max_pacing_rate = "2Mbit/s"
start = "200ms"
[[flow]]
name = "short"
algorithm = "bbr3"
workload = "transfer"
bytes = "200kB"
count = 3
stagger = "300ms"
[[flow]]
name = "ask"
algorithm = "reno"
workload = "request-response"
request = "300B"
response = "30kB"
depth = 2
[[flow]]
name = "marked"
algorithm = "prague"
[[flow]]
name = "classic"
algorithm = "dctcp"
[[flow]]
name = "pages"
algorithm = "dctcp"
workload = "web"
load = "3Mbit/s"
sizes = "pareto shape 1.2 from 9kB"
[[flow]]
name = "bursts"
algorithm = "vegas"
workload = "on-off"
on = "300ms"
off = "700ms"
"#;

/// Room for a queue to decide what to drop, as a line of `[path]`.
const DEEP: &str = "buffer = \"4bdp\"\n";

/// What a path does besides delaying: lines of `[path]`.
const TROUBLES: [(&str, &str); 14] = [
    ("lossy", "loss = \"2%\"\nack_loss = \"5%\""),
    ("harsh", "loss = \"15%\"\nack_loss = \"15%\""),
    ("gilbert", "loss = \"gilbert 1% burst 5\""),
    ("periodic", "loss = \"periodic 0.5%\""),
    ("shallow", "buffer = \"0.1bdp\""),
    ("packets", "buffer = \"15packets\""),
    ("reorders", "reorder = \"3%\"\nreorder_delay = \"8ms\""),
    ("jitters", "jitter = \"6ms\"\njitter_reorders = true"),
    (
        "wavers",
        "jitter = \"3ms\"\njitter_distribution = \"normal\"",
    ),
    ("outage", "outage = \"1s for 300ms\""),
    ("reroutes", "rtt_change = \"1s to 70ms\""),
    (
        "policed",
        "policer_rate = \"5Mbit/s\"\npolicer_burst = \"30kB\"",
    ),
    (
        "marked",
        "policer_rate = \"5Mbit/s\"\npolicer_burst = \"30kB\"\npolicer_action = \"mark\"",
    ),
    (
        "slow_acks",
        "ack_rate = \"300kbit/s\"\nack_queue = \"fq_codel\"",
    ),
];

/// Settings of the hosts, and of the queue: lines of `[path]`, `[sender]` and `[receiver]`.
const SETTINGS: [(&str, &str, &str, &str); 14] = [
    ("fq_paces", "", "pacing = \"fq\"", ""),
    ("timer_paces", "", "pacing = \"timer\"", ""),
    ("late", "", "noise = \"40us\"", "noise = \"25us\""),
    ("late_fq", "", "pacing = \"fq\"\nnoise = \"2ms\"", ""),
    ("coalesces", "", "", "rx_coalesce = \"300us\""),
    (
        "small_rmem",
        "",
        "",
        "tcp_rmem_max = \"60kB\"\ntcp_rmem_default = \"60kB\"",
    ),
    ("small_wmem", "", "tcp_wmem_max = \"60kB\"", ""),
    ("hz_100", "loss = \"1%\"", "hz = 100", "hz = 100"),
    ("restarts_not", "", "tcp_slow_start_after_idle = false", ""),
    ("initcwnd_3", "", "initcwnd = 3", ""),
    ("small_gso", "loss = \"1%\"", "gso_max = \"4kB\"", ""),
    ("quick_acks", "", "", "quickack = true"),
    ("rto_min", "loss = \"5%\"", "tcp_rto_min = \"60ms\"", ""),
    ("sacks_at_once", "loss = \"3%\"", "", "tcp_comp_sack_nr = 0"),
];

/// What an ACK stands for is as long as this: of few flows it is more packets than the three bits of their marks count.
const AGGREGATES_MS: [u32; 6] = [9, 11, 14, 18, 25, 40];
const FEW: &str = "[[flow]]\nalgorithm = \"prague\"\n[[flow]]\nname = \"again\"\nalgorithm = \"dctcp\"\nstart = \"1s\"\n";

/// Parameters that the queues have besides their defaults: lines of `[path]`.
const PARAMS: [&str; 22] = [
    "queue = \"codel\"\ncodel.target = \"2ms\"\ncodel.interval = \"40ms\"",
    "queue = \"codel\"\ncodel.ecn = false\ncodel.ce_threshold = \"1ms\"",
    "queue = \"fq_codel\"\nfq_codel.flows = 4\nfq_codel.quantum = \"300B\"",
    "queue = \"fq_codel\"\nfq_codel.memory_limit = \"66kB\"",
    "queue = \"pie\"\npie.target = \"5ms\"\npie.ecn = true",
    "queue = \"pie\"\npie.bytemode = true\npie.tupdate = \"5ms\"",
    "queue = \"pie\"\npie.dq_rate_estimator = true",
    "queue = \"fq_pie\"\nfq_pie.flows = 4",
    "queue = \"red\"\nred.ecn = true",
    "queue = \"red\"\nred.adaptive = true",
    "queue = \"red\"\nred.harddrop = true\nred.ecn = true",
    "queue = \"dualpi2\"\ndualpi2.step = \"300us\"\ndualpi2.coupling = 3\ndualpi2.target = \"5ms\"",
    "queue = \"dualpi2\"\ndualpi2.drop_overload = false",
    "queue = \"dualpi2\"\ndualpi2.min_qlen_step = 2",
    "queue = \"fq\"\nfq.flow_limit = 10\nfq.quantum = \"1000B\"",
    "queue = \"fq\"\nfq.ce_threshold = \"1ms\"",
    "queue = \"cake\"\ncake.bandwidth = \"8Mbit/s\"\ncake.rtt = \"20ms\"",
    "queue = \"cake\"\ncake.bandwidth = \"8Mbit/s\"\ncake.overhead = \"38B\"\ncake.mpu = \"84B\"",
    "queue = \"cake\"\ncake.memory_limit = \"50kB\"",
    "queue = \"cake\"\ncake.isolation = \"flowblind\"",
    "queue = \"step\"\nstep.ce_bytes = \"20kB\"",
    "queue = \"step\"\nack_loss = \"40%\"\naggregate = \"5ms\"",
];

fn row(name: &str, path: &str, sender: &str, receiver: &str) -> String {
    row_of(name, path, sender, receiver, FLOWS)
}

fn row_of(name: &str, path: &str, sender: &str, receiver: &str, flows: &str) -> String {
    let output = common::run_captured(&format!(
        "duration = \"3s\"\nwarmup = \"500ms\"\nsample_interval = \"20ms\"\nseed = 7\n\
         [path]\nrate = \"12Mbit/s\"\nrtt = \"30ms\"\n{path}\n[sender]\n{sender}\n[receiver]\n{receiver}\n{flows}"
    ));
    format!(
        "{name:<24} packets={:<6} digest={:016x}\n",
        output.data_packets,
        digest(&output)
    )
}

fn table() -> String {
    let mut table = String::new();
    for kind in QUEUES {
        for p in kind.params {
            writeln!(
                table,
                "{}.{}: {} from {} to {}",
                kind.name, p.name, p.default, p.min, p.max
            )
            .expect("a string takes everything");
        }
    }
    for kind in QUEUES {
        let path = format!("{DEEP}queue = \"{}\"", kind.name);
        for (what, tcp_ecn) in [
            ("", ""),
            (" classic", "tcp_ecn = 1"),
            (" accurate", "tcp_ecn = 3"),
        ] {
            table += &row(&format!("{}{what}", kind.name), &path, tcp_ecn, tcp_ecn);
        }
    }
    for path in PARAMS {
        let name = path.lines().nth(1).unwrap().split(" =").next().unwrap();
        table += &row(name, &format!("{DEEP}{path}"), "tcp_ecn = 3", "tcp_ecn = 3");
    }
    for ms in AGGREGATES_MS {
        let path = format!("{DEEP}queue = \"step\"\naggregate = \"{ms}ms\"");
        table += &row_of(
            &format!("marks in {ms} ms"),
            &path,
            "tcp_ecn = 3",
            "tcp_ecn = 3",
            FEW,
        );
    }
    for (name, path) in TROUBLES {
        let tcp_ecn = if name == "marked" { "tcp_ecn = 1" } else { "" };
        table += &row(name, path, tcp_ecn, tcp_ecn);
    }
    for (name, path, sender, receiver) in SETTINGS {
        table += &row(name, path, sender, receiver);
    }
    table
}

#[test]
fn every_value_and_packet_is_that_of_the_golden_digests() {
    assert_golden(&table(), "sim_tables.txt", "all golden_tables::");
}
