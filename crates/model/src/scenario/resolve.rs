//! From a point of the matrix to a cell: every value resolved and checked
//! against the others.

mod flows;
mod path;

use super::error::{Problem, ScenarioError};
use super::keys::Section;
use super::matrix::{Matrix, Point};
use super::read::Entry;
use super::value::Value;
use super::{Cell, Expect, Host, Names, Pacing, Path, Published, Scenario};
use crate::loss::LossSpec;
use crate::units::parse::quoted;
use crate::units::{Nanos, Rate};
use crate::workload::sizes::SizeSpec;

/// Largest queue: far above any router's, far below what overflows.
const MAX_BUFFER_BYTES: u128 = 1 << 40;

/// Resolves every cell.
pub(super) fn scenario(
    matrix: &Matrix,
    file: &str,
    names: &Names,
) -> Result<Scenario, ScenarioError> {
    let mut cells = Vec::new();
    let (mut expects, mut published) = (Vec::new(), Vec::new());
    for (index, point) in matrix.points().enumerate() {
        let resolver = Resolver {
            point: &point,
            matrix,
            file,
            names,
        };
        cells.push(resolver.cell(index as u32)?);
        if index == 0 {
            expects = resolver.expects();
            published = resolver.published();
        }
    }
    let first = cells.first().expect("a matrix has at least one cell");
    Ok(Scenario {
        title: first.title.clone(),
        claim: first.claim.clone(),
        duration: first.duration,
        warmup: first.warmup,
        repeat: first.repeat,
        seed: first.seed,
        expects,
        published,
        cells,
    })
}

struct Resolver<'a> {
    point: &'a Point<'a>,
    matrix: &'a Matrix,
    file: &'a str,
    names: &'a Names,
}

/// Getters of a key's value, which the registry guarantees to be of the kind.
macro_rules! getters {
    ($($get:ident: $variant:ident => $type:ty;)*) => {$(
        fn $get(&self, section: Section, name: &str) -> $type {
            match self.value(section, name) {
                Some(Value::$variant(value)) => value.clone(),
                other => panic!("{} is not as the registry says: {other:?}", section.path_of(name)),
            }
        }
    )*};
}

