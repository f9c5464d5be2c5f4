//! Connections that programs of the user's opened, found by the ports of their servers.
//! Source: Linux 6.18, include/uapi/linux/{netlink,sock_diag,inet_diag}.h.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use knee_hold::netlink::{DUMP, ask_of};
use knee_traffic::Side;
use knee_uapi::netlink;
use nix::sys::socket::SockProtocol;
use serde::Serialize;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const TCP: u8 = 6;
/// All states but LISTEN, TIME_WAIT, NEW_SYN_RECV and CLOSE.
const CONNECTED: u32 = 0xfff & !(1 << 10 | 1 << 6 | 1 << 7);
const CONG: u16 = 4;
/// INET_DIAG_INFO, _VEGASINFO (any algorithm's own), _CONG and _SKMEMINFO.
const ASKED: u8 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6;
/// Of a question, with room for what it does not ask.
const QUESTION_BYTES: usize = 56;
/// Of an answer, before its attributes.
const HEAD_BYTES: usize = 72;

/// A connection of a program's.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    pub group: usize,
    /// Address and port at the sender's host, then at the receiver's.
    pub ends: Ends,
    /// What it runs here.
    pub congestion: String,
}

type Ends = [(IpAddr, u16); 2];

/// Those of a side, in the order in which they were seen.
pub struct Connections {
    side: Side,
    /// Of the servers, with their `[[flow]]`.
    ports: Vec<(usize, u16)>,
    pub found: Vec<Connection>,
    by_ends: HashMap<Ends, usize>,
}

impl Connections {
    /// `ports`: of the servers, by `[[flow]]`.
    pub fn new(side: Side, ports: &[Vec<u16>]) -> Connections {
        let of_group = |(group, ports): (usize, &Vec<u16>)| {
            let ports = ports.iter().map(move |&port| (group, port));
            ports.collect::<Vec<_>>()
        };
        Connections {
            side,
            ports: ports.iter().enumerate().flat_map(of_group).collect(),
            found: Vec::new(),
            by_ends: HashMap::new(),
        }
    }

    /// Calls `take` with the number of each connection that is there, and its attributes as sock_diag has them.
    pub fn each(&mut self, mut take: impl FnMut(usize, &[u8])) -> Result<(), String> {
        for (group, port) in self.ports.clone() {
            let (own, far) = match self.side {
                Side::Sender => (port, 0),
                Side::Receiver => (0, port),
            };
            for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
                let question = question(family, own, far);
                let protocol = SockProtocol::NetlinkSockDiag;
                let answers = ask_of(protocol, SOCK_DIAG_BY_FAMILY, DUMP, &question);
                let answers = answers
                    .map_err(|error| format!("cannot ask for the programs' sockets: {error}"))?;
                for answer in &answers {
                    self.read(group, answer, &mut take);
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, group: usize, answer: &[u8], take: &mut impl FnMut(usize, &[u8])) {
        let (Some(ends), Some(attributes)) = (ends(answer), answer.get(HEAD_BYTES..)) else {
            return;
        };
        let ends = match self.side {
            Side::Sender => ends,
            Side::Receiver => [ends[1], ends[0]],
        };
        let index = *self.by_ends.entry(ends).or_insert_with(|| {
            self.found.push(Connection {
                group,
                ends,
                congestion: String::new(),
            });
            self.found.len() - 1
        });
        netlink::each(attributes, |kind, value| {
            if kind == CONG {
                let name = value.split(|&byte| byte == 0).next().unwrap_or_default();
                self.found[index].congestion = String::from_utf8_lossy(name).into_owned();
            }
        });
        take(index, attributes);
    }
}

/// For the TCP sockets of a family with these ports; 0: any.
fn question(family: u8, own: u16, far: u16) -> Vec<u8> {
    let mut bytes = vec![family, TCP, ASKED, 0];
    bytes.extend(CONNECTED.to_ne_bytes());
    bytes.extend(own.to_be_bytes());
    bytes.extend(far.to_be_bytes());
    bytes.resize(QUESTION_BYTES, 0);
    bytes
}

/// Address and port of this end and of the far one.
fn ends(answer: &[u8]) -> Option<Ends> {
    let family = i32::from(*answer.first()?);
    let port = |at: usize| Some(u16::from_be_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; 16] = answer.get(at..at + 16)?.try_into().ok()?;
        Some(match family {
            libc::AF_INET => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
            _ => IpAddr::from(Ipv6Addr::from(bytes)).to_canonical(),
        })
    };
    Some([(address(8)?, port(4)?), (address(24)?, port(6)?)])
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn connections_are_found_by_the_servers_port_from_both_sides() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let server = TcpListener::bind(address).unwrap();
            let at = server.local_addr().unwrap();
            let mut client = TcpStream::connect(at).unwrap();
            let (mut accepted, _) = server.accept().unwrap();
            client.write_all(b"hello").unwrap();
            accepted.read_exact(&mut [0; 5]).unwrap();
            let expected = [at, client.local_addr().unwrap()].map(|end| (end.ip(), end.port()));
            for side in [Side::Sender, Side::Receiver] {
                let mut connections = Connections::new(side, &[Vec::new(), vec![at.port()]]);
                for _ in 0..2 {
                    let mut kinds = Vec::new();
                    let taken = connections.each(|index, attributes| {
                        assert_eq!(index, 0);
                        netlink::each(attributes, |kind, _| kinds.push(kind));
                    });
                    taken.unwrap();
                    for kind in [2, CONG, 7] {
                        assert!(kinds.contains(&kind), "{kind} of {kinds:?}");
                    }
                }
                let [found] = &connections.found[..] else {
                    panic!("{:?}", connections.found);
                };
                assert_eq!((found.group, found.ends), (1, expected));
                assert!(!found.congestion.is_empty());
            }
        }
    }

    #[test]
    fn of_no_port_nothing_is_asked() {
        let mut connections = Connections::new(Side::Sender, &[Vec::new()]);
        connections.each(|_, _| panic!("nobody's")).unwrap();
        assert!(connections.found.is_empty());
    }
}
