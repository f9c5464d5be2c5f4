//! What the tests of impairments share.

use knee_units::rng::Stream;

use super::{Impairment, ImpairmentSpec, Passage, Setup};

pub fn build(spec: &ImpairmentSpec, origin_ns: u64) -> Box<dyn Impairment> {
    let rng = Stream::new(1, &format!("path.{}", spec.kind.name));
    (spec.kind.build)(spec, Setup { rng, origin_ns })
}

/// What becomes of a packet that leaves the bottleneck at `now_ns` and would take `delay_ns`.
pub fn pass(impairment: &mut dyn Impairment, now_ns: u64, delay_ns: u64) -> Passage {
    let mut passage = Passage {
        leaves_ns: now_ns,
        delay_ns,
        copies: 1,
    };
    impairment.act(&mut passage);
    passage
}
