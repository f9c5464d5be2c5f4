//! True or false.

use toml_edit::Value as Toml;

use super::{Given, Kind};
use crate::key::error::Problem;
use crate::key::value::Value;

/// Held as `bool`.
pub struct Flag;

impl Kind for Flag {
    fn forms(&self) -> String {
        "true or false".into()
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        match given.toml {
            Toml::Boolean(flag) => Ok(Value::of(*flag.value())),
            Toml::String(text) if matches!(text.value().as_str(), "true" | "false") => {
                Err(given.wrong(self, "Write it without quotes."))
            }
            _ => Err(given.wrong(self, "")),
        }
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<bool>().to_string()
    }
}
