//! What happens to packets between the bottleneck and the far host besides a
//! constant delay: jitter, reordering, duplicates, and departures in bursts.

use crate::rng::{Chance, Stream};
use crate::trace::{Outage, Outages};
use crate::units::Nanos;

/// A direction's transit as a scenario has it.
#[derive(Clone, Debug, PartialEq)]
pub struct TransitSpec {
    /// How far the delay varies.
    pub jitter: Nanos,
    pub distribution: Distribution,
    /// May a packet overtake another because of jitter?
    pub jitter_reorders: bool,
    /// Share of packets that take `reorder_delay` less than the others.
    pub reorder: f64,
    pub reorder_delay: Nanos,
    /// Share of packets that arrive twice.
    pub duplicate: f64,
    /// Packets leave only at multiples of this; zero: at once.
    pub aggregate: Nanos,
    /// Packets wait for the end of these; for links without a rate, whose schedule knows of none.
    pub outages: Vec<Outage>,
}

/// How jitter is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// From `-jitter` to `+jitter`, all alike.
    Uniform,
    /// With `jitter` as the standard deviation.
    Normal,
}

impl TransitSpec {
    /// Nothing but the delay.
    pub const NONE: TransitSpec = TransitSpec {
        jitter: Nanos::ZERO,
        distribution: Distribution::Uniform,
        jitter_reorders: false,
        reorder: 0.0,
        reorder_delay: Nanos::ZERO,
        duplicate: 0.0,
        aggregate: Nanos::ZERO,
        outages: Vec::new(),
    };

    /// `stream` gives the draws of a component; `origin_ns`: the run's start on the
    /// engine's clock. `None` when packets only take their delay.
    pub fn build(&self, stream: impl Fn(&str) -> Stream, origin_ns: u64) -> Option<Box<Transit>> {
        let acts = self.jitter > Nanos::ZERO
            || self.reorder > 0.0
            || self.duplicate > 0.0
            || self.aggregate > Nanos::ZERO
            || !self.outages.is_empty();
        acts.then(|| {
            Box::new(Transit {
                origin_ns,
                jitter_ns: self.jitter.0,
                distribution: self.distribution,
                jitter_draws: stream("path.jitter"),
                reorder: Chance::new(self.reorder),
                reorder_ns: self.reorder_delay.0,
                reorder_draws: stream("path.reorder"),
                duplicate: Chance::new(self.duplicate),
                duplicate_draws: stream("path.duplicate"),
                aggregate_ns: self.aggregate.0,
                outages: Outages::new(&self.outages, origin_ns),
                keeps_order: self.keeps_order(),
            })
        })
    }

    fn keeps_order(&self) -> bool {
        !(self.jitter_reorders && self.jitter > Nanos::ZERO) && self.reorder == 0.0
    }
}

/// A direction's transit at work.
pub struct Transit {
    origin_ns: u64,
    jitter_ns: u64,
    distribution: Distribution,
    jitter_draws: Stream,
    reorder: Chance,
    reorder_ns: u64,
    reorder_draws: Stream,
    duplicate: Chance,
    duplicate_draws: Stream,
    aggregate_ns: u64,
    outages: Outages,
    keeps_order: bool,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub at_ns: u64,
    /// A second copy arrives right behind it.
    pub twice: bool,
}

impl Transit {
    /// Do packets of the same delay arrive in the order they came?
    pub fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    /// A packet whose delay is `delay_ns` has left the bottleneck at `now_ns`.
    pub fn pass(&mut self, now_ns: u64, delay_ns: u64) -> Arrival {
        let mut leaves_ns = self.outages.up_at(now_ns);
        if self.aggregate_ns > 0 {
            // A lab has traffic before the run begins: it leaves at the beginning.
            let since = leaves_ns.saturating_sub(self.origin_ns);
            leaves_ns = self.origin_ns + since.next_multiple_of(self.aggregate_ns);
        }
        let mut delay_ns = if self.jitter_ns > 0 {
            delay_ns.saturating_add_signed(self.draw_jitter())
        } else {
            delay_ns
        };
        if self.reorder.hits(&mut self.reorder_draws) {
            delay_ns = delay_ns.saturating_sub(self.reorder_ns);
        }
        Arrival {
            at_ns: leaves_ns + delay_ns,
            twice: self.duplicate.hits(&mut self.duplicate_draws),
        }
    }

