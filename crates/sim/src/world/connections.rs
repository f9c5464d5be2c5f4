//! Connections come and go: each is made when it opens, and given up when both ends are done and nothing of it is under way.

use std::fmt;
use std::num::NonZeroU64;

use knee_cc::Instance;
use knee_scenario::workload::in_turn;
use knee_scenario::{Bytes, Connection};
use knee_units::rng::{Lateness, Stream};
use knee_units::{NEVER, Nanos};

use super::World;
use super::plan::REAP_AT;
use crate::event::Side;
use crate::flow::{End, Flow};
use crate::host::{self, FourTuple, Late};
use knee_tcp::Endpoint;

/// The name of a connection, of which its streams of random numbers have theirs.
fn name(of: &Connection) -> String {
    format!("flow.{}.{}.{}", of.group, of.member, of.index)
}

impl World {
    /// What the path and the hosts know of connections before they open. Cheap: there may be a million.
    pub(super) fn announce(&mut self) {
        for number in 0..self.plan.list.len() {
            let spec = &self.cell.flows[self.plan.list[number].group];
            for way in &mut self.ways {
                way.add_flow(spec.hops.clone(), spec.rtt);
            }
            if self.options.capture {
                let hosts = [0, 1].map(|side| self.types[side].host_of(number as u32));
                let tuple = FourTuple::new(number as u32, hosts);
                self.recorder.output.tuples.push(tuple);
            }
        }
        self.add_machines();
        for side in [Side::Sender, Side::Receiver] {
            let shared = self.types[side as usize].hosts.unwrap_or(0);
            // Each is there with the first of its connections.
            for number in 0..shared.min(self.plan.list.len() as u32) {
                let late = self.late_of(number, side);
                self.late[side as usize].push(late);
            }
        }
        self.expect_next();
    }

    /// The next connection opens.
    pub(super) fn open(&mut self, number: u32) {
        self.add(number);
        self.plan.begun += 1;
        self.expect_next();
        self.connect(number);
    }

    /// Makes a connection, which is closed yet.
    fn add(&mut self, number: u32) {
        let hosts = [Side::Sender, Side::Receiver].map(|side| self.take_host(number, side));
        for ((way, of_type), host) in self.ways.iter_mut().zip(&self.types).zip(hosts) {
            way.set_nic(number, of_type.host_of(number), host);
        }
        let flow = self.make(number, hosts);
        self.conns.flows.begin(number, flow);
    }

    /// Gives up connections that are over.
    #[inline(never)]
    pub(super) fn reap(&mut self) {
        // Whatever has arrived had left the queue before: no word of that comes later.
        self.settle(self.now_ns - 1);
        let mut closing = std::mem::take(&mut self.closing);
        closing.numbers.retain(|&number| {
            let over = self.is_at_rest(number);
            if over {
                self.give_up(number);
            }
            !over
        });
        closing.look_at = REAP_AT.max(2 * closing.numbers.len());
        self.closing = closing;
    }

    /// Keeps what a connection leaves, and gives the rest back.
    fn give_up(&mut self, number: u32) {
        let flow = self.conns.flows.remove(number);
        self.record(number, &flow, 0);
        for side in [Side::Sender, Side::Receiver] {
            if self.types[side as usize].hosts.is_none() {
                self.ways[side as usize].free_nic(number);
                self.free_hosts[side as usize].push(flow.hosts[side as usize]);
            }
        }
        self.conns.flows.end(flow);
    }

    /// Those that have not opened when the run ends leave a row too.
    pub(super) fn begin_rest(&mut self) {
        while let Some(number) = self.plan.next() {
            self.add(number);
            self.plan.begun += 1;
        }
    }

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
        let late = self.late_of(number, side);
        let hosts = &mut self.late[side as usize];
        match self.free_hosts[side as usize].pop() {
            Some(place) => {
                hosts[place as usize] = late;
                place
            }
            None => {
                hosts.push(late);
                (hosts.len() - 1) as u32
            }
        }
    }

    /// What a host sends late, if it does; the draws are named after the first of its connections.
    fn late_of(&self, first: u32, side: Side) -> Option<Box<Late>> {
        let noise = self.types[side as usize].noise;
        let late = || {
            let name = name(&self.plan.list[first as usize]);
            let draws = self.stream(format_args!("{name}.{}.noise", side.label()));
            Box::new(Late::new(Lateness::new(noise, draws)))
        };
        (noise > Nanos::ZERO).then(late)
    }

    /// Is it certain that nothing ever happens to a connection again?
    fn is_at_rest(&self, number: u32) -> bool {
        let flow = &self.conns.flows[number as usize];
        let rests = flow.ends.iter().all(|end| {
            end.tcp.is_done() && end.tcp.next_timer_ns() == NEVER && end.app_wakes_ns == NEVER
        });
        rests
            && flow.under_way == 0
            && flow.final_times.is_some()
            && self.recorder.has_all_of(number)
    }
}
