//! A simulated capture as a pcapng file that Wireshark and tshark read.
//!
//! Packets are IPv4 without a link layer (LINKTYPE_RAW). Flow `f` runs between
//! the sender at 10.0.0.1, port 10000 + f, and the receiver at 10.1.0.1, port
//! 5001; each 50,000 further flows take the next pair of addresses. Time 0 of
//! the run is the epoch. The capture is what the sender's interface sees.

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement};
use knee_sim::CapturedPacket;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

/// How much of each packet is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Headers only; the file still tells each packet's full length.
    Omit,
    /// The whole packet: payloads are zeros, as the simulator sends none.
    Zeros,
}

const FLOWS_PER_ADDRESS: u32 = 50_000;
const FIRST_PORT: u16 = 10_000;
const RECEIVER_PORT: u16 = 5_001;
/// Linux' default TTL, which no router of the model decrements.
const TTL: u8 = 64;
/// Three blocks are what fits beside a timestamp: RFC 2018, section 3.
const SACK_BLOCKS_MAX: usize = 3;
/// if_tsresol as a power of ten: nanoseconds.
const TSRESOL_NS: u8 = 9;

/// Writes `packets`, in the order given, as one pcapng section.
///
/// Fails only as `writer` does.
pub fn write<W: Write>(packets: &[CapturedPacket], payload: Payload, writer: W) -> io::Result<W> {
    let mut file = PcapNgWriter::with_section_header(writer, section()).map_err(to_io)?;
    file.write_pcapng_block(interface()).map_err(to_io)?;
    let mut frame = Vec::with_capacity(2048);
    for packet in packets {
        let original_len = encode(packet, payload, &mut frame);
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(packet.t.0),
            original_len,
            data: Cow::Borrowed(&frame),
            options: Vec::new(),
        };
        file.write_pcapng_block(block).map_err(to_io)?;
    }
    Ok(file.into_inner())
}

fn section() -> SectionHeaderBlock<'static> {
    SectionHeaderBlock {
        // Fixed, so that the same run gives the same file on every machine.
        endianness: Endianness::Little,
        options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(
            concat!("Kneepoint ", env!("CARGO_PKG_VERSION")),
        ))],
        ..SectionHeaderBlock::default()
    }
}

fn interface() -> InterfaceDescriptionBlock<'static> {
    let mut interface = InterfaceDescriptionBlock::new(DataLink::RAW, 0);
    interface.options = vec![
        InterfaceDescriptionOption::IfName(Cow::Borrowed("sender")),
        InterfaceDescriptionOption::IfDescription(Cow::Borrowed(
            "simulated; time 0 is the start of the run",
        )),
        InterfaceDescriptionOption::IfTsResol(TSRESOL_NS),
    ];
    interface
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// Puts the packet's bytes into `frame`; returns its length on the wire.
fn encode(packet: &CapturedPacket, payload: Payload, frame: &mut Vec<u8>) -> u32 {
    let zeros = vec![0; packet.payload_bytes as usize];
    let mut tcp = tcp_header(packet);
    let mut ip = ip_header(packet, tcp.header_len() + zeros.len());
    ip.header_checksum = ip.calc_header_checksum();
    tcp.checksum = tcp
        .calc_checksum_ipv4(&ip, &zeros)
        .expect("a segment within the MTU has a checksum");

    frame.clear();
    frame.extend_from_slice(&ip.to_bytes());
    frame.extend_from_slice(&tcp.to_bytes());
    let original_len = frame.len() + zeros.len();
    if payload == Payload::Zeros {
        frame.extend_from_slice(&zeros);
    }
    original_len as u32
}

fn ip_header(packet: &CapturedPacket, payload_len: usize) -> Ipv4Header {
    let host = packet.flow / FLOWS_PER_ADDRESS + 1;
    let sender = Ipv4Addr::from_bits(0x0a00_0000 + host).octets();
    let receiver = Ipv4Addr::from_bits(0x0a01_0000 + host).octets();
    let (source, destination) = if packet.outbound {
        (sender, receiver)
    } else {
        (receiver, sender)
    };
    let payload_len = u16::try_from(payload_len).expect("an IP packet is at most 65,535 bytes");
    let mut ip = Ipv4Header::new(payload_len, TTL, IpNumber::TCP, source, destination)
        .expect("20 bytes of header fit");
    ip.ecn = IpEcn::try_new(packet.ecn & 0b11).expect("two bits");
    // Identification stays 0: allowed with Don't Fragment (RFC 6864, section 4.1).
    ip
}

fn tcp_header(packet: &CapturedPacket) -> TcpHeader {
    let local_port = FIRST_PORT + (packet.flow % FLOWS_PER_ADDRESS) as u16;
    let (source, destination) = if packet.outbound {
        (local_port, RECEIVER_PORT)
    } else {
        (RECEIVER_PORT, local_port)
    };
    let own = isn(packet.flow, packet.outbound);
    let peer = isn(packet.flow, !packet.outbound);

    let mut tcp = TcpHeader::new(
        source,
        destination,
        wire_seq(own, packet.seq),
        packet.window,
    );
    tcp.syn = packet.syn;
    tcp.fin = packet.fin;
    tcp.psh = packet.psh;
    tcp.ece = packet.ece;
    tcp.cwr = packet.cwr;
    tcp.ns = packet.ae;
    tcp.ack = packet.has_ack;
    if packet.has_ack {
        tcp.acknowledgment_number = wire_seq(peer, packet.ack);
    }
    tcp.set_options(&options(packet, peer))
        .expect("the options fit in 40 bytes");
    tcp
}

/// Options in the order and with the padding of Linux.
fn options(packet: &CapturedPacket, peer: u32) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted,
        Timestamp, WindowScale,
    };
    let timestamp = Timestamp(packet.tsval_ms, packet.tsecr_ms);
    if packet.syn {
        return vec![
            MaximumSegmentSize(packet.mss_bytes),
            SelectiveAcknowledgementPermitted,
            timestamp,
            Noop,
            WindowScale(packet.wscale),
        ];
    }
    let mut options = vec![Noop, Noop, timestamp];
    let count = usize::from(packet.sack_count).min(SACK_BLOCKS_MAX);
    let mut blocks = packet.sack[..count]
        .iter()
        .map(|&(start, end)| (wire_seq(peer, start), wire_seq(peer, end)));
    if let Some(first) = blocks.next() {
        let rest = [blocks.next(), blocks.next(), None];
        options.extend([Noop, Noop, SelectiveAcknowledgement(first, rest)]);
    }
    options
}

/// A sequence number as on the wire: 32 bits that wrap.
fn wire_seq(isn: u32, offset: u64) -> u32 {
    isn.wrapping_add(offset as u32)
}

/// Initial sequence number: arbitrary, the same in every run, different per
/// direction. Knuth's multiplicative hash spreads neighbouring flows.
fn isn(flow: u32, outbound: bool) -> u32 {
    (2 * flow + u32::from(outbound) + 1).wrapping_mul(2_654_435_761)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use knee_model::units::Nanos;
    use pcap_file::pcapng::{Block, PcapNgReader};

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
        let file = write(packets, payload, Vec::new()).unwrap();
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
    fn flows_past_the_ports_take_the_next_addresses() {
        let other = CapturedPacket {
            flow: 50_003,
            ..packet()
        };
        let (_, _, bytes) = written(&[other], Payload::Omit).remove(0);
        assert_eq!(bytes[12..16], [10, 0, 0, 2]);
        assert_eq!(bytes[16..20], [10, 1, 0, 2]);
        assert_eq!(u16::from_be_bytes([bytes[20], bytes[21]]), 10_003);
    }
}
