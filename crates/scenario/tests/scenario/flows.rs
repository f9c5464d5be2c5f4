//! Flows: their names, parameters and workloads.

use crate::common::{self, GOOD, edited, read};
use knee_scenario::WorkloadSpec;
use knee_scenario::workload::{RequestResponse, SmallWrites, Write};
use knee_units::Nanos;

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
fn linux_name_of_an_algorithm_is_read_as_ours() {
    let read = |keys: &str| read(&edited("algorithm = \"cubic\"", keys));
    let found = read("algorithm = [\"cubic\", \"bbr\"]\nbbr.cwnd_gain = 2").unwrap();
    let cells: Vec<_> = found.cells().collect();
    assert_eq!(cells[1].flows[0].algorithm, "bbr1");
    assert_eq!(cells[1].flows[0].params, [("cwnd_gain".to_string(), 512)]);
    assert_eq!(cells[1].axes[0].1, "bbr1");
    assert!(
        found
            .renamed()
            .into_iter()
            .eq([("bbr".into(), "bbr1".into())])
    );
    let called = read("algorithm = \"bbr1\"\nname = \"bbr\"").unwrap();
    assert_eq!(called.cell(0).unwrap().flows[0].name, "bbr");
    assert!(called.renamed().is_empty());
    let mistaken = read("algorithm = \"cubic\"\nname = \"bbr\"").unwrap_err();
    assert!(mistaken.to_string().contains("not another algorithm's"));
    let twice = read("algorithm = [\"bbr\", \"bbr1\"]").unwrap_err();
    assert!(twice.to_string().contains("\"bbr1\" twice in a list"));
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
