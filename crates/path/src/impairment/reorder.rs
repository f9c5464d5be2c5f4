//! Some packets overtake the others.

use knee_units::Nanos;
use knee_units::rng::{Chance, Stream};

use super::{Form, Impairment, ImpairmentKind, Key, Passage, Stage, Value};

pub(super) const KIND: ImpairmentKind = ImpairmentKind {
    name: "reorder",
    summary: "a share of the packets takes less time than the others and overtakes them",
    source: "tc-netem(8), reorder",
    keys: &[
        Key {
            name: "reorder",
            form: Form::Share,
            default: Value::Share(0.0),
            example: Value::Share(0.01),
            doc: "data packets that overtake others behind the bottleneck",
            source: "tc-netem(8), reorder",
        },
        Key {
            name: "reorder_delay",
            form: Form::Time(Nanos::from_secs(10)),
            default: Value::Time(Nanos::from_ms(1)),
            example: Value::Time(Nanos::from_ms(5)),
            doc: "how much less time they take than the others",
            source: "tcpknee",
        },
    ],
    stage: Stage::Delay,
    both_ways: false,
    is_random: true,
    keeps_order: |_| false,
    netem: None,
    build: |spec, setup| {
        Box::new(Reorder {
            share: Chance::new(spec.share("reorder")),
            less_ns: spec.time("reorder_delay").0,
            rng: setup.rng,
        })
    },
};

struct Reorder {
    share: Chance,
    less_ns: u64,
    rng: Stream,
}

impl Impairment for Reorder {
    fn act(&mut self, passage: &mut Passage) {
        if self.share.hits(&mut self.rng) {
            passage.delay_ns = passage.delay_ns.saturating_sub(self.less_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ImpairmentSpec;
    use super::super::testing::{build, pass};
    use super::*;

    #[test]
    fn share_of_packets_takes_so_much_less_time() {
        let set = [
            ("reorder", Value::Share(0.1)),
            ("reorder_delay", Value::Time(Nanos::from_ms(3))),
        ];
        let mut reorder = build(&ImpairmentSpec::new(&KIND, &set), 0);
        let arrivals: Vec<u64> = (0..100_000)
            .map(|_| pass(&mut *reorder, 7, 5_000_000).arrives_ns())
            .collect();
        let count = |at_ns| arrivals.iter().filter(|&&ns| ns == at_ns).count();
        let (early, late) = (count(2_000_007), count(5_000_007));
        assert_eq!(early + late, arrivals.len());
        assert!((9_600..10_400).contains(&early), "{early}");
    }
}
