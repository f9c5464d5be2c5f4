//! Packets as bytes: what the link must know of their headers, and how a train
//! of wire packets becomes one packet for the far stack.

use std::net::Ipv4Addr;

use knee_path::packet::Ecn;

use crate::flows::Tuple;
use crate::tun::{GSO_ECN, GSO_NONE, GSO_TCPV4, VnetHeader};

const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV4_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
/// Where a TCP header has its checksum.
const TCP_CHECKSUM_AT: usize = 16;
pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const PSH: u8 = 0x08;
pub const ACK: u8 = 0x10;
pub const URG: u8 = 0x20;
pub const CWR: u8 = 0x80;
/// Kinds of TCP options (RFC 9293, section 3.1; RFC 2018).
const OPTION_END: u8 = 0;
const OPTION_NONE: u8 = 1;
const OPTION_SACK: u8 = 5;
/// Longest headers: 60 bytes of IPv4, 60 of TCP.
pub const HEAD_BYTES: usize = 120;
/// Most payload of what GRO builds (GRO_LEGACY_MAX_SIZE less headers).
pub const MERGED_BYTES: usize = 65_535 - 52;

/// What the link reads of a packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Both ends, when it is IPv4.
    pub tuple: Option<Tuple>,
    pub ecn: Ecn,
    pub dscp: u8,
    /// TCP over IPv4 without fragments: can be cut and merged.
    pub tcp: bool,
    /// Bytes before the payload; of anything but TCP the whole packet is payload.
    pub bytes: u16,
    pub ip_bytes: u16,
}

/// Reads the headers of an IP packet.
pub fn head(packet: &[u8]) -> Head {
    let opaque = Head {
        tuple: None,
        ecn: Ecn::NotEct,
        dscp: 0,
        tcp: false,
        bytes: 0,
        ip_bytes: 0,
    };
    if packet.len() < IPV4_BYTES || packet[0] >> 4 != 4 {
        return opaque;
    }
    let ip_bytes = usize::from(packet[0] & 0xf) * 4;
    let address =
        |at: usize| Ipv4Addr::from([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
    let whole = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff == 0;
    let protocol = packet[9];
    let has_ports = whole && matches!(protocol, TCP | UDP) && packet.len() >= ip_bytes + 4;
    let port = |at: usize| {
        if has_ports {
            u16::from_be_bytes([packet[ip_bytes + at], packet[ip_bytes + at + 1]])
        } else {
            0
        }
    };
    let tuple = Some(Tuple {
        source: address(12),
        destination: address(16),
        source_port: port(0),
        destination_port: port(2),
    });
    let ecn = match packet[1] & 3 {
        0 => Ecn::NotEct,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    };
    let tcp = whole && protocol == TCP && packet.len() >= ip_bytes + TCP_BYTES;
    let bytes = if tcp {
        ip_bytes + usize::from(packet[ip_bytes + 12] >> 4) * 4
    } else {
        0
    };
    Head {
        tuple,
        ecn,
        dscp: packet[1] >> 2,
        tcp: tcp && bytes <= packet.len(),
        bytes: bytes as u16,
        ip_bytes: ip_bytes as u16,
    }
}

/// TCP's flags of a packet that [`head`] found to be TCP.
pub fn flags(packet: &[u8], head: &Head) -> u8 {
    packet[usize::from(head.ip_bytes) + 13]
}

/// The acknowledgement number of a packet that has nothing else: no data, no
/// other flag, no SACK blocks. `None`: it is no such packet.
pub fn pure_ack(packet: &[u8], head: &Head) -> Option<u32> {
    if !head.tcp || packet.len() > usize::from(head.bytes) || flags(packet, head) != ACK {
        return None;
    }
    let ip = usize::from(head.ip_bytes);
    let mut options = &packet[ip + TCP_BYTES..usize::from(head.bytes)];
    while let Some((&kind, rest)) = options.split_first() {
        options = match (kind, rest.first()) {
            (OPTION_END, _) => break,
            (OPTION_NONE, _) => rest,
            (OPTION_SACK, _) => return None,
            // A length counts the kind and itself.
            (_, Some(&length)) => options.get(usize::from(length.max(2))..)?,
            (_, None) => break,
        };
    }
    let number = packet[ip + 8..ip + 12].try_into().expect("four bytes");
    Some(u32::from_be_bytes(number))
}

/// One wire packet within a packet as read.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The packet as read, from its IP header.
    pub packet: &'a [u8],
    pub head: Head,
    /// Where in `packet` its payload lies.
    pub start: usize,
    pub end: usize,
    /// Which of the packet's pieces it is, from 0.
    pub index: u16,
    pub ecn: Ecn,
}

impl Piece<'_> {
    fn seq(&self) -> u32 {
        let at = usize::from(self.head.ip_bytes) + 4;
        let first = u32::from_be_bytes(self.packet[at..at + 4].try_into().expect("four bytes"));
        first.wrapping_add((self.start - usize::from(self.head.bytes)) as u32)
    }

    fn flags(&self) -> u8 {
        let mut flags = flags(self.packet, &self.head);
        if self.end < self.packet.len() {
            flags &= !(FIN | PSH);
        }
        if self.start > usize::from(self.head.bytes) {
            flags &= !CWR;
        }
        flags
    }

    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Does `next` follow it seamlessly, so that GRO merges the two? The next
    /// byte, the same acknowledgement and options, and no flag that ends a train.
    /// Linux 6.12, net/ipv4/tcp_offload.c, tcp_gro_receive().
    fn precedes(&self, next: &Piece<'_>) -> bool {
        let ip = usize::from(self.head.ip_bytes);
        let (ours, theirs) = (self.flags(), next.flags());
        self.head == next.head
            && self.ecn == next.ecn
            && self.len() > 0
            && next.len() > 0
            && self.seq().wrapping_add(self.len() as u32) == next.seq()
            && (ours | theirs) & (SYN | RST | URG) == 0
            && ours & (FIN | PSH) == 0
            && theirs & CWR == 0
            // Acknowledgement number, then options.
            && self.packet[ip + 8..ip + 12] == next.packet[ip + 8..ip + 12]
            && self.packet[ip + TCP_BYTES..usize::from(self.head.bytes)]
                == next.packet[ip + TCP_BYTES..usize::from(self.head.bytes)]
    }
}

