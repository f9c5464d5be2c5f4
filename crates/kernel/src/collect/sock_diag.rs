//! TCP sockets of a network namespace, by sock_diag.
//!
//! A dump is read into one buffer and decoded in place: nothing is allocated
//! per socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};

use super::tcp_info::{BbrInfo, DctcpInfo, TcpInfo, VegasInfo};

/// Message type of requests and answers (SOCK_DIAG_BY_FAMILY).
const BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER_BYTES: usize = 16;
/// `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = 56;
/// `struct inet_diag_msg`.
const MESSAGE_BYTES: usize = 72;
/// Large enough that a dump takes few calls; the kernel fills up to 32 kB each.
const BUFFER_BYTES: usize = 1 << 16;

// Attributes (enum INET_DIAG_*, include/uapi/linux/inet_diag.h).
const INFO: u16 = 2;
const VEGASINFO: u16 = 3;
const CONG: u16 = 4;
const SKMEMINFO: u16 = 7;
const DCTCPINFO: u16 = 9;
const BBRINFO: u16 = 16;

/// All states but LISTEN (10), TIME_WAIT (6), NEW_SYN_RECV (12) and CLOSE (7).
pub const CONNECTED: u32 = 0xfff & !(1 << 10 | 1 << 6 | 1 << 7);

/// What is asked of each socket.
#[derive(Clone, Copy, Debug)]
pub struct Extensions(u8);

impl Extensions {
    /// tcp_info, congestion control and what it tells, memory.
    pub const ALL: Extensions =
        Extensions(1 << (INFO - 1) | 1 << (VEGASINFO - 1) | 1 << (CONG - 1) | 1 << (SKMEMINFO - 1));
    /// Memory only.
    pub const MEMORY: Extensions = Extensions(1 << (SKMEMINFO - 1));
}

/// One socket of a dump, borrowed from the kernel's answer.
#[derive(Clone, Copy, Debug)]
pub struct Diag<'a> {
    pub state: u8,
    pub source: (IpAddr, u16),
    pub destination: (IpAddr, u16),
    /// Never used twice while the host runs.
    pub cookie: u64,
    pub uid: u32,
    pub inode: u32,
    pub info: Option<TcpInfo<'a>>,
    pub congestion: Option<&'a str>,
    pub bbr: Option<BbrInfo>,
    pub vegas: Option<VegasInfo>,
    pub dctcp: Option<DctcpInfo>,
    pub memory: Option<Memory>,
}

/// SO_MEMINFO of a socket, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub rmem_alloc: u32,
    pub rcvbuf: u32,
    pub wmem_alloc: u32,
    pub sndbuf: u32,
    pub wmem_queued: u32,
    pub drops: u32,
}

/// A connection to sock_diag of the namespace in which it was made.
pub struct SockDiag {
    socket: Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl SockDiag {
    pub fn new() -> io::Result<SockDiag> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(SockDiag {
            socket,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            sequence: 0,
        })
    }

