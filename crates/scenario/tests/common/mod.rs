//! What the scenario tests share: names of algorithms, and a small good file.

pub mod refusal;

use knee_scenario::{AlgorithmInfo, Names, ParamInfo, Scenario, ScenarioErrors, parse};
use knee_units::files::ReadFile;

/// Algorithms as a caller would pass them; bounds are of the tests alone.
pub fn names() -> Names {
    let info = |name: &str, params: &[(&str, &str, u32, u32, u32)]| AlgorithmInfo {
        name: name.into(),
        linux_name: match name {
            "bbr1" => "bbr".into(),
            name => name.into(),
        },
        params: params
            .iter()
            .map(|&(name, unit, min, max, default)| {
                ParamInfo::of_algorithm(name, unit, default, min, max)
            })
            .collect(),
    };
    Names {
        algorithm_files: Vec::new(),
        algorithms: vec![
            info("reno", &[]),
            info(
                "cubic",
                &[("beta", "1/1024", 1, 1024, 717), ("hystart", "", 0, 3, 3)],
            ),
            info(
                "bbr1",
                &[
                    ("drain_gain", "1/256", 1, 1024, 88),
                    ("cwnd_gain", "1/256", 256, 1024, 512),
                    ("probe_rtt_time", "ms", 0, 5000, 200),
                    ("pacing_margin", "%", 0, 50, 1),
                ],
            ),
        ],
        kernels: [("patched".to_owned(), "6.12.117".to_owned())].into(),
        read_file: Some(ReadFile::of_texts(read_file)),
    }
}

pub const FILE: &str = "s.toml";

/// The least that a scenario must say.
pub const GOOD: &str = r#"duration = "10s"

[path]
rate = "50Mbit/s"
rtt = "100ms"

[[flow]]
algorithm = "cubic"
"#;

pub fn read(text: &str) -> Result<Scenario, ScenarioErrors> {
    parse(text, FILE, &names())
}

/// `GOOD` with one passage replaced.
pub fn edited(from: &str, to: &str) -> String {
    assert_eq!(
        GOOD.matches(from).count(),
        1,
        "{from:?} is in GOOD exactly once"
    );
    GOOD.replacen(from, to, 1)
}

/// Files that the scenarios of the tests name.
fn read_file(path: &str) -> std::io::Result<String> {
    match path {
        "losses.txt" => Ok("0000000001\n".into()),
        "lab/bad.txt" => Ok("17\n18 x\n".into()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    }
}
