//! The path of a cell.

use std::sync::Arc;

use crate::key::error::ScenarioError;
use crate::key::kind::path::Offered;
use crate::key::value::Value;
use knee_path::impairment::{self, Impairments};
use knee_path::loss::LossSpec;
use knee_path::queue;
use knee_path::queue::BufferLimit;
use knee_path::queue::policer::{Action, MAX_BURST_BYTES, PolicerSpec};
use knee_path::trace::{Outage, RateTrace};
use knee_path::{AckLink, Backend, Path, RttChange};
use knee_units::params::Params;
use knee_units::parse::BufferSize;
use knee_units::{Nanos, Rate};

use super::{MAX_BUFFER_BYTES, Resolver};
use crate::keys::Section;

impl Resolver<'_> {
    /// Every hop, in the data direction: `[path]`, or the `[[hop]]` tables. `None` when one of them is refused.
    pub(super) fn hops(&self) -> Option<Vec<Path>> {
        // A BDP is that of the path as a whole, wherever the bottleneck is.
        let whole_rtt = Nanos(self.hop_rtts().iter().map(|rtt| rtt.0).sum());
        let hops: Vec<Option<Path>> = self
            .hop_sections()
            .into_iter()
            .map(|section| self.hop(section, whole_rtt))
            .collect();
        hops.into_iter().collect()
    }

    /// Base RTT of every hop.
    pub(super) fn hop_rtts(&self) -> Vec<Nanos> {
        let sections = self.hop_sections().into_iter();
        sections.map(|hop| self.duration(hop, "rtt")).collect()
    }

    /// Notes that a check uses the base RTTs of all hops, which are computed once for all checks.
    pub(super) fn look_at_hop_rtts(&self) {
        let mut sections = self.hop_sections().into_iter();
        if sections.any(|hop| self.matrix.is_spoilt(hop, "rtt")) {
            self.saw_spoilt.set(true);
        }
    }

    pub(super) fn mtu_bytes(&self) -> u32 {
        self.bytes(self.whole(), "mtu") as u32
    }

    fn hop_sections(&self) -> Vec<Section> {
        match self.matrix.n_hops {
            0 => vec![Section::Path],
            n => (0..n).map(Section::Hop).collect(),
        }
    }

    /// Where the keys of the whole path stand.
    pub(super) fn whole(&self) -> Section {
        match self.matrix.n_hops {
            0 => Section::Path,
            _ => Section::Whole,
        }
    }

    fn hop(&self, section: Section, whole_rtt: Nanos) -> Option<Path> {
        let whole = self.whole();
        let packet = || self.mtu_bytes() + self.bytes(section, "overhead") as u32;
        let (rate, rate_trace) = self.link_rate(section, "rate");
        let (ack_rate, ack_rate_trace) = self.link_rate(section, "ack_rate");
        let buffer = |rate_key, key| {
            self.attempt(|| {
                self.look_at_hop_rtts();
                let (rate, _) = self.link_rate(section, rate_key);
                self.buffer(section, (rate_key, rate), key, whole_rtt, packet())
            })
        };
        let [queue_params, ack_queue_params] =
            ["queue", "ack_queue"].map(|key| self.attempt(|| self.queue_params(section, key)));
        let (data_buffer, ack_buffer) =
            (buffer("rate", "buffer"), buffer("ack_rate", "ack_buffer"));
        let policer = self.attempt(|| self.policer(section, packet()));
        let ack_queue = self.attempt(|| self.check_ack_queue(section));
        let losses = self.attempt(|| self.losses(section));
        let (loss, ack_loss) = losses?;
        ack_queue?;
        Some(Path {
            rate,
            rate_trace,
            rtt: self.duration(section, "rtt"),
            rtt_changes: self.rtt_changes(section),
            impairments: Impairments::read(|key| value_of(key, self.value(section, key.name))),
            ack: AckLink {
                rate: ack_rate,
                rate_trace: ack_rate_trace,
                buffer: ack_buffer?,
                queue: self.name(section, "ack_queue"),
                queue_params: ack_queue_params?,
            },
            loss,
            ack_loss,
            buffer: data_buffer?,
            queue: self.name(section, "queue"),
            queue_params: queue_params?,
            policer: policer?,
            mtu_bytes: self.mtu_bytes(),
            overhead_bytes: self.bytes(section, "overhead") as u32,
            backend: match self.name(whole, "backend") {
                "user" => Backend::User,
                "netem" => Backend::Netem,
                "veth" => Backend::Veth,
                _ => Backend::Auto,
            },
            keep_super_packets: self.name(whole, "super_packets") == "keep",
        })
    }

    /// Of the data and of the ACKs.
    fn losses(&self, section: Section) -> Result<(LossSpec, LossSpec), ScenarioError> {
        let [loss, ack_loss] = ["loss", "ack_loss"].map(|key| self.loss(section, key));
        let (key, reason) = match (loss.takes_whole(), ack_loss.takes_whole(), section) {
            (_, true, _) => ("ack_loss", "since each ACK is a packet of its own"),
            (true, _, Section::Hop(hop)) if hop > 0 => (
                "loss",
                "since TSO packets are whole only before the first hop",
            ),
            _ => return Ok((loss, ack_loss)),
        };
        let expected = format!("a loss of single packets, {reason}");
        Err(self.refuse(section, key, expected, "\"1.5%\" is one."))
    }

    /// A link's rate, of a trace the mean, and the trace.
    fn link_rate(&self, section: Section, key: &str) -> (Option<Rate>, Option<Arc<RateTrace>>) {
        let Offered { rate, trace } = self.of(section, key);
        (rate, trace)
    }

    fn rtt_changes(&self, section: Section) -> Vec<RttChange> {
        let changes = self.value(section, "rtt_change");
        changes.map_or_else(Vec::new, |changes| changes.expect::<Vec<_>>().clone())
    }

    fn policer(
        &self,
        section: Section,
        packet_bytes: u32,
    ) -> Result<Option<PolicerSpec>, ScenarioError> {
        let Some(rate) = self.rate(section, "policer_rate") else {
            let next = "Without a rate there is no policer.";
            let keys = ["policer_burst", "policer_action"];
            self.refuse_without(section, "policer_rate", &keys, next)?;
            return Ok(None);
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

    /// Refuses the first of `keys` that the file sets, for want of another.
    fn refuse_without(
        &self,
        section: Section,
        other: &str,
        keys: &[&str],
        next: &str,
    ) -> Result<(), ScenarioError> {
        let set = keys.iter().find(|key| self.point.sets(section, key));
        set.map_or(Ok(()), |key| {
            let expected = format!("{} beside it", section.path_of(other));
            Err(self.refuse(section, key, expected, next))
        })
    }

    /// A file that sets the rate to "unlimited" may do so for one cell of many, and the queue is for the others.
    fn check_ack_queue(&self, section: Section) -> Result<(), ScenarioError> {
        if self.value(section, "ack_rate").is_some() && self.point.sets(section, "ack_rate") {
            return Ok(());
        }
        let next = "Without a rate no ACK waits.";
        let keys = ["ack_buffer", "ack_queue"];
        self.refuse_without(section, "ack_rate", &keys, next)
    }

    /// Of the queue that `key` names.
    fn queue_params(&self, section: Section, key: &str) -> Result<Params, ScenarioError> {
        let kind = queue::find(self.name(section, key)).expect("the registry checked the name");
        let mut params = Params::defaults(kind.params);
        for (name, value) in self.point.params(section, key) {
            params.set(&name, value);
        }
        match kind.conflict.and_then(|conflict| conflict(&params)) {
            Some((name, expected)) => Err(self.refuse_param(section, key, name, expected)),
            None => Ok(params),
        }
    }

    /// The queue's size in bytes or packets; what is a product with the rate
    /// is rounded up to whole bytes.
    fn buffer(
        &self,
        section: Section,
        (rate_key, rate): (&str, Option<Rate>),
        key: &str,
        rtt: Nanos,
        packet_bytes: u32,
    ) -> Result<BufferLimit, ScenarioError> {
        const ONE_BDP: BufferSize = BufferSize::Bdp {
            numerator: 1,
            denominator: 1,
        };
        let size = match self.value(section, key) {
            Some(size) => *size.expect(),
            None if rate.is_none() => BufferSize::Unlimited,
            None => ONE_BDP,
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
                let expected = format!(
                    "bytes, packets or \"unlimited\", because {} is \"unlimited\"",
                    section.path_of(rate_key)
                );
                return Err(self.refuse(section, key, expected, "A time and a BDP need a rate."));
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
                " of {} {} and {} {rtt}",
                section.path_of(rate_key),
                rate.map(|r| r.to_string()).unwrap_or_default(),
                match section {
                    Section::Hop(_) => "the hops' rtt together",
                    _ => "path.rtt",
                },
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
}

/// What an impairment makes of a value; `None`: nobody has set it.
fn value_of(key: &impairment::Key, value: Option<&Value>) -> impairment::Value {
    use impairment::{Form, Value as Of};
    let Some(value) = value else {
        return key.default.clone();
    };
    match key.form {
        Form::Time(_) => Of::Time(*value.expect()),
        Form::Share => Of::Share(*value.expect()),
        Form::Flag => Of::Flag(*value.expect()),
        Form::Word(..) => Of::Word(value.expect::<&str>()),
        Form::Outages => Of::Outages(value.expect::<Vec<Outage>>().clone().into()),
    }
}
