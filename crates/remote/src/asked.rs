//! Orders to the helper.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use knee_traffic::Secret;
use serde::Deserialize;

/// One line of its standard input.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Asked {
    /// What are you?
    Hello,
    /// What time is it?
    Ping { n: u64 },
    /// What has the host counted so far?
    Counters,
    /// Nobody else is to test with this host until this process ends; `who` wants it.
    Lock { who: String },
    /// What is the host set to, as far as a test may change it? `towards`: the other host.
    Settings { towards: IpAddr },
    /// The files by which the doctor judges the host.
    Recorded,
    /// Copy the headers of packets from now on.
    Capture(CaptureAsked),
    /// What was copied? `at_ns`: when times begin, by this host's clock.
    Captured { at_ns: u64 },
    /// What comes is this repetition: listen.
    Prepare(Box<Prepare>),
    /// How far is the other host?
    Path(PathAsked),
    /// Run what was prepared.
    Start(Start),
    /// End it.
    Stop,
}

#[derive(Debug, Deserialize)]
pub struct Prepare {
    /// One cell, as `knee_scenario::Scenario::write_cell` writes it.
    pub cell: String,
    /// Our name and Linux's of each algorithm that a scenario may name.
    pub names: Vec<(String, String)>,
    /// Of the algorithms of files: path, name and digest.
    pub files: Vec<(String, String, String)>,
    pub rep: u32,
    pub side: SideName,
    pub secret: Secret,
    /// What the kernel calls each algorithm of the cell.
    pub algorithms: BTreeMap<String, String>,
    /// The first port to listen at; 0: any.
    pub port: u16,
    /// The address of this host by which the other one reaches it: to listen at.
    pub own: IpAddr,
    /// The address of the other host.
    pub other: IpAddr,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideName {
    Sender,
    Receiver,
}

#[derive(Debug, Deserialize)]
pub struct PathAsked {
    pub far: SocketAddr,
    pub secret: Secret,
    /// Round trips that are measured.
    pub count: u32,
    /// What is sent besides to measure the rate: at most so much, in so much time; 0: nothing.
    pub bytes: u64,
    pub milliseconds: u64,
}

#[derive(Debug, Deserialize)]
pub struct CaptureAsked {
    /// The other host, by whose way the device is found.
    pub towards: IpAddr,
    /// Of TCP packets that have one of these.
    pub ports: Vec<u16>,
    /// Of the kernel's memory.
    pub room_bytes: u64,
}

#[derive(Debug, Deserialize)]
pub struct Start {
    /// By this host's clock.
    pub at_ns: u64,
    /// Where the far end of each `[[flow]]` listens, of those that this end opens.
    pub far: Vec<Option<SocketAddr>>,
    /// The ports of the servers of programs, by `[[flow]]`.
    pub servers: Vec<Vec<u16>>,
}
