//! Cutting and merging, checked against checksums and sequence numbers worked
//! out here from the RFCs.

use super::*;
use crate::buffers::Buffers;
use crate::tun::HEADER_BYTES;

const HEADERS: usize = 52;

/// A TCP packet of that much payload, as TUN hands it over.
fn read(payload: usize, gso_size: u16, tcp_flags: u8) -> Vec<u8> {
    let mut packet = vec![0; HEADERS + payload];
    packet[0] = 0x45;
    packet[1] = 0x02;
    packet[4..6].copy_from_slice(&700u16.to_be_bytes());
    packet[8] = 64;
    packet[9] = TCP;
    packet[12..16].copy_from_slice(&[10, 77, 0, 1]);
    packet[16..20].copy_from_slice(&[10, 78, 0, 1]);
    packet[20..22].copy_from_slice(&10_000u16.to_be_bytes());
    packet[22..24].copy_from_slice(&5201u16.to_be_bytes());
    packet[24..28].copy_from_slice(&(u32::MAX - 1_000).to_be_bytes());
    packet[32] = 0x80;
    packet[33] = 0x10 | tcp_flags;
    for (n, byte) in packet[HEADERS..].iter_mut().enumerate() {
        *byte = n as u8;
    }
    let vnet = VnetHeader {
        needs_csum: true,
        gso_type: if gso_size > 0 { GSO_TCPV4 } else { GSO_NONE },
        hdr_len: HEADERS as u16,
        gso_size,
        csum_start: 20,
        csum_offset: 16,
    };
    [vnet.bytes().as_slice(), &packet].concat()
}

