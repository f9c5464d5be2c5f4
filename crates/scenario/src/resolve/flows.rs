//! The flows of a cell: what they run, when, and what they are called.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use knee_units::Nanos;

use super::Resolver;
use crate::error::{Problem, ScenarioError};
use crate::keys::Section;
use crate::value::Value;
use crate::workload::web::{ArrivalProcess, Arrivals};
use crate::{FlowSpec, Pacing, WorkloadSpec};

/// Most connections of a cell.
const MAX_CONNECTIONS: u64 = 1_000_000;

/// Names of a cell's flows.
struct FlowNames {
    taken: HashSet<String>,
    /// The number to try next for flows of an algorithm: those below it are
    /// taken, and trying them again for each of thousands of flows takes minutes.
    next: HashMap<String, u32>,
}

impl FlowNames {
    /// Takes the first of `cubic`, `cubic_2`, `cubic_3` … that no flow has.
    fn free(&mut self, algorithm: &str) -> String {
        let next = self.next.entry(algorithm.into()).or_insert(1);
        loop {
            let name = match *next {
                1 => algorithm.to_owned(),
                n => format!("{algorithm}_{n}"),
            };
            *next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

impl Resolver<'_> {
    /// The flows of the cell; `None` when one of them is refused.
    pub(super) fn flows(&self) -> Option<Vec<FlowSpec>> {
        let mut names = FlowNames {
            taken: self.explicit_names(),
            next: HashMap::new(),
        };
        let rtts = self.hop_rtts();
        let flows: Vec<Option<FlowSpec>> = (0..self.matrix.flow_lines.len())
            .map(|i| self.flow(Section::Flow(i), &rtts, &mut names))
            .collect();
        let flows: Vec<FlowSpec> = flows.into_iter().collect::<Option<_>>()?;
        self.attempt(|| self.check_connections(&flows))?;
        Some(flows)
    }

    fn check_connections(&self, flows: &[FlowSpec]) -> Result<(), ScenarioError> {
        let duration = self.duration(Section::Top, "duration");
        let mut connections = 0u64;
        for (i, flow) in flows.iter().enumerate() {
            let section = Section::Flow(i);
            let per_flow = match &flow.workload {
                WorkloadSpec::Web { arrivals, .. } => {
                    let seconds = duration.saturating_sub(flow.start).0 as f64 / 1e9;
                    (arrivals.per_sec() * seconds) as u64
                }
                other => u64::from(other.connections().unwrap_or(1)),
            };
            connections += flow.count as u64 * per_flow;
            if connections > MAX_CONNECTIONS {
                let expected = format!(
                    "at most {MAX_CONNECTIONS} connections in all, and this makes {connections}"
                );
                let (key, next) = match &flow.workload {
                    WorkloadSpec::Web { .. } if self.value(section, "load").is_some() => {
                        ("load", "Ask for less, or for larger sizes.")
                    }
                    WorkloadSpec::Web { .. } => ("arrivals", "Ask for fewer."),
                    _ if flow.count == 1 && per_flow > 1 => ("connections", "Lower the count."),
                    _ => ("count", "Lower the count."),
                };
                return Err(self.refuse(section, key, expected, next));
            }
        }
        Ok(())
    }

    fn flow(&self, section: Section, rtts: &[Nanos], names: &mut FlowNames) -> Option<FlowSpec> {
        let algorithm = self.text(section, "algorithm");
        let name = self
            .optional_text(section, "name")
            .unwrap_or_else(|| names.free(&algorithm));
        let starts = self.attempt(|| self.starts(section));
        let workload = self.attempt(|| self.workload(section));
        let hops = self.attempt(|| self.flow_hops(section, rtts.len()))?;
        let rtt = self.attempt(|| {
            self.look_at_hop_rtts();
            self.flow_rtt(section, rtts, hops.clone())
        });
        let (start, stagger) = starts?;
        Some(FlowSpec {
            name,
            algorithm,
            params: self
                .point
                .params(section, "algorithm")
                .into_iter()
                .map(|(name, value)| (name, value as u32))
                .collect(),
            workload: workload?,
            count: self.count(section, "count") as u32,
            start,
            stagger,
            rtt: rtt?,
            hops,
            blocking: self.flag(section, "blocking"),
            pacing: self
                .value(section, "pacing")
                .map(|_| Pacing::named(self.name(section, "pacing"))),
            max_pacing_rate: self.rate(section, "max_pacing_rate"),
        })
    }

    fn flow_hops(&self, section: Section, n_hops: usize) -> Result<Range<usize>, ScenarioError> {
        match self.value(section, "hops") {
            None => Ok(0..n_hops),
            Some(&Value::Range(first, last)) if last <= n_hops => Ok(first - 1..last),
            Some(_) => {
                let (expected, next) = match self.matrix.n_hops {
                    0 => (
                        "\"1\", because [path] is the only hop",
                        "[[hop]] tables make more.",
                    ),
                    _ => ("hops that the file has", "Count the [[hop]] tables from 1."),
                };
                let expected = format!("{expected}: there are {n_hops}");
                Err(self.refuse(section, "hops", expected, next))
            }
        }
    }

    /// Its own base RTT, which is at least what all but one of its hops take.
    fn flow_rtt(
        &self,
        section: Section,
        rtts: &[Nanos],
        hops: Range<usize>,
    ) -> Result<Nanos, ScenarioError> {
        let sum = |hops: &[Nanos]| Nanos(hops.iter().map(|rtt| rtt.0).sum());
        let crossed = &rtts[hops];
        if self.value(section, "rtt").is_none() {
            return Ok(sum(crossed));
        }
        let rtt = self.duration(section, "rtt");
        if crossed.len() > 1 && rtt < sum(crossed) {
            let expected = format!("at least {}, what its hops take", sum(crossed));
            return Err(self.refuse(
                section,
                "rtt",
                expected,
                "Leave it out to have just that, or shorten the hops.",
            ));
        }
        Ok(rtt)
    }

    fn workload(&self, section: Section) -> Result<WorkloadSpec, ScenarioError> {
        Ok(match self.name(section, "workload") {
            "bulk" => WorkloadSpec::Bulk {
                write_bytes: self.bytes(section, "write"),
            },
            "transfer" => {
                if self.value(section, "bytes").is_none() {
                    let line = self
                        .point
                        .get(section, "workload")
                        .map_or(1, |(_, entry)| entry.line);
                    let problem = Problem::Missing {
                        key: section.path_of("bytes"),
                        expected: "how much workload \"transfer\" carries".into(),
                        next: "Add bytes = \"1MB\" or another amount in [[flow]].".into(),
                    };
                    return Err(self.error(line, problem));
                }
                WorkloadSpec::Transfer {
                    bytes: self.bytes(section, "bytes"),
                    write_bytes: self.bytes(section, "write"),
                }
            }
            "on-off" => WorkloadSpec::OnOff {
                on: self.duration(section, "on"),
                off: self.duration(section, "off"),
                write_bytes: self.bytes(section, "write"),
            },
            "request-response" => WorkloadSpec::RequestResponse {
                request_bytes: self.bytes(section, "request"),
                response_bytes: self.bytes(section, "response"),
                connections: self.count(section, "connections") as u32,
                depth: self.count(section, "depth") as u32,
                requests: match self.value(section, "requests") {
                    Some(Value::Count(n)) => Some(*n),
                    _ => None,
                },
            },
            "web" => WorkloadSpec::Web {
                arrivals: self.arrivals(section)?,
                write_bytes: self.bytes(section, "write"),
            },
            "programs" => {
                let Some(client) = self.optional_text(section, "client") else {
                    let line = self
                        .point
                        .get(section, "workload")
                        .map_or(1, |(_, entry)| entry.line);
                    let problem = Problem::Missing {
                        key: section.path_of("client"),
                        expected: "the command that workload \"programs\" runs".into(),
                        next: "Add client = \"redis-benchmark -h {server}\" or another command in [[flow]]."
                            .into(),
                    };
                    return Err(self.error(line, problem));
                };
                WorkloadSpec::Programs {
                    server: self.optional_text(section, "server"),
                    client,
                }
            }
            other => unreachable!("workload {other} is in the registry but not resolved"),
        })
    }

    fn arrivals(&self, section: Section) -> Result<Arrivals, ScenarioError> {
        let sizes = self.sizes(section, "sizes");
        let load = self
            .value(section, "load")
            .map(|_| self.rate(section, "load"));
        let per_sec = self
            .value(section, "arrivals")
            .map(|_| self.per_sec(section, "arrivals"));
        let gap_ns = match (load, per_sec) {
            (Some(Some(rate)), None) => sizes.mean_bytes() * 8.0 / rate.bits_per_sec() as f64 * 1e9,
            (None, Some(per_sec)) => 1e9 / per_sec,
            (Some(None), _) => {
                let expected = "a rate such as \"20Mbit/s\"".into();
                return Err(self.refuse(section, "load", expected, "No network carries more."));
            }
            (Some(_), Some(_)) => {
                let expected = format!("it alone, without {}", section.path_of("load"));
                return Err(self.refuse(section, "arrivals", expected, "Remove one of them."));
            }
            (None, None) => {
                let line = self
                    .point
                    .get(section, "workload")
                    .map_or(1, |(_, entry)| entry.line);
                let problem = Problem::Missing {
                    key: section.path_of("load"),
                    expected: "how much traffic workload \"web\" makes".into(),
                    next: "Add load = \"20Mbit/s\", or arrivals = \"50/s\", in [[flow]].".into(),
                };
                return Err(self.error(line, problem));
            }
        };
        Ok(Arrivals {
            gap_ns,
            process: match self.name(section, "arrival_process") {
                "regular" => ArrivalProcess::Regular,
                _ => ArrivalProcess::Poisson,
            },
            sizes,
        })
    }

    /// Names that the file gives to flows: no two alike, none of another algorithm.
    fn explicit_names(&self) -> HashSet<String> {
        let mut names = HashSet::new();
        for i in 0..self.matrix.flow_lines.len() {
            let section = Section::Flow(i);
            self.attempt(|| {
                let Some(name) = self.optional_text(section, "name") else {
                    return Ok(());
                };
                if name != self.text(section, "algorithm") && self.names.algorithm(&name).is_some()
                {
                    let expected = "a name that is not another algorithm's".into();
                    return Err(self.refuse(
                        section,
                        "name",
                        expected,
                        "Expectations could not tell them apart.",
                    ));
                }
                if !names.insert(name) {
                    let expected = "a name that no other [[flow]] has".into();
                    return Err(self.refuse(section, "name", expected, "Choose another."));
                }
                Ok(())
            });
        }
        names
    }

    /// When the first of the flow's connections starts, and how much later each further one.
    fn starts(&self, section: Section) -> Result<(Nanos, Nanos), ScenarioError> {
        let duration = self.duration(Section::Top, "duration");
        let [start, stagger] = ["start", "stagger"].map(|key| self.duration(section, key));
        let before = format!(
            "before the end of the run at {}",
            self.label(Section::Top, "duration")
        );
        if start >= duration {
            return Err(self.refuse(
                section,
                "start",
                before,
                "Start it earlier, or lengthen the run.",
            ));
        }
        let count = self.count(section, "count");
        let last = start.0 as u128 + stagger.0 as u128 * (count as u128 - 1);
        if last >= duration.0 as u128 {
            let expected =
                format!("a stagger with which the last of {count} flows starts {before}");
            return Err(self.refuse(
                section,
                "stagger",
                expected,
                "Shorten it, or lengthen the run.",
            ));
        }
        Ok((start, stagger))
    }
}
