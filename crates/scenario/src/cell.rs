//! One cell of the matrix, resolved: what an engine runs.

mod flow;
mod host;

pub use flow::FlowSpec;
pub use host::{
    GroTable, Host, PacingTimer, Prr, RcvbufGrowth, RcvbufShare, Reception, SendStamps,
};

use std::collections::BTreeMap;

use crate::key::Default::{Required, Value, Words};
use crate::key::keyed::keyed;
use crate::key::keyed::named;
use crate::key::names::Kernel;
use crate::key::{fixed, key, kind, of_release, secs, us};
use knee_path::Path;
use knee_path::packet::HEADER_BYTES;
use knee_tables::KeptSamples;
use knee_units::Nanos;
use knee_units::rng::Stream;
use serde::Serialize;

keyed! {
    /// One point of a scenario's matrix, every value resolved. Its serial form is what an engine is given of it: all but
    /// its words and its place among others.
    #[derive(Clone, Debug, Serialize)]
    pub struct Cell {
        given {
            /// Position in the matrix, from 0.
            #[serde(skip)]
            pub index: u32,
            #[serde(skip)]
            pub title: String,
            /// An id of the published claims, when the scenario reproduces one.
            #[serde(skip)]
            pub claim: Option<String>,
            /// What tells this cell from the others, in the order of the file:
            /// (`path.loss`, `1.5%`), (`flow.0.algorithm`, `cubic`).
            #[serde(skip)]
            pub axes: Vec<(String, String)>,
        };
        pub duration: Nanos = key(
            "duration",
            &kind::Duration {
                min: us(1),
                max: secs(86_400),
            },
            Required("\"30s\""),
            "length of the run",
            "tcpknee",
        );
        pub warmup: Nanos = key(
            "warmup",
            &kind::Duration {
                min: Nanos::ZERO,
                max: secs(86_400),
            },
            Value("0s"),
            "beginning of the run that steady-state metrics leave out",
            "tcpknee",
        );
        #[serde(skip)]
        pub repeat: u32 = fixed(key(
            "repeat",
            &kind::Count {
                min: 1,
                max: 10_000,
            },
            Value("1"),
            "repetitions of every cell, each with its own random draws",
            "tcpknee",
        ));
        pub seed: u64 = key(
            "seed",
            &kind::Count {
                min: 0,
                max: i64::MAX as u64,
            },
            Value("1"),
            "where all random draws start",
            "tcpknee",
        );
        pub sample_interval: Nanos = key(
            "sample_interval",
            &kind::Duration {
                min: us(10),
                max: secs(3_600),
            },
            Value("10ms"),
            "how often flows and queues are sampled",
            "tcpknee",
        );
        #[serde(skip_serializing_if = "KeptSamples::is_all")]
        pub samples: KeptSamples = fixed(key(
            "samples",
            &kind::Samples,
            Words("every column"),
            "columns of the table samples that are kept",
            "tcpknee",
        ));
        /// Whose rules the hosts have, as the defaults of their keys: an engine is given these.
        #[serde(skip)]
        pub kernel: Option<Kernel> = of_release(key(
            "kernel",
            &kind::Kernel,
            Words("none: what the keys' defaults say, which are Linux 6.18's"),
            "whose rules and defaults both hosts have: of a release in the simulator (`knee kernel rules`), and with the engine guest of that kernel itself, as `knee kernel list` names it; keys that are set go before them",
            "tcpknee; docs/kernels.md",
        ));
        given {
            /// The first hop in the data direction: of most scenarios the only one.
            pub path: Path,
            /// The hops behind it, in the data direction.
            pub further: Vec<Path>,
            pub sender: Host,
            pub receiver: Host,
            pub flows: Vec<FlowSpec>,
            /// Digests of the files whose algorithms the cell uses, by the algorithms' names.
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            pub algorithm_files: BTreeMap<String, String>,
        };
    }
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

    /// How much of the run's beginning does not count for a flow. A transfer counts as a whole.
    pub fn warmup_of(&self, spec: &FlowSpec) -> Nanos {
        match spec.workload.is_transfer() {
            true => Nanos::ZERO,
            false => self.warmup,
        }
    }

    /// The least time that a transfer with these settings takes, alone on the path: a
    /// handshake and half a round trip, and its packets at the rate of the narrowest
    /// hop. `None`: a rate or the route changes with time, and so does the least; or nothing on the path takes time.
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
        let least = spec.rtt + Nanos(spec.rtt.0 / 2) + slowest.unwrap_or_default();
        Some(least).filter(|&least| least > Nanos::ZERO)
    }

    /// The seed of a repetition: number k of every cell with the same seed draws
    /// alike, which makes pairs.
    pub fn rep_seed(&self, rep: u32) -> u64 {
        self.seed
            .wrapping_add(u64::from(rep).wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    /// How long after a tick of the hosts' clock a repetition begins: the two stand in no fixed relation.
    pub fn phase_ns(&self, rep: u32) -> u64 {
        let tick_ns = 1_000_000_000 / u64::from(self.sender.hz);
        Stream::new(self.rep_seed(rep), "clock").next_u64() % tick_ns
    }

    /// Every connection that an engine itself opens in a repetition, in the order
    /// of their flow numbers; the user's programs open their own. What is drawn comes
    /// last: each repetition draws another number, and the others keep theirs.
    pub fn connections(&self, rep: u32) -> Vec<Connection> {
        let seed = self.rep_seed(rep);
        let mut list = Vec::new();
        let mut groups: Vec<_> = self.flows.iter().enumerate().collect();
        groups.sort_by_key(|(_, spec)| spec.workload.kind().draws);
        for (group, spec) in groups {
            let first = list.len();
            for member in 0..spec.count {
                let places_from = (list.len() - first) as u32;
                let start = spec.start + spec.stagger * u64::from(member);
                let stream =
                    |what: &str| Stream::new(seed, &format!("flow.{group}.{member}.{what}"));
                let opened = spec.workload.connections(start, self.duration, &stream);
                list.extend(
                    (0..)
                        .zip(opened)
                        .zip(places_from..)
                        .map(|((index, one), place)| Connection {
                            group,
                            member,
                            index,
                            place,
                            open: one.at,
                            bytes: one.bytes,
                        }),
                );
            }
        }
        list
    }

    /// How many threads the applications at the sender and at the receiver have: flows share them.
    pub fn threads(&self) -> [u32; 2] {
        let most = |side: usize| {
            self.flows
                .iter()
                .map(|flow| flow.workload.threads()[side])
                .max()
        };
        [0, 1].map(|side| most(side).unwrap_or(1))
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
    /// Which of all connections of the group.
    pub place: u32,
    /// When it is opened, after the start.
    pub open: Nanos,
    /// How much it carries, where the workload draws that; otherwise 0.
    pub bytes: u64,
}

/// Of the keys that say who spaces packets.
const PACING: &dyn kind::Kind = &kind::Name("pacing", || Pacing::NAMES.to_vec());
const PACING_SOURCE: &str =
    "Linux, net/ipv4/tcp_output.c, net/sched/sch_fq.c; timer: socket(7), SO_MAX_PACING_RATE";

named! {
    /// Who spaces a sender's packets.
    pub enum Pacing {
        /// TCP's own timer, for algorithms that ask for pacing; the rest is unpaced.
        Internal = "internal",
        /// TCP's own timer, whatever the algorithm: what SO_MAX_PACING_RATE switches on.
        Timer = "timer",
        /// The fq qdisc, for every socket.
        Fq = "fq",
    }
}
