//! Independent random loss: each packet is lost with the same probability,
//! what netem calls `loss random`.

use super::{Loss, LossKind};
use crate::rng::Stream;

pub(super) const KIND: LossKind = LossKind {
    name: "random",
    summary: "each packet is lost with the same probability, independently (Bernoulli)",
    source: "tc-netem(8), loss random",
    build: |share, rng| {
        Box::new(Bernoulli {
            threshold: (share * (1u64 << 53) as f64) as u64,
            rng,
        })
    },
};

struct Bernoulli {
    /// A 53-bit draw below this is a loss; 53 bits, because that is what an
    /// f64 share can express.
    threshold: u64,
    rng: Stream,
}

impl Loss for Bernoulli {
    #[inline]
    fn lose(&mut self) -> bool {
        self.rng.next_u64() >> 11 < self.threshold
    }
}
