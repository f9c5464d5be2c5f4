//! What a run is told, and what it gives.

use knee_tables::{CpuSamples, Events, Flows, HostCosts, QueueSamples, Samples, Table};
use knee_units::Nanos;

use crate::host::FourTuple;

/// Rows of the tables that a run fills.
#[derive(Debug, Default)]
pub struct Rows {
    pub flows: Flows,
    pub samples: Samples,
    pub queue: QueueSamples,
    pub events: Events,
    /// Of hosts that have processors.
    pub cpu: CpuSamples,
    pub host_costs: HostCosts,
}

impl Rows {
    /// How many there are of what comes as a run goes on.
    pub fn count(&self) -> usize {
        self.samples.rows()
            + self.queue.rows()
            + self.events.rows()
            + self.cpu.rows()
            + self.flows.rows()
    }

    /// Without rows; the memory stays.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.samples.clear();
        self.queue.clear();
        self.events.clear();
        self.cpu.clear();
        self.host_costs.clear();
    }
}

/// What one repetition of one cell produced. Of the tables it has the rows that nobody took while the run went on.
#[derive(Debug, Default)]
pub struct Output {
    pub flows: Flows,
    pub samples: Samples,
    pub queue: QueueSamples,
    pub events: Events,
    pub cpu: CpuSamples,
    pub host_costs: HostCosts,
    /// The wire as seen at the sender, when asked for.
    pub capture: Vec<CapturedPacket>,
    /// Of each flow in `capture`, by its number.
    pub tuples: Vec<FourTuple>,
    /// Data packets that entered the path: the work done, for benchmarks.
    pub data_packets: u64,
    /// Where every payload byte went, one per flow, if asked for.
    pub accounts: Vec<Account>,
}

/// Where the payload of one flow's data direction went, at the end of the run:
/// `sent = arrived + dropped + under way`, and `read <= written`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub sent_bytes: u64,
    /// Reached the far stack, with duplicates.
    pub arrived_bytes: u64,
    /// Lost by the path or dropped by the queue.
    pub dropped_bytes: u64,
    /// Copies that the path made.
    pub duplicated_bytes: u64,
    pub under_way_bytes: u64,
    pub written_bytes: u64,
    pub read_bytes: u64,
}

/// What to do besides running.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keep every packet that passes the senders' interfaces, for pcapng.
    pub capture: bool,
    /// Every link takes a step for each packet, also where it could be foreseen when that leaves; the tables are the same.
    pub step_links: bool,
    /// Say of each connection where its bytes went ([`Output::accounts`]).
    pub accounts: bool,
    /// Connections that are over are kept until the run's end; the tables are the same.
    pub keep_connections: bool,
    /// Somebody decides for one connection, in the place of its algorithm.
    pub agent: Option<Steered>,
}

/// The connection that an agent decides for.
#[derive(Clone, Copy, Debug)]
pub struct Steered {
    /// Index of its `[[flow]]`.
    pub group: usize,
    pub decisions: Decisions,
}

/// When an agent decides, besides at its connection's opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decisions {
    /// At each ACK of which an algorithm is told. Where several come at one instant (`rx_coalesce`), once for all of them.
    EachAck,
    /// At the first ACK of each round trip.
    EachRound,
    /// As often as that.
    Every(Nanos),
}

/// One packet as a capture at the sender's interface would show it. Each TCP
/// segment on the wire is one record, so captures show wire packets, not TSO.
#[derive(Clone, Debug)]
pub struct CapturedPacket {
    pub t: Nanos,
    pub flow: u32,
    /// From the sender's host to the receiver's?
    pub outbound: bool,
    /// Sequence and acknowledgement numbers from the connection's start; the
    /// SYN has 0.
    pub seq: u64,
    pub ack: u64,
    pub payload_bytes: u32,
    pub syn: bool,
    pub fin: bool,
    pub has_ack: bool,
    pub psh: bool,
    pub ece: bool,
    pub cwr: bool,
    /// Once called NS.
    pub ae: bool,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// Window field as on the wire (already scaled down after the SYN).
    pub window: u16,
    /// Window scale offered; in SYNs only.
    pub wscale: u8,
    pub mss_bytes: u16,
    pub tsval_ms: u32,
    pub tsecr_ms: u32,
    /// SACK blocks, first `sack_count` valid, DSACK first when there is one.
    pub sack: [(u64, u64); 4],
    pub sack_count: u8,
}

/// Why a cell cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error("unknown algorithm {name:?}; `knee list algorithms` prints the known ones")]
    UnknownAlgorithm { name: String },
    #[error("{what}, which only a lab can; run it with `--engine kernel`")]
    NeedsLab { what: String },
    #[error(
        "path.rtt = \"0s\" with path.rate = \"unlimited\" and rx_coalesce = \"0s\" at both ends leaves nothing that takes time, so that simulated time would stand still; set one of them, or run it with `--engine kernel`"
    )]
    Timeless,
    #[error("got an agent for what it cannot have: {what}")]
    NoSeat { what: String },
    #[error(transparent)]
    Param(#[from] knee_cc::ParamError),
}

/// Called now and then with the virtual time reached and the rows gathered since they were last taken, which it may take;
/// returning false ends the run.
pub type Progress<'a> = dyn FnMut(Nanos, &mut Rows) -> bool + 'a;
