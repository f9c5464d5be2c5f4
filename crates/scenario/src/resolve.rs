//! From a point of the matrix to a cell: every value resolved and checked
//! against the others.

mod direct;
mod flows;
mod path;
mod values;

use std::cell::Cell as Flag;

use crate::key::error::{Mistakes, Problem, ScenarioError};
use crate::key::names::Names;
use crate::key::profile::Profile;
use crate::key::value::Value;
use knee_path::loss::LossSpec;
use knee_units::cpus::Cpus;
use knee_units::{Nanos, Rate};

use crate::cell::{Cell, Host};
use crate::keys::Section;
use crate::matrix::{Matrix, Point};
use crate::read::{Entry, Setting, Target};
use values::Table;

/// Largest queue: far above any router's, far below what overflows.
const MAX_BUFFER_BYTES: u128 = 1 << 40;

/// Cells with mistakes that are looked at: the mistakes of so many are those of all, but for their number.
const MOST_FAULTY_CELLS: usize = 1_000;

/// Looks at every cell and keeps none; returns the first, or `None` when the file has a mistake.
///
/// What a value may be depends on others, and a file that is accepted must not fail after hours of its matrix: so each
/// combination is resolved once here, which takes some microseconds each, and again when it runs.
pub(super) fn check(matrix: &Matrix, names: &Names, mistakes: &Mistakes<'_>) -> Option<Cell> {
    let mut first = None;
    let mut faulty = 0;
    for index in 0..matrix.n_cells() {
        match cell(matrix, names, mistakes, index) {
            Some(cell) if mistakes.is_empty() => {
                first.get_or_insert(cell);
            }
            _ => faulty += 1,
        }
        if mistakes.is_full() || faulty >= MOST_FAULTY_CELLS {
            break;
        }
    }
    first.filter(|_| mistakes.is_empty())
}

/// Resolves one cell; `None`: there are fewer, or what is wrong with it is told.
pub(super) fn cell(
    matrix: &Matrix,
    names: &Names,
    mistakes: &Mistakes<'_>,
    index: usize,
) -> Option<Cell> {
    let resolver = Resolver {
        point: &matrix.point(index)?,
        matrix,
        names,
        mistakes,
        saw_spoilt: Flag::new(false),
    };
    resolver.cell(index as u32)
}

struct Resolver<'a> {
    point: &'a Point<'a>,
    matrix: &'a Matrix,
    names: &'a Names,
    mistakes: &'a Mistakes<'a>,
    /// Has the check that runs looked at a value that is no good, which has been told?
    saw_spoilt: Flag<bool>,
}

/// Getters of a key's value, which the registry guarantees to be there and of the type.
macro_rules! getters {
    ($($get:ident => $type:ty;)*) => {$(
        fn $get(&self, section: Section, name: &str) -> $type {
            self.of(section, name)
        }
    )*};
}

