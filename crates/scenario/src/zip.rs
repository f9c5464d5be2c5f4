//! The lists of a `[[zip]]`, checked against each other.

use std::collections::HashSet;

use crate::key::error::{Mistakes, Problem, nearest};
use knee_units::parse::quoted;

use crate::axes::Zip;
use crate::read::Setting;

/// The settings that vary together, by the index of each; what is wrong with them is told. Those that remain make an
/// axis all the same, so that the rest of the file is looked at.
pub(super) fn settings(
    zip: &Zip,
    settings: &[Setting],
    taken: &mut HashSet<usize>,
    mistakes: &Mistakes<'_>,
) -> Vec<usize> {
    let refuse = |got: String, expected: &str, next: &str| {
        let problem = Problem::Value {
            key: zip.path.clone(),
            got,
            expected: expected.into(),
            next: next.into(),
        };
        mistakes.add(zip.line, problem);
    };
    let mut found = Vec::new();
    for key in &zip.keys {
        let Some(i) = settings.iter().position(|setting| setting.path == *key) else {
            if !mistakes.is_told(key) {
                mistakes.add(zip.line, unknown(zip, key, settings));
            }
            continue;
        };
        let setting = &settings[i];
        if setting.sample.is_some() {
            let got = format!("{key}, which a [[sample]] sets");
            refuse(got, "keys with lists", "Move the other keys there as well.");
        } else if !setting.is_axis {
            if !mistakes.is_told(key) {
                let got = format!("{key}, which has no list");
                let next = "Write a list where the key stands.";
                refuse(got, "keys with lists", next);
            }
        } else if !taken.insert(i) {
            refuse(format!("{key} twice"), "each key once", "Remove one.");
        } else {
            found.push(i);
        }
    }
    let Some(&first) = found.first() else {
        return found;
    };
    let len = |i: usize| settings[i].entries.len();
    if let Some(&other) = found.iter().find(|i| len(**i) != len(first)) {
        let [a, b] = [first, other].map(|i| format!("{} with {}", settings[i].path, len(i)));
        let expected = "lists with as many values as each other";
        refuse(format!("{a} and {b}"), expected, "Add what is missing.");
        return found;
    }
    let mut seen = HashSet::new();
    for step in 0..len(first) {
        let labels = found.iter().map(|i| &*settings[*i].entries[step].label);
        let labels: Vec<&str> = labels.collect();
        let shown = labels.join(", ");
        if !seen.insert(labels) {
            let next = "Remove one; `repeat` repeats a cell.";
            refuse(
                format!("{} twice", quoted(&shown)),
                "steps that differ",
                next,
            );
        }
    }
    found
}

fn unknown(zip: &Zip, key: &str, settings: &[Setting]) -> Problem {
    let axes = settings.iter().filter(|setting| setting.is_axis);
    let mut known: Vec<String> = axes.map(|setting| setting.path.clone()).collect();
    let suggestion = nearest(key, known.iter().map(String::as_str));
    // A paragraph, and no list of thousands.
    known.truncate(12);
    Problem::UnknownName {
        key: zip.path.clone(),
        what: "axis",
        got: key.into(),
        known,
        suggestion,
    }
}
