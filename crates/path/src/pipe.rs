//! One hop of a path in one direction, without a clock: bottleneck, impairments, delay and, where the hop is a flow's last,
//! the far host's interrupt moderation. It is told the time, and tells when something happens next.

use knee_kit::odds::unlikely;
use knee_units::Nanos;

use crate::Transit;
use crate::behind::Behind;
use crate::bottleneck::{Bottleneck, Entry};
use crate::foreseen::Departure;
use crate::packet::{Ecn, Packet, Train};

/// What happens to packets on their way.
pub trait Sink {
    /// What the engine notes of a packet when it leaves the bottleneck, and gets back when it arrives.
    type Note: Copy;

    /// The path's own loss took it, before the bottleneck or behind it.
    fn lost(&mut self, packet: &Packet);
    /// The policer or the queue dropped it.
    fn dropped(&mut self, packet: &Packet);
    /// Makes the first `pkts` packets of a train a train of their own; returns its handle.
    fn cut(&mut self, handle: u32, pkts: u32) -> u32;
    /// Its last bit leaves the bottleneck, now or at a later time that is foreseen; of a train, the first packet's.
    fn left(&mut self, packet: &Packet, leaving: &Leaving) -> Self::Note;
    /// Packets of the flow have left their last bottleneck: when each did, and how long it was in queues. Those whose
    /// departure was foreseen are told of when others come, and by [`Way::settle`](crate::way::Way::settle).
    fn waited(&mut self, flow: u32, waits: impl Iterator<Item = (u64, Nanos)>);
    /// The path made a copy of it, which takes no time of the bottleneck: another handle for the same content.
    fn copy(&mut self, packet: &Packet, note: Self::Note) -> (u32, Self::Note);
    /// These packets arrive next, or soon, after a few others. A sink may get ready for them; no result depends on it.
    #[inline]
    fn expects(&mut self, _passing: &Passing<Self::Note>, _is_next: bool) {}
    /// A far host's NIC hands these to its stack, those of one flow in order; or one reaches the end of a pipe that is not
    /// the flow's last.
    fn arrived(&mut self, at_ns: u64, packets: &[Passing<Self::Note>]);
}

/// When something is due, and since when that is so: of what is due at one instant, what was put off first comes first.
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

    /// `u64::MAX`: never.
    #[inline]
    pub fn at_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

/// How a packet left a bottleneck.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    pub at_ns: u64,
    /// How long it was in the queue.
    pub waited: Nanos,
    /// Which of the link's busy periods it was sent in; `None`: the link is unlimited, or not the direction's last.
    pub period: Option<u32>,
}

/// Packets between the bottleneck and the far host.
#[derive(Clone, Copy, Debug)]
pub struct Passing<N> {
    pub flow: u32,
    pub handle: u32,
    /// How many they are: the next so many that the handle stands for.
    pub pkts: u32,
    pub note: N,
}

/// Packets of a train whose fates are alike: how they leave the bottleneck.
#[derive(Clone, Copy)]
struct Together {
    /// When the first does, and how long after each the next.
    at_ns: u64,
    every_ns: u64,
    pkts: u32,
    /// How long the first was in the queue.
    waited: Nanos,
    period: Option<u32>,
    ecn: Ecn,
}

impl Together {
    #[inline]
    fn leaving(departure: &Departure, pkts: u32) -> Together {
        Together {
            at_ns: departure.at_ns,
            every_ns: departure.every_ns,
            pkts,
            waited: departure.waited,
            period: Some(departure.period),
            ecn: departure.ecn,
        }
    }

    /// Are those the packets that follow, in all they share?
    #[inline]
    fn goes_on(&self, next: &Together) -> bool {
        let next_ns = self.at_ns + u64::from(self.pkts) * self.every_ns;
        next.at_ns == next_ns
            && (next.every_ns, next.ecn, next.period) == (self.every_ns, self.ecn, self.period)
    }
}

