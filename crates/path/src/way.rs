//! A path in one direction: the pipes of its hops, one after the other, and how long each flow takes behind each.

use std::ops::Range;

use knee_kit::odds::unlikely;
use knee_tables::QueueSample;
use knee_units::rng::Stream;
use knee_units::{NEVER, Nanos};

use crate::packet::{Packet, Train};
use crate::pipe::Pipe;
use crate::routes::Routes;
use crate::sink::{Departure, Passing, Sink, When};
use crate::{Direction, Path, hop_streams};

/// One direction of a path. `N` is the [`Sink::Note`] of its sink.
pub struct Way<N> {
    /// In the order in which packets pass them.
    pipes: Vec<Pipe<N>>,
    /// Bytes that each pipe counts per packet besides those it is entered with.
    overheads: Vec<i64>,
    /// The kind of each flow, of those that `routes` has.
    kinds: Vec<u32>,
    routes: Routes,
    between: Between,
    /// When something happens next.
    next: When,
    /// Is there nothing in a packet's way but the delay of a single hop?
    is_open: bool,
    /// May several packets enter as a train?
    takes_trains: bool,
    /// Does some hop lose TSO packets as a whole?
    takes_whole: bool,
}

/// Packets on their way from one pipe to the next.
#[derive(Default)]
struct Between {
    /// By handle: the packet as it left its last bottleneck, and all its waits.
    carried: Vec<Option<(Packet, Nanos)>>,
    /// Those that have come to the end of a pipe.
    reached: Vec<u32>,
}

