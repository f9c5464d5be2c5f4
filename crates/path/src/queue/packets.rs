//! The packets of a queue that has many FIFOs: in one list, linked.

use crate::packet::Packet;

/// "No packet", "no flow".
pub(super) const NONE: u32 = u32::MAX;

/// The packets of all FIFOs; room is used again, last freed first.
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

/// Which of them are in one FIFO: where its first and its last lie.
#[derive(Clone, Copy)]
pub(super) struct Chain {
    pub(super) head: u32,
    /// Of a FIFO that has none: anything.
    pub(super) tail: u32,
}

impl Chain {
    pub(super) const EMPTY: Chain = Chain {
        head: NONE,
        tail: NONE,
    };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == NONE
    }
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

    #[inline]
    pub(super) fn first_mut(&mut self, chain: &Chain) -> Option<&mut Packet> {
        (!chain.is_empty()).then(|| &mut self.nodes[chain.head as usize].packet)
    }

    pub(super) fn get(&self, at: u32) -> (&Packet, u32) {
        let node = &self.nodes[at as usize];
        (&node.packet, node.next)
    }

    /// Puts a packet behind those of a FIFO.
    #[inline]
    pub(super) fn push(&mut self, chain: &mut Chain, packet: Packet) {
        let node = Node { packet, next: NONE };
        let at = self.free;
        let at = if at == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let place = &mut self.nodes[at as usize];
            self.free = place.next;
            *place = node;
            at
        };
        if chain.is_empty() {
            chain.head = at;
        } else {
            self.nodes[chain.tail as usize].next = at;
        }
        chain.tail = at;
        self.count += 1;
        self.bytes += u64::from(packet.bytes);
    }

    /// Takes the first packet of a FIFO, if it has one.
    #[inline]
    pub(super) fn pop(&mut self, chain: &mut Chain) -> Option<Packet> {
        (!chain.is_empty()).then(|| self.take_first(chain))
    }

    /// Takes the first packet of a FIFO that has one.
    #[inline]
    pub(super) fn take_first(&mut self, chain: &mut Chain) -> Packet {
        let at = chain.head;
        let node = &mut self.nodes[at as usize];
        let packet = node.packet;
        chain.head = std::mem::replace(&mut node.next, self.free);
        self.free = at;
        self.count -= 1;
        self.bytes -= u64::from(packet.bytes);
        packet
    }

    /// Takes the packet behind `before` out of a FIFO that has it, the first if that is [`NONE`]; the last only if it is the first.
    pub(super) fn remove(&mut self, chain: &mut Chain, before: u32) -> Packet {
        if before == NONE {
            return self.take_first(chain);
        }
        let mut behind = Chain {
            head: self.nodes[before as usize].next,
            ..*chain
        };
        let packet = self.take_first(&mut behind);
        self.nodes[before as usize].next = behind.head;
        packet
    }
}
