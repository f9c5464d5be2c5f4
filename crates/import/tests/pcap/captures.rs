//! Captures of scripted connections.

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use etherparse::{PacketBuilder, TcpOptionElement};
use knee_import::pcap::{Analyser, Options, Report};
use knee_import::{Filled, Import as _};

/// Sequence numbers that wrap within the first segments.
pub const CLIENT_ISN: u32 = u32::MAX - 2000;
pub const SERVER_ISN: u32 = 7000;
pub const MSS: u32 = 1448;

/// A segment, with what most of them are. Numbers count from the first byte.
#[derive(Clone)]
pub struct Seg {
    pub t_us: u64,
    pub from_client: bool,
    pub seq: u32,
    pub ack: u32,
    pub len: u32,
    pub flags: &'static str,
    pub window: u16,
    pub ecn: u8,
    pub options: Vec<TcpOptionElement>,
    pub ports: (u16, u16),
}

impl Default for Seg {
    fn default() -> Seg {
        Seg {
            t_us: 0,
            from_client: true,
            seq: 0,
            ack: 0,
            len: 0,
            flags: "A",
            window: 1000,
            ecn: 0,
            options: Vec::new(),
            ports: (40_000, 443),
        }
    }
}

/// The client sends `len` bytes.
pub fn data(t_us: u64, seq: u32, len: u32) -> Seg {
    Seg {
        t_us,
        seq,
        len,
        ..Seg::default()
    }
}

/// The server acknowledges.
pub fn ack(t_us: u64, ack: u32) -> Seg {
    Seg {
        t_us,
        from_client: false,
        ack,
        ..Seg::default()
    }
}

/// The server acknowledges with SACK blocks of the client's numbers.
pub fn sack(t_us: u64, number: u32, blocks: &[(u32, u32)]) -> Seg {
    let wire = |&(from, to): &(u32, u32)| (client(from), client(to));
    let mut blocks = blocks.iter().map(wire);
    let first = blocks.next().unwrap();
    let rest = [blocks.next(), blocks.next(), None];
    Seg {
        options: vec![TcpOptionElement::SelectiveAcknowledgement(first, rest)],
        ..ack(t_us, number)
    }
}

/// Value and echo of the timestamps option.
pub fn stamped(seg: Seg, value: u32, echo: u32) -> Seg {
    Seg {
        options: vec![TcpOptionElement::Timestamp(value, echo)],
        ..seg
    }
}

/// SYN, SYN-ACK and ACK at these times; windows are shifted by 7.
pub fn handshake(times_us: [u64; 3]) -> Vec<Seg> {
    use TcpOptionElement::{
        MaximumSegmentSize, SelectiveAcknowledgementPermitted, Timestamp, WindowScale,
    };
    let options = || {
        vec![
            MaximumSegmentSize(1460),
            SelectiveAcknowledgementPermitted,
            Timestamp(1, 0),
            WindowScale(7),
        ]
    };
    let syn = |t_us, from_client, flags| Seg {
        t_us,
        from_client,
        flags,
        seq: u32::MAX,
        options: options(),
        ..Seg::default()
    };
    vec![
        syn(times_us[0], true, "S"),
        syn(times_us[1], false, "SA"),
        data(times_us[2], 0, 0),
    ]
}

pub fn client(number: u32) -> u32 {
    CLIENT_ISN.wrapping_add(1).wrapping_add(number)
}

pub fn server(number: u32) -> u32 {
    SERVER_ISN.wrapping_add(1).wrapping_add(number)
}

/// The IPv4 packet of a segment.
pub fn packet(seg: &Seg) -> Vec<u8> {
    let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let (source, destination) = if seg.from_client { (0, 1) } else { (1, 0) };
    let mut header = etherparse::Ipv4Header::new(
        0,
        64,
        etherparse::IpNumber::TCP,
        ends[source],
        ends[destination],
    )
    .unwrap();
    header.ecn = etherparse::IpEcn::try_new(seg.ecn).unwrap();
    let ip = etherparse::IpHeaders::Ipv4(header, Default::default());
    built(PacketBuilder::ip(ip), seg)
}

