//! What happens to packets on the path, as their connections hear of it.

use knee_kit::ahead;
use knee_kit::odds::likely;
use knee_path::packet::Packet;
use knee_path::sink::{Departure, Passing, Sink};
use knee_units::Nanos;

use crate::event::Side;
use crate::flow::Flows;
use knee_tcp::segment::Slab;

/// What packets on the path are of: connections and their segments.
pub struct Connections {
    pub flows: Flows,
    pub slab: Slab,
    /// What a NIC has handed over, until its host takes it: one, ...
    pub only: Option<Passing<()>>,
    /// ... or several.
    pub arrived: Vec<Passing<()>>,
}

impl Connections {
    /// Before the first of `count`.
    pub fn new(count: usize) -> Connections {
        Connections {
            flows: Flows::new(count),
            slab: Slab::default(),
            only: None,
            arrived: Vec::new(),
        }
    }
}

/// The way toward one side, as its packets' connections hear of it.
pub struct Passage<'a> {
    pub conns: &'a mut Connections,
    pub side: Side,
}

impl Passage<'_> {
    fn is_data(&self) -> bool {
        self.side == Side::Receiver
    }

    #[cold]
    fn gone(&mut self, packet: &Packet) {
        let is_data = self.is_data();
        let flow = &mut self.conns.flows[packet.flow as usize];
        flow.under_way -= 1;
        if is_data {
            let payload_bytes = self.conns.slab.get(packet.handle).payload_bytes;
            flow.dropped_bytes += u64::from(payload_bytes);
        }
        self.conns.slab.release(packet.handle);
    }
}

impl Sink for Passage<'_> {
    type Note = ();

    fn lost(&mut self, packet: &Packet) {
        self.conns.flows[packet.flow as usize].path_lost_pkts += u64::from(self.is_data());
        self.gone(packet);
    }

    fn dropped(&mut self, packet: &Packet) {
        self.conns.flows[packet.flow as usize].queue_dropped_pkts += u64::from(self.is_data());
        self.gone(packet);
    }

    #[inline(always)]
    fn cut(&mut self, handle: u32, pkts: u32) -> u32 {
        self.conns.slab.cut(handle, pkts)
    }

    #[inline]
    fn left(&mut self, packet: &Packet, _departure: &Departure) {
        self.conns.slab.carry_mark(packet.handle, packet.ecn);
    }

    #[inline]
    fn waited(&mut self, flow: u32, waits: impl Iterator<Item = (u64, Nanos)>) {
        if self.side == Side::Receiver
            && let flow = &mut self.conns.flows[flow as usize]
            && likely(flow.measured)
        {
            for (_, waited) in waits {
                flow.queue_delay_us.add(waited.as_us());
            }
        }
    }

    fn copy(&mut self, packet: &Packet, (): ()) -> (u32, ()) {
        let segment = self.conns.slab.get(packet.handle).clone();
        let is_data = self.is_data();
        let flow = &mut self.conns.flows[packet.flow as usize];
        flow.under_way += 1;
        if is_data {
            flow.duplicated_bytes += u64::from(segment.payload_bytes);
        }
        (self.conns.slab.insert(segment), ())
    }

    #[inline]
    fn expects(&mut self, passing: &Passing<()>, is_next: bool) {
        if self.conns.flows.are_many() {
            self.conns
                .flows
                .fetch(&self.conns.slab, self.side, passing, is_next);
        } else if is_next {
            ahead::fetch(self.conns.slab.get(passing.handle));
        }
    }

    #[inline(always)]
    fn arrived(&mut self, _at_ns: u64, packets: &[Passing<()>]) {
        match packets {
            [only] => self.conns.only = Some(*only),
            _ => self.conns.arrived.extend_from_slice(packets),
        }
    }
}
