//! Every file of the gallery is a scenario that says what it is for.

use crate::common;

use std::path::PathBuf;

use knee_scenario::{AlgorithmInfo, Names, ParamInfo, describe, parse};

/// What scenarios of the gallery set of an algorithm besides what those of the tests do.
const MORE_PARAMS: [(&str, &str); 6] = [
    ("cubic", "per_ack"),
    ("cubic", "slow_start_per_ack"),
    ("cubic_preack", "slow_start_per_ack"),
    ("bbr1", "ack_aggregation"),
    ("bbr1", "pace_headers"),
    ("bbr2", "ecn"),
];
const MORE_ALGORITHMS: &str =
    "cubic_preack bbr2 bbr3 hybla highspeed htcp veno westwood vegas dctcp prague";

fn names() -> Names {
    let mut names = common::names();
    let more = MORE_ALGORITHMS.split(' ').map(|name| AlgorithmInfo {
        name: name.to_owned(),
        linux_name: name.to_owned(),
        params: Vec::new(),
    });
    names.algorithms.extend(more);
    for (algorithm, param) in MORE_PARAMS {
        let named = |known: &&mut AlgorithmInfo| known.name == algorithm;
        let known = names
            .algorithms
            .iter_mut()
            .find(named)
            .expect("it is known");
        known
            .params
            .push(ParamInfo::of_algorithm(param, "", 0, 0, 1));
    }
    names
}

fn gallery() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../gallery");
    let entries = std::fs::read_dir(&folder).expect("the gallery is beside the crates");
    let mut files: Vec<(String, String)> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .map(|path| {
            let name = path
                .file_name()
                .expect("a file has a name")
                .to_string_lossy()
                .into_owned();
            let text = std::fs::read_to_string(&path).expect("a scenario is UTF-8");
            (name, text)
        })
        .collect();
    files.sort();
    files
}

#[test]
fn every_scenario_parses_and_prints_its_bdp_and_buffer() {
    let files = gallery();
    assert!(!files.is_empty());
    for (name, text) in files {
        let scenario = parse(&text, &name, &names()).unwrap_or_else(|error| panic!("{error}"));
        for cell in scenario.cells() {
            let facts = describe(&cell, &names());
            for (n, hop) in cell.hops().enumerate() {
                let table = match cell.further.is_empty() {
                    true => "path".to_owned(),
                    false => format!("hop.{n}"),
                };
                let has = |key: &str| facts.iter().any(|(k, ..)| *k == format!("{table}.{key}"));
                assert!(
                    has("buffer"),
                    "{name}: cell {} prints the buffer of {table}",
                    cell.index
                );
                assert!(
                    hop.rate.is_none() || has("bdp_bytes") && has("bdp_pkts"),
                    "{name}: cell {} prints the BDP of {table}",
                    cell.index
                );
            }
        }
    }
}

#[test]
fn every_scenario_says_first_what_it_is_for_and_expects_something() {
    for (name, text) in gallery() {
        assert!(
            text.starts_with("# "),
            "{name} begins with a comment that states its purpose"
        );
        let scenario = parse(&text, &name, &names()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!scenario.expects.is_empty(), "{name} has an [[expect]]");
        // Shapes are asserted with repetitions; one draw of a random loss proves nothing.
        assert!(scenario.repeat >= 3, "{name} repeats");
    }
}

/// An id of the published claims is the scenario's file name, where one file stands for one claim.
#[test]
fn no_two_scenarios_reproduce_the_same_claim() {
    let mut seen = std::collections::HashMap::new();
    for (name, text) in gallery() {
        let scenario = parse(&text, &name, &names()).unwrap_or_else(|error| panic!("{error}"));
        if let Some(claim) = scenario.claim {
            let before = seen.insert(claim.clone(), name.clone());
            assert_eq!(before, None, "claim {claim} is reproduced twice");
        }
    }
}
