//! One hop of a path in one direction, without a clock: bottleneck, impairments, delay and, where the hop is a flow's last,
//! the far host's interrupt moderation. It is told the time, and tells when something happens next.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use knee_units::Nanos;

use crate::bottleneck::{Bottleneck, Entry};
use crate::foreseen::Departure;
use crate::nics::{Nics, Reached};
use crate::packet::Packet;
use knee_transit::Transit;

/// What happens to packets on their way.
pub trait Sink {
    /// What the engine notes of a packet when it leaves the bottleneck, and gets back when it arrives.
    type Note: Copy;

    /// The path's own loss took it, before the bottleneck or behind it.
    fn lost(&mut self, packet: &Packet);
    /// The policer or the queue dropped it.
    fn dropped(&mut self, packet: &Packet);
    /// Its last bit leaves the bottleneck, now or at a later time that is foreseen.
    fn left(&mut self, packet: &Packet, leaving: &Leaving) -> Self::Note;
    /// A packet of the flow has left its last bottleneck, and was so long in queues. Packets whose departure was foreseen
    /// are told of when others come, and by [`Way::settle`](crate::way::Way::settle).
    fn waited(&mut self, flow: u32, at_ns: u64, waited: Nanos);
    /// The path made a copy of it, which takes no time of the bottleneck: another handle for the same content.
    fn copy(&mut self, packet: &Packet, note: Self::Note) -> (u32, Self::Note);
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

/// A packet between the bottleneck and the far host.
#[derive(Clone, Copy, Debug)]
pub struct Passing<N> {
    pub flow: u32,
    pub handle: u32,
    pub note: N,
}

/// Packets in order of arrival: all take the same time, or none overtakes another.
struct Line<N> {
    delay_ns: u64,
    /// When the last one arrives.
    latest_ns: u64,
    packets: VecDeque<(u64, Passing<N>)>,
}

/// What happens behind the bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The oldest packet of this line arrives.
    Line(u32),
    /// The packet at this place of those that keep no order arrives.
    Loose(u32),
    /// The NIC of this number interrupts, which has this place.
    Interrupt(u32, u32),
}

/// One hop in one direction. `N` is the [`Sink::Note`] of its sink.
pub struct Pipe<N> {
    pub bottleneck: Bottleneck,
    /// Counts the times its link began to work after a rest.
    period: u32,
    /// Where packets do more than take their delay.
    transit: Option<Box<Transit>>,
    lines: Vec<Line<N>>,
    /// The line of each flow.
    line_of: Vec<u32>,
    /// What happens behind the bottleneck.
    due: BinaryHeap<Reverse<(When, Due)>>,
    /// Packets that keep no order.
    loose: Vec<Option<Passing<N>>>,
    free: Vec<u32>,
    nics: Nics<N>,
}

impl<N: Copy> Pipe<N> {
    /// `coalesce`: how long the far host's NICs gather packets before they interrupt.
    pub fn new(bottleneck: Bottleneck, transit: Option<Box<Transit>>, coalesce: Nanos) -> Pipe<N> {
        Pipe {
            bottleneck,
            period: 0,
            transit,
            lines: Vec::new(),
            line_of: Vec::new(),
            due: BinaryHeap::new(),
            loose: Vec::new(),
            free: Vec::new(),
            nics: Nics::new(coalesce.0),
        }
    }

    /// A flow's delay, before its first packet. Flows come in order of their index.
    pub fn add_flow(&mut self, delay: Nanos) {
        let line = self.line(delay);
        self.line_of.push(line);
        self.nics.add_flow();
    }

    /// The NIC of a flow's far host, which is behind this pipe, before the flow's first packet: its number, and the place
    /// that it takes, which another had before it.
    pub(crate) fn set_nic(&mut self, flow: u32, number: u32, place: u32) {
        self.nics.set(flow, number, place);
    }

    /// The flow's NIC has handed over all that came, and its place is another's from now on.
    pub(crate) fn free_nic(&mut self, flow: u32) {
        self.nics.free(flow);
    }

    /// From now on the flow's packets take this delay.
    pub fn set_delay(&mut self, flow: usize, delay: Nanos) {
        self.line_of[flow] = self.line(delay);
    }

    fn line(&mut self, delay: Nanos) -> u32 {
        let line = self.lines.iter().position(|line| line.delay_ns == delay.0);
        let line = line.unwrap_or_else(|| {
            self.lines.push(Line {
                delay_ns: delay.0,
                latest_ns: 0,
                packets: VecDeque::new(),
            });
            self.lines.len() - 1
        });
        line as u32
    }

    /// From now on it is known of each packet when it leaves the bottleneck, where that is possible; before the first packet.
    pub(crate) fn foresee(&mut self) {
        if self.transit.is_none() {
            self.bottleneck.foresee();
        }
    }

