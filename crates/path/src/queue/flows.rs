//! What the queues that tell flows apart share: one FIFO per flow, and deficit
//! round robin over them with new flows first.
//!
//! A flow that was empty joins the list of new flows, which is served before
//! the list of old ones; when its deficit is used up, or it is empty, it goes
//! to the end of the old flows, so that coming back often gains nothing.
//!
//! Source: RFC 8290 section 4; Shreedhar, Varghese: Efficient Fair Queueing
//! Using Deficit Round Robin, SIGCOMM 1995.

use knee_units::rng::Stream;

use super::packets::{Chain, NONE, Packets};
use crate::packet::Packet;

/// Flows with a state each, and their packets.
pub(super) struct Flows<S> {
    flows: Vec<Flow<S>>,
    packets: Packets,
    new: List,
    /// A ring: the first is behind the last, so that it becomes the last by one step.
    old: List,
    quantum: i64,
}

pub(super) struct Flow<S> {
    pub(super) fifo: Fifo,
    /// The flow behind it in its list.
    next: u32,
    listed: bool,
    /// Bytes it may send in this round; negative after the packet that used it up.
    pub(super) deficit: i64,
    pub(super) state: S,
}

/// Which packets a flow has.
pub(super) struct Fifo {
    chain: Chain,
    pub(super) bytes: u64,
    pub(super) pkts: u32,
}

#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

/// Spreads flow numbers over buckets, each run in its own way.
pub(super) struct Hash {
    seed: u32,
    buckets: u32,
}

impl Hash {
    pub(super) fn new(rng: &mut Stream, buckets: u32) -> Hash {
        Hash {
            seed: rng.next_u32(),
            buckets,
        }
    }

    #[inline]
    pub(super) fn bucket(&self, flow: u32) -> usize {
        ((u64::from(self.mix(flow)) * u64::from(self.buckets)) >> 32) as usize
    }

    /// Another number for each number.
    #[inline]
    pub(super) fn mix(&self, number: u32) -> u32 {
        // MurmurHash3's finalizer without its last step, which changes the lower bits alone. Only the upper bits are used,
        // and each bit of the input changes half of those.
        let mut h = number ^ self.seed;
        h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
        (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35)
    }
}

impl Fifo {
    const EMPTY: Fifo = Fifo {
        chain: Chain::EMPTY,
        bytes: 0,
        pkts: 0,
    };

    /// Puts a packet behind the others.
    #[inline]
    fn push(&mut self, packets: &mut Packets, packet: Packet) {
        packets.push(&mut self.chain, packet);
        self.pkts += 1;
        self.bytes += u64::from(packet.bytes);
    }

    /// Takes the first packet.
    #[inline]
    pub(super) fn pop(&mut self, packets: &mut Packets) -> Option<Packet> {
        let packet = packets.pop(&mut self.chain)?;
        self.pkts -= 1;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }
}

impl<S> Flows<S> {
    pub(super) fn new(quantum: u32) -> Flows<S> {
        let empty = List {
            head: NONE,
            tail: NONE,
        };
        Flows {
            flows: Vec::new(),
            packets: Packets::new(),
            new: empty,
            old: empty,
            quantum: i64::from(quantum),
        }
    }

    /// Makes room for flows up to and without `count`.
    #[inline]
    pub(super) fn grow(&mut self, count: usize, state: impl Fn() -> S) {
        if self.flows.len() < count {
            self.append_flows(count, state);
        }
    }

    #[cold]
    fn append_flows(&mut self, count: usize, state: impl Fn() -> S) {
        self.flows.resize_with(count, || Flow {
            fifo: Fifo::EMPTY,
            next: NONE,
            listed: false,
            deficit: 0,
            state: state(),
        });
    }

    #[inline]
    pub(super) fn flow(&mut self, i: usize) -> &mut Flow<S> {
        &mut self.flows[i]
    }

