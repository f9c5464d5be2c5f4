//! Names of things that there are.

use toml_edit::Value as Toml;

use super::{Given, Kind, quoted_list};
use crate::key::error::Problem;
use crate::key::names;
use crate::key::value::Value;
use crate::release::Release;

/// A name of a registry: what it is called, and the names. Held as `&'static str`.
pub struct Name(pub &'static str, pub fn() -> Vec<&'static str>);

/// Held as `String`: the name that we give it.
pub struct Algorithm;

/// A release of Linux, or the name of a kernel that was built; held as [`names::Kernel`].
pub struct Kernel;

impl Kind for Name {
    fn forms(&self) -> String {
        format!("a {}: {}", self.0, quoted_list(&(self.1)()))
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let (text, known) = (given.text(self)?, (self.1)());
        let found = known.iter().copied().find(|name| *name == text);
        found
            .map(Value::of)
            .ok_or_else(|| given.unknown(self.0, text, known))
    }

    fn show(&self, value: &Value) -> String {
        (*value.expect::<&str>()).into()
    }
}

impl Kind for Algorithm {
    fn forms(&self) -> String {
        "an algorithm's name such as \"cubic\"".into()
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let text = given.text(self)?;
        let found = given.names.algorithm(text);
        found
            .map(|info| Value::of(info.name.clone()))
            .ok_or_else(|| {
                let algorithms = given.names.algorithms.iter();
                let known = algorithms.map(|info| info.name.as_str()).collect();
                given.unknown("algorithm", text, known)
            })
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<String>().clone()
    }

    /// Where Linux calls it otherwise, our name.
    fn label(&self, _given: &Given<'_>, value: &Value) -> String {
        self.show(value)
    }

    /// That of a far end need not be among those offered to flows.
    fn default(&self, text: &str) -> (Value, Toml) {
        (Value::of(text.to_owned()), text.into())
    }
}

impl Kind for Kernel {
    fn forms(&self) -> String {
        format!(
            "a release of Linux such as \"6.12\", from {} to {}, or the name of a kernel of `knee kernel list`",
            Release::OLDEST,
            Release::NEWEST
        )
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let found = match given.toml {
            // 6.10 would be 6.1.
            Toml::Float(_) => return Err(given.wrong(self, "Write it in quotes.")),
            _ => given.names.kernel(given.text(self)?),
        };
        found.map(Value::of).ok_or_else(|| given.wrong(self, ""))
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<names::Kernel>().name.clone()
    }
}
