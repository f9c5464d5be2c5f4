//! The way out of a host: its qdisc, its lateness, and onto the path.

use knee_path::packet::Packet;
use knee_path::pipe::Passing;
use knee_units::Nanos;

use super::World;
use crate::event::{EndpointId, Side, Target};

impl World {
    /// The host of the end that has sent takes what it sent.
    #[inline]
    pub(super) fn send_out(&mut self) {
        if !self.ends.out.is_empty() {
            self.take_sent();
        }
    }

    fn take_sent(&mut self) {
        let from = self.ends.sends;
        let mut out = std::mem::take(&mut self.ends.out);
        for handle in out.drain(..) {
            let departure_ns = self.ends.slab.get(handle).departure_ns;
            if departure_ns > self.ends.now_ns {
                let egress = &mut self.ends.flows[from.flow() as usize]
                    .end(from.side())
                    .egress;
                if egress.is_empty() {
                    self.ends.events.push(departure_ns, Target::Egress(from));
                }
                egress.push_back((departure_ns, handle));
            } else {
                self.leave_stack(from, handle);
            }
        }
        self.ends.out = out;
    }

    /// The qdisc releases what is due.
    pub(super) fn release(&mut self, from: EndpointId) {
        let mut bytes = 0;
        loop {
            let egress = &mut self.ends.flows[from.flow() as usize]
                .end(from.side())
                .egress;
            match egress.front() {
                Some(&(departure_ns, handle)) if departure_ns <= self.ends.now_ns => {
                    egress.pop_front();
                    bytes += self.ends.slab.get(handle).ip_bytes();
                    self.leave_stack(from, handle);
                }
                Some(&(departure_ns, _)) => {
                    self.ends.events.push(departure_ns, Target::Egress(from));
                    break;
                }
                None => break,
            }
        }
        self.ends
            .with_endpoint(from, |tcp, cx| tcp.on_qdisc_sent(cx, bytes));
    }

    #[inline]
    fn leave_stack(&mut self, from: EndpointId, handle: u32) {
        match self.ends.hosts[from.side() as usize].noise {
            Nanos::ZERO => self.enter_path(from, handle),
            _ => self.send_late(from, handle),
        }
    }

    #[cold]
    fn send_late(&mut self, from: EndpointId, handle: u32) {
        let end = self.ends.flows[from.flow() as usize].end(from.side());
        let late = end.late.as_mut().expect("its host is late");
        let leaves_ns = late.leaves_ns(self.ends.now_ns);
        if late.waiting.is_empty() {
            self.ends.events.push(leaves_ns, Target::Late(from));
        }
        late.waiting.push_back((leaves_ns, handle));
    }

    /// A late host sends what is due.
    pub(super) fn release_late(&mut self, from: EndpointId) {
        loop {
            let end = self.ends.flows[from.flow() as usize].end(from.side());
            let late = end.late.as_mut().expect("its host is late");
            match late.waiting.front() {
                Some(&(leaves_ns, handle)) if leaves_ns <= self.ends.now_ns => {
                    late.waiting.pop_front();
                    self.enter_path(from, handle);
                }
                Some(&(leaves_ns, _)) => {
                    return self.ends.events.push(leaves_ns, Target::Late(from));
                }
                None => return,
            }
        }
    }

    #[inline]
    fn enter_path(&mut self, from: EndpointId, handle: u32) {
        let is_data = from.side() == Side::Sender;
        if self.ends.options.capture && is_data {
            self.ends.capture_sent(from.flow(), handle);
        }
        let segment = self.ends.slab.get(handle);
        self.ends.output.data_packets += u64::from(is_data && segment.payload_bytes > 0);
        let now_ns = self.ends.now_ns;
        let to = from.side().other();
        let way = &mut self.ways[to as usize];
        if way.is_open() && !is_data {
            return way.pass(now_ns, from.flow(), Passing { handle, note: () });
        }
        let packet = Packet {
            handle,
            bytes: segment.ip_bytes() + self.ends.cell.path.overhead_bytes,
            flow: from.flow(),
            host: self.ends.flows[from.flow() as usize].group,
            ecn: segment.ecn,
            dscp: 0,
            pure_ack: segment.is_pure_ack().then_some(segment.ack as u32),
            enqueued: Nanos(now_ns),
        };
        let (way, mut passage) = self.way_to(to);
        way.enter(now_ns, packet, &mut passage);
    }
}
