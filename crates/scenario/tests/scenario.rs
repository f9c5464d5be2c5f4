//! What scenario files mean: defaults, axes, units, derived values.

mod common;

use common::{GOOD, edited, names, read};
use knee_path::queue::BufferLimit;
use knee_path::queue::policer::Action;
use knee_scenario::workload::{Bulk, RequestResponse, SmallWrites, Transfer, Write};
use knee_scenario::{Cell, Pacing, Published, WorkloadSpec, describe, keys, phase_noise};
use knee_transit::impairment::{Form, IMPAIRMENTS, Key};
use knee_transit::loss::{LossSpec, Pattern};
use knee_units::{Nanos, Rate};

const DESIGN_EXAMPLE: &str = r#"
title    = "Trans-Pacific transfer, 1.5 % loss"
claim    = "loss-1.5"            # optional: an id of claims.md
duration = "30s"                 # warmup is left out of steady-state metrics
warmup   = "5s"
repeat   = 5
seed     = 1

[path]                           # one bottleneck
rate   = "5Gbit/s"
rtt    = "100ms"
loss   = "1.5%"
buffer = "1bdp"                  # or "256KiB", "170packets", "20ms"
queue  = "fifo"

[sender]                         # Linux settings of the sending hosts
tcp_wmem_max = "4MiB"
pacing       = "internal"        # or "fq"
initcwnd     = 10
[receiver]
tcp_rmem_max = "6MiB"
gro          = true

[[flow]]
algorithm = ["cubic", "bbr1"]    # an axis; two [[flow]] tables share the bottleneck
workload  = "bulk"
count     = 1
start     = "0s"
rtt       = "20ms"               # optional: this flow's own base RTT

[[expect]]                       # optional
assert = "bbr1.goodput / cubic.goodput >= 20"
"#;

#[test]
fn the_documented_example_is_two_cells() {
    let scenario = read(DESIGN_EXAMPLE).unwrap();
    assert_eq!(scenario.title, "Trans-Pacific transfer, 1.5 % loss");
    assert_eq!(scenario.claim.as_deref(), Some("loss-1.5"));
    assert_eq!((scenario.repeat, scenario.seed), (5, 1));
    assert_eq!(
        (scenario.duration, scenario.warmup),
        (Nanos::from_secs(30), Nanos::from_secs(5))
    );
    assert_eq!(scenario.expects.len(), 1);
    assert_eq!(
        scenario.expects[0].assert,
        "bbr1.goodput / cubic.goodput >= 20"
    );
    assert_eq!(scenario.expects[0].line, 32);
    assert_eq!(scenario.n_cells(), 2);
    for (cell, (index, algorithm)) in scenario.cells().zip([(0, "cubic"), (1, "bbr1")]) {
        assert_eq!(cell.index, index);
        assert_eq!(
            cell.axes,
            [("flow.0.algorithm".to_string(), algorithm.to_string())]
        );
        assert_eq!(cell.flows.len(), 1);
        assert_eq!(
            (
                cell.flows[0].algorithm.as_str(),
                cell.flows[0].name.as_str()
            ),
            (algorithm, algorithm)
        );
        assert_eq!(cell.flows[0].rtt, Nanos::from_ms(20));
        assert_eq!(cell.path.rate, Rate::from_bits_per_sec(5_000_000_000));
        assert_eq!(
            cell.path.loss,
            LossSpec {
                kind: "random",
                share: 0.015,
                pattern: Pattern::Share,
            }
        );
        assert_eq!(cell.path.buffer, BufferLimit::Bytes(62_500_000));
        assert_eq!(cell.sender.tcp_wmem_bytes, [4096, 16_384, 4 << 20]);
        assert_eq!(cell.receiver.tcp_rmem_bytes, [4096, 131_072, 6 << 20]);
    }
}

