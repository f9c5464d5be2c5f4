//! The world of one run: the ends, the path between them and the clock, and the loop that moves them.

use std::sync::Arc;

use knee_cc::Instance;
use knee_path::way::{Direction, Way};
use knee_scenario::{Cell, Connection, FlowSpec};
use knee_units::Nanos;
use knee_units::rng::{Lateness, Stream};

use crate::event::{EndpointId, EventQueue, Side, Target, Work};
use crate::flow::{End, Flow};
use crate::host::{self, FourTuple, Host, HostType, Late};
use crate::{Options, Output, Progress, Rows, SimError};
use knee_tcp::Endpoint;
use knee_tcp::segment::Slab;

/// Hosts have been up for a while: clocks and jiffies never start at 0, which
/// several fields use for "unset".
const UPTIME_NS: u64 = 100_000_000_000;
/// Events between two calls of the progress callback.
const EVENTS_PER_PROGRESS: u32 = 1 << 14;

mod ends;
mod out;
mod passage;
mod records;

use ends::Ends;
use passage::Passage;

/// One repetition of one cell, from its beginning to as far as it was taken.
pub struct World {
    /// Toward the sender, and toward the receiver: as [`Side`] counts.
    ways: [Way<()>; 2],
    ends: Ends,
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
        let types =
            [&cell.sender, &cell.receiver].map(|spec| HostType::new(spec, cell.path.mtu_bytes));
        // The hosts' ticks stand in no fixed relation to the run's start.
        let phase_ns = stream("clock").next_u64() % types[0].tcp.tick_ns;
        let boot_ns = UPTIME_NS + phase_ns;
        let way = |direction, side: Side| {
            let coalesce = types[side as usize].rx_coalesce;
            let mut way = Way::new(cell.hops(), direction, stream, boot_ns, coalesce);
            if !options.step_links {
                way.foresee();
            }
            way
        };
        let mut world = World {
            ways: [
                way(Direction::Back, Side::Sender),
                way(Direction::Forward, Side::Receiver),
            ],
            ends: Ends {
                cell: cell.clone(),
                rep,
                options: options.clone(),
                types,
                hosts: Default::default(),
                flows: Vec::new(),
                events: EventQueue::default(),
                slab: Slab::default(),
                boot_ns,
                now_ns: boot_ns,
                dirty: Vec::new(),
                unfinished: 0,
                rows: Rows::default(),
                output: Output::default(),
                out: Vec::new(),
                sends: EndpointId::new(0, Side::Sender),
                turns: Vec::new(),
                log: Vec::new(),
                latencies: Vec::new(),
                held: Vec::new(),
                woken: Vec::new(),
            },
        };
        for connection in cell.connections(rep) {
            world.add_flow(&connection, &stream)?;
        }
        let events = &mut world.ends.events;
        events.push(boot_ns + cell.sample_interval.0, Target::Sample);
        if cell.warmup > Nanos::ZERO {
            events.push(boot_ns + cell.warmup.0, Target::Warm);
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
        let cell = self.ends.cell.clone();
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
            let label = side.label();
            let rng = stream(&format!("{name}.{label}.cc"));
            let peer_tsoffset = stream(&format!("{name}.{label}.peer_tsoffset")).next_u32();
            let tcp = &self.ends.types[side as usize].tcp;
            End::new(Endpoint::new(tcp, instance, rng, peer_tsoffset, nodelay))
        };
        let mut sender = end(Side::Sender, instance(&spec.algorithm, &spec.params)?);
        let receiver = end(Side::Receiver, instance(&cell.receiver.algorithm, &[])?);
        sender.tcp.set_blocking(spec.blocking);
        if let Some(pacing) = spec.pacing {
            sender.tcp.set_pacing(host::pacing(pacing));
        }
        if let Some(rate) = spec.max_pacing_rate {
            sender.tcp.set_max_pacing_rate(rate.bits_per_sec() / 8);
        }
        let number = self.ends.flows.len() as u32;
        let hosts = [Side::Sender, Side::Receiver]
            .map(|side| self.host_for(number, side, &|what| stream(&format!("{name}.{what}"))));
        for (way, nic) in self.ways.iter_mut().zip(hosts) {
            way.add_flow(spec.hops.clone(), spec.rtt, nic);
        }
        if self.ends.options.capture {
            self.ends.output.tuples.push(FourTuple::new(number, hosts));
        }
        let Ends {
            flows,
            events,
            boot_ns,
            unfinished,
            ..
        } = &mut self.ends;
        let open_ns = *boot_ns + connection.open.0;
        events.push(open_ns, Target::Open(number));
        *unfinished += 1;
        flows.push(Flow {
            ends: [sender, receiver],
            apps,
            group: group as u32,
            hosts,
            open_ns,
            transfer_bytes: spec.workload.transfer_bytes(connection.bytes),
            // As if it were listed: of a flow whose rows are not kept nobody need know that it changed.
            dirty: !cell.samples.any(),
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

    /// The host at that side that a flow ends at, made with the first of its flows, which `stream` gives the draws of.
    fn host_for(&mut self, flow: u32, side: Side, stream: &dyn Fn(&str) -> Stream) -> u32 {
        let of_type = &self.ends.types[side as usize];
        let number = of_type.host_of(flow);
        let hosts = &mut self.ends.hosts[side as usize];
        if hosts.len() as u32 == number {
            let late = || {
                let draws = stream(&format!("{}.noise", side.label()));
                Box::new(Late::new(Lateness::new(of_type.noise, draws)))
            };
            hosts.push(Host {
                late: (of_type.noise > Nanos::ZERO).then(late),
            });
        }
        number
    }

    /// Runs on to `until` after the start, which is in it, or to the run's end where that is earlier; false: it is over.
    /// However a run is cut into steps, its output is the same.
    pub fn step(&mut self, until: Nanos) -> bool {
        self.advance(until, &mut |_, _| true);
        !self.is_over()
    }

    /// Runs to the end, or until `progress` says so.
    pub fn run(mut self, progress: &mut Progress) -> Output {
        self.advance(self.ends.cell.duration, progress);
        self.finish()
    }

    /// The time reached, after the start.
    pub fn now(&self) -> Nanos {
        Nanos(self.ends.now_ns - self.ends.boot_ns)
    }

    /// Has the duration passed, or is every flow's work complete?
    pub fn is_over(&self) -> bool {
        self.ends.unfinished == 0 || self.now() >= self.ends.cell.duration
    }

    /// What the hosts do at an instant comes before what arrives at it: an interrupt takes its time.
    fn advance(&mut self, until: Nanos, progress: &mut Progress) {
        let until_ns = self.ends.boot_ns + until.min(self.ends.cell.duration).0;
        let mut until_progress = EVENTS_PER_PROGRESS;
        while self.ends.unfinished > 0 {
            let [back, forward] = [self.ways[0].next(), self.ways[1].next()];
            let side = match forward <= back {
                true => Side::Receiver,
                false => Side::Sender,
            };
            let path_ns = forward.min(back).at_ns();
            let host_ns = self.ends.events.next_ns();
            let at_ns = path_ns.min(host_ns);
            if at_ns > until_ns {
                self.ends.now_ns = until_ns.max(self.ends.now_ns);
                return;
            }
            debug_assert!(at_ns >= self.ends.now_ns, "it is in the past");
            self.ends.now_ns = at_ns;
            if path_ns < host_ns {
                let (way, mut passage) = self.way_to(side);
                way.step(&mut passage);
            } else {
                let target = self.ends.events.take();
                self.dispatch(target);
            }
            self.send_out();
            until_progress -= 1;
            if until_progress == 0 {
                until_progress = EVENTS_PER_PROGRESS;
                if !progress(self.now(), &mut self.ends.rows) {
                    return;
                }
            }
        }
    }

    /// The way toward that side, and who is told what happens there.
    #[inline]
    fn way_to(&mut self, side: Side) -> (&mut Way<()>, Passage<'_>) {
        let passage = Passage {
            ends: &mut self.ends,
            side,
        };
        (&mut self.ways[side as usize], passage)
    }

    #[inline]
    fn dispatch(&mut self, target: Target) {
        let now_ns = self.ends.now_ns;
        match target {
            Target::Work(id, Work::Timer) => self.ends.on_timer(id),
            Target::Work(id, Work::App) => self.ends.on_app(id),
            Target::Work(id, Work::Transmit) => self.release(id),
            Target::Tick => {
                let due = self.ends.events.take_tick(now_ns);
                for &id in &due {
                    self.ends.on_timer(id);
                }
                self.ends.events.recycle(due);
            }
            Target::Late(id) => self.release_late(id),
            Target::Open(flow) => self.ends.open(flow),
            Target::Warm => {
                self.settle(now_ns - 1);
                for flow in &mut self.ends.flows {
                    if flow.open_ns <= now_ns {
                        flow.start_measuring(now_ns);
                    }
                }
            }
            Target::Sample => {
                self.settle(now_ns - 1);
                self.sample();
                let next_ns = now_ns + self.ends.cell.sample_interval.0;
                self.ends.events.push(next_ns, Target::Sample);
            }
        }
    }

    /// Hears of all that has left a queue until then.
    fn settle(&mut self, until_ns: u64) {
        for side in [Side::Sender, Side::Receiver] {
            let (way, mut passage) = self.way_to(side);
            way.settle(until_ns, &mut passage);
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
    if let Some(column) = cell.samples.of_kernels() {
        let what = format!("samples = [..., \"{column}\"] names what real kernels tell");
        return Err(SimError::NeedsLab { what });
    }
    if cell.path.keep_super_packets {
        let what = "path.super_packets = \"keep\" leaves TSO packets whole".into();
        return Err(SimError::NeedsLab { what });
    }
    Ok(())
}
