//! Cost profiles: what each operation of a host costs, as `hosts/*.toml` and `knee calibrate` write it.

use std::fmt;

use knee_host::{COSTS, Costs};
use knee_units::files::{FileError, Files};
use knee_units::parse::quoted;
use knee_units::text::TextError;
use serde::Serialize;
use toml_edit::{Document, Item, TableLike};

use crate::key::error::nearest;

/// The key that gives the hosts of a side a profile.
pub const KEY: &str = "costs";

/// Hosts whose work takes no time.
pub const NONE: &str = "none";
/// Nothing that a host does once takes longer than this, ns; and nothing that it does for each byte.
const MOST_NS: f64 = 1e6;
const MOST_NS_PER_BYTE: f64 = 100.0;

/// A profile that comes with tcpknee.
pub struct Shipped {
    pub name: &'static str,
    pub summary: &'static str,
    text: &'static str,
}

/// All of them.
pub static SHIPPED: &[Shipped] = &[
    Shipped {
        name: "published",
        summary: "a server of about 2018, assembled from published figures",
        text: include_str!("../../../../hosts/published.toml"),
    },
    Shipped {
        name: "published-vm",
        summary: "a virtual machine of about 2019 on such a server: the exits of timers, interrupts and IPIs from published figures",
        text: include_str!("../../../../hosts/published-vm.toml"),
    },
    Shipped {
        name: "linux-6.18-vm",
        summary: "a virtual machine with two processors of an AMD EPYC, Linux 6.18, measured",
        text: include_str!("../../../../hosts/linux-6.18-vm.toml"),
    },
];

/// The costs of a host's operations, with the name that the scenario gives them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    #[serde(skip)]
    pub name: String,
    pub costs: Costs,
}

impl fmt::Display for Profile {
    /// As a scenario writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Profile {
    /// Reads `none`, a shipped profile's name, or `file NAME.toml`.
    ///
    /// # Errors
    /// There is no such profile, or the file is none.
    pub fn read(text: &str, files: Files<'_>) -> Result<Option<Box<Profile>>, TextError> {
        if text == NONE {
            return Ok(None);
        }
        if let Some(name) = text.strip_prefix("file ") {
            let name = name.trim();
            let costs = files.parsed(name, |path, found| parse(path, &found.text));
            let costs = costs.map_err(TextError::File)?;
            let name = text.into();
            return Ok(Some(Box::new(Profile { name, costs })));
        }
        let shipped = SHIPPED.iter().find(|shipped| shipped.name == text);
        let shipped = shipped.ok_or_else(|| TextError::Kind(text.into()))?;
        let costs = parse(shipped.name, shipped.text).map_err(TextError::File)?;
        let name = shipped.name.into();
        Ok(Some(Box::new(Profile { name, costs })))
    }
}

/// The costs in a profile's text.
///
/// # Errors
/// A cost is missing, or is none: which line, what it has and what is expected.
fn parse(file: &str, text: &str) -> Result<Costs, FileError> {
    let refused = |line, got: String, expected: &str| FileError::Content {
        file: file.into(),
        line,
        got,
        expected: expected.into(),
    };
    let line_of = |offset: usize| 1 + text[..offset].matches('\n').count();
    let document = Document::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(span.start));
        let got = format!("this is not TOML: {}", error.message().trim_end());
        refused(Some(line), got, "a file as `knee calibrate` writes it")
    })?;
    let table = document.get("costs").and_then(Item::as_table_like);
    let table = table.ok_or_else(|| {
        let got = "there is no table [costs]".into();
        refused(None, got, "a file as `knee calibrate` writes it")
    })?;
    let mut costs = Costs::default();
    let mut missing = Vec::new();
    for (name, item) in table.iter() {
        let Some(position) = Costs::position(name) else {
            let near = nearest(name, COSTS.iter().map(|kind| kind.name));
            let near = near.map_or(String::new(), |near| format!(", {near} would be one"));
            let got = format!("costs.{} is no operation{near}", quoted(name));
            return Err(refused(None, got, "the operations of a host alone"));
        };
        let ns = cost(name, item).map_err(|(got, expected)| {
            let line = item.span().map_or(1, |span| line_of(span.start));
            refused(Some(line), format!("got {}", quoted(&got)), &expected)
        })?;
        costs.set(position, ns);
    }
    for kind in COSTS {
        if !table.contains_key(kind.name) && !GIVEN.contains(&kind.name) {
            missing.push(kind.name);
        }
    }
    match missing.as_slice() {
        [] => Ok(costs),
        missing => Err(refused(
            None,
            format!("the table [costs] lacks {}", missing.join(", ")),
            "the cost of each operation, 0 where the host does not do it",
        )),
    }
}