impl<N: Copy> Way<N> {
    /// The path's hops in the data's order. Packets enter with the bytes that the first of them counts. `stream` gives the
    /// draws of a component of the run; `origin_ns`: the run's start on the engine's clock; `coalesce`: how long the far
    /// host's NICs gather packets.
    pub fn new<'a>(
        hops: impl Iterator<Item = &'a Path>,
        direction: Direction,
        stream: impl Fn(&str) -> Stream,
        origin_ns: u64,
        coalesce: Nanos,
    ) -> Way<N> {
        let hops: Vec<&Path> = hops.collect();
        let pipe = |(n, hop): (usize, &&Path)| {
            let stream = hop_streams(n, &stream);
            let bottleneck = hop.build_bottleneck(direction, &stream, origin_ns);
            Pipe::new(
                bottleneck,
                hop.build_transit(direction, &stream, origin_ns),
                coalesce,
            )
        };
        let pipes = hops.iter().enumerate().map(pipe).collect();
        let overhead =
            |hop: &&Path| i64::from(hop.overhead_bytes) - i64::from(hops[0].overhead_bytes);
        let overheads = hops.iter().map(overhead).collect();
        let routes = Routes::new(&hops, direction, origin_ns);
        let mut way = Way::of(pipes, overheads, routes);
        if direction == Direction::Back {
            way.pipes.reverse();
            way.overheads.reverse();
        }
        way
    }

    fn of(pipes: Vec<Pipe<N>>, overheads: Vec<i64>, routes: Routes) -> Way<N> {
        let mut way = Way {
            pipes,
            overheads,
            kinds: Vec::new(),
            routes,
            between: Between::default(),
            next: When::NEVER,
            is_open: false,
            takes_trains: false,
            takes_whole: false,
        };
        way.note_what_it_takes();
        way
    }

    /// The path stays as it is built, so this is asked of it once and not of each packet.
    fn note_what_it_takes(&mut self) {
        self.takes_whole = self.pipes.iter().any(|pipe| pipe.bottleneck.takes_whole());
        if let [only] = &self.pipes[..] {
            (self.is_open, self.takes_trains) = (only.is_open(), only.takes_trains());
        }
    }

    /// Compute each departure on entry instead of by an event. Only possible on one hop with a constant RTT; call before the
    /// first packet. Results are identical.
    pub fn foresee(&mut self) {
        if let [only] = &mut self.pipes[..]
            && self.routes.next_ns() == NEVER
        {
            only.foresee();
        }
        self.note_what_it_takes();
    }

    /// May several packets enter as a train?
    #[inline]
    pub fn takes_trains(&self) -> bool {
        self.takes_trains
    }

    /// Is a TSO packet of so many packets lost as a whole, before it enters? Asked once of each, in order.
    #[inline]
    pub fn loses_whole(&mut self, flow: u32, pkts: u32) -> bool {
        unlikely(self.takes_whole) && self.draw_whole(flow, pkts)
    }

    #[cold]
    fn draw_whole(&mut self, flow: u32, pkts: u32) -> bool {
        let first = *self.routes.stretch(self.kinds[flow as usize]).start();
        self.pipes[first].bottleneck.loses_whole(pkts)
    }

    /// Is there nothing in a packet's way but the delay of a single hop?
    #[inline]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    pub fn flows(&self) -> usize {
        self.kinds.len()
    }

    /// The hops that a flow crosses, counted with the data, and its base round-trip time. Flows come in order of their index.
    pub fn add_flow(&mut self, hops: Range<usize>, rtt: Nanos) {
        let kind = self.routes.kind(hops, rtt);
        for (pipe, &delay) in self.pipes.iter_mut().zip(self.routes.delays(kind)) {
            pipe.add_flow(delay);
        }
        self.kinds.push(kind);
    }

    /// The NIC of a flow's far host, which flows may share, before its first packet: its number, and the place that it takes,
    /// which is free or its own.
    pub fn set_nic(&mut self, flow: u32, number: u32, place: u32) {
        self.last_pipe(flow).set_nic(flow, number, place);
    }

    /// Nothing of a flow is under way any more, and the place of its NIC is free.
    pub fn free_nic(&mut self, flow: u32) {
        self.last_pipe(flow).free_nic(flow);
    }

    /// Where the flow's far host is.
    fn last_pipe(&mut self, flow: u32) -> &mut Pipe<N> {
        let stretch = self.routes.stretch(self.kinds[flow as usize]);
        &mut self.pipes[*stretch.end()]
    }

    /// A row of the `queue` table for each hop, counted with the data; whose it is, and when, its caller knows.
    pub fn sample(&mut self, now_ns: u64) -> impl Iterator<Item = QueueSample> {
        let is_back = self.routes.direction() == Direction::Back;
        let hops = self.pipes.len();
        (0..hops).map(move |hop| {
            let place = if is_back { hops - 1 - hop } else { hop };
            QueueSample {
                hop: hop as i32,
                ..self.pipes[place].bottleneck.sample(now_ns)
            }
        })
    }

    /// A packet passes a way that [`Self::is_open`], which tells of nothing but its arrival and counts nothing.
    #[inline(always)]
    pub fn pass(&mut self, now_ns: u64, passing: Passing<N>) {
        if self.routes.next_ns() <= now_ns {
            self.change_routes(now_ns);
        }
        let only = &mut self.pipes[0];
        if only.pass(now_ns, passing) {
            self.next = only.next();
        }
    }

    /// A packet enters its first pipe, or a train where this [`Self::takes_trains`]. Whatever was due before `now_ns` has been
    /// done by [`Self::advance`].
    #[inline]
    pub fn enter(&mut self, now_ns: u64, train: Train, sink: &mut impl Sink<Note = N>) {
        if self.routes.next_ns() <= now_ns {
            self.change_routes(now_ns);
        }
        if let [only] = &mut self.pipes[..] {
            if only.enter(now_ns, train, sink) {
                self.next = only.next();
            }
            return;
        }
        self.enter_first_of_several(now_ns, train, sink);
    }

    #[inline(never)]
    fn enter_first_of_several(
        &mut self,
        now_ns: u64,
        train: Train,
        sink: &mut impl Sink<Note = N>,
    ) {
        let packet = train.packet;
        let kind = self.kinds[packet.flow as usize];
        let first = *self.routes.stretch(kind).start();
        self.enter_pipe(first, now_ns, (packet, Nanos::ZERO), sink);
        self.next = self.earliest().0;
    }

    /// When something happens next.
    #[inline]
    pub fn next(&self) -> When {
        self.next
    }

    /// Does everything that is due at `now_ns` or before, in order of time.
    #[inline]
    pub fn advance(&mut self, now_ns: u64, sink: &mut impl Sink<Note = N>) {
        while self.next.at_ns() <= now_ns && self.next.at_ns() != NEVER {
            self.step(sink);
        }
    }

    /// Tells of all packets that have left a bottleneck as was foreseen, and have not been told of.
    pub fn settle(&mut self, now_ns: u64, sink: &mut impl Sink<Note = N>) {
        if let [only] = &mut self.pipes[..] {
            only.settle(now_ns, sink);
            self.next = only.next();
        }
    }

    /// Does the one thing that is due at [`Self::next`].
    #[inline]
    pub fn step(&mut self, sink: &mut impl Sink<Note = N>) {
        let at_ns = self.next.at_ns();
        if self.routes.next_ns() <= at_ns {
            self.change_routes(at_ns);
        }
        if let [only] = &mut self.pipes[..] {
            only.step(sink);
            self.next = only.next();
            return;
        }
        self.step_one_of_several(at_ns, sink);
    }

    #[inline(never)]
    fn step_one_of_several(&mut self, at_ns: u64, sink: &mut impl Sink<Note = N>) {
        let (_, n) = self.earliest();
        let (pipe, mut at_hop) = self.hop(n, sink);
        pipe.step(&mut at_hop);
        while let Some(handle) = self.between.reached.pop() {
            let carried =
                self.between.carried[handle as usize].expect("a packet between pipes is carried");
            self.enter_pipe(n + 1, at_ns, carried, sink);
        }
        self.next = self.earliest().0;
    }

    /// When and in which pipe something happens next.
    fn earliest(&self) -> (When, usize) {
        let due = self.pipes.iter().enumerate();
        let due = due.map(|(n, pipe)| (pipe.next(), n));
        due.min().expect("a path has a hop")
    }

    #[cold]
    fn change_routes(&mut self, now_ns: u64) {
        self.routes.change(now_ns);
        for (flow, &kind) in self.kinds.iter().enumerate() {
            for (pipe, &delay) in self.pipes.iter_mut().zip(self.routes.delays(kind)) {
                pipe.set_delay(flow, delay);
            }
        }
    }

    fn enter_pipe(
        &mut self,
        n: usize,
        now_ns: u64,
        (packet, waited): (Packet, Nanos),
        sink: &mut impl Sink<Note = N>,
    ) {
        self.between.carry(packet, waited);
        let packet = Packet {
            bytes: (i64::from(packet.bytes) + self.overheads[n]) as u32,
            enqueued: Nanos(now_ns),
            ..packet
        };
        let (pipe, mut at_hop) = self.hop(n, sink);
        pipe.enter(now_ns, Train::of(packet), &mut at_hop);
    }

    /// A pipe of several, and its sink.
    fn hop<'a, S>(&'a mut self, n: usize, sink: &'a mut S) -> (&'a mut Pipe<N>, AtHop<'a, S>) {
        let at_hop = AtHop {
            number: n,
            is_last: n + 1 == self.pipes.len(),
            kinds: &self.kinds,
            routes: &self.routes,
            between: &mut self.between,
            sink,
        };
        (&mut self.pipes[n], at_hop)
    }

    /// Flow, handle and number of all packets that are under way, for a final account: of a train, the first packets first.
    pub fn drain(&mut self, now_ns: u64) -> Vec<(u32, u32, u32)> {
        let pipes = self.pipes.iter_mut();
        pipes.flat_map(|pipe| pipe.drain(now_ns)).collect()
    }
}

