//! Hosts with processors: what is received, sent and computed takes its turn there and costs time.
//!
//! A job is run as a whole when its processor begins with it; what comes of it (packets, woken threads, jobs of other
//! processors) comes when the processor is done with it.

mod apps;
mod reception;
mod rows;
mod sent;

use std::collections::VecDeque;

use knee_host::{Cost, Costs, Done, Next};
use knee_scenario::Reception;
use knee_segment::{FIN, SYN};
use knee_tcp::Pacing;
use knee_units::NEVER;
use knee_units::rng::Stream;

use super::World;
use super::ends::{Ends, Turn};
use crate::event::{EndpointId, Side, Target};
use crate::flow::End;
use crate::machine::{Counts, Effect, Job, MachineConf, Qdisc, Up};

/// An application that waits for its processor is asked for, whatever the time.
const READY: u64 = 0;

impl World {
    /// A processor is done with what it did: that takes effect, and it turns to what is next.
    pub(super) fn on_cpu(&mut self, cpu: u32) {
        let now_ns = self.ends.now_ns;
        let machines = &mut self.ends.machines;
        let of = match machines.cpus[cpu as usize].done(now_ns) {
            Some(Done::Softirq) => Some(&mut machines.effects[cpu as usize]),
            Some(Done::Thread(thread)) => Some(&mut machines.apps[thread as usize].effects),
            None => None,
        };
        if let Some(of) = of {
            let mut effects = std::mem::take(of);
            for effect in effects.drain(..) {
                self.effect(cpu, effect);
            }
            self.ends.machines.spare.push(effects);
        }
        self.ends.kick(cpu);
    }

    fn effect(&mut self, cpu: u32, effect: Effect) {
        match effect {
            Effect::Sent(from, handle, Some(departure_ns)) => {
                self.ends.flows[from.flow() as usize].end(from.side()).cpu = cpu;
                // Its time may have passed while the processor was busy.
                self.hold(from, handle, departure_ns.max(self.ends.now_ns));
            }
            Effect::Sent(from, handle, None) | Effect::Released(from, handle) => {
                self.ends.flows[from.flow() as usize].end(from.side()).cpu = cpu;
                self.ends.await_report(cpu, from, handle);
                self.leave_stack(from, handle);
            }
            Effect::Wake(thread) => self.ends.wake_thread(thread),
            Effect::Raise(cpu, job) => self.ends.raise(cpu, job),
            Effect::Polled(queue) => self.ends.end_poll(queue),
            Effect::Unlock(id) => self.ends.unlock(id),
        }
    }
}

impl Ends {
    #[inline]
    pub(super) fn has_machine(&self, side: Side) -> bool {
        self.types[side as usize].machine.is_some()
    }

    fn conf_of(&self, machine: u32) -> &MachineConf {
        let side = self.machines.list[machine as usize].side;
        let conf = self.types[side].machine.as_ref();
        conf.expect("it is of a side that has machines")
    }

    fn counts_of(&mut self, cpu: u32) -> &mut Counts {
        let machine = self.machines.of_cpu[cpu as usize];
        &mut self.machines.list[machine as usize].counts
    }

    /// Charges the job at work on a processor.
    #[inline]
    fn charge(&mut self, cpu: u32, cost: Cost, count: u64) {
        let machine = self.machines.of_cpu[cpu as usize];
        let side = self.machines.list[machine as usize].side;
        if let Some(conf) = &self.types[side].machine {
            self.machines.bill.charge(&conf.costs, cost, count);
        }
    }

    /// The machines of both sides, before any connection.
    pub(super) fn add_machines(&mut self) {
        let Ends {
            types, machines, ..
        } = self;
        let seed = self.cell.rep_seed(self.rep);
        let stream = |component: &str| Stream::new(seed, component);
        let confs = [0, 1].map(|side: usize| types[side].machine.as_ref());
        for (side, conf) in confs.into_iter().enumerate() {
            let Some(conf) = conf else {
                continue;
            };
            if self.crosses && side == Side::Receiver as usize {
                // They are on the senders' machines.
                machines.of_host[side] = machines.of_host[0].clone();
                continue;
            }
            let mut apps = [None; 2];
            apps[side] = Some(conf);
            for _ in 0..types[side].hosts.unwrap_or(1) {
                let on_it = if self.crosses { confs } else { apps };
                let number = machines.add(side, conf, on_it, self.boot_ns, &stream);
                machines.of_host[side].push(number);
            }
        }
    }

