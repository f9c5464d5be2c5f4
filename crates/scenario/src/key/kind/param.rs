//! Parameters of algorithms and queues.

use knee_units::Nanos;
use knee_units::params::Unit;
use knee_units::parse;
use toml_edit::Value as Toml;

use super::{Given, Kind, quoted_list};
use crate::key::error::Problem;
use crate::key::settings::ParamInfo;
use crate::key::value::Value;

/// Held as `f64`, in the owner's unit.
impl Kind for ParamInfo {
    fn forms(&self) -> String {
        let what = match self.unit {
            Unit::Count => "a whole number",
            Unit::Flag => return format!("true or false (default {})", self.written(self.default)),
            Unit::Choice(words) => {
                let default = self.written(self.default);
                return format!("one of {} (default {default})", quoted_list(words));
            }
            Unit::Number => "a number",
            Unit::Share => parse::SHARE_FORMS,
            Unit::Time => parse::DURATION_FORMS,
            Unit::Bytes => parse::BYTES_FORMS,
            Unit::Rate => parse::RATE_FORMS,
        };
        let [min, max, default] = [self.min, self.max, self.default].map(|x| self.written(x));
        format!("{what} from {min} to {max} (default {default})")
    }

    fn read(&self, given: &Given<'_>) -> Result<Value, Problem> {
        let wrong = |next: &str| given.wrong(self, next);
        let unit = |error| given.unit(error);
        let number = given.toml.as_integer().map(|n| n as f64);
        let number = number.or_else(|| given.toml.as_float());
        let value = match (self.unit, given.toml) {
            (Unit::Flag, Toml::Boolean(flag)) => f64::from(u8::from(*flag.value())),
            (Unit::Count, Toml::Integer(n)) => *n.value() as f64,
            (Unit::Number, _) if number.is_some() => self.counted(number.expect("tested")),
            (Unit::Count | Unit::Number | Unit::Flag, Toml::String(_)) => {
                return Err(wrong("Write it without quotes."));
            }
            (Unit::Time, Toml::String(text)) => {
                let unit_ns = self.scale as u64;
                let ns = parse::duration(text.value()).map_err(unit)?.0;
                if !ns.is_multiple_of(unit_ns) {
                    let next = format!("It counts whole units of {}.", Nanos(unit_ns));
                    return Err(wrong(&next));
                }
                (ns / unit_ns) as f64
            }
            (Unit::Share, Toml::String(text)) => {
                self.counted(parse::share(text.value()).map_err(unit)?)
            }
            (Unit::Bytes, Toml::String(text)) => parse::bytes(text.value()).map_err(unit)? as f64,
            (Unit::Rate, Toml::String(text)) => {
                let rate = parse::rate(text.value()).map_err(unit)?;
                rate.map_or(f64::INFINITY, |rate| rate.bits_per_sec() as f64)
            }
            (Unit::Choice(words), Toml::String(text)) => {
                let place = words.iter().position(|word| word == text.value());
                place.ok_or_else(|| wrong(""))? as f64
            }
            (Unit::Count | Unit::Number | Unit::Flag, _) => return Err(wrong("")),
            _ => return Err(wrong("Write it with its unit, in quotes.")),
        };
        // NaN is outside as well.
        match (self.min..=self.max).contains(&value) {
            true => Ok(Value::of(value)),
            false => Err(wrong("")),
        }
    }

    fn show(&self, value: &Value) -> String {
        let written = self.written(*value.expect());
        written.trim_matches('"').into()
    }
}
