//! The retransmission queue: what was sent and is not cumulatively acked, in sequence order, threaded a second time in order
//! of transmission for RACK. As in Linux it is made of skbs, which are cut where what is known of their segments differs.

use std::cell::Cell;
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
    pub first_us: u64,
    /// 0: already accounted.
    pub delivered_us: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    /// `tp.lost`, and packets in flight with this one.
    pub lost: u32,
    pub in_flight: u32,
}

/// Segments of one skb and the facts recorded when they were (last) sent, which are the same of all: the skb, or what ACKs,
/// SACKs, losses and retransmissions have cut of it.
#[derive(Clone, Debug)]
pub struct Seg {
    pub seq: u64,
    /// Departure time of the last transmission.
    pub sent_ns: u64,
    /// The same in whole us. Each ACK asks for it several times.
    pub sent_us: u64,
    pub tx: Tx,
    /// Of the last segment; that of those before count down. It stays while ACKs take the first ones, so the order of
    /// transmission calls the skb by it.
    name: u32,
    /// Neighbours in the order of transmission, by their names.
    prev: u32,
    next: u32,
    pub payload_bytes: u32,
    segs: u16,
    /// Payload of each segment but the last.
    mss_bytes: u16,
    /// [`SKB_END`], [`FIN_SEG`] and [`PSH_SEG`] are the last segment's.
    pub flags: u8,
    in_list: bool,
}

/// What an skb is without its first segments; 0 segments: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rest {
    payload_bytes: u32,
    segs: u16,
    flags: u8,
}

impl Seg {
    /// As many segments as the payload takes, not sent yet.
    pub fn new(seq: u64, payload_bytes: u32, segs: u32, mss_bytes: u32, flags: u8) -> Seg {
        debug_assert_eq!(segs, payload_bytes.div_ceil(mss_bytes).max(1));
        Seg {
            seq,
            sent_ns: 0,
            sent_us: 0,
            tx: Tx::default(),
            name: NONE,
            prev: NONE,
            next: NONE,
            payload_bytes,
            segs: segs as u16,
            mss_bytes: mss_bytes as u16,
            flags,
            in_list: false,
        }
    }

    /// Of its first segment.
    #[inline]
    fn id(&self) -> u32 {
        self.name.wrapping_sub(self.segs() - 1)
    }

    #[inline]
    pub fn holds(&self, id: u32) -> bool {
        self.name.wrapping_sub(id) < self.segs()
    }

    #[inline]
    pub fn mss_bytes(&self) -> u16 {
        self.mss_bytes
    }

    #[inline]
    pub fn segs(&self) -> u32 {
        self.segs.into()
    }

    /// How many of its segments lie whole below a sequence number, which is above its start and below its end.
    #[inline]
    fn segs_below(&self, seq: u64) -> u32 {
        (seq - self.seq) as u32 / u32::from(self.mss_bytes)
    }

    /// Was it marked as lost, and not sent again since?
    #[inline]
    pub fn is_to_be_resent(&self) -> bool {
        self.has(LOST) && !self.has(RETRANS)
    }

    /// Was it neither SACKed nor marked as lost, or sent again since?
    #[inline]
    pub fn can_be_lost(&self) -> bool {
        !self.has(SACKED) && !self.is_to_be_resent()
    }

    /// The end of its first segment.
    #[inline]
    pub fn first_end_seq(&self) -> u64 {
        match self.segs {
            1 => self.end_seq(),
            _ => self.seq + u64::from(self.mss_bytes),
        }
    }

    /// Its first so many segments, which are fewer than all; the others are left.
    #[inline]
    fn cut(&mut self, segs: u32) -> Seg {
        let rest = self.shorten(segs);
        let mut first = self.clone();
        first.name = self.name.wrapping_sub(rest.segs.into());
        self.go_on(rest);
        first
    }

    /// Only its first so many segments are left; tells what is to be said of the others.
    #[inline]
    fn shorten(&mut self, segs: u32) -> Rest {
        let payload_bytes = segs * u32::from(self.mss_bytes);
        let rest = Rest {
            payload_bytes: self.payload_bytes - payload_bytes,
            segs: self.segs - segs as u16,
            flags: self.flags,
        };
        self.payload_bytes = payload_bytes;
        self.segs = segs as u16;
        self.flags &= !(SKB_END | FIN_SEG | PSH_SEG);
        rest
    }

    /// It becomes the others.
    #[inline]
    fn go_on(&mut self, rest: Rest) {
        self.seq += u64::from(self.payload_bytes);
        self.payload_bytes = rest.payload_bytes;
        self.segs = rest.segs;
        self.flags = rest.flags;
    }

    /// Takes up the segments that follow, if all that is known of them is true of its own, too: once SACKed, when they were sent
    /// no longer counts.
    fn absorb(&mut self, next: &Seg) -> bool {
        let known = |seg: &Seg| seg.flags & (SACKED | RETRANS | LOST | EVER_RETRANS | FIN_SEG);
        let is_alike = known(self) == SACKED
            && known(next) == SACKED
            && self.mss_bytes == next.mss_bytes
            && self.payload_bytes == self.segs() * u32::from(self.mss_bytes);
        let Some(segs) = self.segs.checked_add(next.segs).filter(|_| is_alike) else {
            return false;
        };
        (self.name, self.segs) = (next.name, segs);
        self.payload_bytes += next.payload_bytes;
        true
    }

