//! Hosts with processors: what is received, sent and computed takes its turn there and costs time.
//!
//! A job is run as a whole when its processor begins with it; what comes of it (packets, woken threads, jobs of other
//! processors) comes when the processor is done with it.

mod apps;
mod bills;
mod napi;
mod reception;
mod rows;
mod sent;
mod turns;
mod veth;

use std::collections::VecDeque;

use knee_host::{Cost, Done};
use knee_segment::{FIN, SYN};
use knee_tcp::Pacing;
use knee_units::NEVER;
use knee_units::rng::Stream;

use super::World;
use super::ends::{Ends, Turn};
use crate::event::{EndpointId, Side, Target};
use crate::flow::End;
use crate::job::{Effect, Job, Last};
use crate::machine::{Counts, MachineConf, Processor, Qdisc};

/// An application that waits for its processor is asked for, whatever the time.
const READY: u64 = 0;

impl World {
    /// A processor is done with what it did: that takes effect, and it turns to what is next.
    #[inline(never)]
    pub(super) fn on_cpu(&mut self, cpu: u32) {
        self.ends.touch(cpu);
        let machines = &mut self.ends.machines;
        let Some(done) = machines.cpus[cpu as usize].core.done(self.ends.now_ns) else {
            return self.ends.kick(cpu);
        };
        let of = machines.outcome_of(cpu, done);
        let (first, last) = of.come();
        if let Some(first) = first {
            match of.others() {
                None => self.effect(cpu, first),
                Some(others) => self.effects(cpu, done, first, others),
            }
        }
        match last {
            Last::Nothing => {}
            Last::Polled(queue) => self.ends.end_poll(queue),
            Last::Unlock(id) => self.ends.unlock(id),
        }
        if !self.ends.machines.rests(cpu, done) {
            self.ends.kick(cpu);
        }
    }

    #[inline(never)]
    fn effects(&mut self, cpu: u32, done: Done, first: Effect, mut others: Vec<Effect>) {
        for &effect in std::iter::once(&first).chain(&others) {
            self.effect(cpu, effect);
        }
        others.clear();
        let machines = &mut self.ends.machines;
        machines.outcome_of(cpu, done).give_back(others);
    }

