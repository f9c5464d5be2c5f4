//! Transfers that come and go: each a connection of its own, with slow start and
//! a completion time.
//!
//! When they come and how large they are is drawn from the repetition's seed
//! before the run, so that both engines carry the same transfers.

use knee_units::Nanos;
use knee_units::rng::Stream;
use serde::Serialize;

use super::WorkloadKind;
use super::sizes::SizeSpec;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "web",
    summary: "transfers of random sizes at random times, a connection and a row of the flows table each; completion time counts",
    keys: &["load", "arrivals", "arrival_process", "sizes", "write"],
};

/// When transfers come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ArrivalProcess {
    /// With exponential times between them, independent of each other.
    Poisson,
    /// At even times.
    Regular,
}

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub at: Nanos,
    pub bytes: u64,
}

/// How transfers come.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arrivals {
    /// Mean time between two.
    pub gap_ns: f64,
    pub process: ArrivalProcess,
    pub sizes: SizeSpec,
}

impl Arrivals {
    pub fn per_sec(&self) -> f64 {
        1e9 / self.gap_ns
    }

    /// What they ask of the network in the long run, payload.
    pub fn load_bits_per_sec(&self) -> f64 {
        self.per_sec() * self.sizes.mean_bytes() * 8.0
    }

    /// Those from `from` to `until`, in order; times and sizes have streams of their own.
    pub fn draw(
        &self,
        from: Nanos,
        until: Nanos,
        mut times: Stream,
        mut sizes: Stream,
    ) -> Vec<Arrival> {
        let mut list = Vec::new();
        let mut at_ns = from.0 as f64;
        loop {
            at_ns += match self.process {
                ArrivalProcess::Poisson => -libm::log(1.0 - times.next_share()) * self.gap_ns,
                ArrivalProcess::Regular => self.gap_ns,
            };
            let at = Nanos(at_ns as u64);
            if at >= until {
                return list;
            }
            let bytes = self.sizes.draw(&mut sizes);
            list.push(Arrival { at, bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use knee_units::files::Files;

    use super::*;

    fn arrivals(sizes: &str, per_sec: f64, process: ArrivalProcess) -> Arrivals {
        Arrivals {
            gap_ns: 1e9 / per_sec,
            process,
            sizes: SizeSpec::read(sizes, Files::NONE).expect("a distribution"),
        }
    }

    fn draw(arrivals: &Arrivals, seconds: u64) -> Vec<Arrival> {
        let stream = |name| Stream::new(3, name);
        let from = Nanos::from_secs(2);
        arrivals.draw(
            from,
            from + Nanos::from_secs(seconds),
            stream("times"),
            stream("sizes"),
        )
    }

    #[test]
    fn long_run_offers_the_load_that_is_asked() {
        // 200,000 transfers: their number is off by 0.22 %, and their bytes by
        // 2.3 / sqrt(200,000) = 0.5 %, one standard deviation each.
        let web = arrivals("lognormal", 200.0, ArrivalProcess::Poisson);
        let list = draw(&web, 1_000);
        let bits = list.iter().map(|a| a.bytes as f64 * 8.0).sum::<f64>();
        let ratio = bits / 1_000.0 / web.load_bits_per_sec();
        assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    }

    #[test]
    fn poisson_counts_have_the_variance_of_their_mean() {
        let list = draw(&arrivals("pareto", 50.0, ArrivalProcess::Poisson), 2_000);
        let mut counts = vec![0.0f64; 2_000];
        for arrival in &list {
            counts[(arrival.at.0 / 1_000_000_000 - 2) as usize] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 2_000.0;
        let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 2_000.0;
        // Deviations: 0.16 of the mean, 1.6 of the variance.
        assert!((mean - 50.0).abs() < 0.6, "{mean}");
        assert!((variance / mean - 1.0).abs() < 0.13, "{}", variance / mean);
    }

    #[test]
    fn regular_transfers_come_at_even_times_and_none_at_the_end() {
        let list = draw(&arrivals("pareto", 4.0, ArrivalProcess::Regular), 1);
        let at: Vec<u64> = list.iter().map(|a| a.at.0 / 1_000_000).collect();
        assert_eq!(at, [2_250, 2_500, 2_750]);
    }
}
