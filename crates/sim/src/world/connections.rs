//! Connections come and go: each is made when it opens, and given up when both ends are done and nothing of it is under way.

use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use knee_cc::{Instance, UnderWay};
use knee_scenario::workload::{Thread, in_turn};
use knee_scenario::{Bytes, Cell, Connection};
use knee_units::rng::{Lateness, Stream};
use knee_units::{NEVER, Nanos};

use super::World;
use super::ends::Ends;
use crate::event::Side;
use crate::flow::{End, Flow};
use crate::host::{self, FourTuple, Host, Late};
use crate::{Options, SimError};
use knee_tcp::Endpoint;

/// Connections that are closed are looked at when there are as many: enough that it costs little, and few enough that they are
/// still in a cache.
const REAP_AT: usize = 64;

/// The connections of a run: which there will be, and in which order they open.
pub struct Plan {
    /// By number.
    pub list: Vec<Connection>,
    /// Their numbers, by when they open.
    order: Vec<u32>,
    begun: usize,
    /// The algorithm of each `[[flow]]` and that of the receivers, before their first op.
    senders: Vec<Instance>,
    receiver: Instance,
    /// What they all are doing.
    pub under_way: Arc<UnderWay>,
    /// Of the applications at the sender.
    threads: Vec<Thread>,
}

impl Plan {
    pub fn new(cell: &Cell, rep: u32, options: &Options) -> Result<Plan, SimError> {
        let list = cell.connections(rep);
        let mut order: Vec<u32> = (0..list.len() as u32).collect();
        // Of those that open at one instant the lowest number is first.
        order.sort_by_key(|&number| list[number as usize].open);
        let under_way = Arc::default();
        let instance = |algorithm: &str, params: &[(String, u32)]| {
            instance(cell, algorithm, params).map(|made| made.telling(&under_way))
        };
        let steered = options.agent.map(|steered| steered.group);
        let senders = cell.flows.iter().enumerate().map(|(group, spec)| {
            match steered == Some(group) {
                // What a loss does to ssthresh, and what undo gives back, it says for the agent.
                true => instance("reno", &[]),
                false => instance(&spec.algorithm, &spec.params),
            }
        });
        Ok(Plan {
            list,
            order,
            begun: 0,
            senders: senders.collect::<Result<_, _>>()?,
            receiver: instance(&cell.receiver.algorithm, &[])?,
            under_way,
            threads: (0..cell.threads()[0]).map(|_| Thread::default()).collect(),
        })
    }

    /// The one that opens next.
    fn next(&self) -> Option<u32> {
        self.order.get(self.begun).copied()
    }
}

fn instance(cell: &Cell, algorithm: &str, params: &[(String, u32)]) -> Result<Instance, SimError> {
    let found = match cell.algorithm_files.get(algorithm) {
        Some(digest) => knee_cc::file::find(algorithm, digest),
        None => knee_cc::find(algorithm),
    };
    let found = found.ok_or_else(|| SimError::UnknownAlgorithm {
        name: algorithm.to_owned(),
    })?;
    let params: Vec<(&str, u32)> = params
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    Ok(Instance::new(found, &params)?)
}

/// The name of a connection, of which its streams of random numbers have theirs.
fn name(of: &Connection) -> String {
    format!("flow.{}.{}.{}", of.group, of.member, of.index)
}

/// Connections that are closed, of which something may still be under way.
pub struct Closing {
    numbers: Vec<u32>,
    /// How many there are when they are looked at again; no fewer than [`REAP_AT`].
    look_at: usize,
}

impl Default for Closing {
    fn default() -> Closing {
        Closing {
            numbers: Vec::new(),
            look_at: REAP_AT,
        }
    }
}

impl Closing {
    pub fn push(&mut self, number: u32) {
        self.numbers.push(number);
    }

    #[inline]
    pub fn is_due(&self) -> bool {
        self.numbers.len() >= self.look_at
    }

    /// Those that waited for their last sample need not any more.
    pub fn sampled(&mut self) {
        self.look_at = REAP_AT;
    }
}