    #[inline(always)]
    fn effect(&mut self, cpu: u32, effect: Effect) {
        match effect {
            Effect::Sent(from, handle, Some(departure_ns)) => {
                self.ends.flows[from.flow() as usize].end(from.side()).cpu = cpu;
                // Its time may have passed while the processor was busy.
                self.hold(from, handle, departure_ns.max(self.ends.now_ns));
            }
            Effect::Sent(from, handle, None) | Effect::Released(from, handle) => {
                self.ends.flows[from.flow() as usize].end(from.side()).cpu = cpu;
                if self.ends.types[from.side() as usize].reports_sent() {
                    self.ends.await_report(cpu, from, handle);
                }
                self.leave_stack(from, handle);
            }
            Effect::Wake(thread) => self.ends.wake_thread(thread),
            Effect::Raise(cpu, job) => self.ends.raise(cpu, job),
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

    #[inline]
    fn counts_of(&mut self, cpu: u32) -> &mut Counts {
        &mut self.machines.cpus[cpu as usize].counts
    }

    /// Charges the job at work on a processor.
    #[inline]
    fn charge(&mut self, cpu: u32, cost: Cost, count: u64) {
        self.machines.cpus[cpu as usize].core.charge(cost, count);
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
            end.tx_queue = self.machines.tx_queue_of(machine, number);
            end.tcp.rx.read_later();
            if of_type.tcp.settings.pacing != Pacing::Fq {
                end.tcp.set_timer_rule(of_type.timer_rule);
            }
        }
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
        let (at, mut turn) = self.begin_on(id);
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
        let machine = self.machines.cpus[cpu as usize].machine;
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

    /// An end has its turn in a job, in which it may wake its application's thread.
    #[inline(always)]
    fn begin_on(&mut self, id: EndpointId) -> (At, Turn) {
        let thread = self.flows[id.flow() as usize].ends[id.side() as usize].thread;
        self.touch(self.machines.apps[thread as usize].cpu);
        self.begin_at_work(id)
    }

    /// The same while its thread is awake.
    #[inline(always)]
    fn begin_at_work(&mut self, id: EndpointId) -> (At, Turn) {
        let (out, turns, sends) = (self.out.len(), self.turns.len(), self.sends);
        let turn = self.begin(id);
        let (arms, _) = turn.flow.ends[id.side() as usize].tcp.pacing_timer_counts();
        let at = At {
            out,
            turns,
            sends,
            arms,
        };
        (at, turn)
    }

    /// The end's turn is over: what it sent leaves when the job is done.
    #[inline(always)]
    fn end_on(&mut self, cpu: u32, at: At, mut turn: Turn) {
        let id = turn.id;
        let (arms, _) = turn.flow.end(id.side()).tcp.pacing_timer_counts();
        if arms > at.arms {
            self.charge(cpu, Cost::TimerArm, arms - at.arms);
            self.counts_of(cpu).pacing_timer_arms += arms - at.arms;
        }
        if self.out.len() > at.out {
            self.sent_on(cpu, at.out, &mut turn);
        }
        self.turns.truncate(at.turns);
        self.sends = at.sends;
        self.end(turn);
    }

    /// An end has sent in its turn; `first`: where that begins.
    #[inline(never)]
    fn sent_on(&mut self, cpu: u32, first: usize, turn: &mut Turn) {
        let id = turn.id;
        if let Some(queue) = self.machines.xps_queue_of(cpu, id.flow()) {
            self.change_tx_queue(queue, first, turn);
        }
        for place in first..self.out.len() {
            let handle = self.out[place];
            let segment = self.slab.get(handle);
            turn.flow.under_way += u32::from(segment.packets);
            let departure_ns = segment.departure_ns;
            let held = (departure_ns > self.now_ns).then_some(departure_ns);
            self.charge_sending(cpu, handle, turn);
            let coming = &mut self.machines.coming;
            coming.push(Effect::Sent(id, handle, held));
        }
        self.out.truncate(first);
    }

    fn charge_sending(&mut self, cpu: u32, handle: u32, turn: &mut Turn) {
        let Ends {
            machines, types, ..
        } = self;
        let segment = self.slab.get(handle);
        let (payload_bytes, packets) = (segment.payload_bytes, u64::from(segment.packets));
        let is_ack = payload_bytes == 0 && segment.flags & (SYN | FIN) == 0;
        let Processor {
            core: of,
            counts,
            machine,
            ..
        } = &mut machines.cpus[cpu as usize];
        let machine = *machine;
        let Some(conf) = &types[machines.list[machine as usize].side].machine else {
            return;
        };
        of.charge(Cost::SkbAlloc, 1);
        match is_ack {
            true => {
                counts.acks_sent += 1;
                of.charge(Cost::AckSend, 1);
            }
            false => {
                counts.data_skbs_sent += u64::from(payload_bytes > 0);
                counts.data_segments_sent += packets;
                counts.data_bytes_sent += u64::from(payload_bytes);
                of.charge(Cost::TcpSend, 1);
            }
        }
        let is_first = turn.flow.end(turn.id.side()).egress.is_empty();
        let queued = !is_first || segment.departure_ns > self.now_ns;
        match conf.qdisc {
            Qdisc::None => {}
            Qdisc::Fifo => of.charge(Cost::Qdisc, 1),
            Qdisc::Fq { fast_path } => {
                let op = match fast_path && !queued {
                    true => Cost::FqFast,
                    false => Cost::Fq,
                };
                let queue = turn.flow.end(turn.id.side()).tx_queue;
                let leaf = &mut machines.tx[queue as usize];
                let of = &mut machines.cpus[cpu as usize].core;
                let waits_ns = leaf.waits_ns(cpu, self.now_ns + of.job_ns());
                of.charge_ns(Cost::QdiscLock, waits_ns);
                let from_ns = self.now_ns + of.job_ns();
                of.charge(op, 1);
                leaf.lock(cpu, from_ns, self.now_ns + of.job_ns());
            }
        }
        let of = &mut machines.cpus[cpu as usize].core;
        if queued {
            // Its transmission is charged when the qdisc lets it go.
            if is_first {
                of.charge(Cost::TimerArm, 1);
            }
            return;
        }
        of.charge(Cost::Xmit, 1);
        if conf.tx_coalesce_ns == 0 || payload_bytes == 0 {
            of.charge(Cost::Completion, 1);
        }
        if conf.splits {
            of.charge(Cost::Segment, packets - 1);
        }
        if is_ack {
            of.charge(Cost::SkbFree, 1);
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
