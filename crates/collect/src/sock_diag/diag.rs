//! Decodes one socket of sock_diag's answer, from the running kernel or from a file of its answers.
//!
//! Numbers are in the host's byte order, as the kernel writes them; all known files come from little-endian hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::tcp_info::{BbrInfo, DctcpInfo, TcpInfo, VegasInfo};
use knee_uapi::netlink::word;

/// `struct inet_diag_msg`.
pub const MESSAGE_BYTES: usize = 72;
/// Linux' number, whatever the host.
const AF_INET: u8 = 2;

/// Numbers of attributes (enum INET_DIAG_*, include/uapi/linux/inet_diag.h).
pub mod attribute {
    pub const INFO: u16 = 2;
    pub const VEGASINFO: u16 = 3;
    pub const CONG: u16 = 4;
    pub const TOS: u16 = 5;
    pub const TCLASS: u16 = 6;
    pub const SKMEMINFO: u16 = 7;
    pub const DCTCPINFO: u16 = 9;
    pub const PROTOCOL: u16 = 10;
    pub const SKV6ONLY: u16 = 11;
    pub const MARK: u16 = 15;
    pub const BBRINFO: u16 = 16;
    pub const CLASS_ID: u16 = 17;
    pub const CGROUP_ID: u16 = 21;
}

/// One socket, borrowed from the kernel's answer.
#[derive(Clone, Copy, Debug)]
pub struct Diag<'a> {
    pub state: u8,
    /// Timer that runs: 0 none, 1 retransmission, 2 keepalive and others, 3 TIME_WAIT, 4 window probe.
    pub timer: u8,
    /// How many times it expired in a row.
    pub timer_retransmits: u8,
    /// Time until it expires; below 0: overdue.
    pub timer_ms: i32,
    pub source: (IpAddr, u16),
    pub destination: (IpAddr, u16),
    /// Index of the device that the socket is bound to; 0: none.
    pub interface: u32,
    /// Unique until the host reboots.
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
    /// Only with CAP_NET_ADMIN.
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

impl<'a> Diag<'a> {
    /// Decodes an `inet_diag_msg` and its attributes; `None`: truncated.
    #[inline]
    pub fn decode(body: &'a [u8]) -> Option<Diag<'a>> {
        let (head, mut rest) = body.split_first_chunk::<MESSAGE_BYTES>()?;
        let mut diag = Diag::head(head);
        while rest.len() >= 4 {
            let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
            let kind = u16::from_ne_bytes([rest[2], rest[3]]);
            if length < 4 || length > rest.len() {
                break;
            }
            let value = &rest[4..length];
            diag.attribute(kind, value);
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
        Some(diag)
    }

    /// Decodes the message before its attributes.
    #[inline]
    pub fn head(head: &[u8; MESSAGE_BYTES]) -> Diag<'a> {
        let word = |at| word(head, at).expect("it is within the message");
        let address = |at: usize| -> IpAddr {
            if head[0] == AF_INET {
                let octets: [u8; 4] = head[at..at + 4].try_into().expect("four bytes");
                Ipv4Addr::from(octets).into()
            } else {
                let octets: [u8; 16] = head[at..at + 16].try_into().expect("sixteen bytes");
                Ipv6Addr::from(octets).into()
            }
        };
        let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        Diag {
            state: head[1],
            timer: head[2],
            timer_retransmits: head[3],
            timer_ms: word(52).cast_signed(),
            source: (address(8), port(4)),
            destination: (address(24), port(6)),
            interface: word(40),
            cookie: u64::from(word(44)) | u64::from(word(48)) << 32,
            rqueue_bytes: word(56),
            wqueue_bytes: word(60),
            uid: word(64),
            inode: word(68),
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
        }
    }

    /// Adds an attribute; ignores an unknown or truncated one.
    #[inline]
    pub fn attribute(&mut self, kind: u16, value: &'a [u8]) {
        match kind {
            attribute::INFO => self.info = Some(TcpInfo(value)),
            attribute::CONG => {
                let text = value.split(|&byte| byte == 0).next().unwrap_or(value);
                self.congestion = std::str::from_utf8(text).ok();
            }
            attribute::BBRINFO => self.bbr = BbrInfo::decode(value),
            attribute::VEGASINFO => self.vegas = VegasInfo::decode(value),
            attribute::DCTCPINFO => self.dctcp = DctcpInfo::decode(value),
            attribute::SKMEMINFO => self.memory = memory(value),
            attribute::TOS => self.tos = value.first().copied(),
            attribute::TCLASS => self.tclass = value.first().copied(),
            attribute::SKV6ONLY => self.v6only = value.first().map(|&byte| byte != 0),
            attribute::CLASS_ID => self.class_id = word(value, 0),
            attribute::MARK => self.mark = word(value, 0),
            attribute::CGROUP_ID => {
                self.cgroup_id = value
                    .first_chunk::<8>()
                    .map(|&bytes| u64::from_ne_bytes(bytes));
            }
            attribute::PROTOCOL => self.protocol = value.first().copied(),
            _ => {}
        }
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
