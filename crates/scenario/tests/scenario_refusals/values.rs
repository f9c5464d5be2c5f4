//! Values without their unit, of the wrong kind or out of bounds.

use super::refused;

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
fn values_out_of_bounds_are_refused_with_the_bounds() {
    refused(&[
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
loss = "100.1%""#,
            r#"s.toml:6: path.loss: got "100.1%"; expected a share such as "1.5%" up to 100%, or a kind of loss: "periodic 0.1%", "super-packets 1.5%", "gilbert 1% burst 5", "trace losses.txt"."#,
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
            r#"s.toml:6: path.loss: got the bare number 0.015; expected a share such as "1.5%" up to 100%, or a kind of loss: "periodic 0.1%", "super-packets 1.5%", "gilbert 1% burst 5", "trace losses.txt". Write it with its unit, in quotes."#,
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
            r#"s.toml:6: path.loss: got "periodic"; expected a share such as "1.5%" up to 100%, or a kind of loss: "periodic 0.1%", "super-packets 1.5%", "gilbert 1% burst 5", "trace losses.txt"."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
loss = "periodic 50.1%""#,
            r#"s.toml:6: path.loss: got "periodic 50.1%"; expected at most 50%, which is every second packet, or 100%."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = "100ms"
loss = "periodic 70%""#,
            r#"s.toml:6: path.loss: got "periodic 70%"; expected at most 50%, which is every second packet, or 100%."#,
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
            "duration = \"10s\"\nreceiver.costs = \"published\"\nreceiver.cpus = 2\nreceiver.flow_limit_cpu_bitmap = \"4\"",
            r#"s.toml:4: receiver.flow_limit_cpu_bitmap: got "4"; expected processors from 0 to 1, as this side's hosts have 2. Or set cpus."#,
        ),
        (
            r#"duration = "10s""#,
            "duration = \"10s\"\nreceiver.costs = \"published\"\nreceiver.app_cpus = \"1\"",
            r#"s.toml:3: receiver.app_cpus: got "1"; expected processor 0, as this side's hosts have no other. Or set cpus."#,
        ),
        (
            r#"duration = "10s""#,
            "duration = \"10s\"\nreceiver.queues = 129",
            "s.toml:2: receiver.queues: got 129; expected a whole number from 1 to 128.",
        ),
    ]);
}
