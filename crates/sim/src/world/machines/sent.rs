//! What a machine's NIC has sent: until it reports that, the bytes count for TCP small queues.

use knee_host::Cost;

use super::super::ends::Ends;
use crate::event::{EndpointId, Target};
use crate::machine::Job;

impl Ends {
    /// A packet leaves its machine. One with data is reported with others, by an interrupt.
    pub(in crate::world) fn await_report(&mut self, cpu: u32, from: EndpointId, handle: u32) {
        let machine = self.machines.of_cpu[cpu as usize];
        let tx_coalesce_ns = self.conf_of(machine).tx_coalesce_ns;
        let segment = self.slab.get(handle);
        if tx_coalesce_ns == 0 || segment.payload_bytes == 0 {
            return;
        }
        let bytes = segment.ip_bytes();
        let unreported = &mut self.machines.list[machine as usize].unreported;
        let is_first = unreported.is_empty();
        unreported.push((from, bytes));
        if is_first {
            let at_ns = self.now_ns + tx_coalesce_ns;
            self.events.push(at_ns, Target::Reported(machine));
        }
    }

    /// The NIC interrupts, the processor of its first queue.
    pub(in crate::world) fn interrupt_for_sent(&mut self, machine: u32) {
        let of = &self.machines.list[machine as usize];
        let first_queue = of.first_queue[of.side] as usize;
        let cpu = self.machines.queues[first_queue].cpu;
        self.raise(cpu, Job::Report(machine));
    }

    /// The host hears of all that was sent, and connections that waited for it send on (tcp_wfree(), tcp_tasklet_func()).
    pub(super) fn run_report(&mut self, cpu: u32, machine: u32) {
        let reported = std::mem::take(&mut self.machines.list[machine as usize].unreported);
        self.counts_of(cpu).interrupts += 1;
        self.charge(cpu, Cost::Interrupt, 1);
        self.charge(cpu, Cost::Softirq, 1);
        self.charge(cpu, Cost::Poll, 1);
        self.charge(cpu, Cost::Completion, reported.len() as u64);
        let mut by_end: Vec<(EndpointId, u32)> = Vec::new();
        for (id, bytes) in reported {
            match by_end.iter_mut().find(|(of, _)| *of == id) {
                Some((_, sum)) => *sum += bytes,
                None => by_end.push((id, bytes)),
            }
        }
        for (id, bytes) in by_end {
            if !self.flows.has(id.flow()) {
                continue;
            }
            self.charge(cpu, Cost::SocketLock, 1);
            let at = self.before(id);
            let mut turn = self.begin(id);
            self.call(&mut turn, |tcp, cx| tcp.on_sent(cx, bytes));
            self.end_on(cpu, at, turn);
        }
    }
}
