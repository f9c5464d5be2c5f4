//! What applications do with a connection: one file each, one line each in
//! [`WORKLOADS`]. Both engines drive the same state machines: the simulator
//! with its TCP, the kernel engine with real sockets.

mod bulk;
mod on_off;
mod programs;
mod request_response;
pub mod sizes;
mod transfer;
pub mod web;

use knee_units::Nanos;
use serde::Serialize;
use web::Arrivals;

/// One end's application: a state machine that says what it would write and is
/// told what it read.
pub trait App: Send {
    /// Length of the write() that the application is in or would begin now, in
    /// bytes; 0: none.
    fn next_write_bytes(&mut self, now: Nanos) -> u64;

    /// The socket took `bytes` of it.
    fn wrote(&mut self, now: Nanos, bytes: u64);

    /// Will it ever write? One that only reads is not asked after each read.
    fn writes(&self) -> bool {
        true
    }

    /// `bytes` were read, in order.
    fn read(&mut self, now: Nanos, bytes: u64);

    /// When it begins to write, while it would not and nothing it reads would
    /// change that: it is asked again then.
    fn wakes_at(&self, _now: Nanos) -> Option<Nanos> {
        None
    }

    /// Has it written all that it ever will, so that it closes its side?
    fn closes(&self) -> bool {
        false
    }

    /// When this end's work was complete.
    fn completed(&self) -> Option<Nanos> {
        None
    }

    /// Answers received since the last call: the latency of each is appended.
    fn take_latencies(&mut self, _into: &mut Vec<Nanos>) {}
}

/// The applications at the two ends of one connection.
pub struct Apps {
    /// At the sender's host, which sends the data of interest.
    pub sender: Box<dyn App>,
    pub receiver: Box<dyn App>,
    /// Does the receiver's host open the connection, as a client that asks?
    pub receiver_opens: bool,
}

/// A workload that a scenario can name.
pub struct WorkloadKind {
    pub name: &'static str,
    pub summary: &'static str,
    /// Keys of `[[flow]]` that belong to it.
    pub keys: &'static [&'static str],
}

/// Every workload, in the order `knee list workloads` prints them.
pub const WORKLOADS: &[&WorkloadKind] = &[
    &bulk::KIND,
    &transfer::KIND,
    &on_off::KIND,
    &request_response::KIND,
    &web::KIND,
    &programs::KIND,
];

/// What the application does with the connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
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

impl WorkloadSpec {
    pub fn kind(&self) -> &'static WorkloadKind {
        match self {
            WorkloadSpec::Bulk { .. } => &bulk::KIND,
            WorkloadSpec::Transfer { .. } => &transfer::KIND,
            WorkloadSpec::OnOff { .. } => &on_off::KIND,
            WorkloadSpec::RequestResponse { .. } => &request_response::KIND,
            WorkloadSpec::Web { .. } => &web::KIND,
            WorkloadSpec::Programs { .. } => &programs::KIND,
        }
    }

    /// Connections that one flow of this workload opens, and at the same time;
    /// `None`: at times of its own, or by programs as they like.
    pub fn connections(&self) -> Option<u32> {
        match self {
            WorkloadSpec::RequestResponse { connections, .. } => Some(*connections),
            WorkloadSpec::Web { .. } | WorkloadSpec::Programs { .. } => None,
            _ => Some(1),
        }
    }

    /// How much a connection of this workload carries, `drawn` where sizes are
    /// drawn; `None`: it is no finite transfer.
    pub fn transfer_bytes(&self, drawn: u64) -> Option<u64> {
        match *self {
            WorkloadSpec::Transfer { bytes, .. } => Some(bytes),
            WorkloadSpec::Web { .. } => Some(drawn),
            _ => None,
        }
    }

    /// Fresh applications for one connection, `bytes` long where sizes are drawn;
    /// `None`: programs of the user's, which only a lab can run.
    pub fn apps(&self, bytes: u64) -> Option<Apps> {
        Some(match *self {
            WorkloadSpec::Bulk { write_bytes } => bulk::apps(write_bytes),
            WorkloadSpec::Transfer { bytes, write_bytes } => transfer::apps(bytes, write_bytes),
            WorkloadSpec::OnOff {
                on,
                off,
                write_bytes,
            } => on_off::apps(on, off, write_bytes),
            WorkloadSpec::RequestResponse {
                request_bytes,
                response_bytes,
                depth,
                requests,
                ..
            } => request_response::apps(request_bytes, response_bytes, depth, requests),
            WorkloadSpec::Web { write_bytes, .. } => transfer::apps(bytes, write_bytes),
            WorkloadSpec::Programs { .. } => return None,
        })
    }
}

/// Reads and does nothing else.
struct Sink;

impl App for Sink {
    fn next_write_bytes(&mut self, _now: Nanos) -> u64 {
        0
    }
    fn wrote(&mut self, _now: Nanos, _bytes: u64) {}
    fn writes(&self) -> bool {
        false
    }
    fn read(&mut self, _now: Nanos, _bytes: u64) {}
}