/// How many of the pieces, from the first on, go to the stack as one packet.
pub fn merged(pieces: &[Piece<'_>]) -> usize {
    let Some(first) = pieces.first().filter(|piece| piece.head.tcp) else {
        return pieces.len().min(1);
    };
    let (mut count, mut bytes) = (1, first.len());
    while let Some(next) = pieces.get(count) {
        let last = &pieces[count - 1];
        let fits = bytes + next.len() <= MERGED_BYTES;
        // All but the last are as long as the first.
        let even = last.len() == first.len() && next.len() <= first.len();
        if !(fits && even && last.precedes(next)) {
            break;
        }
        bytes += next.len();
        count += 1;
    }
    count
}

/// The headers of the packet that the pieces make together, and what its
/// checksum and segmentation leave undone. `head` gets the bytes, their number
/// is returned. The pieces are TCP.
pub fn build(pieces: &[Piece<'_>], head: &mut [u8; HEAD_BYTES]) -> (usize, VnetHeader) {
    let (first, last) = (&pieces[0], &pieces[pieces.len() - 1]);
    let (bytes, ip) = (
        usize::from(first.head.bytes),
        usize::from(first.head.ip_bytes),
    );
    head[..bytes].copy_from_slice(&first.packet[..bytes]);
    let payload: usize = pieces.iter().map(Piece::len).sum();
    let total = bytes + payload;
    head[1] = (head[1] & !3) | first.ecn as u8;
    head[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    // A later part of a super-packet has an identification of its own.
    let id = u16::from_be_bytes([head[4], head[5]]).wrapping_add(first.index);
    head[4..6].copy_from_slice(&id.to_be_bytes());
    head[10..12].fill(0);
    let sum = !fold(sum_of(&head[..ip]));
    head[10..12].copy_from_slice(&sum.to_be_bytes());

    head[ip + 4..ip + 8].copy_from_slice(&first.seq().to_be_bytes());
    let flags = pieces.iter().fold(0, |flags, piece| flags | piece.flags());
    head[ip + 13] = flags;
    head[ip + 14..ip + 16].copy_from_slice(&last.packet[ip + 14..ip + 16]);
    // The pseudo-header's sum: the stack, or whoever sends it on, adds the rest.
    let tcp_bytes = (total - ip) as u32;
    let pseudo = sum_of(&head[12..20]) + u32::from(TCP) + tcp_bytes;
    head[ip + TCP_CHECKSUM_AT..ip + TCP_CHECKSUM_AT + 2]
        .copy_from_slice(&fold(pseudo).to_be_bytes());
    let gso = pieces.len() > 1;
    let header = VnetHeader {
        needs_csum: true,
        gso_type: match (gso, flags & CWR != 0) {
            (false, _) => GSO_NONE,
            (true, false) => GSO_TCPV4,
            (true, true) => GSO_TCPV4 | GSO_ECN,
        },
        hdr_len: if gso { bytes as u16 } else { 0 },
        gso_size: if gso { first.len() as u16 } else { 0 },
        csum_start: ip as u16,
        csum_offset: TCP_CHECKSUM_AT as u16,
    };
    (bytes, header)
}

/// Writes the ECN bits into an IPv4 header and mends its checksum.
pub fn mark(packet: &mut [u8], ecn: Ecn) {
    packet[1] = (packet[1] & !3) | ecn as u8;
    let ip = usize::from(packet[0] & 0xf) * 4;
    packet[10..12].fill(0);
    let sum = !fold(sum_of(&packet[..ip]));
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Sum of big-endian words (RFC 1071), not yet folded.
fn sum_of(bytes: &[u8]) -> u32 {
    bytes
        .chunks_exact(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum()
}

fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests;
