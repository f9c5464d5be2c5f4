//! The world of one run: flows, path and clock, and the loop that moves them.

use std::sync::Arc;

use knee_cc::Instance;
use knee_scenario::{Cell, Connection, FlowSpec};
use knee_units::NEVER;
use knee_units::Nanos;
use knee_units::rng::{Lateness, Stream};

use crate::event::{EndpointId, EventQueue, Side, Target};
use crate::flow::{End, Flow, Late};
use crate::host::{self, Host};
use crate::nic::{self, Arrival};
use crate::path::{Delays, Next};
use crate::segment::{Segment, Slab};
use crate::tcp::{Cx, Endpoint};
use crate::{Options, Output, Progress, SimError};

/// Hosts have been up for a while: clocks and jiffies never start at 0, which
/// several fields use for "unset".
const UPTIME_NS: u64 = 100_000_000_000;
/// Events between two calls of the progress callback.
const EVENTS_PER_PROGRESS: u32 = 1 << 14;

mod hop;
mod out;
mod records;

use hop::Hop;

/// One repetition of one cell, from its beginning to as far as it was taken.
pub struct World {
    cell: Arc<Cell>,
    rep: u32,
    options: Options,
    /// Sender's and receiver's hosts.
    hosts: [Host; 2],
    flows: Vec<Flow>,
    events: EventQueue,
    slab: Slab,
    /// In the data direction; never empty.
    hops: Vec<Hop>,
    delays: Delays,
    /// How long each packet has waited so far, by its handle; of paths of several hops only.
    waited: Vec<Nanos>,
    boot_ns: u64,
    now_ns: u64,
    /// Flows that changed since the last sample.
    dirty: Vec<u32>,
    unfinished: u32,
    output: Output,
    // Scratch, kept to spare allocations.
    out: Vec<u32>,
    log: Vec<&'static str>,
    batch: Vec<u32>,
    latencies: Vec<Nanos>,
}

impl World {
    /// Before its first event.
    ///
    /// # Errors
    /// The cell names an algorithm or a parameter that does not exist, or asks for what only a lab has.
    pub fn new(cell: Arc<Cell>, rep: u32, options: &Options) -> Result<World, SimError> {
        refuse_lab_settings(&cell)?;
        let seed = cell.rep_seed(rep);
        let stream = |component: &str| Stream::new(seed, component);
        let hosts = [
            Host::new(&cell.sender, cell.path.mtu_bytes),
            Host::new(&cell.receiver, cell.path.mtu_bytes),
        ];
        // The hosts' ticks stand in no fixed relation to the run's start.
        let phase_ns = stream("clock").next_u64() % hosts[0].tcp.tick_ns;
        let boot_ns = UPTIME_NS + phase_ns;
        let mut world = World {
            cell: cell.clone(),
            rep,
            options: options.clone(),
            hosts,
            flows: Vec::new(),
            events: EventQueue::default(),
            slab: Slab::default(),
            hops: (0..)
                .zip(cell.hops())
                .map(|(n, hop)| Hop::new(n, hop, stream, boot_ns))
                .collect(),
            delays: Delays::default(),
            waited: Vec::new(),
            boot_ns,
            now_ns: boot_ns,
            dirty: Vec::new(),
            unfinished: 0,
            output: Output::default(),
            out: Vec::new(),
            log: Vec::new(),
            batch: Vec::new(),
            latencies: Vec::new(),
        };
        for connection in cell.connections(rep) {
            world.add_flow(&connection, &stream)?;
        }
        world
            .events
            .push(world.boot_ns + cell.sample_interval.0, Target::Sample);
        for (n, hop) in (0..).zip(cell.hops()) {
            for change in &hop.rtt_changes {
                world.events.push(boot_ns + change.at.0, Target::Route(n));
            }
        }
        if cell.warmup > Nanos::ZERO {
            world
                .events
                .push(world.boot_ns + cell.warmup.0, Target::Warm);
        }
        Ok(world)
    }

