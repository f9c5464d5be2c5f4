//! UDP carried on: each pair of client and destination is a flow with two
//! sockets of its own, until it has been silent for a while.

use std::collections::HashMap;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg};

use super::sockets;
use crate::shell::porter::{Kind, Porter};

/// A flow that has been silent for so long is forgotten: RFC 4787, REQ-5.
const SILENCE: Duration = Duration::from_secs(120);
/// Most flows at once, two sockets each; past them the longest silent one goes.
const FLOWS_MAX: usize = 1024;
/// Most datagrams taken of one socket before others have their turn.
const TURNS: u32 = 64;

/// Who talks to whom: the client in the lab, and the address that it meant.
pub type Pair = (SocketAddrV4, SocketAddrV4);

/// A client's datagrams to one destination.
pub struct Flow {
    pair: Pair,
    far: UdpSocket,
    host: UdpSocket,
    used: Instant,
}

/// All flows, by a number that is not used again while the relay lives.
#[derive(Default)]
pub struct Flows {
    flows: HashMap<u64, Flow>,
    numbers: HashMap<Pair, u64>,
    next: u64,
}

impl Flow {
    /// The lab's socket and the host's.
    pub fn sockets(&self) -> [&UdpSocket; 2] {
        [&self.far, &self.host]
    }

    /// Moves what has arrived on either side to the other. Returns whether
    /// more may be waiting.
    fn pump(&mut self, scratch: &mut [u8]) -> bool {
        self.used = Instant::now();
        let up = pump(&self.far, &self.host, scratch);
        let down = pump(&self.host, &self.far, scratch);
        up | down
    }
}

impl Flows {
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    pub fn number(&self, pair: &Pair) -> Option<u64> {
        self.numbers.get(pair).copied()
    }

    /// Opens a flow from `pair` to `destination`. Returns its number.
    pub fn open(
        &mut self,
        pair: Pair,
        destination: SocketAddr,
        porter: &Porter,
    ) -> io::Result<u64> {
        if self.flows.len() >= FLOWS_MAX {
            let silent = self.flows.iter().min_by_key(|(_, flow)| flow.used);
            let silent = silent.map(|(&number, _)| number);
            silent.into_iter().for_each(|number| self.close(number));
        }
        let host = UdpSocket::from(porter.socket(Kind::Datagram, destination.is_ipv6())?);
        host.connect(destination)?;
        let flow = Flow {
            pair,
            far: sockets::answering(pair.1, pair.0)?,
            host,
            used: Instant::now(),
        };
        let number = self.next;
        self.next += 1;
        self.flows.insert(number, flow);
        self.numbers.insert(pair, number);
        Ok(number)
    }

    pub fn get(&self, number: u64) -> Option<&Flow> {
        self.flows.get(&number)
    }

    /// Sends a datagram of the client's on. One that cannot be sent is lost,
    /// as datagrams are.
    pub fn send(&mut self, number: u64, datagram: &[u8]) {
        if let Some(flow) = self.flows.get_mut(&number) {
            flow.used = Instant::now();
            let _ = flow.host.send(datagram);
        }
    }

    /// As [`Flow::pump`]; of a flow that is closed nothing is waiting.
    pub fn pump(&mut self, number: u64, scratch: &mut [u8]) -> bool {
        self.flows
            .get_mut(&number)
            .is_some_and(|flow| flow.pump(scratch))
    }

    /// Forgets the flows that have been silent too long.
    pub fn expire(&mut self) {
        let silent: Vec<u64> = self
            .flows
            .iter()
            .filter(|(_, flow)| flow.used.elapsed() >= SILENCE)
            .map(|(&number, _)| number)
            .collect();
        silent.into_iter().for_each(|number| self.close(number));
    }

    fn close(&mut self, number: u64) {
        if let Some(flow) = self.flows.remove(&number) {
            self.numbers.remove(&flow.pair);
        }
    }
}

/// A datagram taken from where the lab's first ones arrive: its length in
/// `scratch`, and who talks to whom. `None`: nothing is waiting.
pub fn receive(arrivals: &OwnedFd, scratch: &mut [u8]) -> io::Result<Option<(usize, Pair)>> {
    let mut parts = [IoSliceMut::new(scratch)];
    let mut space = nix::cmsg_space!(libc::sockaddr_in);
    let message = match recvmsg::<SockaddrIn>(
        arrivals.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::empty(),
    ) {
        Ok(message) => message,
        Err(Errno::EAGAIN) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let meant = message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::Ipv4OrigDstAddr(address) => Some(SockaddrIn::from(address)),
        _ => None,
    });
    let client = message.address;
    match (client, meant) {
        (Some(client), Some(meant)) => Ok(Some((message.bytes, (client.into(), meant.into())))),
        // The kernel gives both with every datagram: IP_RECVORIGDSTADDR is set.
        _ => Err(io::Error::new(
            ErrorKind::InvalidData,
            "a datagram came without its addresses",
        )),
    }
}

/// Moves datagrams one way. Returns whether more may be waiting. A refusal
/// (ICMP) and a full buffer lose the datagram, as on any path.
fn pump(from: &UdpSocket, to: &UdpSocket, scratch: &mut [u8]) -> bool {
    for _ in 0..TURNS {
        match from.recv(scratch) {
            Ok(length) => {
                let _ = to.send(&scratch[..length]);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            // What the socket reports of a datagram sent before; the next
            // receive goes on.
            Err(_) => {}
        }
    }
    true
}
