//! The path of a cell.

use std::sync::Arc;

use super::super::error::ScenarioError;
use super::super::keys::Section;
use super::super::value::Value;
use super::super::{AckLink, Backend, BufferLimit, Path, RttChange};
use super::{MAX_BUFFER_BYTES, Resolver};
use crate::params::Params;
use crate::queue;
use crate::queue::policer::{Action, MAX_BURST_BYTES, PolicerSpec};
use crate::trace::{Outage, RateTrace};
use crate::transit::{Distribution, TransitSpec};
use crate::units::parse::BufferSize;
use crate::units::{Nanos, Rate};

impl Resolver<'_> {
    pub(super) fn path(&self) -> Result<Path, ScenarioError> {
        let section = Section::Path;
        let (rate, rate_trace) = self.link_rate("rate");
        let rtt = self.duration(section, "rtt");
        let mtu_bytes = self.bytes(section, "mtu") as u32;
        let overhead_bytes = self.bytes(section, "overhead") as u32;
        let packet_bytes = mtu_bytes + overhead_bytes;
        Ok(Path {
            rate,
            rate_trace,
            rtt,
            rtt_changes: self.rtt_changes(),
            outages: self.outages(),
            transit: self.transit(),
            ack: self.ack_link(rtt, packet_bytes)?,
            loss: self.loss(section, "loss"),
            ack_loss: self.loss(section, "ack_loss"),
            buffer: self.buffer(("rate", rate), "buffer", rtt, packet_bytes)?,
            queue: self.name(section, "queue"),
            queue_params: self.queue_params("queue"),
            policer: self.policer(packet_bytes)?,
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

    fn ack_link(&self, rtt: Nanos, packet_bytes: u32) -> Result<AckLink, ScenarioError> {
        let (rate, rate_trace) = self.link_rate("ack_rate");
        Ok(AckLink {
            rate,
            rate_trace,
            buffer: self.buffer(("ack_rate", rate), "ack_buffer", rtt, packet_bytes)?,
            queue: self.name(Section::Path, "ack_queue"),
            queue_params: self.queue_params("ack_queue"),
        })
    }

    /// A link's rate, of a trace the mean, and the trace.
    fn link_rate(&self, key: &str) -> (Option<Rate>, Option<Arc<RateTrace>>) {
        match self.value(Section::Path, key) {
            Some(Value::Trace(trace)) => (Some(trace.mean()), Some(trace.clone())),
            _ => (self.rate(Section::Path, key), None),
        }
    }

    fn rtt_changes(&self) -> Vec<RttChange> {
        match self.value(Section::Path, "rtt_change") {
            Some(Value::RttChanges(changes)) => changes.clone(),
            _ => Vec::new(),
        }
    }

    fn outages(&self) -> Vec<Outage> {
        match self.value(Section::Path, "outage") {
            Some(Value::Outages(outages)) => outages.clone(),
            _ => Vec::new(),
        }
    }

    /// But for outages, which concern links without a rate alone.
    fn transit(&self) -> TransitSpec {
        let section = Section::Path;
        TransitSpec {
            jitter: self.duration(section, "jitter"),
            distribution: match self.name(section, "jitter_distribution") {
                "normal" => Distribution::Normal,
                _ => Distribution::Uniform,
            },
            jitter_reorders: self.flag(section, "jitter_reorders"),
            reorder: self.share(section, "reorder"),
            reorder_delay: self.duration(section, "reorder_delay"),
            duplicate: self.share(section, "duplicate"),
            aggregate: self.duration(section, "aggregate"),
            outages: Vec::new(),
        }
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

    /// Of the queue that `key` names.
    fn queue_params(&self, key: &str) -> Params {
        let section = Section::Path;
        let kind = queue::find(self.name(section, key)).expect("the registry checked the name");
        let mut params = Params::defaults(kind.params);
        for (name, value) in self.point.params(section, key) {
            params.set(&name, value);
        }
        params
    }

    /// The queue's size in bytes or packets; what is a product with the rate
    /// is rounded up to whole bytes.
    fn buffer(
        &self,
        (rate_key, rate): (&str, Option<Rate>),
        key: &str,
        rtt: Nanos,
        packet_bytes: u32,
    ) -> Result<BufferLimit, ScenarioError> {
        const ONE_BDP: BufferSize = BufferSize::Bdp {
            numerator: 1,
            denominator: 1,
        };
        let section = Section::Path;
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
                let expected = format!(
                    "bytes, packets or \"unlimited\", because path.{rate_key} is \"unlimited\""
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
                " of path.{rate_key} {} and path.rtt {rtt}",
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
}
