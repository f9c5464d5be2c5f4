//! tcpknee's user-space link: between two TUN devices it drives the queues,
//! losses and delays of `knee-path` with the real clock, and measures how well
//! it does.
//!
//! The model runs on ideal times: a packet's departure and arrival are computed
//! from when it was read, the rate and the delay, never from when a thread woke
//! up. A thread that is late therefore writes late, which is measured, but the
//! rate does not suffer, and the next packet is on time again.

mod buffers;
mod flows;
mod meter;
mod outlet;
mod run;
mod sleep;
mod tun;
mod wire;

pub use flows::{FlowReport, Tuple};
pub use meter::DirectionReport;
pub use run::{LinkError, Report, run};
pub use tun::{Offloads, open_tun};

use std::net::Ipv4Addr;
use std::ops::Range;

use knee_path::Path;
use knee_units::{Nanos, Rate};

/// Port that the listening side of every connection uses.
pub const SERVICE_PORT: u16 = 5201;

/// What a link has to be.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The first hop in the data direction.
    pub path: Path,
    /// The hops behind it.
    pub further: Vec<Path>,
    /// In the order of the scenario's `[[flow]]` tables.
    pub groups: Vec<Group>,
    /// Connecting ends bind `first_port + flow number`.
    pub first_port: u16,
    /// Flows whose number stands in their port. Others get the numbers from
    /// here on, in order of appearance.
    pub flows: u32,
    /// How many hosts there are at the sender's and the receiver's side, over which flows are spread in turn, for queues
    /// that tell hosts apart; `None`: each flow has its own.
    pub hosts: [Option<u32>; 2],
    /// Of the repetition: every random draw follows from it.
    pub seed: u64,
    pub sample_interval: Nanos,
    /// What the hosts' NICs do with what arrives.
    pub receiver: Nic,
    pub sender: Nic,
}

/// A `[[flow]]` table's own hosts and path length.
#[derive(Clone, Debug)]
pub struct Group {
    pub sender: Ipv4Addr,
    pub receiver: Ipv4Addr,
    pub rtt: Nanos,
    /// From when on the queueing delays of its packets count, after the start.
    pub warmup: Nanos,
    /// The hops between them, in the data direction.
    pub hops: Range<usize>,
}

impl LinkConfig {
    /// Every hop, in the data direction.
    pub fn hops(&self) -> impl DoubleEndedIterator<Item = &Path> {
        std::iter::once(&self.path).chain(&self.further)
    }

    /// The rate that each direction's last bottleneck always has, data and
    /// back: what a direction's achieved rate is held against.
    pub fn constant_rates(&self) -> [Option<Rate>; 2] {
        let last = self.hops().next_back().and_then(Path::constant_rate);
        [last, self.path.constant_ack_rate()]
    }
}

/// A host's NIC.
#[derive(Clone, Copy, Debug)]
pub struct Nic {
    /// Does it segment for the stack, so that super-packets come out of it?
    pub tso: bool,
    /// Least time between interrupts.
    pub coalesce: Nanos,
    /// Are packets that arrive merged before the stack sees them?
    pub gro: bool,
}
