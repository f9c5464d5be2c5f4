//! Several mistakes in one file.

use crate::common::{self, edited, read};

/// What of each mistake stands before "; expected" or ";".
fn told(text: &str) -> Vec<String> {
    let error = read(text).expect_err("the file has mistakes").to_string();
    let told = error.lines().map(|line| line.split(';').next().unwrap());
    told.map(str::to_owned).collect()
}

#[test]
fn every_mistake_of_a_file_is_told_at_once_in_the_order_of_its_lines() {
    let text = r#"
duration = "10s"
warmup = "20s"
seeed = 3

[path]
rate = ["50Mb", "10Mbit/s", 7]
rtt = "100ms"
mtu = "9000B"
policer_burst = "9kB"
ack_rate = "1Mb"
ack_queue = "codel"

[sender]
gso_max = "2000B"
tcp_wmem_min = "10MB"

[[flow]]
algorithm = ["cubci", "bbr1"]
start = "11s"
bbr1.drain_gian = 1.2

[[flow]]
algorithm = "cubic"
workload = "transfer"

[[expect]]
asert = "cubic.goodput > 1Mbit/s"
"#;
    assert_eq!(
        told(text),
        [
            r#"s.toml:3: warmup: got "20s""#,
            "s.toml:4: seeed: unknown key",
            r#"s.toml:7: path.rate: got "50Mb", whose unit "Mb" is unknown here"#,
            "s.toml:7: path.rate: got the bare number 7",
            r#"s.toml:10: path.policer_burst: got "9kB""#,
            r#"s.toml:11: path.ack_rate: got "1Mb", whose unit "Mb" is unknown here"#,
            r#"s.toml:15: sender.gso_max: got "2000B""#,
            r#"s.toml:16: sender.tcp_wmem_min: got "10MB""#,
            r#"s.toml:19: flow.0.algorithm: unknown algorithm "cubci""#,
            r#"s.toml:20: flow.0.start: got "11s""#,
            "s.toml:21: flow.0.bbr1.drain_gian: unknown key",
            "s.toml:25: flow.1.bytes: missing",
            "s.toml:28: expect.0.asert: unknown key",
        ]
    );
}

#[test]
fn what_may_come_of_another_mistake_is_not_told() {
    // Without a rate nobody knows the BDP; without the algorithm nobody knows whose parameters these are.
    assert_eq!(
        told(
            r#"
duration = "1 s s"
warmup = "500s"
[paht]
rate = "1Mbit/s"
[[flow]]
algorithm = "brb1"
bbr1.drain_gain = 1.2
start = "3h"
[[flow]]
algorithm = "cubic"
worklaod = "transfer"
bytes = "1MB"
"#
        ),
        [
            r#"s.toml:2: duration: got "1 s s", whose unit "s s" is unknown here"#,
            "s.toml:4: paht: unknown key",
            r#"s.toml:7: flow.0.algorithm: unknown algorithm "brb1""#,
            "s.toml:12: flow.1.worklaod: unknown key",
        ]
    );
    assert_eq!(
        told(&edited(
            r#"rate = "50Mbit/s""#,
            "rate = \"1Mbps\"\nbuffer = \"0.0001bdp\""
        ))
        .len(),
        1
    );
}

#[test]
fn a_value_refused_in_many_cells_is_told_once() {
    let text = edited(
        "duration = \"10s\"",
        "duration = [\"10s\", \"20s\", \"30s\"]\nwarmup = [\"1s\", \"15s\", \"60s\"]",
    );
    assert_eq!(
        told(&text),
        [
            r#"s.toml:2: warmup: got "15s""#,
            r#"s.toml:2: warmup: got "60s""#
        ]
    );
}

#[test]
fn of_more_than_20_mistakes_the_first_20_are_listed() {
    let wrong: String = (0..50).map(|i| format!("key{i} = 1\n")).collect();
    let lines = told(&(wrong + common::GOOD));
    assert_eq!(lines.len(), 21);
    assert_eq!(lines[19], "s.toml:20: key19: unknown key");
    assert_eq!(
        lines[20],
        "s.toml:20: only the first 20 mistakes are listed. Correct these, then run it again."
    );
}
