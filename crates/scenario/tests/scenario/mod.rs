//! What scenario files mean: defaults, axes, units, derived values.

mod described;
mod effect;
mod flows;
mod kernel;
mod matrix;
mod path;

use crate::common::{GOOD, names, read};
use knee_path::loss::{LossSpec, Pattern};
use knee_path::queue::BufferLimit;
use knee_scenario::workload::{Bulk, Write};
use knee_scenario::{Cell, Pacing, Published, describe};
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
