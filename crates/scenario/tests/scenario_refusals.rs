//! Every check of the scenario parser, by a file that it refuses.
//!
//! Each row edits one passage of the least good file (`common::GOOD`) and
//! states the whole error.

mod common;

use common::{edited, read};
use knee_path::queue::QUEUES;
use knee_scenario::keys;
use knee_scenario::workload::WORKLOADS;

/// (passage of `GOOD`, what replaces it, the error). `{keys of path}` stands for all keys of that table, as
/// docs/scenario.md lists them, `{workloads}` for the names of all.
type Row = (&'static str, &'static str, &'static str);

fn refused(rows: &[Row]) {
    let all = keys();
    let of = |table: &str| {
        let prefix = format!("{table}.");
        let names = all.iter().filter_map(|key| key.path.strip_prefix(&prefix));
        names.collect::<Vec<_>>().join(", ")
    };
    for (from, to, error) in rows {
        let error = ["path", "sender", "flow"]
            .iter()
            .fold(error.to_string(), |error, table| {
                error.replace(&format!("{{keys of {table}}}"), &of(table))
            });
        let workloads: Vec<&str> = WORKLOADS.iter().map(|kind| kind.name).collect();
        let error = error.replace("{workloads}", &workloads.join(", "));
        match read(&edited(from, to)) {
            Ok(_) => panic!("{to:?} was accepted; expected: {error}"),
            Err(got) => assert_eq!(got.to_string(), error, "with {to:?}"),
        }
    }
}

#[test]
fn a_value_without_its_unit_or_with_a_wrong_one_is_refused() {
    refused(&[
        (
            r#"rtt = "100ms""#,
            "rtt = 100",
            r#"s.toml:5: path.rtt: got the bare number 100; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s. Write it with its unit, in quotes."#,
        ),
        (
            r#"rtt = "100ms""#,
            "rtt = 0.1",
            r#"s.toml:5: path.rtt: got the bare number 0.1; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s. Write it with its unit, in quotes."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100""#,
            r#"s.toml:5: path.rtt: got "100", a bare number; expected a length of time such as "100ms" (ns, us, ms, s, min, h). Write the unit behind the number."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100msec""#,
            r#"s.toml:5: path.rtt: got "100msec", whose unit "msec" is unknown here; expected a length of time such as "100ms" (ns, us, ms, s, min, h). Did you mean "100ms"?"#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "-1ms""#,
            r#"s.toml:5: path.rtt: got "-1ms", which is negative; expected a length of time such as "100ms" (ns, us, ms, s, min, h)."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "61s""#,
            r#"s.toml:5: path.rtt: got "61s"; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "1.5ns""#,
            r#"s.toml:5: path.rtt: got "1.5ns", which is not a whole number of nanoseconds; expected a length of time such as "100ms" (ns, us, ms, s, min, h). Round it."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "2h""#,
            r#"s.toml:5: path.rtt: got "2h"; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "99999999999999999999h""#,
            r#"s.toml:5: path.rtt: got "99999999999999999999h", which is too large to compute with; expected a length of time such as "100ms" (ns, us, ms, s, min, h)."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "50Mbit/s""#,
            r#"s.toml:5: path.rtt: got "50Mbit/s", whose unit "Mbit/s" is unknown here; expected a length of time such as "100ms" (ns, us, ms, s, min, h)."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = """#,
            r#"s.toml:5: path.rtt: got ""; expected a length of time such as "100ms" (ns, us, ms, s, min, h)."#,
        ),
        (
            r#"rtt = "100ms""#,
            "rtt = true",
            r#"s.toml:5: path.rtt: got true; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s."#,
        ),
        (
            r#"rtt = "100ms""#,
            "rtt = 2026-01-01",
            r#"s.toml:5: path.rtt: got a date; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s."#,
        ),
        (
            r#"rtt = "100ms""#,
            "rtt = { ms = 100 }",
            r#"s.toml:5: path.rtt: got a table; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "fast\nthen slow""#,
            r#"s.toml:5: path.rtt: got "fast\nthen slow"; expected a length of time such as "100ms" (ns, us, ms, s, min, h)."#,
        ),
        (
            r#"rate = "50Mbit/s""#,
            "rate = 50",
            r#"s.toml:4: path.rate: got the bare number 50; expected a rate such as "50Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or "unlimited", up to 10Tbit/s, or "trace cellular" or "trace FILE.up". Write it with its unit, in quotes."#,
        ),
        (
            r#"rate = "50Mbit/s""#,
            r#"rate = "50Mbps""#,
            r#"s.toml:4: path.rate: got "50Mbps", whose unit "Mbps" is unknown here; expected a rate such as "50Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or "unlimited". Did you mean "50Mbit/s"?"#,
        ),
        (
            r#"rate = "50Mbit/s""#,
            r#"rate = "50mbit/s""#,
            r#"s.toml:4: path.rate: got "50mbit/s", whose unit "mbit/s" is unknown here; expected a rate such as "50Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or "unlimited". Did you mean "50Mbit/s"?"#,
        ),
        (
            r#"rate = "50Mbit/s""#,
            r#"rate = "50MB""#,
            r#"s.toml:4: path.rate: got "50MB", whose unit "MB" is unknown here; expected a rate such as "50Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or "unlimited". Did you mean "50Mbit/s" or, if these are bytes, "400Mbit/s"?"#,
        ),
        (
            r#"rate = "50Mbit/s""#,
            r#"rate = "0Mbit/s""#,
            r#"s.toml:4: path.rate: got "0Mbit/s"; expected a rate above zero, or "unlimited". Nothing ever leaves at rate zero."#,
        ),
        (
            r#"rate = "50Mbit/s""#,
            r#"rate = "11Tbit/s""#,
            r#"s.toml:4: path.rate: got "11Tbit/s"; expected a rate such as "50Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or "unlimited", up to 10Tbit/s, or "trace cellular" or "trace FILE.up"."#,
        ),
        (
            r#"rate = "50Mbit/s""#,
            r#"rate = "unlimitd""#,
            r#"s.toml:4: path.rate: got "unlimitd"; expected a rate such as "50Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or "unlimited". Did you mean "unlimited"?"#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "0s""#,
            r#"s.toml:1: duration: got "0s"; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 1us to 86400s."#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "25h""#,
            r#"s.toml:1: duration: got "25h"; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 1us to 86400s."#,
        ),
    ]);
}

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
            r#"s.toml:2: duratoin: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean "duration"?"#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
warm_up = "1s""#,
            r#"s.toml:2: warm_up: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean "warmup"?"#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
[pth]"#,
            r#"s.toml:2: pth: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean "path"?"#,
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
            r#"s.toml:6: path.loss: unknown loss "periodc"; known: random, periodic, gilbert, trace. Did you mean "periodic"?"#,
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
fn values_out_of_bounds_are_refused_with_the_bounds() {
    refused(&[
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
loss = "100.1%""#,
            r#"s.toml:6: path.loss: got "100.1%"; expected a share such as "1.5%" up to 100%, or a kind of loss: "periodic 0.1%", "gilbert 1% burst 5", "trace losses.txt"."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
loss = "-1%""#,
            r#"s.toml:6: path.loss: got "-1%", which is negative; expected a share such as "1.5%"."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
loss = 0.015"#,
            r#"s.toml:6: path.loss: got the bare number 0.015; expected a share such as "1.5%" up to 100%, or a kind of loss: "periodic 0.1%", "gilbert 1% burst 5", "trace losses.txt". Write it with its unit, in quotes."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
loss = "1.5""#,
            r#"s.toml:6: path.loss: got "1.5", a bare number; expected a share such as "1.5%". Write the unit behind the number."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
loss = "periodic""#,
            r#"s.toml:6: path.loss: got "periodic"; expected a share such as "1.5%" up to 100%, or a kind of loss: "periodic 0.1%", "gilbert 1% burst 5", "trace losses.txt"."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
ack_loss = "1.5ms""#,
            r#"s.toml:6: path.ack_loss: got "1.5ms", whose unit "ms" is unknown here; expected a share such as "1.5%"."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
mtu = "100B""#,
            r#"s.toml:6: path.mtu: got "100B"; expected an amount of data such as "256KiB" (B, kB, MB, GB, KiB, MiB, GiB) from 576B to 65535B."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
mtu = 1500"#,
            r#"s.toml:6: path.mtu: got the bare number 1500; expected an amount of data such as "256KiB" (B, kB, MB, GB, KiB, MiB, GiB) from 576B to 65535B. Write it with its unit, in quotes."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
overhead = "2kB""#,
            r#"s.toml:6: path.overhead: got "2kB"; expected an amount of data such as "256KiB" (B, kB, MB, GB, KiB, MiB, GiB) from 0B to 1000B."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
initcwnd = 0"#,
            "s.toml:7: sender.initcwnd: got 0; expected a whole number from 1 to 1000.",
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
initcwnd = 1001"#,
            "s.toml:7: sender.initcwnd: got 1001; expected a whole number from 1 to 1000.",
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
initcwnd = "10""#,
            r#"s.toml:7: sender.initcwnd: got "10"; expected a whole number from 1 to 1000. Write it without quotes."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
initcwnd = 10.5"#,
            "s.toml:7: sender.initcwnd: got 10.5; expected a whole number from 1 to 1000.",
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
initcwnd = -10"#,
            "s.toml:7: sender.initcwnd: got -10; expected a whole number from 1 to 1000.",
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
hz = 42"#,
            "s.toml:7: sender.hz: got 42; expected one of 100, 250, 300, 1000.",
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[receiver]
gro = 1"#,
            "s.toml:7: receiver.gro: got 1; expected true or false.",
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[receiver]
gro = "true""#,
            r#"s.toml:7: receiver.gro: got "true"; expected true or false. Write it without quotes."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
tcp_wmem_max = "3GiB""#,
            r#"s.toml:7: sender.tcp_wmem_max: got "3GiB"; expected an amount of data such as "256KiB" (B, kB, MB, GB, KiB, MiB, GiB) from 4096B to 2147483647B."#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
repeat = 0"#,
            "s.toml:2: repeat: got 0; expected a whole number from 1 to 10000.",
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
seed = -1"#,
            "s.toml:2: seed: got -1; expected a whole number from 0 to 9223372036854775807.",
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
seed = "1""#,
            r#"s.toml:2: seed: got "1"; expected a whole number from 0 to 9223372036854775807. Write it without quotes."#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
title = """#,
            r#"s.toml:2: title: got ""; expected text on one line, in quotes."#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
title = 5"#,
            "s.toml:2: title: got 5; expected text on one line, in quotes.",
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
claim = "Loss 1.5""#,
            r#"s.toml:2: claim: got "Loss 1.5"; expected an id of lower-case letters, digits, "-" and ".", in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
count = 0"#,
            "s.toml:9: flow.0.count: got 0; expected a whole number from 1 to 1000000.",
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
count = 1000001"#,
            "s.toml:9: flow.0.count: got 1000001; expected a whole number from 1 to 1000000.",
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
name = "my flow""#,
            r#"s.toml:9: flow.0.name: got "my flow"; expected a name of letters, digits and "_" that begins with a letter, in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
cubic.beta = 2000"#,
            "s.toml:9: flow.0.cubic.beta: got 2000; expected a number from 0.001 to 1 (default 0.7002).",
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
cubic.beta = "1""#,
            r#"s.toml:9: flow.0.cubic.beta: got "1"; expected a number from 0.001 to 1 (default 0.7002). Write it without quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "bbr1"
bbr1.probe_rtt_time = 150"#,
            r#"s.toml:9: flow.0.bbr1.probe_rtt_time: got 150; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from "0s" to "5s" (default "200ms"). Write it with its unit, in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "bbr1"
bbr1.probe_rtt_time = "1us""#,
            r#"s.toml:9: flow.0.bbr1.probe_rtt_time: got "1us"; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from "0s" to "5s" (default "200ms"). It counts whole units of 1ms."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "bbr1"
bbr1.pacing_margin = "60%""#,
            r#"s.toml:9: flow.0.bbr1.pacing_margin: got "60%"; expected a share such as "1.5%" from "0%" to "50%" (default "1%")."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
cubic = 3"#,
            "s.toml:9: flow.0.cubic: got 3; expected a table of parameters. Write cubic.beta = 0.7002.",
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
workload = "request-response"
requests = 0"#,
            r#"s.toml:10: flow.0.requests: got 0; expected a whole number from 1 to 1000000000000, or "unlimited"."#,
        ),
    ]);
}

#[test]
fn values_that_contradict_each_other_are_refused_at_the_offending_line() {
    refused(&[
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
warmup = "10s""#,
            r#"s.toml:2: warmup: got "10s"; expected less than the duration, "10s". Shorten the warm-up, or lengthen the run."#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
sample_interval = "11s""#,
            r#"s.toml:2: sample_interval: got "11s"; expected at most the duration, "10s". Set a shorter one."#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "1ms""#,
            r#"s.toml:1: sample_interval: got the default "10ms"; expected at most the duration, "1ms". Set a shorter one."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
buffer = "0.001bdp""#,
            r#"s.toml:6: path.buffer: got "0.001bdp", which is 625B of path.rate 50Mbit/s and path.rtt 100ms; expected room for at least one packet of 1500B (path.mtu + path.overhead). "1packet" is the least."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
buffer = "1000B""#,
            r#"s.toml:6: path.buffer: got "1000B"; expected room for at least one packet of 1500B (path.mtu + path.overhead). "1packet" is the least."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
buffer = "0packets""#,
            r#"s.toml:6: path.buffer: got "0packets"; expected room for at least one packet of 1500B (path.mtu + path.overhead). "1packet" is the least."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
buffer = "1us""#,
            r#"s.toml:6: path.buffer: got "1us", which is 7B of path.rate 50Mbit/s and path.rtt 100ms; expected room for at least one packet of 1500B (path.mtu + path.overhead). "1packet" is the least."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
buffer = "1e3bdp""#,
            r#"s.toml:6: path.buffer: got "1e3bdp", whose unit "e3bdp" is unknown here; expected a queue size such as "1bdp", "256KiB", "170packets", "20ms" or "unlimited"."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
buffer = 5"#,
            r#"s.toml:6: path.buffer: got the bare number 5; expected a queue size such as "1bdp", "256KiB", "170packets", "20ms" or "unlimited". Write it with its unit, in quotes."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
buffer = "9999999999bdp""#,
            r#"s.toml:6: path.buffer: got "9999999999bdp"; expected at most 1099511627776B of path.rate 50Mbit/s and path.rtt 100ms. "unlimited" never drops."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
buffer = "2TiB""#,
            r#"s.toml:6: path.buffer: got "2TiB", whose unit "TiB" is unknown here; expected a queue size such as "1bdp", "256KiB", "170packets", "20ms" or "unlimited"."#,
        ),
        (
            r#"rate = "50Mbit/s""#,
            r#"rate = "unlimited"
buffer = "1bdp""#,
            r#"s.toml:5: path.buffer: got "1bdp"; expected bytes, packets or "unlimited", because path.rate is "unlimited". A time and a BDP need a rate."#,
        ),
        (
            r#"rate = "50Mbit/s""#,
            r#"rate = "unlimited"
buffer = "20ms""#,
            r#"s.toml:5: path.buffer: got "20ms"; expected bytes, packets or "unlimited", because path.rate is "unlimited". A time and a BDP need a rate."#,
        ),
        (
            r#"rate = "50Mbit/s"
rtt = "100ms""#,
            r#"rate = "1kbit/s"
rtt = "1ms""#,
            r#"s.toml:3: path.buffer: got the default of 1bdp, which is 1B of path.rate 1kbit/s and path.rtt 1ms; expected room for at least one packet of 1500B (path.mtu + path.overhead). "1packet" is the least."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
tcp_wmem_max = "8KiB""#,
            r#"s.toml:7: sender.tcp_wmem_max: got "8KiB"; expected at least sender.tcp_wmem_default, "16384B". Set tcp_wmem_default as well."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[receiver]
tcp_rmem_min = "1MiB"
tcp_rmem_default = "512KiB""#,
            r#"s.toml:7: receiver.tcp_rmem_min: got "1MiB"; expected at most receiver.tcp_rmem_default, "512KiB". Set tcp_rmem_default as well."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[receiver]
tcp_rmem_default = "64MiB""#,
            r#"s.toml:7: receiver.tcp_rmem_default: got "64MiB"; expected at most receiver.tcp_rmem_max, "33554432B". Set tcp_rmem_max as well."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
policer_burst = "64KiB""#,
            r#"s.toml:6: path.policer_burst: got "64KiB"; expected path.policer_rate beside it. Without a rate there is no policer."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
policer_rate = "5Mbit/s"
policer_burst = "1000B""#,
            r#"s.toml:7: path.policer_burst: got "1000B"; expected room for at least one packet of 1500B (path.mtu + path.overhead)."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
[sender]
gso_max = "1000B""#,
            r#"s.toml:7: sender.gso_max: got "1000B"; expected 0B (off), or at least path.mtu, 1500B."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
start = "10s""#,
            r#"s.toml:9: flow.0.start: got "10s"; expected before the end of the run at "10s". Start it earlier, or lengthen the run."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
count = 11
stagger = "1s""#,
            r#"s.toml:10: flow.0.stagger: got "1s"; expected a stagger with which the last of 11 flows starts before the end of the run at "10s". Shorten it, or lengthen the run."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
count = 600000
[[flow]]
algorithm = "reno"
count = 600000"#,
            "s.toml:12: flow.1.count: got 600000; expected at most 1000000 connections in all, and this makes 1200000. Lower the count.",
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
count = 2000
workload = "request-response"
connections = 501"#,
            "s.toml:9: flow.0.count: got 2000; expected at most 1000000 connections in all, and this makes 1002000. Lower the count.",
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
bytes = "1MB""#,
            r#"s.toml:9: flow.0.bytes: got a key of workload transfer; expected keys of workload bulk. Remove it, or set workload = "transfer"."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
workload = "transfer""#,
            r#"s.toml:9: flow.0.bytes: missing; expected how much workload "transfer" carries. Add bytes = "1MB" or another amount in [[flow]]."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
workload = "transfer"
bytes = "1MB"
depth = 2"#,
            r#"s.toml:11: flow.0.depth: got a key of workload request-response; expected keys of workload transfer. Remove it, or set workload = "request-response"."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
bbr1.drain_gain = 1.2"#,
            r#"s.toml:9: flow.0.bbr1.drain_gain: got a parameter of bbr1; expected parameters of this table's own algorithm. Remove it, or set algorithm = "bbr1"."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
name = "bbr1""#,
            r#"s.toml:9: flow.0.name: got "bbr1"; expected a name that is not another algorithm's. Expectations could not tell them apart."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
name = "a"
[[flow]]
algorithm = "reno"
name = "a""#,
            r#"s.toml:12: flow.1.name: got "a"; expected a name that no other [[flow]] has. Choose another."#,
        ),
    ]);
}

#[test]
fn lists_that_make_no_axis_are_refused() {
    refused(&[
        (
            r#"rtt = "100ms""#,
            "rtt = []",
            r#"s.toml:5: path.rtt: got an empty list; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s, or a list of such values. Leave the key out to have its default."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = ["1ms", "1ms"]"#,
            r#"s.toml:5: path.rtt: got "1ms" twice in a list; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s, or a list of such values. Remove one; `repeat` repeats a cell."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = ["1ms", 2]"#,
            r#"s.toml:5: path.rtt: got the bare number 2; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s. Write it with its unit, in quotes."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = [["1ms"]]"#,
            r#"s.toml:5: path.rtt: got a list within a list; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s, or a list of such values. Write one flat list."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = [
  "1ms",
  "61s",
]"#,
            r#"s.toml:7: path.rtt: got "61s"; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s."#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
seed = [1, 2]"#,
            "s.toml:2: seed: got a list; expected a whole number from 0 to 9223372036854775807. This key cannot be an axis of the matrix.",
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
title = ["a", "b"]"#,
            "s.toml:2: title: got a list; expected text on one line, in quotes. This key cannot be an axis of the matrix.",
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
name = ["a", "b"]"#,
            r#"s.toml:9: flow.0.name: got a list; expected a name of letters, digits and "_" that begins with a letter, in quotes. This key cannot be an axis of the matrix."#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = ["1s", "2s"]
warmup = "1s""#,
            r#"s.toml:2: warmup: got "1s"; expected less than the duration, "1s". Shorten the warm-up, or lengthen the run."#,
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
             s.toml:4: rate: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean \"path.rate\"?\n\
             s.toml:5: rtt: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean \"path.rtt\"?",
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
fn a_published_figure_without_unit_source_or_value_is_refused() {
    refused(&[
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
figure = "611Mbit/s"
source = "article D""#,
            r#"s.toml:9: published.0.value: missing; expected text on one line, in quotes. Add value = "bbr1.goodput" in [[published]]."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
source = "article D""#,
            r#"s.toml:9: published.0.figure: missing; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes. Add figure = "10.5Mbit/s" in [[published]]."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = "611Mbit/s""#,
            r#"s.toml:9: published.0.source: missing; expected text on one line, in quotes. Add source = "the article, its hosts and its kernel" in [[published]]."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = "611Mbit/s"
source = """#,
            r#"s.toml:12: published.0.source: got ""; expected text on one line, in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = 3
figure = "611Mbit/s"
source = "article D""#,
            r#"s.toml:10: published.0.value: got 3; expected text on one line, in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = ["cubic.goodput"]
figure = "611Mbit/s"
source = "article D""#,
            r#"s.toml:10: published.0.value: got a list; expected text on one line, in quotes. This key cannot be an axis of the matrix."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = 611
source = "article D""#,
            r#"s.toml:11: published.0.figure: got the bare number 611; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes. Write it with its unit, in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = "611Mbps"
source = "article D""#,
            r#"s.toml:11: published.0.figure: got "611Mbps", whose unit "Mbps" is unknown here; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes. Did you mean "611Mbit/s"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = "about 600Mbit/s"
source = "article D""#,
            r#"s.toml:11: published.0.figure: got "about 600Mbit/s"; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = "-1ms"
source = "article D""#,
            r#"s.toml:11: published.0.figure: got "-1ms", which is negative; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figure = ["1ms", "2ms"]
source = "article D""#,
            r#"s.toml:11: published.0.figure: got a list; expected a quantity with its unit such as "10.5Mbit/s", "57ms", "80kB", "140000/s" or "1.5%", or a ratio such as "31.7", in quotes. This key cannot be an axis of the matrix."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[[published]]
value = "cubic.goodput"
figur = "611Mbit/s"
source = "article D""#,
            r#"s.toml:11: published.0.figur: unknown key; known here: value, figure, source. Did you mean "figure"?"#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
[published]
value = "cubic.goodput""#,
            "s.toml:9: published: got a table; expected [[published]] tables. Begin each with a line [[published]], in double brackets.",
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
publshed = []"#,
            r#"s.toml:2: publshed: unknown key; known here: title, claim, duration, warmup, repeat, seed, sample_interval, samples, path, hop, sender, receiver, flow, zip, sample, expect, published. Did you mean "published"?"#,
        ),
    ]);
}