#[test]
fn what_the_file_does_not_say_is_as_linux_6_18_has_it() {
    let scenario = read(GOOD).unwrap();
    assert_eq!(scenario.n_cells(), 1, "no list, one cell");
    let cell = scenario.cell(0).unwrap();
    assert_eq!(
        (cell.title.as_str(), cell.axes.len(), cell.repeat, cell.seed),
        ("s", 0, 1, 1)
    );
    assert_eq!(
        (cell.warmup, cell.sample_interval),
        (Nanos::ZERO, Nanos::from_ms(10))
    );
    let path = &cell.path;
    assert_eq!(
        (&path.loss, &path.ack_loss),
        (&LossSpec::NONE, &LossSpec::NONE)
    );
    assert_eq!(path.buffer, BufferLimit::Bytes(625_000));
    assert_eq!(
        (path.queue, path.mtu_bytes, path.overhead_bytes),
        ("fifo", 1500, 0)
    );
    for host in [&cell.sender, &cell.receiver] {
        assert_eq!(host.hz, 250);
        assert_eq!(host.tcp_wmem_bytes, [4096, 16_384, 4_194_304]);
        assert_eq!(host.tcp_rmem_bytes, [4096, 131_072, 33_554_432]);
        assert_eq!(host.tcp_limit_output_bytes, 4 << 20);
        assert!(host.tcp_slow_start_after_idle);
        assert_eq!(host.tcp_rto_min, Nanos::from_ms(200));
        assert_eq!(
            (host.tcp_comp_sack_delay, host.tcp_comp_sack_nr),
            (Nanos::from_ms(1), 44)
        );
        assert_eq!((host.pacing, host.initcwnd), (Pacing::Internal, 10));
        assert_eq!((host.gso_max_bytes, host.gro), (65_536, true));
        assert_eq!(host.rx_coalesce, Nanos::from_us(20));
        assert_eq!(host.algorithm, "cubic");
    }
    let [flow] = cell.flows.as_slice() else {
        panic!("one [[flow]], one flow")
    };
    assert_eq!(
        flow.workload,
        Bulk {
            write_bytes: Write(128 << 10)
        }
        .into()
    );
    assert_eq!(
        (flow.count, flow.start, flow.stagger),
        (1, Nanos::ZERO, Nanos::ZERO)
    );
    assert_eq!((flow.rtt, flow.max_pacing_rate), (path.rtt, None));
    assert!(flow.params.is_empty());
    assert!(scenario.expects.is_empty() && scenario.published.is_empty());
}

#[test]
fn axes_follow_the_file_and_the_last_is_fastest() {
    let text = r#"
        duration = "10s"
        [[flow]]
        algorithm = ["reno", "cubic"]
        [path]
        rtt = "100ms"
        loss = ["0%", "periodic 1.5%"]
        rate = ["50Mbit/s"]
    "#;
    let scenario = read(text).unwrap();
    let axes: Vec<Vec<(String, String)>> = scenario.cells().map(|cell| cell.axes).collect();
    let point = |algorithm, loss| {
        vec![
            ("flow.0.algorithm".to_owned(), String::from(algorithm)),
            ("path.loss".to_owned(), String::from(loss)),
            ("path.rate".to_owned(), "50Mbit/s".to_owned()),
        ]
    };
    assert_eq!(
        axes,
        [
            point("reno", "0%"),
            point("reno", "periodic 1.5%"),
            point("cubic", "0%"),
            point("cubic", "periodic 1.5%")
        ]
    );
    assert!(
        scenario
            .cells()
            .enumerate()
            .all(|(i, cell)| cell.index == i as u32)
    );
    assert_eq!(
        scenario.cell(3).unwrap().path.loss,
        LossSpec {
            kind: "periodic",
            share: 0.015,
            pattern: Pattern::Share,
        }
    );
}

#[test]
fn every_scalar_key_but_those_of_the_whole_scenario_may_be_an_axis() {
    let not: Vec<String> = keys()
        .into_iter()
        .filter(|key| !key.axis)
        .map(|key| key.path)
        .collect();
    assert_eq!(
        not,
        [
            "title",
            "claim",
            "repeat",
            "seed",
            "samples",
            "path.outage",
            "path.rtt_change",
            "flow.name",
            "zip.keys",
            "sample.file",
            "sample.rows",
            "sample.count",
            "sample.seed",
            "expect.assert",
            "published.value",
            "published.figure",
            "published.source"
        ]
    );
}

