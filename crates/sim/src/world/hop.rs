//! The hops of the path: what a packet finds at each, and how it gets from one
//! to the next.

use std::ops::Range;

use knee_path::bottleneck::Entry;
use knee_path::packet::Packet;
use knee_path::transit::Transit;
use knee_path::way::Direction;
use knee_path::{Path, hop_streams, last_legs};
use knee_scenario::FlowSpec;
use knee_units::Nanos;
use knee_units::rng::Stream;

use super::World;
use crate::event::{EndpointId, Side, Target};
use crate::flow::Lines;
use crate::path::{Bottleneck, Next};

/// One hop of the path, in both directions.
pub struct Hop {
    pub data: Bottleneck,
    pub ack: Bottleneck,
    /// Behind the link toward each side, where packets do more than take their delay.
    pub transits: [Option<Box<Transit>>; 2],
    overhead_bytes: u32,
    /// Changes of its length that have been.
    route_changes: usize,
}

impl Hop {
    /// Hop number `n`, fresh.
    pub fn new(n: u32, hop: &Path, stream: impl Fn(&str) -> Stream, boot_ns: u64) -> Hop {
        let stream = hop_streams(n as usize, stream);
        Hop {
            data: Bottleneck::new(
                Target::Link(n),
                hop.build_bottleneck(Direction::Forward, &stream, boot_ns),
            ),
            ack: Bottleneck::new(
                Target::AckLink(n),
                hop.build_bottleneck(Direction::Back, &stream, boot_ns),
            ),
            transits: [Direction::Back, Direction::Forward]
                .map(|direction| hop.build_transit(direction, &stream, boot_ns)),
            overhead_bytes: hop.overhead_bytes,
            route_changes: 0,
        }
    }
}

impl World {
    /// Delay lines behind each hop that a flow crosses, toward the sender and the receiver.
    pub(super) fn lines_behind(&mut self, spec: &FlowSpec) -> Lines {
        let cell = self.cell.clone();
        let rtts: Vec<Nanos> = cell.hops().map(|hop| hop.rtt).collect();
        let [data_end, ack_end] = last_legs(&rtts, spec.hops.clone(), spec.rtt);
        let mut lines = Vec::with_capacity(spec.hops.len());
        for (n, hop) in cell.hops().enumerate() {
            if !spec.hops.contains(&n) {
                continue;
            }
            let Hop {
                transits,
                route_changes,
                ..
            } = &self.hops[n];
            // All share lines while packets take their delay and nothing else;
            // otherwise order is kept within a hop's direction.
            let kinds = match transits.iter().any(Option::is_some) {
                true => [1, 2].map(|direction| direction + 2 * n as u32),
                false => [0, 0],
            };
            let changes = *route_changes;
            let mut line = |side: Side, (last, rest): (usize, Nanos)| {
                let (rtt, next) = match (n == last, side) {
                    (true, _) => (rest, Next::Host),
                    (false, Side::Receiver) => (hop.rtt, Next::Hop(n as u32 + 1)),
                    (false, Side::Sender) => (hop.rtt, Next::Hop(n as u32 - 1)),
                };
                let [forward, back] = hop.delays(rtt, changes);
                let delay = match side {
                    Side::Sender => back,
                    Side::Receiver => forward,
                };
                self.delays.line(delay, kinds[side as usize], next)
            };
            lines.push([line(Side::Sender, ack_end), line(Side::Receiver, data_end)]);
        }
        match cell.further.is_empty() {
            true => Lines::One(lines[0]),
            false => Lines::Several(spec.hops.start as u32, lines),
        }
    }

    /// A hop becomes shorter or longer, for what comes through it from now on.
    pub(super) fn change_route(&mut self, hop: u32) {
        self.hops[hop as usize].route_changes += 1;
        let cell = self.cell.clone();
        for number in 0..self.flows.len() {
            let spec = &cell.flows[self.flows[number].group as usize];
            self.flows[number].lines = self.lines_behind(spec);
        }
    }

    /// The hop at which packets of an end begin.
    #[inline]
    pub(super) fn first_hop(&self, from: EndpointId) -> u32 {
        if self.hops.len() == 1 {
            return 0;
        }
        let hops = self.hops_of(from.flow());
        match from.side() {
            Side::Sender => hops.start as u32,
            Side::Receiver => hops.end as u32 - 1,
        }
    }

    fn hops_of(&self, flow: u32) -> Range<usize> {
        let group = self.flows[flow as usize].group as usize;
        self.cell.flows[group].hops.clone()
    }

    /// A packet comes to a hop's link.
    #[inline]
    pub(super) fn enter_hop(&mut self, hop: u32, to: EndpointId, handle: u32) {
        let is_data = to.side() == Side::Receiver;
        let at = &mut self.hops[hop as usize];
        if !is_data && at.ack.is_open() {
            return self.set_off(hop, to, handle);
        }
        let segment = self.slab.get(handle);
        let packet = Packet {
            handle,
            bytes: segment.ip_bytes() + at.overhead_bytes,
            flow: to.flow(),
            host: self.flows[to.flow() as usize].group,
            ecn: segment.ecn,
            dscp: 0,
            pure_ack: segment.is_pure_ack().then_some(segment.ack as u32),
            enqueued: Nanos(self.now_ns),
        };
        let link = match is_data {
            true => &mut at.data,
            false => &mut at.ack,
        };
        match (link.enter(&mut self.events, self.now_ns, packet), is_data) {
            (Entry::Taken, true) => self.account_drops(hop),
            (Entry::Taken, false) => self.release_dropped_acks(hop),
            (Entry::Through(ecn), _) => {
                self.slab.carry_mark(handle, ecn);
                if is_data && self.hops.len() > 1 {
                    self.note_wait(hop, to.flow(), handle, Nanos::ZERO);
                }
                self.set_off(hop, to, handle);
            }
            (Entry::Lost, _) => self.lose(to, handle),
        }
    }

