//! The path: buffers, policers, traces, impairments, queues.

use crate::common::{GOOD, edited, names, read};
use knee_path::impairment::{Form, IMPAIRMENTS, Key};
use knee_path::queue::BufferLimit;
use knee_path::queue::policer::Action;
use knee_scenario::{cautions, describe, phase_noise};
use knee_units::Nanos;

#[test]
fn a_buffer_is_resolved_with_rate_and_rtt_and_rounded_up() {
    let buffer = |rate: &str, rtt: &str, size: &str| {
        let path = format!("rate = \"{rate}\"\nrtt = \"{rtt}\"\nbuffer = \"{size}\"");
        let text = edited("rate = \"50Mbit/s\"\nrtt = \"100ms\"", &path);
        read(&text).unwrap().cell(0).unwrap().path.buffer
    };
    assert_eq!(
        buffer("50Mbit/s", "100ms", "1bdp"),
        BufferLimit::Bytes(625_000)
    );
    assert_eq!(
        buffer("20Mbit/s", "40ms", "0.02bdp"),
        BufferLimit::Bytes(2_000)
    );
    assert_eq!(
        buffer("50Mbit/s", "100ms", "20ms"),
        BufferLimit::Bytes(125_000)
    );
    // 1 000 001 bit/s × 100 ms = 12 500.0125 bytes.
    assert_eq!(
        buffer("1000001bit/s", "100ms", "1bdp"),
        BufferLimit::Bytes(12_501)
    );
    assert_eq!(
        buffer("50Mbit/s", "100ms", "256KiB"),
        BufferLimit::Bytes(262_144)
    );
    assert_eq!(
        buffer("50Mbit/s", "100ms", "170packets"),
        BufferLimit::Packets(170)
    );
    assert_eq!(
        buffer("50Mbit/s", "100ms", "unlimited"),
        BufferLimit::Unlimited
    );
    assert_eq!(
        buffer("unlimited", "100ms", "170packets"),
        BufferLimit::Packets(170)
    );
    let unlimited = edited("rate = \"50Mbit/s\"", "rate = \"unlimited\"");
    assert_eq!(
        read(&unlimited).unwrap().cell(0).unwrap().path.buffer,
        BufferLimit::Unlimited
    );
}

