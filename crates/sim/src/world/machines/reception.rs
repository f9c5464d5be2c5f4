//! Receiving: rings, polls, GRO, steering, backlogs, and a packet's way up the stack.

use std::mem::ManuallyDrop;

use knee_host::{Bundle, Cost, hash, pick};
use knee_path::sink::Passing;
use knee_scenario::GroTable;
use knee_tcp::segment::Segment;
use knee_units::NEVER;

use super::super::World;
use crate::event::{EndpointId, Side};
use crate::gro::lists::GroLists;
use crate::gro::{self, Batch};
use crate::job::{Came, Effect, Job, Last, Up};
use crate::machine::NAPI_WEIGHT;
use crate::napi::Cause;
use crate::processor::Processor;

/// The tick of a clock of 1,000 Hz, with which GRO holds packets from poll to poll.
const GRO_KEEPS_TICK_NS: u64 = 1_000_000;

/// A packet of a batch is announced when this many stand between it and the one at work.
const SOON: usize = 1;

impl World {
    /// Packets come to the NIC of a host.
    #[inline(always)]
    pub(in crate::world) fn reach_machine(&mut self, side: Side, packets: &[Passing<()>]) {
        match *packets {
            [only] => self.reach_queue(side, only),
            _ => self.reach_queues(side, packets),
        }
    }

    #[inline(never)]
    fn reach_queues(&mut self, side: Side, packets: &[Passing<()>]) {
        let are_many = self.conns.flows.are_many();
        for (place, &passing) in packets.iter().enumerate() {
            if are_many {
                self.fetch_behind(side, &packets[place + 1..]);
            }
            self.reach_queue(side, passing);
        }
    }

    #[inline(always)]
    fn reach_queue(&mut self, side: Side, passing: Passing<()>) {
        let queue = self.conns.flows[passing.flow as usize].ends[side as usize].rx_queue;
        let of = &self.machines.queues[queue as usize];
        let begins = !of.ring.polled
            && passing.pkts <= of.at_once_pkts
            && gro::is_one(&self.conns.slab, &passing, of.gro)
            && self.poll_at_once((of.cpu, of.gro), queue, side, passing);
        if !begins {
            self.put_into_ring(side, queue, passing);
        }
    }

    #[inline(never)]
    fn put_into_ring(&mut self, side: Side, queue: u32, passing: Passing<()>) {
        self.touch(self.machines.queues[queue as usize].cpu);
        let Some(passing) = self.fit(side, queue, passing) else {
            return;
        };
        let to = &mut self.machines.queues[queue as usize];
        let waits = to.napi.interrupt_ns != NEVER;
        if to.ring.push(passing, passing.pkts) || waits {
            self.interrupt(queue);
        }
    }

    /// Asks for what the packets of a batch need that come next.
    fn fetch_behind(&self, side: Side, behind: &[Passing<()>]) {
        if let Some(next) = behind.first() {
            self.conns.flows.fetch(&self.conns.slab, side, next, true);
        }
        if let Some(soon) = behind.get(SOON) {
            self.conns.flows.fetch(&self.conns.slab, side, soon, false);
        }
    }

    /// Packets of one segment meet a queue that waits for some and a processor that idles: they are polled and go up before
    /// anything else can come. False: they must wait.
    #[inline(always)]
    fn poll_at_once(
        &mut self,
        (cpu, gro): (u32, bool),
        queue: u32,
        side: Side,
        passing: Passing<()>,
    ) -> bool {
        let mut by = self.machines.cpus.take(cpu);
        if !self.is_free(&mut by) {
            self.machines.cpus.put_back(by);
            return false;
        }
        self.conns.slab.fetch(passing.handle);
        let rested_ns = by.core.begin_at_once(self.now_ns);
        by.at_once_pkts = passing.pkts;
        by.charge_poll_at_once(passing.pkts, gro, rested_ns);
        let to = EndpointId::new(passing.flow, side);
        self.touch_app(&by, to);
        self.enter_socket(&mut by, to, (passing.handle, passing.pkts), true);
        by.outcome.last = Last::Polled(queue);
        if !self.softirq_runs_alone(&mut by) {
            let of = &mut self.machines.queues[queue as usize];
            (of.ring.polled, of.polled_pkts) = (true, passing.pkts);
            by.budget.begin(self.now_ns);
        }
        self.machines.cpus.put_back(by);
        true
    }

