//! A hop of the path as a scenario has it, every value resolved, and what is built of it.

use std::ops::Range;
use std::sync::Arc;

use knee_units::params::Params;
use knee_units::rng::Stream;
use knee_units::{Nanos, Rate, serialize_shared};
use serde::Serialize;

use crate::Transit;
use crate::bottleneck::{Bottleneck, Link};
use crate::impairment::{ImpairmentSpec, Impairments, Stage};
use crate::loss::LossSpec;
use crate::queue::policer::{Policer, PolicerSpec};
use crate::queue::{self, BufferLimit, Setup};
use crate::trace::{RateTrace, Schedule};

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// With the data.
    Forward,
    /// Against it.
    Back,
}

/// A hop of the path: one bottleneck in the data direction, perhaps one against it, delay both ways.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// `None`: unlimited, packets never wait. Of a trace the mean.
    pub rate: Option<Rate>,
    /// When packets may leave, where the rate is not constant.
    #[serde(serialize_with = "serialize_shared")]
    pub rate_trace: Option<Arc<RateTrace>>,
    /// Base round-trip time, without queueing and transmission.
    pub rtt: Nanos,
    /// The route changes, in order of time.
    pub rtt_changes: Vec<RttChange>,
    /// What packets meet behind the bottleneck besides their delay.
    pub impairments: Impairments,
    /// The bottleneck against the data direction.
    pub ack: AckLink,
    /// Loss in the data direction, before the queue.
    pub loss: LossSpec,
    /// Loss of what travels against the data.
    pub ack_loss: LossSpec,
    pub buffer: BufferLimit,
    /// A name of [`knee_path::queue::QUEUES`].
    pub queue: &'static str,
    /// Of that queue.
    pub queue_params: Params,
    /// In front of the queue.
    pub policer: Option<PolicerSpec>,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Link-layer bytes that the rate and the buffer count besides.
    pub overhead_bytes: u32,
    /// What emulates the path in a lab. Of the simulator it says whether hosts with costs are joined by a veth pair.
    pub backend: Backend,
    /// Does a lab's link keep TSO packets whole? Then loss and queue limits act
    /// on them and not on wire packets: fast, and less true. The simulator
    /// splits them, but on a veth pair.
    pub keep_super_packets: bool,
}

/// The bottleneck against the data direction.
#[derive(Clone, Debug, Serialize)]
pub struct AckLink {
    /// As [`Path::rate`].
    pub rate: Option<Rate>,
    #[serde(serialize_with = "serialize_shared")]
    pub rate_trace: Option<Arc<RateTrace>>,
    pub buffer: BufferLimit,
    /// A name of [`knee_path::queue::QUEUES`].
    pub queue: &'static str,
    /// Of that queue.
    pub queue_params: Params,
}

impl AckLink {
    /// No limit.
    pub fn open() -> AckLink {
        let fifo = &queue::QUEUES[0];
        AckLink {
            rate: None,
            rate_trace: None,
            buffer: BufferLimit::Unlimited,
            queue: fifo.name,
            queue_params: Params::defaults(fifo.params),
        }
    }
}

/// From some time on the path is as long as this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RttChange {
    /// After the run's start.
    pub at: Nanos,
    /// In the place of `path.rtt`.
    pub rtt: Nanos,
}

impl Path {
    /// What stands before a direction's delay, fresh. `stream` gives the draws of a component; `origin_ns`: the run's start
    /// on the engine's clock.
    pub fn build_bottleneck(
        &self,
        direction: Direction,
        stream: impl Fn(&str) -> Stream,
        origin_ns: u64,
    ) -> Bottleneck {
        let (link, (spec, lost), policer, queue) = match direction {
            Direction::Forward => {
                let link = LinkSpec {
                    rate: self.rate,
                    trace: &self.rate_trace,
                    buffer: self.buffer,
                    queue: self.queue,
                    params: &self.queue_params,
                };
                let loss = (&self.loss, "path.loss");
                (link, loss, self.policer.map(Policer::new), "path.queue")
            }
            Direction::Back => {
                let ack = &self.ack;
                let link = LinkSpec {
                    rate: ack.rate,
                    trace: &ack.rate_trace,
                    buffer: ack.buffer,
                    queue: ack.queue,
                    params: &ack.queue_params,
                };
                (
                    link,
                    (&self.ack_loss, "path.ack_loss"),
                    None,
                    "path.ack_queue",
                )
            }
        };
        let link = link.rate.map(|rate| {
            let outages = self.impairments.outages();
            let schedule = Schedule::new(rate, link.trace.clone(), outages, origin_ns);
            let queue = (kind_of(link.queue).build)(Setup {
                limit: link.buffer,
                rate,
                max_packet_bytes: self.mtu_bytes + self.overhead_bytes,
                rng: stream(queue),
                params: link.params.clone(),
            });
            Link::new(schedule, queue)
        });
        let loss = spec.build(stream(lost));
        match spec.takes_whole() {
            true => Bottleneck::new(None, policer, link).with_whole_loss(loss),
            false => Bottleneck::new(loss, policer, link),
        }
    }

