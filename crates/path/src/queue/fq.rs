//! Fair queueing as Linux' fq does it: each flow has a queue of its own and
//! all are served by deficit round robin, new flows first.
//!
//! Packets of the model carry no departure time, so what remains of fq here is
//! the fairness: pacing is what it does at a sender (`sender.pacing`), not at
//! a bottleneck.
//!
//! Source: Linux 6.12 net/sched/sch_fq.c.
//!
//! Differs from Linux: flows are told apart by number and never share a queue;
//! one priority band; no fast path that lets the first eight packets after an
//! idle time pass without a flow (Linux 6.7); a flow is never forgotten, where
//! Linux may do so after 3 s and gives it a new initial quantum.

use knee_units::Nanos;
use knee_units::params::{Param, Unit};

use super::flows::Flows;
use super::{Queue, QueueKind, Setup};
use crate::packet::Packet;
use crate::queue::BufferLimit;

pub(super) const KIND: QueueKind = QueueKind {
    name: "fq",
    summary: "a queue of 100 packets for each flow, served in turn; no control of delay",
    source: "Linux net/sched/sch_fq.c",
    params: &[
        Param {
            name: "flow_limit",
            unit: Unit::Count,
            default: 100.0,
            min: 1.0,
            max: 4_294_967_295.0,
            doc: "most packets of one flow",
            source: "Linux net/sched/sch_fq.c: fq_init()",
        },
        Param {
            name: "quantum",
            unit: Unit::Bytes,
            default: 0.0,
            min: 0.0,
            max: MAX_QUANTUM,
            doc: "bytes that a flow sends in its turn; 0: two of the path's largest packets",
            source: "Linux net/sched/sch_fq.c: fq_init()",
        },
        Param {
            name: "initial_quantum",
            unit: Unit::Bytes,
            default: 0.0,
            min: 0.0,
            max: MAX_QUANTUM,
            doc: "bytes that a flow may send in its first turn ever; 0: ten of the path's largest packets",
            source: "Linux net/sched/sch_fq.c: fq_init()",
        },
        Param {
            name: "refill_delay",
            unit: Unit::Time,
            default: 40e6,
            min: 0.0,
            max: 1e11,
            doc: "a flow that was empty for longer has a full quantum again",
            source: "Linux net/sched/sch_fq.c: fq_init()",
        },
        Param {
            name: "ce_threshold",
            unit: Unit::Time,
            default: 0.0,
            min: 0.0,
            max: 1e10,
            doc: "mark every packet that understands ECN and waited longer; 0: none",
            source: "Linux net/sched/sch_fq.c: fq_init(), 4294 s",
        },
    ],
    conflict: None,
    caution: None,
    build: |setup| Box::new(Fq::new(&setup)),
};

const MAX_QUANTUM: f64 = 1_048_576.0;

/// Linux net/sched/sch_fq.c: fq_change().
const LEAST_QUANTUM: u32 = 256;

struct Fq {
    flows: Flows<OneFlow>,
    limit: BufferLimit,
    flow_limit: u32,
    initial_quantum: i64,
    refill_delay: Nanos,
    /// [`Nanos::MAX`]: none.
    ce_threshold: Nanos,
}

#[derive(Clone, Copy)]
struct OneFlow {
    /// When it was found empty; `None`: it has never had a packet.
    emptied: Option<Nanos>,
}

impl Fq {
    fn new(setup: &Setup) -> Fq {
        let params = &setup.params;
        let or_packets = |name, packets| match params.int(name) {
            0 => packets * setup.max_packet_bytes,
            bytes => bytes as u32,
        };
        Fq {
            flows: Flows::new(or_packets("quantum", 2).max(LEAST_QUANTUM)),
            limit: setup.limit,
            flow_limit: params.int("flow_limit") as u32,
            initial_quantum: i64::from(or_packets("initial_quantum", 10)),
            refill_delay: Nanos(params.int("refill_delay")),
            ce_threshold: match params.int("ce_threshold") {
                0 => Nanos::MAX,
                ns => Nanos(ns),
            },
        }
    }
}

impl Queue for Fq {
    #[inline]
    fn enqueue(&mut self, now: Nanos, mut packet: Packet, dropped: &mut Vec<Packet>) {
        let i = packet.flow as usize;
        // Flows are numbered from 0 without gaps.
        self.flows.grow(i + 1, || OneFlow { emptied: None });
        let pkts = self.flows.pkts() + 1;
        let bytes = self.flows.bytes() + u64::from(packet.bytes);
        if !self.limit.holds(pkts, bytes) || self.flows.flow(i).fifo.pkts >= self.flow_limit {
            dropped.push(packet);
            return;
        }
        packet.enqueued = now;
        if self.flows.push(i, packet) {
            let quantum = self.flows.quantum();
            let flow = self.flows.flow(i);
            match flow.state.emptied {
                None => flow.deficit = self.initial_quantum,
                Some(at) if now.saturating_sub(at) > self.refill_delay => {
                    flow.deficit = flow.deficit.max(quantum);
                }
                Some(_) => {}
            }
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Packet> {
        while let Some(i) = self.flows.turn() {
            let (flow, packets) = self.flows.flow_and_packets(i);
            let Some(mut packet) = flow.fifo.pop(packets) else {
                flow.state.emptied = Some(now);
                self.flows.pass_turn();
                continue;
            };
            flow.deficit -= i64::from(packet.bytes);
            if now.saturating_sub(packet.enqueued) > self.ce_threshold {
                packet.mark_ce();
            }
            return Some(packet);
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
