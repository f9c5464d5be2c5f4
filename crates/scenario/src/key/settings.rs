//! Parameters that an algorithm or a queue lists of itself: how a scenario writes one, and what it means.
//!
//! Algorithms count in u32 of their own units (1/256, us), queues in doubles of base units; a file writes both as
//! its other values: `drain_gain = 0.5`, `target = "5ms"`, `loss_thresh = "2%"`.

use knee_units::Nanos;
use knee_units::params::{Param, Unit};

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
    pub(super) fn counted(&self, value: f64) -> f64 {
        match self.scale {
            1.0 => value,
            per_one => (value * per_one).round(),
        }
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
