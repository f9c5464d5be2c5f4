//! Whose turn it is on a processor, what its jobs are, and who has a socket's lock.

use knee_host::{Bundle, Done, Next};
use knee_scenario::Reception;

use super::super::World;
use crate::event::{EndpointId, Target};
use crate::job::{Job, Last, Outcome};
use crate::machine::{Machines, Queue};
use crate::processor::{PLAINLY, Processor, Taken, WITH_MORE};

/// Is there a queue that the processor polls?
pub(super) fn polls(queues: &[Queue], cpu: u32) -> bool {
    queues.iter().any(|queue| queue.cpu == cpu)
}

impl World {
    /// A processor out of its list, for a job that may begin. It has to be put back.
    #[inline(always)]
    pub(super) fn take_cpu(&mut self, cpu: u32) -> Taken {
        let mut by = self.machines.cpus.take(cpu);
        if by.ends != WITH_MORE {
            self.touch_ends(&mut by);
        }
        by
    }

    /// The same of one that was taken: does it idle now?
    #[inline(always)]
    pub(super) fn is_free(&mut self, by: &mut Processor) -> bool {
        if by.ends != WITH_MORE {
            if by.is_done(self.now_ns, &self.events) {
                by.rest();
                return true;
            }
            self.end_with_more(by);
        }
        by.core.is_free()
    }

    /// A processor has a softirq's job.
    pub(super) fn raise(&mut self, cpu: u32, job: Job) {
        let mut by = self.take_cpu(cpu);
        if let Some(rested_ns) = by.core.begins_at_once(self.now_ns) {
            self.begin_softirq(&mut by, job, rested_ns);
        } else {
            by.core.raise(job);
            self.kick(&mut by);
        }
        self.machines.cpus.put_back(by);
    }

    /// A processor may have something to do.
    #[inline(always)]
    pub(super) fn kick(&mut self, by: &mut Processor) {
        if !by.core.goes_on(self.now_ns) {
            self.turn_to_next(by);
        }
    }

    /// The same of a processor in its list.
    #[inline(never)]
    pub(super) fn kick_at(&mut self, cpu: u32) {
        let mut by = self.machines.cpus.take(cpu);
        self.kick(&mut by);
        self.machines.cpus.put_back(by);
    }

    /// A processor is done with a job, and what came of that has come: it idles, if that was all it had to do, or turns to what
    /// is next.
    #[inline(always)]
    pub(super) fn go_on_from(&mut self, cpu: u32, done: Done) {
        let Machines { cpus, apps, .. } = &mut self.machines;
        let by = &mut cpus[cpu].core;
        let rests = match done {
            Done::Softirq => by.rests(None),
            Done::Thread(thread) => {
                let app = &mut apps[thread as usize];
                let rests = !app.has_work() && by.rests(Some(thread));
                app.awake &= !rests;
                rests
            }
        };
        if !rests && !by.goes_on(self.now_ns) {
            self.kick_at(cpu);
        }
    }

    #[inline(never)]
    fn turn_to_next(&mut self, by: &mut Processor) {
        let now_ns = self.now_ns;
        if let Some(thread) = by.core.interrupted(now_ns) {
            let app = &mut self.machines.apps[thread as usize];
            std::mem::swap(&mut app.interrupted, &mut by.outcome);
        }
        loop {
            let machines = &mut self.machines;
            let rested_ns = by.core.rested_ns(now_ns);
            match by.core.next(now_ns, &mut machines.threads) {
                Next::Idle | Next::Busy => return,
                Next::Until(at_ns) => return self.events.push(at_ns, Target::Cpu(by.number)),
                Next::Rest { thread, until_ns } => {
                    let app = &mut machines.apps[thread as usize];
                    std::mem::swap(&mut app.interrupted, &mut by.outcome);
                    return self.events.push(until_ns, Target::Cpu(by.number));
                }
                Next::Softirq(job) => return self.begin_softirq(by, job, rested_ns),
                Next::Thread { thread, switches } => {
                    let app = &mut machines.apps[thread as usize];
                    if app.has_work() {
                        return self.begin_thread(by, thread, switches, rested_ns);
                    }
                    app.awake = false;
                    by.core.sleep(thread);
                }
            }
        }
    }

