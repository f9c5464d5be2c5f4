//! When a host of the model polls its receive queues, how much at a time, and how it sends through several.

use std::collections::BTreeMap;

use crate::common::{counters, run};
use knee_sim::Output;

/// Flows through a receiver with costs, `path` and `receiver` as lines of their tables.
fn receiving(path: &str, receiver: &str, count: u32) -> (Output, BTreeMap<&'static str, i64>) {
    let output = run(&format!(
        r#"
duration = "100ms"
warmup = "40ms"
[path]
{path}
[receiver]
costs = "published"
{receiver}
[[flow]]
algorithm = "cubic"
count = {count}
"#
    ));
    let counters = counters(&output, "receiver");
    (output, counters)
}

/// More than one processor can take, from eight queues.
const FLOOD: &str = "rate = \"40Gbit/s\"\nrtt = \"200us\"\nbuffer = \"4MB\"";
const EIGHT: &str = "queues = 8\nrx_ring = 4096\n";

#[test]
fn a_round_of_polls_ends_with_its_budget_and_counts_as_squeezed() {
    let squeezes = |budget: &str| {
        let (_, counters) = receiving(FLOOD, &format!("{EIGHT}{budget}"), 40);
        counters["backlog_squeezes"] as f64 / counters["napi_packets"] as f64
    };
    let small = squeezes("netdev_budget = 64");
    let usual = squeezes("");
    let large = squeezes("netdev_budget = 1000000\nnetdev_budget_usecs = 1000000");
    assert!(
        small > 3.0 * usual && large == 0.0,
        "{small} {usual} {large}"
    );
    let short = squeezes("netdev_budget = 1000000\nnetdev_budget_usecs = 20");
    assert!(short > 3.0 * usual, "{short} {usual}");
}

#[test]
fn what_rounds_leave_over_gives_applications_their_turn_earlier() {
    let read = |budget: &str| {
        let (output, _) = receiving(FLOOD, &format!("{EIGHT}{budget}"), 40);
        output.flows.bytes_read.iter().sum::<i64>()
    };
    // Ten rounds of 64 packets are over long before 2 ms, and ksoftirqd shares the processor from then on.
    let (small, large) = (
        read("netdev_budget = 64"),
        read("netdev_budget = 1000000\nnetdev_budget_usecs = 1000000"),
    );
    assert_ne!(small, large);
}

/// A packet each 12 us, or each 121 us; each interrupts by itself.
const THIN: &str = "rate = \"1Gbit/s\"\nrtt = \"1ms\"";
const THINNER: &str = "rate = \"100Mbit/s\"\nrtt = \"1ms\"\nbuffer = \"1MB\"";
const EACH: &str = "rx_coalesce = \"0s\"\n";

#[test]
fn gro_merges_what_comes_within_its_timeout() {
    let merged = |path: &str, receiver: &str| {
        let (_, counters) = receiving(path, &format!("{EACH}{receiver}"), 1);
        counters["segments_received"] as f64 / counters["skbs_received"] as f64
    };
    let [none, short, long] = ["0s", "50us", "300us"]
        .map(|timeout| merged(THINNER, &format!("gro_flush_timeout = \"{timeout}\"")));
    assert!(none == 1.0 && short == 1.0, "{none} {short}");
    assert!(long > 5.0, "{long}");
    // The timer that ends the wait begins anew with each poll.
    assert!(merged(THIN, "gro_flush_timeout = \"50us\"") > 5.0);
}

#[test]
fn deferred_interrupts_leave_polling_to_the_timer() {
    let of = |receiver: &str| receiving(THIN, &format!("{EACH}{receiver}"), 1).1;
    let each = of("");
    let deferred = of("gro_flush_timeout = \"50us\"\nnapi_defer_hard_irqs = 2");
    assert!(each["interrupts"] > 4_000, "{}", each["interrupts"]);
    assert!(deferred["interrupts"] < each["interrupts"] / 20);
    // 60 ms in steps of 50 us, which begin when a poll is over.
    let polls = deferred["napi_polls"];
    assert!((900..=1_200).contains(&polls), "{polls}");
    assert!(deferred["timer_fire_ns"] > 0 && each["timer_fire_ns"] == 0);
    assert!(deferred["cpu_ns"] < each["cpu_ns"]);
}

#[test]
fn deferral_without_a_timeout_does_nothing() {
    let (_, with) = receiving(THIN, "napi_defer_hard_irqs = 5", 1);
    let (_, without) = receiving(THIN, "", 1);
    assert_eq!(with, without);
}

#[test]
fn adaptive_coalescing_gathers_much_of_much_and_settles() {
    let of = |duration: &str, path: &str| {
        let output = run(&format!(
            "duration = \"{duration}\"\nwarmup = \"40ms\"\n[path]\n{path}\n[receiver]\ncosts = \"published\"\n\
             adaptive_rx = true\n[[flow]]\nalgorithm = \"cubic\"\n"
        ));
        counters(&output, "receiver")
    };
    let short = of("200ms", THIN);
    let long = of("400ms", THIN);
    // 83 packets come in a millisecond. From 256 us to 256 us they are 21.
    let per_interrupt = |of: &BTreeMap<_, i64>| of["napi_packets"] as f64 / of["interrupts"] as f64;
    assert!(per_interrupt(&long) > 12.0, "{}", per_interrupt(&long));
    // A constant load is no reason to change.
    let later = long["rx_coalesce_changes"] - short["rx_coalesce_changes"];
    assert!(later <= 4, "{later}");
}

