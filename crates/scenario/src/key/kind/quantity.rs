//! Quantities with units.

use knee_units::parse::{
    self, BYTES_FORMS, DURATION_FORMS, PER_SEC_FORMS, RATE_FORMS, SHARE_FORMS, UnitError,
};
use knee_units::{Nanos, Rate as BitRate};

use super::{Given, Kind};
use crate::key::error::Problem;
use crate::key::value::Value;

/// Held as [`Nanos`].
pub struct Duration {
    pub min: Nanos,
    pub max: Nanos,
}

/// Held as `Option` of [`BitRate`], `None` where it is unlimited.
pub struct Rate;

/// Held as `f64`.
pub struct Share;

/// Held as `u64`.
pub struct Bytes {
    pub min: u64,
    pub max: u64,
}

/// Events per second; held as `f64`.
pub struct PerSec {
    pub min: f64,
    pub max: f64,
}

/// The quantity in the text, if it fits.
fn quantity<T>(
    kind: &dyn Kind,
    given: &Given<'_>,
    parse: impl Fn(&str) -> Result<T, UnitError>,
    fits: impl Fn(&T) -> bool,
) -> Result<T, Problem> {
    let quantity = parse(given.quantity(kind)?).map_err(|error| given.unit(error))?;
    match fits(&quantity) {
        true => Ok(quantity),
        false => Err(given.wrong(kind, "")),
    }
}

impl Kind for Duration {
    fn forms(&self) -> String {
        format!("{DURATION_FORMS} from {} to {}", self.min, self.max)
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let fits = |time: &Nanos| (self.min..=self.max).contains(time);
        quantity(self, given, parse::duration, fits).map(Value::of)
    }

    fn show(&self, value: &Value) -> String {
        value.expect::<Nanos>().to_string()
    }
}

/// The rate in the text, `None` where it is unlimited.
pub(super) fn rate(kind: &dyn Kind, given: &Given<'_>) -> Result<Option<BitRate>, Problem> {
    const MAX_BITS_PER_SEC: u64 = 10_000_000_000_000;
    quantity(kind, given, parse::rate, |rate| {
        rate.is_none_or(|rate| rate.bits_per_sec() <= MAX_BITS_PER_SEC)
    })
}

impl Kind for Rate {
    fn forms(&self) -> String {
        format!("{RATE_FORMS}, up to 10Tbit/s")
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        rate(self, given).map(Value::of)
    }

    fn show(&self, value: &Value) -> String {
        let rate = value.expect::<Option<BitRate>>();
        rate.map_or("unlimited".into(), |rate| rate.to_string())
    }
}

impl Kind for Share {
    fn forms(&self) -> String {
        format!("{SHARE_FORMS} up to 100%")
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        quantity(self, given, parse::share, |share| *share <= 1.0).map(Value::of)
    }

    fn show(&self, value: &Value) -> String {
        // As a text has it: 0.07 × 100 is 7.000000000000001.
        format!("{}%", (value.expect::<f64>() * 1e14).round() / 1e12)
    }
}

impl Kind for Bytes {
    fn forms(&self) -> String {
        format!("{BYTES_FORMS} from {}B to {}B", self.min, self.max)
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let fits = |bytes: &u64| (self.min..=self.max).contains(bytes);
        quantity(self, given, parse::bytes, fits).map(Value::of)
    }

    fn show(&self, value: &Value) -> String {
        format!("{}B", value.expect::<u64>())
    }
}

impl Kind for PerSec {
    fn forms(&self) -> String {
        format!("{PER_SEC_FORMS} from {}/s to {}/s", self.min, self.max)
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let fits = |per_sec: &f64| (self.min..=self.max).contains(per_sec);
        quantity(self, given, parse::per_sec, fits).map(Value::of)
    }

    fn show(&self, value: &Value) -> String {
        format!("{}/s", value.expect::<f64>())
    }
}
