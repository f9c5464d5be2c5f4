//! Whose turn it is on a processor, what its jobs are, and who has a socket's lock.

use knee_host::{Cost, Done, Next};
use knee_scenario::Reception;

use super::super::ends::Ends;
use crate::event::{EndpointId, Target};
use crate::flow::Flow;
use crate::job::{Job, Last};
use crate::machine::{Machines, Processor, Queue};

/// Is there a queue that the processor polls?
pub(super) fn polls(queues: &[Queue], cpu: u32) -> bool {
    queues.iter().any(|queue| queue.cpu == cpu)
}

impl Ends {
    /// A processor has a softirq's job.
    pub(super) fn raise(&mut self, cpu: u32, job: Job) {
        self.touch(cpu);
        let of = &mut self.machines.cpus[cpu as usize].core;
        let rested_ns = of.rested_ns(self.now_ns, self.boot_ns);
        if of.begins_at_once(self.now_ns) {
            return self.begin_softirq(cpu, job, rested_ns);
        }
        of.raise(job);
        self.kick(cpu);
    }

    /// A processor may have something to do.
    #[inline(always)]
    pub(super) fn kick(&mut self, cpu: u32) {
        if !self.machines.cpus[cpu as usize].core.goes_on(self.now_ns) {
            self.turn_to_next(cpu);
        }
    }

    #[inline(never)]
    fn turn_to_next(&mut self, cpu: u32) {
        loop {
            let now_ns = self.now_ns;
            let machines = &mut self.machines;
            let of = &mut machines.cpus[cpu as usize].core;
            let rested_ns = of.rested_ns(now_ns, self.boot_ns);
            match of.next(now_ns, &mut machines.threads) {
                Next::Idle | Next::Busy => return,
                Next::Until(at_ns) => return self.events.push(at_ns, Target::Cpu(cpu)),
                Next::Softirq(job) => return self.begin_softirq(cpu, job, rested_ns),
                Next::Thread { thread, switches } => {
                    let app = &mut machines.apps[thread as usize];
                    if app.has_work() {
                        return self.begin_thread(cpu, thread, switches, rested_ns);
                    }
                    app.awake = false;
                    of.sleep(thread);
                }
            }
        }
    }

    fn begin_softirq(&mut self, cpu: u32, job: Job, rested_ns: u64) {
        let Machines { cpus, queues, .. } = &mut self.machines;
        cpus[cpu as usize].leave_idle(self.now_ns, rested_ns, || polls(queues, cpu));
        self.run_job(cpu, job);
        self.softirq_runs(cpu);
    }

    /// A softirq's job has begun.
    #[inline(always)]
    pub(super) fn softirq_runs(&mut self, cpu: u32) {
        let Machines { cpus, coming, .. } = &mut self.machines;
        let Processor {
            core: of, outcome, ..
        } = &mut cpus[cpu as usize];
        let (comes, last) = outcome.take(coming);
        let done_ns = of.run_softirq(self.now_ns);
        let goes_on = comes || !of.has_only(None);
        self.wait_for(cpu, goes_on, last, done_ns);
    }

    #[inline(never)]
    fn begin_thread(&mut self, cpu: u32, thread: u32, switches: bool, rested_ns: u64) {
        let Machines {
            cpus, apps, queues, ..
        } = &mut self.machines;
        let by = &mut cpus[cpu as usize];
        by.leave_idle(self.now_ns, rested_ns, || polls(queues, cpu));
        by.core.charge(Cost::Switch, switches.into());
        by.counts.context_switches += u64::from(switches);
        let app = &mut apps[thread as usize];
        app.cpu = cpu;
        match app.locked.is_empty() {
            true => self.run_app(cpu, thread),
            false => self.run_locked(cpu, thread),
        }
        let machines = &mut self.machines;
        let app = &mut machines.apps[thread as usize];
        let (comes, last) = app.outcome.take(&mut machines.coming);
        let of = &mut machines.cpus[cpu as usize].core;
        let done_ns = of.run_thread(self.now_ns, thread, &mut machines.threads);
        let goes_on = comes || app.has_work() || !of.has_only(Some(thread));
        self.wait_for(cpu, goes_on, last, done_ns);
    }

    /// A job has begun that will be done at `done_ns`. If the processor then only idles there is no event for that: whoever
    /// needs the processor next catches up with it by [`Self::touch`].
    #[inline(always)]
    fn wait_for(&mut self, cpu: u32, goes_on: bool, last: Last, done_ns: u64) {
        let machines = &mut self.machines;
        let goes_on = goes_on
            || match last {
                Last::Nothing => false,
                Last::Polled(queue) => !machines.queues[queue as usize].ends_quietly(),
                Last::Unlock(_) => !machines.deferred.is_empty(),
            };
        match goes_on {
            true => self.events.push_end(done_ns, cpu),
            false => machines.cpus[cpu as usize].ends_quietly = self.events.reserve(),
        }
    }

    /// To be called before a processor is used: its job may have ended without an event, or be about to.
    #[inline(always)]
    pub(super) fn touch(&mut self, cpu: u32) {
        if self.machines.cpus[cpu as usize].ends_quietly != 0 {
            self.touch_quiet(cpu);
        }
    }

    #[inline(never)]
    fn touch_quiet(&mut self, cpu: u32) {
        let machines = &mut self.machines;
        let number = std::mem::take(&mut machines.cpus[cpu as usize].ends_quietly);
        let of = &mut machines.cpus[cpu as usize].core;
        let until_ns = of.until_ns();
        if !self.events.has_come(until_ns, number, self.now_ns) {
            let target = Target::Cpu(cpu);
            return self.events.push_reserved(until_ns, number, target);
        }
        let Some(done) = of.done(self.now_ns) else {
            return;
        };
        of.rest();
        if let Done::Thread(thread) = done {
            machines.apps[thread as usize].awake = false;
        }
        match std::mem::take(&mut machines.outcome_of(cpu, done).last) {
            Last::Nothing => {}
            Last::Polled(queue) => {
                machines.queues[queue as usize].ring.polled = false;
                machines.cpus[cpu as usize].budget.end();
            }
            Last::Unlock(id) => self.unlock(id),
        }
    }