#[test]
fn each_queue_of_a_nic_with_mq_reports_to_its_own_processor() {
    let softirqs = |nic: &str| {
        let output = run(&format!(
            r#"
duration = "100ms"
warmup = "40ms"
[path]
rate = "20Gbit/s"
rtt = "1ms"
[sender]
costs = "published"
cpus = 4
queues = 4
app_threads = 4
tx_coalesce = "20us"
pacing = "fq"
{nic}
[[flow]]
algorithm = "cubic"
count = 40
"#
        ));
        counters(&output, "sender")
    };
    let (with, without) = (softirqs("mq = true"), softirqs("mq = false"));
    assert!(with["interrupts"] > without["interrupts"]);
    // Processors wait for the lock of the one qdisc, and less for those of four.
    assert!(without["qdisc_lock_ns"] > 0);
    assert!(
        with["qdisc_lock_ns"] < without["qdisc_lock_ns"],
        "{with:?} {without:?}"
    );
    // Of one queue there is none of one's own.
    assert_eq!(softirqs("mq = false\nxps = true"), without);
}

#[test]
fn a_host_of_128_processors_spreads_flows_over_all_of_them() {
    for steering in [
        "queues = 128",
        "queues = 1\nrps_cpus = \"ffffffff,ffffffff,ffffffff,ffffffff\"",
    ] {
        let output = run(&format!(
            r#"
duration = "20ms"
warmup = "5ms"
[path]
rate = "100Gbit/s"
rtt = "500us"
[receiver]
costs = "published"
cpus = 128
app_threads = 128
rx_ring = 4096
{steering}
[[flow]]
algorithm = "cubic"
count = 2000
"#
        ));
        let softirq_us = |cpu: u32| {
            let name = format!("receiver/cpu{cpu}");
            let row = output.cpu.name.iter().rposition(|other| *other == name);
            output
                .cpu
                .softirq_us
                .get(row.expect("it has rows"))
                .expect("a processor's")
        };
        let busy = (0..128).filter(|&cpu| softirq_us(cpu) > 0).count();
        assert_eq!(busy, 128, "{steering}");
        let read: i64 = output.flows.bytes_read.iter().sum();
        assert!(read > 0);
    }
}

/// What the flow limit of these processors and the backlogs dropped, and bytes read of the flow that sends little.
fn limited(mask: &str) -> (i64, i64, i64) {
    let output = run(&format!(
        r#"
duration = "200ms"
warmup = "40ms"
[path]
rate = "40Gbit/s"
rtt = "200us"
buffer = "4MB"
[receiver]
costs = "published"
cpus = 2
rps_cpus = "2"
rx_ring = 4096
netdev_max_backlog = 100
gro = false
flow_limit_cpu_bitmap = "{mask}"
[[flow]]
name = "flood"
algorithm = "cubic"
[[flow]]
name = "thin"
algorithm = "cubic"
workload = "request-response"
request = "100B"
response = "100B"
"#
    ));
    let counters = counters(&output, "receiver");
    (
        counters["backlog_flow_limits"],
        counters["backlog_drops"],
        output.flows.bytes_read[1],
    )
}

#[test]
fn the_flow_limit_spares_thin_flows_what_floods_a_backlog() {
    // The first processor polls, and puts all into the other's backlog.
    let [
        (none, _, thin_by_full),
        (by_other, ..),
        (by_first, dropped, thin),
    ] = ["0", "2", "1"].map(limited);
    assert_eq!((none, by_other), (0, 0));
    assert!(by_first > 0 && dropped >= by_first, "{by_first} {dropped}");
    assert!(thin > thin_by_full, "{thin} {thin_by_full}");
}

#[test]
fn with_xps_a_processor_sends_by_its_own_queue_whoever_the_packets_are_for() {
    let serving = |nic: &str| {
        let output = run(&format!(
            r#"
duration = "100ms"
warmup = "40ms"
[path]
rate = "20Gbit/s"
rtt = "1ms"
[sender]
costs = "published"
cpus = 4
queues = 4
app_cpus = "3"
rx_coalesce = "100us"
tx_coalesce = "100us"
{nic}
[[flow]]
algorithm = "cubic"
workload = "request-response"
connections = 40
"#
        ));
        counters(&output, "sender")
    };
    let (own, by_hash) = (serving("xps = true"), serving(""));
    // All responses leave by the queue of the processor that the program is on, and are reported together.
    assert!(
        10 * own["interrupts"] < 9 * by_hash["interrupts"],
        "{own:?} {by_hash:?}"
    );
    // Requests come as fast.
    let skbs = |of: &BTreeMap<_, i64>| of["data_skbs_sent"];
    assert!((skbs(&own) - skbs(&by_hash)).abs() < skbs(&by_hash) / 20);
}
