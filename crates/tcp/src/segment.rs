//! A TCP segment on the wire, and the slab that holds those under way.

use knee_kit::ahead;
use knee_kit::odds::unlikely;
use knee_path::packet::Ecn;
pub use knee_path::packet::HEADER_BYTES;

/// What an MSS without options has beside one with timestamps.
pub const TIMESTAMPS_BYTES: u32 = 12;

/// The SYN's options: MSS, SACK permitted + timestamps, window scale.
pub const SYN_HEADER_BYTES: u32 = 20 + 20 + 20;

/// What the window field says at most; that of a SYN is not scaled (RFC 7323, 2.2).
pub const WINDOW_FIELD_MAX: u64 = u16::MAX as u64;

pub const SYN: u8 = 1;
pub const FIN: u8 = 2;
pub const ACK: u8 = 4;
pub const PSH: u8 = 8;
pub const ECE: u8 = 16;
pub const CWR: u8 = 32;
pub const AE: u8 = 64;
/// The field that AccECN makes of the three (RFC 9768).
pub const ACE: u8 = AE | CWR | ECE;

/// A segment, or a train of them: wire packets of one TSO packet, which differ in their place only, those that GRO merged.
/// Sequence numbers do not wrap: the SYN is 0, data begins at 1.
///
/// Thousands are under way at a time, so that one is seldom in the nearest
/// cache: it takes one line of it.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Segment {
    pub seq: u64,
    pub ack: u64,
    /// Receive window in bytes, as the other end will understand it.
    pub window_bytes: u64,
    pub payload_bytes: u32,
    /// PSH and FIN are the last packet's.
    pub flags: u8,
    pub ecn: Ecn,
    /// How many wire packets it stands for...
    pub packets: u16,
    /// ... and the payload of each of them but the last.
    pub gso_bytes: u16,
    /// The AccECN option's size, 0 without one, and its count of bytes
    /// received with a CE mark.
    pub option_bytes: u8,
    pub ce_bytes: u32,
    /// Sender's clock, ms, and the echo of the other's.
    pub tsval_ms: u32,
    pub tsecr_ms: u32,
    pub sack: SackBlocks,
    /// Departure time asked of the qdisc (EDT); not in the future: at once.
    pub departure_ns: u64,
}

const _: () = assert!(size_of::<Segment>() == 64);

impl Segment {
    /// What lies at a handle that is free.
    const NOTHING: Segment = Segment {
        seq: 0,
        ack: 0,
        window_bytes: 0,
        payload_bytes: 0,
        flags: 0,
        ecn: Ecn::NotEct,
        packets: 0,
        gso_bytes: 0,
        option_bytes: 0,
        ce_bytes: 0,
        tsval_ms: 0,
        tsecr_ms: 0,
        sack: SackBlocks(None),
        departure_ns: 0,
    };

    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Does it acknowledge and nothing else?
    #[inline]
    pub fn is_pure_ack(&self) -> bool {
        self.payload_bytes == 0 && self.flags == ACK && self.sack.is_empty()
    }

    /// Sequence space used: payload, and one each for SYN and FIN.
    #[inline]
    pub fn seq_len(&self) -> u64 {
        u64::from(self.payload_bytes) + u64::from(self.flags & SYN) + u64::from(self.flags >> 1 & 1)
    }

    #[inline]
    pub fn end_seq(&self) -> u64 {
        self.seq + self.seq_len()
    }

    /// Payload of its first so many packets.
    #[inline]
    pub fn payload_of(&self, packets: u32) -> u32 {
        match packets < u32::from(self.packets) {
            true => packets * u32::from(self.gso_bytes),
            false => self.payload_bytes,
        }
    }

    /// Takes so many packets off its front and returns them. A segment with SACK blocks is a single packet.
    #[inline(always)]
    pub fn cut(&mut self, packets: u32) -> Segment {
        let payload_bytes = self.payload_of(packets);
        let is_last = packets == u32::from(self.packets);
        let first = Segment {
            payload_bytes,
            packets: packets as u16,
            flags: if is_last {
                self.flags
            } else {
                self.flags & !(PSH | FIN)
            },
            sack: std::mem::take(&mut self.sack),
            ..*self
        };
        self.seq += u64::from(payload_bytes);
        self.payload_bytes -= payload_bytes;
        self.packets -= packets as u16;
        first
    }

    /// Size of its IP packets, bytes.
    #[inline]
    pub fn ip_bytes(&self) -> u32 {
        u32::from(self.packets) * self.head_bytes() + self.payload_bytes
    }

    /// Size of the headers of each of its packets, bytes.
    #[inline]
    pub fn head_bytes(&self) -> u32 {
        let header = if self.has(SYN) {
            SYN_HEADER_BYTES
        } else {
            HEADER_BYTES
        };
        let sack = match self.sack.count() {
            0 => 0,
            n => 4 + 8 * u32::from(n),
        };
        header + sack + u32::from(self.option_bytes)
    }
}

