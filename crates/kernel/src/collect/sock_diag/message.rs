//! The messages of sock_diag, read where they lie.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Dump, Family, Question};
use crate::collect::tcp_info::{BbrInfo, DctcpInfo, TcpInfo, VegasInfo};

/// Message type of requests and answers of today (SOCK_DIAG_BY_FAMILY).
pub const BY_FAMILY: u16 = 20;
/// And of the form before Linux 3.3 (TCPDIAG_GETSOCK), which still is answered.
pub const GETSOCK: u16 = 18;
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_DUMP_INTR: u16 = 0x010;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
pub const HEADER_BYTES: usize = 16;
/// `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = 56;
/// `struct inet_diag_req`.
const OLD_REQUEST_BYTES: usize = 60;
/// `struct inet_diag_msg`.
pub const MESSAGE_BYTES: usize = 72;
/// The attribute of a request that carries a filter (INET_DIAG_REQ_BYTECODE).
const BYTECODE: u16 = 1;

// Attributes (enum INET_DIAG_*, include/uapi/linux/inet_diag.h).
pub const INFO: u16 = 2;
pub const VEGASINFO: u16 = 3;
pub const CONG: u16 = 4;
pub const TOS: u16 = 5;
pub const TCLASS: u16 = 6;
pub const SKMEMINFO: u16 = 7;
const DCTCPINFO: u16 = 9;
const PROTOCOL: u16 = 10;
const SKV6ONLY: u16 = 11;
const MARK: u16 = 15;
const BBRINFO: u16 = 16;
const CLASS_ID: u16 = 17;
const CGROUP_ID: u16 = 21;

/// One socket, borrowed from the kernel's answer.
#[derive(Clone, Copy, Debug)]
pub struct Diag<'a> {
    pub state: u8,
    /// Timer that runs: 0 none, 1 retransmission, 2 keepalive and others, 3 TIME_WAIT, 4 window probe.
    pub timer: u8,
    /// Times that it went off in a row.
    pub timer_retransmits: u8,
    /// Until it goes off.
    pub timer_ms: u32,
    pub source: (IpAddr, u16),
    pub destination: (IpAddr, u16),
    /// Index of the device that the socket is bound to; 0: none.
    pub interface: u32,
    /// Never used twice while the host runs.
    pub cookie: u64,
    pub rqueue_bytes: u32,
    pub wqueue_bytes: u32,
    pub uid: u32,
    pub inode: u32,
    pub info: Option<TcpInfo<'a>>,
    pub congestion: Option<&'a str>,
    pub bbr: Option<BbrInfo>,
    pub vegas: Option<VegasInfo>,
    pub dctcp: Option<DctcpInfo>,
    pub memory: Option<Memory>,
    pub tos: Option<u8>,
    pub tclass: Option<u8>,
    pub v6only: Option<bool>,
    pub class_id: Option<u32>,
    /// Only told to who may CAP_NET_ADMIN.
    pub mark: Option<u32>,
    pub cgroup_id: Option<u64>,
    /// Of destroy events: the IP protocol.
    pub protocol: Option<u8>,
}

/// SO_MEMINFO of a socket, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub rmem_alloc: u32,
    pub rcvbuf: u32,
    pub wmem_alloc: u32,
    pub sndbuf: u32,
    pub fwd_alloc: u32,
    pub wmem_queued: u32,
    pub optmem: u32,
    pub backlog: u32,
    /// `None`: Linux before 4.7.
    pub drops: Option<u32>,
}

pub fn request(sequence: u32, question: &Question) -> Vec<u8> {
    let old = question.family == Family::Both;
    let (kind, length) = match old {
        true => (GETSOCK, OLD_REQUEST_BYTES),
        false => (BY_FAMILY, REQUEST_BYTES),
    };
    let mut bytes = vec![0; HEADER_BYTES + length];
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes[16] = match question.family {
        Family::V4 => libc::AF_INET as u8,
        Family::V6 => libc::AF_INET6 as u8,
        Family::Both => libc::AF_UNSPEC as u8,
    };
    let states = question.states.to_ne_bytes();
    if old {
        bytes[19] = question.extensions.0;
        // After the four bytes above and `struct inet_diag_sockid`.
        bytes[68..72].copy_from_slice(&states);
    } else {
        bytes[17] = libc::IPPROTO_TCP as u8;
        bytes[18] = question.extensions.0;
        bytes[20..24].copy_from_slice(&states);
    }
    if !question.bytecode.is_empty() {
        let length = u16::try_from(question.bytecode.len() + 4)
            .expect("compile() refuses what an attribute cannot hold");
        bytes.extend_from_slice(&length.to_ne_bytes());
        bytes.extend_from_slice(&BYTECODE.to_ne_bytes());
        bytes.extend_from_slice(&question.bytecode);
    }
    let length = bytes.len() as u32;
    bytes[0..4].copy_from_slice(&length.to_ne_bytes());
    bytes
}

