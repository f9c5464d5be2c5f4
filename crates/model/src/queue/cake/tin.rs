//! One tin: its flows, the hosts they belong to, and whose turn it is.

use super::cobalt::{Cobalt, Settings};
use crate::packet::Packet;
use crate::units::Nanos;

/// Queues of a tin, and hosts it counts.
pub(super) const QUEUES: usize = 1_024;
/// Queues a flow may be in: its own, and the others of the set.
const WAYS: usize = 8;

/// "No packet", "no flow".
pub(super) const NONE: u32 = u32::MAX;

/// The packets of all queues, linked; room is used again, last freed first.
pub(super) struct Packets {
    nodes: Vec<Node>,
    free: u32,
    pub(super) count: u32,
    pub(super) bytes: u64,
}

struct Node {
    packet: Packet,
    next: u32,
}

/// Which rotation a flow is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    None,
    /// New, and so far without a deficit: goes first.
    Sparse,
    /// Sent all it had, and waits behind the bulk flows once.
    SparseWait,
    Bulk,
    /// Empty, while COBALT forgets.
    Decaying,
}

/// A cache line.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Flow {
    pub(super) head: u32,
    pub(super) tail: u32,
    next: u32,
    prev: u32,
    pub(super) deficit: i32,
    pub(super) bytes: u32,
    /// The flow it is reserved for.
    tag: u32,
    host: u16,
    pub(super) set: Set,
    pub(super) cobalt: Cobalt,
}

const _: () = assert!(size_of::<Flow>() == 64);

#[derive(Clone, Copy)]
struct Host {
    tag: u32,
    bulk_flows: u32,
    /// [`WHOLE`] / `bulk_flows`: each one's part of a turn.
    part: u32,
}

impl Host {
    fn set_bulk_flows(&mut self, flows: u32) {
        self.bulk_flows = flows;
        self.part = WHOLE / flows.max(1);
    }
}

/// The whole turn of a flow.
const WHOLE: u32 = 1 << 16;

/// The three rotations, as indices of [`Tin::heads`].
pub(super) const NEW: usize = 0;
pub(super) const OLD: usize = 1;
pub(super) const DECAYING: usize = 2;

pub(super) struct Tin {
    pub(super) flows: Box<[Flow]>,
    hosts: Box<[Host]>,
    /// First flow of each rotation. Its flows are a ring, so that the first
    /// becomes the last by one step: most of what a busy tin does.
    pub(super) heads: [u32; 3],
    pub(super) sparse_flows: u32,
    pub(super) bulk_flows: u32,
    pub(super) pkts: u32,
    /// Bytes it may send in this round, when nothing shapes.
    pub(super) deficit: i64,
    pub(super) quantum: i64,
    pub(super) flow_quantum: i32,
    /// Bytes per second above which it gives way; 0: no shaper.
    pub(super) rate: u64,
    /// When it keeps its rate again.
    pub(super) time_next: Nanos,
    pub(super) settings: Settings,
}

impl Packets {
    pub(super) fn new() -> Packets {
        Packets {
            nodes: Vec::new(),
            free: NONE,
            count: 0,
            bytes: 0,
        }
    }

    pub(super) fn get(&self, at: u32) -> (&Packet, u32) {
        let node = &self.nodes[at as usize];
        (&node.packet, node.next)
    }

    #[inline]
    pub(super) fn push(&mut self, flow: &mut Flow, packet: Packet) {
        let node = Node { packet, next: NONE };
        let at = self.free;
        let at = if at == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            self.free = std::mem::replace(&mut self.nodes[at as usize], node).next;
            at
        };
        if flow.head == NONE {
            flow.head = at;
        } else {
            self.nodes[flow.tail as usize].next = at;
        }
        flow.tail = at;
        flow.bytes += packet.bytes;
        self.count += 1;
        self.bytes += u64::from(packet.bytes);
    }

    #[inline]
    pub(super) fn pop(&mut self, flow: &mut Flow) -> Option<Packet> {
        (flow.head != NONE).then(|| self.remove(flow, NONE))
    }

    /// Takes the packet behind `before` out of a flow's queue, the first if that is [`NONE`].
    #[inline]
    pub(super) fn remove(&mut self, flow: &mut Flow, before: u32) -> Packet {
        let at = if before == NONE {
            flow.head
        } else {
            self.nodes[before as usize].next
        };
        let Node { packet, next } = self.nodes[at as usize];
        if before == NONE {
            flow.head = next;
        } else {
            self.nodes[before as usize].next = next;
        }
        if flow.tail == at {
            flow.tail = before;
        }
        self.nodes[at as usize].next = self.free;
        self.free = at;
        flow.bytes -= packet.bytes;
        self.count -= 1;
        self.bytes -= u64::from(packet.bytes);
        packet
    }
}

impl Tin {
    pub(super) fn new(rate: u64, quantum: u32, flow_quantum: u32, settings: Settings) -> Tin {
        let flow = Flow {
            head: NONE,
            tail: NONE,
            next: NONE,
            prev: NONE,
            deficit: 0,
            bytes: 0,
            tag: 0,
            host: 0,
            set: Set::None,
            cobalt: Cobalt::default(),
        };
        let host = Host {
            tag: 0,
            bulk_flows: 0,
            part: WHOLE,
        };
        Tin {
            flows: vec![flow; QUEUES].into(),
            hosts: vec![host; QUEUES].into(),
            heads: [NONE; 3],
            sparse_flows: 0,
            bulk_flows: 0,
            pkts: 0,
            deficit: 0,
            quantum: i64::from(quantum),
            flow_quantum: flow_quantum.cast_signed(),
            rate,
            time_next: Nanos::ZERO,
            settings,
        }
    }

