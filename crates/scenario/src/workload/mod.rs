//! What applications do with a connection: one file each, one line each in
//! [`WORKLOADS`]. Both engines drive the same state machines: the simulator
//! with its TCP, the kernel engine with real sockets.
//!
//! A workload's file has its keys, how it is read from them and described, and
//! its applications. Everybody else asks: nobody matches on a workload's name.

mod bulk;
mod on_off;
mod programs;
mod request_response;
mod small_writes;
mod thread;
mod transfer;
pub mod web;

use std::ops::Deref;

use crate::key::Default::Words;
use crate::key::error::ScenarioError;
use crate::key::keyed::{Field, Shown};
pub use crate::key::sizes;
use crate::key::value::Value;
use crate::key::values::Values;
use crate::key::{GIB, Key, key, kind};
use knee_units::Nanos;
use knee_units::rng::Stream;
use serde::Serialize;
pub use thread::{Thread, in_turn};

/// One end's application: a state machine that says what it would write and is
/// told what it read.
pub trait App: Send {
    /// Length of the write() that the application is in or would begin now, in
    /// bytes; 0: none.
    fn next_write_bytes(&mut self, now: Nanos) -> u64;

    /// The socket took `bytes` of it.
    fn wrote(&mut self, now: Nanos, bytes: u64);

    /// Does it read and do nothing else? Then it is neither told of what it reads nor asked for what it writes.
    fn only_reads(&self) -> bool {
        false
    }

    /// Does it write without end, and do nothing else? Then it is not asked while its socket is full.
    fn only_writes(&self) -> bool {
        false
    }

    /// `bytes` were read, in order.
    fn read(&mut self, now: Nanos, bytes: u64);

    /// When it begins to write, while it would not and nothing it reads would
    /// change that: it is asked again then.
    fn wakes_at(&self, _now: Nanos) -> Option<Nanos> {
        None
    }

    /// The thread that serves it, before anything else. An application that keeps no thread busy has no use for it.
    fn runs_on(&mut self, _thread: &Thread) {}

    /// Until when it keeps its thread busy before it can write more; `None`: it does not. The simulator learns that by
    /// [`Self::wakes_at`]; a real thread has to be kept busy.
    fn computes_until(&self, _now: Nanos) -> Option<Nanos> {
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

/// One connection of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it is opened.
    pub at: Nanos,
    /// How much it carries, where the workload draws that; otherwise 0.
    pub bytes: u64,
}

/// Commands of the user's, which only a lab can run. `{server}` in one stands for the server's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commands<'a> {
    /// At the sender's host.
    pub server: Option<&'a str>,
    /// At the receiver's host.
    pub client: &'a str,
}

/// What everybody asks of a workload with its settings.
pub trait Workload {
    /// Fresh applications for one connection, which carries `drawn_bytes` where sizes are drawn. `None`: the user's
    /// programs do the work.
    fn apps(&self, drawn_bytes: u64) -> Option<Apps>;

    /// Its keys and what follows from them, in the order in which reports show them.
    fn shown(&self) -> Vec<Shown>;

    /// The connections that an engine opens for a flow which starts at `from`, in a run that ends at `until`. `stream`
    /// gives the flow's own draws for a purpose.
    fn connections(
        &self,
        from: Nanos,
        _until: Nanos,
        _stream: &dyn Fn(&str) -> Stream,
    ) -> Vec<Arrival> {
        vec![Arrival { at: from, bytes: 0 }]
    }

    /// How many connections a flow has within this time; of those that are drawn the expected number.
    fn expected_connections(&self, _within: Nanos) -> u64 {
        1
    }

    /// Payload of a connection that ends once it is transferred, `drawn_bytes` where sizes are drawn. `None`: it is no
    /// finite transfer.
    fn transfer_bytes(&self, _drawn_bytes: u64) -> Option<u64> {
        None
    }

    /// Is each of its connections a finite transfer? Such a connection counts as a whole, whenever the warm-up ends.
    fn is_transfer(&self) -> bool {
        self.transfer_bytes(0).is_some()
    }

    /// Threads of the applications at the sender and at the receiver, over which connections are spread in turn.
    fn threads(&self) -> [u32; 2] {
        [1, 1]
    }

    /// Does it count how the receiver's reads come?
    fn times_reads(&self) -> bool {
        false
    }

    /// Does the sender always have data to write?
    fn is_endless(&self) -> bool {
        false
    }

    /// The programs that do the work, in place of applications of ours.
    fn commands(&self) -> Option<Commands<'_>> {
        None
    }
}

/// What of a workload counts: which metrics verdicts compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Goodput,
    /// The time until a transfer is complete.
    Completion,
    /// Requests per second and their latency. The receiver opens the connections.
    Requests,
    /// What the user's programs say.
    Programs,
}

impl Counts {
    pub fn name(self) -> &'static str {
        match self {
            Counts::Goodput => "goodput",
            Counts::Completion => "completion",
            Counts::Requests => "requests",
            Counts::Programs => "programs",
        }
    }
}

/// A small flow of a workload, and what one of its connections moves.
pub struct Example {
    /// Its keys in `[[flow]]`.
    pub keys: &'static str,
    /// Payload toward the receiver, which is also the drawn size where sizes are drawn; `None`: without end.
    pub down_bytes: Option<u64>,
    /// Payload toward the sender.
    pub up_bytes: u64,
}