/// Operations whose cost no profile has: the scenario says how long applications compute, and the run shows how long processors
/// wait for a lock.
const GIVEN: [&str; 2] = ["service_ns", "qdisc_lock_ns"];

/// A cost of `{ ns = 250, low = 230, high = 270, source = "…" }`. Fails with what there is and what is expected.
fn cost(name: &str, item: &Item) -> Result<f64, (String, String)> {
    let most = match name.ends_with("_per_byte") {
        true => MOST_NS_PER_BYTE,
        false => MOST_NS,
    };
    let number = |table: &dyn TableLike, key: &str| {
        let value = table.get(key)?.as_value()?;
        let number = value
            .as_float()
            .or_else(|| Some(value.as_integer()? as f64));
        number.filter(|number| (0.0..=most).contains(number))
    };
    let table = item.as_table_like();
    let read = table.and_then(|table| {
        let source = table.get("source")?.as_str()?;
        let bounds = [number(table, "low")?, number(table, "high")?];
        let ns = number(table, "ns")?;
        (!source.trim().is_empty() && bounds[0] <= ns && ns <= bounds[1]).then_some(ns)
    });
    read.ok_or_else(|| {
        let got = item.to_string();
        let expected = format!(
            "{name} = {{ ns = …, low = …, high = …, source = \"…\" }}, with numbers from 0 to {most} and low <= ns <= high"
        );
        (got.trim().to_owned(), expected)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_with(changed: &str, line: &str) -> String {
        let mut text = String::from("[costs]\n");
        for kind in COSTS {
            match kind.name == changed {
                true => text.push_str(line),
                false => {
                    let name = kind.name;
                    text.push_str(&format!(
                        "{name} = {{ ns = 2.5, low = 2, high = 3, source = \"a test\" }}"
                    ));
                }
            }
            text.push('\n');
        }
        text
    }

    #[test]
    fn every_shipped_profile_has_every_cost() {
        for shipped in SHIPPED {
            let profile = Profile::read(shipped.name, Files::NONE).expect("it is whole");
            let costs = &profile.expect("it is one").costs;
            assert!(costs.ns_at(0) > 0.0, "{}", shipped.name);
        }
        assert_eq!(Profile::read(NONE, Files::NONE), Ok(None));
    }

    #[test]
    fn what_is_no_cost_is_told_with_its_line() {
        assert_eq!(
            parse("x.toml", &text_with("", "")).map(|c| c.ns_at(3)),
            Ok(2.5)
        );
        let second = COSTS[1].name;
        for bad in [
            "ns = -1, low = 0, high = 3, source = \"a\"",
            "ns = 5, low = 0, high = 3, source = \"a\"",
            "ns = 2, low = 0, high = 3",
            "ns = 2, low = 0, high = 1e9, source = \"a\"",
            "ns = \"2\", low = 0, high = 3, source = \"a\"",
            "low = 0, high = 3, source = \"a\"",
            "ns = nan, low = 0, high = 3, source = \"a\"",
        ] {
            let line = format!("{second} = {{ {bad} }}");
            let error = parse("x.toml", &text_with(second, &line)).expect_err(bad);
            let error = error.to_string();
            assert!(error.starts_with("x.toml:3: got"), "{error}");
            assert!(error.contains(second), "{error}");
        }
    }

    #[test]
    fn a_profile_that_lacks_a_cost_or_has_one_too_many_is_none() {
        let error = parse("x.toml", &text_with(COSTS[4].name, "")).expect_err("one is missing");
        assert!(error.to_string().contains(COSTS[4].name), "{error}");
        let more = format!("{}\nwakeups_ns = {{}}\n", text_with("", ""));
        let error = parse("x.toml", &more).expect_err("one is unknown");
        assert!(error.to_string().contains("wakeup_ns"), "{error}");
        let error = parse("x.toml", "costs = 1\n").expect_err("there is no table");
        assert!(error.to_string().contains("[costs]"), "{error}");
        let error = parse("x.toml", "[costs\n").expect_err("it is no TOML");
        assert!(error.to_string().starts_with("x.toml:1: "), "{error}");
    }
}
