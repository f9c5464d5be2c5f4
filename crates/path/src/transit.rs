//! A direction's impairments at work, one after the other.

use knee_units::rng::Stream;

use crate::impairment::{Impairment, ImpairmentSpec, Passage, Setup};

/// What happens to packets behind the bottleneck, in one direction.
pub struct Transit {
    /// In order of their stages.
    steps: Vec<Box<dyn Impairment>>,
    keeps_order: bool,
}

impl Transit {
    /// `stream` gives the draws of each; `origin_ns`: the run's start on the engine's clock. `None` when packets only
    /// take their delay.
    pub fn build<'s>(
        specs: impl Iterator<Item = &'s ImpairmentSpec>,
        stream: impl Fn(&ImpairmentSpec) -> Stream,
        origin_ns: u64,
    ) -> Option<Box<Transit>> {
        let mut specs: Vec<&ImpairmentSpec> = specs.collect();
        specs.sort_by_key(|spec| spec.kind.stage);
        let build = |spec: &&ImpairmentSpec| {
            let rng = stream(spec);
            (spec.kind.build)(spec, Setup { rng, origin_ns })
        };
        (!specs.is_empty()).then(|| {
            Box::new(Transit {
                steps: specs.iter().map(build).collect(),
                keeps_order: specs.iter().all(|spec| spec.keeps_order()),
            })
        })
    }

    /// Do packets of the same delay arrive in the order they came?
    pub fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    /// A packet whose delay is `delay_ns` has left the bottleneck at `now_ns`.
    pub fn pass(&mut self, now_ns: u64, delay_ns: u64) -> Passage {
        let mut passage = Passage {
            leaves_ns: now_ns,
            delay_ns,
            copies: 1,
        };
        for step in &mut self.steps {
            step.act(&mut passage);
        }
        passage
    }
}

#[cfg(test)]
mod tests {
    use knee_units::Nanos;

    use super::*;
    use crate::impairment::{Impairments, Value, find};
    use crate::trace::Outage;

    #[test]
    fn stages_act_in_their_order_whatever_the_order_of_the_list() {
        let outage = Outage {
            start: Nanos::from_ms(2),
            length: Nanos::from_ms(3),
        };
        let spec = |name, value| ImpairmentSpec::new(find(name).unwrap(), &[(name, value)]);
        let specs = Impairments::NONE
            .with(spec("reorder", Value::Share(1.0)))
            .with(spec("aggregate", Value::Time(Nanos::from_ms(4))))
            .with(spec("outage", Value::Outages(vec![outage].into())));
        let build =
            |specs: &Impairments| Transit::build(specs.iter(), |_| Stream::new(1, "draws"), 0);
        let mut transit = build(&specs).expect("it acts");
        assert!(!transit.keeps_order());
        // The outage ends at 5 ms, the burst leaves at 8 ms and takes 1 ms less.
        let passage = transit.pass(2_500_000, 10_000_000);
        assert_eq!(passage.arrives_ns(), 17_000_000);
        assert!(build(&Impairments::NONE).is_none());
    }

    #[test]
    fn impairment_that_does_nothing_is_not_built() {
        let idle = ImpairmentSpec::new(find("jitter").unwrap(), &[]);
        let specs = Impairments::NONE.with(idle);
        assert_eq!(specs.iter().count(), 0);
    }
}
