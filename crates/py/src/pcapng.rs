//! Packets as a pcapng file that Wireshark and tshark read, without a link layer (LINKTYPE_RAW). Time 0 of the run is the
//! epoch.
//!
//! Simulated ones are IPv4 between the addresses and ports of [`FourTuple`], as the sender's interface sees them. Of a real
//! host they are as it captured them.

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::time::Duration;

use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement};
use knee_engine::{CapturedPacket, FourTuple};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
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

/// Linux' default TTL, which no router of the model decrements.
const TTL: u8 = 64;
/// Three blocks are what fits beside a timestamp: RFC 2018, section 3.
const SACK_BLOCKS_MAX: usize = 3;
/// if_tsresol as a power of ten: nanoseconds.
const TSRESOL_NS: u8 = 9;

/// Writes `packets`, in the order given, as one pcapng section.
///
/// Fails only as `writer` does.
/// `tuples`: of each flow, by its number.
pub fn write<W: Write>(
    packets: &[CapturedPacket],
    tuples: &[FourTuple],
    payload: Payload,
    writer: W,
) -> io::Result<W> {
    let mut file = begun(
        writer,
        "sender",
        "simulated; time 0 is the start of the run",
    )?;
    let mut frame = Vec::with_capacity(2048);
    for packet in packets {
        let original_len = encode(packet, &tuples[packet.flow as usize], payload, &mut frame);
        let block = block(packet.t.0, original_len, &frame);
        file.write_pcapng_block(block).map_err(to_io)?;
    }
    Ok(file.into_inner())
}

/// A packet that a host captured.
pub struct HostPacket {
    pub t_ns: u64,
    pub is_outbound: bool,
    pub length_bytes: u32,
    pub header: Vec<u8>,
}

/// Of pcapng's flags of a packet, the bits of its direction.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Writes what a host captured.
///
/// Fails only as `writer` does.
pub fn write_of_host<W: Write>(packets: &[HostPacket], host: &str, writer: W) -> io::Result<W> {
    let mut file = begun(writer, host, "time 0 is the start of the run")?;
    for packet in packets {
        let mut block = block(packet.t_ns, packet.length_bytes, &packet.header);
        let direction = if packet.is_outbound {
            OUTBOUND
        } else {
            INBOUND
        };
        block.options = vec![EnhancedPacketOption::Flags(direction)];
        file.write_pcapng_block(block).map_err(to_io)?;
    }
    Ok(file.into_inner())
}

fn begun<W: Write>(writer: W, interface: &str, about: &str) -> io::Result<PcapNgWriter<W>> {
    let mut file = PcapNgWriter::with_section_header(writer, section()).map_err(to_io)?;
    let mut block = InterfaceDescriptionBlock::new(DataLink::RAW, 0);
    block.options = vec![
        InterfaceDescriptionOption::IfName(Cow::Borrowed(interface)),
        InterfaceDescriptionOption::IfDescription(Cow::Borrowed(about)),
        InterfaceDescriptionOption::IfTsResol(TSRESOL_NS),
    ];
    file.write_pcapng_block(block).map_err(to_io)?;
    Ok(file)
}

fn block(t_ns: u64, original_len: u32, data: &[u8]) -> EnhancedPacketBlock<'_> {
    EnhancedPacketBlock {
        interface_id: 0,
        timestamp: Duration::from_nanos(t_ns),
        original_len,
        data: Cow::Borrowed(data),
        options: Vec::new(),
    }
}

fn section() -> SectionHeaderBlock<'static> {
    SectionHeaderBlock {
        // Fixed, so that the same run gives the same file on every machine.
        endianness: Endianness::Little,
        options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(
            concat!("tcpknee ", env!("CARGO_PKG_VERSION")),
        ))],
        ..SectionHeaderBlock::default()
    }
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// Puts the packet's bytes into `frame`; returns its length on the wire.
fn encode(
    packet: &CapturedPacket,
    tuple: &FourTuple,
    payload: Payload,
    frame: &mut Vec<u8>,
) -> u32 {
    let zeros = vec![0; packet.payload_bytes as usize];
    let mut tcp = tcp_header(packet, tuple);
    let mut ip = ip_header(packet, tuple, tcp.header_len() + zeros.len());
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

/// Where a packet comes from, and where it goes.
fn ends(packet: &CapturedPacket, tuple: &FourTuple) -> [SocketAddrV4; 2] {
    match packet.outbound {
        true => [tuple.sender, tuple.receiver],
        false => [tuple.receiver, tuple.sender],
    }
}

fn ip_header(packet: &CapturedPacket, tuple: &FourTuple, payload_len: usize) -> Ipv4Header {
    let [source, destination] = ends(packet, tuple).map(|end| end.ip().octets());
    let payload_len = u16::try_from(payload_len).expect("an IP packet is at most 65,535 bytes");
    let mut ip = Ipv4Header::new(payload_len, TTL, IpNumber::TCP, source, destination)
        .expect("20 bytes of header fit");
    ip.ecn = IpEcn::try_new(packet.ecn & 0b11).expect("two bits");
    // Identification stays 0: allowed with Don't Fragment (RFC 6864, section 4.1).
    ip
}

fn tcp_header(packet: &CapturedPacket, tuple: &FourTuple) -> TcpHeader {
    let [source, destination] = ends(packet, tuple).map(|end| end.port());
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
pub fn isn(flow: u32, outbound: bool) -> u32 {
    (2 * flow + u32::from(outbound) + 1).wrapping_mul(2_654_435_761)
}
