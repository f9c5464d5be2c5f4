//! Flow queueing with PIE: flows are hashed into queues of their own, each
//! with its PIE, and served by deficit round robin, new flows first.
//!
//! Source: Linux 6.12 net/sched/sch_fq_pie.c; RFC 8033 for each queue, RFC
//! 8290 section 4 for the order of the flows.
//!
//! Differs from Linux: as PIE (pie.rs), and flows are hashed by number and not
//! by addresses and ports; each PIE is corrected when its flow has a packet,
//! by what it has missed; no `memory_limit`, which Linux counts but does not keep.

use knee_units::Nanos;
use knee_units::params::{Param, Unit};
use knee_units::rng::Stream;

use super::flows::{Flows, Hash};
use super::fq_codel::{FLOWS, QUANTUM, quantum};
use super::pie::{self, Clock, Pie, Settings};
use super::{Queue, QueueKind, Setup};
use crate::packet::Packet;
use crate::queue::BufferLimit;

pub(super) const KIND: QueueKind = QueueKind {
    name: "fq_pie",
    summary: "a queue with PIE for each flow, served in turn; sparse flows go first",
    source: "Linux net/sched/sch_fq_pie.c; RFC 8033",
    params: &[
        pie::TARGET,
        pie::TUPDATE,
        pie::ALPHA,
        pie::BETA,
        pie::ECN,
        Param {
            name: "ecn_prob",
            unit: Unit::Share,
            default: 0.1,
            min: 0.0,
            max: 1.0,
            doc: "up to this probability, rounded to whole percents as in Linux, ECN marks; beyond it packets are dropped",
            source: "Linux net/sched/sch_fq_pie.c",
        },
        pie::BYTEMODE,
        pie::DQ_RATE_ESTIMATOR,
        FLOWS,
        QUANTUM,
    ],
    conflict: None,
    caution: None,
    build: |setup| Box::new(FqPie::new(setup)),
};

struct FqPie {
    flows: Flows<PieOfFlow>,
    hash: Hash,
    settings: Settings,
    limit: BufferLimit,
    rng: Stream,
    /// Of the first packet; corrections are due whole numbers of `tupdate` later.
    start: Option<Nanos>,
}

#[derive(Clone, Copy)]
struct PieOfFlow {
    pie: Pie,
    clock: Clock,
}

impl FqPie {
    fn new(mut setup: Setup) -> FqPie {
        let count = setup.params.int("flows") as u32;
        let mut flows = Flows::new(quantum(&setup));
        flows.grow(count as usize, || PieOfFlow {
            pie: Pie::default(),
            clock: Clock::UNSET,
        });
        // Whole percents, as Linux has it.
        let percent = (setup.params.get("ecn_prob") * 100.0).round() as u64;
        let mark_prob = pie::percent(percent);
        FqPie {
            flows,
            hash: Hash::new(&mut setup.rng, count),
            settings: Settings::new(&setup.params, setup.max_packet_bytes, mark_prob),
            limit: setup.limit,
            rng: setup.rng,
            start: None,
        }
    }
}

impl Queue for FqPie {
    #[inline]
    fn enqueue(&mut self, now: Nanos, mut packet: Packet, dropped: &mut Vec<Packet>) {
        let i = self.hash.bucket(packet.flow);
        let start = *self.start.get_or_insert(now);
        let pkts = self.flows.pkts() + 1;
        let bytes = self.flows.bytes() + u64::from(packet.bytes);
        let flow = self.flows.flow(i);
        let PieOfFlow { pie, clock } = &mut flow.state;
        if clock.is_unset() {
            *clock = Clock::start(&self.settings, start, now);
        }
        clock.catch_up(pie, &self.settings, flow.fifo.bytes, now);
        if !self.limit.holds(pkts, bytes) {
            pie.dropped();
            dropped.push(packet);
        } else if pie.drops(&self.settings, &mut packet, flow.fifo.bytes, &mut self.rng) {
            dropped.push(packet);
        } else {
            packet.enqueued = now;
            if self.flows.push(i, packet) {
                self.flows.flow(i).deficit = self.flows.quantum();
            }
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Packet> {
        while let Some(i) = self.flows.turn() {
            let (flow, packets) = self.flows.flow_and_packets(i);
            let PieOfFlow { pie, clock } = &mut flow.state;
            clock.catch_up(pie, &self.settings, flow.fifo.bytes, now);
            if let Some(packet) = flow.fifo.pop(packets) {
                flow.deficit -= i64::from(packet.bytes);
                pie.departed(&self.settings, &packet, flow.fifo.bytes, now);
                return Some(packet);
            }
            self.flows.pass_turn();
        }
        None
    }

    fn len_pkts(&self) -> u32 {
        self.flows.pkts()
    }

    fn len_bytes(&self) -> u64 {
        self.flows.bytes()
    }
}

#[cfg(test)]
mod tests;
