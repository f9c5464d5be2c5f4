//! Keys, names and columns that do not exist, and tables and keys that are missing.

use super::refused;
use crate::common::{edited, read};
use knee_path::queue::QUEUES;

#[test]
fn an_unknown_queue_is_refused_with_those_of_the_registry() {
    let known: Vec<&str> = QUEUES.iter().map(|kind| kind.name).collect();
    let error = format!(
        r#"s.toml:6: path.queue: unknown queue "ffio"; known: {}. Did you mean "fifo"?"#,
        known.join(", ")
    );
    let file = edited(r#"rtt = "100ms""#, "rtt = \"100ms\"\nqueue = \"ffio\"");
    assert_eq!(read(&file).unwrap_err().to_string(), error);
}

#[test]
fn unknown_keys_and_names_are_refused_with_what_is_known() {
    refused(&[
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
duratoin = "1s""#,
            r#"s.toml:2: duratoin: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, kernel, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean "duration"?"#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
warm_up = "1s""#,
            r#"s.toml:2: warm_up: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, kernel, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean "warmup"?"#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
[pth]"#,
            r#"s.toml:2: pth: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, kernel, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean "path"?"#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
bufer = "1bdp""#,
            r#"s.toml:6: path.bufer: unknown key; known here: {keys of path}. Did you mean "buffer"?"#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
tcp_wmem_max = "4MiB""#,
            r#"s.toml:6: path.tcp_wmem_max: unknown key; known here: {keys of path}. Did you mean "sender.tcp_wmem_max"?"#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
colour = "red""#,
            "s.toml:6: path.colour: unknown key; known here: {keys of path}. Remove it, or choose one of these.",
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
initcwmd = 10"#,
            r#"s.toml:7: sender.initcwmd: unknown key; known here: {keys of sender}. Did you mean "initcwnd"?"#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
algorithm = "cubic""#,
            r#"s.toml:7: sender.algorithm: unknown key; known here: {keys of sender}. Did you mean "flow.algorithm"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
cuont = 2"#,
            r#"s.toml:9: flow.0.cuont: unknown key; known here: {keys of flow}. Did you mean "count"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
bbr2.drain_gain = 3"#,
            r#"s.toml:9: flow.0.bbr2: unknown key; known here: {keys of flow}. Did you mean "bbr1"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubci""#,
            r#"s.toml:8: flow.0.algorithm: unknown algorithm "cubci"; known: reno, cubic, bbr1. Did you mean "cubic"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "vegas""#,
            r#"s.toml:8: flow.0.algorithm: unknown algorithm "vegas"; known: reno, cubic, bbr1."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = ["cubic", "Bbr1"]"#,
            r#"s.toml:8: flow.0.algorithm: unknown algorithm "Bbr1"; known: reno, cubic, bbr1. Did you mean "bbr1"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            "algorithm = 1",
            r#"s.toml:8: flow.0.algorithm: got 1; expected an algorithm's name such as "cubic"."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
loss = "periodc 1%""#,
            r#"s.toml:6: path.loss: unknown loss "periodc"; known: random, periodic, super-packets, gilbert, trace. Did you mean "periodic"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
workload = "bukl""#,
            r#"s.toml:9: flow.0.workload: unknown workload "bukl"; known: {workloads}. Did you mean "bulk"?"#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
pacing = "on""#,
            r#"s.toml:7: sender.pacing: unknown pacing "on"; known: internal, timer, fq."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[receiver]
algorithm = "cubik""#,
            r#"s.toml:7: receiver.algorithm: unknown algorithm "cubik"; known: reno, cubic, bbr1. Did you mean "cubic"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
cubic.betta = 700"#,
            r#"s.toml:9: flow.0.cubic.betta: unknown key; known here: beta, hystart. Did you mean "beta"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
reno.beta = 700"#,
            "s.toml:9: flow.0.reno.beta: got a parameter of reno; expected none, because it has no parameters. Remove it.",
        ),
        (
            "[path]",
            r#"[path.extra]
x = 1
[path]"#,
            "s.toml:3: path.extra: unknown key; known here: {keys of path}. Remove it, or choose one of these.",
        ),
        (
            "[path]",
            r#"[path]
"a\nb" = 1"#,
            r#"s.toml:4: path.a\nb: unknown key; known here: {keys of path}. Remove it, or choose one of these."#,
        ),
    ]);
}

