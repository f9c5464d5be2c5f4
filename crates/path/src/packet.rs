//! What queues, loss and links see of a packet.

use knee_units::Nanos;

/// IPv4 + TCP header with the timestamp option: what every segment carries.
pub const HEADER_BYTES: u32 = 20 + 20 + 12;

/// The two ECN bits of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    #[default]
    NotEct = 0,
    Ect1 = 1,
    Ect0 = 2,
    Ce = 3,
}

/// One wire packet. Its content stays with the engine, behind `handle`: a
/// segment of the simulator or a buffer of the link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// The engine's name for the content.
    pub handle: u32,
    /// What the rate and the buffer count: the IP packet plus `path.overhead`.
    pub bytes: u32,
    /// The flow it belongs to, for queues that tell flows apart.
    pub flow: u32,
    /// The host that sends it, and the one that receives it: numbers of their sides, for queues that tell hosts apart.
    pub hosts: [u32; 2],
    pub ecn: Ecn,
    /// Differentiated services code point (RFC 2474), 0 ..= 63.
    pub dscp: u8,
    /// An ACK without data, flags or SACK blocks: its number, which wraps. A later one makes it superfluous.
    pub pure_ack: Option<u32>,
    /// When it entered the queue, which sets it.
    pub enqueued: Nanos,
}

/// Packets that enter a path at one instant, one behind the other, and differ in their place only, and the last perhaps in
/// its size: a TSO packet, as the wire has it.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    /// The first of them; its handle stands for all.
    pub packet: Packet,
    pub pkts: u32,
    /// Bytes of the last, which are no more than those of the others.
    pub last_bytes: u32,
}

/// How many of `count` events, the first at `at_ns` and then one every `every_ns`, have happened by `now_ns`. The first
/// must have.
#[inline]
pub(crate) fn count_until(at_ns: u64, every_ns: u64, count: u32, now_ns: u64) -> u32 {
    let last_ns = at_ns + u64::from(count - 1) * every_ns;
    match last_ns <= now_ns {
        true => count,
        false => ((now_ns - at_ns) / every_ns) as u32 + 1,
    }
}

impl Train {
    /// Of one packet.
    #[inline]
    pub fn of(packet: Packet) -> Train {
        Train {
            packet,
            pkts: 1,
            last_bytes: packet.bytes,
        }
    }

    /// How many of them, from the first on, are of one size.
    #[inline]
    pub fn alike(&self) -> u32 {
        match self.last_bytes == self.packet.bytes {
            true => self.pkts,
            false => self.pkts - 1,
        }
    }

    /// What is left without the first so many.
    #[inline]
    pub fn without(mut self, pkts: u32) -> Train {
        self.pkts -= pkts;
        if self.pkts == 1 {
            self.packet.bytes = self.last_bytes;
        }
        self
    }
}

impl Packet {
    /// Says "congestion experienced" in the packet's header. `false`: its
    /// sender does not understand that, so it must be dropped instead.
    #[inline]
    pub fn mark_ce(&mut self) -> bool {
        if self.ecn == Ecn::NotEct {
            return false;
        }
        self.ecn = Ecn::Ce;
        true
    }
}
