//! One cell of the matrix, resolved: what an engine runs.

use std::ops::Range;
use std::sync::Arc;

use crate::bottleneck::{Bottleneck, Link};
use crate::loss::LossSpec;
use crate::packet::HEADER_BYTES;
use crate::params::Params;
use crate::queue::policer::{Policer, PolicerSpec};
use crate::queue::{self, Queue, Setup};
use crate::rng::Stream;
use crate::trace::{Outage, RateTrace, Schedule};
use crate::transit::{Transit, TransitSpec};
use crate::units::{Nanos, Rate};
use crate::workload::web::Arrivals;

/// One point of a scenario's matrix, every value resolved.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Position in the matrix, from 0.
    pub index: u32,
    pub title: String,
    /// An id of the published claims, when the scenario reproduces one.
    pub claim: Option<String>,
    /// What tells this cell from the others, in the order of the file:
    /// (`path.loss`, `1.5%`), (`flow.0.algorithm`, `cubic`).
    pub axes: Vec<(String, String)>,
    pub duration: Nanos,
    /// Left out of steady-state metrics.
    pub warmup: Nanos,
    pub repeat: u32,
    pub seed: u64,
    /// How often flows and queues are sampled.
    pub sample_interval: Nanos,
    /// The first hop in the data direction: of most scenarios the only one.
    pub path: Path,
    /// The hops behind it, in the data direction.
    pub further: Vec<Path>,
    pub sender: Host,
    pub receiver: Host,
    pub flows: Vec<FlowSpec>,
}

impl Cell {
    /// Every hop, in the data direction.
    pub fn hops(&self) -> impl DoubleEndedIterator<Item = &Path> {
        std::iter::once(&self.path).chain(&self.further)
    }

    /// Base round-trip time of a flow that crosses every hop.
    pub fn rtt(&self) -> Nanos {
        Nanos(self.hops().map(|hop| hop.rtt.0).sum())
    }

    /// What a transfer of a flow alike takes at the least, alone on the path: a
    /// handshake and half a round trip, and its packets at the rate of the narrowest
    /// hop. `None`: a rate or the route changes with time, and so does the least.
    pub fn least_completion(&self, spec: &FlowSpec, bytes: u64) -> Option<Nanos> {
        let hops = || self.hops().skip(spec.hops.start).take(spec.hops.len());
        let changes = |hop: &Path| hop.rate_trace.is_some() || !hop.rtt_changes.is_empty();
        if hops().any(changes) {
            return None;
        }
        let mtu_bytes = hops().map(|hop| hop.mtu_bytes).min()?;
        let packets = bytes.div_ceil(u64::from(mtu_bytes - HEADER_BYTES));
        let on_the_wire = |hop: &Path| {
            let each = u64::from(HEADER_BYTES + hop.overhead_bytes);
            hop.rate
                .map(|rate| rate.transmit_time(bytes + packets * each))
        };
        let slowest = hops().filter_map(on_the_wire).max();
        Some(spec.rtt + Nanos(spec.rtt.0 / 2) + slowest.unwrap_or_default())
    }

