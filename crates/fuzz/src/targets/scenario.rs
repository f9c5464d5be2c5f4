//! Scenario files.
//!
//! Besides that nothing panics: a file is refused in a paragraph for each mistake that names
//! file and line, or becomes cells, of which there are no more than stated.

#[path = "../../../scenario/tests/common/refusal.rs"]
mod refusal;

use knee_path::impairment::{Form, IMPAIRMENTS, Key};
use knee_scenario::{AlgorithmInfo, Names, ParamInfo, parse};
use knee_units::files::ReadFile;

use self::refusal::assert_is_a_paragraph_for_each_mistake;
use super::sample;
use crate::Target;

pub const TARGET: Target = Target {
    name: "scenario",
    about: "scenario files",
    seeds: &seeds,
    words: &[
        "[path]\n",
        "[[hop]]\n",
        "[[flow]]\n",
        "[[zip]]\n",
        "[[sample]]\n",
        "[sender]\n",
        "[receiver]\n",
        "[[expect]]\n",
        "[[published]]\n",
        " = ",
        "[",
        "]",
        ", ",
        "\"\"\"",
        "'''",
        "rate = \"50Mbit/s\"\n",
        "rtt = \"100ms\"\n",
        "queue = [\"codel\", \"red\"]\n",
        "buffer = \"2bdp\"\n",
        "loss = \"periodic 0.1%\"\n",
        "loss = \"gilbert-elliott",
        "algorithm = [\"cubic\", \"bbr1\"]\n",
        "workload = \"web\"\n",
        "workload = \"on-off\"\n",
        "workload = \"request-response\"\n",
        "sizes = \"pareto",
        "load = \"20Mbit/s\"\n",
        "arrivals = \"50/s\"\n",
        "count = 4\n",
        "start = \"1s\"\n",
        "stagger = \"100ms\"\n",
        "hops = ",
        "policer",
        "bbr1.drain_gain = 1.2\n",
        "red.min",
        "duration = \"10s\"\n",
        "warmup",
        "title = ",
        "\"1ns\"",
        "\"1000000h\"",
        "\"unlimited\"",
        "\"100%\"",
        "\"10Tbit/s\"",
        "\"0B\"",
        "\"losses.txt\"",
        "\"rates.up\"",
        "keys = [\"path.rate\", \"path.rtt\"]\n",
        "file = \"paths.csv\"\n",
        "rows = \"1..2\"\n",
        "path.rtt = \"lognormal median 50ms sigma 0.8 from 5ms to 1s\"\n",
        "path.loss = \"uniform 0% to 1%\"\n",
        "flow.0.count = \"loguniform 1 to 9\"\n",
        "{ a = 1 }",
        "1e400",
        "nan",
        "inf",
        "0x7fffffffffffffff",
        "2026-11-21T00:00:00Z",
        "true",
    ],
    check: &check,
};

const FILE: &str = "s.toml";
/// Of a cell and its flow table; cells times flow tables are bounded.
const CELL_FLOW_BYTES: usize = 4 << 10;

fn seeds() -> Vec<Vec<u8>> {
    let gallery = [
        "bbr1-vs-cubic-share",
        "bufferbloat",
        "demo",
        "distance-100ms",
        "loss-1.5",
        "parking-lot",
        "redis",
    ];
    let mut seeds: Vec<_> = (gallery.iter())
        .map(|name| sample(&format!("gallery/{name}.toml")))
        .collect();
    let everything = String::from_utf8(sample("crates/fuzz/seeds/everything.toml"));
    let everything = everything.expect("it is text");
    // Behind the keys that are no impairment's, each impairment's keys with an example.
    let (before, behind) = everything.split_once("[sender]").expect("it has hosts");
    let keys = IMPAIRMENTS.iter().flat_map(|kind| kind.keys);
    let impaired: String = keys.map(line).collect();
    seeds.push(format!("{before}{impaired}\n[sender]{behind}").into());
    seeds
}

/// As a scenario has it.
fn line(key: &Key) -> String {
    match key.form {
        Form::Flag => format!("{} = {}\n", key.name, key.example),
        _ => format!("{} = \"{}\"\n", key.name, key.example),
    }
}

fn check(input: &[u8]) -> usize {
    let text = String::from_utf8_lossy(input);
    let (mut cells, mut flows) = (0, 0);
    match parse(&text, FILE, &names()) {
        Ok(scenario) => {
            cells = scenario.n_cells();
            flows = scenario.cell(0).expect("it has one").flows.len();
            assert!((1..=100_000).contains(&cells) && cells * flows <= 1_000_000);
            assert!(scenario.cells().all(|cell| cell.flows.len() == flows));
        }
        Err(error) => assert_is_a_paragraph_for_each_mistake(&error.to_string(), FILE, &text),
    }
    // A refusal may come with the last of the cells.
    let held = if cells == 0 {
        100_000
    } else {
        cells * (1 + flows)
    };
    (4 << 20) + 256 * input.len() + CELL_FLOW_BYTES * held
}

fn names() -> Names {
    let info = |name: &str, params: &[(&str, &str, u32, u32, u32)]| AlgorithmInfo {
        name: name.into(),
        linux_name: name.into(),
        params: params
            .iter()
            .map(|&(name, unit, min, max, default)| {
                ParamInfo::of_algorithm(name, unit, default, min, max)
            })
            .collect(),
    };
    Names {
        algorithms: vec![
            info("reno", &[]),
            info("cubic", &[("beta", "1/1024", 1, 1024, 717)]),
            info(
                "bbr1",
                &[
                    ("drain_gain", "1/256", 1, 1024, 88),
                    ("probe_rtt_time", "ms", 0, 5000, 200),
                ],
            ),
        ],
        algorithm_files: Vec::new(),
        kernels: [("patched".to_owned(), "6.12.117".to_owned())].into(),
        read_file: Some(ReadFile::of_texts(read_file)),
    }
}

/// Files that scenarios may name.
fn read_file(path: &str) -> std::io::Result<String> {
    match path {
        "losses.txt" => Ok("0000000001\n".into()),
        "rates.up" => Ok("1\n3\n3\n7\n".into()),
        "sizes.cdf" => Ok("100 0.5\n1000 1\n".into()),
        "paths.csv" => Ok("path.rate,path.rtt\n1Mbit/s,10ms\nunlimited,5s\n".into()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    }
}