    /// The packets for which the queue has descriptors; the others are lost.
    pub(super) fn fit(
        &mut self,
        side: Side,
        queue: u32,
        passing: Passing<()>,
    ) -> Option<Passing<()>> {
        let room = self.machines.queues[queue as usize].ring.room(passing.pkts);
        if room == passing.pkts {
            return Some(passing);
        }
        let fits = (room > 0).then(|| Passing {
            handle: self.conns.slab.cut(passing.handle, room),
            pkts: room,
            ..passing
        });
        let lost = self.conns.slab.take(passing.handle, passing.pkts - room);
        let cpu = self.machines.queues[queue as usize].cpu;
        self.machines.cpus[cpu].counts.ring_drops += u64::from(passing.pkts - room);
        self.lose_arrived(EndpointId::new(passing.flow, side), &lost);
        fits
    }

    /// A host drops a packet that has arrived.
    fn lose_arrived(&mut self, to: EndpointId, segment: &Segment) {
        let flow = &mut self.conns.flows[to.flow() as usize];
        flow.under_way -= u32::from(segment.packets);
        if to.side() == Side::Receiver {
            flow.dropped_bytes += u64::from(segment.payload_bytes);
        }
    }

    /// The processor that a packet goes on at, by RPS and RFS (get_rps_cpu()); `None`: here, without a backlog.
    pub(super) fn steer(&mut self, by: &Processor, to: EndpointId) -> Option<u32> {
        let World {
            machines, types, ..
        } = self;
        let of = &mut machines.list[by.machine as usize];
        let rps_cpus = &types[of.side as usize].machine.as_ref()?.rps_cpus;
        if rps_cpus.is_empty() && of.rfs.is_none() {
            return None;
        }
        let hash = hash(to.flow());
        let backlog_of = |cpu| match cpu == by.number {
            true => by.backlog,
            false => machines.cpus[cpu].backlog,
        };
        let by_flow = of.rfs.as_mut().and_then(|rfs| {
            let target = rfs.choose(hash, |cpu| {
                let (came, waits) = backlog_of(cpu);
                came - waits
            })?;
            rfs.went_to(hash, target, backlog_of(target).0 + 1);
            Some(target)
        });
        let by_hash = || {
            let place = pick(hash, rps_cpus.len() as u32) as usize;
            rps_cpus.get(place).map(|cpu| of.first_cpu + cpu)
        };
        by_flow.or_else(by_hash)
    }

    /// A packet for the backlog of a processor, unless that is full or the one at work limits the packet's flow.
    pub(super) fn put_into_backlog(
        &mut self,
        by: &mut Processor,
        target: u32,
        to: EndpointId,
        handle: u32,
    ) -> Option<Up> {
        let most = u64::from(self.conf_of(by.machine).netdev_max_backlog);
        let (came, waits) = match target == by.number {
            true => by.backlog,
            false => self.machines.cpus[target].backlog,
        };
        let is_full = waits >= most;
        let flow_limit = &mut by.flow_limit;
        let is_limited = !is_full
            && flow_limit
                .as_mut()
                .is_some_and(|limit| limit.refuses(hash(to.flow()), waits, most));
        by.counts.backlog_flow_limits += u64::from(is_limited);
        let drops = is_full || is_limited;
        let of_target = match target == by.number {
            true => &mut *by,
            false => &mut self.machines.cpus[target],
        };
        if drops {
            of_target.counts.backlog_drops += 1;
            let packets = self.conns.slab.get(handle).packets;
            let segment = self.conns.slab.take(handle, packets.into());
            self.lose_arrived(to, &segment);
            return None;
        }
        of_target.backlog = (came + 1, waits + 1);
        let starts = waits == 0;
        let by_ipi = starts && by.number != target;
        Some(Up {
            to,
            handle,
            from: Came::Backlog { starts, by_ipi },
            ends_poll: None,
        })
    }

