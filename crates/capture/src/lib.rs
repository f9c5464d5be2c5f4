//! The headers of packets that pass a network device, as the kernel copies them into memory that is shared with it.
//!
//! Nothing runs while packets pass but the kernel's copy of a packet's first bytes: the memory is read at the end. Once it is
//! full, later packets are counted and not kept. Sources: packet(7); Linux 6.18,
//! Documentation/networking/packet_mmap.rst and include/uapi/linux/if_packet.h (TPACKET_V2).
//!
//! - `ring`: the socket and the memory; `filter`: what the kernel leaves out; `headers`: how much of a packet its headers are

mod filter;
mod headers;
mod ring;

use std::io;

use serde::{Deserialize, Serialize};

pub use ring::Ring;

/// A packet as a host's network layer had it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    /// Since whatever was asked for.
    pub t_ns: u64,
    pub is_outbound: bool,
    /// From the IP header on. With offloads it is that of the packet that TCP made or got, not of what is on the wire.
    pub length_bytes: u32,
    /// The headers of IP and of TCP or UDP, without what they carry.
    pub header: Vec<u8>,
}

/// What was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// In order of time.
    pub packets: Vec<Packet>,
    /// Packets that came when there was no room any more, whosever they were.
    pub left_out: u64,
    /// By how much the host's time of day was set meanwhile: times of packets are off by up to that.
    pub calendar_moved_ns: u64,
}

/// Which packets are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Every IP packet of the device.
    All,
    /// TCP where either end has one of these ports.
    Ports(Vec<u16>),
}

/// Why nothing is captured, with the next step.
pub fn refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "packets may be captured by root alone (CAP_NET_RAW)".to_owned()
        }
        Some(libc::ENOMEM) => format!("{error}: expected that much memory; capture less"),
        _ => error.to_string(),
    }
}