impl World {
    /// What the path and the hosts know of connections before they open. Cheap: there may be a million.
    pub(super) fn announce(&mut self) {
        for number in 0..self.ends.plan.list.len() {
            let spec = &self.ends.cell.flows[self.ends.plan.list[number].group];
            for way in &mut self.ways {
                way.add_flow(spec.hops.clone(), spec.rtt);
            }
            if self.ends.options.capture {
                let hosts = [0, 1].map(|side| self.ends.types[side].host_of(number as u32));
                let tuple = FourTuple::new(number as u32, hosts);
                self.ends.output.tuples.push(tuple);
            }
        }
        self.ends.add_machines();
        for side in [Side::Sender, Side::Receiver] {
            let shared = self.ends.types[side as usize].hosts.unwrap_or(0);
            // Each is there with the first of its connections.
            for number in 0..shared.min(self.ends.plan.list.len() as u32) {
                let host = self.ends.new_host(number, side);
                self.ends.hosts[side as usize].push(host);
            }
        }
        self.ends.expect_next();
    }

    /// The next connection opens.
    pub(super) fn open(&mut self, number: u32) {
        self.begin(number);
        self.ends.plan.begun += 1;
        self.ends.expect_next();
        self.ends.open(number);
    }

    /// Makes a connection, which is closed yet.
    fn begin(&mut self, number: u32) {
        let hosts = [Side::Sender, Side::Receiver].map(|side| self.ends.take_host(number, side));
        for ((way, of_type), host) in self.ways.iter_mut().zip(&self.ends.types).zip(hosts) {
            way.set_nic(number, of_type.host_of(number), host);
        }
        let flow = self.ends.make(number, hosts);
        self.ends.flows.begin(number, flow);
    }

    /// Gives up connections that are over.
    #[inline(never)]
    pub(super) fn reap(&mut self) {
        // Whatever has arrived had left the queue before: no word of that comes later.
        self.settle(self.ends.now_ns - 1);
        let mut closing = std::mem::take(&mut self.ends.closing);
        closing.numbers.retain(|&number| {
            let over = self.ends.is_over(number);
            if over {
                self.give_up(number);
            }
            !over
        });
        closing.look_at = REAP_AT.max(2 * closing.numbers.len());
        self.ends.closing = closing;
    }

    /// Keeps what a connection leaves, and gives the rest back.
    fn give_up(&mut self, number: u32) {
        let flow = self.ends.flows.remove(number);
        self.ends.record(number, &flow, 0);
        for side in [Side::Sender, Side::Receiver] {
            if self.ends.types[side as usize].hosts.is_none() {
                self.ways[side as usize].free_nic(number);
                self.ends.free_hosts[side as usize].push(flow.hosts[side as usize]);
            }
        }
        self.ends.flows.end(flow);
    }

    /// Those that have not opened when the run ends leave a row too.
    pub(super) fn begin_rest(&mut self) {
        while let Some(number) = self.ends.plan.next() {
            self.begin(number);
            self.ends.plan.begun += 1;
        }
    }
}

impl Ends {
    fn stream(&self, component: fmt::Arguments<'_>) -> Stream {
        Stream::named(self.cell.rep_seed(self.rep), component)
    }

    /// The next connection's opening is an event.
    fn expect_next(&mut self) {
        if let Some(number) = self.plan.next() {
            let at_ns = self.boot_ns + self.plan.list[number as usize].open.0;
            self.events.push_open(at_ns, number);
        }
    }