    /// NAPI polls a queue: its packets go up, here or where they are steered to.
    pub(super) fn poll(&mut self, by: &mut Processor, queue: u32, cause: Cause) {
        let mut polled = std::mem::take(&mut self.machines.polled);
        let slab = &mut self.conns.slab;
        let of = &mut self.machines.queues[queue as usize];
        let side = of.side;
        let pkts = of.ring.poll(NAPI_WEIGHT, &mut polled, |passing, pkts| {
            passing.pkts -= pkts;
            Passing {
                handle: slab.cut(passing.handle, pkts),
                pkts,
                ..*passing
            }
        });
        of.polled_pkts = pkts;
        if let Some(coalescing) = &mut of.napi.coalescing {
            let bytes = |of: &Passing<()>| {
                let segment = slab.get(of.handle);
                segment.payload_of(of.pkts) + of.pkts * segment.head_bytes()
            };
            coalescing.traffic.pkts += u64::from(pkts);
            coalescing.traffic.bytes += polled.iter().map(|of| u64::from(bytes(of))).sum::<u64>();
        }
        by.budget.begin(self.now_ns);
        by.charge_poll(pkts, cause, self.types[side as usize].gro);
        let mut ups = std::mem::take(&mut self.machines.ups);
        match self.types[side as usize].gro {
            true => {
                let compared = self.merge(queue, side, &polled, &mut ups);
                by.core.charge(Cost::GroCompare, compared);
            }
            false => {
                let mut batch = Batch::new(&polled);
                while let Some(next) = batch.peek() {
                    let to = EndpointId::new(next.flow, side);
                    ups.extend(
                        batch
                            .first(&mut self.conns.slab, false)
                            .map(|one| (to, one)),
                    );
                }
                self.complete(queue, false);
            }
        }
        let sets_timer = self.machines.queues[queue as usize].napi.sets_timer;
        by.core.charge(Cost::TimerArm, sets_timer.into());
        polled.clear();
        self.machines.polled = polled;
        self.hand_up(by, queue, &mut ups);
        self.machines.ups = ups;
    }

    /// GRO: merges what a poll took; returns how many comparisons that took. For a new flow a list that is full gives up its
    /// oldest packet, or lets the new one pass (Linux, dev_gro_receive()).
    fn merge(
        &mut self,
        queue: u32,
        side: Side,
        polled: &[Passing<()>],
        ups: &mut Vec<(EndpointId, Segment)>,
    ) -> u64 {
        let tick_ns = self.types[side as usize].tcp.tick_ns;
        let of = &mut self.machines.queues[queue as usize];
        let mut held = std::mem::take(&mut of.held);
        let machine = of.machine;
        let table = self.conf_of(machine).gro_table;
        let jiffy = self.now_ns / tick_ns;
        let mut compared = 0;
        let mut batch = Batch::new(polled);
        while let Some(next) = batch.peek() {
            let to = EndpointId::new(next.flow, side);
            let list = GroLists::list_of(to, table);
            let length = held.length(list);
            if let Some(place) = held.place(to) {
                let into = held.at(place);
                let before = into.packets;
                if batch.merge(into, &mut self.conns.slab) {
                    compared += length * u64::from(into.packets - before);
                    continue;
                }
                ups.push(held.remove(place));
            }
            let Some(segment) = batch.first(&mut self.conns.slab, true) else {
                break;
            };
            compared += length * u64::from(segment.packets);
            // As it was before its connection's last packet was given up.
            let is_full = table != GroTable::List && length >= GroLists::LIST_MAX;
            if segment.payload_bytes == 0 || is_full && table == GroTable::ShortListPassed {
                ups.push((to, segment));
                continue;
            }
            if is_full {
                ups.extend(held.remove_oldest(list));
            }
            held.push(to, list, jiffy, segment);
        }
        // A poll that took all it may is not over. With a clock of 1,000 Hz it gives up only what a jiffy has passed since
        // (napi_gro_flush(n, HZ >= 1000)), and so does one with a timeout.
        let was_full = self.machines.queues[queue as usize].was_full();
        let keeps = match was_full {
            true => tick_ns <= GRO_KEEPS_TICK_NS,
            false => self.complete(queue, !held.is_empty()),
        };
        held.give_up(|since| !keeps || since != jiffy, ups);
        self.machines.queues[queue as usize].held = held;
        compared
    }