    /// Hands every TCP socket of a family (AF_INET, AF_INET6) and a set of
    /// states to `take`.
    ///
    /// # Errors
    /// The kernel refuses the dump, or answers what is none.
    pub fn dump(
        &mut self,
        family: u8,
        states: u32,
        extensions: Extensions,
        mut take: impl FnMut(Diag<'_>),
    ) -> io::Result<()> {
        self.sequence += 1;
        let request = request(self.sequence, family, states, extensions);
        self.socket.send(&request, 0)?;
        loop {
            self.buffer.clear();
            self.socket.recv(&mut self.buffer, 0)?;
            if answers(&self.buffer, self.sequence, &mut take)? {
                return Ok(());
            }
        }
    }
}

fn request(
    sequence: u32,
    family: u8,
    states: u32,
    extensions: Extensions,
) -> [u8; HEADER_BYTES + REQUEST_BYTES] {
    let mut bytes = [0; HEADER_BYTES + REQUEST_BYTES];
    bytes[0..4].copy_from_slice(&((HEADER_BYTES + REQUEST_BYTES) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes[16] = family;
    bytes[17] = libc::IPPROTO_TCP as u8;
    bytes[18] = extensions.0;
    bytes[20..24].copy_from_slice(&states.to_ne_bytes());
    bytes
}

/// Takes the messages of one datagram; true: it was the dump's last.
fn answers(mut bytes: &[u8], sequence: u32, take: &mut impl FnMut(Diag<'_>)) -> io::Result<bool> {
    while bytes.len() >= HEADER_BYTES {
        let length = word(bytes, 0).unwrap_or(0) as usize;
        if length < HEADER_BYTES || length > bytes.len() {
            return Err(io::Error::other(
                "sock_diag: a message longer than its datagram",
            ));
        }
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        let body = &bytes[HEADER_BYTES..length];
        // What an earlier dump that was broken off left behind is passed over.
        if word(bytes, 8) == Some(sequence) {
            match kind {
                NLMSG_DONE => return Ok(true),
                NLMSG_ERROR => {
                    let code = word(body, 0).unwrap_or(0) as i32;
                    return Err(io::Error::from_raw_os_error(-code));
                }
                BY_FAMILY => {
                    if let Some(diag) = decode(body) {
                        take(diag);
                    }
                }
                _ => {}
            }
        }
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    Ok(false)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// One `inet_diag_msg` and its attributes; `None`: cut short.
fn decode(body: &[u8]) -> Option<Diag<'_>> {
    if body.len() < MESSAGE_BYTES {
        return None;
    }
    let address = |at: usize| -> IpAddr {
        if body[0] == libc::AF_INET as u8 {
            let octets: [u8; 4] = body[at..at + 4].try_into().expect("four bytes");
            Ipv4Addr::from(octets).into()
        } else {
            let octets: [u8; 16] = body[at..at + 16].try_into().expect("sixteen bytes");
            Ipv6Addr::from(octets).into()
        }
    };
    let port = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    let mut diag = Diag {
        state: body[1],
        source: (address(8), port(4)),
        destination: (address(24), port(6)),
        cookie: u64::from(word(body, 44)?) | u64::from(word(body, 48)?) << 32,
        uid: word(body, 64)?,
        inode: word(body, 68)?,
        info: None,
        congestion: None,
        bbr: None,
        vegas: None,
        dctcp: None,
        memory: None,
    };
    let mut rest = &body[MESSAGE_BYTES..];
    while rest.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
        let kind = u16::from_ne_bytes([rest[2], rest[3]]);
        if length < 4 || length > rest.len() {
            break;
        }
        let value = &rest[4..length];
        match kind {
            INFO => diag.info = Some(TcpInfo(value)),
            CONG => {
                let text = value.split(|&byte| byte == 0).next().unwrap_or(value);
                diag.congestion = std::str::from_utf8(text).ok();
            }
            BBRINFO => diag.bbr = BbrInfo::decode(value),
            VEGASINFO => diag.vegas = VegasInfo::decode(value),
            DCTCPINFO => diag.dctcp = DctcpInfo::decode(value),
            SKMEMINFO => diag.memory = memory(value),
            _ => {}
        }
        rest = &rest[length.next_multiple_of(4).min(rest.len())..];
    }
    Some(diag)
}

fn memory(bytes: &[u8]) -> Option<Memory> {
    Some(Memory {
        rmem_alloc: word(bytes, 0)?,
        rcvbuf: word(bytes, 4)?,
        wmem_alloc: word(bytes, 8)?,
        sndbuf: word(bytes, 12)?,
        wmem_queued: word(bytes, 20)?,
        drops: word(bytes, 32)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message with the attributes, as the kernel lays it out.
    fn message(sequence: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![0; MESSAGE_BYTES];
        body[0] = libc::AF_INET as u8;
        body[1] = 1;
        body[4..6].copy_from_slice(&10_003u16.to_be_bytes());
        body[6..8].copy_from_slice(&5_201u16.to_be_bytes());
        body[8..12].copy_from_slice(&[10, 77, 0, 1]);
        body[24..28].copy_from_slice(&[10, 78, 0, 1]);
        body[44..48].copy_from_slice(&9u32.to_ne_bytes());
        for (kind, value) in attributes {
            body.extend_from_slice(&((value.len() + 4) as u16).to_ne_bytes());
            body.extend_from_slice(&kind.to_ne_bytes());
            body.extend_from_slice(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&BY_FAMILY.to_ne_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&body);
        bytes
    }

    #[test]
    fn socket_is_read_with_ports_cookie_algorithm_and_info() {
        let info = vec![3; 248];
        let bytes = message(5, &[(CONG, b"cubic\0"), (INFO, &info)]);
        let mut seen = 0;
        let done = answers(&bytes, 5, &mut |diag| {
            seen += 1;
            assert_eq!(diag.source, (Ipv4Addr::new(10, 77, 0, 1).into(), 10_003));
            assert_eq!(diag.destination.1, 5_201);
            assert_eq!((diag.cookie, diag.congestion), (9, Some("cubic")));
            assert_eq!(diag.info.unwrap().snd_cwnd(), Some(0x0303_0303));
        });
        assert!(!done.unwrap());
        assert_eq!(seen, 1);
    }

    #[test]
    fn every_cut_of_a_message_is_refused_or_read_without_a_panic() {
        let bytes = message(
            1,
            &[(CONG, b"bbr\0"), (BBRINFO, &[1; 20]), (SKMEMINFO, &[2; 36])],
        );
        for cut in 0..bytes.len() {
            let mut short = bytes[..cut].to_vec();
            let _ = answers(&short, 1, &mut |_| {});
            if cut >= HEADER_BYTES {
                short[0..4].copy_from_slice(&(cut as u32).to_ne_bytes());
                let _ = answers(&short, 1, &mut |_| {});
            }
        }
    }

    #[test]
    fn message_that_claims_to_be_longer_than_its_datagram_is_refused() {
        let mut bytes = message(1, &[]);
        bytes[0..4].copy_from_slice(&4_000u32.to_ne_bytes());
        assert!(answers(&bytes, 1, &mut |_| panic!("nothing to read")).is_err());
    }

    #[test]
    fn answers_to_another_request_are_passed_over() {
        let bytes = message(1, &[]);
        assert!(!answers(&bytes, 2, &mut |_| panic!("not ours")).unwrap());
    }
}
