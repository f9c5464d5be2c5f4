//! The way out of a host: its qdisc, its lateness, and onto the path.

use knee_kit::odds::{likely, unlikely};
use knee_path::packet::{Packet, Train};
use knee_path::sink::{Passing, Sink};
use knee_units::Nanos;

use super::World;
use crate::event::{EndpointId, HostId, Side, Target, Work};

/// What ends have sent and their hosts have not taken yet.
pub(super) struct Outbox {
    pub handles: Vec<u32>,
    /// The end that sends now, ...
    sends: EndpointId,
    /// ... and those that did before, each with where its part ends.
    turns: Vec<(EndpointId, usize)>,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            handles: Vec::new(),
            sends: EndpointId::new(0, Side::Sender),
            turns: Vec::new(),
        }
    }
}

impl Outbox {
    /// An end has its turn, in which it may send.
    #[inline]
    pub fn turn_to(&mut self, id: EndpointId) {
        if self.sends != id {
            if unlikely(!self.handles.is_empty()) {
                self.turns.push((self.sends, self.handles.len()));
            }
            self.sends = id;
        }
    }

    /// One packet of one end, if that is all.
    #[inline(always)]
    fn take_only(&mut self) -> Option<(EndpointId, u32)> {
        let ([handle], []) = (&self.handles[..], &self.turns[..]) else {
            return None;
        };
        let only = (self.sends, *handle);
        self.handles.clear();
        Some(only)
    }
}

impl World {
    /// The host of the end that has sent takes what it sent.
    #[inline(always)]
    pub(super) fn send_out(&mut self) {
        if !self.outbox.handles.is_empty() {
            self.take_sent();
        }
    }

    #[inline(always)]
    fn take_sent(&mut self) {
        // One packet of one end is what there is most of the time.
        if let Some((from, handle)) = self.outbox.take_only() {
            let segment = self.conns.slab.get(handle);
            let (packets, departure_ns) = (segment.packets, segment.departure_ns);
            self.conns.flows[from.flow() as usize].under_way += u32::from(packets);
            return self.take(from, handle, departure_ns);
        }
        self.take_all_sent();
    }

    #[inline(never)]
    fn take_all_sent(&mut self) {
        let mut outbox = std::mem::take(&mut self.outbox);
        outbox.turns.push((outbox.sends, outbox.handles.len()));
        let mut begin = 0;
        for (from, end) in outbox.turns.drain(..) {
            let sent = outbox.handles[begin..end].iter();
            let sent = sent.map(|&handle| u32::from(self.conns.slab.get(handle).packets));
            self.conns.flows[from.flow() as usize].under_way += sent.sum::<u32>();
            for &handle in &outbox.handles[begin..end] {
                let departure_ns = self.conns.slab.get(handle).departure_ns;
                self.take(from, handle, departure_ns);
            }
            begin = end;
        }
        outbox.handles.clear();
        self.outbox = outbox;
    }

    #[inline(always)]
    fn take(&mut self, from: EndpointId, handle: u32, departure_ns: u64) {
        if likely(departure_ns <= self.now_ns) {
            return self.leave_stack(from, handle);
        }
        self.hold(from, handle, departure_ns);
    }

    /// The qdisc holds a packet until then.
    #[inline(never)]
    pub(super) fn hold(&mut self, from: EndpointId, handle: u32, departure_ns: u64) {
        let flow = &mut self.conns.flows[from.flow() as usize];
        let egress = &mut flow.end(from.side()).egress;
        if egress.is_empty() {
            let transmit = Target::Work(from, Work::Transmit);
            self.events.push(departure_ns, transmit);
        }
        egress.push_back((departure_ns, handle));
    }

    /// The qdisc releases what is due.
    pub(super) fn release(&mut self, from: EndpointId) {
        if self.has_machine(from.side()) {
            return self.fire_qdisc(from);
        }
        let mut bytes = 0;
        loop {
            let egress = &mut self.conns.flows[from.flow() as usize]
                .end(from.side())
                .egress;
            match egress.front() {
                Some(&(departure_ns, handle)) if departure_ns <= self.now_ns => {
                    egress.pop_front();
                    bytes += self.conns.slab.get(handle).ip_bytes();
                    self.leave_stack(from, handle);
                }
                Some(&(departure_ns, _)) => {
                    self.events
                        .push(departure_ns, Target::Work(from, Work::Transmit));
                    break;
                }
                None => break,
            }
        }
        self.with_endpoint(from, |tcp, cx| tcp.on_sent(cx, bytes));
    }

