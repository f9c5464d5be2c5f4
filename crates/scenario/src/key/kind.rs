//! What kind of value a key takes: one object each, which says what may be written, reads it, and shows it again.
//!
//! A further kind is an object in a file here, and a key that has it.

mod costs;
mod count;
mod cpus;
mod flag;
pub mod list;
mod names;
mod param;
pub mod path;
mod quantity;
mod sizes;
mod text;

use knee_units::files::Files;
use knee_units::parse::{UnitError, quoted};
use knee_units::text::TextError;
use toml_edit::{Array, Value as Toml};

pub use costs::Costs;
pub use count::{Choice, Count, CountOrUnlimited};
pub use cpus::{CpuList, CpuMask};
pub use flag::Flag;
pub use list::{HOPS, Keys, ROWS, Samples};
pub use names::{Algorithm, Kernel, Name};
pub use path::{Buffer, LinkRate, Loss, Outages, RttChanges};
pub use quantity::{Bytes, Duration, PerSec, Rate, Share};
pub use sizes::Sizes;
pub use text::{Figure, ID, IDENTIFIER, LINE};

use super::error::{Problem, nearest, shown};
use super::names::Names;
use super::value::Value;

/// A kind of value, with its bounds (inclusive).
pub trait Kind: Sync {
    /// What may be written, as errors and help say it.
    fn forms(&self) -> String;

    /// The value that a file gives.
    fn read(&self, given: &Given<'_>) -> Result<Value, Problem>;

    /// As a scenario writes it, but without quotes. Of a value that [`Self::read`] gives.
    fn show(&self, value: &Value) -> String;

    /// What an axis calls the value.
    fn label(&self, given: &Given<'_>, _value: &Value) -> String {
        match given.toml {
            Toml::String(text) => text.value().clone(),
            Toml::Array(list) => joined(list).unwrap_or_default(),
            other => shown(other),
        }
    }

    /// Does a list belong to the value, and make no axis?
    fn takes_list(&self) -> bool {
        false
    }

    /// The value that a default of the registry is, and how a file writes it.
    fn default(&self, text: &str) -> (Value, Toml) {
        // Numbers and flags are no texts.
        let forms = [Some(Toml::from(text)), text.parse().ok()];
        let read = |toml: Toml| {
            let given = Given {
                path: "",
                toml: &toml,
                names: &Names::default(),
                files: Files::NONE,
            };
            Some((self.read(&given).ok()?, toml))
        };
        let found = forms.into_iter().flatten().find_map(read);
        found.expect("a default of the registry is a value of its key's kind")
    }
}

/// What a file gives for a key, and what it may name.
pub struct Given<'a> {
    /// Where it stands: `flow.0.bytes`.
    pub path: &'a str,
    pub toml: &'a Toml,
    pub names: &'a Names,
    pub files: Files<'a>,
}

impl<'a> Given<'a> {
    /// That it is no value of the kind; `next` says what to do.
    fn wrong(&self, kind: &dyn Kind, next: &str) -> Problem {
        self.refused(kind.forms(), next)
    }

    /// That something else was expected.
    fn refused(&self, expected: String, next: &str) -> Problem {
        let texts = self.toml.as_array().and_then(joined);
        Problem::Value {
            key: self.path.into(),
            got: texts.map_or_else(|| shown(self.toml), |texts| quoted(&texts)),
            expected,
            next: next.into(),
        }
    }

