//! What a path and its engine say to each other: when something is due, which packets pass, and who hears what became of them.

use knee_units::Nanos;

use crate::packet::{Ecn, Packet};

/// Hears what happens to packets on their way.
pub trait Sink {
    /// What the engine notes of a packet when it leaves the bottleneck, and gets back when it arrives.
    type Note: Copy;

    /// Reports a packet that the path's own loss took at the bottleneck's entry, or an impairment behind it.
    fn lost(&mut self, packet: &Packet);
    /// Reports a packet that the policer or the queue dropped.
    fn dropped(&mut self, packet: &Packet);
    /// Makes the first `pkts` packets of a train a train of their own; returns its handle.
    fn cut(&mut self, handle: u32, pkts: u32) -> u32;
    /// Reports that packets leave the bottleneck, now or at a later time that is known already.
    fn left(&mut self, packet: &Packet, departure: &Departure) -> Self::Note;
    /// Reports packets of a flow that have left their last bottleneck: when each did, and how long it was in queues. Packets
    /// whose departure was computed on entry are reported when others come, and by [`Way::settle`](crate::way::Way::settle).
    fn waited(&mut self, flow: u32, waits: impl Iterator<Item = (u64, Nanos)>);
    /// Copies a packet, which takes no time of the bottleneck; returns another handle for the same content.
    fn copy(&mut self, packet: &Packet, note: Self::Note) -> (u32, Self::Note);
    /// Announces packets that arrive next, or after a few others. A sink may get ready for them; no result depends on it.
    #[inline]
    fn expects(&mut self, _passing: &Passing<Self::Note>, _is_next: bool) {}
    /// Hands packets of a far host's NIC to its stack, those of one flow in order; or one packet that has reached the end of a
    /// pipe that is not the flow's last.
    fn arrived(&mut self, at_ns: u64, packets: &[Passing<Self::Note>]);
}

/// When something is due, and since when that has been so: of what is due at one instant, what was put off first comes first.
/// Both are one integer, which compares without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct When(u128);

impl When {
    /// Later than everything.
    pub const NEVER: When = When(u128::MAX);

    #[inline]
    pub fn new(at_ns: u64, since_ns: u64) -> When {
        When(u128::from(at_ns) << 64 | u128::from(since_ns))
    }

    /// Before all else that is due at that time.
    #[inline]
    pub fn first_at(at_ns: u64) -> When {
        When::new(at_ns, 0)
    }

    /// After all else that is due at that time.
    #[inline]
    pub fn last_at(at_ns: u64) -> When {
        When::new(at_ns, at_ns)
    }

    /// The time; `u64::MAX`: never.
    #[inline]
    pub fn at_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

/// How packets leave a bottleneck that fare alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When the first does, and how long after each the next.
    pub at_ns: u64,
    pub every_ns: u64,
    pub pkts: u32,
    /// How long the first was in the queue.
    pub waited: Nanos,
    pub ecn: Ecn,
    /// Which of the link's busy periods they are sent in; `None`: the link is unlimited, or not the direction's last.
    pub period: Option<u32>,
}

impl Departure {
    /// Are those the packets that follow, in all they share?
    #[inline]
    pub(crate) fn goes_on(&self, next: &Departure) -> bool {
        let next_ns = self.at_ns + u64::from(self.pkts) * self.every_ns;
        next.at_ns == next_ns
            && (next.every_ns, next.ecn, next.period) == (self.every_ns, self.ecn, self.period)
    }
}

/// Packets between the bottleneck and the far host.
#[derive(Clone, Copy, Debug)]
pub struct Passing<N> {
    pub flow: u32,
    pub handle: u32,
    /// How many they are: the next `pkts` of those that the handle stands for.
    pub pkts: u32,
    pub note: N,
}