/// A workload that a scenario can name.
pub struct WorkloadKind {
    pub name: &'static str,
    pub summary: &'static str,
    /// Keys of `[[flow]]` that belong to it. Those that workloads share are one constant.
    keys: &'static [Key],
    pub counts: Counts,
    /// Are its connections drawn from the seed, how many there are, when they come and how much they carry?
    pub draws: bool,
    /// Keys by which a flow has fewer connections, and what to do with them.
    pub(crate) fewer: &'static [(&'static str, &'static str)],
    pub example: Example,
    /// From the values of a `[[flow]]`.
    pub(crate) read: fn(&dyn Values) -> Result<WorkloadSpec, ScenarioError>,
}

impl WorkloadKind {
    /// Names of the keys of `[[flow]]` that belong to it.
    pub fn key_names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }
}

/// Makes of the list of workloads the registry, and the type that holds one of them with its settings.
macro_rules! workloads {
    ($($name:ident of &$file:ident::KIND,)*) => {
        /// Every workload, in the order `knee list workloads` prints them.
        pub static WORKLOADS: &[&WorkloadKind] = &[$(&$file::KIND),*];

        /// What the application does with the connection: a workload with its settings.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub enum WorkloadSpec {
            $($name($file::$name),)*
        }

        impl WorkloadSpec {
            pub fn kind(&self) -> &'static WorkloadKind {
                match self {
                    $(WorkloadSpec::$name(_) => &$file::KIND,)*
                }
            }
        }

        /// The workload answers for itself.
        impl Deref for WorkloadSpec {
            type Target = dyn Workload;

            fn deref(&self) -> &(dyn Workload + 'static) {
                match self {
                    $(WorkloadSpec::$name(workload) => workload,)*
                }
            }
        }

        $(
            pub use $file::$name;

            impl From<$name> for WorkloadSpec {
                fn from(workload: $name) -> WorkloadSpec {
                    WorkloadSpec::$name(workload)
                }
            }
        )*
    };
}

workloads! {
    Bulk of &bulk::KIND,
    Transfer of &transfer::KIND,
    SmallWrites of &small_writes::KIND,
    OnOff of &on_off::KIND,
    RequestResponse of &request_response::KIND,
    Web of &web::KIND,
    Programs of &programs::KIND,
}

/// The workload of that name.
pub fn find(name: &str) -> Option<&'static WorkloadKind> {
    WORKLOADS.iter().copied().find(|kind| kind.name == name)
}

/// The keys of all workloads, each once, with the names of those that it belongs to.
pub(crate) fn keys() -> Vec<Key> {
    let mut found: Vec<Key> = Vec::new();
    for key in WORKLOADS.iter().flat_map(|kind| kind.keys) {
        if found.iter().all(|known| known.name != key.name) {
            let has = |kind: &&&WorkloadKind| kind.key_names().any(|name| name == key.name);
            let names: Vec<&str> = WORKLOADS.iter().filter(has).map(|kind| kind.name).collect();
            found.push(Key {
                // As long as the registry: for ever.
                workloads: names.leak(),
                ..*key
            });
        }
    }
    found
}

/// Of every workload that writes data in pieces of one size.
const WRITE: Key = key(
    "write",
    &kind::Bytes { min: 1, max: GIB },
    Words("128KiB; of workload small-writes 128B"),
    "bytes of each write of the application",
    "iperf3(1), -l",
);

/// iperf3's.
const WRITE_BYTES: u64 = 128 * 1024;

/// Bytes of each write, where a workload's own default holds unless the file says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Write<const DEFAULT_BYTES: u64>(pub u64);

impl<const DEFAULT_BYTES: u64> Field for Write<DEFAULT_BYTES> {
    fn read(values: &[Option<&Value>]) -> Option<Write<DEFAULT_BYTES>> {
        match values {
            [None] => Some(Write(DEFAULT_BYTES)),
            _ => u64::read(values).map(Write),
        }
    }

    fn values(&self) -> Vec<Value> {
        self.0.values()
    }
}

/// Reads and does nothing else.
struct Sink;

impl App for Sink {
    fn next_write_bytes(&mut self, _now: Nanos) -> u64 {
        0
    }
    fn wrote(&mut self, _now: Nanos, _bytes: u64) {}
    fn only_reads(&self) -> bool {
        true
    }
    fn read(&mut self, _now: Nanos, _bytes: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_that_workloads_share_means_the_same_in_each() {
        let all = || WORKLOADS.iter().flat_map(|kind| kind.keys);
        for key in all() {
            let forms = |key: &Key| (key.kind.forms(), key.doc, key.source, key.axis);
            for other in all().filter(|other| other.name == key.name) {
                assert_eq!(forms(key), forms(other), "{}", key.name);
            }
        }
    }

    #[test]
    fn no_key_of_a_workload_has_the_name_of_a_key_of_every_flow() {
        let names: Vec<&str> = crate::keys::Section::Flow(0)
            .keys()
            .map(|key| key.name)
            .collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[..i].contains(name), "{name}");
        }
    }
}
