//! Packets leave in bursts.

use knee_units::Nanos;

use super::{Form, Impairment, ImpairmentKind, Key, Passage, Stage, Value};

pub(super) const KIND: ImpairmentKind = ImpairmentKind {
    name: "aggregate",
    summary: "packets leave only at multiples of a time, all that have come until then at once",
    source: "tcpknee",
    keys: &[Key {
        name: "aggregate",
        form: Form::Time(Nanos::from_secs(1)),
        default: Value::Time(Nanos::ZERO),
        example: Value::Time(Nanos::from_ms(4)),
        doc: "packets leave their link only at multiples of this time, in both directions, as from a wireless station that gathers them; 0s: at once",
        source: "tcpknee",
    }],
    stage: Stage::Departure,
    both_ways: true,
    is_random: false,
    keeps_order: |_| true,
    netem: None,
    build: |spec, setup| {
        Box::new(Aggregate {
            origin_ns: setup.origin_ns,
            interval_ns: spec.time("aggregate").0,
        })
    },
};

struct Aggregate {
    origin_ns: u64,
    interval_ns: u64,
}

impl Impairment for Aggregate {
    fn act(&mut self, passage: &mut Passage) {
        // A lab has traffic before the run begins: it leaves at the beginning.
        let since_ns = passage.leaves_ns.saturating_sub(self.origin_ns);
        passage.leaves_ns = self.origin_ns + since_ns.next_multiple_of(self.interval_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ImpairmentSpec;
    use super::super::testing::{build, pass};
    use super::*;

    fn four_ms(origin_ns: u64) -> Box<dyn Impairment> {
        let time = Value::Time(Nanos::from_ms(4));
        build(
            &ImpairmentSpec::new(&KIND, &[("aggregate", time)]),
            origin_ns,
        )
    }

    #[test]
    fn bursts_leave_at_multiples_of_the_interval() {
        let mut aggregate = four_ms(0);
        let at_ms = |ms: u64| ms * 1_000_000;
        for (now_ms, leaves_ms) in [(0, 0), (1, 4), (4, 4), (5, 8), (11, 12)] {
            let passage = pass(&mut *aggregate, at_ms(now_ms), at_ms(10));
            assert_eq!(passage.arrives_ns(), at_ms(leaves_ms + 10));
        }
    }

    #[test]
    fn packet_from_before_the_run_leaves_when_it_begins() {
        let mut aggregate = four_ms(9_000);
        assert_eq!(pass(&mut *aggregate, 2_000, 10).arrives_ns(), 9_010);
    }
}