    /// A connection's ends find their places on machines, where they have such.
    pub(super) fn settle_in(&self, number: u32, hosts: [u32; 2], ends: [&mut End; 2]) {
        for (side, end) in ends.into_iter().enumerate() {
            let of_type = &self.types[side];
            let Some(conf) = &of_type.machine else {
                continue;
            };
            let machine = self.machines.of_host[side][hosts[side] as usize];
            let shared = of_type.hosts.unwrap_or(1);
            let first_thread = self.machines.list[machine as usize].first_thread[side];
            end.thread = first_thread + number / shared % conf.threads;
            end.cpu = self.machines.apps[end.thread as usize].cpu;
            end.tcp.rx.read_later();
            if of_type.tcp.settings.pacing != Pacing::Fq {
                end.tcp.set_timer_rule(of_type.timer_rule);
            }
        }
    }

    // ---- turns of processors ----------------------------------------------

    /// A processor has a softirq's job.
    pub(super) fn raise(&mut self, cpu: u32, job: Job) {
        self.machines.cpus[cpu as usize].raise(job);
        self.kick(cpu);
    }

    /// A processor may have something to do.
    fn kick(&mut self, cpu: u32) {
        loop {
            let now_ns = self.now_ns;
            let machines = &mut self.machines;
            let of = &mut machines.cpus[cpu as usize];
            let rested_ns = of.rested_ns(now_ns, self.boot_ns);
            let done_ns = match of.next(now_ns, &mut machines.threads) {
                Next::Idle | Next::Busy => return,
                Next::Until(at_ns) => at_ns,
                Next::Softirq(job) => {
                    machines.bill = Default::default();
                    self.leave_idle(cpu, rested_ns);
                    self.run_job(cpu, job);
                    let machines = &mut self.machines;
                    machines.effects[cpu as usize] = machines.take_coming();
                    machines.cpus[cpu as usize].run_softirq(now_ns, &machines.bill)
                }
                Next::Thread { thread, switches } => {
                    let app = &mut machines.apps[thread as usize];
                    if app.ready.is_empty() && app.locked.is_empty() {
                        app.awake = false;
                        of.sleep(thread);
                        continue;
                    }
                    app.cpu = cpu;
                    machines.bill = Default::default();
                    self.leave_idle(cpu, rested_ns);
                    self.charge(cpu, Cost::Switch, switches.into());
                    self.counts_of(cpu).context_switches += u64::from(switches);
                    match self.machines.apps[thread as usize].locked.is_empty() {
                        true => self.run_app(cpu, thread),
                        false => self.run_locked(cpu, thread),
                    }
                    let machines = &mut self.machines;
                    machines.apps[thread as usize].effects = machines.take_coming();
                    let of = &mut machines.cpus[cpu as usize];
                    of.run_thread(now_ns, thread, &mut machines.threads, &machines.bill)
                }
            };
            return self.events.push(done_ns, Target::Cpu(cpu));
        }
    }

    /// A processor that rested so long turns to something. One that polls has not rested: it has polled all the time.
    fn leave_idle(&mut self, cpu: u32, rested_ns: u64) {
        if rested_ns == 0 {
            return;
        }
        let machine = self.machines.of_cpu[cpu as usize];
        let polls = self.conf_of(machine).reception == Reception::BusyPoll
            && self.machines.queues.iter().any(|queue| queue.cpu == cpu);
        if !polls {
            return self.charge(cpu, Cost::IdleExit, 1);
        }
        self.machines.cpus[cpu as usize].polled(rested_ns);
    }

    fn run_job(&mut self, cpu: u32, job: Job) {
        if let Job::Up(up) = &job {
            self.climb(cpu, up);
        }
        let (Job::Up(Up { to: of, .. }) | Job::Timer(of)) = job else {
            return self.run_now(cpu, job);
        };
        if self.flows.has(of.flow()) && self.flows[of.flow() as usize].end(of.side()).is_owned {
            // The socket's own backlog (sk_add_backlog()), which is worked off when its lock is given back.
            if let Job::Up(Up {
                ends_poll: Some(queue),
                ..
            }) = job
            {
                self.machines.coming.push(Effect::Polled(queue));
            }
            return self.machines.deferred.push((of, job));
        }
        self.run_now(cpu, job);
    }

