//! Hosts with processors: what is received, sent and computed takes its turn there and costs time.
//!
//! A job is run as a whole when its processor begins with it; what comes of it (packets, woken threads, jobs of other
//! processors) comes when the processor is done with it.

mod apps;
mod bills;
mod completion;
mod napi;
mod reception;
mod rows;
mod saturation;
mod turns;
mod veth;

use std::collections::VecDeque;

use knee_host::Cost;
use knee_tcp::segment::{FIN, SYN};
use knee_units::NEVER;
use knee_units::rng::Stream;

use super::World;
use super::ends::Turn;
use crate::event::{EndpointId, Side, Target};
use crate::flow::{End, Flow};
use crate::job::{Effect, Job, Last};
use crate::machine::MachineConf;
use crate::processor::{PLAINLY, Processor, Taken};

/// An application that waits for its processor is asked for, whatever the time.
const READY: u64 = 0;

impl World {
    /// A processor's job ends before all else that is to come.
    #[inline(always)]
    pub(super) fn end_first_job(&mut self, cpu: u32) {
        let mut by = self.machines.cpus.take(cpu);
        // It may have been interrupted, and be at another job since.
        if by.ends != PLAINLY || by.core.until_ns() > self.now_ns {
            self.machines.cpus.put_back(by);
            return self.end_job(cpu);
        }
        match by.outcome.take_wake() {
            Some(thread) => self.wake_from(by, thread),
            None => self.end_plainly(by),
        }
    }

    /// A processor idles after a job that wakes nobody: what it sent goes on.
    #[inline(never)]
    fn end_plainly(&mut self, mut by: Taken) {
        by.rest();
        let cpu = by.number;
        if let Some((from, handle, held)) = by.outcome.take_sent() {
            // A machine's only processor is the one that worked for it last.
            let has_others = by.has_others;
            self.machines.cpus.put_back(by);
            if has_others {
                self.worked_for(cpu, from);
            }
            return self.sent(cpu, from, handle, held);
        }
        let effect = by.outcome.take_first();
        self.machines.cpus.put_back(by);
        if let Some(effect) = effect {
            self.effects(cpu, effect, Vec::new());
        }
    }

    /// A processor is done with what it did: that takes effect, and it turns to what is next.
    #[inline(never)]
    pub(super) fn end_job(&mut self, cpu: u32) {
        self.touch(cpu);
        let by = &mut self.machines.cpus[cpu];
        let Some(done) = by.core.done(self.now_ns) else {
            return self.kick_at(cpu);
        };
        let (first, last) = by.outcome.come();
        if let Some(first) = first {
            let others = by.outcome.others().unwrap_or_default();
            self.effects(cpu, first, others);
        }
        match last {
            Last::Nothing => {}
            Last::Polled(queue) => self.end_poll(cpu, queue),
            Last::Unlock(id) => self.unlock(id),
        }
        self.go_on_from(cpu, done);
    }

    #[inline(never)]
    fn effects(&mut self, cpu: u32, first: Effect, mut others: Vec<Effect>) {
        for &effect in std::iter::once(&first).chain(&others) {
            self.effect(cpu, effect);
        }
        others.clear();
        self.machines.cpus[cpu].outcome.give_back(others);
    }

    #[inline(always)]
    fn effect(&mut self, cpu: u32, effect: Effect) {
        let (from, handle, held) = match effect {
            Effect::Sent(from, handle, held) => (from, handle, held),
            Effect::Released(from, handle) => (from, handle, None),
            Effect::Wake(thread) => return self.wake_thread(thread),
            Effect::Raise(cpu, job) => return self.raise(cpu, job),
        };
        self.worked_for(cpu, from);
        self.sent(cpu, from, handle, held);
    }

    /// A packet leaves TCP, for a qdisc that holds it back until a time, if there is one, or for the NIC.
    #[inline(always)]
    fn sent(&mut self, cpu: u32, from: EndpointId, handle: u32, held: Option<u64>) {
        if let Some(departure_ns) = held {
            // Its time may have passed while the processor was busy.
            return self.hold(from, handle, departure_ns.max(self.now_ns));
        }
        if self.types[from.side() as usize].reports_sent() {
            self.await_report(cpu, from, handle);
        }
        self.leave_stack(from, handle);
    }

