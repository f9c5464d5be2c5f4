//! How large transfers are: distributions that a scenario can name, with the
//! parameters of the publications they come from as defaults.
//!
//! Logarithms and powers are those of `libm`, which are the same on every
//! platform; those of the platforms differ in the last bit.

mod cdf;
mod lognormal;
mod pareto;

use serde::Serialize;
use std::fmt;
use std::sync::Arc;

pub use cdf::Cdf;
pub use lognormal::Lognormal;
pub use pareto::Pareto;

use knee_units::files::Files;
use knee_units::parse;
use knee_units::rng::Stream;
use knee_units::serialize_shared;
use knee_units::text::TextError;

/// Largest transfer: that of workload transfer.
pub const MOST_BYTES: u64 = 1_000_000_000_000;

/// A scenario's distribution of sizes, resolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum SizeSpec {
    Pareto(Pareto),
    Lognormal(Lognormal),
    /// Points of a distribution function, as measured.
    Cdf(#[serde(serialize_with = "serialize_shared")] Arc<Cdf>),
}

impl SizeSpec {
    /// Reads `pareto shape 1.2 from 2kB to 100MB`, `web-search`, `cdf FILE`.
    ///
    /// # Errors
    /// The text is no distribution, or its file has none.
    pub fn read(text: &str, files: Files<'_>) -> Result<SizeSpec, TextError> {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        let kind = find(name).ok_or_else(|| TextError::Kind(name.into()))?;
        (kind.read)(rest.trim(), files)
    }

    /// One transfer's size, at least a byte.
    pub fn draw(&self, rng: &mut Stream) -> u64 {
        let bytes = match self {
            SizeSpec::Pareto(law) => law.draw(rng),
            SizeSpec::Lognormal(law) => law.draw(rng),
            SizeSpec::Cdf(law) => law.draw(rng),
        };
        (bytes as u64).clamp(1, MOST_BYTES)
    }

    /// In the long run.
    pub fn mean_bytes(&self) -> f64 {
        match self {
            SizeSpec::Pareto(law) => law.mean_bytes(),
            SizeSpec::Lognormal(law) => law.mean_bytes(),
            SizeSpec::Cdf(law) => law.mean_bytes(),
        }
    }

    /// Share of transfers that are not larger.
    pub fn share_up_to(&self, bytes: f64) -> f64 {
        match self {
            SizeSpec::Pareto(law) => law.share_up_to(bytes),
            SizeSpec::Lognormal(law) => law.share_up_to(bytes),
            SizeSpec::Cdf(law) => law.share_up_to(bytes),
        }
    }
}

impl fmt::Display for SizeSpec {
    /// As a scenario writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizeSpec::Pareto(law) => law.fmt(f),
            SizeSpec::Lognormal(law) => law.fmt(f),
            SizeSpec::Cdf(law) => f.write_str(&law.name),
        }
    }
}

/// A distribution that a scenario can name.
pub struct SizeKind {
    pub name: &'static str,
    pub summary: &'static str,
    /// Of its form and its defaults.
    pub source: &'static str,
    /// How a scenario writes it.
    pub example: &'static str,
    /// Reads what stands behind the name.
    read: fn(&str, Files<'_>) -> Result<SizeSpec, TextError>,
}

/// Every distribution, in the order the documentation prints them.
pub const SIZES: &[&SizeKind] = &[
    &pareto::KIND,
    &lognormal::KIND,
    &cdf::WEB_SEARCH,
    &cdf::DATA_MINING,
    &cdf::FILE,
];

/// The distribution of that name.
pub fn find(name: &str) -> Option<&'static SizeKind> {
    SIZES.iter().copied().find(|kind| kind.name == name)
}

/// The bounds `from` and `to`, and one number by its name: `shape 1.2 from 2kB to 100MB`.
struct Words<'t> {
    left: Vec<&'t str>,
}

impl<'t> Words<'t> {
    fn new(text: &'t str) -> Result<Words<'t>, TextError> {
        let left: Vec<&str> = text.split_whitespace().collect();
        if left.len().is_multiple_of(2) {
            Ok(Words { left })
        } else {
            Err(TextError::Form)
        }
    }

    /// What stands behind `name`, once.
    fn take(&mut self, name: &str) -> Option<&'t str> {
        let at = (0..self.left.len())
            .step_by(2)
            .find(|&i| self.left[i] == name)?;
        let value = self.left[at + 1];
        self.left.drain(at..at + 2);
        Some(value)
    }

    fn bytes(&mut self, name: &str, default: u64) -> Result<u64, TextError> {
        let text = self.take(name);
        text.map_or(Ok(default), |text| {
            parse::bytes(text).map_err(TextError::Unit)
        })
    }

    fn number(&mut self, name: &str, default: f64, min: f64, max: f64) -> Result<f64, TextError> {
        let Some(text) = self.take(name) else {
            return Ok(default);
        };
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let number = text.parse().ok().filter(|_| plain);
        number
            .filter(|x| (min..=max).contains(x))
            .ok_or_else(|| TextError::Impossible(format!("{name} from {min} to {max}")))
    }

    /// The bounds, once all else is taken.
    fn bounds(mut self, defaults: [u64; 2]) -> Result<[u64; 2], TextError> {
        let [min, max] = [
            self.bytes("from", defaults[0])?,
            self.bytes("to", defaults[1])?,
        ];
        if !self.left.is_empty() {
            return Err(TextError::Form);
        }
        if min == 0 || min >= max || max > MOST_BYTES {
            return Err(TextError::Impossible(format!(
                "sizes from at least 1B to at most {MOST_BYTES}B, the first below the second, and this is from {min}B to {max}B"
            )));
        }
        Ok([min, max])
    }
}

#[cfg(test)]
mod tests;