    /// Processors that poll without a pause have done so until now.
    pub(in crate::world) fn count_polling(&mut self) {
        for cpu in 0..self.machines.cpus.len() as u32 {
            self.touch(cpu);
            let Machines { cpus, queues, .. } = &mut self.machines;
            let Processor {
                core, reception, ..
            } = &mut cpus[cpu as usize];
            let polls = *reception == Reception::BusyPoll && polls(queues, cpu);
            if polls && core.is_idle() {
                let rested_ns = core.rested_ns(self.now_ns, self.boot_ns);
                core.polled(self.now_ns, rested_ns);
            }
        }
    }

    fn run_job(&mut self, cpu: u32, job: Job) {
        match job {
            Job::Up(up) => {
                let packets = self.slab.get(up.handle).packets;
                self.machines.cpus[cpu as usize].climb(up.from, packets);
                if self.is_owned(up.to) {
                    return self.defer(up.to, job, up.ends_poll);
                }
            }
            Job::Timer(of) if self.is_owned(of) => return self.defer(of, job, None),
            _ => {}
        }
        self.run_now(cpu, job);
    }

    fn run_now(&mut self, cpu: u32, job: Job) {
        match job {
            Job::Poll { queue, cause } => self.poll(cpu, queue, cause),
            Job::Up(up) => {
                let packets = self.slab.get(up.handle).packets;
                let segment = self.slab.take(up.handle, packets.into());
                self.enter_socket(cpu, up.to, &segment, up.ends_poll);
            }
            Job::Timer(id) => self.run_timer(cpu, id),
            Job::Transmit(id) => self.run_qdisc(cpu, id),
            Job::Report(queue) => self.run_report(cpu, queue),
            Job::Freed(id, bytes) => self.send_on(cpu, id, bytes),
        }
    }

    pub(super) fn wake_thread(&mut self, thread: u32) {
        self.touch(self.machines.apps[thread as usize].cpu);
        let cpu = self.machines.place_of(thread, self.now_ns, &self.events);
        let app = &mut self.machines.apps[thread as usize];
        app.waking = false;
        if app.awake {
            return;
        }
        (app.awake, app.cpu) = (true, cpu);
        self.touch(cpu);
        let machines = &mut self.machines;
        let of = &mut machines.cpus[cpu as usize].core;
        let rested_ns = of.rested_ns(self.now_ns, self.boot_ns);
        if of.begins_thread_at_once(self.now_ns, thread) {
            return self.begin_thread(cpu, thread, true, rested_ns);
        }
        of.wake(self.now_ns, thread, &mut machines.threads);
        self.kick(cpu);
    }

    // ---- who has a socket's lock ----------------------------------------------

    /// Has an application the socket's lock?
    #[inline(always)]
    pub(super) fn is_owned(&mut self, id: EndpointId) -> bool {
        let flow = self.flows.get(id.flow());
        let is_owned = |flow: &Flow| flow.ends[id.side() as usize].is_owned;
        flow.is_some_and(is_owned) && self.is_owned_still(id)
    }

    /// An application had the socket's lock, and may have given it back by now.
    #[inline(never)]
    fn is_owned_still(&mut self, id: EndpointId) -> bool {
        let thread = self.flows[id.flow() as usize].end(id.side()).thread;
        self.touch(self.machines.apps[thread as usize].cpu);
        self.flows[id.flow() as usize].end(id.side()).is_owned
    }

    /// A job waits in the socket's own backlog (sk_add_backlog()), which is worked off when the lock is given back.
    pub(super) fn defer(&mut self, id: EndpointId, job: Job, ends_poll: Option<u32>) {
        if let Some(queue) = ends_poll {
            self.machines.coming.last = Last::Polled(queue);
        }
        self.machines.deferred.push((id, job));
    }

    /// A socket's lock is to be given back: before that the application works off what waited for it (release_sock()).
    #[inline(always)]
    pub(super) fn unlock(&mut self, id: EndpointId) {
        let machines = &mut self.machines;
        let of_it = |(of, _): &mut (EndpointId, Job)| *of == id;
        if !self.flows.has(id.flow()) {
            return machines.deferred.retain_mut(|job| !of_it(job));
        }
        let end = self.flows[id.flow() as usize].end(id.side());
        let app = &mut machines.apps[end.thread as usize];
        if !machines.deferred.is_empty() {
            let waited = machines.deferred.extract_if(.., of_it);
            app.locked.extend(waited.map(|(_, job)| job));
        }
        end.is_owned = !app.locked.is_empty();
    }

    /// Works off what waited for a socket's lock.
    fn run_locked(&mut self, cpu: u32, thread: u32) {
        let app = &mut self.machines.apps[thread as usize];
        let Some(mut job) = app.locked.pop_front() else {
            return;
        };
        let is_last = app.locked.is_empty();
        // Its poll was over when it began to wait.
        let of = match &mut job {
            Job::Up(up) => {
                up.ends_poll = None;
                up.to
            }
            Job::Timer(id) | Job::Freed(id, _) => *id,
            Job::Poll { .. } | Job::Transmit(_) | Job::Report(_) => return,
        };
        self.run_now(cpu, job);
        if is_last {
            self.machines.coming.last = Last::Unlock(of);
        }
    }
}