impl Resolver<'_> {
    getters! {
        duration => Nanos;
        rate => Option<Rate>;
        bytes => u64;
        count => u64;
        loss => LossSpec;
        name => &'static str;
        text => String;
    }

    fn of<T: Clone + 'static>(&self, section: Section, name: &str) -> T {
        let found = self.value(section, name).and_then(Value::get::<T>);
        let found = found.cloned();
        found.unwrap_or_else(|| panic!("{} is not as the registry says", section.path_of(name)))
    }

    fn value(&self, section: Section, name: &str) -> Option<&Value> {
        if self.matrix.is_spoilt(section, name) {
            self.saw_spoilt.set(true);
        }
        self.point.get(section, name).map(|(_, entry)| &entry.value)
    }

    /// What `check` finds. What it refuses is told, unless that may come of another mistake.
    fn attempt<T>(&self, check: impl FnOnce() -> Result<T, ScenarioError>) -> Option<T> {
        let before = self.saw_spoilt.replace(false);
        let found = check();
        if let (Err(error), false) = (&found, self.saw_spoilt.get()) {
            self.mistakes.tell(error.clone());
        }
        self.saw_spoilt.set(before || self.saw_spoilt.get());
        found.ok()
    }

    /// The value as the file has it.
    fn label(&self, section: Section, name: &str) -> String {
        let found = self.point.get(section, name);
        found.map_or(String::new(), |(_, entry)| entry.shown())
    }

    fn optional_text(&self, section: Section, name: &str) -> Option<String> {
        self.value(section, name).map(|_| self.text(section, name))
    }

    fn cell(&self, index: u32) -> Option<Cell> {
        let times = self.attempt(|| self.check_times());
        let hops = self.hops();
        let [sender, receiver] = [Section::Sender, Section::Receiver].map(|side| self.host(side));
        let flows = self.flows();
        let (hops, flows) = (hops?, flows?);
        self.attempt(|| self.check_direct(&hops, &flows))?;
        let mut hops = hops.into_iter();
        let path = hops.next().expect("a path has a hop");
        times?;
        let title = self.optional_text(Section::Top, "title");
        let receiver = receiver?;
        let used = (flows.iter().map(|flow| &flow.algorithm)).chain([&receiver.algorithm]);
        let algorithm_files = used
            .filter_map(|name| Some((name.clone(), self.names.digest_of(name)?.into())))
            .collect();
        Some(Cell::read(
            &self.values(Section::Top),
            index,
            title.unwrap_or_else(|| stem(self.mistakes.file()).into()),
            self.optional_text(Section::Top, "claim"),
            self.point.axes(),
            path,
            hops.collect(),
            sender?,
            receiver,
            flows,
            algorithm_files,
        ))
    }

    /// The times of the cell as a whole.
    fn check_times(&self) -> Result<(), ScenarioError> {
        let top = Section::Top;
        let (duration, warmup) = (self.duration(top, "duration"), self.duration(top, "warmup"));
        let interval = self.duration(top, "sample_interval");
        let of_duration = || self.label(top, "duration");
        if warmup >= duration {
            let expected = format!("less than the duration, {}", of_duration());
            return Err(self.refuse(
                top,
                "warmup",
                expected,
                "Shorten the warm-up, or lengthen the run.",
            ));
        }
        if interval > duration {
            let expected = format!("at most the duration, {}", of_duration());
            return Err(self.refuse(top, "sample_interval", expected, "Set a shorter one."));
        }
        Ok(())
    }

    fn host(&self, section: Section) -> Option<Host> {
        let [wmem, rmem] = ["tcp_wmem", "tcp_rmem"]
            .map(|what| self.attempt(|| self.check_order_of_sizes(section, what)));
        let gso_max = self.attempt(|| self.check_gso_max(section));
        let cpus = ["app_cpus", "rps_cpus", "flow_limit_cpu_bitmap"]
            .map(|name| self.attempt(|| self.check_cpus(section, name)));
        // A sender's algorithm is its flow's; the hosts' own shows in neither direction.
        let algorithm = self.text(Section::Receiver, "algorithm");
        let host = Host::read(&self.values(section), algorithm);
        let [app_cpus, rps_cpus, flow_limits] = cpus;
        let checked = wmem
            .and(rmem)
            .and(gso_max)
            .and(app_cpus)
            .and(rps_cpus)
            .and(flow_limits);
        checked.map(|()| host)
    }

    /// The largest TSO packet holds a packet.
    fn check_gso_max(&self, section: Section) -> Result<(), ScenarioError> {
        let gso_max_bytes = self.bytes(section, "gso_max");
        let mtu_bytes = self.mtu_bytes();
        if gso_max_bytes != 0 && gso_max_bytes < mtu_bytes.into() {
            let expected = format!("0B (off), or at least path.mtu, {mtu_bytes}B");
            return Err(self.refuse(section, "gso_max", expected, ""));
        }
        Ok(())
    }

    /// Hosts of the model have the processors that are named. Both sides of a veth pair are on the sender's machine.
    fn check_cpus(&self, section: Section, name: &str) -> Result<(), ScenarioError> {
        let has_costs = |side| {
            let costs = self.value(side, "costs");
            costs.is_some_and(|costs| costs.expect::<Option<Box<Profile>>>().is_some())
        };
        let named: Cpus = self.of(section, name);
        let is_veth = self.name(self.whole(), "backend") == "veth";
        let (side, whose, hint) =
            if is_veth && [Section::Sender, Section::Receiver].map(has_costs) == [true; 2] {
                (
                    Section::Sender,
                    "the sender's hosts, where both sides of a veth pair are,",
                    "Or set sender.cpus.",
                )
            } else {
                (section, "this side's hosts", "Or set cpus.")
            };
        let cpus = self.count(side, "cpus");
        if has_costs(section) && named.numbers().iter().any(|&cpu| u64::from(cpu) >= cpus) {
            let expected = match cpus {
                1 => format!("processor 0, as {whose} have no other"),
                _ => format!("processors from 0 to {}, as {whose} have {cpus}", cpus - 1),
            };
            return Err(self.refuse(section, name, expected, hint));
        }
        Ok(())
    }

    /// Of least, initial and largest size of the buffers `what` none is above the next.
    fn check_order_of_sizes(&self, section: Section, what: &str) -> Result<(), ScenarioError> {
        let name = |part: &str| format!("{what}_{part}");
        let [min, default, max] =
            ["min", "default", "max"].map(|part| self.bytes(section, &name(part)));
        // The line to point at is the one the file has; where both are set, the lower bound's.
        for (low, high, wrong) in [
            ("min", "default", min > default),
            ("default", "max", default > max),
        ] {
            if wrong {
                let (low, high) = (name(low), name(high));
                let low_is_default = self
                    .point
                    .get(section, &low)
                    .is_none_or(|(s, _)| s.is_default);
                let (at, other, relation) = if low_is_default {
                    (&high, &low, "at least")
                } else {
                    (&low, &high, "at most")
                };
                let expected = format!(
                    "{relation} {}, {}",
                    section.path_of(other),
                    self.label(section, other)
                );
                return Err(self.refuse(section, at, expected, &format!("Set {other} as well.")));
            }
        }
        Ok(())
    }

    /// The values of one table.
    fn values(&self, section: Section) -> Table<'_> {
        Table {
            resolver: self,
            section,
        }
    }

    fn refuse(&self, section: Section, key: &str, expected: String, next: &str) -> ScenarioError {
        self.refuse_got(section, key, "", expected, next)
    }

    /// Refuses what the file says at `key`; `got_more` follows the value itself.
    fn refuse_got(
        &self,
        section: Section,
        key: &str,
        got_more: &str,
        expected: String,
        next: &str,
    ) -> ScenarioError {
        let found = self.point.get(section, key);
        let got = match found {
            Some((setting, _)) if setting.is_default => {
                format!("the default {}", self.label(section, key))
            }
            Some(_) => self.label(section, key),
            None => "the default".into(),
        };
        let problem = Problem::Value {
            key: section.path_of(key),
            got: format!("{got}{got_more}"),
            expected,
            next: next.into(),
        };
        match self.row(section, key) {
            Some((line, from, row)) => {
                let problem = Box::new(problem);
                self.error(line, Problem::Row { from, row, problem })
            }
            None => {
                let line = found.map(|(_, entry)| entry.line);
                self.error(line.unwrap_or_else(|| self.section_line(section)), problem)
            }
        }
    }

    /// Refuses a parameter that the file sets for what `key` names.
    fn refuse_param(
        &self,
        section: Section,
        key: &str,
        name: &str,
        expected: &str,
    ) -> ScenarioError {
        let is_it = |setting: &Setting| {
            setting.section == section
                && matches!(&setting.target, Target::Param { key: of, name: is, .. } if *of == key && is == name)
        };
        let (setting, entry) = (self.point.set())
            .find(|(setting, _)| is_it(setting))
            .expect("a parameter of its default contradicts none");
        let problem = Problem::Value {
            key: setting.path.clone(),
            got: entry.shown(),
            expected: expected.into(),
            next: String::new(),
        };
        self.error(entry.line, problem)
    }

    /// The row of a sample that a refused value comes from; of a default the one that its table has values of.
    fn row(&self, section: Section, key: &str) -> Option<(u32, String, u32)> {
        let is_set = |(setting, _): (&Setting, &Entry)| !setting.is_default;
        if self.point.get(section, key).is_some_and(is_set) {
            return self.point.row_of(section, key);
        }
        let mut keys = section.keys();
        keys.find_map(|key| self.point.row_of(section, key.name))
    }

    /// Where to point for a default: at a key of the table that the file sets.
    fn section_line(&self, section: Section) -> u32 {
        let set = section
            .keys()
            .filter_map(|key| self.point.get(section, key.name));
        set.map(|(_, entry)| entry.line).min().unwrap_or(1)
    }

    fn error(&self, line: u32, problem: Problem) -> ScenarioError {
        ScenarioError::new(self.mistakes.file(), line, problem)
    }
}

/// `loss-1.5` of `gallery/loss-1.5.toml`.
pub(super) fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".toml")
        .filter(|stem| !stem.is_empty())
        .unwrap_or(name)
}