    fn add_flow(
        &mut self,
        connection: &Connection,
        stream: &dyn Fn(&str) -> Stream,
    ) -> Result<(), SimError> {
        let Connection {
            group,
            member,
            index,
            ..
        } = *connection;
        let cell = self.cell.clone();
        let spec = &cell.flows[group];
        let name = format!("flow.{group}.{member}.{index}");
        let instance = |algorithm: &str, params: &[(String, u32)]| {
            let found = knee_cc::find(algorithm).ok_or_else(|| SimError::UnknownAlgorithm {
                name: algorithm.to_owned(),
            })?;
            let params: Vec<(&str, u32)> = params
                .iter()
                .map(|(name, value)| (name.as_str(), *value))
                .collect();
            Instance::new(found, &params).map_err(SimError::from)
        };
        let apps = spec.workload.apps(connection.bytes);
        let apps = apps.expect("programs' connections are their own");
        // A client that asks would set TCP_NODELAY, as redis-benchmark and netperf do.
        let nodelay = apps.receiver_opens;
        let end = |side: Side, instance| {
            let label = if side == Side::Sender {
                "sender"
            } else {
                "receiver"
            };
            let rng = stream(&format!("{name}.{label}.cc"));
            let peer_tsoffset = stream(&format!("{name}.{label}.peer_tsoffset")).next_u32();
            let host = &self.hosts[side as usize];
            let mut end = End::new(Endpoint::new(
                &host.tcp,
                instance,
                rng,
                peer_tsoffset,
                nodelay,
            ));
            if host.noise > Nanos::ZERO {
                let draws = stream(&format!("{name}.{label}.noise"));
                end.late = Some(Box::new(Late::new(Lateness::new(host.noise, draws))));
            }
            end
        };
        let mut sender = end(Side::Sender, instance(&spec.algorithm, &spec.params)?);
        let receiver = end(
            Side::Receiver,
            instance(&self.cell.receiver.algorithm, &[])?,
        );
        sender.tcp.set_blocking(spec.blocking);
        if let Some(pacing) = spec.pacing {
            sender.tcp.set_pacing(host::pacing(pacing));
        }
        if let Some(rate) = spec.max_pacing_rate {
            sender.tcp.set_max_pacing_rate(rate.bits_per_sec() / 8);
        }
        let lines = self.lines_behind(spec);
        let open_ns = self.boot_ns + connection.open.0;
        self.events
            .push(open_ns, Target::Open(self.flows.len() as u32));
        self.unfinished += 1;
        self.flows.push(Flow {
            ends: [sender, receiver],
            apps,
            group: group as u32,
            open_ns,
            transfer_bytes: spec.workload.transfer_bytes(connection.bytes),
            lines,
            dirty: false,
            dropped_bytes: 0,
            duplicated_bytes: 0,
            path_lost_pkts: 0,
            queue_dropped_pkts: 0,
            queue_delay_us: Default::default(),
            latency_us: Default::default(),
            measured: None,
        });
        Ok(())
    }

    /// Runs on to `until` after the start, which is in it, or to the run's end where that is earlier; false: it is over.
    /// However a run is cut into steps, its output is the same.
    pub fn step(&mut self, until: Nanos) -> bool {
        self.advance(until, &mut |_| true);
        !self.is_over()
    }

    /// Runs to the end, or until `progress` says so.
    pub fn run(mut self, progress: &mut Progress) -> Output {
        self.advance(self.cell.duration, progress);
        self.finish()
    }

    /// The time reached, after the start.
    pub fn now(&self) -> Nanos {
        Nanos(self.now_ns - self.boot_ns)
    }

    /// Has the duration passed, or is every flow's work complete?
    pub fn is_over(&self) -> bool {
        self.unfinished == 0 || self.now() >= self.cell.duration
    }

    fn advance(&mut self, until: Nanos, progress: &mut Progress) {
        let until_ns = self.boot_ns + until.min(self.cell.duration).0;
        let mut until_progress = EVENTS_PER_PROGRESS;
        while self.unfinished > 0 {
            let Some((t_ns, target)) = self.events.pop_until(until_ns) else {
                self.now_ns = until_ns.max(self.now_ns);
                return;
            };
            debug_assert!(t_ns >= self.now_ns, "{target:?} is in the past");
            self.now_ns = t_ns;
            self.dispatch(target);
            until_progress -= 1;
            if until_progress == 0 {
                until_progress = EVENTS_PER_PROGRESS;
                if !progress(self.now()) {
                    return;
                }
            }
        }
    }

