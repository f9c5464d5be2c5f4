//! Flow queueing with CoDel: flows are hashed into queues of their own, each
//! with its CoDel, and served by deficit round robin; a flow that sends less
//! than its share never waits behind one that sends more.
//!
//! Source: RFC 8290; Linux 6.12 net/sched/sch_fq_codel.c.
//!
//! Differs from Linux: flows are hashed by number and not by addresses and
//! ports; the size of a packet is its wire size, where Linux' memory limit
//! counts its kernel memory; when it is full, it drops until the limit holds,
//! while Linux drops one batch and may stay above a limit in bytes.

use knee_units::Nanos;
use knee_units::params::{Param, Unit};

use super::codel::{self, Codel, Settings, Source};
use super::flows::{Fifo, Flows, Hash};
use super::packets::Packets;
use super::{Queue, QueueKind, Setup};
use crate::packet::Packet;
use crate::queue::BufferLimit;

pub(super) const KIND: QueueKind = QueueKind {
    name: "fq_codel",
    summary: "a queue with CoDel for each flow, served in turn; sparse flows go first",
    source: "RFC 8290; Linux net/sched/sch_fq_codel.c",
    params: &[
        codel::TARGET,
        codel::INTERVAL,
        codel::ECN,
        codel::CE_THRESHOLD,
        FLOWS,
        QUANTUM,
        Param {
            name: "drop_batch",
            unit: Unit::Count,
            default: 64.0,
            min: 1.0,
            max: 65_536.0,
            doc: "most packets that the fattest flow loses at once when the queue is full",
            source: "Linux net/sched/sch_fq_codel.c",
        },
        Param {
            name: "memory_limit",
            unit: Unit::Bytes,
            default: 33_554_432.0,
            min: 65_536.0,
            max: 2_147_483_648.0,
            doc: "bytes that it holds at most, besides path.buffer",
            source: "RFC 8290 section 5.2.6; Linux net/sched/sch_fq_codel.c",
        },
    ],
    conflict: None,
    caution: None,
    build: |setup| Box::new(FqCodel::new(setup)),
};

pub(super) const FLOWS: Param = Param {
    name: "flows",
    unit: Unit::Count,
    default: 1_024.0,
    min: 1.0,
    max: 65_536.0,
    doc: "queues that flows are hashed into",
    source: "RFC 8290 section 5.2.5; Linux net/sched/sch_fq_codel.c, sch_fq_pie.c",
};

pub(super) const QUANTUM: Param = Param {
    name: "quantum",
    unit: Unit::Bytes,
    default: 0.0,
    min: 0.0,
    max: 1_048_576.0,
    doc: "bytes that a flow sends in its turn; 0: the path's largest packet, on Ethernet 1514",
    source: "RFC 8290 section 5.2.3; Linux: psched_mtu() of include/net/pkt_sched.h",
};

/// A turn of fewer bytes would be much work for nothing. Linux net/sched/sch_fq_codel.c: fq_codel_change().
const LEAST_QUANTUM: u32 = 256;

/// The parameter `quantum`, 0 resolved.
pub(super) fn quantum(setup: &Setup) -> u32 {
    match setup.params.int("quantum") {
        0 => setup.max_packet_bytes,
        bytes => (bytes as u32).max(LEAST_QUANTUM),
    }
}

struct FqCodel {
    flows: Flows<Codel>,
    hash: Hash,
    settings: Settings,
    limit: BufferLimit,
    memory_limit: u64,
    drop_batch: u32,
}

impl FqCodel {
    fn new(mut setup: Setup) -> FqCodel {
        let count = setup.params.int("flows") as u32;
        let mut flows = Flows::new(quantum(&setup));
        flows.grow(count as usize, Codel::default);
        FqCodel {
            flows,
            hash: Hash::new(&mut setup.rng, count),
            settings: Settings::new(&setup.params, setup.max_packet_bytes),
            limit: setup.limit,
            memory_limit: setup.params.int("memory_limit"),
            drop_batch: setup.params.int("drop_batch") as u32,
        }
    }

    #[inline]
    fn is_over_limit(&self) -> bool {
        !self.limit.holds(self.flows.pkts(), self.flows.bytes())
            || self.flows.bytes() > self.memory_limit
    }

    /// Drops half of what the fattest flow holds, a batch at most, from its head.
    #[cold]
    fn drop_batch(&mut self, dropped: &mut Vec<Packet>) {
        let Some(i) = self.flows.fattest() else {
            return;
        };
        let (flow, packets) = self.flows.flow_and_packets(i);
        let enough = (flow.fifo.bytes / 2).max(1);
        let (mut drops, mut bytes) = (0, 0);
        while drops < self.drop_batch && bytes < enough {
            let Some(packet) = flow.fifo.pop(packets) else {
                break;
            };
            drops += 1;
            bytes += u64::from(packet.bytes);
            dropped.push(packet);
        }
        flow.state.count_drops(drops);
    }
}

/// One flow, as its CoDel sees it.
struct OneFlow<'a> {
    fifo: &'a mut Fifo,
    packets: &'a mut Packets,
}

impl Source for OneFlow<'_> {
    #[inline]
    fn pop(&mut self) -> Option<Packet> {
        self.fifo.pop(self.packets)
    }
    #[inline]
    fn backlog_bytes(&self) -> u64 {
        self.packets.bytes
    }
}

impl Queue for FqCodel {
    #[inline]
    fn enqueue(&mut self, now: Nanos, mut packet: Packet, dropped: &mut Vec<Packet>) {
        packet.enqueued = now;
        let i = self.hash.bucket(packet.flow);
        if self.flows.push(i, packet) {
            self.flows.flow(i).deficit = self.flows.quantum();
        }
        while self.is_over_limit() {
            self.drop_batch(dropped);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Packet>) -> Option<Packet> {
        while let Some(i) = self.flows.turn() {
            let (flow, packets) = self.flows.flow_and_packets(i);
            let mut source = OneFlow {
                fifo: &mut flow.fifo,
                packets,
            };
            let codel = &mut flow.state;
            let packet = codel.dequeue(&self.settings, &mut source, now, dropped);
            if let Some(packet) = packet {
                flow.deficit -= i64::from(packet.bytes);
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
