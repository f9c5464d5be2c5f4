//! Parameters that an algorithm or a queue lists of itself: how a scenario writes one, and what it means.
//!
//! Algorithms count in u32 of their own units (1/256, us), queues in doubles of base units; a file writes both as
//! its other values: `drain_gain = 0.5`, `target = "5ms"`, `loss_thresh = "2%"`.

use knee_units::Nanos;
use knee_units::params::{Param, Unit};
use knee_units::parse;
use toml_edit::Value as Toml;

use crate::key::error::Problem;
use crate::key::kind::{Given, Kind, quoted_list};
use crate::key::value::Value;

/// A parameter with its bounds (inclusive), whoever lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamInfo {
    pub name: String,
    /// In the owner's unit, as the bounds.
    pub default: f64,
    pub min: f64,
    pub max: f64,
    /// How a value is written.
    pub unit: Unit,
    /// What one unit of the owner's is: of times, this many ns; of shares and numbers, one part in this many.
    pub scale: f64,
}

impl ParamInfo {
    /// Of an algorithm, whose unit is one of `cc/cc.h`: "", "us", "%", "1/256" and the like.
    pub fn of_algorithm(name: &str, unit: &str, default: u32, min: u32, max: u32) -> ParamInfo {
        let (unit, scale) = match unit {
            "ns" => (Unit::Time, 1.0),
            "us" => (Unit::Time, 1e3),
            "ms" => (Unit::Time, 1e6),
            "s" => (Unit::Time, 1e9),
            "%" => (Unit::Share, 100.0),
            "" if (min, max) == (0, 1) => (Unit::Flag, 1.0),
            fraction => match fraction_of(fraction) {
                Some(per_one) if per_one != 1.0 => (Unit::Number, per_one),
                _ => (Unit::Count, 1.0),
            },
        };
        ParamInfo {
            name: name.into(),
            default: default.into(),
            min: min.into(),
            max: max.into(),
            unit,
            scale,
        }
    }

    /// Of a queue.
    pub fn of_queue(param: &Param) -> ParamInfo {
        ParamInfo {
            name: param.name.into(),
            default: param.default,
            min: param.min,
            max: param.max,
            unit: param.unit,
            scale: 1.0,
        }
    }

    /// A value of the owner's as a file writes it.
    pub fn written(&self, value: f64) -> String {
        match self.unit {
            Unit::Flag => format!("{}", value != 0.0),
            Unit::Number if self.scale != 1.0 => round_to(value / self.scale, 4),
            Unit::Count | Unit::Number => format!("{value}"),
            Unit::Share => format!("\"{}%\"", round_to(100.0 * value / self.scale, 4)),
            Unit::Time => format!("\"{}\"", Nanos((value * self.scale) as u64)),
            Unit::Bytes => format!("\"{value}B\""),
            Unit::Rate if value.is_infinite() => "\"unlimited\"".into(),
            Unit::Rate => format!("\"{value}bit/s\""),
            Unit::Choice(words) => format!("\"{}\"", words[value as usize]),
        }
    }

    /// A share or a number as the owner counts it.
    fn counted(&self, value: f64) -> f64 {
        match self.scale {
            1.0 => value,
            per_one => (value * per_one).round(),
        }
    }
}

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

/// Units per 1 of "1/256", "10/1024 segments/s^3".
fn fraction_of(unit: &str) -> Option<f64> {
    let fraction = unit.split(' ').next()?;
    let (numerator, denominator) = fraction.split_once('/')?;
    let [numerator, denominator] = [numerator, denominator].map(|n| n.parse::<f64>().ok());
    Some(denominator? / numerator?)
}

/// Without trailing zeros.
fn round_to(x: f64, places: u32) -> String {
    let scale = f64::from(10u32.pow(places));
    format!("{}", (x * scale).round() / scale)
}