/// The words are the TOML library's; the line and the frame are ours.
#[test]
fn what_is_not_toml_is_refused_at_its_line() {
    let rows = [
        (r#"duration = "10s""#, "duration = 10s", 1),
        (r#"duration = "10s""#, r#"duration = "10s"#, 1),
        (r#"duration = "10s""#, r#"duration "10s""#, 1),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
duration = "10s""#,
            2,
        ),
        ("[path]", "[path", 3),
        (r#"rtt = "100ms""#, "rtt = 99999999999999999999", 5),
        (
            "[path]",
            r#"[path]
[path]"#,
            4,
        ),
        (r#"duration = "10s""#, r#"duration = "10s" "20s""#, 1),
    ];
    for (from, to, line) in rows {
        let error = read(&edited(from, to)).expect_err(to).to_string();
        assert!(
            error.starts_with(&format!("s.toml:{line}: not valid TOML: ")),
            "{to:?}: {error}"
        );
        assert!(
            error.ends_with("Correct this line; https://toml.io describes the format."),
            "{error}"
        );
    }
}

#[test]
fn a_matrix_too_large_is_refused_with_its_size() {
    let list: Vec<String> = (1..=400).map(|n| n.to_string()).collect();
    let axis = |table: &str| format!("[{table}]\ninitcwnd = [{}]\n", list.join(", "));
    let text = common::GOOD.to_string() + &axis("receiver") + &axis("sender");
    assert_eq!(
        read(&text).unwrap_err().to_string(),
        "s.toml:12: sender.initcwnd: the matrix has 160000 cells; expected at most 100000. \
         Shorten the lists, or split the file."
    );
}

#[test]
fn the_last_cell_of_a_matrix_is_checked_like_the_first() {
    let error = read(&edited(
        "rtt = \"100ms\"",
        "rtt = [\"100ms\", \"2ms\"]\nbuffer = \"0.1bdp\"",
    ))
    .unwrap_err();
    assert_eq!(error.list[0].line, 6);
    assert!(
        error
            .to_string()
            .contains("1250B of path.rate 50Mbit/s and path.rtt 2ms"),
        "{error}"
    );
}

#[test]
fn what_was_composed_elsewhere_is_named_in_its_errors() {
    let error =
        knee_scenario::parse("duration = 3", "<command line>", &common::names()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("<command line>:1: duration: got the bare number 3; "),
        "{error}"
    );
}

#[test]
fn hops_that_do_not_fit_together_are_refused() {
    let refusal = |text: &str| {
        let text = format!("duration = \"3s\"\n{text}");
        let parsed = knee_scenario::parse(&text, "s.toml", &common::names());
        parsed.expect_err("the hops are no good").to_string()
    };
    let hop = "[[hop]]\nrate = \"1Mbit/s\"\nrtt = \"20ms\"\n";
    let flow = "[[flow]]\nalgorithm = \"cubic\"\n";
    assert_eq!(
        refusal(&format!("[path]\nrate = \"1Mbit/s\"\n{hop}{flow}")),
        "s.toml:3: path.rate: got a key of one hop, where [[hop]] tables make the path; expected in [path] only mtu, backend, super_packets, which hold for all hops. Move it into the [[hop]] tables."
    );
    assert_eq!(
        refusal(&format!("[[hop]]\nrate = \"1Mbit/s\"\n{flow}")),
        "s.toml:2: hop.0.rtt: missing; expected a length of time such as \"100ms\" (ns, us, ms, s, min, h) from 0s to 60s. Add rtt = \"100ms\" in [[hop]]."
    );
    assert_eq!(
        refusal(&format!("{hop}{hop}{flow}hops = \"2..3\"\n")),
        "s.toml:10: flow.0.hops: got \"2..3\"; expected hops that the file has: there are 2. Count the [[hop]] tables from 1."
    );
    assert_eq!(
        refusal(&format!("{hop}{hop}{flow}rtt = \"30ms\"\n")),
        "s.toml:10: flow.0.rtt: got \"30ms\"; expected at least 40ms, what its hops take. Leave it out to have just that, or shorten the hops."
    );
    assert!(
        refusal(&format!("{hop}{flow}hops = \"2..1\"\n"))
            .starts_with("s.toml:7: flow.0.hops: got \"2..1\"; expected a hop such as")
    );
}

#[test]
fn files_that_cannot_be_used_are_refused_with_their_own_line() {
    let refusal = |file: &str, loss: &str| {
        let text = format!(
            "duration = \"3s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"10ms\"\nloss = \"{loss}\"\n[[flow]]\nalgorithm = \"cubic\"\n"
        );
        let error = knee_scenario::parse(&text, file, &common::names());
        error.expect_err("the file is no good").to_string()
    };
    assert_eq!(
        refusal("lab/s.toml", "trace bad.txt"),
        "lab/s.toml:5: path.loss: lab/bad.txt:2: got \"x\"; expected the number of a packet from 19 to 100000000; numbers rise."
    );
    assert!(
        refusal("s.toml", "trace none.txt")
            .starts_with("s.toml:5: path.loss: none.txt: cannot be read: ")
    );
    assert_eq!(
        refusal("s.toml", "gilbert 90% burst 5"),
        "s.toml:5: path.loss: got \"gilbert 90% burst 5\"; expected a loss of at most 83.3333333333% when bursts are 5 packets long, because a packet that is not lost lies between two bursts."
    );
}

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
            r#"s.toml:13: sender.gso_max: got "2000B""#,
            r#"s.toml:14: sender.tcp_wmem_min: got "10MB""#,
            r#"s.toml:17: flow.0.algorithm: unknown algorithm "cubci""#,
            r#"s.toml:18: flow.0.start: got "11s""#,
            "s.toml:19: flow.0.bbr1.drain_gian: unknown key",
            "s.toml:23: flow.1.bytes: missing",
            "s.toml:26: expect.0.asert: unknown key",
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

/// `GOOD` with a path on which nothing is between the hosts, and one passage of it edited.
fn direct(from: &str, to: &str) -> String {
    let path = "rate = \"unlimited\"\nrtt = \"0s\"\nbackend = \"veth\"";
    let rate = edited("rate = \"50Mbit/s\"\n", "");
    let file = rate.replace("rtt = \"100ms\"", path);
    assert!(file.contains(from), "{file}");
    file.replacen(from, to, 1)
}

#[test]
fn what_acts_on_packets_is_refused_where_two_hosts_are_joined_directly() {
    read(&direct("veth", "veth")).unwrap();
    let after = "backend = \"veth\"";
    for (from, to, key, got, expected) in [
        (
            "\"unlimited\"",
            "\"1Gbit/s\"\nbuffer = \"9packets\"".to_owned(),
            "path.rate",
            "\"1Gbit/s\"",
            "\"unlimited\"",
        ),
        (
            "\"0s\"",
            "\"1us\"".to_owned(),
            "path.rtt",
            "\"1us\"",
            "\"0s\"",
        ),
        (
            after,
            format!("{after}\nloss = \"1%\""),
            "path.loss",
            "\"1%\"",
            "\"0%\"",
        ),
        (
            after,
            format!("{after}\nack_loss = \"1%\""),
            "path.ack_loss",
            "\"1%\"",
            "\"0%\"",
        ),
        (
            after,
            format!("{after}\nbuffer = \"9packets\""),
            "path.buffer",
            "\"9packets\"",
            "\"unlimited\"",
        ),
        (
            after,
            format!("{after}\nqueue = \"codel\""),
            "path.queue",
            "\"codel\"",
            "\"fifo\"",
        ),
        (
            after,
            format!("{after}\npolicer_rate = \"9Mbit/s\""),
            "path.policer_rate",
            "\"9Mbit/s\"",
            "\"unlimited\"",
        ),
        (
            after,
            format!("{after}\nrtt_change = \"1s to 1ms\""),
            "path.rtt_change",
            "\"1s to 1ms\"",
            "no change",
        ),
        (
            after,
            format!("{after}\nack_rate = \"9Mbit/s\""),
            "path.ack_rate",
            "\"9Mbit/s\"",
            "\"unlimited\"",
        ),
        (
            after,
            format!("{after}\noverhead = \"38B\""),
            "path.overhead",
            "\"38B\"",
            "\"0B\"",
        ),
        (
            after,
            format!("{after}\njitter = \"1ms\""),
            "path.jitter",
            "\"1ms\"",
            "none",
        ),
        (
            "algorithm = \"cubic\"",
            "algorithm = \"cubic\"\nrtt = \"1ms\"".to_owned(),
            "flow.0.rtt",
            "\"1ms\"",
            "none",
        ),
    ] {
        let error = read(&direct(from, &to)).unwrap_err().to_string();
        let said = format!(
            "{key}: got {got}; expected {expected}, because path.backend = \"veth\" joins the two hosts directly, with nothing between that emulates a path. Or leave path.backend out."
        );
        assert!(error.ends_with(&said), "{error}\n{said}");
    }
}

#[test]
fn hosts_joined_directly_have_no_hops_between_them() {
    let file = "duration = \"9s\"\n[path]\nbackend = \"veth\"\n[[hop]]\nrate = \"unlimited\"\nrtt = \"0s\"\n[[flow]]\nalgorithm = \"cubic\"\n";
    assert_eq!(
        read(file).unwrap_err().to_string(),
        "s.toml:3: path.backend: got \"veth\"; expected a back end that has hops: \"auto\" or \"user\". Or give a [path] in the place of the [[hop]] tables."
    );
}

#[test]
fn processors_are_named_as_taskset_and_sysfs_do() {
    refused(&[
        (
            r#"duration = "10s""#,
            "duration = \"10s\"\nsender.app_cpus = 0",
            r#"s.toml:2: sender.app_cpus: got 0; expected a list of processors such as "0" or "0-1,4", in quotes, or "any"."#,
        ),
        (
            r#"duration = "10s""#,
            "duration = \"10s\"\nsender.app_cpus = \"1-0\"",
            r#"s.toml:2: sender.app_cpus: got "1-0"; expected a list of processors such as "0" or "0-1,4", in quotes, or "any"."#,
        ),
        (
            r#"duration = "10s""#,
            "duration = \"10s\"\nreceiver.rps_cpus = \"0x3\"",
            r#"s.toml:2: receiver.rps_cpus: got "0x3"; expected a mask of processors in hexadecimal such as "3" or "ff,00000000", in quotes, as sysfs writes it."#,
        ),
        (
            r#"duration = "10s""#,
            "duration = \"10s\"\nreceiver.queues = 129",
            "s.toml:2: receiver.queues: got 129; expected a whole number from 1 to 128.",
        ),
    ]);
}