#[test]
fn an_axis_multiplies_only_the_cells_it_acts_in() {
    let text = edited(
        "algorithm = \"cubic\"",
        "algorithm = [\"cubic\", \"bbr1\"]\nbbr1.drain_gain = [0.34375, 1.2]\nbbr1.cwnd_gain = 2.5",
    );
    let cells: Vec<_> = read(&text).unwrap().cells().collect();
    let seen: Vec<_> = cells
        .iter()
        .map(|cell| (cell.flows[0].params.clone(), cell.axes.len()))
        .collect();
    let bbr1 = |drain| {
        vec![
            ("drain_gain".to_string(), drain),
            ("cwnd_gain".to_string(), 640),
        ]
    };
    assert_eq!(seen, [(vec![], 1), (bbr1(88), 2), (bbr1(307), 2)]);
}

#[test]
fn parameters_are_written_with_their_units() {
    let text = edited(
        "algorithm = \"cubic\"",
        "algorithm = \"bbr1\"\nbbr1.probe_rtt_time = \"0.15s\"\nbbr1.pacing_margin = \"2%\"\nbbr1.cwnd_gain = 2",
    );
    let params = read(&text).unwrap().cell(0).unwrap().flows.remove(0).params;
    let expected = [
        ("probe_rtt_time", 150),
        ("pacing_margin", 2),
        ("cwnd_gain", 512),
    ];
    assert_eq!(
        params,
        expected.map(|(name, value)| (name.to_string(), value))
    );
}

#[test]
fn a_key_of_one_workload_is_no_axis_of_another() {
    let text = edited(
        "algorithm = \"cubic\"",
        "algorithm = \"cubic\"\nworkload = [\"bulk\", \"transfer\"]\nbytes = [\"1MB\", \"2MB\"]",
    );
    let workloads: Vec<_> = read(&text)
        .unwrap()
        .cells()
        .map(|mut cell| cell.flows.remove(0).workload)
        .collect();
    let write_bytes = Write(128 << 10);
    let transfer = |bytes| WorkloadSpec::from(Transfer { bytes, write_bytes });
    assert_eq!(
        workloads,
        [
            Bulk { write_bytes }.into(),
            transfer(1_000_000),
            transfer(2_000_000),
        ]
    );
}

#[test]
fn small_writes_are_128_bytes_each_unless_the_file_says_otherwise() {
    let workload = |keys: &str| {
        let flow = format!("algorithm = \"cubic\"\nworkload = \"small-writes\"\n{keys}");
        let text = edited("algorithm = \"cubic\"", &flow);
        read(&text).unwrap().cell(0).unwrap().flows.remove(0)
    };
    let small = |writes, bytes| {
        let write_bytes = Write(bytes);
        WorkloadSpec::from(SmallWrites {
            writes,
            write_bytes,
        })
    };
    assert_eq!(workload("").workload, small(4096, 128));
    assert_eq!(
        workload("writes = 9\nwrite = \"32B\"").workload,
        small(9, 32)
    );
    assert_eq!(workload("").workload.transfer_bytes(0), Some(4096 * 128));
    assert_eq!(workload("").nodelay, None);
    assert_eq!(workload("nodelay = true").nodelay, Some(true));
}

