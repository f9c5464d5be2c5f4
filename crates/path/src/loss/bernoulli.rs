//! Independent random loss: each packet is lost with the same probability,
//! what netem calls `loss random`.

use knee_units::rng::{Chance, Stream};

use super::{Loss, LossKind, LossSpec};

pub(super) const KIND: LossKind = LossKind {
    name: "random",
    summary: "each packet is lost with the same probability, independently (Bernoulli)",
    source: "tc-netem(8), loss random",
    example: "1.5%",
    read: |text, _| LossSpec::of_share(&KIND, text),
    build: |spec, rng| {
        Box::new(Bernoulli {
            chance: Chance::new(spec.share),
            rng,
        })
    },
};

pub(super) struct Bernoulli {
    pub(super) chance: Chance,
    pub(super) rng: Stream,
}

impl Loss for Bernoulli {
    #[inline]
    fn lose(&mut self) -> bool {
        self.chance.hits(&mut self.rng)
    }
}