    /// Of a kind that is written in quotes.
    fn text(&self, kind: &dyn Kind) -> Result<&'a str, Problem> {
        self.toml.as_str().ok_or_else(|| self.wrong(kind, ""))
    }

    /// Of a kind that has units: a bare number lacks one.
    fn quantity(&self, kind: &dyn Kind) -> Result<&'a str, Problem> {
        match self.toml {
            Toml::Integer(_) | Toml::Float(_) => Err(Problem::Value {
                key: self.path.into(),
                got: format!("the bare number {}", shown(self.toml)),
                expected: kind.forms(),
                next: "Write it with its unit, in quotes.".into(),
            }),
            _ => self.text(kind),
        }
    }

    /// The texts of a list, or of one text.
    fn texts(&self, kind: &dyn Kind) -> Result<String, Problem> {
        let Toml::Array(list) = self.toml else {
            return Ok(self.quantity(kind)?.into());
        };
        joined(list).ok_or_else(|| self.wrong(kind, ""))
    }

    fn unit(&self, error: UnitError) -> Problem {
        Problem::Unit {
            key: self.path.into(),
            error,
        }
    }

    fn unknown(&self, what: &'static str, got: &str, known: Vec<&str>) -> Problem {
        Problem::UnknownName {
            key: self.path.into(),
            what,
            got: got.into(),
            suggestion: nearest(got, known.iter().copied()),
            known: known.into_iter().map(String::from).collect(),
        }
    }

    /// Why a text is none of a thing that comes in kinds, such as a loss: what it is called, and the kinds.
    fn no(
        &self,
        kind: &dyn Kind,
        what: &'static str,
        known: Vec<&str>,
        error: TextError,
    ) -> Problem {
        match error {
            TextError::Kind(name) => self.unknown(what, &name, known),
            TextError::Unit(error) => self.unit(error),
            TextError::Form => self.wrong(kind, ""),
            TextError::Impossible(expected) => self.refused(expected, ""),
            TextError::File(error) => Problem::File {
                key: self.path.into(),
                error: error.into(),
            },
        }
    }
}

/// The texts of a list; `None`: it has none, or something else.
fn joined(list: &Array) -> Option<String> {
    let texts: Option<Vec<&str>> = list.iter().map(Toml::as_str).collect();
    Some(texts?.join(", ")).filter(|_| !list.is_empty())
}

/// Reads `given` as a value of that kind: itself, and its label.
pub fn read(kind: &dyn Kind, given: &Given<'_>) -> Result<(Value, String), Problem> {
    let value = kind.read(given)?;
    let label = kind.label(given, &value);
    Ok((value, label))
}

fn quoted_list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Default;
    use crate::keys::Section;

    #[test]
    fn what_a_kind_shows_is_read_as_the_same_value() {
        let tables = [
            Section::Top,
            Section::Path,
            Section::Sender,
            Section::Flow(0),
        ];
        let keys = tables.into_iter().flat_map(Section::keys);
        let of_registry = keys.filter_map(|key| match key.default {
            Default::Value(text) => Some((key.kind, text)),
            Default::Required(example) => Some((key.kind, example.trim_matches('"'))),
            Default::Words(_) => None,
        });
        let others: &[(&'static dyn Kind, &str)] = &[
            (&LinkRate, "trace cellular"),
            (&LinkRate, "12.5Mbit/s"),
            (&Rate, "unlimited"),
            (&Loss, "gilbert 1% burst 5"),
            (&Buffer, "0.75bdp"),
            (&Buffer, "12ms"),
            (&Buffer, "3packets"),
            (&Buffer, "4KiB"),
            (&Buffer, "unlimited"),
            (&Outages, "10s for 2s, 20s for 1s"),
            (&RttChanges, "20s to 80ms, 30s to 1ms"),
            (&Share, "7%"),
            (&PerSec { min: 0.1, max: 1e6 }, "0.5/s"),
            (&Sizes, "lognormal median 4316B sigma 1.37 from 100B to 2MB"),
            (&Costs, "none"),
            (&Costs, "published"),
            (&CpuList, "0-1,4"),
            (&CpuMask, "ff"),
            (HOPS, "2..3"),
            (ROWS, "7"),
            (&Kernel, "6.12"),
            (LINE, "two words"),
            (&CountOrUnlimited(Count { min: 1, max: 9 }), "unlimited"),
        ];
        for (kind, text) in of_registry.chain(others.iter().copied()) {
            let (value, _) = kind.default(text);
            let shown = kind.show(&value);
            assert_eq!(kind.default(&shown).0, value, "{text} is shown as {shown}");
        }
    }
}
