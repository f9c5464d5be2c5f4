//! Parameters that an algorithm or a queue lists of itself: how a scenario writes one, and what it means.
//!
//! Algorithms count in u32 of their own units (1/256, us), queues in doubles of base units; a file writes both as
//! its other values: `drain_gain = 0.5`, `target = "5ms"`, `loss_thresh = "2%"`.

use knee_units::Nanos;
use knee_units::params::{Param, Unit};
use knee_units::parse::{self, UnitError};
use toml_edit::Value as Toml;

use crate::key::error::{Problem, shown};

/// A parameter with its bounds (inclusive), whoever lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamInfo {
    pub name: String,
    /// In the owner's unit, as the bounds.
    pub default: f64,
    pub min: f64,
    pub max: f64,
    pub form: Form,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Whole,
    Flag,
    /// A ratio without a unit, of which the owner counts so many per 1; 0: as it is.
    Ratio {
        per_one: f64,
    },
    /// A share in percent, of which the owner counts so many per 1.
    Share {
        per_one: f64,
    },
    /// A duration that the owner counts in units of `unit_ns`.
    Time {
        unit_ns: u64,
    },
    Bytes,
    Rate,
    /// One of these words; the owner counts their places.
    Choice(&'static [&'static str]),
}

impl ParamInfo {
    /// Of an algorithm, whose unit is one of `cc/cc.h`: "", "us", "%", "1/256" and the like.
    pub fn of_algorithm(name: &str, unit: &str, default: u32, min: u32, max: u32) -> ParamInfo {
        let form = match unit {
            "ns" => Form::Time { unit_ns: 1 },
            "us" => Form::Time { unit_ns: 1_000 },
            "ms" => Form::Time { unit_ns: 1_000_000 },
            "s" => Form::Time {
                unit_ns: 1_000_000_000,
            },
            "%" => Form::Share { per_one: 100.0 },
            "" if (min, max) == (0, 1) => Form::Flag,
            fraction => match fraction_of(fraction) {
                Some(per_one) => Form::Ratio { per_one },
                None => Form::Whole,
            },
        };
        ParamInfo {
            name: name.into(),
            default: default.into(),
            min: min.into(),
            max: max.into(),
            form,
        }
    }

    /// Of a queue.
    pub fn of_queue(param: &Param) -> ParamInfo {
        let form = match param.unit {
            Unit::Time => Form::Time { unit_ns: 1 },
            Unit::Bytes => Form::Bytes,
            Unit::Share => Form::Share { per_one: 1.0 },
            Unit::Rate => Form::Rate,
            Unit::Count => Form::Whole,
            Unit::Number => Form::Ratio { per_one: 0.0 },
            Unit::Flag => Form::Flag,
            Unit::Choice(words) => Form::Choice(words),
        };
        ParamInfo {
            name: param.name.into(),
            default: param.default,
            min: param.min,
            max: param.max,
            form,
        }
    }

    /// A value of the owner's as a file writes it.
    pub fn written(&self, value: f64) -> String {
        match self.form {
            Form::Whole => format!("{value}"),
            Form::Flag => format!("{}", value != 0.0),
            Form::Ratio { per_one: 0.0 } => format!("{value}"),
            Form::Ratio { per_one } => round_to(value / per_one, 4),
            Form::Share { per_one } => format!("\"{}%\"", round_to(100.0 * value / per_one, 4)),
            Form::Time { unit_ns } => format!("\"{}\"", Nanos((value * unit_ns as f64) as u64)),
            Form::Bytes => format!("\"{value}B\""),
            Form::Rate if value.is_infinite() => "\"unlimited\"".into(),
            Form::Rate => format!("\"{value}bit/s\""),
            Form::Choice(words) => format!("\"{}\"", words[value as usize]),
        }
    }

    /// What may be written, as errors and help say it.
    pub fn forms(&self) -> String {
        let what = match self.form {
            Form::Whole => "a whole number",
            Form::Flag => return format!("true or false (default {})", self.written(self.default)),
            Form::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                let default = self.written(self.default);
                return format!("one of {} (default {default})", words.join(", "));
            }
            Form::Ratio { .. } => "a number",
            Form::Share { .. } => parse::SHARE_FORMS,
            Form::Time { .. } => parse::DURATION_FORMS,
            Form::Bytes => parse::BYTES_FORMS,
            Form::Rate => parse::RATE_FORMS,
        };
        let [min, max, default] = [self.min, self.max, self.default].map(|x| self.written(x));
        format!("{what} from {min} to {max} (default {default})")
    }

    /// The value at `path` in the owner's unit, and its label.
    pub fn read(&self, path: &str, toml: &Toml) -> Result<(f64, String), Problem> {
        let wrong = |next: &str| Problem::Value {
            key: path.into(),
            got: shown(toml),
            expected: self.forms(),
            next: next.into(),
        };
        let unit = |error: UnitError| Problem::Unit {
            key: path.into(),
            error,
        };
        let number = toml
            .as_integer()
            .map(|n| n as f64)
            .or_else(|| toml.as_float());
        let (value, label) = match (self.form, toml) {
            (Form::Flag, Toml::Boolean(flag)) => {
                let flag = *flag.value();
                (f64::from(u8::from(flag)), flag.to_string())
            }
            (Form::Whole, Toml::Integer(n)) => (*n.value() as f64, n.value().to_string()),
            (Form::Ratio { per_one }, _) if number.is_some() => {
                let number = number.expect("tested");
                let value = match per_one {
                    0.0 => number,
                    per_one => (number * per_one).round(),
                };
                (value, number.to_string())
            }
            (Form::Whole | Form::Ratio { .. } | Form::Flag, Toml::String(_)) => {
                return Err(wrong("Write it without quotes."));
            }
            (Form::Time { unit_ns }, Toml::String(text)) => {
                let ns = parse::duration(text.value()).map_err(unit)?.0;
                if !ns.is_multiple_of(unit_ns) {
                    let next = format!("It counts whole units of {}.", Nanos(unit_ns));
                    return Err(wrong(&next));
                }
                ((ns / unit_ns) as f64, text.value().clone())
            }
            (Form::Share { per_one }, Toml::String(text)) => {
                let share = parse::share(text.value()).map_err(unit)?;
                let value = match per_one {
                    1.0 => share,
                    per_one => (share * per_one).round(),
                };
                (value, text.value().clone())
            }
            (Form::Bytes, Toml::String(text)) => {
                let bytes = parse::bytes(text.value()).map_err(unit)?;
                (bytes as f64, text.value().clone())
            }
            (Form::Rate, Toml::String(text)) => {
                let rate = parse::rate(text.value()).map_err(unit)?;
                let value = rate.map_or(f64::INFINITY, |rate| rate.bits_per_sec() as f64);
                (value, text.value().clone())
            }
            (Form::Choice(words), Toml::String(text)) => {
                let place = words.iter().position(|word| word == text.value());
                let place = place.ok_or_else(|| wrong(""))?;
                (place as f64, text.value().clone())
            }
            (Form::Whole | Form::Ratio { .. } | Form::Flag, _) => return Err(wrong("")),
            _ => return Err(wrong("Write it with its unit, in quotes.")),
        };
        // NaN is outside as well.
        if !(self.min..=self.max).contains(&value) {
            return Err(wrong(""));
        }
        Ok((value, label))
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