/// One hop in one direction. `N` is the [`Sink::Note`] of its sink.
pub struct Pipe<N> {
    pub bottleneck: Bottleneck,
    /// Counts the times its link began to work after a rest.
    period: u32,
    /// Where packets do more than take their delay.
    transit: Option<Box<Transit>>,
    behind: Behind<N>,
    /// Does the link take its steps when their effect can be seen, several at a time? Else each is taken when it is due.
    steps_late: bool,
}

impl<N: Copy> Pipe<N> {
    /// `coalesce`: how long the far host's NICs gather packets before they interrupt.
    pub fn new(bottleneck: Bottleneck, transit: Option<Box<Transit>>, coalesce: Nanos) -> Pipe<N> {
        Pipe {
            bottleneck,
            period: 0,
            transit,
            behind: Behind::new(coalesce.0),
            steps_late: false,
        }
    }

    /// A flow's delay, before its first packet. Flows come in order of their index.
    pub fn add_flow(&mut self, delay: Nanos) {
        self.behind.add_flow(delay.0);
    }

    /// The NIC of a flow's far host, which is behind this pipe, before the flow's first packet: its number, and the place
    /// that it takes, which another had before it.
    pub(crate) fn set_nic(&mut self, flow: u32, number: u32, place: u32) {
        self.behind.set_nic(flow, number, place);
    }

    /// The flow's NIC has handed over all that came, and its place is another's from now on.
    pub(crate) fn free_nic(&mut self, flow: u32) {
        self.behind.free_nic(flow);
    }

    /// From now on the flow's packets take this delay.
    pub fn set_delay(&mut self, flow: usize, delay: Nanos) {
        self.behind.set_delay(flow, delay.0);
    }

    /// Compute each departure from the bottleneck on entry, where that is possible. Call before the first packet.
    /// Elsewhere the link takes steps, but late: nobody sees a packet leave before it arrives, another enters, or somebody
    /// asks ([`Self::settle`]). Delays stay as they are.
    pub(crate) fn foresee(&mut self) {
        if self.transit.is_none() {
            self.behind.stay();
            self.bottleneck.foresee();
            self.steps_late = self.bottleneck.takes_steps();
        }
    }

    /// May several packets enter as a train?
    pub(crate) fn takes_trains(&self) -> bool {
        self.transit.is_none() && (self.steps_late || self.bottleneck.takes_trains())
    }

    /// A packet enters, or a train where this [`Self::takes_trains`]. Whatever was due before `now_ns` has been done by
    /// [`Self::step`]; what leaves the bottleneck at that very instant does so first. Returns whether [`Self::next`] may have
    /// changed.
    #[inline(always)]
    pub fn enter(&mut self, now_ns: u64, mut train: Train, sink: &mut impl Sink<Note = N>) -> bool {
        if unlikely(self.bottleneck.takes_steps()) {
            self.enter_link(now_ns, train, sink);
            return true;
        }
        self.settle(now_ns, sink);
        let (entry, pkts) = self.bottleneck.enter(now_ns, train.packet, train.alike());
        if pkts == train.pkts
            && let Entry::Leaves(departure) = entry
        {
            // Nearly always all fare alike.
            train.packet.ecn = departure.ecn;
            return self.leave(&train.packet, &Together::leaving(&departure, pkts), sink);
        }
        self.enter_in_parts(now_ns, train, (entry, pkts), sink);
        true
    }

