//! Records of pcap and pcapng files, read from a stream in bounded memory.
//!
//! Sliced by hand: the crate that writes our own captures (`pcap-file` 2) reads
//! pcapng times in nanoseconds whatever `if_tsresol` says, and one damaged option
//! ends its reading of a whole file.
//!
//! Source: draft-ietf-opsawg-pcap-05, draft-ietf-opsawg-pcapng-03.

use std::io::{self, Read};

/// libpcap keeps 256 KiB of a packet at most (MAXIMUM_SNAPLEN); a length field
/// beyond four times that is damage. It bounds memory.
const PACKET_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 1 << 18;
/// Until 2116: differences of two times fit.
const ERA: std::ops::Range<i64> = 0..i64::MAX / 2;
/// Interfaces of a section; each may have 4 bytes of a damaged file's.
const INTERFACES: usize = 1 << 16;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const OPT_TSRESOL: u16 = 9;
const OPT_TSOFFSET: u16 = 14;
const OPT_IFDROP: u16 = 5;

/// A packet as the capture has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Since 1970-01-01 UTC.
    pub t_ns: i64,
    /// LINKTYPE_ value.
    pub link_type: u32,
    /// Its number in the section; 0 in a pcap file.
    pub interface: u32,
    /// Length on the wire; `data` may be less of it.
    pub wire_bytes: u32,
    pub data: &'a [u8],
}

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    Record(Record<'a>),
    /// A packet that cannot be used, such as one without a time.
    Unusable(&'static str),
    /// Another capture begins in the same file, as when two were joined by `cat`.
    Another,
    /// What follows cannot be found any more.
    Damaged(&'static str),
    End,
}

#[derive(Clone, Copy)]
enum Endian {
    Big,
    Little,
}

impl Endian {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(match self {
            Endian::Big => u16::from_be_bytes(bytes),
            Endian::Little => u16::from_le_bytes(bytes),
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(match self {
            Endian::Big => u32::from_be_bytes(bytes),
            Endian::Little => u32::from_le_bytes(bytes),
        })
    }

    fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
        Some(match self {
            Endian::Big => u64::from_be_bytes(bytes),
            Endian::Little => u64::from_le_bytes(bytes),
        })
    }
}

/// How an interface of a pcapng section tells time.
#[derive(Clone, Copy)]
struct Interface {
    link_type: u32,
    /// Units of its times in a second.
    per_sec: u64,
    offset_s: i64,
    /// Packets that it dropped, once the capture said so.
    dropped: u64,
}

impl Interface {
    fn t_ns(&self, units: u64) -> Option<i64> {
        let ns = u128::from(units) * 1_000_000_000 / u128::from(self.per_sec);
        let ns = i128::try_from(ns).ok()? + i128::from(self.offset_s) * 1_000_000_000;
        i64::try_from(ns).ok().filter(|t_ns| ERA.contains(t_ns))
    }
}

/// What the one header of a pcap file says of all records.
#[derive(Clone, Copy)]
struct Pcap {
    ns_per_unit: i64,
    link_type: u32,
}

/// A block of a packet: its kind, and where it stands in the buffer.
struct Block {
    kind: u32,
    body: std::ops::Range<usize>,
}

/// A capture file being read.
pub struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    from: usize,
    filled: usize,
    /// Bytes read so far, once decompressed.
    bytes: u64,
    endian: Endian,
    /// `None`: a pcapng file.
    pcap: Option<Pcap>,
    /// Of the section.
    interfaces: Vec<Interface>,
    /// Of sections that are over.
    dropped: u64,
}

impl<R: Read> Reader<R> {
    /// `None`: an empty file.
    ///
    /// # Errors
    /// It cannot be read, or is no capture (`InvalidData`).
    pub fn new(input: R) -> io::Result<Option<Reader<R>>> {
        let mut reader = Reader {
            input,
            buffer: vec![0; READ_BYTES],
            from: 0,
            filled: 0,
            bytes: 0,
            endian: Endian::Little,
            pcap: None,
            interfaces: Vec::new(),
            dropped: 0,
        };
        if !reader.fill(4)? && reader.held().is_empty() {
            return Ok(None);
        }
        let not_a_capture = |reader: &Reader<R>| {
            let start = &reader.held()[..reader.held().len().min(4)];
            let start: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it begins with {start}, and a capture (pcap or pcapng) does not"),
            )
        };
        let Some(magic) = Endian::Big.u32(reader.held(), 0) else {
            return Err(not_a_capture(&reader));
        };
        if magic != SECTION && !reader.header()? {
            return Err(not_a_capture(&reader));
        }
        Ok(Some(reader))
    }

    /// Reads the header of a pcap file. Is it one?
    fn header(&mut self) -> io::Result<bool> {
        let (endian, ns_per_unit) = match Endian::Big.u32(self.held(), 0) {
            Some(0xa1b2_c3d4) => (Endian::Big, 1_000),
            Some(0xd4c3_b2a1) => (Endian::Little, 1_000),
            Some(0xa1b2_3c4d) => (Endian::Big, 1),
            Some(0x4d3c_b2a1) => (Endian::Little, 1),
            _ => return Ok(false),
        };
        self.fill(24)?;
        let Some(link_type) = endian.u32(self.held(), 20) else {
            return Ok(false);
        };
        self.from += 24;
        self.endian = endian;
        self.pcap = Some(Pcap {
            ns_per_unit,
            // The bits above it tell of frame check sequences.
            link_type: link_type & 0xffff,
        });
        Ok(true)
    }

    /// Does another capture begin here? Its first words are no record's: of a time
    /// in 2055 or 1975, and at its second 262,146 µs or within a block's length.
    fn another(&mut self) -> io::Result<bool> {
        if !self.fill(24)? {
            return Ok(false);
        }
        let is_pcapng = self.pcap.is_none();
        let word = |endian: Endian, at| endian.u32(self.held(), at).expect("24 bytes");
        match (
            word(Endian::Big, 0),
            word(Endian::Big, 4),
            word(Endian::Big, 8),
        ) {
            (SECTION, _, 0x1a2b_3c4d | 0x4d3c_2b1a) if !is_pcapng => {
                self.pcap = None;
                Ok(true)
            }
            // Version 2.4 in either order.
            (0xa1b2_c3d4 | 0xa1b2_3c4d, 0x0002_0004, _)
            | (0xd4c3_b2a1 | 0x4d3c_b2a1, 0x0200_0400, _) => {
                self.dropped = self.dropped();
                self.interfaces.clear();
                self.header()
            }
            _ => Ok(false),
        }
    }

    /// Bytes read so far, once decompressed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets that the capturing program says it could not take.
    pub fn dropped(&self) -> u64 {
        (self.interfaces.iter()).fold(self.dropped, |sum, interface| {
            sum.saturating_add(interface.dropped)
        })
    }

    /// # Errors
    /// The file cannot be read.
    pub fn read_next(&mut self) -> io::Result<Next<'_>> {
        if self.another()? {
            return Ok(Next::Another);
        }
        match self.pcap {
            Some(pcap) => self.next_pcap(pcap),
            None => self.next_packet_block(),
        }
    }

    fn next_pcap(&mut self, pcap: Pcap) -> io::Result<Next<'_>> {
        if !self.fill(16)? {
            return Ok(if self.held().is_empty() {
                Next::End
            } else {
                Next::Damaged("the file ends within a record's header")
            });
        }
        let word = |at| self.endian.u32(self.held(), at).expect("16 bytes");
        let (seconds, fraction, captured, wire_bytes) = (word(0), word(4), word(8), word(12));
        let captured = captured as usize;
        if captured > PACKET_BYTES {
            return Ok(Next::Damaged(
                "a record's header tells of more than 1 MiB of a packet",
            ));
        }
        if !self.fill(16 + captured)? {
            return Ok(Next::Damaged("the file ends within a packet"));
        }
        let from = self.from + 16;
        self.from = from + captured;
        Ok(Next::Record(Record {
            t_ns: i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * pcap.ns_per_unit,
            link_type: pcap.link_type,
            interface: 0,
            wire_bytes,
            data: &self.buffer[from..from + captured],
        }))
    }

    fn next_packet_block(&mut self) -> io::Result<Next<'_>> {
        let Block { kind, body } = match self.next_block()? {
            Ok(block) => block,
            Err(other) => return Ok(other),
        };
        if kind == SIMPLE_PACKET {
            return Ok(Next::Unusable("its block tells no time"));
        }
        let body = &self.buffer[body];
        Ok(match packet(self.endian, kind, body, &self.interfaces) {
            Ok(record) => Next::Record(record),
            Err(what) => Next::Unusable(what),
        })
    }

    /// Reads on to a packet's block; what stands before it is taken in.
    fn next_block(&mut self) -> io::Result<Result<Block, Next<'static>>> {
        let damaged = |what| Ok(Err(Next::Damaged(what)));
        loop {
            if !self.fill(12)? {
                if self.held().is_empty() {
                    return Ok(Err(Next::End));
                }
                return damaged("the file ends within a block's header");
            }
            if Endian::Big.u32(self.held(), 0) == Some(SECTION) && !self.section() {
                return damaged("a section's byte order is none");
            }
            let word = |at| self.endian.u32(self.held(), at).expect("12 bytes");
            let (kind, bytes) = (word(0), word(4) as usize);
            if bytes < 12 || !bytes.is_multiple_of(4) {
                return damaged("a block's length is none");
            }
            if !matches!(
                kind,
                INTERFACE | OLD_PACKET | SIMPLE_PACKET | STATISTICS | ENHANCED_PACKET
            ) {
                if !self.skip(bytes)? {
                    return damaged("the file ends within a block");
                }
                continue;
            }
            if bytes > PACKET_BYTES + 64 {
                return damaged("a block has more than 1 MiB");
            }
            if !self.fill(bytes)? {
                return damaged("the file ends within a block");
            }
            if self.endian.u32(self.held(), bytes - 4) != Some(bytes as u32) {
                return damaged("a block's two lengths differ");
            }
            let body = self.from + 8..self.from + bytes - 4;
            self.from += bytes;
            match kind {
                INTERFACE if self.interfaces.len() == INTERFACES => {
                    return damaged("a section has more than 65,536 interfaces");
                }
                INTERFACE => {
                    let interface = interface(self.endian, &self.buffer[body]);
                    self.interfaces.push(interface);
                }
                STATISTICS => statistics(self.endian, &self.buffer[body], &mut self.interfaces),
                _ => return Ok(Ok(Block { kind, body })),
            }
        }
    }

    /// Begins a section, whose bytes 8 to 12 tell the order of all others. Is it one?
    fn section(&mut self) -> bool {
        self.dropped = self.dropped();
        self.interfaces.clear();
        self.endian = match Endian::Big.u32(self.held(), 8) {
            Some(0x1a2b_3c4d) => Endian::Big,
            Some(0x4d3c_2b1a) => Endian::Little,
            _ => return false,
        };
        true
    }

    /// What is held and not used yet.
    fn held(&self) -> &[u8] {
        &self.buffer[self.from..self.filled]
    }

    /// Makes `bytes` be held. False: the file ends before.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        if self.filled - self.from >= bytes {
            return Ok(true);
        }
        self.buffer.copy_within(self.from..self.filled, 0);
        (self.filled, self.from) = (self.filled - self.from, 0);
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes.next_power_of_two(), 0);
        }
        while self.filled < bytes {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return Ok(false),
                Ok(got) => {
                    self.filled += got;
                    self.bytes += got as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Passes over `bytes`. False: the file ends before.
    fn skip(&mut self, mut bytes: usize) -> io::Result<bool> {
        while bytes > 0 {
            if self.held().is_empty() && !self.fill(1)? {
                return Ok(false);
            }
            let part = bytes.min(self.filled - self.from);
            self.from += part;
            bytes -= part;
        }
        Ok(true)
    }
}

fn interface(endian: Endian, body: &[u8]) -> Interface {
    let mut found = Interface {
        link_type: endian.u16(body, 0).map_or(u32::MAX, u32::from),
        per_sec: 1_000_000,
        offset_s: 0,
        dropped: 0,
    };
    options(endian, body.get(8..).unwrap_or_default(), |code, value| {
        match (code, value) {
            (OPT_TSRESOL, [resolution]) => {
                let exponent = u32::from(resolution & 0x7f);
                let base = if resolution & 0x80 == 0 { 10u64 } else { 2 };
                // Finer than 64 bits can tell: no times that mean anything.
                found.per_sec = base.checked_pow(exponent).unwrap_or(u64::MAX);
            }
            (OPT_TSOFFSET, value) => {
                found.offset_s = endian.u64(value, 0).unwrap_or_default() as i64;
            }
            _ => {}
        }
    });
    found
}

fn statistics(endian: Endian, body: &[u8], interfaces: &mut [Interface]) {
    let number = endian.u32(body, 0).unwrap_or(u32::MAX);
    let Some(interface) = interfaces.get_mut(number as usize) else {
        return;
    };
    options(endian, body.get(12..).unwrap_or_default(), |code, value| {
        if code == OPT_IFDROP {
            interface.dropped = endian.u64(value, 0).unwrap_or(interface.dropped);
        }
    });
}

/// The options of a block, as far as they are whole.
fn options(endian: Endian, mut rest: &[u8], mut each: impl FnMut(u16, &[u8])) {
    while let (Some(code), Some(bytes)) = (endian.u16(rest, 0), endian.u16(rest, 2)) {
        let bytes = usize::from(bytes);
        let Some(value) = rest.get(4..4 + bytes) else {
            return;
        };
        if code == 0 {
            return;
        }
        each(code, value);
        rest = rest
            .get(4 + bytes.next_multiple_of(4)..)
            .unwrap_or_default();
    }
}

fn packet<'a>(
    endian: Endian,
    kind: u32,
    body: &'a [u8],
    interfaces: &[Interface],
) -> Result<Record<'a>, &'static str> {
    const SHORT: &str = "its block ends within its header";
    let word = |at| endian.u32(body, at).ok_or(SHORT);
    let number = if kind == OLD_PACKET {
        endian.u16(body, 0).ok_or(SHORT)?.into()
    } else {
        word(0)?
    };
    let interface = interfaces
        .get(number as usize)
        .ok_or("it is of an interface that the section does not have")?;
    let units = u64::from(word(4)?) << 32 | u64::from(word(8)?);
    Ok(Record {
        t_ns: interface.t_ns(units).ok_or("its time is not of this era")?,
        link_type: interface.link_type,
        interface: number,
        wire_bytes: word(16)?,
        data: body
            .get(20..)
            .and_then(|rest| rest.get(..word(12).ok()? as usize))
            .ok_or("its block is shorter than it")?,
    })
}
