//! The headers of a packet, from its IP header on.

const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6_HEADER_BYTES: usize = 40;
const UDP_HEADER_BYTES: usize = 8;

/// Where the transport's header begins and what transport it is; `None`: this is no IP, or no first fragment.
fn transport(packet: &[u8]) -> Option<(usize, u8)> {
    match packet.first()? >> 4 {
        4 => {
            let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff;
            (fragment == 0).then_some((usize::from(packet[0] & 15) * 4, *packet.get(9)?))
        }
        6 => Some((IPV6_HEADER_BYTES, *packet.get(6)?)),
        _ => None,
    }
}

/// How many of the bytes are headers: of IP, and of TCP or UDP behind it. 0: it is no IP packet.
pub fn headers_bytes(packet: &[u8]) -> usize {
    let ip = match packet.first().map_or(0, |first| first >> 4) {
        4 => usize::from(packet[0] & 15) * 4,
        6 => IPV6_HEADER_BYTES,
        _ => return 0,
    };
    let further = match transport(packet) {
        Some((at, TCP)) => packet
            .get(at + 12)
            .map_or(0, |offset| usize::from(offset >> 4) * 4),
        Some((_, UDP)) => UDP_HEADER_BYTES,
        _ => 0,
    };
    (ip + further).min(packet.len())
}

/// The ports of a TCP packet, its source's first.
pub fn ports(packet: &[u8]) -> Option<[u16; 2]> {
    let (at, TCP) = transport(packet)? else {
        return None;
    };
    let port = |at: usize| Some(u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?));
    Some([port(at)?, port(at + 2)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet with a TCP header of 8 words and two bytes behind it.
    fn tcp_over_v4() -> Vec<u8> {
        let mut packet = vec![0; 20 + 32 + 2];
        packet[0] = 0x45;
        packet[9] = TCP;
        packet[20..24].copy_from_slice(&[0x13, 0x89, 0x27, 0x10]);
        packet[32] = 0x80;
        packet
    }

    #[test]
    fn what_a_packet_carries_is_no_header() {
        let mut packet = tcp_over_v4();
        assert_eq!(headers_bytes(&packet), 52);
        packet[9] = UDP;
        assert_eq!(headers_bytes(&packet), 28);
        packet[9] = 1;
        assert_eq!(headers_bytes(&packet), 20);
        let mut six = vec![0; IPV6_HEADER_BYTES + 20 + 9];
        six[0] = 0x60;
        six[6] = TCP;
        six[IPV6_HEADER_BYTES + 12] = 0x50;
        assert_eq!(headers_bytes(&six), 60);
        assert_eq!(headers_bytes(&[0; 28]), 0, "ARP, say");
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut packet = tcp_over_v4();
        assert_eq!(ports(&packet), Some([5001, 10_000]));
        packet[7] = 8;
        assert_eq!((ports(&packet), headers_bytes(&packet)), (None, 20));
    }

    #[test]
    fn what_is_cut_off_anywhere_is_read_as_far_as_it_goes() {
        let packet = tcp_over_v4();
        for length in 0..packet.len() {
            assert!(headers_bytes(&packet[..length]) <= length);
            assert_eq!(ports(&packet[..length]).is_some(), length >= 24);
        }
    }
}
