//! What crosses a veth pair: from one end's stack to the other's, on one machine.

use knee_path::sink::Passing;

use super::super::World;
use crate::event::EndpointId;
use crate::job::Job;
use crate::napi::Cause;

impl World {
    /// A packet goes over a veth pair to the other end's stack, on the processor that sends it.
    pub(in crate::world) fn cross(&mut self, from: EndpointId, handle: u32) {
        let cpu = self.conns.flows[from.flow() as usize].end(from.side()).cpu;
        let to = EndpointId::new(from.flow(), from.side().other());
        let packets = u32::from(self.conns.slab.get(handle).packets);
        let each = match self.cell.path.keep_super_packets {
            true => packets,
            false => 1,
        };
        if self.types[to.side() as usize].gro {
            return self.cross_to_ring(cpu, to, handle, packets);
        }
        let mut left = packets;
        while left > 0 {
            let one = match left > each {
                true => self.conns.slab.cut(handle, each),
                false => handle,
            };
            left -= each;
            let mut by = self.machines.cpus.take(cpu);
            let target = self.steer(&by, to).unwrap_or(cpu);
            let up = self.put_into_backlog(&mut by, target, to, one);
            self.machines.cpus.put_back(by);
            if let Some(up) = up {
                self.raise(target, Job::Up(up));
            }
        }
    }

    /// With GRO a veth has a ring and a NAPI, which the sending processor polls.
    fn cross_to_ring(&mut self, cpu: u32, to: EndpointId, handle: u32, pkts: u32) {
        let queue = self.conns.flows[to.flow() as usize].end(to.side()).rx_queue;
        let passing = Passing {
            flow: to.flow(),
            handle,
            pkts,
            note: (),
        };
        let Some(passing) = self.fit(to.side(), queue, passing) else {
            return;
        };
        self.touch(self.machines.queues[queue as usize].cpu);
        let of = &mut self.machines.queues[queue as usize];
        if of.ring.push(passing, passing.pkts) {
            of.cpu = cpu;
            let cause = Cause::Again;
            self.raise(cpu, Job::Poll { queue, cause });
        }
    }
}