    fn begin_softirq(&mut self, by: &mut Processor, job: Job, rested_ns: u64) {
        let (number, queues) = (by.number, &self.machines.queues);
        by.leave_idle(self.now_ns, rested_ns, || polls(queues, number));
        self.run_job(by, job);
        self.softirq_runs(by);
    }

    /// A softirq's job has begun.
    fn softirq_runs(&mut self, by: &mut Processor) {
        let done_ns = by.core.run_softirq(self.now_ns);
        let is_plain = by.core.has_only(None)
            && self.is_plain(&by.outcome)
            && match by.outcome.last {
                Last::Nothing => true,
                Last::Polled(queue) => {
                    let of = &mut self.machines.queues[queue as usize];
                    let is_plain = of.ends_quietly();
                    of.ring.polled = !is_plain;
                    by.at_once_pkts = 0;
                    is_plain
                }
                Last::Unlock(_) => false,
            };
        self.wait_for(by, is_plain, done_ns);
    }

    /// The same of a poll in an interrupt, which no veth has, that has left nothing and needs no more. Returns whether it ends
    /// quietly or plainly.
    #[inline(always)]
    pub(super) fn softirq_runs_alone(&mut self, by: &mut Processor) -> bool {
        debug_assert!(!self.crosses, "packets come from a path");
        let done_ns = by.core.run_softirq(self.now_ns);
        let is_plain = by.core.has_only(None) && by.outcome.is_plain();
        self.wait_for(by, is_plain, done_ns);
        is_plain
    }

    #[inline(never)]
    fn begin_thread(&mut self, by: &mut Processor, thread: u32, switches: bool, rested_ns: u64) {
        let (number, queues) = (by.number, &self.machines.queues);
        by.leave_idle(self.now_ns, rested_ns, || polls(queues, number));
        if switches {
            by.core.charge_bundle(Bundle::Switched, 1);
        }
        let app = &mut self.machines.apps[thread as usize];
        app.cpu = number;
        let is_plain = match app.locked.is_empty() {
            true => {
                let turn = app.next_turn();
                self.run_app(by, thread, turn)
            }
            false => self.run_locked(by, thread),
        };
        let done_ns = by
            .core
            .run_thread(self.now_ns, thread, &mut self.machines.threads);
        self.wait_for(by, is_plain, done_ns);
    }

    /// A thread's turn is over, and it has a socket: does its processor only idle then? It sleeps then, without the socket.
    #[inline(always)]
    pub(super) fn sleeps_then(&mut self, by: &Processor, thread: u32) -> bool {
        let is_plain = self.is_plain(&by.outcome)
            && by.core.has_only(Some(thread))
            && self.machines.deferred.is_empty();
        let app = &mut self.machines.apps[thread as usize];
        let is_plain = is_plain && !app.has_work();
        app.awake &= !is_plain;
        is_plain
    }

    /// On a machine with a veth pair, what is sent comes back to the same processor.
    #[inline(always)]
    fn is_plain(&self, outcome: &Outcome) -> bool {
        outcome.is_plain() && !(self.crosses && outcome.has_effects())
    }

    /// A job has begun that will be done at `done_ns`. If the processor then only idles there is no event for its end: whoever
    /// needs the processor next finds it done, or has it end by an event after all.
    #[inline(always)]
    fn wait_for(&mut self, by: &mut Processor, is_plain: bool, done_ns: u64) {
        if is_plain && !by.outcome.has_effects() {
            by.ends = self.events.reserve();
            return;
        }
        by.ends = if is_plain { PLAINLY } else { WITH_MORE };
        self.events.push_end(done_ns, by.number);
    }

    /// To be called before what belongs to a processor is looked at: its job may have ended without an event, or be about to.
    #[inline(always)]
    pub(super) fn touch(&mut self, cpu: u32) {
        if self.machines.cpus[cpu].ends != WITH_MORE {
            self.touch_listed(cpu);
        }
    }

