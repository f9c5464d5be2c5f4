//! Distributions that a sample's keys can have: `lognormal median 50ms sigma 0.8`.
//!
//! Logarithms and powers are those of `libm`, which are the same on every platform.

use std::f64::consts::{SQRT_2, TAU};

use knee_units::parse::{Measure, UnitError};
use knee_units::rng::Stream;
use toml_edit::Value as Toml;

/// What may be written, as errors and help say it.
pub(crate) const FORMS: &str = "a distribution: \"uniform 10ms to 200ms\", \"loguniform 1Mbit/s to 1Gbit/s\", \"lognormal median 50ms sigma 0.8\", which may end in \"from 5ms to 1s\"";

/// What draws are rounded to: finer than anybody measures a path, and short to read.
const SIGNIFICANT_DIGITS: usize = 4;

/// Largest number of the smallest unit, far above that of any key.
const MOST: f64 = 1e18;

/// Least share of a distribution that its bounds may leave: a draw then takes a hundred attempts in the mean.
const LEAST_SHARE: f64 = 0.01;

/// A distribution of a key's values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distribution {
    law: Law,
    measure: Measure,
    /// No draw is outside of them.
    low: f64,
    high: f64,
    /// The quantities that it is written with.
    written: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Law {
    Uniform,
    /// Of whole numbers, the bounds among them.
    UniformWhole,
    /// Of the logarithm.
    LogUniform,
    /// `sigma`: deviation of the logarithm.
    Lognormal {
        median: f64,
        sigma: f64,
    },
}

/// Why a text is no distribution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DistributionError {
    Unit(UnitError),
    /// Not as the forms say.
    Form,
    /// Not possible, and what would be.
    Impossible(&'static str),
}

impl Distribution {
    /// Reads `uniform A to B`, `loguniform A to B`, `lognormal median M sigma S`, the last also with `from A to B`.
    ///
    /// # Errors
    /// It is none of these.
    pub(crate) fn read(text: &str) -> Result<Distribution, DistributionError> {
        use DistributionError::{Form, Impossible};
        let words: Vec<&str> = text.split_whitespace().collect();
        let quantities = |texts: &[&str]| -> Result<(Measure, Vec<f64>), DistributionError> {
            let read = |text: &&str| Measure::read(text, FORMS).map_err(DistributionError::Unit);
            let read = texts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
            let mut measures: Vec<Measure> = read.iter().map(|(measure, _)| *measure).collect();
            // "0 to 1.5" are ratios, both.
            if measures.contains(&Measure::Ratio) {
                let promoted = |measure| match measure {
                    Measure::Count => Measure::Ratio,
                    other => other,
                };
                measures = measures.into_iter().map(promoted).collect();
            }
            if read.iter().any(|(_, number)| *number > MOST) {
                return Err(Impossible("numbers that can be computed with"));
            }
            measures.dedup();
            let [measure] = measures[..] else {
                return Err(Impossible("quantities of one kind"));
            };
            Ok((
                measure,
                read.into_iter().map(|(_, number)| number).collect(),
            ))
        };
        let (law, measure, bounds, written) = match words[..] {
            [name @ ("uniform" | "loguniform"), low, "to", high] => {
                let (measure, bounds) = quantities(&[low, high])?;
                let law = match (name, measure) {
                    ("uniform", Measure::Count) => Law::UniformWhole,
                    ("uniform", _) => Law::Uniform,
                    _ => Law::LogUniform,
                };
                (law, measure, [bounds[0], bounds[1]], vec![low, high])
            }
            ["lognormal", "median", median, "sigma", sigma, ref rest @ ..] => {
                let mut written = vec![median];
                match *rest {
                    [] => {}
                    ["from", low, "to", high] => written.extend([low, high]),
                    _ => return Err(Form),
                }
                let (measure, numbers) = quantities(&written)?;
                let sigma = sigma_of(sigma).ok_or(Impossible("a sigma from 0.01 to 4"))?;
                let law = Law::Lognormal {
                    median: numbers[0],
                    sigma,
                };
                let bounds = match numbers[..] {
                    [_, low, high] => [low, high],
                    _ => [0.0, f64::INFINITY],
                };
                if numbers[0] == 0.0 {
                    return Err(Impossible("a median above zero"));
                }
                // Draws outside are drawn anew, which must come to an end.
                let [below, above] = bounds.map(|bound| share_below(bound / numbers[0], sigma));
                if above - below < LEAST_SHARE {
                    return Err(Impossible(
                        "bounds with a hundredth of the distribution or more",
                    ));
                }
                (law, measure, bounds, written)
            }
            _ => return Err(Form),
        };
        let [low, high] = bounds;
        if low >= high {
            return Err(Impossible("the first bound below the second"));
        }
        if law == Law::LogUniform && low == 0.0 {
            return Err(Impossible("bounds above zero, which have a logarithm"));
        }
        Ok(Distribution {
            law,
            measure,
            low,
            high,
            written: written.into_iter().map(String::from).collect(),
        })
    }

    /// The quantities that it is written with, as values of the key.
    pub(crate) fn bounds(&self) -> Vec<Toml> {
        let value = |text: &String| self.value(text);
        self.written.iter().map(value).collect()
    }

    /// One value of the key.
    pub(crate) fn draw(&self, rng: &mut Stream) -> Toml {
        let exact = loop {
            let drawn = self.law.draw(self.low, self.high, rng);
            if (self.low..=self.high).contains(&drawn) {
                break drawn;
            }
        };
        let places = SIGNIFICANT_DIGITS - 1;
        let rounded = format!("{exact:.places$e}").parse();
        let rounded: f64 = rounded.expect("a float has a decimal form");
        self.value(&self.measure.write(rounded.clamp(self.low, self.high)))
    }

    /// A quantity as a scenario has it: with a unit as text.
    fn value(&self, text: &str) -> Toml {
        match self.measure {
            Measure::Count => text.parse::<i64>().map_or_else(|_| text.into(), Toml::from),
            Measure::Ratio => text.parse::<f64>().map_or_else(|_| text.into(), Toml::from),
            _ => text.into(),
        }
    }
}

impl Law {
    fn draw(self, low: f64, high: f64, rng: &mut Stream) -> f64 {
        match self {
            Law::Uniform => low + rng.next_share() * (high - low),
            Law::UniformWhole => low + (rng.next_share() * (high - low + 1.0)).floor(),
            Law::LogUniform => {
                let [from, to] = [low, high].map(libm::log);
                libm::exp(from + rng.next_share() * (to - from)).clamp(low, high)
            }
            Law::Lognormal { median, sigma } => {
                // Box and Muller: Ann. Math. Statist. 29(2) 1958. The second of the pair is not used.
                let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.next_share()));
                median * libm::exp(sigma * radius * libm::cos(TAU * rng.next_share()))
            }
        }
    }
}

/// Share of a lognormal distribution below so many medians.
fn share_below(medians: f64, sigma: f64) -> f64 {
    0.5 * libm::erfc(-libm::log(medians) / sigma / SQRT_2)
}

fn sigma_of(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let sigma = text.parse().ok().filter(|_| plain)?;
    (0.01..=4.0).contains(&sigma).then_some(sigma)
}