    #[inline]
    fn dispatch(&mut self, target: Target) {
        match target {
            Target::Link(hop) => {
                let link = &mut self.hops[hop as usize].data;
                let Some(packet) = link.wake(&mut self.events, self.now_ns) else {
                    return self.account_drops(hop);
                };
                self.slab.carry_mark(packet.handle, packet.ecn);
                self.leave(hop, &packet);
                self.account_drops(hop);
            }
            Target::AckLink(hop) => {
                let link = &mut self.hops[hop as usize].ack;
                if let Some(packet) = link.wake(&mut self.events, self.now_ns) {
                    self.slab.carry_mark(packet.handle, packet.ecn);
                    let to = EndpointId::new(packet.flow, Side::Sender);
                    self.set_off(hop, to, packet.handle);
                }
                self.release_dropped_acks(hop);
            }
            Target::Delay(line) => match self.delays.next(line) {
                Next::Host => self.on_delay(line),
                Next::Hop(hop) => self.reach_hop(hop, line),
            },
            Target::Loose(place) => match self.delays.take_loose(place) {
                (to, handle, Next::Host) => {
                    if self.arrive(to, self.now_ns, handle) {
                        self.deliver(to, handle);
                    }
                }
                (to, handle, Next::Hop(hop)) => self.enter_hop(hop, to, handle),
            },
            Target::Route(hop) => self.change_route(hop),
            Target::Nic(id) => self.interrupt(id),
            Target::Timer(id) => self.on_timer(id),
            Target::Tick => {
                let due = self.events.take_tick(self.now_ns);
                for &id in &due {
                    self.on_timer(id);
                }
                self.events.recycle(due);
            }
            Target::App(id) => {
                self.flows[id.flow() as usize].end(id.side()).app_wakes_ns = NEVER;
                self.pump(id);
            }
            Target::Egress(id) => self.release(id),
            Target::Late(id) => self.release_late(id),
            Target::Open(flow) => self.open(flow),
            Target::Warm => {
                for flow in &mut self.flows {
                    if flow.open_ns <= self.now_ns {
                        flow.start_measuring(self.now_ns);
                    }
                }
            }
            Target::Sample => {
                self.sample();
                self.events
                    .push(self.now_ns + self.cell.sample_interval.0, Target::Sample);
            }
        }
    }

    // ---- the ends --------------------------------------------------------

    fn open(&mut self, flow: u32) {
        let side = match self.flows[flow as usize].apps.receiver_opens {
            true => Side::Receiver,
            false => Side::Sender,
        };
        if self.now_ns >= self.boot_ns + self.cell.warmup.0 {
            self.flows[flow as usize].start_measuring(self.now_ns);
        } else {
            for end in &mut self.flows[flow as usize].ends {
                end.tcp.settle(self.now_ns);
            }
        }
        self.with_endpoint(EndpointId::new(flow, side), |tcp, cx| tcp.open(cx));
    }

    /// The head of a delay line arrives. Those behind it whose NIC will not
    /// look before a later interrupt are put there at once: that is where they
    /// would be found, and it spares an event each.
    fn on_delay(&mut self, line: u32) {
        let (to, handle) = self.delays.pop(line);
        let deliver = self.arrive(to, self.now_ns, handle);
        while let Some((at_ns, to)) = self.delays.head(line) {
            let nic = &self.flows[to.flow() as usize].ends[to.side() as usize].nic;
            if !nic.sleeps_through(at_ns) {
                self.events.push(at_ns, Target::Delay(line));
                break;
            }
            let (to, handle) = self.delays.pop(line);
            self.arrive(to, at_ns, handle);
        }
        if deliver {
            self.deliver(to, handle);
        }
    }

    /// A packet goes to the stack alone.
    fn deliver(&mut self, to: EndpointId, handle: u32) {
        let segment = self.slab.get(handle).clone();
        self.slab.release(handle);
        if self.options.capture && to.side() == Side::Sender {
            self.capture(to.flow(), false, &segment);
        }
        let read = self.receive(to, &segment);
        self.wake_app(to, read);
    }