/// Its IPv6 packet, behind a hop-by-hop header and destination options.
pub fn packet_v6(seg: &Seg) -> Vec<u8> {
    let pad = etherparse::Ipv6RawExtHeader::new_raw(etherparse::IpNumber::TCP, &[1, 4, 0, 0, 0, 0]);
    let pad = pad.unwrap();
    let extensions = etherparse::Ipv6Extensions {
        hop_by_hop_options: Some(pad.clone()),
        destination_options: Some(pad),
        ..Default::default()
    };
    let mut header = etherparse::Ipv6Header {
        hop_limit: 64,
        source: [1; 16],
        destination: [2; 16],
        traffic_class: seg.ecn,
        ..Default::default()
    };
    if !seg.from_client {
        std::mem::swap(&mut header.source, &mut header.destination);
    }
    built(
        PacketBuilder::ip(etherparse::IpHeaders::Ipv6(header, extensions)),
        seg,
    )
}

fn built(builder: etherparse::PacketBuilderStep<etherparse::IpHeaders>, seg: &Seg) -> Vec<u8> {
    let (client_port, server_port) = seg.ports;
    let (source, destination, seq, ack) = if seg.from_client {
        (client_port, server_port, client(seg.seq), server(seg.ack))
    } else {
        (server_port, client_port, server(seg.seq), client(seg.ack))
    };
    let mut tcp = builder
        .tcp(source, destination, seq, seg.window)
        .options(&seg.options)
        .unwrap();
    for flag in seg.flags.chars() {
        tcp = match flag {
            'S' => tcp.syn(),
            'A' => tcp.ack(ack),
            'F' => tcp.fin(),
            'R' => tcp.rst(),
            'E' => tcp.ece(),
            other => panic!("no flag is called {other}"),
        };
    }
    let mut bytes = Vec::new();
    tcp.write(&mut bytes, &vec![0; seg.len as usize]).unwrap();
    bytes
}

/// A pcap file: the byte order of its numbers and the unit of its times.
pub fn pcap(link_type: u32, big: bool, ns: bool, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let word = |value: u32| {
        if big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let magic = if ns { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file: Vec<u8> = [magic, 2 << 16 | 4, 0, 0, 262_144, link_type]
        .map(word)
        .concat();
    for (t_us, bytes) in packets {
        let fraction = t_us % 1_000_000 * if ns { 1000 } else { 1 };
        let len = bytes.len() as u32;
        let header = [(t_us / 1_000_000) as u32, fraction as u32, len, len];
        file.extend(header.map(word).concat());
        file.extend(bytes);
    }
    file
}

/// A block of pcapng.
pub fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let len = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, &body, &len].concat()
}

pub fn section() -> Vec<u8> {
    let words = [0x1a2b_3c4d, 1].map(u32::to_le_bytes).concat();
    block(0x0a0d_0d0a, &[&words[..], &[0xff; 8]].concat())
}

/// With `if_tsresol` and `if_tsoffset`.
pub fn interface(link_type: u16, resolution: u8, offset_s: i64) -> Vec<u8> {
    let mut body = [link_type, 0, 0, 0].map(u16::to_le_bytes).concat();
    body.extend([9u16, 1].map(u16::to_le_bytes).concat());
    body.extend([resolution, 0, 0, 0]);
    body.extend([14u16, 8].map(u16::to_le_bytes).concat());
    body.extend(offset_s.to_le_bytes());
    body.extend([0; 4]);
    block(1, &body)
}

pub fn enhanced(interface: u32, units: u64, wire_bytes: u32, bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len() as u32;
    let words = [
        interface,
        (units >> 32) as u32,
        units as u32,
        len,
        wire_bytes,
    ];
    block(6, &[&words.map(u32::to_le_bytes).concat(), bytes].concat())
}

