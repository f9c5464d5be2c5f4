//! What hosts' work costs.

use super::{Given, Kind, quoted_list};
use crate::key::error::Problem;
use crate::key::profile::{NONE, Profile, SHIPPED};
use crate::key::value::Value;

/// What a host's operations cost; held as `Option<Box<Profile>>`, `None` where it takes no time.
pub struct Costs;

/// Those that need no file.
fn names() -> Vec<&'static str> {
    let shipped = SHIPPED.iter().map(|shipped| shipped.name);
    std::iter::once(NONE).chain(shipped).collect()
}

impl Kind for Costs {
    fn forms(&self) -> String {
        format!("{}, or \"file FILE.toml\"", quoted_list(&names()))
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let profile = Profile::read(given.quantity(self)?, given.files);
        let no = |error| given.no(self, "cost profile", names(), error);
        profile.map(Value::of).map_err(no)
    }

    fn show(&self, value: &Value) -> String {
        let profile = value.expect::<Option<Box<Profile>>>().as_deref();
        profile.map_or(NONE.into(), Profile::to_string)
    }
}
