//! The pipes of one direction, one after the other: a path of several hops.

use std::ops::RangeInclusive;

use knee_path::packet::Packet;
use knee_units::Nanos;

use crate::pipe::{Passing, Pipe, Sink};

/// The pipes of a direction, in the order in which its packets pass them.
pub struct Chain {
    pub pipes: Vec<Pipe>,
    /// Bytes that each pipe counts per packet besides those it is entered with.
    overheads: Vec<i64>,
    /// The pipes that each flow passes.
    stretches: Vec<RangeInclusive<usize>>,
    between: Between,
}

/// Packets on their way from one pipe to the next.
#[derive(Default)]
struct Between {
    /// By handle: the packet as it left its last bottleneck, and all its waits.
    carried: Vec<Option<(Packet, Nanos)>>,
    /// Those that have come to the end of a pipe.
    reached: Vec<u32>,
}

impl Chain {
    /// `overheads`: bytes that each pipe counts per packet besides those that
    /// it is entered with.
    pub fn new(pipes: Vec<Pipe>, overheads: Vec<i64>) -> Chain {
        Chain {
            pipes,
            overheads,
            stretches: Vec::new(),
            between: Between::default(),
        }
    }

    pub fn flows(&self) -> usize {
        self.stretches.len()
    }

    /// A flow's pipes and its delay behind each pipe of the chain, before its
    /// first packet. Flows come in order of their index.
    pub fn add_flow(&mut self, stretch: RangeInclusive<usize>, delays: &[Nanos]) {
        for (n, (pipe, &delay)) in self.pipes.iter_mut().zip(delays).enumerate() {
            pipe.add_flow(delay, n == *stretch.end());
        }
        self.stretches.push(stretch);
    }

    /// From now on the flow's packets take these delays.
    pub fn set_delays(&mut self, flow: usize, delays: &[Nanos]) {
        for (pipe, &delay) in self.pipes.iter_mut().zip(delays) {
            pipe.set_delay(flow, delay);
        }
    }

    /// A packet enters its first pipe. Whatever was due before `now_ns` has been
    /// done by [`Self::advance`].
    #[inline]
    pub fn enter(&mut self, now_ns: u64, packet: Packet, sink: &mut impl Sink) {
        if let [only] = &mut self.pipes[..] {
            return only.enter(now_ns, packet, sink);
        }
        let first = *self.stretches[packet.flow as usize].start();
        self.enter_pipe(first, now_ns, (packet, Nanos::ZERO), sink);
    }

    /// When something happens next.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        self.pipes.iter().filter_map(Pipe::next_ns).min()
    }

    /// Does everything that is due at `now_ns` or before, in order of time.
    #[inline]
    pub fn advance(&mut self, now_ns: u64, sink: &mut impl Sink) {
        if let [only] = &mut self.pipes[..] {
            return only.advance(now_ns, sink);
        }
        loop {
            let due = self.pipes.iter().enumerate();
            let due = due.filter_map(|(n, pipe)| Some((pipe.next_ns()?, n)));
            let Some((at_ns, n)) = due.min().filter(|&(at_ns, _)| at_ns <= now_ns) else {
                return;
            };
            let mut at_hop = AtHop {
                number: n,
                is_last: n + 1 == self.pipes.len(),
                stretches: &self.stretches,
                between: &mut self.between,
                sink,
            };
            self.pipes[n].step(at_ns, &mut at_hop);
            while let Some(handle) = self.between.reached.pop() {
                let carried = self.between.carried[handle as usize]
                    .expect("a packet between pipes is carried");
                self.enter_pipe(n + 1, at_ns, carried, sink);
            }
        }
    }

    fn enter_pipe(
        &mut self,
        n: usize,
        now_ns: u64,
        (packet, waited): (Packet, Nanos),
        sink: &mut impl Sink,
    ) {
        self.between.carry(packet, waited);
        let packet = Packet {
            bytes: (i64::from(packet.bytes) + self.overheads[n]) as u32,
            enqueued: Nanos(now_ns),
            ..packet
        };
        let mut at_hop = AtHop {
            number: n,
            is_last: n + 1 == self.pipes.len(),
            stretches: &self.stretches,
            between: &mut self.between,
            sink,
        };
        self.pipes[n].enter(now_ns, packet, &mut at_hop);
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

/// What happens at one pipe of several: it goes to the chain's sink, but for
/// packets that have more pipes before them.
struct AtHop<'a, S> {
    number: usize,
    is_last: bool,
    stretches: &'a [RangeInclusive<usize>],
    between: &'a mut Between,
    sink: &'a mut S,
}

impl<S> AtHop<'_, S> {
    fn is_end_of(&self, flow: u32) -> bool {
        self.number == *self.stretches[flow as usize].end()
    }
}

impl<S: Sink> Sink for AtHop<'_, S> {
    fn lost(&mut self, packet: Packet) {
        self.sink.lost(packet);
    }

    fn dropped(&mut self, packet: Packet) {
        self.sink.dropped(packet);
    }

    fn left(&mut self, packet: &Packet, at_ns: u64, waited: Nanos) {
        let (entered, before) =
            self.between.carried[packet.handle as usize].expect("a packet in a pipe is carried");
        let waited = before + waited;
        let marked = Packet {
            ecn: packet.ecn,
            ..entered
        };
        self.between.carry(marked, waited);
        // Its waits are one, told when it is through the last.
        if self.is_end_of(packet.flow) {
            self.sink.left(packet, at_ns, waited);
        }
    }

    fn copy(&mut self, handle: u32) -> u32 {
        let copy = self.sink.copy(handle);
        if let Some((packet, waited)) = self.between.carried[handle as usize] {
            let packet = Packet {
                handle: copy,
                ..packet
            };
            self.between.carry(packet, waited);
        }
        copy
    }

    fn arrived(&mut self, flow: u32, at_ns: u64, packets: &[Passing]) {
        if !self.is_end_of(flow) {
            let handles = packets.iter().map(|passing| passing.handle);
            return self.between.reached.extend(handles);
        }
        if self.is_last {
            return self.sink.arrived(flow, at_ns, packets);
        }
        // The direction's rate is measured at its last bottleneck alone.
        let unmeasured = |&passing: &Passing| Passing {
            left: None,
            ..passing
        };
        let packets: Vec<Passing> = packets.iter().map(unmeasured).collect();
        self.sink.arrived(flow, at_ns, &packets);
    }
}

#[cfg(test)]
mod tests;
