//! The way out of a host: its qdisc, and onto the path.

use super::World;
use crate::event::{EndpointId, Side, Target};

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
