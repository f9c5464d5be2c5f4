//! Walks the registry: whoever adds a workload is enrolled here without a further line.

use crate::common;

use knee_scenario::WorkloadSpec;
use knee_scenario::workload::{App, Counts, WORKLOADS, WorkloadKind};
use knee_units::Nanos;
use knee_units::rng::Stream;

/// Its example, as a scenario's flow.
fn example(kind: &WorkloadKind) -> WorkloadSpec {
    let flow = format!("workload = \"{}\"\n{}\n", kind.name, kind.example.keys);
    let scenario = common::read(&format!("{}{flow}", common::GOOD));
    let scenario = scenario.unwrap_or_else(|error| panic!("{}: {error}", kind.name));
    scenario
        .cell(0)
        .expect("it has one")
        .flows
        .remove(0)
        .workload
}

/// Lets `from` write through a socket that takes odd amounts, and `to` read
/// them; returns the bytes moved.
fn shuttle(from: &mut dyn App, to: &mut dyn App, now: Nanos, rng: &mut Stream) -> u64 {
    let mut moved = 0;
    for _ in 0..50 {
        let wanted = from.next_write_bytes(now);
        if wanted == 0 {
            break;
        }
        let taken = wanted.min(1 + u64::from(rng.next_u32() % 977));
        from.wrote(now, taken);
        to.read(now, taken);
        moved += taken;
    }
    moved
}

#[test]
fn every_workload_moves_the_bytes_it_was_asked_to() {
    for kind in WORKLOADS {
        let spec = example(kind);
        assert_eq!(spec.kind().name, kind.name);
        let (down, up) = (kind.example.down_bytes, kind.example.up_bytes);
        let Some(mut apps) = spec.apps(down.unwrap_or(0)) else {
            assert!(
                spec.commands().is_some(),
                "{}: who moves its bytes?",
                kind.name
            );
            continue;
        };
        let mut rng = Stream::new(5, "sockets");
        let (mut moved_down, mut moved_up) = (0, 0);
        let mut latencies = Vec::new();
        for round in 0..2_000 {
            let now = Nanos::from_ms(round);
            moved_up += shuttle(&mut *apps.receiver, &mut *apps.sender, now, &mut rng);
            moved_down += shuttle(&mut *apps.sender, &mut *apps.receiver, now, &mut rng);
            apps.receiver.take_latencies(&mut latencies);
        }
        assert_eq!(moved_up, up, "{}: toward the sender", kind.name);
        if let Some(down) = down {
            assert_eq!(moved_down, down, "{}: toward the receiver", kind.name);
            assert!(apps.receiver.completed().is_some(), "{}", kind.name);
            assert!(apps.receiver.closes(), "{}: closes when done", kind.name);
        } else {
            assert!(moved_down > 100_000, "{}: has no end", kind.name);
            assert_eq!(apps.receiver.completed(), None, "{}", kind.name);
        }
        if let WorkloadSpec::RequestResponse(asked) = &spec {
            let answers = Some(latencies.len() as u64);
            assert_eq!(answers, asked.requests, "a latency per answer");
        }
    }
}

#[test]
fn every_workload_has_what_it_says_that_it_counts() {
    for kind in WORKLOADS {
        let spec = example(kind);
        let apps = spec.apps(1);
        let is_transfer = spec.transfer_bytes(1).is_some();
        assert_eq!(
            is_transfer,
            kind.counts == Counts::Completion,
            "{}",
            kind.name
        );
        let asks = apps.as_ref().is_some_and(|apps| apps.receiver_opens);
        assert_eq!(asks, kind.counts == Counts::Requests, "{}", kind.name);
        let runs_programs = spec.commands().is_some();
        assert_eq!(
            runs_programs,
            kind.counts == Counts::Programs,
            "{}",
            kind.name
        );
    }
}

#[test]
fn every_workload_opens_the_connections_that_it_expects() {
    for kind in WORKLOADS {
        let spec = example(kind);
        let stream = |what: &str| Stream::new(1, what);
        let (from, until) = (Nanos::from_secs(5), Nanos::from_secs(15));
        let opened = spec.connections(from, until, &stream);
        assert!(
            opened.iter().all(|one| (from..until).contains(&one.at)),
            "{}",
            kind.name
        );
        if spec.commands().is_some() {
            assert!(opened.is_empty(), "{}: programs open their own", kind.name);
            continue;
        }
        // 10,000 that are drawn are off by their root.
        let expected = spec.expected_connections(until - from) as f64;
        let off = (opened.len() as f64 - expected).abs();
        let bound = if kind.draws {
            4.0 * expected.sqrt()
        } else {
            0.0
        };
        assert!(
            off <= bound,
            "{}: {} of {expected}",
            kind.name,
            opened.len()
        );
    }
}

#[test]
fn description_of_every_workload_shows_the_keys_of_its_example() {
    for kind in WORKLOADS {
        let flow = format!("workload = \"{}\"\n{}\n", kind.name, kind.example.keys);
        let scenario = common::read(&format!("{}{flow}", common::GOOD)).expect("it is read above");
        let cell = scenario.cell(0).expect("it has one");
        let facts = knee_scenario::describe(&cell, &common::names());
        for line in kind.example.keys.lines() {
            let key = line.split(' ').next().expect("a key begins the line");
            let begins = |fact: &&knee_scenario::Fact| fact.0.starts_with(&format!("flow.0.{key}"));
            assert!(
                facts.iter().any(|fact| begins(&fact)),
                "{}: {key}",
                kind.name
            );
        }
    }
}