    /// The seed of a repetition: number k of every cell with the same seed draws
    /// alike, which makes pairs.
    pub fn rep_seed(&self, rep: u32) -> u64 {
        self.seed
            .wrapping_add(u64::from(rep).wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    /// Every connection that an engine itself opens in a repetition, in the order
    /// of their flow numbers; the user's programs open their own. What is drawn comes
    /// last: each repetition draws another number, and the others keep theirs.
    pub fn connections(&self, rep: u32) -> Vec<Connection> {
        let seed = self.rep_seed(rep);
        let mut list = Vec::new();
        let is_drawn = |spec: &FlowSpec| matches!(spec.workload, WorkloadSpec::Web { .. });
        let mut groups: Vec<_> = self.flows.iter().enumerate().collect();
        groups.sort_by_key(|(_, spec)| is_drawn(spec));
        for (group, spec) in groups {
            for member in 0..spec.count {
                let connection = |index, open, bytes| Connection {
                    group,
                    member,
                    index,
                    open,
                    bytes,
                };
                let start = spec.start + spec.stagger * u64::from(member);
                if let WorkloadSpec::Web { arrivals, .. } = &spec.workload {
                    let stream = |what| Stream::new(seed, &format!("flow.{group}.{member}.{what}"));
                    let drawn =
                        arrivals.draw(start, self.duration, stream("arrivals"), stream("sizes"));
                    let numbered = (0..).zip(drawn);
                    list.extend(numbered.map(|(index, one)| connection(index, one.at, one.bytes)));
                } else {
                    let count = spec.workload.connections().unwrap_or(0);
                    list.extend((0..count).map(|index| connection(index, start, 0)));
                }
            }
        }
        list
    }
}

/// A connection that an engine opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Index of its `[[flow]]`.
    pub group: usize,
    /// Which of the flows alike, from 0.
    pub member: u32,
    /// Which of that flow's connections.
    pub index: u32,
    /// When it is opened, after the start.
    pub open: Nanos,
    /// How much it carries, where the workload draws that; otherwise 0.
    pub bytes: u64,
}

/// A hop of the path: one bottleneck in the data direction, perhaps one against it, delay both ways.
#[derive(Clone, Debug)]
pub struct Path {
    /// `None`: unlimited, packets never wait. Of a trace the mean.
    pub rate: Option<Rate>,
    /// When packets may leave, where the rate is not constant.
    pub rate_trace: Option<Arc<RateTrace>>,
    /// Base round-trip time, without queueing and transmission.
    pub rtt: Nanos,
    /// The route changes, in order of time.
    pub rtt_changes: Vec<RttChange>,
    /// The link sends nothing, in either direction; in order of time.
    pub outages: Vec<Outage>,
    /// Behind the bottleneck, in the data direction.
    pub transit: TransitSpec,
    /// The bottleneck against the data direction.
    pub ack: AckLink,
    /// Loss in the data direction, before the queue.
    pub loss: LossSpec,
    /// Loss of what travels against the data.
    pub ack_loss: LossSpec,
    pub buffer: BufferLimit,
    /// A name of [`crate::queue::QUEUES`].
    pub queue: &'static str,
    /// Of that queue.
    pub queue_params: Params,
    /// In front of the queue.
    pub policer: Option<PolicerSpec>,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Link-layer bytes that the rate and the buffer count besides.
    pub overhead_bytes: u32,
    /// What emulates the path in a lab; the simulator has no use for it.
    pub backend: Backend,
    /// Does a lab's link keep TSO packets whole? Then loss and queue limits act
    /// on them and not on wire packets: fast, and less true. The simulator
    /// always splits.
    pub keep_super_packets: bool,
}

/// The bottleneck against the data direction.
#[derive(Clone, Debug)]
pub struct AckLink {
    /// As [`Path::rate`].
    pub rate: Option<Rate>,
    pub rate_trace: Option<Arc<RateTrace>>,
    pub buffer: BufferLimit,
    /// A name of [`crate::queue::QUEUES`].
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttChange {
    /// After the run's start.
    pub at: Nanos,
    /// In the place of `path.rtt`.
    pub rtt: Nanos,
}

impl Path {
    /// What stands before the data's delay, fresh. `stream` gives the draws of a component; `origin_ns`: the run's start on
    /// the engine's clock.
    pub fn build_bottleneck(&self, stream: impl Fn(&str) -> Stream, origin_ns: u64) -> Bottleneck {
        let link = self.rate.map(|rate| {
            let schedule = Schedule::new(rate, self.rate_trace.clone(), &self.outages, origin_ns);
            let params = self.queue_params.clone();
            let rng = stream("path.queue");
            let queue = self.build_queue(self.queue, params, rate, self.buffer, rng);
            Link::new(schedule, queue)
        });
        let loss = self.loss.build(stream("path.loss"));
        Bottleneck::new(loss, self.policer.map(Policer::new), link)
    }

