//! A captured packet as the TCP segment in it.

use std::net::IpAddr;

use etherparse::{IpNumber, LaxIpSlice};

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;
pub const ECE: u8 = 64;

/// Congestion experienced (RFC 3168).
pub const CE: u8 = 3;

// LINKTYPE_ values, of https://www.tcpdump.org/linktypes.html.
const NULL: u32 = 0;
const ETHERNET: u32 = 1;
const RAW: u32 = 101;
const LOOP: u32 = 108;
const LINUX_SLL: u32 = 113;
const IPV4: u32 = 228;
const IPV6: u32 = 229;
const LINUX_SLL2: u32 = 276;
/// What BSD systems write for RAW.
const RAW_BSD: [u32; 2] = [12, 14];

const VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// Further tags of one frame are damage.
const TAGS: usize = 8;

/// One end of a connection.
pub type Endpoint = (IpAddr, u16);

/// A TCP segment, as far as it was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub source: Endpoint,
    pub destination: Endpoint,
    /// Where it was seen: interface and, where the link layer tells, direction.
    pub place: u64,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub payload_bytes: u32,
    /// The ECN bits of the IP header.
    pub ecn: u8,
    pub options: Options,
    /// Were options cut off?
    pub cut: bool,
}

impl Segment {
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    /// Value and echo.
    pub timestamps: Option<(u32, u32)>,
    pub sack: [(u32, u32); 4],
    pub sack_blocks: usize,
}

/// What a packet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    Tcp(Segment),
    /// Neither IP nor TCP.
    Other,
    /// Of a packet that was cut into fragments: its length is not known.
    Fragment,
    /// Of a link layer that we do not know.
    UnknownLink,
    Malformed(&'static str),
}

/// Decodes a packet of `wire_bytes`, of which `data` was captured.
pub fn decode(link_type: u32, interface: u32, wire_bytes: u32, data: &[u8]) -> Decoded {
    let Some((network, at)) = network(link_type, data) else {
        return Decoded::Malformed("its link-layer header is cut off");
    };
    match network {
        Network::Ip(place) => {
            let place = u64::from(interface) << 33 | place;
            ip(place, &data[at..], (wire_bytes as usize).saturating_sub(at))
        }
        Network::Other => Decoded::Other,
        Network::Unknown => Decoded::UnknownLink,
    }
}

enum Network {
    /// With what the link layer says of the place, in 33 bits.
    Ip(u64),
    Other,
    Unknown,
}

/// What the link layer carries, and where it begins. `None`: cut off.
fn network(link_type: u32, data: &[u8]) -> Option<(Network, usize)> {
    let half = |at: usize| {
        let bytes = data.get(at..at + 2)?;
        Some(u16::from_be_bytes(bytes.try_into().expect("two bytes")))
    };
    let (kind_at, header, place) = match link_type {
        RAW | IPV4 | IPV6 => return Some((Network::Ip(0), 0)),
        _ if RAW_BSD.contains(&link_type) => return Some((Network::Ip(0), 0)),
        // An address family in the byte order of some host: the version of what
        // follows says the same.
        NULL | LOOP => return (data.len() >= 4).then_some((Network::Ip(0), 4)),
        ETHERNET => (12, 14, 0),
        // 4: sent by this host. On a host with containers the same packet is
        // captured again where it comes in.
        LINUX_SLL => (14, 16, u64::from(half(0)? == 4)),
        LINUX_SLL2 => {
            let index = data.get(4..8)?.try_into().expect("four bytes");
            let sent = u64::from(*data.get(10)? == 4);
            (0, 20, u64::from(u32::from_be_bytes(index)) << 1 | sent)
        }
        _ => return Some((Network::Unknown, 0)),
    };
    let mut kind = half(kind_at)?;
    let mut at = header;
    for _ in 0..TAGS {
        if !VLAN.contains(&kind) {
            break;
        }
        kind = half(at + 2)?;
        at += 4;
    }
    let network = match kind {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Network::Ip(place),
        _ => Network::Other,
    };
    (data.len() >= at).then_some((network, at))
}