    #[inline(always)]
    pub(super) fn leave_stack(&mut self, from: EndpointId, handle: u32) {
        if unlikely(self.crosses) {
            return self.cross(from, handle);
        }
        match self.types[from.side() as usize].noise {
            Nanos::ZERO => self.enter_path(from, handle),
            _ => self.send_late(from, handle),
        }
    }

    /// Packets of several ends wait in the order in which they were sent.
    #[cold]
    fn send_late(&mut self, from: EndpointId, handle: u32) {
        let host = self.conns.flows[from.flow() as usize].hosts[from.side() as usize];
        let id = HostId::new(host, from.side());
        let now_ns = self.now_ns;
        let late = self.late(id);
        let leaves_ns = late.leaves_ns(now_ns);
        let was_empty = late.waiting.is_empty();
        late.waiting.push_back((leaves_ns, from, handle));
        if was_empty {
            self.events.push(leaves_ns, Target::Late(id));
        }
    }

    /// A late host sends what is due.
    pub(super) fn release_late(&mut self, id: HostId) {
        loop {
            let now_ns = self.now_ns;
            let late = self.late(id);
            match late.waiting.front() {
                Some(&(leaves_ns, from, handle)) if leaves_ns <= now_ns => {
                    late.waiting.pop_front();
                    self.enter_path(from, handle);
                }
                Some(&(leaves_ns, ..)) => {
                    return self.events.push(leaves_ns, Target::Late(id));
                }
                None => return,
            }
        }
    }

    #[inline(always)]
    fn enter_path(&mut self, from: EndpointId, handle: u32) {
        let is_data = from.side() == Side::Sender;
        if self.options.capture && is_data {
            self.capture_sent(from.flow(), handle);
        }
        let segment = self.conns.slab.get(handle);
        let pkts = u32::from(segment.packets);
        if is_data && segment.payload_bytes > 0 {
            self.recorder.output.data_packets += u64::from(pkts);
        }
        let to = from.side().other();
        let way = &mut self.ways[to as usize];
        if way.is_open() && !is_data {
            let passing = Passing {
                flow: from.flow(),
                handle,
                pkts,
                note: (),
            };
            return way.pass(self.now_ns, passing);
        }
        self.enter_in_trains(from, handle, pkts);
    }

    /// What may have to queue: a train, or packet by packet.
    #[inline(never)]
    fn enter_in_trains(&mut self, from: EndpointId, handle: u32, pkts: u32) {
        let way = &mut self.ways[from.side().other() as usize];
        if way.loses_whole(from.flow(), pkts) {
            return self.lose(from, handle, pkts);
        }
        if pkts == 1 || way.takes_trains() {
            return self.enter_train(from, handle);
        }
        for _ in 1..pkts {
            let first = self.conns.slab.cut(handle, 1);
            self.enter_train(from, first);
        }
        self.enter_train(from, handle);
    }

    /// All packets of a TSO packet are lost where it was sent.
    #[cold]
    fn lose(&mut self, from: EndpointId, handle: u32, pkts: u32) {
        for left in (1..=pkts).rev() {
            let first = match left {
                1 => handle,
                _ => self.conns.slab.cut(handle, 1),
            };
            let train = self.train(from, first);
            self.way_to(from.side().other()).1.lost(&train.packet);
        }
    }

    #[inline(always)]
    fn enter_train(&mut self, from: EndpointId, handle: u32) {
        let train = self.train(from, handle);
        let now_ns = self.now_ns;
        let (way, mut passage) = self.way_to(from.side().other());
        way.enter(now_ns, train, &mut passage);
    }

    /// A segment as the path sees it.
    #[inline(always)]
    fn train(&self, from: EndpointId, handle: u32) -> Train {
        let segment = self.conns.slab.get(handle);
        let pkts = u32::from(segment.packets);
        let overhead_bytes = segment.head_bytes() + self.cell.path.overhead_bytes;
        let before_last_bytes = segment.payload_of(pkts - 1);
        let packet = Packet {
            handle,
            bytes: overhead_bytes + segment.payload_of(1),
            flow: from.flow(),
            hosts: [from.side(), from.side().other()]
                .map(|side| self.types[side as usize].host_of(from.flow())),
            ecn: segment.ecn,
            dscp: 0,
            pure_ack: segment.is_pure_ack().then_some(segment.ack as u32),
            enqueued: Nanos(self.now_ns),
        };
        Train {
            packet,
            pkts,
            last_bytes: overhead_bytes + segment.payload_bytes - before_last_bytes,
        }
    }
}