    /// The same against the data direction.
    pub fn build_ack_bottleneck(
        &self,
        stream: impl Fn(&str) -> Stream,
        origin_ns: u64,
    ) -> Bottleneck {
        let ack = &self.ack;
        let link = ack.rate.map(|rate| {
            let schedule = Schedule::new(rate, ack.rate_trace.clone(), &self.outages, origin_ns);
            let params = ack.queue_params.clone();
            let rng = stream("path.ack_queue");
            let queue = self.build_queue(ack.queue, params, rate, ack.buffer, rng);
            Link::new(schedule, queue)
        });
        let loss = self.ack_loss.build(stream("path.ack_loss"));
        Bottleneck::new(loss, None, link)
    }

    fn build_queue(
        &self,
        name: &str,
        params: Params,
        rate: Rate,
        limit: BufferLimit,
        rng: Stream,
    ) -> Box<dyn Queue> {
        (kind_of(name).build)(Setup {
            limit,
            rate,
            max_packet_bytes: self.mtu_bytes + self.overhead_bytes,
            rng,
            params,
        })
    }

    /// What happens to data behind the bottleneck; `None`: it takes its delay.
    pub fn build_transit(
        &self,
        stream: impl Fn(&str) -> Stream,
        origin_ns: u64,
    ) -> Option<Box<Transit>> {
        let outages = match self.rate {
            Some(_) => Vec::new(),
            None => self.outages.clone(),
        };
        let spec = TransitSpec {
            outages,
            ..self.transit.clone()
        };
        spec.build(stream, origin_ns)
    }

    /// The same against the data direction, where nothing is at random.
    pub fn build_ack_transit(
        &self,
        stream: impl Fn(&str) -> Stream,
        origin_ns: u64,
    ) -> Option<Box<Transit>> {
        let outages = match self.ack.rate {
            Some(_) => Vec::new(),
            None => self.outages.clone(),
        };
        let spec = TransitSpec {
            aggregate: self.transit.aggregate,
            outages,
            ..TransitSpec::NONE
        };
        spec.build(stream, origin_ns)
    }

    /// The rate that a busy bottleneck always has; `None`: it has none, or none that stays.
    pub fn constant_rate(&self) -> Option<Rate> {
        self.rate
            .filter(|_| self.rate_trace.is_none() && self.outages.is_empty())
    }

    /// The same of the link against the data direction.
    pub fn constant_ack_rate(&self) -> Option<Rate> {
        let ack = &self.ack;
        ack.rate
            .filter(|_| ack.rate_trace.is_none() && self.outages.is_empty())
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Kneepoint's own link, unless the kernel's is there and faster.
    Auto,
    /// Kneepoint's own link over TUN.
    User,
    /// netem and qdiscs of the kernel.
    Netem,
}

/// How much the bottleneck's queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferLimit {
    Unlimited,
    Bytes(u64),
    Packets(u32),
}

impl BufferLimit {
    /// Does a queue of so many packets and bytes keep the limit?
    #[inline]
    pub fn holds(self, pkts: u32, bytes: u64) -> bool {
        match self {
            BufferLimit::Unlimited => true,
            BufferLimit::Bytes(limit) => bytes <= limit,
            BufferLimit::Packets(limit) => pkts <= limit,
        }
    }
}

/// Who spaces a sender's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// TCP's own timer, for algorithms that ask for pacing; the rest is unpaced.
    Internal,
    /// TCP's own timer, whatever the algorithm: what SO_MAX_PACING_RATE switches on.
    Timer,
    /// The fq qdisc, for every socket.
    Fq,
}

impl Pacing {
    /// As scenarios write it.
    pub fn name(self) -> &'static str {
        match self {
            Pacing::Internal => "internal",
            Pacing::Timer => "timer",
            Pacing::Fq => "fq",
        }
    }

