//! From a point of the matrix to a cell: every value resolved and checked
//! against the others.

mod flows;

use super::error::{Problem, ScenarioError};
use super::keys::Section;
use super::matrix::{Matrix, Point};
use super::read::Entry;
use super::value::Value;
use super::{Backend, BufferLimit, Cell, Expect, Host, Names, Pacing, Path, Published, Scenario};
use crate::loss::LossSpec;
use crate::params::Params;
use crate::queue;
use crate::queue::policer::{Action, MAX_BURST_BYTES, PolicerSpec};
use crate::units::parse::{BufferSize, quoted};
use crate::units::{Nanos, Rate};

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
        loss: Loss => LossSpec;
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
        let path = self.path()?;
        let flows = self.flows(duration, &path)?;
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

    fn path(&self) -> Result<Path, ScenarioError> {
        let section = Section::Path;
        let (rate, rtt) = (self.rate(section, "rate"), self.duration(section, "rtt"));
        let mtu_bytes = self.bytes(section, "mtu") as u32;
        let overhead_bytes = self.bytes(section, "overhead") as u32;
        Ok(Path {
            rate,
            rtt,
            loss: self.loss(section, "loss"),
            ack_loss: self.loss(section, "ack_loss"),
            buffer: self.buffer(rate, rtt, mtu_bytes + overhead_bytes)?,
            queue: self.name(section, "queue"),
            queue_params: self.queue_params(section),
            policer: self.policer(mtu_bytes + overhead_bytes)?,
            mtu_bytes,
            overhead_bytes,
            backend: match self.name(section, "backend") {
                "user" => Backend::User,
                "netem" => Backend::Netem,
                _ => Backend::Auto,
            },
            keep_super_packets: self.name(section, "super_packets") == "keep",
        })
    }

    fn policer(&self, packet_bytes: u32) -> Result<Option<PolicerSpec>, ScenarioError> {
        let section = Section::Path;
        let Some(rate) = self.rate(section, "policer_rate") else {
            let key = "policer_burst";
            if self.value(section, key).is_none() {
                return Ok(None);
            }
            let expected = "path.policer_rate beside it".into();
            return Err(self.refuse(
                section,
                key,
                expected,
                "Without a rate there is no policer.",
            ));
        };
        const DEFAULT_BURST: Nanos = Nanos::from_ms(250);
        let packet = u64::from(packet_bytes);
        let burst_bytes = match self.value(section, "policer_burst") {
            Some(_) => self.bytes(section, "policer_burst"),
            None => rate.bytes_in(DEFAULT_BURST).clamp(packet, MAX_BURST_BYTES),
        };
        if burst_bytes < packet {
            let expected = format!(
                "room for at least one packet of {packet_bytes}B (path.mtu + path.overhead)"
            );
            return Err(self.refuse(section, "policer_burst", expected, ""));
        }
        Ok(Some(PolicerSpec {
            rate,
            burst_bytes,
            action: match self.name(section, "policer_action") {
                "mark" => Action::Mark,
                _ => Action::Drop,
            },
        }))
    }

    fn queue_params(&self, section: Section) -> Params {
        let kind = queue::find(self.name(section, "queue")).expect("the registry checked the name");
        let mut params = Params::defaults(kind.params);
        for (name, value) in self.point.params(section) {
            params.set(&name, value);
        }
        params
    }

    /// The queue's size in bytes or packets; what is a product with the rate
    /// is rounded up to whole bytes.
    fn buffer(
        &self,
        rate: Option<Rate>,
        rtt: Nanos,
        packet_bytes: u32,
    ) -> Result<BufferLimit, ScenarioError> {
        const ONE_BDP: BufferSize = BufferSize::Bdp {
            numerator: 1,
            denominator: 1,
        };
        let (section, key) = (Section::Path, "buffer");
        let size = match self.value(section, key) {
            Some(Value::Buffer(size)) => *size,
            _ if rate.is_none() => BufferSize::Unlimited,
            _ => ONE_BDP,
        };
        // Bits × ns need 44 + 36 bits; a BDP's numerator has up to 64 more.
        let per_time = |rate: Rate, time: Nanos| rate.bits_per_sec() as u128 * time.0 as u128;
        const BIT_NS_PER_BYTE: u128 = 8_000_000_000;
        let bytes = match (size, rate) {
            (BufferSize::Unlimited, _) => return Ok(BufferLimit::Unlimited),
            (BufferSize::Packets(0), _) => None,
            (BufferSize::Packets(n), _) => return Ok(BufferLimit::Packets(n)),
            (BufferSize::Bytes(bytes), _) => Some(bytes as u128),
            (BufferSize::Time(_) | BufferSize::Bdp { .. }, None) => {
                let expected =
                    "bytes, packets or \"unlimited\", because path.rate is \"unlimited\"";
                return Err(self.refuse(
                    section,
                    key,
                    expected.into(),
                    "A time and a BDP need a rate.",
                ));
            }
            (BufferSize::Time(time), Some(rate)) => {
                // Times of up to 2^64 ns fit as well: 44 + 64 bits.
                Some(per_time(rate, time).div_ceil(BIT_NS_PER_BYTE))
            }
            (
                BufferSize::Bdp {
                    numerator,
                    denominator,
                },
                Some(rate),
            ) => {
                let product = per_time(rate, rtt).checked_mul(numerator as u128);
                // Overflow is far above the limit, which the check below names.
                Some(product.map_or(u128::MAX, |p| {
                    p.div_ceil(BIT_NS_PER_BYTE * denominator as u128)
                }))
            }
        };
        let of = if matches!(size, BufferSize::Packets(_) | BufferSize::Bytes(_)) {
            String::new()
        } else {
            format!(
                " of path.rate {} and path.rtt {rtt}",
                rate.map(|r| r.to_string()).unwrap_or_default()
            )
        };
        match bytes {
            Some(bytes) if bytes > MAX_BUFFER_BYTES => {
                let expected = format!("at most {MAX_BUFFER_BYTES}B{of}");
                Err(self.refuse(section, key, expected, "\"unlimited\" never drops."))
            }
            Some(bytes) if bytes >= packet_bytes as u128 => Ok(BufferLimit::Bytes(bytes as u64)),
            _ => {
                let words = if self.value(section, key).is_none() {
                    " of 1bdp"
                } else {
                    ""
                };
                let got = match bytes {
                    Some(bytes) if !of.is_empty() => format!("{words}, which is {bytes}B{of}"),
                    _ => String::new(),
                };
                let expected = format!(
                    "room for at least one packet of {packet_bytes}B (path.mtu + path.overhead)"
                );
                Err(self.refuse_got(section, key, &got, expected, "\"1packet\" is the least."))
            }
        }
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