    fn draw_jitter(&mut self) -> i64 {
        let rng = &mut self.jitter_draws;
        // Whole numbers, so that every platform draws alike.
        let scaled = match self.distribution {
            Distribution::Uniform => i128::from(rng.next_u32()) * 2 - (1 << 32),
            // The sum of twelve draws of 0 .. 1 less 6 has the deviation 1 and is normal
            // up to about three of them.
            Distribution::Normal => {
                (0..12).map(|_| i128::from(rng.next_u32())).sum::<i128>() - (6 << 32)
            }
        };
        ((scaled * i128::from(self.jitter_ns)) >> 32) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(spec: &TransitSpec) -> Transit {
        *spec.build(|name| Stream::new(1, name), 0).expect("it acts")
    }

    fn spread(distribution: Distribution) -> (f64, f64, f64) {
        let mut transit = build(&TransitSpec {
            jitter: Nanos::from_ms(2),
            distribution,
            ..TransitSpec::NONE
        });
        let delays: Vec<f64> = (0..200_000)
            .map(|_| transit.pass(0, 50_000_000).at_ns as f64 / 1e6 - 50.0)
            .collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        let deviation =
            (delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / delays.len() as f64).sqrt();
        let most = delays.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
        (mean, deviation, most)
    }

    #[test]
    fn uniform_jitter_stays_within_its_bounds_and_normal_has_it_as_deviation() {
        let (mean, deviation, most) = spread(Distribution::Uniform);
        assert!(mean.abs() < 0.02 && most <= 2.0, "{mean} {most}");
        assert!((deviation - 2.0 / 3f64.sqrt()).abs() < 0.01, "{deviation}");
        let (mean, deviation, most) = spread(Distribution::Normal);
        assert!(mean.abs() < 0.02 && (deviation - 2.0).abs() < 0.02);
        assert!(most > 6.0, "{most}");
    }

    #[test]
    fn shares_of_packets_overtake_and_come_twice() {
        let mut transit = build(&TransitSpec {
            reorder: 0.1,
            reorder_delay: Nanos::from_ms(3),
            duplicate: 0.02,
            ..TransitSpec::NONE
        });
        assert!(!transit.keeps_order());
        let arrivals: Vec<Arrival> = (0..100_000).map(|_| transit.pass(7, 5_000_000)).collect();
        let early = arrivals.iter().filter(|a| a.at_ns == 2_000_007).count();
        let late = arrivals.iter().filter(|a| a.at_ns == 5_000_007).count();
        assert_eq!(early + late, arrivals.len());
        assert!((9_600..10_400).contains(&early), "{early}");
        let twice = arrivals.iter().filter(|a| a.twice).count();
        assert!((1_800..2_200).contains(&twice), "{twice}");
    }

    #[test]
    fn bursts_leave_at_multiples_of_the_interval() {
        let mut transit = build(&TransitSpec {
            aggregate: Nanos::from_ms(4),
            ..TransitSpec::NONE
        });
        assert!(transit.keeps_order());
        let at_ms = |ms: u64| ms * 1_000_000;
        for (now_ms, leaves_ms) in [(0, 0), (1, 4), (4, 4), (5, 8), (11, 12)] {
            let arrival = transit.pass(at_ms(now_ms), at_ms(10));
            assert_eq!(arrival.at_ns, at_ms(leaves_ms + 10));
        }
    }

    #[test]
    fn packet_from_before_the_run_leaves_when_it_begins() {
        let spec = TransitSpec {
            aggregate: Nanos::from_ms(4),
            ..TransitSpec::NONE
        };
        let mut transit = *spec.build(|name| Stream::new(1, name), 9_000).unwrap();
        assert_eq!(transit.pass(2_000, 10).at_ns, 9_010);
    }
}