/// The buffer's wire packets of `mss` bytes.
fn cut(buffers: &mut Buffers, data: &[u8], mss: usize) -> Vec<u32> {
    let mut room = buffers.room(true);
    room[..data.len()].copy_from_slice(data);
    let buffer = buffers.keep(room, data.len(), head(&data[HEADER_BYTES..]));
    let packet_bytes = data.len() - HEADER_BYTES;
    (HEADERS..packet_bytes)
        .step_by(mss)
        .map(|start| buffers.cut(buffer, start, (start + mss).min(packet_bytes)))
        .collect()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn each_piece_of_a_super_packet_has_its_own_sequence_number_flags_and_valid_ip_checksum() {
    let mut buffers = Buffers::default();
    let handles = cut(&mut buffers, &read(3_000, 1_448, PSH | CWR), 1_448);
    assert_eq!(handles.len(), 3);
    for (n, &handle) in handles.iter().enumerate() {
        let mut bytes = [0; HEAD_BYTES];
        let piece = buffers.piece(handle);
        let (len, vnet) = build(&[piece], &mut bytes);
        assert_eq!(len, HEADERS);
        assert_eq!(vnet.gso_type, GSO_NONE);
        assert_eq!(fold(sum_of(&bytes[..20])), 0xffff, "checksum of IP");
        let total = u16::from_be_bytes([bytes[2], bytes[3]]);
        assert_eq!(usize::from(total), HEADERS + [1_448, 1_448, 104][n]);
        assert_eq!(u16::from_be_bytes([bytes[4], bytes[5]]), 700 + n as u16);
        let seq = (u32::MAX - 1_000).wrapping_add(1_448 * n as u32);
        assert_eq!(word(&bytes, 24), seq, "wraps around");
        assert_eq!(bytes[33] & PSH != 0, n == 2, "PSH on the last");
        assert_eq!(bytes[33] & CWR != 0, n == 0, "CWR on the first");
    }
}

#[test]
fn partial_checksum_completed_over_the_payload_is_the_rfc_1071_sum() {
    let mut buffers = Buffers::default();
    let handles = cut(&mut buffers, &read(2_000, 1_000, 0), 1_000);
    let mut bytes = [0; HEAD_BYTES];
    let piece = buffers.piece(handles[1]);
    let (len, vnet) = build(&[piece], &mut bytes);
    let mut packet = bytes[..len].to_vec();
    packet.extend_from_slice(&piece.packet[piece.start..piece.end]);
    // What a NIC does: sum from csum_start, the field holding the pseudo-header's.
    let sum = !fold(sum_of(&packet[usize::from(vnet.csum_start)..]));
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    // What a receiver checks: pseudo-header and segment sum to all ones.
    let pseudo = sum_of(&packet[12..20]) + u32::from(TCP) + (packet.len() - 20) as u32;
    assert_eq!(fold(pseudo + sum_of(&packet[20..])), 0xffff);
}

#[test]
fn merging_what_was_cut_gives_the_packet_back() {
    let mut buffers = Buffers::default();
    let data = read(10_000, 1_448, PSH);
    let handles = cut(&mut buffers, &data, 1_448);
    let pieces: Vec<_> = handles
        .iter()
        .map(|&handle| buffers.piece(handle))
        .collect();
    assert_eq!(merged(&pieces), pieces.len());
    let mut bytes = [0; HEAD_BYTES];
    let (len, vnet) = build(&pieces, &mut bytes);
    assert_eq!((vnet.gso_type, vnet.gso_size), (GSO_TCPV4, 1_448));
    let original = &data[HEADER_BYTES..];
    let payload: Vec<u8> = pieces
        .iter()
        .flat_map(|piece| piece.packet[piece.start..piece.end].iter().copied())
        .collect();
    assert_eq!(payload, original[HEADERS..]);
    // All but the checksums and the length, which the original left open.
    assert_eq!(bytes[20..36], original[20..36]);
    assert_eq!(bytes[38..len], original[38..HEADERS]);
}

#[test]
fn train_ends_at_a_gap_a_mark_and_a_short_packet() {
    let mut buffers = Buffers::default();
    let data = read(6_000, 1_000, 0);
    let handles = cut(&mut buffers, &data, 1_000);
    let mut pieces: Vec<_> = handles
        .iter()
        .map(|&handle| buffers.piece(handle))
        .collect();
    assert_eq!(merged(&pieces), 6);
    pieces[4].ecn = Ecn::Ce;
    assert_eq!(merged(&pieces), 4, "a mark");
    pieces[2].end -= 1;
    assert_eq!(merged(&pieces), 3, "a short packet is the train's last");
    pieces.remove(1);
    assert_eq!(merged(&pieces), 1, "a gap");
}

#[test]
fn mark_is_written_and_the_checksum_mended() {
    let mut buffers = Buffers::default();
    let handles = cut(&mut buffers, &read(500, 0, 0), 500);
    buffers.set_ecn(handles[0], Ecn::Ce);
    let bytes = buffers.as_read(handles[0]).unwrap()[HEADER_BYTES..].to_vec();
    assert_eq!(bytes[1] & 3, 3);
    assert_eq!(fold(sum_of(&bytes[..20])), 0xffff);
}

#[test]
fn packets_that_are_no_tcp_are_one_opaque_payload() {
    for packet in [vec![], vec![0x60; 60], vec![0x45; 10], {
        let mut udp = read(100, 0, 0)[HEADER_BYTES..].to_vec();
        udp[9] = UDP;
        udp
    }] {
        let head = head(&packet);
        assert!(!head.tcp);
        assert_eq!(head.bytes, 0);
    }
}

#[test]
fn only_an_ack_without_anything_else_is_a_pure_one() {
    let ack = |payload: usize, flags: u8, options: [u8; 12]| {
        let mut packet = read(payload, 0, flags)[HEADER_BYTES..].to_vec();
        packet[28..32].copy_from_slice(&77_000u32.to_be_bytes());
        packet[40..52].copy_from_slice(&options);
        let head = head(&packet);
        pure_ack(&packet, &head)
    };
    // Two NOPs, then a timestamp (kind 8, 10 bytes); or 10 bytes of SACK.
    let timestamp = [1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 7];
    let sack = [1, 1, 5, 10, 0, 0, 0, 5, 0, 0, 0, 7];
    assert_eq!(ack(0, 0, timestamp), Some(77_000));
    assert_eq!(ack(0, 0, [0; 12]), Some(77_000));
    assert_eq!(ack(0, 0, sack), None);
    assert_eq!(ack(1, 0, timestamp), None);
    assert_eq!(ack(0, PSH, timestamp), None);
    // ECN's echo (RFC 3168) tells something else besides.
    assert_eq!(ack(0, 0x40, timestamp), None);
    // A length that leads out of the header.
    assert_eq!(ack(0, 0, [8, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
}
