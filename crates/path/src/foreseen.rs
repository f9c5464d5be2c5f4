//! A link that is never interrupted, before it a queue in which none overtakes another: when a packet leaves is known when
//! it comes, and no event is needed for it.

use knee_kit::head_queue::HeadQueue;
use knee_kit::odds::{likely, unlikely};
use knee_units::Nanos;

use crate::packet::{Ecn, Packet, count_until};
use crate::queue::Tail;
use crate::trace::Schedule;

/// Packets of one size that leave one behind the other, or have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// When the first leaves, and how long after each the next does.
    pub at_ns: u64,
    pub every_ns: u64,
    pub pkts: u32,
    /// How long the first was in the queue; each was so much longer as it left later.
    pub waited: Nanos,
    /// Of each.
    pub bytes: u32,
    pub flow: u32,
    pub marked: bool,
}

impl Gone {
    /// Takes the first `pkts` of them out, which are not all.
    #[inline]
    fn take(&mut self, pkts: u32) -> Gone {
        let taken = Gone { pkts, ..*self };
        let later_ns = u64::from(pkts) * self.every_ns;
        self.at_ns += later_ns;
        self.waited = Nanos(self.waited.0 + later_ns);
        self.pkts -= pkts;
        taken
    }

    /// When each leaves, and how long it waited.
    #[inline]
    pub fn each(&self) -> impl Iterator<Item = (u64, Nanos)> + use<> {
        let Gone {
            at_ns,
            every_ns,
            waited,
            ..
        } = *self;
        (0..u64::from(self.pkts))
            .map(move |n| (at_ns + n * every_ns, Nanos(waited.0 + n * every_ns)))
    }
}

/// When packets leave that just came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When the first does, and how long after each the next.
    pub at_ns: u64,
    pub every_ns: u64,
    /// How long the first will have been in the queue.
    pub waited: Nanos,
    pub ecn: Ecn,
    /// Which of the link's busy periods they are sent in.
    pub period: u32,
}

/// Queue and link. It does what a [`Link`](crate::bottleneck::Link) does, which takes a step per packet.
pub struct Foreseen {
    schedule: Schedule,
    tail: Tail,
    /// In the order in which they leave; the first packet of the first is on the wire.
    held: HeadQueue<Gone>,
    held_pkts: u32,
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
            held: HeadQueue::default(),
            held_pkts: 0,
            held_bytes: 0,
            free_ns: 0,
            period: 0,
        }
    }

    /// Packets like this one come, one behind the other; what left until then has been told by [`Self::settle`]. Says of how
    /// many of them, from the first on, the fate is one, and when they leave; `None`: they do not fit.
    #[inline(always)]
    pub fn enter(&mut self, now_ns: u64, packet: &Packet, most: u32) -> (Option<Departure>, u32) {
        let starts_ns = self.free_ns.max(now_ns);
        let waited = Nanos(starts_ns - now_ns);
        let ends_ns = self.schedule.end_ns(starts_ns, packet.bytes);
        let every_ns = ends_ns - starts_ns;
        let (pkts, bytes) = (self.len_pkts(), self.len_bytes());
        // What is on the wire waits no more.
        let on_wire = u32::from(self.held_pkts == 0);
        let (tail, packet_bytes, packet_ecn) = (&self.tail, packet.bytes, packet.ecn);
        // By value, so that it costs no memory where the last is as it came.
        let fate = move |place: u32| {
            let wait = place + 1 - on_wire.min(place);
            let pkts = pkts + wait;
            let bytes = bytes + u64::from(wait) * u64::from(packet_bytes);
            let waits = Nanos(waited.0 + u64::from(place) * every_ns);
            (tail.limit.holds(pkts, bytes)).then(|| {
                match unlikely(packet_ecn != Ecn::NotEct) && tail.marks(pkts, bytes, waits) {
                    true => Ecn::Ce,
                    false => packet_ecn,
                }
            })
        };
        // No later one fits where an earlier one does not, and none is spared a mark.
        let (ecn, alike) = match likely(fate(most - 1) == Some(packet_ecn)) {
            true => (packet_ecn, most),
            false => match alike(most, fate) {
                (None, pkts) => return (None, pkts),
                (Some(ecn), pkts) => (ecn, pkts),
            },
        };
        if self.held_pkts == 0 {
            self.period = self.period.wrapping_add(1);
        }
        self.free_ns = starts_ns + u64::from(alike) * every_ns;
        self.held_pkts += alike;
        self.held_bytes += u64::from(alike) * u64::from(packet.bytes);
        self.held.push(Gone {
            at_ns: ends_ns,
            every_ns,
            pkts: alike,
            waited,
            bytes: packet.bytes,
            flow: packet.flow,
            marked: ecn == Ecn::Ce,
        });
        let departure = Departure {
            at_ns: ends_ns,
            every_ns,
            waited,
            ecn,
            period: self.period,
        };
        (Some(departure), alike)
    }

    /// Tells of the packets that have left at `now_ns` and were not told of before.
    #[inline(always)]
    pub fn settle(&mut self, now_ns: u64, mut told: impl FnMut(&Gone)) {
        while let Some(front) = self.held.first_mut()
            && front.at_ns <= now_ns
        {
            let left = count_until(front.at_ns, front.every_ns, front.pkts, now_ns);
            let gone = match left == front.pkts {
                true => {
                    let gone = *front;
                    self.held.remove_first();
                    gone
                }
                false => front.take(left),
            };
            self.held_pkts -= gone.pkts;
            self.held_bytes -= u64::from(gone.pkts) * u64::from(gone.bytes);
            told(&gone);
        }
    }

    /// Packets waiting, as of the last [`Self::settle`].
    #[inline]
    pub fn len_pkts(&self) -> u32 {
        self.held_pkts.saturating_sub(1)
    }

    /// Bytes waiting, as of the last [`Self::settle`].
    #[inline]
    pub fn len_bytes(&self) -> u64 {
        let sending = self.held.first();
        self.held_bytes - sending.map_or(0, |held| u64::from(held.bytes))
    }

    pub(crate) fn schedule(&self) -> &Schedule {
        &self.schedule
    }
}

/// What becomes of the first of `most` packets, and how many, from the first on, fare as it does; of what does not fit, all.
#[inline(never)]
fn alike(most: u32, fate: impl Fn(u32) -> Option<Ecn>) -> (Option<Ecn>, u32) {
    let first = fate(0);
    match first.is_none() || fate(most - 1) == first {
        true => (first, most),
        false => {
            let other = (1..most).find(|&place| fate(place) != first);
            (first, other.unwrap_or(most))
        }
    }
}