    /// The path's own loss, or an impairment behind the link, takes a packet.
    fn lose(&mut self, to: EndpointId, handle: u32) {
        match to.side() {
            Side::Receiver => {
                self.flows[to.flow() as usize].path_lost_pkts += 1;
                self.drop_packet(to.flow(), handle);
            }
            Side::Sender => self.slab.release(handle),
        }
    }

    /// A data packet leaves a hop's link, with the time that it waited in the queue.
    #[inline]
    pub(super) fn leave(&mut self, hop: u32, packet: &Packet) {
        if self.hops.len() == 1 {
            let flow = &mut self.flows[packet.flow as usize];
            if flow.is_measured() {
                flow.queue_delay_us.add(packet.enqueued.as_us());
            }
        } else {
            self.note_wait(hop, packet.flow, packet.handle, packet.enqueued);
        }
        let to = EndpointId::new(packet.flow, Side::Receiver);
        self.set_off(hop, to, packet.handle);
    }

    /// A packet's waits at several hops are one: it is counted at the last.
    fn note_wait(&mut self, hop: u32, flow: u32, handle: u32, wait: Nanos) {
        let hops = self.hops_of(flow);
        let place = handle as usize;
        if self.waited.len() <= place {
            self.waited.resize(place + 1, Nanos::ZERO);
        }
        let before = match hop as usize == hops.start {
            true => Nanos::ZERO,
            false => self.waited[place],
        };
        self.waited[place] = before + wait;
        let flow = &mut self.flows[flow as usize];
        if hop as usize == hops.end - 1 && flow.is_measured() {
            flow.queue_delay_us.add((before + wait).as_us());
        }
    }

    /// A packet is through a hop's link: its delay is next.
    #[inline(always)]
    pub(super) fn set_off(&mut self, hop: u32, to: EndpointId, handle: u32) {
        let side = to.side() as usize;
        let flow = &self.flows[to.flow() as usize];
        let line = match &flow.lines {
            Lines::One(line_to) => line_to[side],
            Lines::Several(first, lines) => lines[(hop - first) as usize][side],
        };
        if self.hops[hop as usize].transits[side].is_none() {
            self.delays
                .push(&mut self.events, self.now_ns, line, to, handle);
        } else {
            self.pass_transit(hop, to, line, handle);
        }
    }

    #[inline(never)]
    fn pass_transit(&mut self, hop: u32, to: EndpointId, line: u32, handle: u32) {
        let Some(transit) = &mut self.hops[hop as usize].transits[to.side() as usize] else {
            return;
        };
        let passage = transit.pass(self.now_ns, self.delays.delay_ns(line));
        let arrives_ns = passage.arrives_ns();
        let keeps_order = transit.keeps_order();
        if passage.copies == 0 {
            return self.lose(to, handle);
        }
        for copy in 0..passage.copies {
            let handle = match copy {
                0 => handle,
                _ => self.copy(to, handle),
            };
            if keeps_order {
                self.delays
                    .push_at(&mut self.events, arrives_ns, line, to, handle);
            } else {
                self.delays
                    .push_loose(&mut self.events, arrives_ns, line, to, handle);
            }
        }
    }

    /// A second one of a packet, which has waited as long.
    fn copy(&mut self, to: EndpointId, handle: u32) -> u32 {
        let segment = self.slab.get(handle).clone();
        self.flows[to.flow() as usize].duplicated_bytes += u64::from(segment.payload_bytes);
        let copy = self.slab.insert(segment);
        if let Some(&wait) = self.waited.get(handle as usize) {
            let places = self.waited.len().max(copy as usize + 1);
            self.waited.resize(places, Nanos::ZERO);
            self.waited[copy as usize] = wait;
        }
        copy
    }

    /// The oldest packet of a line reaches the next hop.
    pub(super) fn reach_hop(&mut self, hop: u32, line: u32) {
        let (to, handle) = self.delays.pop(line);
        if let Some((at_ns, _)) = self.delays.head(line) {
            self.events.push(at_ns, Target::Delay(line));
        }
        self.enter_hop(hop, to, handle);
    }

    #[inline]
    pub(super) fn release_dropped_acks(&mut self, hop: u32) {
        while let Some(packet) = self.hops[hop as usize].ack.take_dropped() {
            self.slab.release(packet.handle);
        }
    }

    #[inline]
    pub(super) fn account_drops(&mut self, hop: u32) {
        if self.hops[hop as usize].data.has_dropped() {
            self.account_dropped(hop);
        }
    }

    #[cold]
    fn account_dropped(&mut self, hop: u32) {
        while let Some(packet) = self.hops[hop as usize].data.take_dropped() {
            self.flows[packet.flow as usize].queue_dropped_pkts += 1;
            self.drop_packet(packet.flow, packet.handle);
        }
    }

    fn drop_packet(&mut self, flow: u32, handle: u32) {
        self.flows[flow as usize].dropped_bytes += u64::from(self.slab.get(handle).payload_bytes);
        self.slab.release(handle);
    }
}
