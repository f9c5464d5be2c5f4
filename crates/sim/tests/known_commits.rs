//! Commits of Linux whose effect somebody measured, predicted with the cost profile that comes with tcpknee: their rule off
//! and on, all else equal. No cost was chosen by what comes of it here.
//!
//! Method: each prediction is a row of docs/validation/known-commits.md, with the published costs and with others between their bounds.
//! When one changes, the test prints the row that the page should have.

use std::io;

use knee_sim::Output;
use knee_units::rng::Stream;

use crate::common::{cell_with_files, run_cell};

const PUBLISHED: &str = include_str!("../../../hosts/published.toml");
const PAGE: &str = include_str!("../../../docs/validation/known-commits.md");
/// Costs as published, all at their low end, all at their high end, and four draws from between.
const PROFILES: [&str; 7] = [
    "published",
    "low",
    "high",
    "draw1",
    "draw2",
    "draw3",
    "draw4",
];

/// The profile of that name.
fn profile(file: &str) -> io::Result<String> {
    let which = file.trim_end_matches(".toml");
    let line = |line: &str| {
        let Some((name, rest)) = line.split_once(" = { ns = ") else {
            return line.to_owned();
        };
        let number = |key: &str| {
            let at = rest.find(key).expect("each cost has it") + key.len();
            let end = rest[at..].find(',').expect("the source follows") + at;
            rest[at..end].parse::<f64>().expect("a number")
        };
        let (low, high) = (number("low = "), number("high = "));
        let ns = match which {
            "published" => return line.to_owned(),
            "low" => low,
            "high" => high,
            _ => {
                let mut draws = Stream::new(1, &format!("{which}.{name}"));
                low * (high / low).powf(draws.next_share())
            }
        };
        format!("{name} = {{ ns = {ns}, low = {low}, high = {high}, source = \"this test\" }}")
    };
    Ok(PUBLISHED.lines().map(line).collect::<Vec<_>>().join("\n"))
}

/// A figure with the commit over the same without, less 1, in %.
#[derive(Debug)]
struct Effect {
    published: f64,
    least: f64,
    most: f64,
}

/// `figure` runs hosts with that profile, without and with the commit. The page has `row`, with what comes of it.
fn predict(row: &str, figure: impl Fn(&str, bool) -> f64) -> Effect {
    let change = |name: &&str| {
        let [before, after] = [false, true].map(|with| figure(name, with));
        println!("{row} {name}: {before:.0} -> {after:.0}");
        (after / before - 1.0) * 100.0
    };
    let changes: Vec<f64> = PROFILES.iter().map(change).collect();
    let effect = Effect {
        published: changes[0],
        least: changes.iter().copied().fold(f64::INFINITY, f64::min),
        most: changes.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    };
    // Without a sign of its own for what rounds to 0.
    let [published, least, most] = [effect.published, effect.least, effect.most]
        .map(|percent| format!("{:+.1} %", (percent * 10.0).round() / 10.0 + 0.0));
    let row = format!("{row} {published} | {least} to {most} |");
    assert!(
        PAGE.contains(&row),
        "docs/validation/known-commits.md lacks\n{row}"
    );
    effect
}

fn simulate(costs: &str, text: &str) -> Output {
    let text = text.replace("COSTS", &format!("file {costs}.toml"));
    run_cell(&cell_with_files(&text, profile), 0, false)
}

/// TCP_RR over a LAN of 40 Gbit/s, one byte each way, between hosts with these keys.
fn transactions_per_sec(costs: &str, algorithm: &str, connections: u32, keys: &str) -> f64 {
    let text = format!(
        r#"
duration = "60ms"
warmup = "20ms"
[path]
rate = "40Gbit/s"
rtt = "10us"
buffer = "unlimited"
[sender]
costs = "COSTS"
rx_coalesce = "0s"
{keys}
[receiver]
costs = "COSTS"
rx_coalesce = "0s"
algorithm = "{algorithm}"
{keys}
[[flow]]
algorithm = "{algorithm}"
count = {connections}
workload = "request-response"
request = "1B"
response = "1B"
"#
    );
    let output = simulate(costs, &text);
    output.flows.requests_per_sec.iter().flatten().sum()
}