/// What an import of captures gave.
pub struct Imported {
    pub acks: Vec<RecordBatch>,
    pub connections: Vec<RecordBatch>,
    pub report: Report,
}

pub fn import_files(options: Options, files: &[PathBuf]) -> Imported {
    let mut analyser = Analyser::new(options);
    let mut filled = Vec::new();
    for path in files {
        analyser
            .read(path, |_, batch| {
                filled.extend(batch);
                Ok::<_, std::io::Error>(())
            })
            .unwrap();
    }
    imported(analyser, filled)
}

pub fn import_bytes(options: Options, bytes: &[u8]) -> Imported {
    let mut analyser = Analyser::new(options);
    let mut filled = Vec::new();
    analyser
        .read_stream(Path::new("capture"), bytes, |_, batch| {
            filled.extend(batch);
            Ok::<_, std::io::Error>(())
        })
        .unwrap();
    imported(analyser, filled)
}

fn imported(mut analyser: Analyser, mut filled: Vec<Filled>) -> Imported {
    filled.extend(analyser.rest());
    let (acks, connections): (Vec<_>, Vec<_>) = filled
        .into_iter()
        .partition(|(table, _)| *table == "capture_acks");
    Imported {
        acks: acks.into_iter().map(|(_, batch)| batch).collect(),
        connections: connections.into_iter().map(|(_, batch)| batch).collect(),
        report: analyser.report().clone(),
    }
}

pub fn write(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// A script as a capture of raw IP packets.
pub fn capture(script: &[Seg]) -> Vec<u8> {
    let packets: Vec<_> = script.iter().map(|seg| (seg.t_us, packet(seg))).collect();
    pcap(101, false, false, &packets)
}

pub fn import(script: &[Seg]) -> Imported {
    import_bytes(Options::default(), &capture(script))
}

impl Imported {
    /// A column of `capture_acks`, of the client's data.
    pub fn ack(&self, name: &str) -> Vec<Option<i64>> {
        let ports = numbers(&self.acks, "local_port");
        (numbers(&self.acks, name).into_iter().zip(ports))
            .filter(|(_, port)| *port != Some(443))
            .map(|(value, _)| value)
            .collect()
    }

    /// A column of `capture_connections`.
    pub fn connection(&self, name: &str) -> Vec<Option<i64>> {
        numbers(&self.connections, name)
    }

    pub fn texts(&self, name: &str) -> Vec<Option<String>> {
        texts(&self.connections, name)
    }
}

fn numbers(batches: &[RecordBatch], name: &str) -> Vec<Option<i64>> {
    let mut found = Vec::new();
    for batch in batches {
        let column = batch.column_by_name(name).unwrap();
        found.extend((0..batch.num_rows()).map(|row| {
            column.is_valid(row).then(|| match column.data_type() {
                DataType::Int64 => column.as_primitive::<Int64Type>().value(row),
                DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into(),
                DataType::Float64 => column.as_primitive::<Float64Type>().value(row) as i64,
                DataType::Boolean => column.as_boolean().value(row).into(),
                other => panic!("{name} is {other}"),
            })
        }));
    }
    found
}

fn texts(batches: &[RecordBatch], name: &str) -> Vec<Option<String>> {
    let mut found = Vec::new();
    for batch in batches {
        let column = batch.column_by_name(name).unwrap();
        let column = arrow_cast(column);
        found.extend(column.iter().map(|text| text.map(str::to_owned)));
    }
    found
}

/// A column of texts, dictionary or not.
fn arrow_cast(column: &arrow_array::ArrayRef) -> arrow_array::StringArray {
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().clone(),
        _ => {
            let dictionary = column.as_dictionary::<Int32Type>();
            let values = dictionary.values().as_string::<i32>();
            (dictionary.keys().iter())
                .map(|key| key.map(|key| values.value(key as usize)))
                .collect()
        }
    }
}