/// Takes the messages of one datagram; true: it was the dump's last. Messages with
/// another sequence number than the request's are passed over.
///
/// # Errors
/// The kernel's refusal, or a message that is longer than its datagram.
pub fn answers(
    bytes: &[u8],
    sequence: u32,
    dump: &mut Dump,
    take: &mut impl FnMut(Diag<'_>),
) -> io::Result<bool> {
    for message in Messages(bytes) {
        let message = message?;
        // What an earlier dump that was broken off left behind is passed over.
        if message.sequence != sequence {
            continue;
        }
        dump.interrupted |= message.flags & NLM_F_DUMP_INTR != 0;
        match message.kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = word(message.body, 0).unwrap_or(0) as i32;
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            BY_FAMILY | GETSOCK => match Diag::decode(message.body) {
                Some(diag) => {
                    dump.sockets += 1;
                    take(diag);
                }
                None => dump.not_understood += 1,
            },
            _ => {}
        }
    }
    Ok(false)
}

/// One netlink message.
pub struct Message<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    pub body: &'a [u8],
}

/// The messages of a datagram.
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = io::Result<Message<'a>>;

    #[inline]
    fn next(&mut self) -> Option<io::Result<Message<'a>>> {
        let bytes = self.0;
        if bytes.len() < HEADER_BYTES {
            return None;
        }
        let length = word(bytes, 0)? as usize;
        if length < HEADER_BYTES || length > bytes.len() {
            self.0 = &[];
            return Some(Err(io::Error::other(
                "sock_diag: a message longer than its datagram",
            )));
        }
        self.0 = &bytes[length.next_multiple_of(4).min(bytes.len())..];
        Some(Ok(Message {
            kind: u16::from_ne_bytes([bytes[4], bytes[5]]),
            flags: u16::from_ne_bytes([bytes[6], bytes[7]]),
            sequence: word(bytes, 8)?,
            body: &bytes[HEADER_BYTES..length],
        }))
    }
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl<'a> Diag<'a> {
    /// One `inet_diag_msg` and its attributes; `None`: cut short.
    #[inline]
    pub fn decode(body: &'a [u8]) -> Option<Diag<'a>> {
        let (head, mut rest) = body.split_first_chunk::<MESSAGE_BYTES>()?;
        let address = |at: usize| -> IpAddr {
            if head[0] == libc::AF_INET as u8 {
                let octets: [u8; 4] = head[at..at + 4].try_into().expect("four bytes");
                Ipv4Addr::from(octets).into()
            } else {
                let octets: [u8; 16] = head[at..at + 16].try_into().expect("sixteen bytes");
                Ipv6Addr::from(octets).into()
            }
        };
        let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let mut diag = Diag {
            state: head[1],
            timer: head[2],
            timer_retransmits: head[3],
            timer_ms: word(head, 52)?,
            source: (address(8), port(4)),
            destination: (address(24), port(6)),
            interface: word(head, 40)?,
            cookie: u64::from(word(head, 44)?) | u64::from(word(head, 48)?) << 32,
            rqueue_bytes: word(head, 56)?,
            wqueue_bytes: word(head, 60)?,
            uid: word(head, 64)?,
            inode: word(head, 68)?,
            info: None,
            congestion: None,
            bbr: None,
            vegas: None,
            dctcp: None,
            memory: None,
            tos: None,
            tclass: None,
            v6only: None,
            class_id: None,
            mark: None,
            cgroup_id: None,
            protocol: None,
        };
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
                TOS => diag.tos = value.first().copied(),
                TCLASS => diag.tclass = value.first().copied(),
                SKV6ONLY => diag.v6only = value.first().map(|&byte| byte != 0),
                CLASS_ID => diag.class_id = word(value, 0),
                MARK => diag.mark = word(value, 0),
                CGROUP_ID => {
                    diag.cgroup_id = value
                        .first_chunk::<8>()
                        .map(|&bytes| u64::from_ne_bytes(bytes));
                }
                PROTOCOL => diag.protocol = value.first().copied(),
                _ => {}
            }
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
        Some(diag)
    }
}

fn memory(bytes: &[u8]) -> Option<Memory> {
    Some(Memory {
        rmem_alloc: word(bytes, 0)?,
        rcvbuf: word(bytes, 4)?,
        wmem_alloc: word(bytes, 8)?,
        sndbuf: word(bytes, 12)?,
        fwd_alloc: word(bytes, 16)?,
        wmem_queued: word(bytes, 20)?,
        optmem: word(bytes, 24)?,
        backlog: word(bytes, 28)?,
        drops: word(bytes, 32),
    })
}