    /// A train enters whose packets may fare differently. `fate`: that of the first, and of how many.
    #[inline(never)]
    fn enter_in_parts(
        &mut self,
        now_ns: u64,
        train: Train,
        mut fate: (Entry, u32),
        sink: &mut impl Sink<Note = N>,
    ) {
        // What was not offered yet, what did not go on its way yet, and of that the first packets, whose way is known.
        let (mut offered, mut rest) = (train, train);
        let mut before: Option<Together> = None;
        loop {
            let (entry, pkts) = fate;
            offered = offered.without(pkts);
            let next = match entry {
                Entry::Leaves(departure) => Some(Together::leaving(&departure, pkts)),
                Entry::Through(ecn) => Some(Together {
                    at_ns: now_ns,
                    every_ns: 0,
                    pkts,
                    waited: Nanos::ZERO,
                    period: None,
                    ecn,
                }),
                Entry::Lost | Entry::Dropped => None,
                Entry::Taken => return self.tell_drops(sink),
            };
            match (&mut before, next) {
                (Some(before), Some(next)) if before.goes_on(&next) => before.pkts += pkts,
                (_, next) => {
                    if let Some(before) = std::mem::replace(&mut before, next) {
                        self.leave_together(&mut rest, &before, sink);
                    }
                }
            }
            if next.is_none() {
                for _ in 0..pkts {
                    let packet = take(&mut rest, 1, sink);
                    match entry {
                        Entry::Lost => sink.lost(&packet),
                        _ => sink.dropped(&packet),
                    }
                }
            }
            if offered.pkts == 0 {
                break;
            }
            fate = self
                .bottleneck
                .enter(now_ns, offered.packet, offered.alike());
        }
        if let Some(before) = before {
            self.leave_together(&mut rest, &before, sink);
        }
    }

    /// Packets of a train enter a link that takes a step for each.
    #[inline(never)]
    fn enter_link(&mut self, now_ns: u64, mut train: Train, sink: &mut impl Sink<Note = N>) {
        self.take_steps(now_ns, sink);
        while train.pkts > 0 {
            let rested = !self.bottleneck.is_sending();
            let packet = take(&mut train, 1, sink);
            if !self.bottleneck.enter_link(now_ns, packet) {
                sink.lost(&packet);
                continue;
            }
            self.period = self.period.wrapping_add(rested.into());
            self.tell_drops(sink);
        }
    }

    /// The first packets of a train leave the bottleneck.
    #[inline]
    fn leave_together(
        &mut self,
        rest: &mut Train,
        together: &Together,
        sink: &mut impl Sink<Note = N>,
    ) {
        let mut packet = take(rest, together.pkts, sink);
        packet.ecn = together.ecn;
        self.leave(&packet, together, sink);
        if together.period.is_none() {
            let waits = (0..together.pkts).map(|_| (together.at_ns, Nanos::ZERO));
            sink.waited(packet.flow, waits);
        }
    }

    /// A packet takes its delay, with nothing else in its way. Returns whether [`Self::next`] may have changed.
    #[inline(always)]
    pub(crate) fn pass(&mut self, now_ns: u64, passing: Passing<N>) -> bool {
        self.behind.pass(now_ns, 0, passing)
    }

    /// Is there nothing in a packet's way but the delay?
    pub(crate) fn is_open(&self) -> bool {
        self.bottleneck.is_open() && self.transit.is_none()
    }

    /// Tells of packets whose departure has come, which was foreseen or of which nobody had asked.
    #[inline(never)]
    pub(crate) fn settle(&mut self, now_ns: u64, sink: &mut impl Sink<Note = N>) {
        if unlikely(self.steps_late) {
            return self.take_steps(now_ns, sink);
        }
        self.bottleneck
            .settle(now_ns, |gone| sink.waited(gone.flow, gone.each()));
    }

    /// Packets leave the bottleneck, or will: they have the marks with which they do. Returns whether [`Self::next`] may have
    /// changed.
    #[inline(always)]
    fn leave(
        &mut self,
        packet: &Packet,
        together: &Together,
        sink: &mut impl Sink<Note = N>,
    ) -> bool {
        let leaving = Leaving {
            at_ns: together.at_ns,
            waited: together.waited,
            period: together.period,
        };
        let note = sink.left(packet, &leaving);
        if unlikely(self.transit.is_some()) {
            self.pass_transit(together.at_ns, packet, note, sink);
            return true;
        }
        let passing = Passing {
            flow: packet.flow,
            handle: packet.handle,
            pkts: together.pkts,
            note,
        };
        self.behind.pass(together.at_ns, together.every_ns, passing)
    }

    /// When something happens next.
    #[inline]
    pub fn next(&self) -> When {
        match unlikely(self.bottleneck.takes_steps()) {
            true => self.behind.next().min(self.sends()),
            false => self.behind.next(),
        }
    }