fn ip(place: u64, data: &[u8], wire_bytes: usize) -> Decoded {
    if !matches!(data.first().map(|byte| byte >> 4), Some(4 | 6)) {
        return Decoded::Other;
    }
    let Ok((ip, stopped)) = LaxIpSlice::from_slice(data) else {
        return Decoded::Malformed("its IP header is cut off or damaged");
    };
    let (ecn, told_bytes) = match &ip {
        LaxIpSlice::Ipv4(ip) => {
            let header = ip.header();
            (header.ecn().value(), usize::from(header.total_len()))
        }
        LaxIpSlice::Ipv6(ip) => {
            let bytes = usize::from(ip.header().payload_length());
            let told = if bytes == 0 { 0 } else { bytes + 40 };
            (ip.header().ecn().value(), told)
        }
    };
    // 0: larger than 16 bits can tell, as segmentation offload makes them.
    let ip_bytes = if told_bytes == 0 {
        wire_bytes
    } else {
        told_bytes
    };
    let payload = ip.payload();
    if payload.fragmented {
        return if payload.ip_number == IpNumber::TCP {
            Decoded::Fragment
        } else {
            Decoded::Other
        };
    }
    if stopped.is_some() {
        return Decoded::Malformed("an IP extension header is cut off or damaged");
    }
    if payload.ip_number != IpNumber::TCP {
        return Decoded::Other;
    }
    let header_bytes = payload.payload.as_ptr() as usize - data.as_ptr() as usize;
    tcp(payload.payload, ip_bytes.saturating_sub(header_bytes)).map_or_else(
        Decoded::Malformed,
        |mut segment| {
            segment.source.0 = ip.source_addr();
            segment.destination.0 = ip.destination_addr();
            segment.place = place;
            segment.ecn = ecn;
            Decoded::Tcp(segment)
        },
    )
}

/// `data` begins with a TCP header; `tcp_bytes` with what it carries were on the wire.
fn tcp(data: &[u8], tcp_bytes: usize) -> Result<Segment, &'static str> {
    let fixed: &[u8; 20] = data.first_chunk().ok_or("its TCP header is cut off")?;
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let word =
        |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let header_bytes = usize::from(fixed[12] >> 4) * 4;
    if header_bytes < 20 || header_bytes > tcp_bytes {
        return Err("its TCP header's length is none");
    }
    let captured = &data[20..header_bytes.min(data.len())];
    let (options, whole) = options(captured);
    let nowhere = IpAddr::from([0; 4]);
    Ok(Segment {
        source: (nowhere, half(0)),
        destination: (nowhere, half(2)),
        place: 0,
        seq: word(4),
        ack: word(8),
        flags: fixed[13],
        window: half(14),
        payload_bytes: u32::try_from(tcp_bytes - header_bytes).map_err(|_| "its length is none")?,
        ecn: 0,
        options,
        cut: !whole || header_bytes > data.len(),
    })
}

/// The options, and whether all are whole.
fn options(mut rest: &[u8]) -> (Options, bool) {
    let mut found = Options::default();
    let word = |bytes: &[u8], at: usize| {
        u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
    };
    loop {
        match rest {
            [] | [0, ..] => return (found, true),
            [1, after @ ..] => rest = after,
            [kind, bytes, ..] if usize::from(*bytes) >= 2 && rest.len() >= usize::from(*bytes) => {
                let (option, after) = rest.split_at(usize::from(*bytes));
                let value = &option[2..];
                match (kind, value.len()) {
                    (2, 2) => found.mss = Some(u16::from_be_bytes([value[0], value[1]])),
                    // RFC 7323, section 2.3: more than 14 is 14.
                    (3, 1) => found.window_scale = Some(value[0].min(14)),
                    (4, 0) => found.sack_permitted = true,
                    (5, 8 | 16 | 24 | 32) => {
                        found.sack_blocks = value.len() / 8;
                        for (block, bytes) in found.sack.iter_mut().zip(value.chunks_exact(8)) {
                            *block = (word(bytes, 0), word(bytes, 4));
                        }
                    }
                    (8, 8) => found.timestamps = Some((word(value, 0), word(value, 4))),
                    _ => {}
                }
                rest = after;
            }
            _ => return (found, false),
        }
    }
}