    /// A packet reaches a NIC at `at_ns`; true: it interrupts at once.
    #[inline]
    fn arrive(&mut self, to: EndpointId, at_ns: u64, handle: u32) -> bool {
        let coalesce = self.hosts[to.side() as usize].rx_coalesce;
        let nic = &mut self.flows[to.flow() as usize].end(to.side()).nic;
        match nic.arrive(at_ns, coalesce, handle) {
            Arrival::Deliver => return true,
            Arrival::Kept => {}
            Arrival::WakeAt(at_ns) => self.events.push(at_ns, Target::Nic(to)),
        }
        false
    }

    fn interrupt(&mut self, to: EndpointId) {
        let host = &self.hosts[to.side() as usize];
        let (coalesce, gro) = (host.rx_coalesce, host.gro);
        let mut batch = std::mem::take(&mut self.batch);
        let now_ns = self.now_ns;
        self.flows[to.flow() as usize]
            .end(to.side())
            .nic
            .interrupt(now_ns, coalesce, &mut batch);
        if self.options.capture && to.side() == Side::Sender {
            for &handle in &batch {
                let segment = self.slab.get(handle).clone();
                self.capture(to.flow(), false, &segment);
            }
        }
        let mut read = false;
        let mut at = 0;
        while let Some(segment) = nic::next_merged(&mut self.slab, &batch, &mut at, gro) {
            read |= self.receive(to, &segment);
        }
        // Applications run when the softirq has done with all of it.
        self.wake_app(to, read);
        batch.clear();
        self.batch = batch;
    }

    /// A segment reaches the stack; returns whether it made something readable,
    /// which is read at once.
    #[inline]
    fn receive(&mut self, to: EndpointId, segment: &Segment) -> bool {
        let mut readable = 0;
        self.with_endpoint(to, |tcp, cx| readable = tcp.on_segment(cx, segment));
        if readable > 0 {
            self.read(to, readable);
        }
        readable > 0
    }

    /// The application at an end runs: what it read may be acked, and it writes.
    #[inline]
    fn wake_app(&mut self, id: EndpointId, has_read: bool) {
        if has_read
            && self.flows[id.flow() as usize]
                .end(id.side())
                .tcp
                .acks_when_read()
        {
            self.with_endpoint(id, |tcp, cx| tcp.send_ack(cx));
        }
        let flow = &self.flows[id.flow() as usize];
        let tcp = &flow.ends[id.side() as usize].tcp;
        if id.side() == Side::Sender || flow.apps.receiver.writes() || tcp.rx.fin_received() {
            self.pump(id);
        }
    }

    fn read(&mut self, to: EndpointId, bytes: u64) {
        let now = Nanos(self.now_ns);
        let flow = &mut self.flows[to.flow() as usize];
        let had_completed = flow.apps.receiver.completed().is_some();
        match to.side() {
            Side::Sender => flow.apps.sender.read(now, bytes),
            Side::Receiver => flow.apps.receiver.read(now, bytes),
        }
        if to.side() == Side::Receiver {
            flow.apps.receiver.take_latencies(&mut self.latencies);
            for latency in self.latencies.drain(..) {
                flow.latency_us.add(latency.as_us());
            }
            if !had_completed && flow.apps.receiver.completed().is_some() {
                self.log_event(to.flow(), "complete");
            }
        }
    }

    /// Lets the application write while the socket takes it.
    #[inline]
    fn pump(&mut self, id: EndpointId) {
        let now = Nanos(self.now_ns);
        let flow = &mut self.flows[id.flow() as usize];
        let app = match id.side() {
            Side::Sender => &mut flow.apps.sender,
            Side::Receiver => &mut flow.apps.receiver,
        };
        let tcp = &mut flow.ends[id.side() as usize].tcp;
        let mut wrote = false;
        let pauses = loop {
            let bytes = app.next_write_bytes(now);
            if bytes == 0 || !tcp.is_writable() {
                break bytes == 0;
            }
            let mut cx = Cx {
                now_ns: self.now_ns,
                host: &self.hosts[id.side() as usize].tcp,
                slab: &mut self.slab,
                out: &mut self.out,
                events: &mut self.log,
            };
            let taken = tcp.write(&mut cx, bytes);
            app.wrote(now, taken);
            wrote = true;
            if taken == bytes {
                tcp.push(&mut cx);
            }
        };
        let wakes_at = if pauses { app.wakes_at(now) } else { None };
        let over = app.closes() || tcp.rx.fin_received() && app.next_write_bytes(now) == 0;
        if over && tcp.close() || wrote && tcp.is_blocked() {
            self.with_endpoint(id, |tcp, cx| tcp.push(cx));
        } else if wrote {
            self.with_endpoint(id, |_, _| {});
        }
        if let Some(at) = wakes_at {
            self.wake_app_at(id, at.0);
        }
    }

