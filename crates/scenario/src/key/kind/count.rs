//! Whole numbers.

use super::{Given, Kind};
use crate::key::error::Problem;
use crate::key::value::Value;

/// Held as `u64`.
pub struct Count {
    pub min: u64,
    pub max: u64,
}

/// Held as `Option<u64>`, `None` where it is unlimited.
pub struct CountOrUnlimited(pub Count);

/// One of a few; held as `u64`.
pub struct Choice(pub &'static [u64]);

const UNLIMITED: &str = "unlimited";

/// The number, if it fits.
fn number(kind: &dyn Kind, given: &Given<'_>, fits: impl Fn(&u64) -> bool) -> Result<u64, Problem> {
    let number = given.toml.as_integer().map(u64::try_from);
    if let Some(number) = number.and_then(Result::ok).filter(fits) {
        return Ok(number);
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    Err(given.wrong(
        kind,
        match given.toml.as_str() {
            Some(text) if is_number(text) => "Write it without quotes.",
            _ => "",
        },
    ))
}

impl Count {
    fn fits(&self, n: &u64) -> bool {
        (self.min..=self.max).contains(n)
    }
}

impl Kind for Count {
    fn forms(&self) -> String {
        format!("a whole number from {} to {}", self.min, self.max)
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        number(self, given, |n| self.fits(n)).map(Value::of)
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<u64>().to_string()
    }
}

impl Kind for CountOrUnlimited {
    fn forms(&self) -> String {
        format!("{}, or \"{UNLIMITED}\"", self.0.forms())
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let number = match given.toml.as_str() {
            Some(UNLIMITED) => None,
            _ => Some(number(self, given, |n| self.0.fits(n))?),
        };
        Ok(Value::of(number))
    }

    fn show(&self, value: &Value) -> String {
        let limit = value.expect::<Option<u64>>();
        limit.map_or(UNLIMITED.into(), |n| n.to_string())
    }
}

impl Kind for Choice {
    fn forms(&self) -> String {
        let values: Vec<String> = self.0.iter().map(u64::to_string).collect();
        format!("one of {}", values.join(", "))
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        number(self, given, |n| self.0.contains(n)).map(Value::of)
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<u64>().to_string()
    }
}
