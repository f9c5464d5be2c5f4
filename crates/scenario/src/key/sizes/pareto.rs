//! Pareto between two bounds: most transfers small, most bytes in few.

use std::fmt;

use knee_units::files::Files;
use knee_units::rng::Stream;
use knee_units::text::TextError;
use serde::Serialize;

use super::{SizeKind, SizeSpec, Words};

pub(super) const KIND: SizeKind = SizeKind {
    name: "pareto",
    summary: "Pareto, cut at both ends; web objects have a shape of 1.1 to 1.3, and the defaults would have a mean of 12 kB without the upper bound",
    source: "heavy tail: Crovella, Bestavros: IEEE/ACM ToN 5(6) 1997; shape 1.2, mean 12: Feldmann et al., SIGCOMM 1999; the upper bound is tcpknee's",
    example: "pareto shape 1.2 from 2kB to 100MB",
    read,
};

/// Shape and bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pareto {
    pub shape: f64,
    pub min_bytes: u64,
    pub max_bytes: u64,
}

fn read(text: &str, _files: Files<'_>) -> Result<SizeSpec, TextError> {
    let mut words = Words::new(text)?;
    let shape = words.number("shape", 1.2, 0.1, 10.0)?;
    let [min_bytes, max_bytes] = words.bounds([2_000, 100_000_000])?;
    Ok(SizeSpec::Pareto(Pareto {
        shape,
        min_bytes,
        max_bytes,
    }))
}

impl Pareto {
    /// Share of the unbounded distribution within the bounds.
    fn kept(&self) -> f64 {
        1.0 - libm::pow(self.min_bytes as f64 / self.max_bytes as f64, self.shape)
    }

    pub(super) fn draw(&self, rng: &mut Stream) -> f64 {
        let above = 1.0 - rng.next_share() * self.kept();
        self.min_bytes as f64 * libm::pow(above, -1.0 / self.shape)
    }

    pub(super) fn mean_bytes(&self) -> f64 {
        let (low, high) = (self.min_bytes as f64, self.max_bytes as f64);
        let rest = 1.0 - self.shape;
        // The integral of x^-shape, whose form at a shape of 1 is another.
        let integral = if rest.abs() < 1e-9 {
            libm::log(high / low)
        } else {
            (libm::pow(high / low, rest) - 1.0) / rest
        };
        self.shape * low * integral / self.kept()
    }

    pub(super) fn share_up_to(&self, bytes: f64) -> f64 {
        let bytes = bytes.clamp(self.min_bytes as f64, self.max_bytes as f64);
        (1.0 - libm::pow(self.min_bytes as f64 / bytes, self.shape)) / self.kept()
    }
}

impl fmt::Display for Pareto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pareto {
            shape,
            min_bytes,
            max_bytes,
        } = self;
        write!(f, "pareto shape {shape} from {min_bytes}B to {max_bytes}B")
    }
}
