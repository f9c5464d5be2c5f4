//! The way out of a host: its qdisc, its lateness, and onto the path.

use knee_units::Nanos;

use super::World;
use crate::event::{EndpointId, Side, Target};

impl World {
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
                self.leave_stack(from, handle);
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
                    self.leave_stack(from, handle);
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
    fn leave_stack(&mut self, from: EndpointId, handle: u32) {
        match self.hosts[from.side() as usize].noise {
            Nanos::ZERO => self.enter_path(from, handle),
            _ => self.send_late(from, handle),
        }
    }

    #[cold]
    fn send_late(&mut self, from: EndpointId, handle: u32) {
        let end = self.flows[from.flow() as usize].end(from.side());
        let late = end.late.as_mut().expect("its host is late");
        let leaves_ns = late.leaves_ns(self.now_ns);
        if late.waiting.is_empty() {
            self.events.push(leaves_ns, Target::Late(from));
        }
        late.waiting.push_back((leaves_ns, handle));
    }

    /// A late host sends what is due.
    pub(super) fn release_late(&mut self, from: EndpointId) {
        loop {
            let end = self.flows[from.flow() as usize].end(from.side());
            let late = end.late.as_mut().expect("its host is late");
            match late.waiting.front() {
                Some(&(leaves_ns, handle)) if leaves_ns <= self.now_ns => {
                    late.waiting.pop_front();
                    self.enter_path(from, handle);
                }
                Some(&(leaves_ns, _)) => {
                    return self.events.push(leaves_ns, Target::Late(from));
                }
                None => return,
            }
        }
    }

    #[cold]
    fn capture_sent(&mut self, flow: u32, handle: u32) {
        let segment = self.slab.get(handle).clone();
        self.capture(flow, true, &segment);
    }

    #[inline]
    fn enter_path(&mut self, from: EndpointId, handle: u32) {
        if self.options.capture && from.side() == Side::Sender {
            self.capture_sent(from.flow(), handle);
        }
        let segment = self.slab.get(handle);
        let is_data = from.side() == Side::Sender;
        self.output.data_packets += u64::from(is_data && segment.payload_bytes > 0);
        let to = EndpointId::new(from.flow(), from.side().other());
        self.enter_hop(self.first_hop(from), to, handle);
    }
}
