//! The delay varies from packet to packet.

use knee_units::Nanos;
use knee_units::rng::Stream;

use super::{Form, Impairment, ImpairmentKind, Key, Passage, Stage, Value};

pub(super) const KIND: ImpairmentKind = ImpairmentKind {
    name: "jitter",
    summary: "the delay varies from packet to packet",
    source: "tc-netem(8), delay",
    keys: &[
        Key {
            name: "jitter",
            form: Form::Time(Nanos::from_secs(10)),
            default: Value::Time(Nanos::ZERO),
            example: Value::Time(Nanos::from_ms(2)),
            doc: "how far the delay behind the bottleneck varies, in the data direction; it is never below zero",
            source: "tc-netem(8), delay",
        },
        Key {
            name: "jitter_distribution",
            form: Form::Word("distribution", || vec![UNIFORM, NORMAL]),
            default: Value::Word(UNIFORM),
            example: Value::Word(NORMAL),
            doc: "how jitter is spread: all alike from -jitter to +jitter, or with jitter as the standard deviation",
            source: "tc-netem(8), distribution",
        },
        Key {
            name: "jitter_reorders",
            form: Form::Flag,
            default: Value::Flag(false),
            example: Value::Flag(true),
            doc: "may a packet overtake another because of jitter? false: it arrives right behind the one before",
            source: "tcpknee",
        },
    ],
    stage: Stage::Delay,
    both_ways: false,
    is_random: true,
    keeps_order: |spec| !spec.flag("jitter_reorders"),
    netem: None,
    build: |spec, setup| {
        Box::new(Jitter {
            jitter_ns: spec.time("jitter").0,
            is_normal: spec.word("jitter_distribution") == NORMAL,
            rng: setup.rng,
        })
    },
};

const UNIFORM: &str = "uniform";
const NORMAL: &str = "normal";

struct Jitter {
    jitter_ns: u64,
    is_normal: bool,
    rng: Stream,
}

impl Impairment for Jitter {
    fn act(&mut self, passage: &mut Passage) {
        let rng = &mut self.rng;
        // Whole numbers, so that every platform draws alike.
        let scaled = if self.is_normal {
            // The sum of twelve draws of 0 .. 1 less 6 has the deviation 1 and is normal up to about three of them.
            (0..12).map(|_| i128::from(rng.next_u32())).sum::<i128>() - (6 << 32)
        } else {
            i128::from(rng.next_u32()) * 2 - (1 << 32)
        };
        let by_ns = ((scaled * i128::from(self.jitter_ns)) >> 32) as i64;
        passage.delay_ns = passage.delay_ns.saturating_add_signed(by_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ImpairmentSpec;
    use super::super::testing::{build, pass};
    use super::*;

    fn spread(distribution: &'static str) -> (f64, f64, f64) {
        let set = [
            ("jitter", Value::Time(Nanos::from_ms(2))),
            ("jitter_distribution", Value::Word(distribution)),
        ];
        let mut jitter = build(&ImpairmentSpec::new(&KIND, &set), 0);
        let delays: Vec<f64> = (0..200_000)
            .map(|_| pass(&mut *jitter, 0, 50_000_000).arrives_ns() as f64 / 1e6 - 50.0)
            .collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        let deviation =
            (delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / delays.len() as f64).sqrt();
        let most = delays.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
        (mean, deviation, most)
    }

    #[test]
    fn uniform_jitter_stays_within_its_bounds_and_normal_has_it_as_deviation() {
        let (mean, deviation, most) = spread(UNIFORM);
        assert!(mean.abs() < 0.02 && most <= 2.0, "{mean} {most}");
        assert!((deviation - 2.0 / 3f64.sqrt()).abs() < 0.01, "{deviation}");
        let (mean, deviation, most) = spread(NORMAL);
        assert!(mean.abs() < 0.02 && (deviation - 2.0).abs() < 0.02);
        assert!(most > 6.0, "{most}");
    }

    #[test]
    fn jitter_reorders_only_where_it_may() {
        let spec = |reorders| {
            let reorders = ("jitter_reorders", Value::Flag(reorders));
            ImpairmentSpec::new(&KIND, &[reorders])
        };
        assert!(spec(false).keeps_order());
        assert!(!spec(true).keeps_order());
    }
}
