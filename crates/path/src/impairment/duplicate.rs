//! Some packets arrive twice.

use knee_units::rng::{Chance, Stream};

use super::{Form, Impairment, ImpairmentKind, Key, Passage, Stage, Value};

pub(super) const KIND: ImpairmentKind = ImpairmentKind {
    name: "duplicate",
    summary: "a share of the packets arrives twice; the copy takes no time of the bottleneck",
    source: "tc-netem(8), duplicate",
    keys: &[Key {
        name: "duplicate",
        form: Form::Share,
        default: Value::Share(0.0),
        example: Value::Share(0.001),
        doc: "data packets that arrive twice",
        source: "tc-netem(8), duplicate",
    }],
    stage: Stage::Arrival,
    both_ways: false,
    is_random: true,
    keeps_order: |_| true,
    netem: None,
    build: |spec, setup| {
        Box::new(Duplicate {
            share: Chance::new(spec.share("duplicate")),
            rng: setup.rng,
        })
    },
};

struct Duplicate {
    share: Chance,
    rng: Stream,
}

impl Impairment for Duplicate {
    fn act(&mut self, passage: &mut Passage) {
        if self.share.hits(&mut self.rng) {
            passage.copies *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ImpairmentSpec;
    use super::super::testing::{build, pass};
    use super::*;

    #[test]
    fn share_of_packets_comes_twice_at_its_time() {
        let spec = ImpairmentSpec::new(&KIND, &[("duplicate", Value::Share(0.02))]);
        let mut duplicate = build(&spec, 0);
        let passages: Vec<Passage> = (0..100_000)
            .map(|_| pass(&mut *duplicate, 7, 5_000_000))
            .collect();
        assert!(
            passages
                .iter()
                .all(|passage| passage.arrives_ns() == 5_000_007)
        );
        let of = |copies| passages.iter().filter(|p| p.copies == copies).count();
        let twice = of(2);
        assert_eq!(of(1) + twice, passages.len());
        assert!((1_800..2_200).contains(&twice), "{twice}");
    }
}