    #[inline(never)]
    fn touch_listed(&mut self, cpu: u32) {
        let by = self.take_cpu(cpu);
        self.machines.cpus.put_back(by);
    }

    #[inline(always)]
    fn touch_ends(&mut self, by: &mut Processor) {
        match by.is_done(self.now_ns, &self.events) {
            true => by.rest(),
            false => self.end_with_more(by),
        }
    }

    /// Somebody needs a processor before the end of its job.
    #[inline(never)]
    fn end_with_more(&mut self, by: &mut Processor) {
        let machines = &mut self.machines;
        if let Some(thread) = by.core.thread() {
            machines.apps[thread as usize].awake = true;
        }
        match by.outcome.last {
            Last::Nothing => {}
            Last::Polled(queue) => {
                let of = &mut machines.queues[queue as usize];
                of.ring.polled = true;
                if by.at_once_pkts > 0 {
                    of.polled_pkts = by.at_once_pkts;
                    by.budget.begin(by.core.softirqs_since_ns());
                }
            }
            Last::Unlock(id) if self.conns.flows.has(id.flow()) => {
                self.conns.flows[id.flow() as usize].end(id.side()).is_owned = true;
            }
            Last::Unlock(_) => {}
        }
        let number = std::mem::replace(&mut by.ends, WITH_MORE);
        if number != PLAINLY {
            let target = Target::Cpu(by.number);
            self.events
                .push_reserved(by.core.until_ns(), number, target);
        }
    }

    /// Processors that poll without a pause have done so until now.
    pub(in crate::world) fn count_polling(&mut self) {
        for cpu in 0..self.machines.cpus.count() {
            let mut by = self.take_cpu(cpu);
            let polls = by.reception == Reception::BusyPoll && polls(&self.machines.queues, cpu);
            if polls && by.core.is_idle() {
                let rested_ns = by.core.rested_ns(self.now_ns);
                by.core.polled(self.now_ns, rested_ns);
            }
            self.machines.cpus.put_back(by);
        }
    }

    fn run_job(&mut self, by: &mut Processor, job: Job) {
        match job {
            Job::Up(up) => {
                by.climb(up.from, self.conns.slab.get(up.handle).packets.into());
                if self.is_owned(by, up.to) {
                    return self.defer(by, up.to, job, up.ends_poll);
                }
            }
            Job::Timer(of) if self.is_owned(by, of) => return self.defer(by, of, job, None),
            _ => {}
        }
        self.run_now(by, job);
    }

    fn run_now(&mut self, by: &mut Processor, job: Job) {
        match job {
            Job::Poll { queue, cause } => self.poll(by, queue, cause),
            Job::Up(up) => {
                let packets = self.conns.slab.get(up.handle).packets.into();
                self.enter_socket(by, up.to, (up.handle, packets), false);
                if let Some(queue) = up.ends_poll {
                    by.outcome.last = Last::Polled(queue);
                }
            }
            Job::Timer(id) => self.run_timer(by, id),
            Job::Transmit(id) => self.run_qdisc(by, id),
            Job::Report(queue) => self.run_report(by, queue),
            Job::Freed(id, bytes) => self.send_on(by, id, bytes),
        }
    }

    /// A thread has something to do: it goes on where it was, if that processor idles, or on another idle one.
    #[inline(never)]
    pub(super) fn wake_thread(&mut self, thread: u32) {
        let by = self.take_cpu(self.machines.apps[thread as usize].cpu);
        self.wake_on(by, thread);
    }

    /// The same of a thread that may have been on this processor, whose job ends plainly.
    #[inline(always)]
    pub(super) fn wake_from(&mut self, mut by: Taken, thread: u32) {
        let app = &mut self.machines.apps[thread as usize];
        if app.cpu != by.number || app.awake {
            by.rest();
            self.machines.cpus.put_back(by);
            return self.wake_thread(thread);
        }
        (app.waking, app.awake) = (false, true);
        by.rest();
        let rested_ns = by.core.begin_thread(self.now_ns, thread);
        self.begin_thread(&mut by, thread, true, rested_ns);
        self.machines.cpus.put_back(by);
    }