#[test]
fn connections_have_their_place_among_those_of_their_flows() {
    let text = edited(
        "algorithm = \"cubic\"",
        "algorithm = \"cubic\"\ncount = 2\nworkload = \"request-response\"\nconnections = 3\nthreads = 4",
    );
    let cell = read(&text).unwrap().cell(0).unwrap();
    let places = cell.connections(0).into_iter().map(|one| one.place);
    assert_eq!(places.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(cell.threads(), [4, 1]);
}

#[test]
fn request_response_reads_its_keys() {
    let text = edited(
        "algorithm = \"cubic\"",
        "algorithm = \"cubic\"\nworkload = \"request-response\"\nrequest = \"44B\"\nresponse = \"5B\"\n\
         connections = 8\ndepth = 4\nrequests = 1000\nservice_time = \"20us\"\nthreads = 2\nclient_threads = 3",
    );
    let expected = RequestResponse {
        request_bytes: 44,
        response_bytes: 5,
        connections: 8,
        depth: 4,
        requests: Some(1000),
        service_time: Nanos::from_us(20),
        threads: 2,
        client_threads: 3,
    };
    assert_eq!(
        read(&text).unwrap().cell(0).unwrap().flows[0].workload,
        expected.into()
    );
}

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

#[test]
fn flows_that_would_share_a_name_are_numbered() {
    let more =
        "[[flow]]\nalgorithm = \"cubic\"\n[[flow]]\nalgorithm = \"reno\"\nname = \"cubic_2\"\n";
    let cells: Vec<_> = read(&(GOOD.to_string() + more)).unwrap().cells().collect();
    let names: Vec<&str> = cells[0]
        .flows
        .iter()
        .map(|flow| flow.name.as_str())
        .collect();
    assert_eq!(names, ["cubic", "cubic_3", "cubic_2"]);
}

/// Work that is quadratic takes half a minute here.
#[test]
fn the_most_flows_without_names_are_numbered_in_each_cell() {
    let flow = "[[flow]]\nalgorithm = \"cubic\"\n";
    let rates: Vec<_> = (10..13).map(|n| format!("\"{n}Mbit/s\"")).collect();
    let rates = format!("rate = [{}]", rates.join(", "));
    let text = edited("rate = \"50Mbit/s\"", &rates) + &flow.repeat(9_999);
    let scenario = read(&text).unwrap();
    assert_eq!(scenario.n_cells(), 3);
    for cell in scenario.cells() {
        assert_eq!(cell.flows[0].name, "cubic");
        assert_eq!(cell.flows[9_999].name, "cubic_10000");
    }
}

#[test]
fn inline_tables_mean_what_headed_tables_mean() {
    let inline = "duration = \"10s\"\npath = { rate = \"50Mbit/s\", rtt = \"100ms\" }\nflow = [{ algorithm = \"cubic\" }]";
    let dotted = "duration = \"10s\"\npath.rate = \"50Mbit/s\"\npath.rtt = \"100ms\"\n[[flow]]\nalgorithm = \"cubic\"";
    let facts = |text: &str| describe(&read(text).unwrap().cell(0).unwrap(), &names());
    assert_eq!(facts(inline), facts(GOOD));
    assert_eq!(facts(dotted), facts(GOOD));
    assert_eq!(facts(&GOOD.replace('\n', "\r\n")), facts(GOOD));
    assert_eq!(facts(&format!("\u{feff}{GOOD}")), facts(GOOD));
}

#[test]
fn a_cell_describes_itself_in_bytes_packets_and_bdp() {
    let text = edited(
        "rtt = \"100ms\"",
        "rtt = \"100ms\"\nbuffer = \"0.5bdp\"\nloss = \"periodic 0.1%\"\noverhead = \"14B\"",
    );
    let facts = describe(&read(&text).unwrap().cell(0).unwrap(), &names());
    let value = |key: &str| {
        let found: Vec<&str> = facts
            .iter()
            .filter(|(k, ..)| k == key)
            .map(|(_, v, _)| v.as_str())
            .collect();
        assert_eq!(found.len(), 1, "{key} is described once");
        found[0]
    };
    assert_eq!(value("path.bdp_bytes"), "625000");
    assert_eq!(value("path.bdp_pkts"), "413"); // 412.8
    assert_eq!(value("path.buffer_bytes"), "312500");
    assert_eq!(value("path.buffer_pkts"), "206");
    assert_eq!(value("path.buffer_bdp"), "0.50");
    assert_eq!(value("path.buffer_drain"), "50.000ms");
    assert_eq!(value("path.loss"), "periodic 0.1%");
    assert_eq!(value("receiver.algorithm"), "cubic");
    assert!(
        facts
            .iter()
            .all(|(key, value, doc)| !key.is_empty() && !value.is_empty() && !doc.is_empty())
    );
}

/// What `describe` says of settings can be written into a file and means the same.
#[test]
fn described_settings_parse_back() {
    let facts = describe(&read(GOOD).unwrap().cell(0).unwrap(), &names());
    let derived = ["_bytes", "_pkts", "_bdp", "_drain"];
    let mut text = String::new();
    let mut flow = String::new();
    for (key, value, _) in facts {
        if derived.iter().any(|end| key.ends_with(end))
            && key != "sender.tcp_limit_output_bytes"
            && key != "receiver.tcp_limit_output_bytes"
        {
            continue;
        }
        let bare = value.parse::<f64>().is_ok() || value == "true" || value == "false";
        // A mask is text, also where all its digits are decimal.
        let bare = bare && !key.ends_with(".rps_cpus");
        let value = if bare { value } else { format!("\"{value}\"") };
        match key.strip_prefix("flow.0.") {
            Some(key) => flow += &format!("{key} = {value}\n"),
            None => text += &format!("{key} = {value}\n"),
        }
    }
    let again = read(&format!("{text}[[flow]]\n{flow}")).unwrap();
    assert_eq!(
        describe(&again.cell(0).unwrap(), &names()),
        describe(&read(GOOD).unwrap().cell(0).unwrap(), &names())
    );
}

#[test]
fn parameters_are_described_as_they_are_written() {
    let text = edited(
        "rtt = \"100ms\"",
        "rtt = \"100ms\"\nqueue = \"fq_codel\"\nfq_codel.target = \"10ms\"\nack_rate = \"1Mbit/s\"\nack_queue = \"codel\"",
    );
    let text = format!("{text}bbr1.drain_gain = 0.5\n").replace("\"cubic\"", "\"bbr1\"");
    let facts = describe(&read(&text).unwrap().cell(0).unwrap(), &names());
    let fact = |key: &str| facts.iter().find(|(k, ..)| k == key).expect(key);
    assert_eq!(fact("path.fq_codel.target").1, "10ms");
    assert_eq!(fact("path.fq_codel.interval").1, "100ms"); // its default
    assert_eq!(fact("path.ack_codel.target").1, "5ms");
    assert_eq!(fact("flow.0.bbr1.drain_gain").1, "0.5");
    assert_eq!(fact("flow.0.bbr1.probe_rtt_time").1, "200ms");
}

#[test]
fn every_key_is_documented_with_default_forms_and_source() {
    let keys = keys();
    for key in &keys {
        for words in [&key.default, &key.forms, &key.doc, &key.source] {
            assert!(!words.is_empty(), "{} lacks words", key.path);
        }
    }
    let mut paths: Vec<&str> = keys.iter().map(|key| key.path.as_str()).collect();
    let n = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), n, "no key is listed twice");
}

