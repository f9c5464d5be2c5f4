//! How large transfers are.

use super::{Given, Kind, quoted_list};
use crate::key::error::Problem;
use crate::key::sizes::{SIZES, SizeSpec};
use crate::key::value::Value;

/// A distribution of sizes; held as [`SizeSpec`].
pub struct Sizes;

impl Kind for Sizes {
    fn forms(&self) -> String {
        let examples: Vec<&str> = SIZES.iter().map(|kind| kind.example).collect();
        format!("a distribution: {}", quoted_list(&examples))
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let spec = SizeSpec::read(given.quantity(self)?, given.files);
        spec.map(Value::of).map_err(|error| {
            let known = SIZES.iter().map(|kind| kind.name).collect();
            given.no(self, "distribution", known, error)
        })
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<SizeSpec>().to_string()
    }
}