#[test]
fn missing_tables_and_keys_are_refused_with_what_to_add() {
    refused(&[
        (
            r#"duration = "10s""#,
            "",
            r#"s.toml:1: duration: missing; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 1us to 86400s. Add duration = "30s"."#,
        ),
        (
            r#"rate = "50Mbit/s""#,
            "",
            r#"s.toml:3: path.rate: missing; expected a rate such as "50Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or "unlimited", up to 10Tbit/s, or "trace cellular" or "trace FILE.up". Add rate = "50Mbit/s" in [path]."#,
        ),
        (
            r#"rtt = "100ms""#,
            "",
            r#"s.toml:3: path.rtt: missing; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s. Add rtt = "100ms" in [path]."#,
        ),
        (
            r#"algorithm = "cubic""#,
            "count = 1",
            r#"s.toml:7: flow.0.algorithm: missing; expected an algorithm's name such as "cubic". Add algorithm = "cubic" in [[flow]]."#,
        ),
        (
            r#"[[flow]]
algorithm = "cubic""#,
            "",
            r#"s.toml:1: flow: missing; expected at least one [[flow]] table. Add [[flow]] and, below it, algorithm = "cubic"."#,
        ),
        (
            "[[flow]]",
            "[flow]",
            "s.toml:7: flow: got a table; expected [[flow]] tables. Begin each with a line [[flow]], in double brackets.",
        ),
        (
            "[path]",
            "path = 3",
            "s.toml:3: path: got 3; expected a table. Begin the table with a line [path].\n\
             s.toml:4: rate: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, kernel, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean \"path.rate\"?\n\
             s.toml:5: rtt: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, kernel, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean \"path.rtt\"?",
        ),
        (
            "[path]",
            "[[path]]",
            "s.toml:3: path: got a list of tables; expected a table. Begin the table with a line [path].",
        ),
        (
            r#"[[flow]]
algorithm = "cubic""#,
            "flow = 3",
            "s.toml:7: path.flow: unknown key; known here: {keys of path}. Remove it, or choose one of these.",
        ),
        (
            r#"[[flow]]
algorithm = "cubic""#,
            "flow = [3]",
            "s.toml:7: path.flow: unknown key; known here: {keys of path}. Remove it, or choose one of these.",
        ),
        (
            r#"[[flow]]
algorithm = "cubic""#,
            r#"[[expect]]
assert = "1 > 0""#,
            r#"s.toml:1: flow: missing; expected at least one [[flow]] table. Add [[flow]] and, below it, algorithm = "cubic"."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[expect]]"#,
            r#"s.toml:9: expect.0.assert: missing; expected text on one line, in quotes. Add assert = "bbr1.goodput / cubic.goodput >= 20" in [[expect]]."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[expect]]
assert = "  ""#,
            r#"s.toml:10: expect.0.assert: got "  "; expected text on one line, in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[expect]]
assert = true"#,
            "s.toml:10: expect.0.assert: got true; expected text on one line, in quotes.",
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[expect]]
asert = "1 > 0""#,
            r#"s.toml:10: expect.0.asert: unknown key; known here: assert. Did you mean "assert"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[expect]
assert = "1 > 0""#,
            "s.toml:9: expect: got a table; expected [[expect]] tables. Begin each with a line [[expect]], in double brackets.",
        ),
    ]);
}

#[test]
fn what_is_no_column_of_samples_is_refused_with_the_nearest_named() {
    refused(&[
        (
            "duration = \"10s\"",
            "duration = \"10s\"\nsamples = [\"snd_cwnd\", \"srtt\"]",
            r#"s.toml:2: samples: got "srtt"; expected columns of the table samples, beside cell, rep, t_ns and flow, which every row has. Did you mean "srtt_us"?"#,
        ),
        (
            "duration = \"10s\"",
            "duration = \"10s\"\nsamples = [\"goodput\"]",
            r#"s.toml:2: samples: got "goodput"; expected columns of the table samples, beside cell, rep, t_ns and flow, which every row has. `knee list tables` prints them."#,
        ),
        (
            "duration = \"10s\"",
            "duration = \"10s\"\nsamples = [\"t_ns\"]",
            r#"s.toml:2: samples: got "t_ns"; expected columns of the table samples, beside cell, rep, t_ns and flow, which every row has. `knee list tables` prints them."#,
        ),
        (
            "duration = \"10s\"",
            "duration = \"10s\"\nsamples = \"none\"",
            r#"s.toml:2: samples: got "none"; expected a list of columns of the table samples, such as ["srtt_us", "snd_cwnd"], or [] for no row of it."#,
        ),
        (
            "duration = \"10s\"",
            "duration = \"10s\"\nsamples = [1]",
            r#"s.toml:2: samples: got 1; expected a list of columns of the table samples, such as ["srtt_us", "snd_cwnd"], or [] for no row of it."#,
        ),
    ]);
}