#[test]
fn a_matrix_of_the_largest_size_is_read() {
    let list = |n: u32| {
        (1..=n)
            .map(|i| i.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let hosts = format!(
        "[sender]\ninitcwnd = [{}]\n[receiver]\ninitcwnd = [{}]\n",
        list(500),
        list(200)
    );
    let cells: Vec<_> = read(&(GOOD.to_string() + &hosts))
        .unwrap()
        .cells()
        .collect();
    assert_eq!(cells.len(), 100_000);
    assert_eq!(
        (
            cells[99_999].sender.initcwnd,
            cells[99_999].receiver.initcwnd
        ),
        (500, 200)
    );
}

#[test]
fn published_figures_are_kept_as_they_were_printed() {
    let text = GOOD.to_string()
        + r#"
[[published]]
value  = "cubic.goodput"
figure = "98.20%"
source = "article D"

[[published]]
figure = "31.7"
source = "article E"
value  = "bbr1.goodput / cubic.goodput"
"#;
    let published = |value: &str, figure: &str, source: &str, line| Published {
        value: value.into(),
        figure: figure.into(),
        source: source.into(),
        line,
    };
    let ratio = "bbr1.goodput / cubic.goodput";
    assert_eq!(
        read(&text).unwrap().published,
        [
            published("cubic.goodput", "98.20%", "article D", 11),
            published(ratio, "31.7", "article E", 18),
        ]
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
        "path.rate: lab/bad.txt:2: got \"18 x\"; expected whole milliseconds, from 17 to 86400000."
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
        "rtt = \"100ms\"\nack_queue = [\"fifo\", \"codel\"]\nack_codel.target = [\"5ms\", \"9ms\"]",
    );
    let scenario = read(&axis).unwrap();
    let labels: Vec<_> = scenario.cells().map(|cell| cell.axes).collect();
    assert_eq!(labels.len(), 3, "a fifo has no target: {labels:?}");
    assert_eq!(labels[2][1], ("path.ack_codel.target".into(), "9ms".into()));

    for (keys, why) in [
        (
            "ack_codel.target = \"9ms\"",
            "path.ack_codel.target: got a parameter of codel; expected parameters of this table's own ack_queue. Remove it, or set ack_queue = \"codel\".",
        ),
        (
            "queue = \"codel\"\nack_codel.target = \"9ms\"",
            "expected parameters of this table's own ack_queue",
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

/// A flow with these keys, as the only one.
fn with_flow(keys: &str) -> Result<knee_scenario::Cell, String> {
    let text = format!("{}{keys}\n", common::GOOD);
    let scenario = read(&text).map_err(|error| error.to_string())?;
    Ok(scenario.cell(0).unwrap())
}

#[test]
fn web_traffic_is_asked_for_by_load_or_by_arrivals() {
    let gap_ns = |keys: &str| {
        let cell = with_flow(&format!("workload = \"web\"\n{keys}")).unwrap();
        match &cell.flows[0].workload {
            WorkloadSpec::Web(web) => web.arrivals.gap_ns,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(gap_ns("arrivals = \"50/s\""), 20e6);
    // 1.71125 MB at 10 Mbit/s.
    let gap = gap_ns("load = \"10Mbit/s\"\nsizes = \"web-search\"");
    assert!((gap / 1_369e6 - 1.0).abs() < 1e-6, "{gap}");
    for (keys, why) in [
        (
            "",
            "s.toml:9: flow.0.load: missing; expected how much traffic workload \"web\" makes. Add load = \"20Mbit/s\", or arrivals = \"50/s\", in [[flow]].",
        ),
        (
            "load = \"1Mbit/s\"\narrivals = \"5/s\"",
            "flow.0.arrivals: got \"5/s\"; expected it alone, without flow.0.load. Remove one of them.",
        ),
        (
            "load = \"unlimited\"",
            "flow.0.load: got \"unlimited\"; expected a rate",
        ),
        (
            "load = \"9Tbit/s\"",
            "flow.0.load: got \"9Tbit/s\"; expected at most 1000000 connections",
        ),
        (
            "arrivals = \"1000000/s\"",
            "flow.0.arrivals: got \"1000000/s\"; expected at most 1000000 connections",
        ),
        ("arrivals = 5", "flow.0.arrivals: got the bare number 5"),
        ("arrivals = \"5\"", "a number per second such as \"50/s\""),
        (
            "load = \"1Mbit/s\"\nsizes = \"parreto\"",
            "unknown distribution \"parreto\"; known: pareto, lognormal, web-search, data-mining, cdf. Did you mean \"pareto\"?",
        ),
        (
            "load = \"1Mbit/s\"\nsizes = \"pareto shape 1.2 from 9\"",
            "flow.0.sizes: ",
        ),
        (
            "load = \"1Mbit/s\"\nsizes = \"cdf none.txt\"",
            "flow.0.sizes: none.txt: cannot be read",
        ),
    ] {
        let error = with_flow(&format!("workload = \"web\"\n{keys}")).unwrap_err();
        assert!(error.contains(why), "{keys}: {error}");
    }
    let error = with_flow("load = \"1Mbit/s\"").unwrap_err();
    assert!(error.contains("got a key of workload web"), "{error}");
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

#[test]
fn the_columns_of_samples_that_are_kept_are_a_list_and_change_the_cell() {
    let cell = |line: &str| {
        let text = format!("{line}\n{GOOD}");
        let scenario = read(&text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(scenario.n_cells(), 1, "it is no axis");
        scenario.cell(0).expect("it has one")
    };
    let (all, two, none) = (
        cell(""),
        cell("samples = [\"srtt_us\", \"rcv_rtt_us\"]"),
        cell("samples = []"),
    );
    assert_eq!(all.samples.chosen(), None);
    assert_eq!(two.samples.chosen(), Some(vec!["srtt_us", "rcv_rtt_us"]));
    assert_eq!(none.samples.chosen(), Some(vec![]));
    assert!(all.hash() != two.hash() && two.hash() != none.hash());
    let shown = |cell: &Cell| {
        let facts = describe(cell, &names());
        let found = facts.into_iter().find(|(key, ..)| key == "samples");
        found.map(|(_, value, _)| value)
    };
    assert_eq!(shown(&all), None);
    assert_eq!(shown(&two).as_deref(), Some("[srtt_us, rcv_rtt_us]"));
    assert_eq!(shown(&none).as_deref(), Some("[]"));
}
