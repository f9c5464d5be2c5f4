//! Transfers that come and go: each a connection of its own, with slow start and
//! a completion time.
//!
//! When they come and how large they are is drawn from the repetition's seed
//! before the run, so that both engines carry the same transfers.

use crate::key::Default::{self, Words};
use crate::key::error::ScenarioError;
use crate::key::keyed::{self, Shown, named};
use crate::key::sizes::SizeSpec;
use crate::key::value::Value;
use crate::key::values::Values;
use crate::key::{Key, key, kind};
use knee_units::rng::Stream;
use knee_units::{Nanos, Rate};
use serde::Serialize;

use super::{
    Apps, Arrival, Counts, Example, WRITE, WRITE_BYTES, Workload, WorkloadKind, Write, transfer,
};

pub(super) static KIND: WorkloadKind = WorkloadKind {
    name: "web",
    summary: "transfers of random sizes at random times, a connection and a row of the flows table each; completion time counts",
    keys: KEYS,
    counts: Counts::Completion,
    draws: true,
    fewer: &[
        ("load", "Ask for less, or for larger sizes."),
        ("arrivals", "Ask for fewer."),
    ],
    example: Example {
        keys: "arrivals = \"1000/s\"\nsizes = \"web-search\"\nwrite = \"4000B\"",
        down_bytes: Some(23_456),
        up_bytes: 0,
    },
    read: |from| {
        let arrivals = Arrivals::read(from)?;
        let write_bytes = from.field(&[WRITE]);
        let web = Web {
            arrivals,
            write_bytes,
        };
        Ok(web.into())
    },
};

const KEYS: &[Key] = &[
    key(
        "load",
        &kind::Rate,
        Words("required by workload web, unless it has arrivals"),
        "payload that transfers ask for in the long run: a rate over the mean of sizes gives how often they come. Sizes with a heavy tail are far from their mean in a short run",
        "tcpknee",
    ),
    key(
        "arrivals",
        &kind::PerSec {
            min: 1e-3,
            max: 1e6,
        },
        Words("what load asks for"),
        "how many transfers come, in the long run",
        "tcpknee",
    ),
    PROCESS,
    SIZES,
    WRITE,
];

const PROCESS: Key = key(
    "arrival_process",
    &kind::Name("process", || ArrivalProcess::NAMES.to_vec()),
    Default::Value("poisson"),
    "when transfers come, from start to the run's end: independent of each other, or at even times",
    "Paxson, Floyd: IEEE/ACM ToN 3(3) 1995: sessions of users arrive as a Poisson process",
);

const SIZES: Key = key(
    "sizes",
    &kind::Sizes,
    Default::Value("pareto"),
    "how large transfers are; see below",
    "tcpknee",
);

/// Transfers that come and go, each a connection of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Web {
    pub arrivals: Arrivals,
    pub write_bytes: Write<WRITE_BYTES>,
}

impl Workload for Web {
    fn apps(&self, drawn_bytes: u64) -> Option<Apps> {
        Some(transfer::apps(drawn_bytes, self.write_bytes.0))
    }

    fn shown(&self) -> Vec<Shown> {
        let arrivals = &self.arrivals;
        let load = format!("{:.0}bit/s", arrivals.load_bits_per_sec());
        let mut lines = vec![
            Shown::Key("load", load),
            Shown::Derived {
                name: "arrivals_per_sec",
                value: format!("{:.3}", arrivals.per_sec()),
                doc: "transfers per second in the long run",
            },
        ];
        lines.extend(keyed::shown(&[PROCESS], &arrivals.process));
        lines.extend(keyed::shown(&[SIZES], &arrivals.sizes));
        lines.extend(keyed::shown(&[WRITE], &self.write_bytes));
        lines
    }

    fn connections(
        &self,
        from: Nanos,
        until: Nanos,
        stream: &dyn Fn(&str) -> Stream,
    ) -> Vec<Arrival> {
        let arrivals = &self.arrivals;
        arrivals.draw(from, until, stream("arrivals"), stream("sizes"))
    }

    fn expected_connections(&self, within: Nanos) -> u64 {
        (self.arrivals.per_sec() * (within.0 as f64 / 1e9)) as u64
    }

    fn transfer_bytes(&self, drawn_bytes: u64) -> Option<u64> {
        Some(drawn_bytes)
    }
}

named! {
    /// When transfers come.
    pub enum ArrivalProcess {
        /// With exponential times between them, independent of each other.
        Poisson = "poisson",
        /// At even times.
        Regular = "regular",
    }
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
    fn read(from: &dyn Values) -> Result<Arrivals, ScenarioError> {
        let sizes: SizeSpec = from.field(&[SIZES]);
        let load = from.value("load").map(Value::expect::<Option<Rate>>);
        let arrivals = from.value("arrivals").map(Value::expect::<f64>);
        let gap_ns = match (load, arrivals) {
            (Some(Some(rate)), None) => sizes.mean_bytes() * 8.0 / rate.bits_per_sec() as f64 * 1e9,
            (None, Some(per_sec)) => 1e9 / per_sec,
            (Some(None), _) => {
                let expected = "a rate such as \"20Mbit/s\"".into();
                return Err(from.refuse("load", expected, "No network carries more."));
            }
            (_, Some(_)) => {
                let expected = format!("it alone, without {}", from.path_of("load"));
                return Err(from.refuse("arrivals", expected, "Remove one of them."));
            }
            _ => {
                return Err(from.missing(
                    "load",
                    "how much traffic workload \"web\" makes",
                    "Add load = \"20Mbit/s\", or arrivals = \"50/s\", in [[flow]].",
                ));
            }
        };
        Ok(Arrivals {
            gap_ns,
            process: from.field(&[PROCESS]),
            sizes,
        })
    }

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