    pub(super) fn named(name: &str) -> Pacing {
        let all = [Pacing::Internal, Pacing::Timer, Pacing::Fq];
        let found = all.into_iter().find(|pacing| pacing.name() == name);
        found.expect("the registry has the names")
    }
}

/// Linux settings of one side's hosts, named as the sysctls.
#[derive(Clone, Debug)]
pub struct Host {
    /// Jiffies per second: the granularity of TCP's timers and of CUBIC's clock.
    pub hz: u32,
    /// Least, initial and largest send buffer.
    pub tcp_wmem_bytes: [u64; 3],
    /// Least, initial and largest receive buffer.
    pub tcp_rmem_bytes: [u64; 3],
    pub tcp_limit_output_bytes: u64,
    pub tcp_slow_start_after_idle: bool,
    pub tcp_rto_min: Nanos,
    /// Delay of compressed SACKs, and how many one ACK may stand for.
    pub tcp_comp_sack_delay: Nanos,
    pub tcp_comp_sack_nr: u32,
    pub pacing: Pacing,
    /// Qdisc of a lab host's interface, `None`: the kernel's default for it.
    /// The simulator has none but what `pacing` says.
    pub qdisc: Option<String>,
    /// 0 off, 1 ask and accept, 2 accept only.
    pub tcp_ecn: u8,
    /// Route attribute: ACK everything at once.
    pub quickack: bool,
    pub initcwnd: u32,
    /// Largest TSO packet; 0 turns segmentation offload off.
    pub gso_max_bytes: u32,
    /// Does a packet take what it lacks from the next skb (Linux from 6.10 on)?
    pub grow_skb: bool,
    /// Does the receive path merge packets before TCP sees them?
    pub gro: bool,
    /// How long the NIC gathers packets before it interrupts: what GRO can merge.
    pub rx_coalesce: Nanos,
    /// How late it sends, in the mean.
    pub noise: Nanos,
    /// Algorithm of the connections' far end, for what it sends back.
    pub algorithm: String,
}

/// One `[[flow]]`: `count` connections alike.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Shown in tables; the algorithm's name unless the file gives one.
    pub name: String,
    pub algorithm: String,
    /// Parameters set by the file, by name; the rest keep their defaults.
    pub params: Vec<(String, u32)>,
    pub workload: WorkloadSpec,
    pub count: u32,
    /// Start of the first connection; each further one starts `stagger` later.
    pub start: Nanos,
    pub stagger: Nanos,
    /// Base RTT of this flow.
    pub rtt: Nanos,
    /// The hops that it crosses: the first, and the one behind the last.
    pub hops: Range<usize>,
    /// Does the sending application wait in write() for room in the send buffer?
    pub blocking: bool,
    /// Who spaces what the flow sends; `None`: as its host says.
    pub pacing: Option<Pacing>,
    /// SO_MAX_PACING_RATE.
    pub max_pacing_rate: Option<Rate>,
}

/// What the application does with the connection.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadSpec {
    /// Data without end, in writes of `write_bytes`.
    Bulk { write_bytes: u64 },
    /// `bytes` in writes of `write_bytes`, then close: completion time.
    Transfer { bytes: u64, write_bytes: u64 },
    /// Data without end for `on`, in writes of `write_bytes`, then none for `off`, and so on.
    OnOff {
        on: Nanos,
        off: Nanos,
        write_bytes: u64,
    },
    /// Clients at the receiver ask servers at the sender: latency and requests per second.
    RequestResponse {
        request_bytes: u64,
        response_bytes: u64,
        /// Connections per flow.
        connections: u32,
        /// Requests in flight per connection.
        depth: u32,
        /// Stop after so many per connection.
        requests: Option<u64>,
    },
    /// Transfers that come and go, each a connection of its own.
    Web {
        arrivals: Arrivals,
        write_bytes: u64,
    },
    /// Programs of the user's, in a lab only: the server at the sender's host,
    /// the client at the receiver's. `{server}` in a command stands for the
    /// server's address.
    Programs {
        server: Option<String>,
        client: String,
    },
}