/// The same where processors have no pause. How many transactions a poll takes matters in a single run: so the mean of three.
fn transactions_of_busy_hosts(costs: &str, algorithm: &str, keys: &str) -> f64 {
    let of = |connections| transactions_per_sec(costs, algorithm, connections, keys);
    [48, 64, 80].map(of).iter().sum::<f64>() / 3.0
}

fn goodput(output: &Output) -> f64 {
    output.flows.goodput_bits_per_sec.iter().sum()
}

fn timer_rule(with: bool) -> &'static str {
    match with {
        false => "pacing_timer = \"every-packet\"",
        true => "pacing_timer = \"when-needed\"",
    }
}

#[test]
fn one_connection_asks_more_often_without_a_timer_for_each_packet() {
    let row = "| 864e5c090749, a pacing timer only when needed; one connection | about +10 % |";
    let effect = predict(row, |costs, with| {
        transactions_per_sec(costs, "bbr1", 1, timer_rule(with))
    });
    assert!(effect.least > 0.0, "{effect:?}");
}

#[test]
fn busy_hosts_serve_more_requests_without_a_timer_for_each_packet() {
    let row = "| the same; 48 to 80 connections on busy processors | about +10 % |";
    let effect = predict(row, |costs, with| {
        transactions_of_busy_hosts(costs, "bbr1", timer_rule(with))
    });
    assert!(effect.least > 0.0, "{effect:?}");
    assert!((5.0..=20.0).contains(&effect.published), "{effect:?}");
}

#[test]
fn busy_hosts_serve_more_requests_with_the_fast_path_of_fq() {
    let row = "| 076433bd78d7, fq's fast path; 48 to 80 connections on busy processors | +5 % |";
    let effect = predict(row, |costs, with| {
        let keys = format!("pacing = \"fq\"\nfq_fast_path = {with}");
        transactions_of_busy_hosts(costs, "cubic", &keys)
    });
    assert!((2.5..=10.0).contains(&effect.published), "{effect:?}");
}

/// 200 connections, whose data come to so many queues of a receiver with a clock of 1,000 Hz.
fn goodput_of_200(costs: &str, queues: u32, cpus: u32, with: bool) -> f64 {
    let table = match with {
        false => "short-list-passed",
        true => "short-list",
    };
    let text = format!(
        r#"
duration = "150ms"
warmup = "50ms"
[path]
rate = "40Gbit/s"
rtt = "100us"
buffer = "2MB"
[sender]
pacing = "fq"
[receiver]
hz = 1000
costs = "COSTS"
cpus = {cpus}
queues = {queues}
gro_table = "{table}"
[[flow]]
algorithm = "cubic"
count = 200
"#
    );
    goodput(&simulate(costs, &text))
}

#[test]
fn the_overflow_of_gro_is_no_matter_where_processors_keep_up() {
    let row = "| 600adc18eba8, GRO's list gives up its oldest; 200 connections, 4 queues | from memory: 11 to 40 Gbit/s, +260 % |";
    predict(row, |costs, with| goodput_of_200(costs, 4, 4, with));
}

#[test]
fn the_overflow_of_gro_is_no_matter_at_a_busy_queue() {
    let row = "| the same; 200 connections, 1 queue on a busy processor | none for it |";
    predict(row, |costs, with| goodput_of_200(costs, 1, 3, with));
}

#[test]
fn small_queues_limit_nothing_where_the_nic_reports_within_16_us() {
    let row = "| c73e5807e4f6, TSQ's limit not for paced flows; one flow under fq | from memory: 27.3 to 37.1 Gbit/s, +36 % |";
    predict(row, |costs, with| {
        let rule = match with {
            false => "tcp_limit_output_bytes = \"256KiB\"\ntsq_limits_paced = true",
            true => "tcp_limit_output_bytes = \"1MiB\"",
        };
        let text = format!(
            r#"
duration = "120ms"
warmup = "40ms"
[path]
rate = "40Gbit/s"
rtt = "50us"
buffer = "unlimited"
[sender]
costs = "COSTS"
cpus = 2
pacing = "fq"
fq_fast_path = false
tx_coalesce = "16us"
tcp_wmem_max = "64MiB"
{rule}
[receiver]
tcp_rmem_max = "64MiB"
[[flow]]
algorithm = "cubic"
"#
        );
        goodput(&simulate(costs, &text))
    });
}