    /// A flow, and the packets of all.
    #[inline]
    pub(super) fn flow_and_packets(&mut self, i: usize) -> (&mut Flow<S>, &mut Packets) {
        (&mut self.flows[i], &mut self.packets)
    }

    #[inline]
    pub(super) fn pkts(&self) -> u32 {
        self.packets.count
    }

    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.packets.bytes
    }

    pub(super) fn quantum(&self) -> i64 {
        self.quantum
    }

    /// Appends a packet to a flow. `true`: the flow was in no list and is a new one now.
    #[inline]
    pub(super) fn push(&mut self, i: usize, packet: Packet) -> bool {
        let flow = &mut self.flows[i];
        flow.fifo.push(&mut self.packets, packet);
        if flow.listed {
            return false;
        }
        self.begin(i as u32);
        true
    }

    /// The flow whose turn it is. It keeps its turn until its deficit is used
    /// up, or [`Self::pass_turn`] is called because it gave no packet.
    #[inline]
    pub(super) fn turn(&mut self) -> Option<usize> {
        loop {
            let new = self.new.head != NONE;
            let i = if new { self.new.head } else { self.old.head };
            if i == NONE {
                return None;
            }
            let flow = &mut self.flows[i as usize];
            if flow.deficit > 0 {
                return Some(i as usize);
            }
            flow.deficit += self.quantum;
            match new {
                false => {
                    self.old = List {
                        head: flow.next,
                        tail: i,
                    }
                }
                true => {
                    self.remove_new();
                    self.append_old(i);
                }
            }
        }
    }

    /// The flow whose turn it is has nothing to send: a new one waits behind
    /// the old ones once, so that nobody starves; an old one leaves.
    #[inline(never)]
    pub(super) fn pass_turn(&mut self) {
        let i = match self.new.head != NONE {
            true => {
                let i = self.remove_new();
                if self.old.head != NONE {
                    return self.append_old(i);
                }
                i
            }
            false => self.remove_old(),
        };
        self.flows[i as usize].listed = false;
    }

    /// The flow with most bytes waiting, the first of equals.
    pub(super) fn fattest(&self) -> Option<usize> {
        // Flows that hold packets are in a list.
        let mut fattest: Option<(u64, u32)> = None;
        for list in [self.new, self.old] {
            let mut i = list.head;
            while i != NONE {
                let flow = &self.flows[i as usize];
                let bytes = flow.fifo.bytes;
                let fatter = fattest.is_none_or(|(most, j)| bytes > most || bytes == most && i < j);
                if !flow.fifo.chain.is_empty() && fatter {
                    fattest = Some((bytes, i));
                }
                i = if i == list.tail { NONE } else { flow.next };
            }
        }
        fattest.map(|(_, i)| i as usize)
    }

    /// A flow joins the new ones, as the last.
    #[inline(never)]
    fn begin(&mut self, i: u32) {
        self.flows[i as usize].listed = true;
        match self.new.head {
            NONE => self.new.head = i,
            _ => self.flows[self.new.tail as usize].next = i,
        }
        self.flows[i as usize].next = NONE;
        self.new.tail = i;
    }

    /// The first of the new ones is that no longer.
    fn remove_new(&mut self) -> u32 {
        let i = self.new.head;
        self.new.head = self.flows[i as usize].next;
        i
    }

    /// A flow becomes the last of the old ones.
    fn append_old(&mut self, i: u32) {
        if self.old.head == NONE {
            self.old.head = i;
            self.old.tail = i;
        }
        self.flows[self.old.tail as usize].next = i;
        self.flows[i as usize].next = self.old.head;
        self.old.tail = i;
    }

    /// The first of the old ones is that no longer.
    fn remove_old(&mut self) -> u32 {
        let i = self.old.head;
        let next = self.flows[i as usize].next;
        self.flows[self.old.tail as usize].next = next;
        self.old.head = if next == i { NONE } else { next };
        i
    }
}
