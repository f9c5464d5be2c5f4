//! Random streams: one per component, so that adding a component changes no
//! other component's draws.

use std::fmt::{self, Write as _};
use std::hash::Hasher as _;

use fnv::FnvHasher;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Nanos;

/// A component's own stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of `component` (a path such as `path.loss` or `flow.3.cc`)
    /// in a run with this seed.
    pub fn new(seed: u64, component: &str) -> Stream {
        Stream::named(seed, format_args!("{component}"))
    }

    /// The same of a name that is never put together.
    pub fn named(seed: u64, component: fmt::Arguments<'_>) -> Stream {
        // The generator's own seeding (SplitMix64) spreads the bits.
        let mut name = Name(FnvHasher::default());
        name.write_fmt(component).expect("a hash takes everything");
        let Name(hash) = name;
        Stream(Xoshiro256PlusPlus::seed_from_u64(
            hash.finish() ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    }

    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// 0 <= u < 1, in steps of 2^-53.
    pub fn next_share(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The hash of what is written to it.
struct Name(FnvHasher);

impl fmt::Write for Name {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.write(part.as_bytes());
        Ok(())
    }
}

/// How late a host is: delays that are exponential, so that half are below
/// 0.69 of their mean, a tenth above 2.3 times and a hundredth above 4.6 times.
#[derive(Clone, Debug)]
pub struct Lateness {
    mean_ns: f64,
    draws: Stream,
}

impl Lateness {
    pub fn new(mean: Nanos, draws: Stream) -> Lateness {
        Lateness {
            mean_ns: mean.0 as f64,
            draws,
        }
    }

    pub fn draw(&mut self) -> Nanos {
        Nanos((-libm::log(1.0 - self.draws.next_share()) * self.mean_ns) as u64)
    }
}

/// Something that happens with a fixed probability.
#[derive(Clone, Copy, Debug)]
pub struct Chance {
    /// A 53-bit draw below this is a hit; 53 bits, because that is what an f64 share can express.
    threshold: u64,
}

impl Chance {
    /// `share`: 0 ..= 1.
    pub fn new(share: f64) -> Chance {
        Chance {
            threshold: (share * (1u64 << 53) as f64) as u64,
        }
    }

    #[inline]
    pub fn hits(self, rng: &mut Stream) -> bool {
        rng.next_u64() >> 11 < self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_exponential_about_its_mean() {
        let mut lateness = Lateness::new(Nanos::from_us(20), Stream::new(1, "noise"));
        let mut drawn: Vec<f64> = (0..200_000)
            .map(|_| lateness.draw().0 as f64 / 1e3)
            .collect();
        drawn.sort_by(f64::total_cmp);
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((mean - 20.0).abs() < 0.2, "{mean}");
        for (share, expected) in [(0.5, 2_f64), (0.9, 10.0), (0.99, 100.0)] {
            let got = drawn[(share * drawn.len() as f64) as usize];
            assert!(
                (got / (20.0 * expected.ln()) - 1.0).abs() < 0.03,
                "{share}: {got}"
            );
        }
    }
}