    /// A packet enters. Whatever was due before `now_ns` has been done by [`Self::step`]; what leaves the bottleneck at that
    /// very instant does so first.
    #[inline]
    pub fn enter(&mut self, now_ns: u64, packet: Packet, sink: &mut impl Sink<Note = N>) {
        self.settle(now_ns, sink);
        while self.sends().at_ns() <= now_ns {
            self.step_bottleneck(self.sends().at_ns(), sink);
        }
        let rested = !self.bottleneck.is_sending();
        match self.bottleneck.enter(now_ns, packet) {
            Entry::Lost => sink.lost(&packet),
            Entry::Through(ecn) => {
                let packet = Packet { ecn, ..packet };
                self.leave(now_ns, &packet, Nanos::ZERO, None, sink);
                sink.waited(packet.flow, now_ns, Nanos::ZERO);
            }
            Entry::Leaves(Departure {
                at_ns,
                waited,
                ecn,
                period,
            }) => {
                let packet = Packet { ecn, ..packet };
                self.leave(at_ns, &packet, waited, Some(period), sink);
            }
            Entry::Taken => {
                if rested {
                    self.period = self.period.wrapping_add(1);
                }
                self.tell_drops(sink);
            }
        }
    }

    /// A packet takes its delay, with nothing else in its way.
    #[inline]
    pub(crate) fn pass(&mut self, now_ns: u64, passing: Passing<N>) {
        let line = self.line_of[passing.flow as usize];
        let arrives_ns = now_ns + self.lines[line as usize].delay_ns;
        self.line_up(line, arrives_ns, passing);
    }

    /// Is there nothing in a packet's way but the delay?
    pub(crate) fn is_open(&self) -> bool {
        self.bottleneck.is_open() && self.transit.is_none()
    }

    /// Tells of packets whose departure was foreseen and has come.
    #[inline]
    pub(crate) fn settle(&mut self, now_ns: u64, sink: &mut impl Sink<Note = N>) {
        while let Some(gone) = self.bottleneck.settle(now_ns) {
            sink.waited(gone.flow, gone.at_ns, gone.waited);
        }
    }

    /// A packet leaves the bottleneck at that time, or will.
    #[inline]
    fn leave(
        &mut self,
        at_ns: u64,
        packet: &Packet,
        waited: Nanos,
        period: Option<u32>,
        sink: &mut impl Sink<Note = N>,
    ) {
        let leaving = Leaving {
            at_ns,
            waited,
            period,
        };
        let note = sink.left(packet, &leaving);
        self.delay(at_ns, packet, note, sink);
    }

    /// When something happens next.
    #[inline]
    pub fn next(&self) -> When {
        let behind = self
            .due
            .peek()
            .map_or(When::NEVER, |Reverse((when, _))| *when);
        behind.min(self.sends())
    }

    #[inline]
    fn sends(&self) -> When {
        let next_ns = self.bottleneck.next_ns();
        next_ns.map_or(When::NEVER, When::first_at)
    }

    /// Does the one thing that is due at [`Self::next`].
    #[inline]
    pub fn step(&mut self, sink: &mut impl Sink<Note = N>) {
        let Some(&Reverse((when, due))) = self.due.peek().filter(|due| due.0.0 < self.sends())
        else {
            return self.step_bottleneck(self.sends().at_ns(), sink);
        };
        let at_ns = when.at_ns();
        match due {
            Due::Line(line) => self.reach_line_end(at_ns, line, sink),
            Due::Loose(place) => {
                self.due.pop();
                self.free.push(place);
                let found = self.loose[place as usize].take();
                let passing = found.expect("its place holds it until it arrives");
                if let Some(interrupt) = self.reach_nic(at_ns, passing, sink) {
                    self.due.push(interrupt);
                }
            }
            Due::Interrupt(_, place) => {
                self.due.pop();
                let hand_over = |batch: &[Passing<N>]| sink.arrived(at_ns, batch);
                self.nics.interrupt(at_ns, place, hand_over);
            }
        }
    }

    #[inline(always)]
    fn step_bottleneck(&mut self, at_ns: u64, sink: &mut impl Sink<Note = N>) {
        let period = self.period;
        match self.bottleneck.step(at_ns) {
            None => self.period = period.wrapping_add(1),
            Some(packet) => {
                self.leave(at_ns, &packet, packet.enqueued, Some(period), sink);
                sink.waited(packet.flow, at_ns, packet.enqueued);
            }
        }
        self.tell_drops(sink);
    }

