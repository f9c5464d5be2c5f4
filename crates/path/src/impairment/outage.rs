//! The link sends nothing for a while.

use std::borrow::Cow;

use knee_units::Nanos;

use super::{Form, Impairment, ImpairmentKind, Key, Passage, Stage, Value};
use crate::trace::{Outage, Outages};

pub(super) const KIND: ImpairmentKind = ImpairmentKind {
    name: "outage",
    summary: "the link sends nothing for a while; what comes meanwhile waits",
    source: "tcpknee",
    keys: &[Key {
        name: "outage",
        form: Form::Outages,
        default: Value::Outages(Cow::Borrowed(&[])),
        example: Value::Outages(Cow::Borrowed(&[Outage {
            start: Nanos::from_secs(1),
            length: Nanos::from_ms(100),
        }])),
        doc: "when the link sends nothing, in either direction; what comes meanwhile waits, in the queue where there is one",
        source: "tcpknee",
    }],
    stage: Stage::Link,
    both_ways: true,
    is_random: false,
    keeps_order: |_| true,
    netem: None,
    build: |spec, setup| Box::new(Outages::new(spec.outages("outage"), setup.origin_ns)),
};

/// Behind a link without a rate, whose schedule knows of none.
impl Impairment for Outages {
    fn act(&mut self, passage: &mut Passage) {
        passage.leaves_ns = self.up_at(passage.leaves_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ImpairmentSpec;
    use super::super::testing::{build, pass};
    use super::*;

    #[test]
    fn packets_wait_for_the_end_of_an_outage() {
        let mut outage = build(&ImpairmentSpec::example(&KIND), 5);
        let at_ms = |ms: u64| ms * 1_000_000 + 5;
        for (now_ms, leaves_ms) in [(999, 999), (1_000, 1_100), (1_050, 1_100), (1_101, 1_101)] {
            let passage = pass(&mut *outage, at_ms(now_ms), 0);
            assert_eq!(passage.arrives_ns(), at_ms(leaves_ms));
        }
    }
}
