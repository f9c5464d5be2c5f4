//! Transmit completions: until a machine's NIC reports what it has sent, the bytes count for TCP small queues.

use knee_host::Cost;

use super::super::World;
use crate::event::{EndpointId, Target};
use crate::flow::Flow;
use crate::job::Job;
use crate::processor::Processor;

impl World {
    /// An end has sent, from `first` on, on a processor whose transmit queue is another one. It changes to that, unless its
    /// packets might overtake each other: some wait in the old one, and some are not acked (netdev_pick_tx(), ooo_okay).
    pub(super) fn change_tx_queue(
        &mut self,
        queue: u32,
        first: usize,
        id: EndpointId,
        flow: &mut Flow,
    ) {
        let end = flow.end(id.side());
        if end.tx_queue == queue {
            return;
        }
        let sent = self.outbox.handles[first..].iter();
        let has_data = |handle: &&u32| self.conns.slab.get(**handle).payload_bytes > 0;
        let is_acked = end.tcp.skbs_out() <= sent.filter(has_data).count() as u64;
        let unreported = &self.machines.tx[end.tx_queue as usize].unreported;
        let waits = || !end.egress.is_empty() || unreported.iter().any(|(from, _)| *from == id);
        if is_acked || !waits() {
            end.tx_queue = queue;
        }
    }

    /// A packet leaves its machine, whose NIC reports what it has sent. One with data is reported with others.
    #[inline(never)]
    pub(in crate::world) fn await_report(&mut self, cpu: u32, from: EndpointId, handle: u32) {
        let machine = self.machines.cpus[cpu].machine;
        let tx_coalesce_ns = self.conf_of(machine).tx_coalesce_ns;
        let segment = self.conns.slab.get(handle);
        if segment.payload_bytes == 0 {
            return;
        }
        let queue = self.conns.flows[from.flow() as usize]
            .end(from.side())
            .tx_queue;
        let bytes = segment.ip_bytes();
        let unreported = &mut self.machines.tx[queue as usize].unreported;
        let is_first = unreported.is_empty();
        unreported.push((from, bytes));
        if is_first {
            let at_ns = self.now_ns + tx_coalesce_ns;
            self.events.push(at_ns, Target::Reported(queue));
        }
    }

    /// A transmit queue interrupts.
    pub(in crate::world) fn interrupt_for_sent(&mut self, queue: u32) {
        let cpu = self.machines.tx[queue as usize].cpu;
        self.raise(cpu, Job::Report(queue));
    }

    /// The host hears of all that was sent, and connections that waited for it send on (tcp_wfree(), tcp_tasklet_func()).
    pub(super) fn run_report(&mut self, by: &mut Processor, queue: u32) {
        let reported = std::mem::take(&mut self.machines.tx[queue as usize].unreported);
        by.counts.interrupts += 1;
        let of = &mut by.core;
        of.charge(Cost::Interrupt, 1);
        of.charge(Cost::Softirq, 1);
        of.charge(Cost::Poll, 1);
        of.charge(Cost::Completion, reported.len() as u64);
        let mut by_end: Vec<(EndpointId, u32)> = Vec::new();
        for (id, bytes) in reported {
            match by_end.iter_mut().find(|(of, _)| *of == id) {
                Some((_, sum)) => *sum += bytes,
                None => by_end.push((id, bytes)),
            }
        }
        for (id, bytes) in by_end {
            self.free(by, id, bytes);
        }
    }

    /// Bytes of an end have left, and it sends on; while its application has the socket, that does so.
    pub(super) fn free(&mut self, by: &mut Processor, id: EndpointId, bytes: u32) {
        if !self.conns.flows.has(id.flow()) {
            return;
        }
        if self.is_owned(by, id) {
            return self.defer(by, id, Job::Freed(id, bytes), None);
        }
        self.send_on(by, id, bytes);
    }

    pub(super) fn send_on(&mut self, by: &mut Processor, id: EndpointId, bytes: u32) {
        by.core.charge(Cost::SocketLock, 1);
        let (first, mut turn) = self.begin_on(id);
        self.call(&mut turn, |tcp, cx| tcp.on_sent(cx, bytes));
        self.end_on(by, first, turn);
    }
}
