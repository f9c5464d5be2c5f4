//! First in, first out, tail drop: what a router without AQM does, and what
//! Linux calls pfifo and bfifo.

use std::collections::VecDeque;

use knee_units::Nanos;

use super::{Queue, QueueKind, Tail};
use crate::packet::Packet;
use crate::queue::BufferLimit;

pub(super) const KIND: QueueKind = QueueKind {
    name: "fifo",
    summary: "first in, first out; an arriving packet that does not fit is dropped",
    source: "Linux net/sched/sch_fifo.c (bfifo: bytes, pfifo: packets)",
    params: &[],
    conflict: None,
    caution: None,
    build: |setup| Box::new(Fifo::new(setup.limit)),
};

/// A FIFO limited in bytes or in packets.
pub struct Fifo {
    packets: VecDeque<Packet>,
    bytes: u64,
    limit: BufferLimit,
}

impl Fifo {
    pub fn new(limit: BufferLimit) -> Fifo {
        Fifo {
            packets: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    /// Appends a packet that [`Self::fits`].
    #[inline]
    pub(super) fn push(&mut self, packet: Packet) {
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(packet);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    /// Is there room for the packet?
    #[inline]
    pub(super) fn fits(&self, packet: &Packet) -> bool {
        self.limit
            .holds(self.len_pkts() + 1, self.bytes + u64::from(packet.bytes))
    }
}

impl Queue for Fifo {
    #[inline]
    fn enqueue(&mut self, now: Nanos, mut packet: Packet, dropped: &mut Vec<Packet>) {
        packet.enqueued = now;
        if self.fits(&packet) {
            self.push(packet);
        } else {
            dropped.push(packet);
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.pop()
    }

    fn tail(&self) -> Option<Tail> {
        Some(Tail::dropping(self.limit))
    }

    fn len_pkts(&self) -> u32 {
        self.packets.len() as u32
    }

    fn len_bytes(&self) -> u64 {
        self.bytes
    }
}
