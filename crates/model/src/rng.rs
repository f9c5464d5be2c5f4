//! Random streams: one per component, so that adding a component changes no
//! other component's draws.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A component's own stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of `component` (a path such as `path.loss` or `flow.3.cc`)
    /// in a run with this seed.
    pub fn new(seed: u64, component: &str) -> Stream {
        // FNV-1a over the path; the generator's own seeding (SplitMix64)
        // spreads the bits.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in component.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Stream(Xoshiro256PlusPlus::seed_from_u64(
            hash ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
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