    /// The oldest packet of a line arrives. Those behind it whose NIC will not look before a later interrupt are put there
    /// at once: that is where they would be found, and it spares a step each.
    #[inline]
    fn reach_line_end(&mut self, at_ns: u64, number: u32, sink: &mut impl Sink<Note = N>) {
        let packets = &mut self.lines[number as usize].packets;
        let (_, passing) = packets.pop_front().expect("its head is due");
        let mut interrupt = self.reach_nic(at_ns, passing, sink);
        let Line {
            delay_ns, packets, ..
        } = &mut self.lines[number as usize];
        let mut next = None;
        while let Some(&(due_ns, passing)) = packets.front() {
            if self.nics.gather(due_ns, passing) {
                packets.pop_front();
                continue;
            }
            let when = When::new(due_ns, due_ns.saturating_sub(*delay_ns));
            next = Some(Reverse((when, Due::Line(number))));
            break;
        }
        // What comes takes the place of what was due, in one go.
        if let Some(mut head) = self.due.peek_mut() {
            match next.or_else(|| interrupt.take()) {
                Some(due) => *head = due,
                None => drop(PeekMut::pop(head)),
            }
        }
        self.due.extend(interrupt);
    }

    /// A packet comes to its NIC, if that is behind this pipe. The interrupt that it waits for is returned where it is new.
    #[inline]
    fn reach_nic(
        &mut self,
        at_ns: u64,
        passing: Passing<N>,
        sink: &mut impl Sink<Note = N>,
    ) -> Option<Reverse<(When, Due)>> {
        match self.nics.reach(at_ns, passing) {
            Reached::Through => sink.arrived(at_ns, &[passing]),
            Reached::Waits => {}
            Reached::WaitsUntil(then_ns, number, place) => {
                let when = When::new(then_ns, at_ns);
                return Some(Reverse((when, Due::Interrupt(number, place))));
            }
        }
        None
    }

    #[inline]
    fn delay(&mut self, at_ns: u64, packet: &Packet, note: N, sink: &mut impl Sink<Note = N>) {
        if self.transit.is_some() {
            return self.pass_transit(at_ns, packet, note, sink);
        }
        let passing = Passing {
            flow: packet.flow,
            handle: packet.handle,
            note,
        };
        self.pass(at_ns, passing);
    }

    /// Puts a packet at a line's end.
    #[inline]
    fn line_up(&mut self, number: u32, arrives_ns: u64, passing: Passing<N>) {
        let Line {
            delay_ns, packets, ..
        } = &mut self.lines[number as usize];
        if packets.is_empty() {
            let when = When::new(arrives_ns, arrives_ns.saturating_sub(*delay_ns));
            self.due.push(Reverse((when, Due::Line(number))));
        }
        packets.push_back((arrives_ns, passing));
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
        let number = self.line_of[packet.flow as usize];
        let line = &mut self.lines[number as usize];
        let passage = transit.pass(at_ns, line.delay_ns);
        let keeps_order = transit.keeps_order();
        let mut arrives_ns = passage.arrives_ns();
        if passage.copies == 0 {
            return sink.lost(packet);
        }
        if keeps_order {
            line.latest_ns = line.latest_ns.max(arrives_ns);
            arrives_ns = line.latest_ns;
        }
        for copy in 0..passage.copies {
            let (handle, note) = match copy {
                0 => (packet.handle, note),
                _ => sink.copy(packet, note),
            };
            let passing = Passing {
                flow: packet.flow,
                handle,
                note,
            };
            if keeps_order {
                self.line_up(number, arrives_ns, passing);
                continue;
            }
            let place = self.free.pop().unwrap_or_else(|| {
                self.loose.push(None);
                (self.loose.len() - 1) as u32
            });
            self.loose[place as usize] = Some(passing);
            let when = When::new(arrives_ns, at_ns);
            self.due.push(Reverse((when, Due::Loose(place))));
        }
    }

    #[inline]
    fn tell_drops(&mut self, sink: &mut impl Sink<Note = N>) {
        while let Some(packet) = self.bottleneck.take_dropped() {
            sink.dropped(&packet);
        }
    }

    /// Flow and handle of everything that is under way, for a final account.
    pub fn drain(&mut self, now_ns: u64) -> Vec<(u32, u32)> {
        self.due.clear();
        self.free.clear();
        let held = self.bottleneck.drain(now_ns).into_iter();
        let mut all: Vec<(u32, u32)> = held.map(|packet| (packet.flow, packet.handle)).collect();
        let lines = self.lines.iter_mut();
        let lines = lines.flat_map(|line| line.packets.drain(..));
        let under_way = lines.map(|(_, passing)| passing);
        let under_way = under_way.chain(self.loose.drain(..).flatten());
        all.extend(
            under_way
                .chain(self.nics.drain())
                .map(|passing| (passing.flow, passing.handle)),
        );
        all
    }
}

#[cfg(test)]
mod tests;