    #[inline]
    pub(super) fn has_machine(&self, side: Side) -> bool {
        self.types[side as usize].machine.is_some()
    }

    /// The processor is the last that worked for an end.
    fn worked_for(&mut self, cpu: u32, id: EndpointId) {
        self.conns.flows[id.flow() as usize].end(id.side()).cpu = cpu;
    }

    fn conf_of(&self, machine: u32) -> &MachineConf {
        let side = self.machines.list[machine as usize].side;
        let conf = self.types[side as usize].machine.as_ref();
        conf.expect("it is of a side that has machines")
    }

    /// The machines of both sides, before any connection.
    pub(super) fn add_machines(&mut self) {
        let World {
            types, machines, ..
        } = self;
        let seed = self.cell.rep_seed(self.rep);
        let stream = |component: &str| Stream::new(seed, component);
        let confs = [0, 1].map(|side: usize| types[side].machine.as_ref());
        for side in [Side::Sender, Side::Receiver] {
            let at = side as usize;
            let Some(conf) = confs[at] else {
                continue;
            };
            if self.crosses && side == Side::Receiver {
                // They are on the senders' machines.
                machines.of_host[at] = machines.of_host[0].clone();
                continue;
            }
            let mut apps = [None; 2];
            apps[at] = Some(conf);
            for _ in 0..types[at].hosts.unwrap_or(1) {
                let on_it = if self.crosses { confs } else { apps };
                let number = machines.add(side, conf, on_it, self.boot_ns, &stream);
                machines.of_host[at].push(number);
            }
        }
    }

    /// A connection's ends find their places on machines, where they have such.
    pub(super) fn settle_in(&self, number: u32, hosts: [u32; 2], ends: [&mut End; 2]) {
        for (at, end) in [Side::Sender, Side::Receiver].into_iter().zip(ends) {
            let side = at as usize;
            let of_type = &self.types[side];
            let Some(conf) = &of_type.machine else {
                continue;
            };
            let machine = self.machines.of_host[side][hosts[side] as usize];
            let shared = of_type.hosts.unwrap_or(1);
            let first_thread = self.machines.list[machine as usize].first_thread[side];
            end.thread = first_thread + number / shared % conf.threads;
            end.cpu = self.machines.apps[end.thread as usize].cpu;
            end.rx_queue = self.machines.rx_queue_of(machine, at, number);
            end.tx_queue = self.machines.tx_queue_of(machine, number);
            end.tcp.rx.read_later();
        }
    }

    // ---- timers and the qdisc -------------------------------------------------

    /// A timer of an end has fired, on the processor that armed it.
    pub(super) fn fire_timer(&mut self, id: EndpointId) {
        let end = self.conns.flows[id.flow() as usize].end(id.side());
        // Until it has run it is not due again.
        end.armed_ns = 0;
        let cpu = end.cpu;
        self.raise(cpu, Job::Timer(id));
    }

    fn run_timer(&mut self, by: &mut Processor, id: EndpointId) {
        if !self.conns.flows.has(id.flow()) {
            return;
        }
        let (first, mut turn) = self.begin_on(id);
        let end = turn.flow.end(id.side());
        end.armed_ns = NEVER;
        self.call(&mut turn, |tcp, cx| tcp.on_timer(cx));
        let [_, fires] = turn.flow.end(id.side()).tcp.pacing_timer_counts();
        let fired = std::mem::take(fires);
        by.counts.pacing_timer_fires += fired;
        by.core.charge(Cost::TimerFire, fired);
        // The others are the wheel's, which a tick runs anyway.
        by.core.charge(Cost::Softirq, 1);
        by.core.charge(Cost::SocketLock, 1);
        if self.has_work(id, &mut turn.flow) {
            self.make_ready(by, id, &mut turn.flow);
        }
        self.end_on(by, first, turn);
    }

    /// The qdisc's timer has fired, on the processor that armed it.
    pub(super) fn fire_qdisc(&mut self, id: EndpointId) {
        let cpu = self.conns.flows[id.flow() as usize].end(id.side()).cpu;
        self.raise(cpu, Job::Transmit(id));
    }