impl Resolver<'_> {
    getters! {
        duration: Duration => Nanos;
        rate: Rate => Option<Rate>;
        bytes: Bytes => u64;
        count: Count => u64;
        flag: Flag => bool;
        share: Share => f64;
        loss: Loss => LossSpec;
        per_sec: PerSec => f64;
        sizes: Sizes => SizeSpec;
        name: Name => &'static str;
        text: Text => String;
    }

    fn value(&self, section: Section, name: &str) -> Option<&Value> {
        self.point.get(section, name).map(|(_, entry)| &entry.value)
    }

    /// The value as the file has it.
    fn label(&self, section: Section, name: &str) -> String {
        match self.point.get(section, name).map(|(_, entry)| entry) {
            Some(Entry {
                value: Value::Count(n),
                ..
            }) => n.to_string(),
            Some(entry) => quoted(&entry.label),
            None => String::new(),
        }
    }

    fn optional_text(&self, section: Section, name: &str) -> Option<String> {
        self.value(section, name).map(|_| self.text(section, name))
    }

    fn expects(&self) -> Vec<Expect> {
        let one = |i| {
            let section = Section::Expect(i);
            Expect {
                assert: self.text(section, "assert"),
                line: self.line(section, "assert"),
            }
        };
        (0..self.matrix.n_expects).map(one).collect()
    }

    fn published(&self) -> Vec<Published> {
        let one = |i| {
            let section = Section::Published(i);
            Published {
                value: self.text(section, "value"),
                figure: self.text(section, "figure"),
                source: self.text(section, "source"),
                line: self.line(section, "value"),
            }
        };
        (0..self.matrix.n_published).map(one).collect()
    }

    fn line(&self, section: Section, name: &str) -> u32 {
        self.point
            .get(section, name)
            .map_or(0, |(_, entry)| entry.line)
    }

    fn cell(&self, index: u32) -> Result<Cell, ScenarioError> {
        let (duration, sample_interval) = self.times()?;
        let mut hops = self.hops()?.into_iter();
        let path = hops.next().expect("a path has a hop");
        let further: Vec<Path> = hops.collect();
        let rtts: Vec<Nanos> = [&path]
            .into_iter()
            .chain(&further)
            .map(|hop| hop.rtt)
            .collect();
        let flows = self.flows(duration, &rtts)?;
        Ok(Cell {
            index,
            title: self
                .optional_text(Section::Top, "title")
                .unwrap_or_else(|| stem(self.file).into()),
            claim: self.optional_text(Section::Top, "claim"),
            axes: self.point.axes(),
            duration,
            warmup: self.duration(Section::Top, "warmup"),
            repeat: self.count(Section::Top, "repeat") as u32,
            seed: self.count(Section::Top, "seed"),
            sample_interval,
            sender: self.host(Section::Sender, path.mtu_bytes)?,
            receiver: self.host(Section::Receiver, path.mtu_bytes)?,
            path,
            further,
            flows,
        })
    }

    fn times(&self) -> Result<(Nanos, Nanos), ScenarioError> {
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
        Ok((duration, interval))
    }

    fn host(&self, section: Section, mtu_bytes: u32) -> Result<Host, ScenarioError> {
        let triple = |what: &str| -> Result<[u64; 3], ScenarioError> {
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
                    return Err(self.refuse(
                        section,
                        at,
                        expected,
                        &format!("Set {other} as well."),
                    ));
                }
            }
            Ok([min, default, max])
        };
        let gso_max_bytes = self.bytes(section, "gso_max") as u32;
        if gso_max_bytes != 0 && gso_max_bytes < mtu_bytes {
            let expected = format!("0B (off), or at least path.mtu, {mtu_bytes}B");
            return Err(self.refuse(section, "gso_max", expected, ""));
        }
        Ok(Host {
            hz: self.count(section, "hz") as u32,
            tcp_wmem_bytes: triple("tcp_wmem")?,
            tcp_rmem_bytes: triple("tcp_rmem")?,
            tcp_limit_output_bytes: self.bytes(section, "tcp_limit_output_bytes"),
            tcp_slow_start_after_idle: self.flag(section, "tcp_slow_start_after_idle"),
            tcp_rto_min: self.duration(section, "tcp_rto_min"),
            tcp_comp_sack_delay: self.duration(section, "tcp_comp_sack_delay"),
            tcp_comp_sack_nr: self.count(section, "tcp_comp_sack_nr") as u32,
            pacing: match self.name(section, "pacing") {
                "fq" => Pacing::Fq,
                _ => Pacing::Internal,
            },
            qdisc: Some(self.name(section, "qdisc"))
                .filter(|&name| name != "default")
                .map(str::to_owned),
            tcp_ecn: self.count(section, "tcp_ecn") as u8,
            quickack: self.flag(section, "quickack"),
            initcwnd: self.count(section, "initcwnd") as u32,
            gso_max_bytes,
            grow_skb: self.flag(section, "grow_skb"),
            gro: self.flag(section, "gro"),
            rx_coalesce: self.duration(section, "rx_coalesce"),
            // A sender's algorithm is its flow's; the hosts' own shows in neither direction.
            algorithm: self.text(Section::Receiver, "algorithm"),
        })
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
        self.error(
            found.map_or_else(|| self.section_line(section), |(_, entry)| entry.line),
            problem,
        )
    }

    /// Where to point for a default: at a key of the table that the file sets.
    fn section_line(&self, section: Section) -> u32 {
        let set = section
            .keys()
            .filter_map(|key| self.point.get(section, key.name));
        set.map(|(_, entry)| entry.line).min().unwrap_or(1)
    }

    fn error(&self, line: u32, problem: Problem) -> ScenarioError {
        ScenarioError::new(self.file, line, problem)
    }
}

/// `loss-1.5` of `gallery/loss-1.5.toml`.
fn stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".toml")
        .filter(|stem| !stem.is_empty())
        .unwrap_or(name)
}