impl Between {
    fn carry(&mut self, packet: Packet, waited: Nanos) {
        let place = packet.handle as usize;
        if self.carried.len() <= place {
            self.carried.resize(place + 1, None);
        }
        self.carried[place] = Some((packet, waited));
    }
}

/// What happens at one pipe of several: it goes to the engine's sink, but for
/// packets that have more pipes before them.
struct AtHop<'a, S> {
    number: usize,
    is_last: bool,
    kinds: &'a [u32],
    routes: &'a Routes,
    between: &'a mut Between,
    sink: &'a mut S,
}

impl<S> AtHop<'_, S> {
    fn is_end_of(&self, flow: u32) -> bool {
        let kind = self.kinds[flow as usize];
        self.number == *self.routes.stretch(kind).end()
    }
}

impl<S: Sink> Sink for AtHop<'_, S> {
    type Note = S::Note;

    fn lost(&mut self, packet: &Packet) {
        self.sink.lost(packet);
    }

    fn dropped(&mut self, packet: &Packet) {
        self.sink.dropped(packet);
    }

    /// Its waits are one, told when it is through the last. The direction's rate is measured at its last pipe alone.
    fn left(&mut self, packet: &Packet, departure: &Departure) -> S::Note {
        let carried = self.between.carried[packet.handle as usize];
        let (entered, before) = carried.expect("a packet in a pipe is carried");
        let marked = Packet {
            ecn: packet.ecn,
            ..entered
        };
        let waited = before + departure.waited;
        self.between.carry(marked, waited);
        let departure = Departure {
            period: departure.period.filter(|_| self.is_last),
            ..*departure
        };
        if self.is_end_of(packet.flow) {
            let waits = std::iter::once((departure.at_ns, waited));
            self.sink.waited(packet.flow, waits);
        }
        self.sink.left(packet, &departure)
    }

    /// Told with those before by [`Self::left`].
    fn waited(&mut self, _flow: u32, _waits: impl Iterator<Item = (u64, Nanos)>) {}

    fn cut(&mut self, handle: u32, pkts: u32) -> u32 {
        self.sink.cut(handle, pkts)
    }

    fn copy(&mut self, packet: &Packet, note: S::Note) -> (u32, S::Note) {
        let (copy, note) = self.sink.copy(packet, note);
        if let Some((packet, waited)) = self.between.carried[packet.handle as usize] {
            let packet = Packet {
                handle: copy,
                ..packet
            };
            self.between.carry(packet, waited);
        }
        (copy, note)
    }

    fn arrived(&mut self, at_ns: u64, packets: &[Passing<S::Note>]) {
        // Those that go on come one by one.
        if packets.iter().any(|passing| self.is_end_of(passing.flow)) {
            return self.sink.arrived(at_ns, packets);
        }
        let handles = packets.iter().map(|passing| passing.handle);
        self.between.reached.extend(handles);
    }
}

#[cfg(test)]
mod tests;