#[test]
fn a_policer_has_a_burst_of_250_ms_unless_told_otherwise() {
    let policer = |keys: &str| {
        let text = edited(r#"rtt = "100ms""#, &format!("rtt = \"100ms\"\n{keys}"));
        read(&text).unwrap().cell(0).unwrap().path.policer
    };
    assert_eq!(policer(""), None);
    let ten = policer(r#"policer_rate = "10Mbit/s""#).unwrap();
    assert_eq!(
        (ten.rate.bits_per_sec(), ten.burst_bytes),
        (10_000_000, 312_500)
    );
    assert_eq!(ten.action, Action::Drop);
    let slow = policer(r#"policer_rate = "8kbit/s""#).unwrap();
    assert_eq!(slow.burst_bytes, 1_500, "at least a packet");
    let marking =
        "policer_rate = \"10Mbit/s\"\npolicer_burst = \"64KiB\"\npolicer_action = \"mark\"";
    let marking = policer(marking).unwrap();
    assert_eq!(
        (marking.burst_bytes, marking.action),
        (65_536, Action::Mark)
    );
}

/// The cell of [`GOOD`] with more keys in `[path]`.
fn with_path(keys: &str) -> Result<knee_scenario::Cell, String> {
    let text = edited("rtt = \"100ms\"", &format!("rtt = \"100ms\"\n{keys}"));
    let scenario = read(&text).map_err(|error| error.to_string())?;
    Ok(scenario.cell(0).unwrap())
}

#[test]
fn a_trace_stands_for_its_mean_where_a_rate_is_asked_for() {
    let text = edited("rate = \"50Mbit/s\"", "rate = \"trace wifi\"");
    let cell = read(&text).unwrap().cell(0).unwrap();
    let trace = cell.path.rate_trace.as_ref().expect("a trace");
    assert_eq!(cell.path.rate, Some(trace.mean()));
    let facts = describe(&cell, &names());
    let fact = |key: &str| facts.iter().find(|(k, ..)| k == key).expect("described");
    assert_eq!(fact("path.rate").1, "trace wifi");
    let bdp = knee_scenario::bdp_bytes(trace.mean(), cell.path.rtt);
    assert_eq!(fact("path.bdp_bytes").1, bdp.to_string());
    assert!(fact("path.bdp_bytes").2.contains("path.mean_rate"));
}

#[test]
fn a_trace_that_is_not_there_or_no_trace_is_refused() {
    let refusal = |rate: &str| {
        let text = edited("rate = \"50Mbit/s\"", &format!("rate = \"{rate}\""));
        read(&text).unwrap_err().to_string()
    };
    assert!(refusal("trace wify").contains(
        "path.rate: unknown trace \"wify\"; known: cellular, wifi, satellite. Did you mean \"wifi\"?"
    ));
    assert!(refusal("trace none.up").contains("path.rate: none.up: cannot be read"));
    assert!(refusal("trace lab/bad.txt").contains(
        "path.rate: lab/bad.txt:2: got \"18 x\" behind 17; expected whole milliseconds up to 86400000, which never fall."
    ));
    assert!(refusal("trace").contains("path.rate: got \"trace\"; expected a rate"));
}

#[test]
fn times_of_outages_and_routes_are_a_text_or_a_list_and_no_axis() {
    let one = with_path("outage = \"10s for 2s\"\nrtt_change = \"20s to 80ms\"").unwrap();
    assert_eq!(one.path.impairments.outages().len(), 1);
    assert_eq!(one.path.rtt_changes[0].rtt, Nanos::from_ms(80));
    let two = with_path("outage = [\"10s for 2s\", \"15s for 500ms\"]").unwrap();
    assert!(two.axes.iter().all(|(key, _)| key != "path.outage"));
    let facts = describe(&two, &names());
    let fact = facts.iter().find(|(key, ..)| key == "path.outage").unwrap();
    assert_eq!(fact.1, "10s for 2s, 15s for 500ms");
    for wrong in [
        "outage = [\"10s for 5s\", \"12s for 1s\"]",
        "outage = [\"10s for 0s\"]",
        "outage = [\"10s\"]",
        "outage = []",
        "outage = 10",
        "rtt_change = [\"10s to 20ms\", \"5s to 20ms\"]",
        "rtt_change = \"10s to 0ms\"",
    ] {
        let error = with_path(wrong).unwrap_err();
        assert!(error.contains("in order of time"), "{wrong}: {error}");
    }
}

#[test]
fn uneven_paths_describe_themselves_as_they_are_written() {
    let keys = [
        ("jitter", "\"2ms\""),
        ("jitter_distribution", "\"normal\""),
        ("jitter_reorders", "true"),
        ("reorder", "\"1%\""),
        ("reorder_delay", "\"5ms\""),
        ("duplicate", "\"0.1%\""),
        ("aggregate", "\"4ms\""),
        ("outage", "\"1s for 100ms\""),
        ("rtt_change", "\"2s to 80ms\""),
        ("ack_rate", "\"1Mbit/s\""),
        ("ack_buffer", "\"50packets\""),
        ("ack_queue", "\"fifo\""),
        ("loss", "\"gilbert 1% burst 5\""),
    ];
    let lines: String = keys
        .iter()
        .filter(|(key, _)| !GOOD.contains(&format!("\n{key} =")))
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect();
    let facts = describe(&with_path(&lines).unwrap(), &names());
    for (key, value) in keys {
        let path = format!("path.{key}");
        let fact = facts.iter().find(|(found, ..)| *found == path);
        let fact = fact.unwrap_or_else(|| panic!("{path} is described"));
        if lines.contains(&format!("{key} = ")) {
            assert_eq!(fact.1, value.trim_matches('"'), "{path}");
        }
    }
}

#[test]
fn every_impairment_is_read_and_described_as_it_is_written() {
    for kind in IMPAIRMENTS {
        let line = |key: &Key| match key.form {
            Form::Flag => format!("{} = {}\n", key.name, key.example),
            _ => format!("{} = \"{}\"\n", key.name, key.example),
        };
        let written: String = kind.keys.iter().map(line).collect();
        let (plain, impaired) = (with_path("").unwrap(), with_path(&written).unwrap());
        let facts = describe(&impaired, &names());
        for key in kind.keys {
            let told = |(path, value, doc): &(String, String, String)| {
                *path == format!("path.{}", key.name)
                    && *value == key.example.to_string()
                    && doc == key.doc
            };
            assert!(facts.iter().any(told), "{}", key.name);
        }
        // What does not act is not described.
        let idle = describe(&plain, &names());
        assert_eq!(idle.len() + kind.keys.len(), facts.len(), "{}", kind.name);
    }
}

#[test]
fn queue_of_acks_takes_parameters_of_its_own() {
    let cell = with_path(
        "queue = \"codel\"\ncodel.target = \"7ms\"\nack_rate = \"1Mbit/s\"\nack_queue = \"codel\"\nack_codel.target = \"9ms\"",
    )
    .unwrap();
    let ms = |params: &knee_units::params::Params| params.int("target") / 1_000_000;
    assert_eq!(ms(&cell.path.queue_params), 7);
    assert_eq!(ms(&cell.path.ack.queue_params), 9);
    let plain = with_path("ack_rate = \"1Mbit/s\"\nack_queue = \"pie\"").unwrap();
    assert!(plain.path.ack.queue_params.are_defaults());

    let axis = edited(
        "rtt = \"100ms\"",
        "rtt = \"100ms\"\nack_rate = \"1Mbit/s\"\nack_queue = [\"fifo\", \"codel\"]\nack_codel.target = [\"5ms\", \"9ms\"]",
    );
    let scenario = read(&axis).unwrap();
    let labels: Vec<_> = scenario.cells().map(|cell| cell.axes).collect();
    assert_eq!(labels.len(), 3, "a fifo has no target: {labels:?}");
    assert_eq!(labels[2][1], ("path.ack_codel.target".into(), "9ms".into()));

    for (keys, why) in [
        (
            "ack_codel.target = \"9ms\"",
            "path.ack_codel.target: got a parameter of codel; expected parameters of fifo. Remove it, or set ack_queue = \"codel\".",
        ),
        (
            "queue = \"codel\"\nack_codel.target = \"9ms\"",
            "expected parameters of fifo",
        ),
        (
            "ack_queue = \"codel\"\nack_codel.targt = \"9ms\"",
            "path.ack_codel.targt: unknown key",
        ),
        ("ack_coddel.target = \"9ms\"", "Did you mean \"ack_codel\"?"),
    ] {
        let error = with_path(keys).unwrap_err();
        assert!(error.contains(why), "{keys}: {error}");
    }
}

#[test]
fn a_queue_that_is_told_at_a_rate_without_one_is_cautioned_of() {
    const NONE: &str = "at a rate that is unlimited no packet waits: buffer, queue and its parameters have no effect";
    for (keys, told) in [
        ("", None),
        ("buffer = \"unlimited\"", None),
        ("buffer = \"170packets\"", Some(NONE)),
        ("queue = \"codel\"\ncodel.target = \"9ms\"", Some(NONE)),
        // One of several rates of ACKs.
        ("ack_rate = \"unlimited\"\nack_buffer = \"50packets\"", None),
    ] {
        let path = format!("rate = \"unlimited\"\n{keys}");
        let text = edited("rate = \"50Mbit/s\"", &path);
        let cell = read(&text).unwrap().cell(0).unwrap();
        assert_eq!(cautions(&cell).first().map(String::as_str), told, "{keys}");
    }
}

#[test]
fn a_phase_may_decide_among_several_endless_flows_behind_drop_tail_without_any_noise() {
    const TWO: &str = r#"
duration = "10s"
[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "1bdp"
[sender]
hz = 250
[[flow]]
algorithm = "cubic"
[[flow]]
algorithm = "bbr1"
"#;
    let noise =
        |old: &str, new: &str| phase_noise(&read(&TWO.replace(old, new)).unwrap().cell(0).unwrap());
    // A packet takes 1.2 ms.
    assert_eq!(noise("", ""), Some(Nanos::from_us(600)));
    for (old, new) in [
        ("[[flow]]\nalgorithm = \"bbr1\"\n", ""),
        ("\"bbr1\"", "\"bbr1\"\nworkload = \"on-off\""),
        ("buffer = \"1bdp\"", "buffer = \"unlimited\""),
        (
            "buffer = \"1bdp\"",
            "buffer = \"1bdp\"\nqueue = \"fq_codel\"",
        ),
        ("buffer = \"1bdp\"", "buffer = \"1bdp\"\nloss = \"0.1%\""),
        (
            "buffer = \"1bdp\"",
            "buffer = \"1bdp\"\nack_loss = \"0.1%\"",
        ),
        ("buffer = \"1bdp\"", "buffer = \"1bdp\"\njitter = \"1ms\""),
        ("buffer = \"1bdp\"", "buffer = \"1bdp\"\nreorder = \"1%\""),
        ("buffer = \"1bdp\"", "buffer = \"1bdp\"\nduplicate = \"1%\""),
        ("\"10Mbit/s\"", "\"trace cellular\""),
        ("hz = 250", "noise = \"1us\""),
    ] {
        assert_eq!(noise(old, new), None, "{new}");
    }
    let receiver = "hz = 250\n[receiver]\nnoise = \"1us\"";
    assert_eq!(noise("hz = 250", receiver), None);
    let alike = "\"cubic\"\ncount = 2";
    let one = TWO.replace("[[flow]]\nalgorithm = \"bbr1\"\n", "");
    let cells: Vec<_> = read(&one.replace("\"cubic\"", alike))
        .unwrap()
        .cells()
        .collect();
    assert_eq!(phase_noise(&cells[0]), Some(Nanos::from_us(600)));
}