    /// A socket's lock is to be given back: before that the application works off what waited for it (release_sock()).
    fn unlock(&mut self, id: EndpointId) {
        let machines = &mut self.machines;
        let deferred = &mut machines.deferred;
        let of_it = deferred.extract_if(.., |(of, _)| *of == id);
        let of_it = of_it.map(|(_, job)| job);
        if !self.flows.has(id.flow()) {
            return of_it.for_each(drop);
        }
        let end = self.flows[id.flow() as usize].end(id.side());
        let app = &mut machines.apps[end.thread as usize];
        app.locked.extend(of_it);
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
            self.machines.coming.push(Effect::Unlock(of));
        }
    }

    fn run_now(&mut self, cpu: u32, job: Job) {
        match job {
            Job::Poll { queue, interrupts } => self.poll(cpu, queue, interrupts),
            Job::Up(up) => self.enter_socket(cpu, up),
            Job::Timer(id) => self.run_timer(cpu, id),
            Job::Transmit(id) => self.run_qdisc(cpu, id),
            Job::Report(machine) => self.run_report(cpu, machine),
            Job::Freed(id, bytes) => self.send_on(cpu, id, bytes),
        }
    }

    fn wake_thread(&mut self, thread: u32) {
        let cpu = self.machines.place_of(thread);
        let machines = &mut self.machines;
        let app = &mut machines.apps[thread as usize];
        app.waking = false;
        if app.awake {
            return;
        }
        (app.awake, app.cpu) = (true, cpu);
        machines.cpus[cpu as usize].wake(self.now_ns, thread, &mut machines.threads);
        self.kick(cpu);
    }

    // ---- timers and the qdisc -------------------------------------------------

    /// A timer of an end has fired, on the processor that armed it.
    pub(super) fn fire_timer(&mut self, id: EndpointId) {
        let end = self.flows[id.flow() as usize].end(id.side());
        // Until it has run it is not due again.
        end.armed_ns = 0;
        let cpu = end.cpu;
        self.raise(cpu, Job::Timer(id));
    }

    fn run_timer(&mut self, cpu: u32, id: EndpointId) {
        if !self.flows.has(id.flow()) {
            return;
        }
        let at = self.before(id);
        let mut turn = self.begin(id);
        let end = turn.flow.end(id.side());
        end.armed_ns = NEVER;
        let (_, fires) = end.tcp.pacing_timer_counts();
        self.call(&mut turn, |tcp, cx| tcp.on_timer(cx));
        let (_, after) = turn.flow.end(id.side()).tcp.pacing_timer_counts();
        let fired = after - fires;
        self.counts_of(cpu).pacing_timer_fires += fired;
        self.charge(cpu, Cost::TimerFire, fired);
        // The others are the wheel's, which a tick runs anyway.
        self.charge(cpu, Cost::Softirq, 1);
        self.charge(cpu, Cost::SocketLock, 1);
        if self.has_work(&mut turn) {
            self.make_ready(cpu, &mut turn);
        }
        self.end_on(cpu, at, turn);
    }

    /// The qdisc's timer has fired, on the processor that armed it.
    pub(super) fn fire_qdisc(&mut self, id: EndpointId) {
        let cpu = self.flows[id.flow() as usize].end(id.side()).cpu;
        self.raise(cpu, Job::Transmit(id));
    }

    fn run_qdisc(&mut self, cpu: u32, id: EndpointId) {
        self.charge(cpu, Cost::TimerFire, 1);
        self.charge(cpu, Cost::Softirq, 1);
        self.counts_of(cpu).qdisc_timer_fires += 1;
        let now_ns = self.now_ns;
        let machine = self.machines.of_cpu[cpu as usize];
        let reports_at_once = self.conf_of(machine).tx_coalesce_ns == 0;
        let mut bytes = 0;
        while let Some(&(departure_ns, handle)) = self.egress_of(id).front() {
            if departure_ns > now_ns {
                let transmit = Target::Work(id, crate::event::Work::Transmit);
                self.events.push(departure_ns, transmit);
                self.charge(cpu, Cost::TimerArm, 1);
                break;
            }
            self.egress_of(id).pop_front();
            self.machines.coming.push(Effect::Released(id, handle));
            self.charge(cpu, Cost::Xmit, 1);
            if reports_at_once {
                bytes += self.slab.get(handle).ip_bytes();
                self.charge(cpu, Cost::Completion, 1);
            }
        }
        self.free(cpu, id, bytes);
    }

    fn egress_of(&mut self, id: EndpointId) -> &mut VecDeque<(u64, u32)> {
        &mut self.flows[id.flow() as usize].end(id.side()).egress
    }

    // ---- what every job does --------------------------------------------------

    /// Before an end has its turn in a job.
    fn before(&self, id: EndpointId) -> At {
        let end = &self.flows[id.flow() as usize].ends[id.side() as usize];
        At {
            out: self.out.len(),
            turns: self.turns.len(),
            sends: self.sends,
            arms: end.tcp.pacing_timer_counts().0,
        }
    }

    /// The end's turn is over: what it sent leaves when the job is done.
    fn end_on(&mut self, cpu: u32, at: At, mut turn: Turn) {
        let id = turn.id;
        let (arms, _) = turn.flow.end(id.side()).tcp.pacing_timer_counts();
        self.charge(cpu, Cost::TimerArm, arms - at.arms);
        self.counts_of(cpu).pacing_timer_arms += arms - at.arms;
        let mut out = std::mem::take(&mut self.out);
        for handle in out.drain(at.out..) {
            turn.flow.under_way += u32::from(self.slab.get(handle).packets);
            self.charge_sending(cpu, handle, &mut turn);
            let departure_ns = self.slab.get(handle).departure_ns;
            let held = (departure_ns > self.now_ns).then_some(departure_ns);
            self.machines.coming.push(Effect::Sent(id, handle, held));
        }
        self.out = out;
        self.turns.truncate(at.turns);
        self.sends = at.sends;
        self.end(turn);
    }

    fn charge_sending(&mut self, cpu: u32, handle: u32, turn: &mut Turn) {
        let segment = self.slab.get(handle);
        let (payload_bytes, packets) = (segment.payload_bytes, u64::from(segment.packets));
        let waits = segment.departure_ns > self.now_ns;
        let is_ack = payload_bytes == 0 && segment.flags & (SYN | FIN) == 0;
        let machine = self.machines.of_cpu[cpu as usize];
        let of = &mut self.machines.list[machine as usize];
        match is_ack {
            true => of.counts.acks_sent += 1,
            false => {
                of.counts.data_skbs_sent += u64::from(payload_bytes > 0);
                of.counts.data_segments_sent += packets;
                of.counts.data_bytes_sent += u64::from(payload_bytes);
            }
        }
        let Some(conf) = &self.types[of.side].machine else {
            return;
        };
        let (costs, bill): (&Costs, _) = (&conf.costs, &mut self.machines.bill);
        bill.charge(costs, Cost::SkbAlloc, 1);
        match is_ack {
            true => bill.charge(costs, Cost::AckSend, 1),
            false => bill.charge(costs, Cost::TcpSend, 1),
        }
        let queued = waits || !turn.flow.end(turn.id.side()).egress.is_empty();
        match conf.qdisc {
            Qdisc::None => {}
            Qdisc::Fifo => bill.charge(costs, Cost::Qdisc, 1),
            Qdisc::Fq { fast_path: true } if !queued => bill.charge(costs, Cost::FqFast, 1),
            Qdisc::Fq { .. } => bill.charge(costs, Cost::Fq, 1),
        }
        if queued {
            // Its transmission is charged when the qdisc lets it go.
            if turn.flow.end(turn.id.side()).egress.is_empty() {
                bill.charge(costs, Cost::TimerArm, 1);
            }
            return;
        }
        bill.charge(costs, Cost::Xmit, 1);
        if conf.tx_coalesce_ns == 0 || payload_bytes == 0 {
            bill.charge(costs, Cost::Completion, 1);
        }
        if conf.splits {
            bill.charge(costs, Cost::Segment, packets - 1);
        }
        if is_ack {
            bill.charge(costs, Cost::SkbFree, 1);
        }
    }
}

/// Where lists stood before a job.
struct At {
    out: usize,
    turns: usize,
    sends: EndpointId,
    arms: u64,
}
