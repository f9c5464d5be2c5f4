//! The retransmission queue: every segment sent and not cumulatively acked, in
//! sequence order, threaded a second time in order of transmission for RACK.

use std::collections::VecDeque;

/// Selectively acked.
pub const SACKED: u8 = 1;
/// Retransmitted, and that retransmission is still believed in flight.
pub const RETRANS: u8 = 2;
/// Marked lost.
pub const LOST: u8 = 4;
/// Retransmitted at some time.
pub const EVER_RETRANS: u8 = 8;
/// Sent while the application left the window unfilled.
pub const APP_LIMITED: u8 = 16;
/// Last segment of an skb: a packet that the stack handed down (a TSO packet), or what SACKs made of several.
pub const SKB_END: u8 = 32;
/// Carries FIN.
pub const FIN_SEG: u8 = 64;
/// Carries PSH.
pub const PSH_SEG: u8 = 128;

const NONE: u32 = u32::MAX;

/// Where the delivery process stood when a packet was sent
/// (draft-ietf-ccwg-bbr, delivery rate sampling). All segments of a packet
/// share it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tx {
    pub first_ns: u64,
    /// 0: already accounted.
    pub delivered_ns: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    /// `tp.lost`, and packets in flight with this one.
    pub lost: u32,
    pub in_flight: u32,
}

/// A segment and the facts recorded when it was (last) sent.
#[derive(Clone, Debug)]
pub struct Seg {
    pub seq: u64,
    /// Departure time of the last transmission.
    pub sent_ns: u64,
    pub tx: Tx,
    prev: u32,
    next: u32,
    pub payload_bytes: u16,
    pub flags: u8,
    in_list: bool,
}

impl Seg {
    /// A segment not sent yet.
    pub fn new(seq: u64, payload_bytes: u32, flags: u8) -> Seg {
        Seg {
            seq,
            sent_ns: 0,
            tx: Tx::default(),
            prev: NONE,
            next: NONE,
            payload_bytes: payload_bytes as u16,
            flags,
            in_list: false,
        }
    }

    /// It goes out, for the first time or again.
    #[inline]
    pub fn record_sent(&mut self, sent_ns: u64, tx: Tx, app_limited: bool) {
        self.sent_ns = sent_ns;
        self.tx = tx;
        match app_limited {
            true => self.flags |= APP_LIMITED,
            false => self.flags &= !APP_LIMITED,
        }
    }

    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// One past the last sequence number: FIN counts one.
    #[inline]
    pub fn end_seq(&self) -> u64 {
        self.seq + u64::from(self.payload_bytes) + u64::from(self.flags & FIN_SEG != 0)
    }
}

/// Segments named by an id that counts up; ids of one connection stay valid
/// while the segment is queued.
#[derive(Clone, Debug)]
pub struct RtxQueue {
    segs: VecDeque<Seg>,
    /// Id of the front.
    base: u32,
    /// Oldest and newest transmission among those neither SACKed nor lost.
    head: u32,
    tail: u32,
}

impl Default for RtxQueue {
    fn default() -> RtxQueue {
        RtxQueue {
            segs: VecDeque::new(),
            base: 0,
            head: NONE,
            tail: NONE,
        }
    }
}

impl RtxQueue {
    pub fn is_empty(&self) -> bool {
        self.segs.is_empty()
    }

    pub fn front(&self) -> Option<&Seg> {
        self.segs.front()
    }

    pub fn back_id(&self) -> Option<u32> {
        (!self.segs.is_empty()).then(|| self.id(self.segs.len() - 1))
    }

    pub fn front_id(&self) -> u32 {
        self.base
    }

    #[inline]
    fn id(&self, index: usize) -> u32 {
        self.base.wrapping_add(index as u32)
    }

    #[inline]
    fn index(&self, id: u32) -> usize {
        id.wrapping_sub(self.base) as usize
    }

    pub fn contains(&self, id: u32) -> bool {
        self.index(id) < self.segs.len()
    }

    #[inline]
    pub fn get(&self, id: u32) -> &Seg {
        &self.segs[self.index(id)]
    }

    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut Seg {
        let index = self.index(id);
        &mut self.segs[index]
    }

    /// Ids from the oldest sequence number on.
    pub fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        let (base, len) = (self.base, self.segs.len() as u32);
        (0..len).map(move |i| base.wrapping_add(i))
    }

    /// Appends a segment just sent for the first time.
    #[inline]
    pub fn push(&mut self, seg: Seg) -> u32 {
        let id = self.id(self.segs.len());
        self.segs.push_back(seg);
        self.link(id);
        id
    }

    /// Removes the front.
    #[inline]
    pub fn pop(&mut self) {
        self.unlink(self.base);
        self.segs.pop_front();
        self.base = self.base.wrapping_add(1);
        if self.segs.is_empty() && self.segs.capacity() > 8 {
            // A flow gone idle gives its window's memory back.
            self.segs = VecDeque::new();
        }
    }

    /// Id of the segment that begins at `seq` or holds it.
    pub fn find(&self, seq: u64) -> Option<u32> {
        let front = self.segs.front()?;
        if seq < front.seq {
            return None;
        }
        // Nearly all segments are full, so a division finds it at once.
        let guess = (seq - front.seq) / u64::from(front.payload_bytes.max(1));
        if let Some(seg) = self.segs.get(guess as usize)
            && seg.seq <= seq
            && seq < seg.end_seq()
        {
            return Some(self.id(guess as usize));
        }
        let index = self.segs.partition_point(|seg| seg.end_seq() <= seq);
        (index < self.segs.len()).then(|| self.id(index))
    }

    /// Moves the segment to the end of the transmission order: it was just sent.
    #[inline]
    pub fn touch(&mut self, id: u32) {
        self.unlink(id);
        self.link(id);
    }

    #[inline]
    fn link(&mut self, id: u32) {
        let tail = self.tail;
        let seg = self.get_mut(id);
        seg.prev = tail;
        seg.next = NONE;
        seg.in_list = true;
        match tail {
            NONE => self.head = id,
            tail => self.get_mut(tail).next = id,
        }
        self.tail = id;
    }

    /// Takes the segment out of the transmission order: acked, SACKed or lost.
    #[inline]
    pub fn unlink(&mut self, id: u32) {
        let seg = self.get_mut(id);
        if !seg.in_list {
            return;
        }
        seg.in_list = false;
        let (prev, next) = (seg.prev, seg.next);
        match prev {
            NONE => self.head = next,
            prev => self.get_mut(prev).next = next,
        }
        match next {
            NONE => self.tail = prev,
            next => self.get_mut(next).prev = prev,
        }
    }

    /// Least recently sent of those outstanding.
    pub fn oldest_sent(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// The one sent after it.
    pub fn sent_next(&self, id: u32) -> Option<u32> {
        let next = self.get(id).next;
        (next != NONE).then_some(next)
    }
}