    /// They go out, for the first time or again.
    #[inline]
    pub fn record_sent(&mut self, sent_ns: u64, tx: Tx, app_limited: bool) {
        self.sent_ns = sent_ns;
        self.sent_us = sent_ns / 1_000;
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

/// What is outstanding. Each segment has an id that counts up, and keeps it while it is queued.
#[derive(Clone, Debug)]
pub struct RtxQueue {
    /// In order of sequence.
    skbs: VecDeque<Seg>,
    /// Id of the segment that comes next.
    next_id: u32,
    /// Oldest and newest transmission among those neither SACKed nor lost.
    head: u32,
    tail: u32,
    /// Where a segment was found last: the next is mostly the same one or stands beside it.
    found: Cell<usize>,
}

impl Default for RtxQueue {
    fn default() -> RtxQueue {
        RtxQueue {
            skbs: VecDeque::new(),
            next_id: 0,
            head: NONE,
            tail: NONE,
            found: Cell::new(0),
        }
    }
}

impl RtxQueue {
    pub fn is_empty(&self) -> bool {
        self.skbs.is_empty()
    }
    #[inline]
    pub fn front(&self) -> Option<&Seg> {
        self.skbs.front()
    }
    /// The last segment.
    pub fn back_id(&self) -> Option<u32> {
        (!self.skbs.is_empty()).then(|| self.next_id.wrapping_sub(1))
    }
    pub fn front_id(&self) -> u32 {
        self.front().map_or(self.next_id, Seg::id)
    }

    /// The place of what holds this segment.
    #[inline]
    fn place(&self, id: u32) -> usize {
        if self.skbs[0].holds(id) {
            return 0;
        }
        let last = self.skbs.len() - 1;
        if self.skbs[last].holds(id) {
            return last;
        }
        self.place_within(id)
    }

    #[inline(never)]
    fn place_within(&self, id: u32) -> usize {
        let found = self.found.get();
        for near in [found, found + 1, found.wrapping_sub(1), 1] {
            if self.skbs.get(near).is_some_and(|skb| skb.holds(id)) {
                self.found.set(near);
                return near;
            }
        }
        let front_id = self.skbs[0].id();
        let offset = id.wrapping_sub(front_id);
        let before = |skb: &Seg| skb.id().wrapping_sub(front_id) <= offset;
        let found = self.skbs.partition_point(before) - 1;
        self.found.set(found);
        found
    }

    #[inline]
    pub fn get(&self, id: u32) -> &Seg {
        &self.skbs[self.place(id)]
    }
    #[inline]
    pub fn get_mut(&mut self, id: u32) -> &mut Seg {
        let place = self.place(id);
        &mut self.skbs[place]
    }

    /// Ids of the first segments of what is queued, from the oldest sequence number on, as far as a condition holds.
    pub fn ids(&self, which: impl Fn(&Seg) -> bool) -> Vec<u32> {
        (self.skbs.iter().filter(|skb| which(skb)).map(Seg::id)).collect()
    }

    /// Appends what was just sent for the first time.
    #[inline(always)]
    pub fn push(&mut self, skb: Seg) {
        let (id, tail) = (self.next_id, self.tail);
        self.next_id = id.wrapping_add(skb.segs());
        let name = self.next_id.wrapping_sub(1);
        match self.skbs.back_mut() {
            _ if tail == NONE => self.head = name,
            // What was sent last is mostly what stands last.
            Some(back) if tail == id.wrapping_sub(1) => back.next = name,
            _ => self.get_mut(tail).next = name,
        }
        self.tail = name;
        self.skbs.push_back(Seg {
            name,
            prev: tail,
            next: NONE,
            in_list: true,
            ..skb
        });
    }

    /// The front, as far as it lies whole below `snd_una`, until [`take_front`](RtxQueue::take_front) takes that off. Also: may
    /// the next lie below, too?
    #[inline(always)]
    pub fn front_below(&mut self, snd_una: u64) -> Option<(&Seg, Rest, bool)> {
        let front = self.skbs.front_mut()?;
        let mut rest = Rest::default();
        let end_seq = front.end_seq();
        if end_seq > snd_una {
            if snd_una <= front.seq || front.first_end_seq() > snd_una {
                return None;
            }
            rest = front.shorten(front.segs_below(snd_una));
        }
        // Mostly an ACK ends where an skb does.
        Some((front, rest, end_seq < snd_una))
    }

    /// Takes off what [`front_below`](RtxQueue::front_below) told of.
    #[inline(always)]
    pub fn take_front(&mut self, rest: Rest) {
        if rest.segs > 0 {
            if let Some(front) = self.skbs.front_mut() {
                front.go_on(rest);
            }
            return;
        }
        let Some(gone) = self.skbs.pop_front() else {
            return;
        };
        if gone.in_list {
            match self.skbs.front_mut() {
                // What was sent first mostly stands first, and what was sent next stands next.
                Some(front) if gone.prev == NONE && front.name == gone.next => {
                    front.prev = NONE;
                    self.head = gone.next;
                }
                _ => self.join(gone.prev, gone.next),
            }
        }
        if self.skbs.is_empty() {
            // A flow gone idle gives its window's memory back.
            self.skbs = VecDeque::new();
        }
    }

    /// What stood between them has left the order of transmission.
    #[inline(never)]
    fn join(&mut self, prev: u32, next: u32) {
        match prev {
            NONE => self.head = next,
            prev => self.get_mut(prev).next = next,
        }
        match next {
            NONE => self.tail = prev,
            next => self.get_mut(next).prev = prev,
        }
    }

    /// Id of the segment that begins at `seq` or holds it.
    pub fn find(&self, seq: u64) -> Option<u32> {
        if seq < self.front()?.seq {
            return None;
        }
        let place = self.skbs.partition_point(|skb| skb.end_seq() <= seq);
        let skb = self.skbs.get(place)?;
        // A FIN is a part of the last segment.
        let segs = skb.segs_below(seq).min(skb.segs() - 1);
        Some(skb.id().wrapping_add(segs))
    }

    /// Cuts so that a segment and no more than so many that follow it stand for themselves, as far as they are of one skb;
    /// returns how many they are.
    pub fn isolate(&mut self, id: u32, most: u32) -> u32 {
        let place = self.part_before(id);
        let segs = self.skbs[place].segs();
        if most < segs {
            self.split(place, most);
        }
        segs.min(most)
    }

    /// Cuts so that an skb begins with this segment; returns its place.
    fn part_before(&mut self, id: u32) -> usize {
        let place = self.place(id);
        match id.wrapping_sub(self.skbs[place].id()) {
            0 => place,
            before => {
                self.split(place, before);
                place + 1
            }
        }
    }

    /// Tags a segment and no more than so many that follow it, as far as they are of one skb, as SACKed, and takes them out of
    /// the order of transmission; returns how many they are. The beginning of an skb joins what stands before, if that is
    /// SACKed too: a window holds thousands of skbs, and a further one would have to move them.
    pub fn sack(&mut self, id: u32, most: u32, tag: impl FnOnce(&mut Seg)) -> u32 {
        let place = self.part_before(id);
        let skb = &mut self.skbs[place];
        let segs = skb.segs();
        if most >= segs {
            tag(skb);
            self.unlink(id);
            return segs;
        }
        let mut first = skb.cut(most);
        first.in_list = false;
        tag(&mut first);
        if place == 0 || !self.skbs[place - 1].absorb(&first) {
            self.skbs.insert(place, first);
        }
        most
    }

    /// Makes two of one: they were sent one behind the other.
    fn split(&mut self, place: usize, segs: u32) {
        let skb = &mut self.skbs[place];
        let mut first = skb.cut(segs);
        if first.in_list {
            // The second keeps the name.
            first.next = skb.name;
            skb.prev = first.name;
            match first.prev {
                NONE => self.head = first.name,
                prev => self.get_mut(prev).next = first.name,
            }
        }
        self.skbs.insert(place, first);
    }

    /// Moves it to the end of the transmission order: it was just sent.
    #[inline]
    pub fn touch(&mut self, id: u32) {
        self.unlink(id);
        self.link(id);
    }

    #[inline]
    fn link(&mut self, id: u32) {
        let tail = self.tail;
        let skb = self.get_mut(id);
        skb.prev = tail;
        skb.next = NONE;
        skb.in_list = true;
        let name = skb.name;
        match tail {
            NONE => self.head = name,
            tail => self.get_mut(tail).next = name,
        }
        self.tail = name;
    }

    /// Takes it out of the transmission order: acked, SACKed or lost.
    #[inline]
    pub fn unlink(&mut self, id: u32) {
        let skb = self.get_mut(id);
        if !skb.in_list {
            return;
        }
        skb.in_list = false;
        let (prev, next) = (skb.prev, skb.next);
        self.join(prev, next);
    }

    /// A segment of the skb that was sent longest ago of those outstanding.
    pub fn oldest_sent(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// One of the skb sent after it.
    pub fn sent_next(&self, id: u32) -> Option<u32> {
        let next = self.get(id).next;
        (next != NONE).then_some(next)
    }

    /// Of the segments from `first` on, below `end`, and the one before them: each of those that stand for themselves, with
    /// the flags of what follows it.
    pub fn each_pair(&mut self, first: u32, end: u32, mut change: impl FnMut(&mut Seg, u8)) {
        let segs = end.wrapping_sub(first) as i32;
        let mut place = self.place(first).saturating_sub(1);
        while let Some(after) = self.skbs.get(place + 1).map(|skb| skb.flags) {
            let skb = &mut self.skbs[place];
            if (skb.id().wrapping_sub(first) as i32) >= segs {
                return;
            }
            change(skb, after);
            place += 1;
        }
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Seg> {
        self.skbs.iter_mut()
    }
}
