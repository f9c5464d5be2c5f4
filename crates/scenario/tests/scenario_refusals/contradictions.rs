//! Values that are good by themselves and do not fit together.

use super::refused;
use crate::common;

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
policer_action = "mark""#,
            r#"s.toml:6: path.policer_action: got "mark"; expected path.policer_rate beside it. Without a rate there is no policer."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
ack_buffer = "50packets""#,
            r#"s.toml:6: path.ack_buffer: got "50packets"; expected path.ack_rate beside it. Without a rate no ACK waits."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
ack_queue = "codel"
ack_codel.target = "9ms""#,
            r#"s.toml:6: path.ack_queue: got "codel"; expected path.ack_rate beside it. Without a rate no ACK waits."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
queue = "red"
red.min = "90kB"
red.max = "30kB""#,
            r#"s.toml:8: path.red.max: got "30kB"; expected at least red.min."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
ack_rate = "1Mbit/s"
ack_queue = "red"
ack_red.max = "30kB"
ack_red.min = ["30kB", "31kB"]"#,
            r#"s.toml:8: path.ack_red.max: got "30kB"; expected at least red.min."#,
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
            r#"[[flow]]"#,
            r#"[receiver]
costs = "published"
[sender]
steal = "20%"
[[flow]]"#,
            r#"s.toml:10: sender.steal: got a key of the host model, which is without sender.costs; expected keys that have an effect in some engine. Remove it, or set sender.costs = "published"."#,
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
bbr1.drain_gain = 1.2"#,
            r#"s.toml:9: flow.0.bbr1.drain_gain: got a parameter of bbr1; expected parameters of cubic. Remove it, or set algorithm = "bbr1"."#,
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
    let whole = format!("{hop}{hop}loss = \"super-packets 1%\"\n{flow}");
    assert_eq!(
        refusal(&whole),
        "s.toml:8: hop.1.loss: got \"super-packets 1%\"; expected a loss of single packets, since TSO packets are whole only before the first hop. \"1.5%\" is one."
    );
    assert_eq!(
        refusal(&format!("{hop}ack_loss = \"super-packets 1%\"\n{flow}")),
        "s.toml:5: hop.0.ack_loss: got \"super-packets 1%\"; expected a loss of single packets, since each ACK is a packet of its own. \"1.5%\" is one."
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