/// SACK blocks in the order sent; three fit beside timestamps (RFC 2018).
///
/// Few segments have any, and those that have none are a cache line.
#[derive(Clone, Debug, Default)]
pub struct SackBlocks(Option<Box<Blocks>>);

#[derive(Clone, Debug, Default)]
struct Blocks {
    /// Bytes relative to the segment's `ack`, wrapping: a DSACK lies below it.
    relative: [(u32, u32); SackBlocks::MAX],
    count: u8,
    dsack: bool,
}

impl Drop for SackBlocks {
    /// Nearly every segment goes without any.
    #[inline(always)]
    fn drop(&mut self) {
        if unlikely(self.0.is_some()) {
            self.0 = None;
        }
    }
}

impl SackBlocks {
    pub const MAX: usize = 3;

    /// Adds a block; what comes behind the third is left out.
    pub fn push(&mut self, ack: u64, (start, end): (u64, u64)) {
        let blocks = self.0.get_or_insert_default();
        if usize::from(blocks.count) < Self::MAX {
            blocks.relative[usize::from(blocks.count)] =
                (start.wrapping_sub(ack) as u32, end.wrapping_sub(ack) as u32);
            blocks.count += 1;
        }
    }

    /// Adds a DSACK (RFC 2883), which comes first.
    pub fn push_dsack(&mut self, ack: u64, block: (u64, u64)) {
        self.push(ack, block);
        self.0.get_or_insert_default().dsack = true;
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub fn count(&self) -> u8 {
        match unlikely(self.0.is_some()) {
            true => self.0.as_ref().map_or(0, |blocks| blocks.count),
            false => 0,
        }
    }

    /// Is the first block a DSACK?
    pub fn has_dsack(&self) -> bool {
        self.0.as_ref().is_some_and(|blocks| blocks.dsack)
    }

    /// The blocks as sequence ranges, given the `ack` of their segment.
    pub fn blocks(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let absolute = move |offset: u32| ack.wrapping_add_signed(i64::from(offset as i32));
        let some = self.0.iter();
        some.flat_map(|blocks| &blocks.relative[..usize::from(blocks.count)])
            .map(move |&(start, end)| (absolute(start), absolute(end)))
    }
}

/// Segments under way, named by a handle that queues carry.
#[derive(Default)]
pub struct Slab {
    entries: Vec<Segment>,
    free: Vec<u32>,
}

impl Slab {
    #[inline]
    pub fn insert(&mut self, segment: Segment) -> u32 {
        let (handle, place) = self.place();
        *place = segment;
        handle
    }

    /// A handle, and the place that it names: a segment is written where it lies.
    #[inline]
    pub fn place(&mut self) -> (u32, &mut Segment) {
        let handle = match self.free.pop() {
            Some(handle) => handle,
            None => self.grow(),
        };
        (handle, &mut self.entries[handle as usize])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> u32 {
        self.entries.push(Segment::default());
        (self.entries.len() - 1) as u32
    }

    #[inline]
    pub fn get(&self, handle: u32) -> &Segment {
        &self.entries[handle as usize]
    }

    /// Asks for what lies at a handle, which will be looked at soon.
    #[inline(always)]
    pub fn fetch(&self, handle: u32) {
        ahead::fetch_at(self.entries.as_ptr().wrapping_add(handle as usize));
    }

    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> &mut Segment {
        &mut self.entries[handle as usize]
    }

    /// Takes the next so many packets of those that a handle stands for; with the last it is free.
    #[inline(always)]
    pub fn take(&mut self, handle: u32, packets: u32) -> Segment {
        let entry = &mut self.entries[handle as usize];
        if packets < u32::from(entry.packets) {
            return entry.cut(packets);
        }
        self.free.push(handle);
        // As a whole: field by field it takes twice as long.
        std::mem::replace(entry, Segment::NOTHING)
    }

    /// The next so many packets get a handle of their own.
    #[inline(always)]
    pub fn cut(&mut self, handle: u32, packets: u32) -> u32 {
        let (first, _) = self.place();
        let places = [handle as usize, first as usize];
        let places = self.entries.get_disjoint_mut(places);
        let [whole, place] = places.expect("a handle that was free is another");
        *place = whole.cut(packets);
        first
    }

    /// The packet left a queue with these ECN bits. All that queues do to them
    /// is to mark, so that an unmarked segment need not be looked at.
    #[inline]
    pub fn carry_mark(&mut self, handle: u32, ecn: Ecn) {
        if unlikely(ecn == Ecn::Ce) {
            self.entries[handle as usize].ecn = Ecn::Ce;
        }
    }

    /// Frees the handle. The segment stays readable until the next insert.
    #[inline]
    pub fn release(&mut self, handle: u32) {
        self.free.push(handle);
    }
}