    fn make(&self, number: u32, hosts: [u32; 2]) -> Flow {
        let connection = &self.plan.list[number as usize];
        let spec = &self.cell.flows[connection.group];
        let name = name(connection);
        let apps = spec.workload.apps(connection.bytes);
        let mut apps = apps.expect("programs' connections are their own");
        let thread = in_turn(connection.place, spec.workload.threads()[0]);
        apps.sender.runs_on(&self.plan.threads[thread]);
        // A client that asks would set TCP_NODELAY, as redis-benchmark and netperf do.
        let nodelay = spec.nodelay.unwrap_or(apps.receiver_opens);
        let end = |side: Side, instance: &Instance| {
            let label = side.label();
            let rng = self.stream(format_args!("{name}.{label}.cc"));
            let mut offsets = self.stream(format_args!("{name}.{label}.peer_tsoffset"));
            let tcp = &self.types[side as usize].tcp;
            let peer_tsoffset = offsets.next_u32();
            End::new(Endpoint::new(
                tcp,
                instance.clone(),
                rng,
                peer_tsoffset,
                nodelay,
            ))
        };
        let mut sender = end(Side::Sender, &self.plan.senders[connection.group]);
        let mut receiver = end(Side::Receiver, &self.plan.receiver);
        self.settle_in(number, hosts, [&mut sender, &mut receiver]);
        if let Some(seat) = self.seat.as_ref().filter(|seat| seat.number == number) {
            sender.tcp.give_to_agent(seat.asks());
        }
        sender.tcp.set_blocking(spec.blocking);
        if let Some(pacing) = spec.pacing {
            sender.tcp.set_pacing(host::pacing(pacing));
        }
        if let Some(Bytes(bytes)) = spec.sndbuf {
            let most = self.cell.sender.wmem_max_bytes;
            sender.tcp.set_sndbuf(bytes.min(most));
        }
        if let Some(Bytes(bytes)) = spec.rcvbuf {
            let most = self.cell.receiver.rmem_max_bytes;
            receiver.tcp.set_rcvbuf(bytes.min(most));
        }
        if let Some(Bytes(bytes)) = spec.window_clamp {
            receiver.tcp.set_window_clamp(bytes);
        }
        if let Some(rate) = spec.max_pacing_rate {
            sender.tcp.set_max_pacing_rate(rate.bits_per_sec() / 8);
        }
        Flow {
            ends: [sender, receiver],
            receiver_only_reads: apps.receiver.only_reads(),
            sender_only_writes: apps.sender.only_writes(),
            apps,
            group: connection.group as u32,
            hosts,
            under_way: 0,
            open_ns: self.boot_ns + connection.open.0,
            transfer_bytes: (spec.workload.transfer_bytes(connection.bytes))
                .and_then(NonZeroU64::new),
            dropped_bytes: 0,
            duplicated_bytes: 0,
            path_lost_pkts: 0,
            queue_dropped_pkts: 0,
            queue_delay_us: Default::default(),
            latency_us: None,
            writes: 0,
            reads: spec.workload.times_reads().then(Box::default),
            measured: false,
            baseline: None,
            final_times: None,
            held_up: (self.types.iter().any(|of| of.machine.is_some())).then(Box::default),
        }
    }

    /// The host at that side that a connection ends at: one that it shares, or one of its own, whose place another had before.
    fn take_host(&mut self, number: u32, side: Side) -> u32 {
        if self.types[side as usize].hosts.is_some() {
            return self.types[side as usize].host_of(number);
        }
        let host = self.new_host(number, side);
        let hosts = &mut self.hosts[side as usize];
        match self.free_hosts[side as usize].pop() {
            Some(place) => {
                hosts[place as usize] = host;
                place
            }
            None => {
                hosts.push(host);
                (hosts.len() - 1) as u32
            }
        }
    }

    /// A host, whose draws are named after the first of its connections.
    fn new_host(&self, first: u32, side: Side) -> Host {
        let noise = self.types[side as usize].noise;
        let late = || {
            let name = name(&self.plan.list[first as usize]);
            let draws = self.stream(format_args!("{name}.{}.noise", side.label()));
            Box::new(Late::new(Lateness::new(noise, draws)))
        };
        Host {
            late: (noise > Nanos::ZERO).then(late),
        }
    }

    /// Is it certain that nothing ever happens to a connection again?
    fn is_over(&self, number: u32) -> bool {
        let flow = &self.flows[number as usize];
        let rests = flow.ends.iter().all(|end| {
            end.tcp.is_done() && end.tcp.next_timer_ns() == NEVER && end.app_wakes_ns == NEVER
        });
        rests
            && flow.under_way == 0
            && flow.final_times.is_some()
            && (!self.changed.has(number) || !self.cell.samples.any())
    }
}
