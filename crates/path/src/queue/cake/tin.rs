//! One tin: its flows, the hosts they belong to, and whose turn it is.

use knee_units::Nanos;

use super::cobalt::{Cobalt, Settings};
use crate::packet::Packet;
use crate::queue::flows::Hash;
use crate::queue::packets::{Chain, NONE, Packets};

/// Queues of a tin, and hosts it counts.
pub(super) const QUEUES: usize = 1_024;
/// Queues a flow may be in: its own, and the others of the set.
const WAYS: usize = 8;

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
    pub(super) chain: Chain,
    next: u32,
    /// Its place takes 16 bits, so that a flow is one cache line.
    prev: u16,
    /// What it may send in this round, [`Turn`]; 0 or below: its turn is over.
    pub(super) deficit: Turn,
    pub(super) bytes: u32,
    /// The flow it is reserved for.
    tag: u32,
    /// The host that sends its packets and the one that receives them.
    hosts: [u16; 2],
    pub(super) set: Set,
    pub(super) cobalt: Cobalt,
}

const _: () = assert!(size_of::<Flow>() == 64);

#[derive(Clone, Copy)]
struct Host {
    tag: u32,
    bulk_flows: u32,
}

/// Bytes a flow may send, in units of 1/4096: what is left of a quantum that
/// is divided among a host's flows adds up, and is not rounded away.
pub(super) type Turn = i32;

#[inline]
pub(super) fn turn_of(bytes: u32) -> Turn {
    (bytes << 12).cast_signed()
}

/// Hosts that send to a tin, or that receive from it.
struct Hosts {
    list: Box<[Host; QUEUES]>,
    /// Of each flow of each host: the quantum, divided among its bulk flows where hosts divide it.
    turns: Box<[Turn; QUEUES]>,
    divide: bool,
}

/// The three rotations, as indices of [`Tin::heads`].
pub(super) const NEW: usize = 0;
pub(super) const OLD: usize = 1;
pub(super) const DECAYING: usize = 2;

pub(super) struct Tin {
    pub(super) flows: Box<[Flow; QUEUES]>,
    /// That send, and that receive.
    hosts: [Hosts; 2],
    /// First flow of each rotation. Its flows are a ring, so that the first
    /// becomes the last by one step: most of what a busy tin does.
    pub(super) heads: [u32; 3],
    pub(super) sparse_flows: u32,
    pub(super) bulk_flows: u32,
    pub(super) pkts: u32,
    /// Bytes it may send in this round, when nothing shapes.
    pub(super) deficit: i64,
    pub(super) quantum: i64,
    /// A flow's turn, undivided.
    turn: Turn,
    /// Bytes per second above which it gives way; 0: no shaper.
    pub(super) rate: u64,
    /// When it keeps its rate again.
    pub(super) time_next: Nanos,
    pub(super) settings: Settings,
}

impl Hosts {
    /// The place of the host `tag`: the one that it has, else one that is free, else it shares its first.
    fn find(&mut self, tag: u32, hash: usize) -> usize {
        let ways = |way| hash - hash % WAYS + (hash + way) % WAYS;
        let known = (0..WAYS).map(ways).find(|&i| self.list[i].tag == tag);
        let free = || (0..WAYS).map(ways).find(|&i| self.list[i].bulk_flows == 0);
        let i = known.or_else(free).unwrap_or(hash);
        self.list[i].tag = tag;
        i
    }

    /// One bulk flow more, or less; `turn`: of a flow that has its host for itself.
    fn count(&mut self, i: usize, more: bool, turn: Turn) {
        let host = &mut self.list[i];
        host.bulk_flows = match more {
            true => host.bulk_flows + 1,
            false => host.bulk_flows - 1,
        };
        if self.divide {
            self.turns[i] = turn / host.bulk_flows.max(1).cast_signed();
        }
    }
}

/// A flow's turn: the quantum, divided by the bulk flows of the busier of its two hosts.
#[inline]
fn turn([sources, destinations]: &[Hosts; 2], flow: &Flow) -> Turn {
    let [source, destination] = flow.hosts.map(usize::from);
    // Masked, so without checks of bounds.
    (sources.turns[source % QUEUES]).min(destinations.turns[destination % QUEUES])
}

