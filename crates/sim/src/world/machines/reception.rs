//! Receiving: rings, polls, GRO, steering, backlogs, and a packet's way up the stack.

use knee_host::{Cost, hash, pick};
use knee_path::pipe::Passing;
use knee_scenario::{GroTable, Reception};
use knee_segment::Segment;

use super::super::ends::Ends;
use crate::event::{EndpointId, Side};
use crate::gro::Batch;
use crate::machine::{Came, Effect, Job, NAPI_WEIGHT, Up};

/// Lists of GRO's hash: GRO_HASH_BUCKETS.
const GRO_LISTS: u32 = 8;
/// Packets that one list holds at most: MAX_GRO_SKBS.
const GRO_HELD_MAX: usize = 8;
/// The tick of a clock of 1,000 Hz, with which GRO holds packets from poll to poll.
const GRO_KEEPS_TICK_NS: u64 = 1_000_000;

impl Ends {
    /// Packets come to the NIC of a host.
    pub(in crate::world) fn reach_machine(&mut self, side: Side, packets: &[Passing<()>]) {
        let host = self.flows[packets[0].flow as usize].hosts[side as usize];
        let machine = self.machines.of_host[side as usize][host as usize];
        for &passing in packets {
            let queue = self.queue_of(machine, side, passing.flow);
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

    /// The queue of a machine that a connection's packets for that side come to (RSS).
    fn queue_of(&self, machine: u32, side: Side, flow: u32) -> u32 {
        let conf = &self.types[side as usize].machine;
        let queues = conf.as_ref().map_or(1, |conf| conf.queues);
        let first_queue = self.machines.list[machine as usize].first_queue[side as usize];
        first_queue + pick(hash(flow), queues)
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
    pub(in crate::world) fn cross(&mut self, from: EndpointId, handle: u32) {
        let cpu = self.flows[from.flow() as usize].end(from.side()).cpu;
        let to = EndpointId::new(from.flow(), from.side().other());
        let packets = u32::from(self.slab.get(handle).packets);
        let each = match self.cell.path.keep_super_packets {
            true => packets,
            false => 1,
        };
        if self.types[to.side() as usize].gro {
            return self.cross_to_ring(cpu, to, handle, packets);
        }
        let mut left = packets;
        while left > 0 {
            let segment = self.slab.take(handle, each);
            left -= each;
            let target = self.steer(cpu, to).unwrap_or(cpu);
            if let Some(up) = self.put_into_backlog(cpu, target, to, segment) {
                self.raise(target, Job::Up(up));
            }
        }
    }

    /// With GRO a veth has a ring and a NAPI, which the sending processor polls.
    fn cross_to_ring(&mut self, cpu: u32, to: EndpointId, handle: u32, pkts: u32) {
        let machine = self.machines.of_cpu[cpu as usize];
        let queue = self.queue_of(machine, to.side(), to.flow());
        let passing = Passing {
            flow: to.flow(),
            handle,
            pkts,
            note: (),
        };
        let Some(passing) = self.fit(to.side(), queue, passing) else {
            return;
        };
        let of = &mut self.machines.queues[queue as usize];
        if of.ring.push(passing, passing.pkts) {
            of.cpu = cpu;
            let interrupts = 0;
            self.raise(cpu, Job::Poll { queue, interrupts });
        }
    }

    /// The processor that a packet goes on at, by RPS and RFS (get_rps_cpu()); `None`: here, without a backlog.
    fn steer(&mut self, cpu: u32, to: EndpointId) -> Option<u32> {
        let Ends {
            machines, types, ..
        } = self;
        let of = &mut machines.list[machines.of_cpu[cpu as usize] as usize];
        let rps_cpus = &types[of.side].machine.as_ref()?.rps_cpus;
        if rps_cpus.is_empty() && of.rfs.is_none() {
            return None;
        }
        let hash = hash(to.flow());
        let backlogs = &machines.backlogs;
        let by_flow = of.rfs.as_mut().and_then(|rfs| {
            let target = rfs.choose(hash, |cpu| {
                let (came, waits) = backlogs[cpu as usize];
                came - waits
            })?;
            rfs.went_to(hash, target, backlogs[target as usize].0 + 1);
            Some(target)
        });
        let by_hash = || {
            let place = pick(hash, rps_cpus.len() as u32) as usize;
            rps_cpus.get(place).map(|cpu| of.first_cpu + cpu)
        };
        by_flow.or_else(by_hash)
    }

    /// A packet for the backlog of a processor, unless that is full.
    fn put_into_backlog(
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

    /// NAPI polls a queue: its packets go up, here or where they are steered to.
    pub(super) fn poll(&mut self, cpu: u32, queue: u32, interrupts: u32) {
        let machine = self.machines.of_cpu[cpu as usize];
        let side = self.machines.queues[queue as usize].side;
        let reception = self.conf_of(machine).reception;
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
        let served = match reception {
            Reception::Napi => interrupts.into(),
            Reception::Interrupts => pkts.into(),
            Reception::BusyPoll => 0,
        };
        counts.interrupts += served;
        self.charge(cpu, Cost::Interrupt, served);
        if reception != Reception::BusyPoll {
            self.charge(cpu, Cost::Softirq, interrupts.into());
        }
        self.charge(cpu, Cost::Poll, 1);
        self.charge(cpu, Cost::DriverReceive, pkts.into());
        let mut ups = std::mem::take(&mut self.machines.ups);
        let compared = match self.types[side as usize].gro {
            true => {
                self.charge(cpu, Cost::Gro, pkts.into());
                self.merge(queue, side, &polled, &mut ups)
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

    /// GRO: merges what a poll took; returns how many comparisons that took. For a new flow a list that is full gives up its
    /// oldest packet, or lets the new one pass (Linux, dev_gro_receive()).
    fn merge(
        &mut self,
        queue: u32,
        side: Side,
        polled: &[Passing<()>],
        ups: &mut Vec<(EndpointId, Segment)>,
    ) -> u64 {
        let of = &mut self.machines.queues[queue as usize];
        let (mut held, was_full) = (std::mem::take(&mut of.held), of.was_full);
        let table = self
            .conf_of(self.machines.queues[queue as usize].machine)
            .gro_table;
        let tick_ns = self.types[side as usize].tcp.tick_ns;
        let jiffy = self.now_ns / tick_ns;
        let list_of = |to: EndpointId| match table {
            GroTable::Hash => hash(to.flow()) % GRO_LISTS,
            GroTable::ShortList | GroTable::ShortListPassed | GroTable::List => 0,
        };
        let mut compared = 0;
        let mut batch = Batch::new(polled);
        while let Some(next) = batch.peek() {
            let to = EndpointId::new(next.flow, side);
            let list = list_of(to);
            let in_list = |(of, ..): &&(EndpointId, Segment, u64)| list_of(*of) == list;
            let length = held.iter().filter(in_list).count();
            let place = held.iter().position(|&(of, ..)| of == to);
            if let Some(place) = place {
                let before = held[place].1.packets;
                if batch.merge(&mut held[place].1, &mut self.slab) {
                    compared += length as u64 * u64::from(held[place].1.packets - before);
                    continue;
                }
                let (of, segment, _) = held.remove(place);
                ups.push((of, segment));
            }
            let Some(segment) = batch.first(&mut self.slab, true) else {
                break;
            };
            compared += length as u64 * u64::from(segment.packets);
            let is_full = table != GroTable::List && length >= GRO_HELD_MAX;
            if segment.payload_bytes == 0 || is_full && table == GroTable::ShortListPassed {
                ups.push((to, segment));
                continue;
            }
            if is_full {
                let oldest = held.iter().position(|(of, ..)| list_of(*of) == list);
                let oldest = oldest.map(|oldest| held.remove(oldest));
                ups.extend(oldest.map(|(of, segment, _)| (of, segment)));
            }
            held.push((to, segment, jiffy));
        }
        // A poll that took all it may is not over. With a clock of 1,000 Hz it gives up only what a jiffy has passed since
        // (napi_gro_flush(n, HZ >= 1000)).
        let keeps = was_full && tick_ns <= GRO_KEEPS_TICK_NS;
        let given_up = held.extract_if(.., |&mut (_, _, since)| !keeps || since != jiffy);
        ups.extend(given_up.map(|(of, segment, _)| (of, segment)));
        self.machines.queues[queue as usize].held = held;
        compared
    }

    /// What a poll took goes up: the first at once if it is alone, the others in turn.
    fn hand_up(&mut self, cpu: u32, queue: u32, ups: &mut Vec<(EndpointId, Segment)>) {
        let machine = self.machines.of_cpu[cpu as usize];
        let steers = !self.conf_of(machine).rps_cpus.is_empty()
            || self.machines.list[machine as usize].rfs.is_some();
        if steers {
            for (to, segment) in ups.drain(..) {
                // One that nothing is known of goes on here, through the backlog as the others.
                let target = self.steer(cpu, to).unwrap_or(cpu);
                if let Some(up) = self.put_into_backlog(cpu, target, to, segment) {
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
            Some(up) => self.run_job(cpu, Job::Up(up)),
            None => self.machines.coming.push(Effect::Polled(queue)),
        }
    }

    /// A poll is over with all that came of it: is there more?
    pub(super) fn end_poll(&mut self, queue: u32) {
        let of = &mut self.machines.queues[queue as usize];
        let cpu = of.cpu;
        if of.ring.is_empty() && of.held.is_empty() {
            of.ring.polled = false;
            return;
        }
        let interrupts = u32::from(!of.was_full);
        self.raise(cpu, Job::Poll { queue, interrupts });
    }

    /// A packet goes up the stack to its end's socket.
    pub(super) fn climb(&mut self, cpu: u32, up: &Up) {
        if let Came::Backlog { starts, by_ipi } = up.from {
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
        let counts = self.counts_of(cpu);
        counts.skbs_received += 1;
        counts.segments_received += u64::from(up.segment.packets);
    }

    /// A packet is in its socket.
    pub(super) fn enter_socket(&mut self, cpu: u32, up: Up) {
        let Up {
            to,
            segment,
            ends_poll,
            ..
        } = up;
        self.charge(cpu, Cost::SocketLock, 1);
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
}
