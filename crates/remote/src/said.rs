//! What the helper says.

use std::collections::BTreeMap;
use std::io::Write;

use knee_clock::monotonic_ns;
use knee_hold::lock::Holder;
use knee_hold::recorded::Recorded;
use knee_traffic::EndReport;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::connections::Connection;
use crate::host::{Counters, Facts};
use crate::path::Measured;
use crate::programs::Outcome;

/// One line of its standard output.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    Hello(Facts),
    Pong(Pong),
    Counters(Counters),
    /// Who else has the lock; nobody, so that who asked has it.
    Locked(Option<Holder>),
    Settings(String),
    Recorded(Recorded),
    /// The device whose packets are copied.
    Capture(String),
    Captured(Captured),
    Listening(Listening),
    Path(Measured),
    /// The duration is over, or this end has seen all of the work done.
    Over(u64),
    Done(Box<Done>),
    Error(String),
}

/// Where an end listens.
#[derive(Serialize)]
pub struct Listening {
    /// The port of each `[[flow]]` whose far end opens.
    pub ports: Vec<Option<u16>>,
    /// At every address of the host, since the one that was named is none of its own.
    pub everywhere: bool,
    /// The ports of the servers of programs, by `[[flow]]`.
    pub servers: Vec<Vec<u16>>,
}

/// By this host's clocks.
#[derive(Serialize)]
pub struct Pong {
    n: u64,
    monotonic_ns: u64,
    realtime_ns: u64,
}

/// What became of a side. Its samples follow the line.
#[derive(Serialize)]
pub struct Done {
    /// Since the start: when the last sample was taken.
    pub ended_ns: u64,
    /// By flow number: bytes read, and when it was opened, established, complete and closed, since the start.
    pub progress: Vec<(u64, [Option<u64>; 4])>,
    pub reports: Vec<EndReport>,
    /// What each connection ran, by flow number.
    pub congestion: BTreeMap<u32, String>,
    /// Connections of programs; their flow numbers follow those of the scenario's flows.
    pub connections: Vec<Connection>,
    pub programs: Vec<Outcome>,
    /// Samples that were taken, and those left out because there was no time for them.
    pub samples: u64,
    pub missed: u64,
    /// Length of what follows.
    pub records_bytes: usize,
    #[serde(skip)]
    pub records: Vec<u8>,
}

/// Copies of packets: `knee_capture::Captured` as postcard writes it follows the line.
#[derive(Serialize)]
pub struct Captured {
    pub records_bytes: usize,
    #[serde(skip)]
    pub records: Vec<u8>,
}

impl Said {
    /// What follows its line.
    fn records(&self) -> &[u8] {
        match self {
            Said::Done(done) => &done.records,
            Said::Captured(captured) => &captured.records,
            _ => &[],
        }
    }

    pub fn pong(n: u64) -> Said {
        let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("the clock is always there");
        Said::Pong(Pong {
            n,
            monotonic_ns: monotonic_ns(),
            realtime_ns: now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64,
        })
    }
}

/// Says it, in one piece. Who cannot be told is gone, and this process with him.
pub fn tell(said: &Said) {
    let mut line = serde_json::to_vec(said).expect("it is plain data");
    line.push(b'\n');
    line.extend_from_slice(said.records());
    let mut out = std::io::stdout().lock();
    if out.write_all(&line).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}