impl Flow {
    /// A packet comes, behind the others.
    #[inline]
    pub(super) fn push(&mut self, packets: &mut Packets, packet: Packet) {
        packets.push(&mut self.chain, packet);
        self.bytes += packet.bytes;
    }

    /// Takes the first packet; it has one.
    #[inline]
    pub(super) fn take_first(&mut self, packets: &mut Packets) -> Packet {
        let packet = packets.take_first(&mut self.chain);
        self.bytes -= packet.bytes;
        packet
    }

    /// Takes the packet behind `before`, the first if that is [`NONE`]; the last only if it is the first.
    pub(super) fn remove(&mut self, packets: &mut Packets, before: u32) -> Packet {
        let packet = packets.remove(&mut self.chain, before);
        self.bytes -= packet.bytes;
        packet
    }
}

impl Tin {
    /// `flow_quantum`: bytes of a flow's turn; `divide`: do the flows of a host that sends, or that receives, share it?
    pub(super) fn new(
        rate: u64,
        quantum: u32,
        flow_quantum: u32,
        divide: [bool; 2],
        settings: Settings,
    ) -> Tin {
        let flow = Flow {
            chain: Chain::EMPTY,
            next: NONE,
            prev: 0,
            deficit: 0,
            bytes: 0,
            tag: 0,
            hosts: [0; 2],
            set: Set::None,
            cobalt: Cobalt::default(),
        };
        let host = Host {
            tag: 0,
            bulk_flows: 0,
        };
        Tin {
            flows: table(flow),
            hosts: divide.map(|divide| Hosts {
                list: table(host),
                turns: table(turn_of(flow_quantum)),
                divide,
            }),
            heads: [NONE; 3],
            sparse_flows: 0,
            bulk_flows: 0,
            pkts: 0,
            deficit: 0,
            quantum: i64::from(quantum),
            turn: turn_of(flow_quantum),
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

    /// The queue of the flow `tag`: the one reserved for it, else one that is
    /// free, else it shares its first.
    #[inline]
    pub(super) fn find(&mut self, tag: u32, hosts: [u32; 2], hashes: &Hash) -> usize {
        let hash = hashes.bucket(tag);
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
        // Where flows share a queue its hosts are those of the last.
        self.count_host(i, false);
        self.flows[i].tag = tag;
        for (side, host) in hosts.into_iter().enumerate() {
            self.flows[i].hosts[side] = self.hosts[side].find(host, hashes.bucket(host)) as u16;
        }
        self.count_host(i, true);
        i
    }

    fn count_host(&mut self, i: usize, more: bool) {
        let flow = &self.flows[i];
        if flow.set == Set::Bulk {
            for (hosts, place) in self.hosts.iter_mut().zip(flow.hosts) {
                hosts.count(usize::from(place), more, self.turn);
            }
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

    #[inline]
    pub(super) fn turn(&self, flow: &Flow) -> Turn {
        turn(&self.hosts, flow)
    }

    /// The flow whose turn it is, and its rotation, where flows are new or,
    /// `decaying`, a little of an empty one is to be forgotten first.
    #[inline(never)]
    pub(super) fn next_new(&mut self, decaying: bool) -> Option<(usize, usize)> {
        let mut list = if decaying && self.heads[DECAYING] != NONE {
            DECAYING
        } else {
            NEW
        };
        loop {
            if list == NEW && self.heads[NEW] == NONE {
                return self.next_old().map(|i| (OLD, i));
            }
            let i = self.heads[list] as usize;
            if self.flows[i].deficit > 0 {
                return Some((list, i));
            }
            // Its turn is over: it goes on among the bulk flows.
            if self.flows[i].set == Set::Sparse {
                let empty = self.flows[i].chain.is_empty();
                self.set(i, if empty { Set::SparseWait } else { Set::Bulk });
            }
            self.flows[i].deficit += self.turn(&self.flows[i]);
            self.unlink(list, i);
            self.append(OLD, i);
            list = NEW;
        }
    }

    /// It was an empty flow's turn: out of its rotation, until COBALT has forgotten.
    #[inline(never)]
    pub(super) fn retire(&mut self, list: usize, i: usize, now: Nanos) {
        let cobalt = &mut self.flows[i].cobalt;
        cobalt.queue_empty(&self.settings, now);
        let rests = cobalt.rests(now);
        self.unlink(list, i);
        if rests {
            self.set(i, Set::None);
        } else {
            self.append(DECAYING, i);
            self.set(i, Set::Decaying);
        }
    }

    /// The first of the old flows that may send, after as many turns of all
    /// as that takes.
    #[inline]
    pub(super) fn next_old(&mut self) -> Option<usize> {
        let first = self.heads[OLD];
        if first == NONE {
            return None;
        }
        let mut at = first;
        // Ten times per packet with ten flows of a host, so without checks of bounds.
        loop {
            let flow = &mut self.flows[at as usize % QUEUES];
            if flow.deficit > 0 {
                self.heads[OLD] = at;
                return Some(at as usize % QUEUES);
            }
            flow.deficit += turn(&self.hosts, flow);
            at = flow.next;
            if at == first {
                self.skip_rounds();
            }
        }
    }

    /// Gives the old flows the turns of all rounds at once after which none of
    /// them may send yet. Flows that share a host's turn have many such rounds.
    fn skip_rounds(&mut self) {
        let first = self.heads[OLD];
        let mut rounds = Turn::MAX;
        let mut at = first;
        loop {
            let flow = &self.flows[at as usize % QUEUES];
            let turn = self.turn(flow);
            if flow.deficit + turn > 0 {
                return;
            }
            rounds = rounds.min(-flow.deficit / turn);
            at = flow.next;
            if at == first {
                break;
            }
        }
        loop {
            let flow = &mut self.flows[at as usize % QUEUES];
            flow.deficit += rounds * turn(&self.hosts, flow);
            at = flow.next;
            if at == first {
                break;
            }
        }
    }

    /// Puts a flow at a rotation's end.
    pub(super) fn append(&mut self, list: usize, i: usize) {
        let head = self.heads[list];
        let at = i as u32;
        if head == NONE {
            self.heads[list] = at;
            (self.flows[i].prev, self.flows[i].next) = (i as u16, at);
            return;
        }
        let tail = std::mem::replace(&mut self.flows[head as usize].prev, i as u16);
        self.flows[usize::from(tail)].next = at;
        (self.flows[i].prev, self.flows[i].next) = (tail, head);
    }

    pub(super) fn unlink(&mut self, list: usize, i: usize) {
        let Flow { next, prev, .. } = self.flows[i];
        if next == i as u32 {
            self.heads[list] = NONE;
            return;
        }
        self.flows[usize::from(prev)].next = next;
        self.flows[next as usize].prev = prev;
        if self.heads[list] == i as u32 {
            self.heads[list] = next;
        }
    }

    /// Bulk flows of all hosts.
    #[cfg(test)]
    pub(super) fn host_counts(&self) -> [u32; 2] {
        let count = |hosts: &Hosts| hosts.list.iter().map(|host| host.bulk_flows).sum();
        [count(&self.hosts[0]), count(&self.hosts[1])]
    }

    /// The queue with most bytes, and how many.
    pub(super) fn fattest(&self) -> Option<(u32, usize)> {
        let mut fattest: Option<(u32, usize)> = None;
        for list in [NEW, OLD] {
            let head = self.heads[list];
            let mut i = head;
            while i != NONE {
                let flow = &self.flows[i as usize];
                if !flow.chain.is_empty() && fattest.is_none_or(|(most, _)| flow.bytes > most) {
                    fattest = Some((flow.bytes, i as usize));
                }
                i = if flow.next == head { NONE } else { flow.next };
            }
        }
        fattest
    }
}

/// One for each queue, or for each host.
fn table<T: Clone>(value: T) -> Box<[T; QUEUES]> {
    match vec![value; QUEUES].try_into() {
        Ok(table) => table,
        Err(_) => unreachable!("it is as long"),
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
