//! The way out of a host: its qdisc, the link of the direction, and what
//! packets do behind it.

use knee_model::packet::Packet;
use knee_model::units::Nanos;

use super::World;
use crate::event::{EndpointId, Side, Target};
use crate::path::Entry;

impl World<'_> {
    pub(super) fn send_out(&mut self, from: EndpointId) {
        let mut out = std::mem::take(&mut self.out);
        for handle in out.drain(..) {
            let departure_ns = self.slab.get(handle).departure_ns;
            if departure_ns > self.now_ns {
                let egress = &mut self.flows[from.flow() as usize].end(from.side()).egress;
                if egress.is_empty() {
                    self.events.push(departure_ns, Target::Egress(from));
                }
                egress.push_back((departure_ns, handle));
            } else {
                self.enter_path(from, handle);
            }
        }
        self.out = out;
    }

    /// The qdisc releases what is due.
    pub(super) fn release(&mut self, from: EndpointId) {
        let mut bytes = 0;
        loop {
            let egress = &mut self.flows[from.flow() as usize].end(from.side()).egress;
            match egress.front() {
                Some(&(departure_ns, handle)) if departure_ns <= self.now_ns => {
                    egress.pop_front();
                    bytes += self.slab.get(handle).ip_bytes();
                    self.enter_path(from, handle);
                }
                Some(&(departure_ns, _)) => {
                    self.events.push(departure_ns, Target::Egress(from));
                    break;
                }
                None => break,
            }
        }
        self.with_endpoint(from, |tcp, cx| tcp.on_qdisc_sent(cx, bytes));
    }

    #[inline]
    fn enter_path(&mut self, from: EndpointId, handle: u32) {
        if self.options.capture && from.side() == Side::Sender {
            let segment = self.slab.get(handle).clone();
            self.capture(from.flow(), true, &segment);
        }
        let segment = self.slab.get(handle);
        let is_data = from.side() == Side::Sender;
        let to = EndpointId::new(from.flow(), from.side().other());
        if !is_data && self.ack_link.is_open() {
            return self.set_off(to, handle);
        }
        self.output.data_packets += u64::from(is_data && segment.payload_bytes > 0);
        let packet = Packet {
            handle,
            bytes: segment.ip_bytes() + self.cell.path.overhead_bytes,
            flow: from.flow(),
            host: self.flows[from.flow() as usize].group,
            ecn: segment.ecn,
            dscp: 0,
            pure_ack: segment.is_pure_ack().then_some(segment.ack as u32),
            enqueued: Nanos(self.now_ns),
        };
        let link = match is_data {
            true => &mut self.bottleneck,
            false => &mut self.ack_link,
        };
        match (link.enter(&mut self.events, self.now_ns, packet), is_data) {
            (Entry::Taken, true) => self.account_drops(),
            (Entry::Taken, false) => self.release_dropped_acks(),
            (Entry::Through(ecn), _) => {
                self.slab.carry_mark(handle, ecn);
                self.set_off(to, handle);
            }
            (Entry::Lost, true) => {
                self.flows[from.flow() as usize].path_lost_pkts += 1;
                self.drop_packet(from.flow(), handle);
            }
            (Entry::Lost, false) => self.slab.release(handle),
        }
    }

    /// A packet is through the link of its direction: what remains is its delay.
    #[inline]
    pub(super) fn set_off(&mut self, to: EndpointId, handle: u32) {
        let line = self.flows[to.flow() as usize].line_to[to.side() as usize];
        if self.transits[to.side() as usize].is_none() {
            self.delays
                .push(&mut self.events, self.now_ns, line, to, handle);
        } else {
            self.pass_transit(to, line, handle);
        }
    }

    fn pass_transit(&mut self, to: EndpointId, line: u32, handle: u32) {
        let Some(transit) = &mut self.transits[to.side() as usize] else {
            return;
        };
        let arrival = transit.pass(self.now_ns, self.delays.delay_ns(line));
        let keeps_order = transit.keeps_order();
        let copy = arrival.twice.then(|| {
            let segment = self.slab.get(handle).clone();
            self.flows[to.flow() as usize].duplicated_bytes += u64::from(segment.payload_bytes);
            self.slab.insert(segment)
        });
        for handle in [Some(handle), copy].into_iter().flatten() {
            if keeps_order {
                self.delays
                    .push_at(&mut self.events, arrival.at_ns, line, to, handle);
            } else {
                self.delays
                    .push_loose(&mut self.events, arrival.at_ns, to, handle);
            }
        }
    }

    pub(super) fn release_dropped_acks(&mut self) {
        while let Some(packet) = self.ack_link.take_dropped() {
            self.slab.release(packet.handle);
        }
    }

    #[inline]
    pub(super) fn account_drops(&mut self) {
        while let Some(packet) = self.bottleneck.take_dropped() {
            self.flows[packet.flow as usize].queue_dropped_pkts += 1;
            self.drop_packet(packet.flow, packet.handle);
        }
    }

    fn drop_packet(&mut self, flow: u32, handle: u32) {
        self.flows[flow as usize].dropped_bytes += u64::from(self.slab.get(handle).payload_bytes);
        self.slab.release(handle);
    }
}
