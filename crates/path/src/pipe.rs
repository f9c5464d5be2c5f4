//! One hop of a path in one direction, without a clock: bottleneck, impairments, delay and, where the hop is a flow's last,
//! the far host's interrupt moderation. It is told the time, and tells when something happens next.

use knee_kit::odds::unlikely;
use knee_units::Nanos;

use crate::Transit;
use crate::bottleneck::{Bottleneck, Entry};
use crate::packet::{Packet, Train};
use crate::propagation::Propagation;
use crate::sink::{Departure, Passing, Sink, When};

/// One hop in one direction. `N` is the [`Sink::Note`] of its sink.
pub struct Pipe<N> {
    pub bottleneck: Bottleneck,
    /// Counts the times its link began to work after a rest.
    period: u32,
    /// Where packets do more than take their delay.
    transit: Option<Box<Transit>>,
    propagation: Propagation<N>,
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
            propagation: Propagation::new(coalesce.0),
            steps_late: false,
        }
    }

    /// A flow's delay, before its first packet. Flows come in order of their index.
    pub fn add_flow(&mut self, delay: Nanos) {
        self.propagation.add_flow(delay.0);
    }

    /// The NIC of a flow's far host, which is behind this pipe, before the flow's first packet: its number, and the place
    /// that it takes, which another had before it.
    pub(crate) fn set_nic(&mut self, flow: u32, number: u32, place: u32) {
        self.propagation.set_nic(flow, number, place);
    }

    /// The flow's NIC has handed over all that came, and its place is another's from now on.
    pub(crate) fn free_nic(&mut self, flow: u32) {
        self.propagation.free_nic(flow);
    }

    /// From now on the flow's packets take this delay.
    pub fn set_delay(&mut self, flow: usize, delay: Nanos) {
        self.propagation.set_delay(flow, delay.0);
    }

    /// Compute each departure from the bottleneck on entry, where that is possible. Call before the first packet.
    /// Elsewhere the link takes steps, but late: nobody sees a packet leave before it arrives, another enters, or somebody
    /// asks ([`Self::settle`]). Delays stay as they are.
    pub(crate) fn foresee(&mut self) {
        if self.transit.is_none() {
            self.propagation.stay();
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
        let entry = self.bottleneck.enter(now_ns, train.packet, train.alike());
        if let Entry::Leaves(departure) = entry
            && departure.pkts == train.pkts
            && departure.period.is_some()
        {
            // Nearly always all fare alike.
            train.packet.ecn = departure.ecn;
            return self.leave(&train.packet, &departure, sink);
        }
        self.enter_in_parts(now_ns, train, entry, sink);
        true
    }

    /// A train enters whose packets may fare differently; `fate`: how the first one fared.
    #[inline(never)]
    fn enter_in_parts(
        &mut self,
        now_ns: u64,
        train: Train,
        mut fate: Entry,
        sink: &mut impl Sink<Note = N>,
    ) {
        // What was not offered yet, what did not go on its way yet, and of that the first packets, whose way is known.
        let (mut offered, mut rest) = (train, train);
        let mut before: Option<Departure> = None;
        loop {
            let pkts = fate.pkts();
            offered = offered.without(pkts);
            let next = match fate {
                Entry::Leaves(departure) => Some(departure),
                Entry::Lost | Entry::Dropped(_) => None,
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
                    match fate {
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
        departure: &Departure,
        sink: &mut impl Sink<Note = N>,
    ) {
        let mut packet = take(rest, departure.pkts, sink);
        packet.ecn = departure.ecn;
        self.leave(&packet, departure, sink);
        if departure.period.is_none() {
            let waits = (0..departure.pkts).map(|_| (departure.at_ns, Nanos::ZERO));
            sink.waited(packet.flow, waits);
        }
    }

    /// A packet takes its delay, with nothing else in its way. Returns whether [`Self::next`] may have changed.
    #[inline(always)]
    pub(crate) fn pass(&mut self, now_ns: u64, passing: Passing<N>) -> bool {
        self.propagation.pass(now_ns, 0, passing)
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
            .settle(now_ns, |burst| sink.waited(burst.flow, burst.each()));
    }

    /// Packets leave the bottleneck, or will: they have the marks with which they do. Returns whether [`Self::next`] may have
    /// changed.
    #[inline(always)]
    fn leave(
        &mut self,
        packet: &Packet,
        departure: &Departure,
        sink: &mut impl Sink<Note = N>,
    ) -> bool {
        let note = sink.left(packet, departure);
        if unlikely(self.transit.is_some()) {
            self.pass_transit(departure.at_ns, packet, note, sink);
            return true;
        }
        let passing = Passing {
            flow: packet.flow,
            handle: packet.handle,
            pkts: departure.pkts,
            note,
        };
        self.propagation
            .pass(departure.at_ns, departure.every_ns, passing)
    }

    /// When something happens next.
    #[inline]
    pub fn next(&self) -> When {
        match unlikely(self.bottleneck.takes_steps()) {
            true => self.propagation.next().min(self.sends()),
            false => self.propagation.next(),
        }
    }

    /// When a link that takes steps is to take the next: where it may be late, when the packet that then leaves could arrive.
    #[inline]
    fn sends(&self) -> When {
        let late_ns = match self.steps_late {
            true => self.propagation.least_delay_ns(),
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
            false => self.propagation.step(sink),
        }
    }

    /// The same where the link takes steps.
    #[inline(never)]
    fn step_both(&mut self, sink: &mut impl Sink<Note = N>) {
        let sends = self.sends();
        if sends > self.propagation.next() {
            return self.propagation.step(sink);
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
                let departure = Departure {
                    at_ns,
                    every_ns: 0,
                    pkts: 1,
                    waited,
                    period: Some(self.period),
                    ecn: packet.ecn,
                };
                self.leave(&packet, &departure, sink);
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
        let passage = transit.pass(at_ns, self.propagation.delay_ns(packet.flow));
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
                true => self
                    .propagation
                    .pass_in_order(passage.arrives_ns(), passing),
                false => self
                    .propagation
                    .pass_loose(at_ns, passage.arrives_ns(), passing),
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
        let propagating = self.propagation.drain().into_iter();
        let propagating = propagating.map(|passing| (passing.flow, passing.handle, passing.pkts));
        held.chain(propagating).collect()
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