    /// Asks a pausing application again at that time.
    fn wake_app_at(&mut self, id: EndpointId, at_ns: u64) {
        let wakes_ns = &mut self.flows[id.flow() as usize].end(id.side()).app_wakes_ns;
        if *wakes_ns != at_ns {
            *wakes_ns = at_ns;
            self.events.push(at_ns, Target::App(id));
        }
    }

    fn on_timer(&mut self, id: EndpointId) {
        let end = self.flows[id.flow() as usize].end(id.side());
        if end.armed_ns != self.now_ns {
            // Superseded by an earlier one that has run since.
            return;
        }
        end.armed_ns = NEVER;
        if end.tcp.next_timer_ns() > self.now_ns {
            // Put off meanwhile, as a timeout is by every ACK.
            self.arm(id);
            return;
        }
        self.with_endpoint(id, |tcp, cx| tcp.on_timer(cx));
        self.pump(id);
    }

    /// Calls into an endpoint, then carries out what it asked for.
    #[inline]
    fn with_endpoint(&mut self, id: EndpointId, call: impl FnOnce(&mut Endpoint, &mut Cx)) {
        let flow = &mut self.flows[id.flow() as usize];
        let mut cx = Cx {
            now_ns: self.now_ns,
            host: &self.hosts[id.side() as usize].tcp,
            slab: &mut self.slab,
            out: &mut self.out,
            events: &mut self.log,
        };
        let tcp = &mut flow.ends[id.side() as usize].tcp;
        let was_done = tcp.is_done();
        call(tcp, &mut cx);
        let done = !was_done && tcp.is_done();
        if id.side() == Side::Sender && !flow.dirty {
            flow.dirty = true;
            self.dirty.push(id.flow());
        }
        if !self.log.is_empty() {
            let log = std::mem::take(&mut self.log);
            if id.side() == Side::Sender {
                for event in &log {
                    self.log_event(id.flow(), event);
                }
            }
            self.log = log;
            self.log.clear();
        }
        if !self.out.is_empty() {
            self.send_out(id);
        }
        self.arm(id);
        if done {
            self.on_end_done(id);
        }
    }

    fn on_end_done(&mut self, id: EndpointId) {
        let flow = &self.flows[id.flow() as usize];
        if flow.ends.iter().all(|end| end.tcp.is_done()) {
            self.unfinished -= 1;
            self.log_event(id.flow(), "closed");
        }
    }

    #[inline]
    fn arm(&mut self, id: EndpointId) {
        let end = self.flows[id.flow() as usize].end(id.side());
        let due_ns = end.tcp.next_timer_ns();
        if due_ns < end.armed_ns {
            end.armed_ns = due_ns;
            let due_ns = due_ns.max(self.now_ns);
            match due_ns % self.hosts[id.side() as usize].tcp.tick_ns {
                0 => self.events.push_tick(due_ns, id),
                _ => self.events.push(due_ns, Target::Timer(id)),
            }
        }
    }
}

/// Refuses what the scenario asks for and only a lab has, instead of leaving it out.
fn refuse_lab_settings(cell: &Cell) -> Result<(), SimError> {
    let runs_programs = |flow: &&FlowSpec| flow.workload.commands().is_some();
    if let Some(flow) = cell.flows.iter().find(runs_programs) {
        let what = format!("flow \"{}\" runs programs", flow.name);
        return Err(SimError::NeedsLab { what });
    }
    for (side, host) in [("sender", &cell.sender), ("receiver", &cell.receiver)] {
        if let Some(qdisc) = &host.qdisc {
            let what = format!("{side}.qdisc = \"{qdisc}\" puts a qdisc on a host's interface");
            return Err(SimError::NeedsLab { what });
        }
    }
    if cell.path.keep_super_packets {
        let what = "path.super_packets = \"keep\" leaves TSO packets whole".into();
        return Err(SimError::NeedsLab { what });
    }
    Ok(())
}
