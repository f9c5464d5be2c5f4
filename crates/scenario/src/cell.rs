//! One cell of the matrix, resolved: what an engine runs.

use std::ops::Range;

use knee_path::Path;
use knee_path::packet::HEADER_BYTES;
use knee_units::rng::Stream;
use knee_units::{Nanos, Rate};
use serde::Serialize;

use crate::workload::WorkloadSpec;

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

    /// The least time that a transfer with these settings takes, alone on the path: a
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
    /// Which of the group's flows, from 0.
    pub member: u32,
    /// Which of that flow's connections.
    pub index: u32,
    /// When it is opened, after the start.
    pub open: Nanos,
    /// How much it carries, where the workload draws that; otherwise 0.
    pub bytes: u64,
}

/// Who spaces a sender's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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
