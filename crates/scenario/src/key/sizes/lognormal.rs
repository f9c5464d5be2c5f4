//! Lognormal between two bounds.

use std::f64::consts::{SQRT_2, TAU};
use std::fmt;

use knee_units::files::Files;
use knee_units::rng::Stream;
use knee_units::text::TextError;
use serde::Serialize;

use super::{MOST_BYTES, SizeKind, SizeSpec, Words};

pub(super) const KIND: SizeKind = SizeKind {
    name: "lognormal",
    summary: "lognormal, cut at both ends; median and bounds of the distribution before it is cut, sigma of its logarithm",
    source: "main object of a web page: 3GPP2 C.R1002, IEEE 802.16m-08/004 (mean 10710 B, deviation 25032 B, from 100 B to 2 MB)",
    example: "lognormal median 4316B sigma 1.37 from 100B to 2MB",
    read,
};

/// Median and deviation of the logarithm, and bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lognormal {
    pub median_bytes: u64,
    pub sigma: f64,
    pub min_bytes: u64,
    pub max_bytes: u64,
}

fn read(text: &str, _files: Files<'_>) -> Result<SizeSpec, TextError> {
    let mut words = Words::new(text)?;
    let median_bytes = words.bytes("median", 4_316)?;
    let sigma = words.number("sigma", 1.37, 0.01, 4.0)?;
    let [min_bytes, max_bytes] = words.bounds([100, 2_000_000])?;
    // Draws outside are drawn anew: with the median inside, no more than half are.
    if !(min_bytes..=max_bytes.min(MOST_BYTES)).contains(&median_bytes) {
        return Err(TextError::Impossible(format!(
            "a median within the bounds, {min_bytes}B to {max_bytes}B"
        )));
    }
    Ok(SizeSpec::Lognormal(Lognormal {
        median_bytes,
        sigma,
        min_bytes,
        max_bytes,
    }))
}

impl Lognormal {
    pub(super) fn draw(&self, rng: &mut Stream) -> f64 {
        loop {
            // Box and Muller: Ann. Math. Statist. 29(2) 1958. The second of the pair is not used.
            let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.next_share()));
            let normal = radius * libm::cos(TAU * rng.next_share());
            let bytes = self.median_bytes as f64 * libm::exp(self.sigma * normal);
            if (self.min_bytes as f64..=self.max_bytes as f64).contains(&bytes) {
                return bytes;
            }
        }
    }

    /// How many deviations of its logarithm a size lies above the median.
    fn deviations(&self, bytes: f64) -> f64 {
        libm::log(bytes / self.median_bytes as f64) / self.sigma
    }

    fn bounds(&self) -> [f64; 2] {
        [self.min_bytes, self.max_bytes].map(|bytes| self.deviations(bytes as f64))
    }

    pub(super) fn mean_bytes(&self) -> f64 {
        let [low, high] = self.bounds();
        let uncut = self.median_bytes as f64 * libm::exp(self.sigma * self.sigma / 2.0);
        let within = |shift: f64| below(high - shift) - below(low - shift);
        uncut * within(self.sigma) / within(0.0)
    }

    pub(super) fn share_up_to(&self, bytes: f64) -> f64 {
        let [low, high] = self.bounds();
        let at = self.deviations(bytes.max(1.0)).clamp(low, high);
        (below(at) - below(low)) / (below(high) - below(low))
    }
}

/// Share of the normal distribution below so many deviations.
fn below(deviations: f64) -> f64 {
    0.5 * libm::erfc(-deviations / SQRT_2)
}

impl fmt::Display for Lognormal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lognormal {
            median_bytes,
            sigma,
            min_bytes,
            max_bytes,
        } = self;
        write!(
            f,
            "lognormal median {median_bytes}B sigma {sigma} from {min_bytes}B to {max_bytes}B"
        )
    }
}