    /// What happens to packets behind the bottleneck; `None`: they take their delay.
    pub fn build_transit(
        &self,
        direction: Direction,
        stream: impl Fn(&str) -> Stream,
        origin_ns: u64,
    ) -> Option<Box<Transit>> {
        let (prefix, limited) = match direction {
            Direction::Forward => ("", self.rate.is_some()),
            Direction::Back => ("ack_", self.ack.rate.is_some()),
        };
        let acts = |spec: &&ImpairmentSpec| {
            (direction == Direction::Forward || spec.kind.both_ways)
                && !(limited && spec.kind.stage == Stage::Link)
        };
        let draws = |spec: &ImpairmentSpec| stream(&format!("path.{prefix}{}", spec.kind.name));
        Transit::build(self.impairments.iter().filter(acts), draws, origin_ns)
    }

    /// The rate that a busy bottleneck always has; `None`: it has none, or none that stays.
    pub fn constant_rate(&self) -> Option<Rate> {
        self.rate
            .filter(|_| self.rate_trace.is_none() && self.impairments.outages().is_empty())
    }

    /// The same of the link against the data direction.
    pub fn constant_ack_rate(&self) -> Option<Rate> {
        let ack = &self.ack;
        ack.rate
            .filter(|_| ack.rate_trace.is_none() && self.impairments.outages().is_empty())
    }

    /// A flow's one-way delays, toward the receiver and back, once the route has
    /// changed so often. Flows with a round-trip time of their own change by as much.
    pub fn delays(&self, flow_rtt: Nanos, changes: usize) -> [Nanos; 2] {
        let rtt = match changes.checked_sub(1) {
            None => flow_rtt,
            Some(last) => {
                let longer = (flow_rtt + self.rtt_changes[last].rtt).saturating_sub(self.rtt);
                longer.max(Nanos::from_us(1))
            }
        };
        let forward = Nanos(rtt.0 / 2);
        [forward, rtt - forward]
    }
}

/// A direction's rate and the queue before it.
struct LinkSpec<'a> {
    rate: Option<Rate>,
    trace: &'a Option<Arc<RateTrace>>,
    buffer: BufferLimit,
    queue: &'static str,
    params: &'a Params,
}

fn kind_of(queue: &str) -> &'static queue::QueueKind {
    queue::find(queue).expect("the scenario names a queue of the registry")
}

/// The streams of a hop's components, from the run's. The first hop draws as a
/// path of one hop does.
pub fn hop_streams(hop: usize, run: impl Fn(&str) -> Stream) -> impl Fn(&str) -> Stream {
    move |component| match hop {
        0 => run(component),
        n => run(&format!("hop.{n}.{component}")),
    }
}

/// Which of a flow's hops is its last one in each direction, and how long the
/// flow's own base RTT leaves it: what the others on the way take comes off.
///
/// `rtts`: of every hop of the path; the data's last hop first, then the ACKs'.
pub fn last_legs(rtts: &[Nanos], hops: Range<usize>, flow_rtt: Nanos) -> [(usize, Nanos); 2] {
    [hops.end - 1, hops.start].map(|last| {
        let others = hops.clone().filter(|&hop| hop != last);
        let before = Nanos(others.map(|hop| rtts[hop].0).sum());
        (last, flow_rtt.saturating_sub(before))
    })
}

/// What emulates the path in a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Backend {
    /// tcpknee's own link, unless the kernel's is there and faster.
    Auto,
    /// tcpknee's own link over TUN.
    User,
    /// netem and qdiscs of the kernel.
    Netem,
    /// A veth pair between the two hosts, which emulates nothing.
    Veth,
}
