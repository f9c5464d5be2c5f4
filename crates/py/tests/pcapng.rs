//! The capture's writer, read back. It has no Python in it, and is tested without the module, which Python alone can load.

#[path = "../src/pcapng.rs"]
mod pcapng;

use std::time::Duration;

use etherparse::{NetSlice, SlicedPacket, TcpOptionElement, TransportSlice};
use knee_engine::{CapturedPacket, FourTuple};
use knee_units::Nanos;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcapng::{HostPacket, Payload, isn, write, write_of_host};

fn packet() -> CapturedPacket {
    CapturedPacket {
        t: Nanos(1_234_567_891),
        flow: 7,
        outbound: true,
        seq: 1,
        ack: 1,
        payload_bytes: 1448,
        syn: false,
        fin: false,
        has_ack: true,
        psh: true,
        ece: false,
        cwr: false,
        ecn: 2,
        ae: false,
        window: 502,
        wscale: 7,
        mss_bytes: 1460,
        tsval_ms: 4242,
        tsecr_ms: 4141,
        sack: [(0, 0); 4],
        sack_count: 0,
    }
}

/// (time, length on the wire, captured bytes) of each packet.
fn written(packets: &[CapturedPacket], payload: Payload) -> Vec<(Duration, u32, Vec<u8>)> {
    let tuples: Vec<_> = (0..100_000)
        .map(|flow| FourTuple::new(flow, [0, 0]))
        .collect();
    let file = write(packets, &tuples, payload, Vec::new()).unwrap();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let mut found = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(block) = block.unwrap() {
            found.push((block.timestamp, block.original_len, block.data.to_vec()));
        }
    }
    found
}

#[test]
fn headers_carry_valid_checksums_and_the_ecn_bits() {
    let (t, original_len, bytes) = written(&[packet()], Payload::Zeros).remove(0);
    assert_eq!(t, Duration::from_nanos(1_234_567_891));
    assert_eq!(original_len, 1500);
    assert_eq!(bytes.len(), 1500);

    let parsed = SlicedPacket::from_ip(&bytes).unwrap();
    let Some(NetSlice::Ipv4(ip)) = parsed.net else {
        panic!("not IPv4")
    };
    let ip = ip.header().to_header();
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    assert_eq!(ip.ecn.value(), 2);
    assert_eq!(ip.source, [10, 0, 0, 1]);
    let Some(TransportSlice::Tcp(tcp)) = parsed.transport else {
        panic!("not TCP")
    };
    let header = tcp.to_header();
    assert_eq!(
        header.calc_checksum_ipv4(&ip, tcp.payload()).unwrap(),
        header.checksum
    );
    assert_eq!(
        (header.source_port, header.destination_port),
        (10_007, 5_001)
    );
}

#[test]
fn omitted_payload_keeps_the_length_on_the_wire() {
    let (_, original_len, bytes) = written(&[packet()], Payload::Omit).remove(0);
    assert_eq!((original_len, bytes.len()), (1500, 52));
}

#[test]
fn sequence_numbers_wrap_at_32_bits() {
    let far = CapturedPacket {
        seq: (1 << 32) + 5,
        ..packet()
    };
    let near = CapturedPacket { seq: 5, ..packet() };
    let frames = written(&[far, near], Payload::Omit);
    assert_eq!(frames[0].2, frames[1].2);
}

#[test]
fn syn_offers_the_options_of_linux() {
    let syn = CapturedPacket {
        syn: true,
        has_ack: false,
        payload_bytes: 0,
        seq: 0,
        ..packet()
    };
    let (_, original_len, bytes) = written(&[syn], Payload::Omit).remove(0);
    assert_eq!(original_len, 60);
    let parsed = SlicedPacket::from_ip(&bytes).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = parsed.transport else {
        panic!("not TCP")
    };
    let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
    assert_eq!(
        options,
        [
            TcpOptionElement::MaximumSegmentSize(1460),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            TcpOptionElement::Timestamp(4242, 4141),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(7),
        ]
    );
    assert!(!tcp.ack() && tcp.acknowledgment_number() == 0);
}

#[test]
fn acks_carry_sack_blocks_in_the_peers_numbers() {
    let mut ack = CapturedPacket {
        outbound: false,
        payload_bytes: 0,
        ..packet()
    };
    ack.sack = [(2897, 4345), (5793, 7241), (8689, 10137), (11585, 13033)];
    ack.sack_count = 4;
    let (_, _, bytes) = written(&[ack], Payload::Omit).remove(0);
    let parsed = SlicedPacket::from_ip(&bytes).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = parsed.transport else {
        panic!("not TCP")
    };
    assert_eq!(tcp.source_port(), 5_001);
    let base = isn(7, true);
    let block = |(start, end): (u32, u32)| (base.wrapping_add(start), base.wrapping_add(end));
    let found = tcp.options_iterator().map(Result::unwrap).last().unwrap();
    assert_eq!(
        found,
        TcpOptionElement::SelectiveAcknowledgement(
            block((2897, 4345)),
            [Some(block((5793, 7241))), Some(block((8689, 10137))), None],
        ),
        "a timestamp leaves room for three blocks"
    );
}

#[test]
fn flows_past_the_senders_ports_take_the_receivers_next() {
    let other = CapturedPacket {
        flow: 50_003,
        ..packet()
    };
    let (_, _, bytes) = written(&[other], Payload::Omit).remove(0);
    assert_eq!(bytes[12..16], [10, 0, 0, 1]);
    assert_eq!(bytes[16..20], [10, 1, 0, 1]);
    assert_eq!(u16::from_be_bytes([bytes[20], bytes[21]]), 10_003);
    assert_eq!(u16::from_be_bytes([bytes[22], bytes[23]]), 5_002);
}

#[test]
fn what_a_host_captured_keeps_its_bytes_lengths_times_and_directions() {
    let packets =
        [(5, true, 2948), (2_000_000_007, false, 52)].map(|(t_ns, is_outbound, length_bytes)| {
            HostPacket {
                t_ns,
                is_outbound,
                length_bytes,
                header: vec![0x45; 52],
            }
        });
    let file = write_of_host(&packets, "receiver", Vec::new()).unwrap();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let mut found = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap().into_owned() {
            let EnhancedPacketOption::Flags(flags) = packet.options[0] else {
                panic!("the direction is missing")
            };
            found.push((
                packet.timestamp,
                flags,
                packet.original_len,
                packet.data.into_owned(),
            ));
        }
    }
    let expected = [
        (Duration::from_nanos(5), 2, 2948, vec![0x45; 52]),
        (Duration::from_nanos(2_000_000_007), 1, 52, vec![0x45; 52]),
    ];
    assert_eq!(found, expected);
}
