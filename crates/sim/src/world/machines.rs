//! Hosts with processors: what is received, sent and computed takes its turn there and costs time.
//!
//! A job is run as a whole when its processor begins with it; what comes of it (packets, woken threads, jobs of other
//! processors) comes when the processor is done with it.

use knee_host::{COSTS, Class, Cost, Costs, Done, Next, Spent, hash, pick};
use knee_path::pipe::Passing;
use knee_scenario::{GroTable, Reception};
use knee_tables::CpuSample;
use knee_tcp::segment::{FIN, SYN, Segment};
use knee_units::NEVER;
use knee_units::rng::Stream;

use super::World;
use super::ends::{Ends, Turn};
use crate::event::{EndpointId, Side, Target};
use crate::flow::End;
use crate::gro::Batch;
use crate::machine::{Came, Counts, Effect, Job, MachineConf, NAPI_WEIGHT, Qdisc, Up};

/// GRO's hash has so many lists (GRO_HASH_BUCKETS), and one holds so many packets (MAX_GRO_SKBS).
const GRO_LISTS: u32 = 8;
const GRO_HELD_MAX: usize = 8;
/// How often the table `cpu` has rows, as a lab's.
const CPU_INTERVAL_NS: u64 = 100_000_000;
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
            Effect::Sent(from, handle, departure_ns) => {
                self.ends.flows[from.flow() as usize].end(from.side()).cpu = cpu;
                match departure_ns {
                    None => self.leave_stack(from, handle),
                    // Its time may have passed while the processor was busy.
                    Some(departure_ns) => {
                        self.hold(from, handle, departure_ns.max(self.ends.now_ns));
                    }
                }
            }
            Effect::Released(from, handle) => {
                self.ends.flows[from.flow() as usize].end(from.side()).cpu = cpu;
                self.leave_stack(from, handle);
            }
            Effect::Wake(thread) => self.ends.wake_thread(thread),
            Effect::Raise(cpu, job) => self.ends.raise(cpu, job),
            Effect::Polled(queue) => self.ends.end_poll(queue),
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
            end.tcp.set_timer_rule(of_type.timer_rule);
        }
    }

    // ---- from the wire -----------------------------------------------------

    /// Packets come to the NIC of a host.
    pub(super) fn reach_machine(&mut self, side: Side, packets: &[Passing<()>]) {
        let host = self.flows[packets[0].flow as usize].hosts[side as usize];
        let machine = self.machines.of_host[side as usize][host as usize];
        let queues = self.conf_of(machine).queues;
        let first_queue = self.machines.list[machine as usize].first_queue;
        for &passing in packets {
            let queue = first_queue + pick(hash(passing.flow), queues);
            let Some(passing) = self.fit(side, queue, passing) else {
                continue;
            };
            let to = &mut self.machines.queues[queue as usize];
            let (cpu, interrupts) = (to.cpu, to.ring.push(passing, passing.pkts));
            if interrupts {
                let job = Job::Poll {
                    queue,
                    interrupts: 1,
                };
                self.raise(cpu, job);
            }
        }
    }

    /// The packets for which the queue has descriptors; the others are lost.
    fn fit(&mut self, side: Side, queue: u32, passing: Passing<()>) -> Option<Passing<()>> {
        let room = self.machines.queues[queue as usize].ring.room(passing.pkts);
        if room == passing.pkts {
            return Some(passing);
        }
        let fits = (room > 0).then(|| Passing {
            handle: self.slab.cut(passing.handle, room),
            pkts: room,
            ..passing
        });
        let lost = self.slab.take(passing.handle, passing.pkts - room);
        let machine = self.machines.queues[queue as usize].machine;
        self.machines.list[machine as usize].counts.ring_drops += u64::from(passing.pkts - room);
        self.lose(EndpointId::new(passing.flow, side), &lost);
        fits
    }

    /// A host drops a packet that has arrived.
    fn lose(&mut self, to: EndpointId, segment: &Segment) {
        let flow = &mut self.flows[to.flow() as usize];
        flow.under_way -= u32::from(segment.packets);
        if to.side() == Side::Receiver {
            flow.dropped_bytes += u64::from(segment.payload_bytes);
        }
    }

    /// A packet goes over a veth pair to the other end's stack, on the processor that sends it.
    pub(super) fn cross(&mut self, from: EndpointId, handle: u32) {
        let cpu = self.flows[from.flow() as usize].end(from.side()).cpu;
        let pkts = self.slab.get(handle).packets.into();
        let segment = self.slab.take(handle, pkts);
        let to = EndpointId::new(from.flow(), from.side().other());
        let target = self.steer(cpu, to).unwrap_or(cpu);
        if let Some(up) = self.into_backlog(cpu, target, to, segment) {
            self.raise(target, Job::Up(up));
        }
    }

    /// The processor that a packet goes on at, by RPS and RFS (get_rps_cpu()); `None`: here, without a backlog.
    fn steer(&mut self, cpu: u32, to: EndpointId) -> Option<u32> {
        let machine = self.machines.of_cpu[cpu as usize];
        let mask = self.conf_of(machine).rps_cpus;
        if mask.is_empty() {
            return None;
        }
        let of = &mut self.machines.list[machine as usize];
        let hash = hash(to.flow());
        let backlogs = &self.machines.backlogs;
        let by_flow = of.rfs.as_mut().and_then(|rfs| {
            let target = rfs.choose(hash, |cpu| {
                let (came, waits) = backlogs[cpu as usize];
                came - waits
            })?;
            rfs.went_to(hash, target, backlogs[target as usize].0 + 1);
            Some(target)
        });
        by_flow.or_else(|| Some(of.first_cpu + mask.nth(pick(hash, mask.count()))?))
    }

    /// A packet for the backlog of a processor, unless that is full.
    fn into_backlog(
        &mut self,
        cpu: u32,
        target: u32,
        to: EndpointId,
        segment: Segment,
    ) -> Option<Up> {
        let machine = self.machines.of_cpu[target as usize];
        let most = u64::from(self.conf_of(machine).netdev_max_backlog);
        let (came, waits) = self.machines.backlogs[target as usize];
        if waits >= most {
            self.counts_of(target).backlog_drops += 1;
            self.lose(to, &segment);
            return None;
        }
        self.machines.backlogs[target as usize] = (came + 1, waits + 1);
        let starts = waits == 0;
        let by_ipi = starts && cpu != target;
        Some(Up {
            to,
            segment,
            from: Came::Backlog { starts, by_ipi },
            ends_poll: None,
        })
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
            let rests = of.rests(now_ns);
            let done_ns = match of.next(now_ns, &mut machines.threads) {
                Next::Idle | Next::Busy => return,
                Next::Until(at_ns) => at_ns,
                Next::Softirq(job) => {
                    machines.bill = Default::default();
                    if rests {
                        self.charge(cpu, Cost::IdleExit, 1);
                    }
                    self.run_job(cpu, job);
                    let machines = &mut self.machines;
                    machines.effects[cpu as usize] = machines.take_coming();
                    machines.cpus[cpu as usize].run_softirq(now_ns, &machines.bill)
                }
                Next::Thread { thread, switches } => {
                    let app = &mut machines.apps[thread as usize];
                    if app.ready.is_empty() {
                        app.awake = false;
                        of.sleep(thread);
                        continue;
                    }
                    app.cpu = cpu;
                    machines.bill = Default::default();
                    if rests {
                        self.charge(cpu, Cost::IdleExit, 1);
                    }
                    self.charge(cpu, Cost::Switch, switches.into());
                    self.counts_of(cpu).context_switches += u64::from(switches);
                    self.run_app(cpu, thread);
                    let machines = &mut self.machines;
                    machines.apps[thread as usize].effects = machines.take_coming();
                    let of = &mut machines.cpus[cpu as usize];
                    of.run_thread(now_ns, thread, &mut machines.threads, &machines.bill)
                }
            };
            return self.events.push(done_ns, Target::Cpu(cpu));
        }
    }

    fn run_job(&mut self, cpu: u32, job: Job) {
        match job {
            Job::Poll { queue, interrupts } => self.poll(cpu, queue, interrupts),
            Job::Up(up) => self.go_up_on(cpu, up),
            Job::Timer(id) => self.run_timer(cpu, id),
            Job::Transmit(id) => self.run_qdisc(cpu, id),
        }
    }

    fn wake_thread(&mut self, thread: u32) {
        let cpu = self.machines.place_of(thread, self.now_ns);
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

    // ---- receiving ----------------------------------------------------------

    /// NAPI polls a queue: its packets go up, here or where they are steered to.
    fn poll(&mut self, cpu: u32, queue: u32, interrupts: u32) {
        let machine = self.machines.of_cpu[cpu as usize];
        let side = self.machines.list[machine as usize].side;
        let (reception, table) = {
            let conf = self.conf_of(machine);
            (conf.reception, conf.gro_table)
        };
        let mut polled = std::mem::take(&mut self.machines.polled);
        let slab = &mut self.slab;
        let of = &mut self.machines.queues[queue as usize];
        let pkts = of.ring.poll(NAPI_WEIGHT, &mut polled, |passing, pkts| {
            passing.pkts -= pkts;
            Passing {
                handle: slab.cut(passing.handle, pkts),
                pkts,
                ..*passing
            }
        });
        of.was_full = pkts == NAPI_WEIGHT;
        let counts = &mut self.machines.list[machine as usize].counts;
        counts.napi_polls += 1;
        counts.napi_packets += u64::from(pkts);
        counts.napi_budget_ends += u64::from(pkts == NAPI_WEIGHT);
        counts.interrupts += match reception {
            Reception::Napi => interrupts.into(),
            Reception::Interrupts => pkts.into(),
            Reception::BusyPoll => 0,
        };
        match reception {
            Reception::Napi => self.charge(cpu, Cost::Interrupt, interrupts.into()),
            Reception::Interrupts => self.charge(cpu, Cost::Interrupt, pkts.into()),
            Reception::BusyPoll => {}
        }
        if reception != Reception::BusyPoll {
            self.charge(cpu, Cost::Softirq, interrupts.into());
        }
        self.charge(cpu, Cost::Poll, 1);
        self.charge(cpu, Cost::DriverReceive, pkts.into());
        let side = match side {
            0 => Side::Sender,
            _ => Side::Receiver,
        };
        let mut ups = std::mem::take(&mut self.machines.ups);
        let compared = match self.types[side as usize].gro {
            true => {
                self.charge(cpu, Cost::Gro, pkts.into());
                self.merge(side, &polled, table, &mut ups)
            }
            false => {
                let mut batch = Batch::new(&polled);
                while let Some(next) = batch.peek() {
                    let to = EndpointId::new(next.flow, side);
                    ups.extend(batch.first(&mut self.slab, false).map(|one| (to, one)));
                }
                0
            }
        };
        self.charge(cpu, Cost::GroCompare, compared);
        polled.clear();
        self.machines.polled = polled;
        self.hand_up(cpu, queue, &mut ups);
        self.machines.ups = ups;
    }

    /// GRO: merges what a poll took; returns how many comparisons that took. A list that is full gives up its oldest
    /// packet (Linux, dev_gro_receive()).
    fn merge(
        &mut self,
        side: Side,
        polled: &[Passing<()>],
        table: GroTable,
        ups: &mut Vec<(EndpointId, Segment)>,
    ) -> u64 {
        let list_of = |to: EndpointId| match table {
            GroTable::Hash => hash(to.flow()) % GRO_LISTS,
            GroTable::List => 0,
        };
        let mut compared = 0;
        let mut held = std::mem::take(&mut self.held);
        let mut batch = Batch::new(polled);
        while let Some(next) = batch.peek() {
            let to = EndpointId::new(next.flow, side);
            let list = list_of(to);
            let in_list = |(of, _): &&(EndpointId, Segment)| list_of(*of) == list;
            let length = held.iter().filter(in_list).count();
            let place = held.iter().position(|&(of, _)| of == to);
            if let Some(place) = place {
                let before = held[place].1.packets;
                if batch.merge(&mut held[place].1, &mut self.slab) {
                    compared += length as u64 * u64::from(held[place].1.packets - before);
                    continue;
                }
                ups.push(held.remove(place));
            }
            let Some(segment) = batch.first(&mut self.slab, true) else {
                break;
            };
            compared += length as u64 * u64::from(segment.packets);
            if segment.payload_bytes == 0 {
                ups.push((to, segment));
                continue;
            }
            if table == GroTable::Hash && length >= GRO_HELD_MAX {
                let oldest = held.iter().position(|(of, _)| list_of(*of) == list);
                ups.extend(oldest.map(|oldest| held.remove(oldest)));
            }
            held.push((to, segment));
        }
        ups.append(&mut held);
        self.held = held;
        compared
    }

    /// What a poll took goes up: the first at once if it is alone, the others in turn.
    fn hand_up(&mut self, cpu: u32, queue: u32, ups: &mut Vec<(EndpointId, Segment)>) {
        let machine = self.machines.of_cpu[cpu as usize];
        if !self.conf_of(machine).rps_cpus.is_empty() {
            for (to, segment) in ups.drain(..) {
                let target = self.steer(cpu, to).unwrap_or(cpu);
                if let Some(up) = self.into_backlog(cpu, target, to, segment) {
                    let effect = Effect::Raise(target, Job::Up(up));
                    self.machines.coming.push(effect);
                }
            }
            return self.machines.coming.push(Effect::Polled(queue));
        }
        let mut next = None;
        // In their order, before what waits; the last one ends the poll.
        for (to, segment) in ups.drain(..).rev() {
            let up = Up {
                to,
                segment,
                from: Came::Poll,
                ends_poll: next.is_none().then_some(queue),
            };
            if let Some(later) = next.replace(up) {
                self.machines.cpus[cpu as usize].raise_first(Job::Up(later));
            }
        }
        match next {
            Some(up) => self.go_up_on(cpu, up),
            None => self.machines.coming.push(Effect::Polled(queue)),
        }
    }

    /// A poll is over with all that came of it: is there more?
    fn end_poll(&mut self, queue: u32) {
        let of = &mut self.machines.queues[queue as usize];
        let cpu = of.cpu;
        if of.ring.is_empty() {
            of.ring.polled = false;
            return;
        }
        let interrupts = u32::from(!of.was_full);
        of.ring.interrupts += u64::from(interrupts);
        self.raise(cpu, Job::Poll { queue, interrupts });
    }

    /// A packet goes up the stack to its end.
    fn go_up_on(&mut self, cpu: u32, up: Up) {
        let Up {
            to,
            segment,
            from,
            ends_poll,
        } = up;
        if let Came::Backlog { starts, by_ipi } = from {
            self.machines.backlogs[cpu as usize].1 -= 1;
            self.charge(cpu, Cost::Backlog, 1);
            if starts {
                self.charge(cpu, Cost::Softirq, 1);
                self.charge(cpu, Cost::Poll, 1);
            }
            if by_ipi {
                self.charge(cpu, Cost::Ipi, 1);
                self.counts_of(cpu).ipis += 1;
            }
        }
        self.charge(cpu, Cost::IpReceive, 1);
        self.charge(cpu, Cost::SocketLock, 1);
        let counts = self.counts_of(cpu);
        counts.skbs_received += 1;
        counts.segments_received += u64::from(segment.packets);
        let has_data = segment.payload_bytes > 0;
        let at = self.before(to);
        let mut turn = self.begin(to);
        turn.flow.under_way -= u32::from(segment.packets);
        let end = turn.flow.end(to.side());
        end.cpu = cpu;
        let skbs_before = end.tcp.skbs_out();
        let readable = self.call(&mut turn, |tcp, cx| tcp.on_segment(cx, &segment));
        let end = turn.flow.end(to.side());
        let freed = skbs_before.saturating_sub(end.tcp.skbs_out());
        if has_data {
            end.unread_skbs += 1;
            self.charge(cpu, Cost::TcpReceive, 1);
        }
        if !has_data || freed > 0 {
            self.charge(cpu, Cost::AckReceive, 1);
        }
        self.charge(cpu, Cost::SkbFree, freed + u64::from(!has_data));
        if readable > 0 || self.has_work(&mut turn) {
            self.make_ready(cpu, &mut turn);
        }
        self.end_on(cpu, at, turn);
        if let Some(queue) = ends_poll {
            self.machines.coming.push(Effect::Polled(queue));
        }
    }

    /// Has the application something to write, or to close?
    fn has_work(&self, turn: &mut Turn) -> bool {
        let now = knee_units::Nanos(self.now_ns);
        let side = turn.id.side();
        let flow = &mut turn.flow;
        let app = match side {
            Side::Sender => &mut flow.apps.sender,
            Side::Receiver => &mut flow.apps.receiver,
        };
        let tcp = &mut flow.ends[side as usize].tcp;
        let writes = app.next_write_bytes(now) > 0 && tcp.is_writable();
        if writes || tcp.is_closing() {
            return writes;
        }
        app.closes() || tcp.rx.fin_received() && app.next_write_bytes(now) == 0
    }

    /// An end's application is to run; its thread is woken, if it sleeps.
    fn make_ready(&mut self, cpu: u32, turn: &mut Turn) {
        let id = turn.id;
        let end = turn.flow.end(id.side());
        if std::mem::replace(&mut end.app_wakes_ns, READY) == READY {
            return;
        }
        let app = &mut self.machines.apps[end.thread as usize];
        app.ready.push_back(id);
        if app.awake || std::mem::replace(&mut app.waking, true) {
            return;
        }
        let thread = end.thread;
        self.machines.coming.push(Effect::Wake(thread));
        self.charge(cpu, Cost::Wakeup, 1);
        self.counts_of(cpu).wakeups += 1;
    }

    /// An application is to run, by no processor's doing: it opens, or a pause is over.
    pub(super) fn ask_app(&mut self, id: EndpointId) {
        let end = self.flows[id.flow() as usize].end(id.side());
        if std::mem::replace(&mut end.app_wakes_ns, READY) == READY {
            return;
        }
        let thread = end.thread;
        let app = &mut self.machines.apps[thread as usize];
        app.ready.push_back(id);
        if !app.waking {
            self.wake_thread(thread);
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
        let mut bytes = 0;
        let at = self.before(id);
        let mut turn = self.begin(id);
        while let Some(&(departure_ns, handle)) = turn.flow.end(id.side()).egress.front() {
            if departure_ns > now_ns {
                let transmit = Target::Work(id, crate::event::Work::Transmit);
                self.events.push(departure_ns, transmit);
                self.charge(cpu, Cost::TimerArm, 1);
                break;
            }
            turn.flow.end(id.side()).egress.pop_front();
            bytes += self.slab.get(handle).ip_bytes();
            self.machines.coming.push(Effect::Released(id, handle));
            self.charge(cpu, Cost::Xmit, 1);
            self.charge(cpu, Cost::Completion, 1);
        }
        self.call(&mut turn, |tcp, cx| tcp.on_qdisc_sent(cx, bytes));
        self.end_on(cpu, at, turn);
    }

    // ---- applications -----------------------------------------------------------

    /// A thread serves the next of its connections: it reads, computes and writes.
    fn run_app(&mut self, cpu: u32, thread: u32) {
        let app = &mut self.machines.apps[thread as usize];
        let waits = app.told == 0;
        if waits {
            app.told = app.ready.len();
        }
        app.told -= 1;
        let Some(id) = app.ready.pop_front() else {
            return;
        };
        if waits {
            self.charge(cpu, Cost::WaitCall, 1);
        }
        if !self.flows.has(id.flow()) {
            return;
        }
        let machine = self.machines.of_cpu[cpu as usize];
        let read_bytes = self.conf_of(machine).read_bytes;
        if let Some(rfs) = &mut self.machines.list[machine as usize].rfs {
            rfs.reads_on(hash(id.flow()), cpu);
        }
        let at = self.before(id);
        let mut turn = self.begin(id);
        let end = turn.flow.end(id.side());
        end.app_wakes_ns = NEVER;
        let skbs = std::mem::take(&mut end.unread_skbs);
        let is_far = end.cpu != cpu;
        let bytes = self.call(&mut turn, |tcp, cx| tcp.read(cx));
        if bytes > 0 {
            // The last call finds nothing.
            let calls = bytes.div_ceil(read_bytes) + 1;
            self.charge(cpu, Cost::ReceiveCall, calls);
            self.charge(cpu, Cost::SocketLock, calls);
            self.charge(cpu, Cost::CopyOut, bytes);
            self.charge(cpu, Cost::SkbFree, skbs);
            if is_far {
                self.charge(cpu, Cost::CacheMiss, skbs);
            }
            self.read(&mut turn, bytes);
        }
        let wrote = self.pump_some(&mut turn, 1);
        self.charge(cpu, Cost::SendCall, wrote.calls);
        self.charge(cpu, Cost::SocketLock, wrote.calls);
        self.charge(cpu, Cost::CopyIn, wrote.bytes);
        self.charge(cpu, Cost::Page, wrote.bytes);
        if self.has_work(&mut turn) {
            self.make_ready(cpu, &mut turn);
        }
        self.end_on(cpu, at, turn);
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
        bill.charge(costs, Cost::Completion, 1);
        if conf.splits {
            bill.charge(costs, Cost::Segment, packets - 1);
        }
        if is_ack {
            bill.charge(costs, Cost::SkbFree, 1);
        }
    }

    // ---- tables --------------------------------------------------------------

    /// How the table tells a machine: by its side, unless it is that of both.
    fn label_of(&self, machine: u32) -> &'static str {
        match (self.crosses, self.machines.list[machine as usize].side) {
            (true, _) => "machine",
            (false, 0) => "sender",
            (false, _) => "receiver",
        }
    }

    /// Rows of the table `cpu`, if their time has come.
    pub(super) fn sample_cpus(&mut self) {
        if self.machines.cpus.is_empty() || self.now_ns < self.machines.next_rows_ns {
            return;
        }
        self.machines.next_rows_ns = self.now_ns + CPU_INTERVAL_NS;
        let t_ns = (self.now_ns - self.boot_ns) as i64;
        for cpu in 0..self.machines.cpus.len() {
            let machine = self.machines.of_cpu[cpu];
            let number = cpu as u32 - self.machines.list[machine as usize].first_cpu;
            let name = match self.types[self.machines.list[machine as usize].side].hosts {
                Some(2..) => format!("{}{machine}/cpu{number}", self.label_of(machine)),
                _ => format!("{}/cpu{number}", self.label_of(machine)),
            };
            let spent = &self.machines.cpus[cpu].spent;
            self.rows.cpu.push(CpuSample {
                cell: self.cell.index as i32,
                rep: self.rep as i32,
                t_ns,
                name,
                run_us: (spent.busy_ns() + spent.other_ns) as i64 / 1_000,
                user_us: Some((spent.user_ns + spent.other_ns) as i64 / 1_000),
                system_us: Some(spent.system_ns as i64 / 1_000),
                softirq_us: Some((spent.softirq_ns + spent.irq_ns) as i64 / 1_000),
                steal_us: Some(spent.steal_ns as i64 / 1_000),
            });
        }
    }

    /// Rows of the table `host_costs`: what machines did and spent since the warm-up, by side.
    pub(super) fn record_machines(&mut self) {
        let machines = std::mem::take(&mut self.machines);
        let (cell, rep) = (self.cell.index as i32, self.rep as i32);
        let (counts_before, spent_before) = &machines.at_warm;
        for side in [0, 1] {
            let of_side = |machine: &u32| machines.list[*machine as usize].side == side;
            let numbers: Vec<u32> = (0..machines.list.len() as u32).filter(of_side).collect();
            if numbers.is_empty() {
                continue;
            }
            let label = match (self.crosses, side) {
                (true, _) => "machine",
                (false, 0) => "sender",
                (false, _) => "receiver",
            };
            let mut sums: Vec<(&'static str, u64)> = Counts::default().since(&Counts::default());
            let mut ops = vec![0; COSTS.len()];
            let (mut busy_ns, mut softirq_ns) = (0, 0);
            for &number in &numbers {
                let of = &machines.list[number as usize];
                let none = Counts::default();
                let before = counts_before.get(number as usize).unwrap_or(&none);
                for (sum, (_, count)) in sums.iter_mut().zip(of.counts.since(before)) {
                    sum.1 += count;
                }
            }
            let none = Spent::default();
            for (cpu, of) in machines.cpus.iter().enumerate() {
                if !numbers.contains(&machines.of_cpu[cpu]) {
                    continue;
                }
                let before = spent_before.get(cpu).unwrap_or(&none);
                busy_ns += of.spent.busy_ns() - before.busy_ns();
                softirq_ns += of.spent.softirq_ns - before.softirq_ns;
                for (position, ns) in ops.iter_mut().enumerate() {
                    *ns += of.spent.on_ns(position) - before.on_ns(position);
                }
            }
            let rows = &mut self.rows.host_costs;
            for (name, count) in sums {
                rows.count(cell, rep, label, name, count as i64);
            }
            rows.count(cell, rep, label, "cpu_ns", busy_ns as i64);
            rows.count(cell, rep, label, "cpu_softirq_ns", softirq_ns as i64);
            for class in Class::ALL {
                let of_class = COSTS
                    .iter()
                    .zip(&ops)
                    .filter(|(kind, _)| kind.class == class);
                let ns: u64 = of_class.map(|(_, ns)| ns).sum();
                rows.spend(cell, rep, label, class.counter(), ns as i64);
            }
            for (kind, ns) in COSTS.iter().zip(ops) {
                rows.spend(cell, rep, label, kind.name, ns as i64);
            }
        }
    }

    /// Every packet that waits in a machine, for a final account: flow, side and payload.
    pub(super) fn drain_machines(&mut self) -> Vec<(EndpointId, u32)> {
        let mut found = Vec::new();
        let Ends { machines, slab, .. } = self;
        for queue in &mut machines.queues {
            let machine = &machines.list[queue.machine as usize];
            let side = match machine.side {
                0 => Side::Sender,
                _ => Side::Receiver,
            };
            for passing in queue.ring.drain() {
                let segment = slab.take(passing.handle, passing.pkts);
                found.push((EndpointId::new(passing.flow, side), segment.payload_bytes));
            }
        }
        let of_threads = machines.apps.iter_mut().map(|app| &mut app.effects);
        for effect in machines.effects.iter_mut().chain(of_threads).flatten() {
            match effect {
                Effect::Sent(from, handle, _) | Effect::Released(from, handle) => {
                    let to = EndpointId::new(from.flow(), from.side().other());
                    found.push((to, slab.get(*handle).payload_bytes));
                }
                Effect::Raise(_, Job::Up(up)) => found.push((up.to, up.segment.payload_bytes)),
                _ => {}
            }
        }
        for cpu in &mut machines.cpus {
            for job in cpu.drain() {
                if let Job::Up(up) = job {
                    found.push((up.to, up.segment.payload_bytes));
                }
            }
        }
        found
    }
}

/// Where lists stood before a job.
struct At {
    out: usize,
    turns: usize,
    sends: EndpointId,
    arms: u64,
}
