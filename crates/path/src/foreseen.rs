//! A link that is never interrupted, before it a queue in which none overtakes another: when a packet leaves is known when
//! it comes, and no event is needed for it.

use std::collections::VecDeque;

use knee_units::Nanos;

use crate::packet::{Ecn, Packet};
use crate::queue::Tail;
use knee_transit::trace::Schedule;

/// What is known of a packet that leaves or has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    pub at_ns: u64,
    /// How long it was in the queue.
    pub waited: Nanos,
    pub bytes: u32,
    pub flow: u32,
    pub marked: bool,
}

/// When a packet leaves that just came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    pub at_ns: u64,
    /// How long it will have been in the queue.
    pub waited: Nanos,
    pub ecn: Ecn,
    /// Which of the link's busy periods it is sent in.
    pub period: u32,
}

/// Queue and link. It does what a [`Link`](crate::bottleneck::Link) does, which takes a step per packet.
pub struct Foreseen {
    schedule: Schedule,
    tail: Tail,
    /// In the order in which they leave; the first of them is on the wire.
    held: VecDeque<Gone>,
    held_bytes: u64,
    /// When the last of them has left.
    free_ns: u64,
    period: u32,
}

impl Foreseen {
    /// Of a link at a constant rate, with nothing in it.
    pub(crate) fn new(schedule: Schedule, tail: Tail) -> Foreseen {
        Foreseen {
            schedule,
            tail,
            held: VecDeque::new(),
            held_bytes: 0,
            free_ns: 0,
            period: 0,
        }
    }

    /// A packet comes; what left until then has been told by [`Self::settle`]. `None`: it does not fit.
    #[inline(always)]
    pub fn enter(&mut self, now_ns: u64, packet: &Packet) -> Option<Departure> {
        let pkts = self.len_pkts() + 1;
        let bytes = self.len_bytes() + u64::from(packet.bytes);
        if !self.tail.limit.holds(pkts, bytes) {
            return None;
        }
        if self.held.is_empty() {
            self.period = self.period.wrapping_add(1);
        }
        let starts_ns = self.free_ns.max(now_ns);
        let waited = Nanos(starts_ns - now_ns);
        let mut ecn = packet.ecn;
        if self.tail.marks(pkts, bytes, waited) && ecn != Ecn::NotEct {
            ecn = Ecn::Ce;
        }
        self.free_ns = self.schedule.end_ns(starts_ns, packet.bytes);
        self.held_bytes += u64::from(packet.bytes);
        self.held.push_back(Gone {
            at_ns: self.free_ns,
            waited,
            bytes: packet.bytes,
            flow: packet.flow,
            marked: ecn == Ecn::Ce,
        });
        Some(Departure {
            at_ns: self.free_ns,
            waited,
            ecn,
            period: self.period,
        })
    }

    /// The next packet that has left at `now_ns` and was not told before.
    #[inline]
    pub fn settle(&mut self, now_ns: u64) -> Option<Gone> {
        let sent = *self.held.front().filter(|held| held.at_ns <= now_ns)?;
        self.held.pop_front();
        self.held_bytes -= u64::from(sent.bytes);
        Some(sent)
    }

    /// Packets waiting, as of the last [`Self::settle`].
    #[inline]
    pub fn len_pkts(&self) -> u32 {
        self.held.len().saturating_sub(1) as u32
    }

    /// Bytes waiting, as of the last [`Self::settle`].
    #[inline]
    pub fn len_bytes(&self) -> u64 {
        let sending = self.held.front();
        self.held_bytes - sending.map_or(0, |held| u64::from(held.bytes))
    }

    /// How long what waits takes to leave.
    pub fn delay(&self, now_ns: u64) -> Nanos {
        self.schedule.delay(now_ns, self.len_bytes())
    }
}