    /// What a poll took goes up: the first at once if it is alone, the others in turn.
    fn hand_up(&mut self, by: &mut Processor, queue: u32, ups: &mut Vec<(EndpointId, Segment)>) {
        if self.machines.list[by.machine as usize].steers {
            for (to, segment) in ups.drain(..) {
                // One that nothing is known of goes on here, through the backlog as the others.
                let target = self.steer(by, to).unwrap_or(by.number);
                let handle = self.conns.slab.insert(segment);
                if let Some(up) = self.put_into_backlog(by, target, to, handle) {
                    by.outcome.push(Effect::Raise(target, Job::Up(up)));
                }
            }
            by.outcome.last = Last::Polled(queue);
            return;
        }
        // In their order, before what waits; the last one ends the poll.
        let mut ends_poll = Some(queue);
        for (to, segment) in ups.drain(1.min(ups.len())..).rev() {
            let up = Up {
                to,
                handle: self.conns.slab.insert(segment),
                from: Came::Poll,
                ends_poll: ends_poll.take(),
            };
            by.core.raise_first(Job::Up(up));
        }
        if let Some((to, segment)) = ups.pop() {
            by.climb(Came::Poll, segment.packets.into());
            self.touch_app(by, to);
            let packets = segment.packets.into();
            let handle = self.conns.slab.insert(segment);
            self.enter_socket(by, to, (handle, packets), true);
        }
        if let Some(queue) = ends_poll {
            by.outcome.last = Last::Polled(queue);
        }
    }

    /// A train enters its socket: its handle, and how many packets. `waits`: it waits there while an application has the socket.
    #[inline(never)]
    pub(super) fn enter_socket(
        &mut self,
        by: &mut Processor,
        to: EndpointId,
        (handle, packets): (u32, u32),
        waits: bool,
    ) {
        let flow = self.conns.flows.remove(to.flow());
        let mut turn = self.begin_with(to, flow);
        if waits && turn.flow.end(to.side()).is_owned {
            self.conns
                .flows
                .insert(to.flow(), ManuallyDrop::into_inner(turn.flow));
            return self.wait_for_socket(by, to, handle, packets);
        }
        let first = self.outbox.handles.len();
        let segment = self.conns.slab.take(handle, packets);
        let has_data = segment.payload_bytes > 0;
        turn.flow.under_way -= u32::from(segment.packets);
        let end = turn.flow.end(to.side());
        end.cpu = by.number;
        let skbs_before = end.tcp.skbs_out();
        let readable = self.call(&mut turn, |tcp, cx| tcp.on_segment(cx, &segment));
        let end = turn.flow.end(to.side());
        let freed = skbs_before.saturating_sub(end.tcp.skbs_out());
        let of = &mut by.core;
        if has_data {
            end.unread_skbs += 1;
            of.charge_bundle(Bundle::DataInSocket, 1);
            if freed > 0 {
                of.charge(Cost::AckReceive, 1);
                of.charge(Cost::SkbFree, freed);
            }
        } else {
            of.charge_bundle(Bundle::AckInSocket, 1);
            of.charge(Cost::SkbFree, freed + 1);
        }
        if readable > 0 || self.has_work(to, &mut turn.flow) {
            self.make_ready(by, to, &mut turn.flow);
        }
        self.end_on(by, first, turn);
    }
    /// A packet that has gone up within its poll's job waits for its socket's lock.
    #[inline(never)]
    fn wait_for_socket(&mut self, by: &mut Processor, to: EndpointId, handle: u32, packets: u32) {
        let is_whole = packets == u32::from(self.conns.slab.get(handle).packets);
        let up = Up {
            to,
            handle: match is_whole {
                true => handle,
                false => self.conns.slab.cut(handle, packets),
            },
            from: Came::Poll,
            ends_poll: None,
        };
        self.defer(by, to, Job::Up(up), None);
    }
}
