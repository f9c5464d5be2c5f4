//! The flows of a cell: what they run, when, and what they are called.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::key::error::ScenarioError;
use crate::key::kind::list::Places;
use crate::key::value::Value;
use knee_units::Nanos;

use super::Resolver;
use crate::cell::FlowSpec;
use crate::keys::Section;
use crate::rules;
use crate::workload::{self, WorkloadSpec};

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
            let within = duration.saturating_sub(flow.start);
            let per_flow = flow.workload.expected_connections(within);
            connections += flow.count as u64 * per_flow;
            if connections > MAX_CONNECTIONS {
                let expected = format!(
                    "at most {MAX_CONNECTIONS} connections in all, and this makes {connections}"
                );
                let kind = flow.workload.kind();
                let is_set = |key: &str| self.value(section, key).is_some();
                let own = (kind.fewer.iter().copied()).find(|(key, _)| {
                    (kind.draws || flow.count == 1 && per_flow > 1) && is_set(key)
                });
                let (key, next) = own.unwrap_or(("count", "Lower the count."));
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
        let starts = self.attempt(|| self.check_starts(section));
        let workload = self.attempt(|| self.workload(section));
        let hops = self.attempt(|| self.flow_hops(section, rtts.len()))?;
        let rtt = self.attempt(|| {
            self.look_at_hop_rtts();
            self.flow_rtt(section, rtts, hops.clone())
        });
        starts?;
        let set = self.point.params(section, "algorithm").into_iter();
        let mut params: Vec<(String, u32)> =
            set.map(|(name, value)| (name, value as u32)).collect();
        let of_kernel =
            (self.point.release.into_iter()).flat_map(|release| rules::params(&algorithm, release));
        for (name, value) in of_kernel {
            if params.iter().all(|(known, _)| known != name) {
                params.push((name.into(), value));
            }
        }
        Some(FlowSpec::read(
            &self.values(section),
            name,
            algorithm,
            params,
            workload?,
            rtt?,
            hops,
        ))
    }

    fn flow_hops(&self, section: Section, n_hops: usize) -> Result<Range<usize>, ScenarioError> {
        match self.value(section, "hops").map(Value::expect::<Places>) {
            None => Ok(0..n_hops),
            Some(hops) if hops.last <= n_hops => Ok(hops.first - 1..hops.last),
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
        let kind = workload::find(self.name(section, "workload"));
        let kind = kind.expect("the key takes the names of the registry");
        (kind.read)(&self.values(section))
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
                let named = self.names.algorithm(&name);
                if named.is_some_and(|other| other.name != self.text(section, "algorithm")) {
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

    /// The first of the flow's connections starts within the run, and so does the last.
    fn check_starts(&self, section: Section) -> Result<(), ScenarioError> {
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
        Ok(())
    }
}
