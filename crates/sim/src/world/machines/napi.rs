//! When a receive queue is polled next: at once, by an interrupt or by its timer.

use knee_units::NEVER;

use super::super::World;
use crate::event::Target;
use crate::job::Job;
use crate::napi::Cause;
use crate::processor::Processor;

impl World {
    /// A queue's NIC is to interrupt for its packets, at once or when it has gathered for long enough.
    pub(super) fn interrupt(&mut self, queue: u32) {
        let of = &mut self.machines.queues[queue as usize];
        let at_ns = of.napi.interrupts_ns(of.ring.used());
        if at_ns > self.now_ns {
            of.napi.interrupt_ns = at_ns;
            return self.await_napi(queue);
        }
        of.napi.interrupted(self.now_ns);
        self.schedule(queue, Cause::Interrupt);
    }

    /// A queue is to be polled, by its processor.
    fn schedule(&mut self, queue: u32, cause: Cause) {
        let of = &mut self.machines.queues[queue as usize];
        of.ring.polled = true;
        let cpu = of.cpu;
        self.raise(cpu, Job::Poll { queue, cause });
    }

    fn await_napi(&mut self, queue: u32) {
        if let Some(at_ns) = self.machines.queues[queue as usize].napi.awaits() {
            self.events.push(at_ns, Target::Napi(queue));
        }
    }

    /// A queue's NIC interrupts, or its timer fires. A timer that finds the queue polled does nothing (napi_watchdog()).
    pub(in crate::world) fn on_napi(&mut self, queue: u32) {
        let now_ns = self.now_ns;
        let of = &mut self.machines.queues[queue as usize];
        if !of.napi.is_due(now_ns) {
            return;
        }
        if of.napi.interrupt_ns <= now_ns {
            self.interrupt(queue);
        }
        let of = &mut self.machines.queues[queue as usize];
        if of.napi.timer_ns <= now_ns {
            of.napi.timer_ns = NEVER;
            if std::mem::take(&mut of.napi.is_silent) || !of.ring.polled {
                self.schedule(queue, Cause::Timer);
            }
        }
        self.await_napi(queue);
    }

    /// A poll has taken its packets. Returns whether GRO may keep what it holds until the timer fires.
    pub(super) fn complete(&mut self, queue: u32, holds: bool) -> bool {
        let of = &mut self.machines.queues[queue as usize];
        !of.was_full() && of.napi.complete(of.polled_pkts, holds)
    }

    /// A poll of a processor is over, and all its packets are up the stack: is there more to poll?
    #[inline(always)]
    pub(super) fn end_poll(&mut self, cpu: u32, queue: u32) {
        let now_ns = self.now_ns;
        let of = &mut self.machines.queues[queue as usize];
        let goes_on = of.was_full() && !of.is_drained();
        self.machines.cpus[cpu].end_round(now_ns, of.polled_pkts, goes_on);
        if goes_on {
            return self.schedule(queue, Cause::Again);
        }
        match of.ends_quietly() {
            true => of.ring.polled = false,
            false => self.poll_later(cpu, queue),
        }
    }

    #[inline(never)]
    fn poll_later(&mut self, cpu: u32, queue: u32) {
        let now_ns = self.now_ns;
        let of = &mut self.machines.queues[queue as usize];
        if of.napi.adapts(now_ns) {
            self.machines.cpus[cpu].counts.rx_coalesce_changes += 1;
        }
        of.napi.set_timer(now_ns);
        of.napi.is_silent = std::mem::take(&mut of.napi.keeps_silent);
        of.ring.polled = of.napi.is_silent;
        let waits = !of.ring.is_empty() && !of.ring.polled;
        if waits {
            of.ring.polled = true;
            self.interrupt(queue);
        }
        self.await_napi(queue);
    }
}

impl Processor {
    /// A poll of that many packets is over; `goes_on`: its queue is polled again, after the others. If that ends the round,
    /// softirqs start again for what is left (net_rx_action()).
    #[inline(always)]
    fn end_round(&mut self, now_ns: u64, pkts: u32, goes_on: bool) {
        match !goes_on && self.core.softirqs() == 0 {
            true => self.budget.end(),
            false => self.end_round_among(now_ns, pkts, goes_on),
        }
    }

    #[inline(never)]
    fn end_round_among(&mut self, now_ns: u64, pkts: u32, goes_on: bool) {
        let squeezed = self.budget.take(now_ns, pkts);
        let polls_others = (self.core).has_softirqs(|job| matches!(job, Job::Poll { .. }));
        let is_over = squeezed || !polls_others;
        if is_over && (goes_on || polls_others) {
            self.core.polls_again();
            self.counts.backlog_squeezes += u64::from(squeezed);
        }
        if is_over {
            self.budget.end();
        }
    }
}
