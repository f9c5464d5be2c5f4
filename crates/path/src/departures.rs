//! A link that is never interrupted, before it a queue in which none overtakes another: each departure is computed on entry,
//! and no event is needed for it.

use knee_kit::head_queue::HeadQueue;
use knee_kit::odds::{likely, unlikely};
use knee_units::Nanos;

use crate::packet::{Ecn, Packet, count_until};
use crate::queue::Tail;
use crate::sink::Departure;
use crate::trace::Schedule;

/// Packets of one size that leave back to back, or have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
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

impl Burst {
    /// Takes the first `pkts` of them out, which are not all.
    #[inline]
    fn take(&mut self, pkts: u32) -> Burst {
        let taken = Burst { pkts, ..*self };
        let later_ns = u64::from(pkts) * self.every_ns;
        self.at_ns += later_ns;
        self.waited = Nanos(self.waited.0 + later_ns);
        self.pkts -= pkts;
        taken
    }

    /// When each leaves, and how long it waited.
    #[inline]
    pub fn each(&self) -> impl Iterator<Item = (u64, Nanos)> + use<> {
        let Burst {
            at_ns,
            every_ns,
            waited,
            ..
        } = *self;
        (0..u64::from(self.pkts))
            .map(move |n| (at_ns + n * every_ns, Nanos(waited.0 + n * every_ns)))
    }
}

/// Queue and link, with what a [`Link`](crate::bottleneck::Link) does in a step per packet.
pub struct Departures {
    schedule: Schedule,
    tail: Tail,
    /// In the order in which they leave; the first packet of the first is on the wire.
    held: HeadQueue<Burst>,
    held_pkts: u32,
    held_bytes: u64,
    /// When the last of them has left.
    free_ns: u64,
    period: u32,
}

impl Departures {
    /// Of a link at a constant rate, with nothing in it.
    pub(crate) fn new(schedule: Schedule, tail: Tail) -> Departures {
        Departures {
            schedule,
            tail,
            held: HeadQueue::default(),
            held_pkts: 0,
            held_bytes: 0,
            free_ns: 0,
            period: 0,
        }
    }

    /// Takes packets like this one, back to back, and returns how the first of them leave that fare alike; or, of those that do
    /// not fit, how many, from the first on. What left until then has been reported by [`Self::settle`].
    ///
    /// # Errors
    /// The first does not fit.
    #[inline(always)]
    pub fn enter(&mut self, now_ns: u64, packet: &Packet, most: u32) -> Result<Departure, u32> {
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
                (None, pkts) => return Err(pkts),
                (Some(ecn), pkts) => (ecn, pkts),
            },
        };
        if self.held_pkts == 0 {
            self.period = self.period.wrapping_add(1);
        }
        self.free_ns = starts_ns + u64::from(alike) * every_ns;
        self.held_pkts += alike;
        self.held_bytes += u64::from(alike) * u64::from(packet.bytes);
        self.held.push(Burst {
            at_ns: ends_ns,
            every_ns,
            pkts: alike,
            waited,
            bytes: packet.bytes,
            flow: packet.flow,
            marked: ecn == Ecn::Ce,
        });
        Ok(Departure {
            at_ns: ends_ns,
            every_ns,
            pkts: alike,
            waited,
            ecn,
            period: Some(self.period),
        })
    }

    /// Reports the packets that have left at `now_ns` and were not reported before.
    #[inline(always)]
    pub fn settle(&mut self, now_ns: u64, mut report: impl FnMut(&Burst)) {
        while let Some(front) = self.held.first_mut()
            && front.at_ns <= now_ns
        {
            let left = count_until(front.at_ns, front.every_ns, front.pkts, now_ns);
            let burst = match left == front.pkts {
                true => {
                    let burst = *front;
                    self.held.remove_first();
                    burst
                }
                false => front.take(left),
            };
            self.held_pkts -= burst.pkts;
            self.held_bytes -= u64::from(burst.pkts) * u64::from(burst.bytes);
            report(&burst);
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
