//! Walks `cc/algorithms.def`: what every algorithm must say of itself and provide.

use std::path::{Path, PathBuf};

use knee_cc::{CcIn, Instance, Op, ParamError, algorithms, find};

fn cc_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cc")
}

#[test]
fn the_registry_holds_the_list_in_its_order() {
    let list = std::fs::read_to_string(cc_dir().join("algorithms.def")).unwrap();
    let listed: Vec<_> = list
        .lines()
        .filter_map(|l| l.strip_prefix("CC_ALGORITHM_FILE(")?.strip_suffix(')'))
        .collect();
    let built: Vec<_> = algorithms().iter().map(|a| a.name()).collect();
    assert!(!built.is_empty());
    assert_eq!(built, listed);
}

#[test]
fn every_algorithm_cites_its_source_and_says_where_it_differs() {
    for a in algorithms() {
        let text = std::fs::read_to_string(cc_dir().join(format!("{}.c", a.name()))).unwrap();
        for heading in [
            "\n * Source: ",
            "\n * Differs from source:",
            "\n * Equations",
        ] {
            assert!(
                text.contains(heading),
                "{}.c: no {heading:?} in the file's head",
                a.name()
            );
        }
        assert!(
            text.starts_with("/* SPDX-License-Identifier: MIT OR GPL-2.0 */\n"),
            "{}.c",
            a.name()
        );
    }
}

#[test]
fn every_algorithm_describes_itself() {
    for a in algorithms() {
        for line in [a.summary(), a.source(), a.use_when()] {
            assert!(
                line.len() >= 20 && !line.contains('\n'),
                "{}: {line:?}",
                a.name()
            );
        }
        assert!(
            (1980..=2030).contains(&a.year()),
            "{}: year {}",
            a.name(),
            a.year()
        );
    }
}

#[test]
fn every_algorithm_has_a_name_of_its_own_that_fits_the_kernel() {
    let mut names: Vec<_> = algorithms().iter().map(|a| a.kernel_name()).collect();
    for (a, name) in algorithms().iter().zip(&names) {
        assert!(name.starts_with("knee_"), "{}: {name}", a.name());
        // TCP_CA_NAME_MAX, 16, less the end.
        assert!(name.len() <= 15, "{}: {name} is too long", a.name());
        let own = format!("knee_{}", a.name());
        assert!(*name == own || own.len() > 15, "{}: {name}", a.name());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), algorithms().len());
}

#[test]
fn every_algorithm_provides_what_linux_requires() {
    for a in algorithms() {
        assert!(a.has(Op::Ssthresh) && a.has(Op::UndoCwnd), "{}", a.name());
        assert!(
            a.has(Op::CongAvoid) != a.has(Op::CongControl),
            "{}: exactly one of the two",
            a.name()
        );
    }
}

#[test]
fn every_parameter_has_a_default_in_range_and_a_doc() {
    for a in algorithms() {
        for p in a.params() {
            assert!(
                p.min <= p.default && p.default <= p.max,
                "{}.{}",
                a.name(),
                p.name
            );
            assert!(p.doc.len() >= 20, "{}.{}: {:?}", a.name(), p.name, p.doc);
        }
    }
}

#[test]
fn parameters_open_the_state_in_the_order_listed() {
    for a in algorithms() {
        let params = a.params();
        let overrides: Vec<_> = params.iter().map(|p| (p.name, p.max)).collect();
        let instance = Instance::new(a, &overrides).unwrap();
        let words: Vec<u32> = instance
            .state()
            .iter()
            .flat_map(|w| w.to_ne_bytes())
            .collect::<Vec<_>>()
            .chunks(4)
            .map(|c| u32::from_ne_bytes(c.try_into().unwrap()))
            .collect();
        let expected: Vec<_> = params.iter().map(|p| p.max).collect();
        assert_eq!(words[..params.len()], expected, "{}", a.name());
        assert!(
            words[params.len()..].iter().all(|&w| w == 0),
            "{}",
            a.name()
        );
    }
}

#[test]
fn an_unknown_parameter_is_refused_with_the_known_ones() {
    let err = Instance::new(find("reno").unwrap(), &[("gamma", 1)]).unwrap_err();
    assert_eq!(
        err.to_string(),
        "reno: unknown parameter \"gamma\"; known: beta, hystart"
    );
}

#[test]
fn a_parameter_out_of_range_is_refused_with_the_range() {
    let err = Instance::new(find("cubic").unwrap(), &[("hystart", 5)]).unwrap_err();
    assert!(matches!(
        err,
        ParamError::OutOfRange {
            got: 5,
            min: 0,
            max: 4,
            ..
        }
    ));
    let err = Instance::new(find("bbr1").unwrap(), &[("probe_rtt_time", 9999)]).unwrap_err();
    assert_eq!(
        err.to_string(),
        "bbr1.probe_rtt_time: got 9999, expected 0 to 5000 ms"
    );
}

#[test]
fn an_unknown_algorithm_is_not_found() {
    assert!(find("cubci").is_none());
}

#[test]
fn an_algorithm_tells_its_model_and_its_phases_or_neither() {
    for a in algorithms() {
        let instance = Instance::new(a, &[]).unwrap();
        let info = instance.info(&CcIn::default());
        assert_eq!(info.is_some(), !a.phases().is_empty(), "{}", a.name());
        for (i, phase) in a.phases().iter().enumerate() {
            assert!(!phase.is_empty(), "{}: phase {i}", a.name());
            assert!(!a.phases()[..i].contains(phase), "{}: {phase}", a.name());
        }
    }
}