    fn run_qdisc(&mut self, by: &mut Processor, id: EndpointId) {
        by.core.charge(Cost::TimerFire, 1);
        by.core.charge(Cost::Softirq, 1);
        by.counts.qdisc_timer_fires += 1;
        let now_ns = self.now_ns;
        let reports_at_once = self.conf_of(by.machine).tx_coalesce_ns == 0;
        let mut bytes = 0;
        while let Some(&(departure_ns, handle)) = self.egress_of(id).front() {
            if departure_ns > now_ns {
                let transmit = Target::Work(id, crate::event::Work::Transmit);
                self.events.push(departure_ns, transmit);
                by.core.charge(Cost::TimerArm, 1);
                break;
            }
            self.egress_of(id).pop_front();
            by.outcome.push(Effect::Released(id, handle));
            by.core.charge(Cost::Xmit, 1);
            if reports_at_once {
                bytes += self.conns.slab.get(handle).ip_bytes();
                by.core.charge(Cost::Completion, 1);
            }
        }
        self.free(by, id, bytes);
    }

    fn egress_of(&mut self, id: EndpointId) -> &mut VecDeque<(u64, u32)> {
        &mut self.conns.flows[id.flow() as usize].end(id.side()).egress
    }

    // ---- what every job does --------------------------------------------------

    /// An end has its turn in a job, in which it may wake its application's thread.
    #[inline(always)]
    fn begin_on(&mut self, id: EndpointId) -> (usize, Turn) {
        let flow = self.conns.flows.remove(id.flow());
        (self.outbox.handles.len(), self.begin_with(id, flow))
    }

    /// The end's turn is over: what it sent, from `first` on, leaves when the job is done.
    #[inline(always)]
    fn end_on(&mut self, by: &mut Processor, first: usize, mut turn: Turn) {
        self.take_sent_on(by, first, &mut turn);
        self.end(turn);
    }

    #[inline(always)]
    fn take_sent_on(&mut self, by: &mut Processor, first: usize, turn: &mut Turn) {
        let [arms, _] = turn.flow.end(turn.id.side()).tcp.pacing_timer_counts();
        if *arms > 0 {
            let arms = std::mem::take(arms);
            by.core.charge(Cost::TimerArm, arms);
            by.counts.pacing_timer_arms += arms;
        }
        if self.outbox.handles.len() > first {
            self.sent_on(by, first, turn.id, &mut turn.flow);
        }
    }

    /// An end has sent in its turn; `first`: where that begins.
    #[inline(never)]
    fn sent_on(&mut self, by: &mut Processor, first: usize, id: EndpointId, flow: &mut Flow) {
        if by.xps {
            let queue = self.machines.xps_queue_of(by, id.flow());
            self.change_tx_queue(queue, first, id, flow);
        }
        // Most of the time it is one packet.
        let last = self.outbox.handles.len() - 1;
        for place in first..last {
            self.sent_before(by, place, id, flow);
        }
        self.sent_one(by, last, id, flow);
        self.outbox.handles.truncate(first);
    }

    #[inline(never)]
    fn sent_before(&mut self, by: &mut Processor, place: usize, id: EndpointId, flow: &mut Flow) {
        self.sent_one(by, place, id, flow);
    }

    /// The job pays for a packet, which waits until it is done.
    #[inline(always)]
    fn sent_one(&mut self, by: &mut Processor, place: usize, id: EndpointId, flow: &mut Flow) {
        let handle = self.outbox.handles[place];
        let segment = self.conns.slab.get(handle);
        flow.under_way += u32::from(segment.packets);
        // The qdisc takes it when the job is done: until then it has what it had.
        let end = flow.end(id.side());
        let is_first = end.egress.is_empty();
        let is_held = segment.departure_ns > self.now_ns;
        let is_pure_ack = segment.payload_bytes == 0 && !segment.has(SYN | FIN);
        match by.sent_ack {
            Some(bundle) if is_pure_ack && is_first && !is_held => by.core.charge_bundle(bundle, 1),
            _ => {
                let conf = self.types[by.side as usize].machine.as_ref();
                let conf = conf.expect("it is of a side that has machines");
                let tx = (&mut self.machines.tx[..], end.tx_queue);
                by.charge_sending(conf, tx, segment, (is_first, is_held), self.now_ns);
            }
        }
        let held = is_held.then_some(segment.departure_ns);
        by.outcome.push(Effect::Sent(id, handle, held));
    }
}