    #[inline(always)]
    fn wake_on(&mut self, mut by: Taken, thread: u32) {
        let app = &mut self.machines.apps[thread as usize];
        app.waking = false;
        if app.awake {
            return self.machines.cpus.put_back(by);
        }
        app.awake = true;
        if app.allowed.len() > 1 && !by.core.is_idle() {
            by = self.move_thread(thread, by);
        }
        if let Some(rested_ns) = by.core.begins_thread_at_once(self.now_ns, thread) {
            self.begin_thread(&mut by, thread, true, rested_ns);
        } else {
            by.core
                .wake(self.now_ns, thread, &mut self.machines.threads);
            self.kick(&mut by);
        }
        self.machines.cpus.put_back(by);
    }

    /// A thread's processor is busy: it moves to an idle one, if there is one where it may run.
    #[inline(never)]
    fn move_thread(&mut self, thread: u32, was_on: Taken) -> Taken {
        let machines = &mut self.machines;
        let other = machines.idle_place_of(thread, &was_on, self.now_ns, &self.events);
        let Some(other) = other else {
            return was_on;
        };
        machines.apps[thread as usize].cpu = other;
        machines.cpus.put_back(was_on);
        self.take_cpu(other)
    }

    // ---- who has a socket's lock ----------------------------------------------

    /// Has an application the socket's lock? To be asked before a job looks at an end or at its application's thread, since
    /// that one's processor may be done by now.
    #[inline(always)]
    pub(super) fn is_owned(&mut self, by: &Processor, id: EndpointId) -> bool {
        if !self.conns.flows.has(id.flow()) {
            return false;
        }
        self.touch_app(by, id);
        self.conns.flows[id.flow() as usize].end(id.side()).is_owned
    }

    /// The processor of an end's application is to be looked at by a job, of the same or of another one.
    #[inline(always)]
    pub(super) fn touch_app(&mut self, by: &Processor, id: EndpointId) {
        if by.has_others
            && let thread = self.conns.flows[id.flow() as usize].end(id.side()).thread
            && let cpu = self.machines.apps[thread as usize].cpu
            && cpu != by.number
        {
            self.touch(cpu);
        }
    }

    /// A job waits in the socket's own backlog (sk_add_backlog()), which is worked off when the lock is given back.
    pub(super) fn defer(
        &mut self,
        by: &mut Processor,
        id: EndpointId,
        job: Job,
        ends_poll: Option<u32>,
    ) {
        if let Some(queue) = ends_poll {
            by.outcome.last = Last::Polled(queue);
        }
        self.machines.deferred.push((id, job));
    }

    /// A socket's lock is to be given back: before that the application works off what waited for it (release_sock()).
    #[inline(always)]
    pub(super) fn unlock(&mut self, id: EndpointId) {
        let machines = &mut self.machines;
        let of_it = |(of, _): &mut (EndpointId, Job)| *of == id;
        if !self.conns.flows.has(id.flow()) {
            return machines.deferred.retain_mut(|job| !of_it(job));
        }
        let end = self.conns.flows[id.flow() as usize].end(id.side());
        let app = &mut machines.apps[end.thread as usize];
        if !machines.deferred.is_empty() {
            let waited = machines.deferred.extract_if(.., of_it);
            app.locked.extend(waited.map(|(_, job)| job));
        }
        end.is_owned = !app.locked.is_empty();
    }

    /// Works off what waited for a socket's lock. Returns whether the thread's processor only idles then.
    fn run_locked(&mut self, by: &mut Processor, thread: u32) -> bool {
        let app = &mut self.machines.apps[thread as usize];
        let Some(mut job) = app.locked.pop_front() else {
            return false;
        };
        let is_last = app.locked.is_empty();
        // Its poll was over when it began to wait.
        let of = match &mut job {
            Job::Up(up) => {
                up.ends_poll = None;
                up.to
            }
            Job::Timer(id) | Job::Freed(id, _) => *id,
            Job::Poll { .. } | Job::Transmit(_) | Job::Report(_) => return false,
        };
        self.run_now(by, job);
        if is_last {
            by.outcome.last = Last::Unlock(of);
        }
        // It has the socket until then.
        false
    }
}