    /// Has it anything to send?
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    /// The queue of the flow `tag`, whose hash is `hash`: the one reserved for
    /// it, else one that is free, else it shares its first.
    #[inline]
    pub(super) fn find(&mut self, tag: u32, hash: usize, host: u32, host_hash: usize) -> usize {
        let flow = &self.flows[hash];
        if flow.tag == tag && flow.set != Set::None {
            return hash;
        }
        let ways = |way| hash - hash % WAYS + (hash + way) % WAYS;
        let reserved = (0..WAYS).map(ways).find(|&i| self.flows[i].tag == tag);
        let free = || {
            (0..WAYS)
                .map(ways)
                .find(|&i| self.flows[i].set == Set::None)
        };
        let i = reserved.or_else(free).unwrap_or(hash);
        if reserved.is_some() && self.flows[i].set != Set::None {
            return i;
        }
        // Where flows share a queue its host is that of the last.
        self.count_host(i, false);
        self.flows[i].tag = tag;
        self.flows[i].host = self.find_host(host, host_hash) as u16;
        self.count_host(i, true);
        i
    }

    fn find_host(&mut self, tag: u32, hash: usize) -> usize {
        let ways = |way| hash - hash % WAYS + (hash + way) % WAYS;
        let known = (0..WAYS).map(ways).find(|&i| self.hosts[i].tag == tag);
        let free = || (0..WAYS).map(ways).find(|&i| self.hosts[i].bulk_flows == 0);
        let i = known.or_else(free).unwrap_or(hash);
        self.hosts[i].tag = tag;
        i
    }

    fn count_host(&mut self, i: usize, more: bool) {
        let flow = &self.flows[i];
        if flow.set == Set::Bulk {
            let host = &mut self.hosts[usize::from(flow.host)];
            let flows = host.bulk_flows;
            host.set_bulk_flows(if more { flows + 1 } else { flows - 1 });
        }
    }

    /// Moves a flow to another rotation's kind, and counts.
    pub(super) fn set(&mut self, i: usize, set: Set) {
        self.count_host(i, false);
        let (sparse, bulk) = kind(self.flows[i].set);
        self.sparse_flows -= sparse;
        self.bulk_flows -= bulk;
        self.flows[i].set = set;
        let (sparse, bulk) = kind(set);
        self.sparse_flows += sparse;
        self.bulk_flows += bulk;
        self.count_host(i, true);
    }

    /// Bytes of a flow's turn: the quantum, divided among its host's bulk
    /// flows; `dither`, below 2^16, is what rounding takes and gives.
    #[inline]
    pub(super) fn turn_bytes(&self, i: usize, hosts: bool, dither: impl FnOnce() -> u32) -> i32 {
        let part = self.hosts[usize::from(self.flows[i].host)].part;
        if !hosts || part == WHOLE {
            return self.flow_quantum;
        }
        ((i64::from(self.flow_quantum) * i64::from(part) + i64::from(dither())) >> 16) as i32
    }

    /// Puts a flow at a rotation's end.
    pub(super) fn append(&mut self, list: usize, i: usize) {
        let head = self.heads[list];
        let at = i as u32;
        if head == NONE {
            self.heads[list] = at;
            (self.flows[i].prev, self.flows[i].next) = (at, at);
            return;
        }
        let tail = std::mem::replace(&mut self.flows[head as usize].prev, at);
        self.flows[tail as usize].next = at;
        (self.flows[i].prev, self.flows[i].next) = (tail, head);
    }

    /// The first flow becomes the last; returns the one that is the first now.
    #[inline]
    pub(super) fn rotate(&mut self, list: usize) -> u32 {
        let next = self.flows[self.heads[list] as usize].next;
        self.heads[list] = next;
        next
    }

    pub(super) fn unlink(&mut self, list: usize, i: usize) {
        let Flow { next, prev, .. } = self.flows[i];
        if next == i as u32 {
            self.heads[list] = NONE;
            return;
        }
        self.flows[prev as usize].next = next;
        self.flows[next as usize].prev = prev;
        if self.heads[list] == i as u32 {
            self.heads[list] = next;
        }
    }

    /// Bulk flows of all hosts.
    #[cfg(test)]
    pub(super) fn host_counts(&self) -> u32 {
        self.hosts.iter().map(|host| host.bulk_flows).sum()
    }

    /// The queue with most bytes, and how many.
    pub(super) fn fattest(&self) -> Option<(u32, usize)> {
        let mut fattest: Option<(u32, usize)> = None;
        for list in [NEW, OLD] {
            let head = self.heads[list];
            let mut i = head;
            while i != NONE {
                let flow = &self.flows[i as usize];
                if flow.head != NONE && fattest.is_none_or(|(most, _)| flow.bytes > most) {
                    fattest = Some((flow.bytes, i as usize));
                }
                i = if flow.next == head { NONE } else { flow.next };
            }
        }
        fattest
    }
}

/// Counts as sparse, counts as bulk.
fn kind(set: Set) -> (u32, u32) {
    match set {
        Set::None | Set::Decaying => (0, 0),
        Set::Sparse | Set::SparseWait => (1, 0),
        Set::Bulk => (0, 1),
    }
}
