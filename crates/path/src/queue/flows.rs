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

use crate::packet::Packet;

/// "No packet", "no flow".
const NONE: u32 = u32::MAX;

/// Flows with a state each, and their packets.
pub(super) struct Flows<S> {
    flows: Vec<Flow<S>>,
    /// The packets of all FIFOs, linked; room is used again, last freed first.
    nodes: Vec<Node>,
    free: u32,
    new: List,
    old: List,
    quantum: i64,
    pkts: u32,
    bytes: u64,
}

pub(super) struct Flow<S> {
    head: u32,
    tail: u32,
    /// The flow behind it in its list.
    next: u32,
    listed: bool,
    /// Bytes it may send in this round; negative after the packet that used it up.
    pub(super) deficit: i64,
    pub(super) bytes: u64,
    pub(super) pkts: u32,
    pub(super) state: S,
}

struct Node {
    packet: Packet,
    next: u32,
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
        // MurmurHash3's finalizer without its last step, which changes the lower bits alone. Only the upper bits are used,
        // and each bit of the input changes half of those.
        let mut h = flow ^ self.seed;
        h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
        h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
        ((u64::from(h) * u64::from(self.buckets)) >> 32) as usize
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
            nodes: Vec::new(),
            free: NONE,
            new: empty,
            old: empty,
            quantum: i64::from(quantum),
            pkts: 0,
            bytes: 0,
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
            head: NONE,
            tail: NONE,
            next: NONE,
            listed: false,
            deficit: 0,
            bytes: 0,
            pkts: 0,
            state: state(),
        });
    }

    #[inline]
    pub(super) fn flow(&mut self, i: usize) -> &mut Flow<S> {
        &mut self.flows[i]
    }

    pub(super) fn pkts(&self) -> u32 {
        self.pkts
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn quantum(&self) -> i64 {
        self.quantum
    }

    /// Appends a packet to a flow. `true`: the flow was in no list and is a new one now.
    #[inline]
    pub(super) fn push(&mut self, i: usize, packet: Packet) -> bool {
        let node = Node { packet, next: NONE };
        let at = self.free;
        let at = if at == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            self.free = std::mem::replace(&mut self.nodes[at as usize], node).next;
            at
        };
        self.pkts += 1;
        self.bytes += u64::from(packet.bytes);
        let flow = &mut self.flows[i];
        flow.pkts += 1;
        flow.bytes += u64::from(packet.bytes);
        if flow.head == NONE {
            flow.head = at;
        } else {
            self.nodes[flow.tail as usize].next = at;
        }
        flow.tail = at;
        if flow.listed {
            return false;
        }
        flow.listed = true;
        self.new.append(&mut self.flows, i as u32);
        true
    }

    /// Takes the first packet of a flow.
    #[inline]
    pub(super) fn pop(&mut self, i: usize) -> Option<Packet> {
        let flow = &mut self.flows[i];
        let at = flow.head;
        if at == NONE {
            return None;
        }
        let node = &mut self.nodes[at as usize];
        let packet = node.packet;
        flow.head = node.next;
        flow.pkts -= 1;
        flow.bytes -= u64::from(packet.bytes);
        node.next = self.free;
        self.free = at;
        self.pkts -= 1;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
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
            if !new && flow.next == NONE {
                // Alone: it is its own successor.
                continue;
            }
            self.remove_head(new);
            self.old.append(&mut self.flows, i);
        }
    }

    /// The flow whose turn it is has nothing to send: a new one waits behind
    /// the old ones once, so that nobody starves; an old one leaves.
    #[inline]
    pub(super) fn pass_turn(&mut self) {
        let new = self.new.head != NONE;
        let i = self.remove_head(new);
        if new && self.old.head != NONE {
            self.old.append(&mut self.flows, i);
        } else {
            self.flows[i as usize].listed = false;
        }
    }

    /// The flow with most bytes waiting, the first of equals.
    pub(super) fn fattest(&self) -> Option<usize> {
        // Flows that hold packets are in a list.
        let mut fattest: Option<(u64, u32)> = None;
        for list in [self.new, self.old] {
            let mut i = list.head;
            while i != NONE {
                let flow = &self.flows[i as usize];
                let fatter = fattest
                    .is_none_or(|(most, j)| flow.bytes > most || flow.bytes == most && i < j);
                if flow.head != NONE && fatter {
                    fattest = Some((flow.bytes, i));
                }
                i = flow.next;
            }
        }
        fattest.map(|(_, i)| i as usize)
    }

    fn remove_head(&mut self, new: bool) -> u32 {
        let list = if new { &mut self.new } else { &mut self.old };
        let i = list.head;
        list.head = self.flows[i as usize].next;
        self.flows[i as usize].next = NONE;
        i
    }
}

impl List {
    #[inline]
    fn append<S>(&mut self, flows: &mut [Flow<S>], i: u32) {
        if self.head == NONE {
            self.head = i;
        } else {
            flows[self.tail as usize].next = i;
        }
        self.tail = i;
    }
}
