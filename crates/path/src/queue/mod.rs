//! Queues at the bottleneck: one file each, one line each in [`QUEUES`].

mod cake;
mod codel;
mod dualpi2;
mod fifo;
mod flows;
mod fq;
mod fq_codel;
mod fq_pie;
mod packets;
mod pie;
pub mod policer;
mod red;
mod step;
mod tail;
#[cfg(test)]
pub(crate) mod testing;

pub use fifo::Fifo;
pub use tail::Tail;

use knee_units::params::{Param, Params};
use knee_units::rng::Stream;
use knee_units::{Nanos, Rate};
use serde::Serialize;

use crate::packet::Packet;

/// A queue in front of a link. The link asks for a packet whenever it can send
/// one; the queue decides which, and which packets are dropped or marked.
pub trait Queue: Send {
    /// Offers a packet at `now`, which is stamped with that (`packet.enqueued`). Packets dropped because of it, the offered
    /// one or others, are appended to `dropped`.
    fn enqueue(&mut self, now: Nanos, packet: Packet, dropped: &mut Vec<Packet>);

    /// The next packet to send at `now`, `None` when there is none. Packets
    /// dropped on the way out are appended to `dropped`.
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Packet>) -> Option<Packet>;

    /// When to ask again, after a dequeue that gave nothing although packets
    /// wait, because the queue itself holds them back. `None`: with the next packet.
    fn retry_at(&self) -> Option<Nanos> {
        None
    }

    /// Where packets leave in the order in which they came, none is held back, and all that a packet's fate depends on is
    /// known when it comes: how that is decided. Before a link of constant rate `enqueue` and `dequeue` are then never called.
    fn tail(&self) -> Option<Tail> {
        None
    }

    /// Packets waiting.
    fn len_pkts(&self) -> u32;

    /// Bytes waiting.
    fn len_bytes(&self) -> u64;
}

/// How much the bottleneck's queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum BufferLimit {
    Unlimited,
    Bytes(u64),
    Packets(u32),
}

impl BufferLimit {
    /// Is a queue with this many packets and bytes within the limit?
    #[inline]
    pub fn holds(self, pkts: u32, bytes: u64) -> bool {
        match self {
            BufferLimit::Unlimited => true,
            BufferLimit::Bytes(limit) => bytes <= limit,
            BufferLimit::Packets(limit) => pkts <= limit,
        }
    }
}

/// What a queue is built from.
pub struct Setup {
    pub limit: BufferLimit,
    /// Of the link behind it.
    pub rate: Rate,
    /// Largest packet, as the rate and the limit count it.
    pub max_packet_bytes: u32,
    /// The queue's own draws.
    pub rng: Stream,
    /// Those of its kind.
    pub params: Params,
}

/// Says what is wrong with a queue's parameters at a link of that rate, for full
/// packets of so many bytes. `None`: nothing.
pub type Caution = fn(&Params, Rate, u32) -> Option<String>;

/// Says which of a queue's parameters contradicts the others, and what is expected of it.
pub type Conflict = fn(&Params) -> Option<(&'static str, &'static str)>;

/// A kind of queue that a scenario can name.
pub struct QueueKind {
    pub name: &'static str,
    pub summary: &'static str,
    pub source: &'static str,
    /// A scenario sets them as `NAME.PARAM`.
    pub params: &'static [Param],
    /// What is refused besides values out of bounds.
    pub conflict: Option<Conflict>,
    /// What to know before a run with these parameters.
    pub caution: Option<Caution>,
    pub build: fn(Setup) -> Box<dyn Queue>,
}

/// Every queue, in the order `knee list queues` prints them; the first is the default.
pub const QUEUES: &[&QueueKind] = &[
    &fifo::KIND,
    &codel::KIND,
    &fq_codel::KIND,
    &dualpi2::KIND,
    &cake::KIND,
    &pie::KIND,
    &fq_pie::KIND,
    &step::KIND,
    &red::KIND,
    &fq::KIND,
];

/// The queue of that name.
pub fn find(name: &str) -> Option<&'static QueueKind> {
    QUEUES.iter().copied().find(|kind| kind.name == name)
}
