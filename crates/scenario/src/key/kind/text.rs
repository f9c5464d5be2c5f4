//! Words.

use knee_units::parse::{self, FIGURE_FORMS};

use super::{Given, Kind};
use crate::key::error::Problem;
use crate::key::value::Value;

/// Words of a form; held as `String`.
pub struct Text {
    forms: &'static str,
    fits: fn(&str) -> bool,
}

/// A title, a condition, a source: not empty, on one line.
pub const LINE: &Text = &Text {
    forms: "text on one line, in quotes",
    fits: |text| text.len() <= 1_000 && !text.contains(char::is_control) && !text.trim().is_empty(),
};

/// A claim's id.
pub const ID: &Text = &Text {
    forms: "an id of lower-case letters, digits, \"-\" and \".\", in quotes",
    fits: |text| {
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let begins = text.len() <= MOST_BYTES && text.starts_with(letter);
        begins && text.chars().all(|c| letter(c) || c == '-' || c == '.')
    },
};

/// A name that expectations can use.
pub const IDENTIFIER: &Text = &Text {
    forms: "a name of letters, digits and \"_\" that begins with a letter, in quotes",
    fits: |text| {
        let begins =
            text.len() <= MOST_BYTES && text.starts_with(|c: char| c.is_ascii_alphabetic());
        begins && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    },
};

/// Of a name.
const MOST_BYTES: usize = 64;

impl Kind for Text {
    fn forms(&self) -> String {
        self.forms.into()
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let text = given.text(self)?;
        match (self.fits)(text) {
            true => Ok(Value::of(text.to_owned())),
            false => Err(given.wrong(self, "")),
        }
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<String>().clone()
    }
}

/// A quantity of any kind as others printed it, or a ratio; held as `String`.
pub struct Figure;

impl Kind for Figure {
    fn forms(&self) -> String {
        FIGURE_FORMS.into()
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let text = given.quantity(self)?;
        parse::figure(text).map_err(|error| given.unit(error))?;
        Ok(Value::of(text.to_owned()))
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<String>().clone()
    }
}
