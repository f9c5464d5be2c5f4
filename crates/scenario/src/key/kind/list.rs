//! Places in lists: of hops, rows, keys and columns.

use std::fmt;

use knee_tables::KeptSamples;
use knee_units::parse::{did_you_mean, quoted};
use toml_edit::Value as Toml;

use super::{Given, Kind};
use crate::key::error::{Problem, nearest};
use crate::key::value::Value;

/// One place or several in a row, counted from 1: what is counted. Held as [`Places`].
pub struct InARow(&'static str);

pub const HOPS: &InARow = &InARow("a hop such as \"2\", or hops in a row such as \"1..3\"");
pub const ROWS: &InARow = &InARow("rows of the table such as \"1..500\"");

/// Keys that have lists; held as `Vec<String>`.
pub struct Keys;

/// Columns of the table `samples`; held as [`KeptSamples`].
pub struct Samples;

/// The first and the last, from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Places {
    pub first: usize,
    pub last: usize,
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.first, self.last)
    }
}

impl Kind for InARow {
    fn forms(&self) -> String {
        format!("{}, from 1 on", self.0)
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let text = given.text(self)?;
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.trim().parse().ok().filter(|&n: &usize| n > 0);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Value::of(Places { first, last })),
            _ => Err(given.wrong(self, "")),
        }
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<Places>().to_string()
    }
}

impl Kind for Keys {
    fn forms(&self) -> String {
        "a list of two keys or more whose values are lists, such as [\"path.rate\", \"path.rtt\"]"
            .into()
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let list = given.toml.as_array().into_iter().flatten();
        let keys: Option<Vec<String>> = list.map(|key| Some(key.as_str()?.into())).collect();
        match keys {
            Some(keys) if keys.len() >= 2 => Ok(Value::of(keys)),
            _ => Err(given.wrong(self, "")),
        }
    }

    fn show(&self, value: &Value) -> String {
        format!("[{}]", value.expect::<Vec<String>>().join(", "))
    }

    fn takes_list(&self) -> bool {
        true
    }
}

impl Kind for Samples {
    fn forms(&self) -> String {
        "a list of columns of the table samples, such as [\"srtt_us\", \"snd_cwnd\"], or [] for no row of it".into()
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let Toml::Array(list) = given.toml else {
            return Err(given.wrong(self, ""));
        };
        let name = |toml| {
            let given = Given { toml, ..*given };
            given.text(self)
        };
        let names: Vec<&str> = list.iter().map(name).collect::<Result<_, Problem>>()?;
        let kept = KeptSamples::of(names);
        kept.map(Value::of)
            .map_err(|unknown| no_column(given, unknown))
    }

    fn show(&self, value: &Value) -> String {
        let chosen = value.expect::<KeptSamples>().chosen();
        format!("[{}]", chosen.unwrap_or_default().join(", "))
    }

    fn takes_list(&self) -> bool {
        true
    }
}

/// The table `samples` has no such column, or every row has it.
fn no_column(given: &Given<'_>, got: &str) -> Problem {
    let known = || KeptSamples::choices().map(|column| column.name);
    // A name without its unit is more than a few edits away.
    let whole = known().find(|name| {
        name.strip_prefix(got)
            .is_some_and(|unit| unit.starts_with('_'))
    });
    let meant = whole.map(String::from).or_else(|| nearest(got, known()));
    Problem::Value {
        key: given.path.into(),
        got: quoted(got),
        expected:
            "columns of the table samples, beside cell, rep, t_ns and flow, which every row has"
                .into(),
        next: match &meant {
            Some(_) => did_you_mean(&meant).trim().into(),
            None => "`knee list tables` prints them.".into(),
        },
    }
}
