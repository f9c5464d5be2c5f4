//! Hosts whose work takes time.

mod common;

use std::collections::BTreeMap;

use knee_sim::Output;
use knee_tables::Table;

use common::run as simulate;

/// The counters of a host.
fn counters(output: &Output, host: &str) -> BTreeMap<&'static str, i64> {
    let rows = &output.host_costs;
    (0..rows.rows())
        .filter(|&row| rows.host[row] == host)
        .map(|row| (rows.counter[row], rows.value[row]))
        .collect()
}

#[test]
fn zz_try() {
    let rr = |alg: &str, timer: &str| {
        format!(
            r#"
duration = "1s"
[path]
rate = "unlimited"
rtt = "0s"
buffer = "unlimited"
backend = "veth"
[sender]
costs = "published"
pacing_timer = "{timer}"
cpus = 2
[receiver]
costs = "published"
[[flow]]
algorithm = "{alg}"
workload = "request-response"
request = "1B"
response = "1B"
"#
        )
    };
    for (alg, timer) in [
        ("cubic", "when-needed"),
        ("bbr1", "when-needed"),
        ("bbr1", "every-packet"),
    ] {
        let output = simulate(&rr(alg, timer));
        println!(
            "{alg} {timer}: {:?} {:?}",
            output.flows.requests_per_sec, output.flows.latency_us_p50
        );
        for (name, value) in counters(&output, "machine") {
            if value != 0 {
                println!("   {name} {value}");
            }
        }
    }
    let bulk = |alg: &str, extra: &str| {
        format!(
            r#"
duration = "2s"
warmup = "1s"
[path]
rate = "1Gbit/s"
rtt = "10ms"
[sender]
costs = "published"
{extra}
[receiver]
costs = "published"
[[flow]]
algorithm = "{alg}"
"#
        )
    };
    for (alg, extra) in [
        ("cubic", ""),
        ("bbr1", ""),
        ("bbr1", "pacing = \"fq\""),
        ("bbr1", "steal = \"50%\""),
        ("cubic", "steal = \"50%\""),
    ] {
        let output = simulate(&bulk(alg, extra));
        println!(
            "{alg} {extra}: {:?} {:?}",
            output.flows.goodput_bits_per_sec, output.flows.srtt_us_p50
        );
        for host in ["sender", "receiver"] {
            for (name, value) in counters(&output, host) {
                if value != 0 {
                    println!("   {host} {name} {value}");
                }
            }
        }
    }
}