    /// When a link that takes steps is to take the next: where it may be late, when the packet that then leaves could arrive.
    #[inline]
    fn sends(&self) -> When {
        let late_ns = match self.steps_late {
            true => self.behind.least_delay_ns(),
            false => 0,
        };
        let next_ns = self.bottleneck.next_ns();
        next_ns.map_or(When::NEVER, |at_ns| When::first_at(at_ns + late_ns))
    }

    /// Takes all steps of a link that are due then.
    #[inline(never)]
    fn take_steps(&mut self, now_ns: u64, sink: &mut impl Sink<Note = N>) {
        while let Some(at_ns) = self.bottleneck.next_ns()
            && at_ns <= now_ns
        {
            self.step_bottleneck(at_ns, sink);
        }
    }

    /// Does the one thing that is due at [`Self::next`].
    #[inline]
    pub fn step(&mut self, sink: &mut impl Sink<Note = N>) {
        match unlikely(self.bottleneck.takes_steps()) {
            true => self.step_both(sink),
            false => self.behind.step(sink),
        }
    }

    /// The same where the link takes steps.
    #[inline(never)]
    fn step_both(&mut self, sink: &mut impl Sink<Note = N>) {
        let sends = self.sends();
        if sends > self.behind.next() {
            return self.behind.step(sink);
        }
        match self.steps_late {
            true => self.take_steps(sends.at_ns(), sink),
            false => self.step_bottleneck(sends.at_ns(), sink),
        }
    }

    #[inline(always)]
    fn step_bottleneck(&mut self, at_ns: u64, sink: &mut impl Sink<Note = N>) {
        match self.bottleneck.leaves() {
            None => self.period = self.period.wrapping_add(1),
            Some((packet, waited)) => {
                let together = Together {
                    at_ns,
                    every_ns: 0,
                    pkts: 1,
                    waited,
                    period: Some(self.period),
                    ecn: packet.ecn,
                };
                self.leave(&packet, &together, sink);
                sink.waited(packet.flow, std::iter::once((at_ns, waited)));
            }
        }
        self.bottleneck.send_next(at_ns);
        self.tell_drops(sink);
    }

    #[inline(never)]
    fn pass_transit(
        &mut self,
        at_ns: u64,
        packet: &Packet,
        note: N,
        sink: &mut impl Sink<Note = N>,
    ) {
        let Some(transit) = &mut self.transit else {
            return;
        };
        let passage = transit.pass(at_ns, self.behind.delay_ns(packet.flow));
        let keeps_order = transit.keeps_order();
        if passage.copies == 0 {
            return sink.lost(packet);
        }
        for copy in 0..passage.copies {
            let (handle, note) = match copy {
                0 => (packet.handle, note),
                _ => sink.copy(packet, note),
            };
            let passing = Passing {
                flow: packet.flow,
                handle,
                pkts: 1,
                note,
            };
            match keeps_order {
                true => self.behind.pass_in_order(passage.arrives_ns(), passing),
                false => self.behind.pass_loose(at_ns, passage.arrives_ns(), passing),
            }
        }
    }

    #[inline]
    fn tell_drops(&mut self, sink: &mut impl Sink<Note = N>) {
        while let Some(packet) = self.bottleneck.take_dropped() {
            sink.dropped(&packet);
        }
    }

    /// Flow, handle and number of all packets that are under way, for a final account: of a train, the first packets first.
    pub fn drain(&mut self, now_ns: u64) -> Vec<(u32, u32, u32)> {
        let held = self.bottleneck.drain(now_ns).into_iter();
        let held = held.map(|packet| (packet.flow, packet.handle, 1));
        let behind = self.behind.drain().into_iter();
        let behind = behind.map(|passing| (passing.flow, passing.handle, passing.pkts));
        held.chain(behind).collect()
    }
}

/// Takes the first `pkts` packets out of a train.
#[inline]
fn take<S: Sink>(train: &mut Train, pkts: u32, sink: &mut S) -> Packet {
    let mut packet = train.packet;
    if pkts < train.pkts {
        packet.handle = sink.cut(packet.handle, pkts);
    }
    *train = train.without(pkts);
    packet
}

#[cfg(test)]
mod tests;
