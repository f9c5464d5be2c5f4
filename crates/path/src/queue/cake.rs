//! Everything a home's router needs in one queue: a shaper, tins for classes
//! of service, a queue for each flow in them, hosts that share alike however
//! many flows they have, an AQM for each flow, and a filter for ACKs that
//! later ones make superfluous.
//!
//! ```text
//! shaper:      next packet = last + (bytes + overhead) / bandwidth
//! tin:         the last one that keeps its share of the bandwidth, else the one due first
//! turn:        quantum / bulk flows of the host         deficit round robin, sparse flows first
//! ```
//!
//! Source: Høiland-Jørgensen, Täht, Morton: Piece of CAKE, IEEE LANMAN 2018;
//! Linux 6.12 net/sched/sch_cake.c; tc-cake(8).
//!
//! Differs from Linux: flows and hosts are hashed by number; sizes are those on the wire, where Linux' memory
//! limit counts kernel memory; roots are computed, not iterated; what dividing
//! a turn among a host's flows leaves over adds up, where Linux rounds each
//! turn by a random draw; the path's buffer is a limit besides the queue's
//! own. There is no splitting of GSO packets (links do that), no ingress mode,
//! no autorate, no framing of ATM or PTM and no washing of DSCPs.

mod ack_filter;
mod classes;
mod cobalt;
mod tin;

use ack_filter::AckFilter;
use classes::{shares, tin_of};
use cobalt::Settings;
use knee_units::Nanos;
use knee_units::params::{Param, Unit};
use knee_units::rng::Stream;
use tin::{DECAYING, NEW, OLD, QUEUES, Set, Tin, turn_of};

use super::flows::Hash;
use super::packets::{NONE, Packets};
use super::{Queue, QueueKind, Setup};
use crate::packet::Packet;
use crate::queue::BufferLimit;

const LINUX: &str = "tc-cake(8); Linux net/sched/sch_cake.c: cake_init()";

pub(super) const KIND: QueueKind = QueueKind {
    name: "cake",
    summary: "shaper, tins by DSCP, fair among hosts and their flows, an AQM for each flow, and a filter for ACKs",
    source: "Høiland-Jørgensen, Täht, Morton: Piece of CAKE, IEEE LANMAN 2018; Linux net/sched/sch_cake.c",
    params: &[
        Param {
            name: "bandwidth",
            unit: Unit::Rate,
            default: f64::INFINITY,
            min: 512.0,
            max: f64::INFINITY,
            doc: "rate that it shapes to; unlimited: the link's is the only one",
            source: LINUX,
        },
        Param {
            name: "tins",
            unit: Unit::Count,
            default: 3.0,
            min: 1.0,
            max: 8.0,
            doc: "classes that DSCPs are sorted into: 1 besteffort, 3 diffserv3, 4 diffserv4, 8 diffserv8; others count as the next lower",
            source: LINUX,
        },
        Param {
            name: "isolation",
            unit: Unit::Choice(&ISOLATION),
            default: 7.0,
            min: 0.0,
            max: 7.0,
            doc: "what has a queue of its own: all packets one (flowblind), the packets of a sending host (srchost), of a receiving host (dsthost), of a pair of hosts (hosts) or of a flow (flows); or flows within an equal share for each sending host (dual-srchost), for each receiving host (dual-dsthost), or for both (triple-isolate). A host is one of sender.hosts or receiver.hosts",
            source: LINUX,
        },
        Param {
            name: "ack_filter",
            unit: Unit::Count,
            default: 0.0,
            min: 0.0,
            max: 2.0,
            doc: "drop ACKs that later ones make superfluous: 0 no, 1 ack-filter, keeping two, 2 ack-filter-aggressive",
            source: LINUX,
        },
        Param {
            name: "rtt",
            unit: Unit::Time,
            default: 1e8,
            min: 1e3,
            max: 1e10,
            doc: "interval of the AQM; its target is a twentieth",
            source: LINUX,
        },
        Param {
            name: "overhead",
            unit: Unit::Bytes,
            default: 0.0,
            min: 0.0,
            max: 256.0,
            doc: "bytes that the shaper counts with each packet, besides path.overhead",
            source: LINUX,
        },
        Param {
            name: "mpu",
            unit: Unit::Bytes,
            default: 0.0,
            min: 0.0,
            max: 256.0,
            doc: "least bytes of a packet that the shaper counts, overhead included",
            source: LINUX,
        },
        Param {
            name: "memory_limit",
            unit: Unit::Bytes,
            default: 0.0,
            min: 0.0,
            max: 4_294_967_295.0,
            doc: "bytes that it holds at most, besides path.buffer; 0: four times bandwidth × rtt, at least 4MiB, at most 10240 full packets",
            source: "Linux net/sched/sch_cake.c: cake_reconfigure()",
        },
    ],
    conflict: None,
    caution: None,
    build: |setup| Box::new(Cake::new(setup)),
};

/// tc's words for what cake isolates. The bits of a word's place: sending hosts, receiving hosts, flows.
const ISOLATION: [&str; 8] = [
    "flowblind",
    "srchost",
    "dsthost",
    "hosts",
    "flows",
    "dual-srchost",
    "dual-dsthost",
    "triple-isolate",
];

/// The queue's own limit without a memory limit. Linux: cake_init().
const LIMIT_PKTS: u64 = 10_240;
/// Least memory limit that comes from the bandwidth.
const LEAST_LIMIT_BYTES: u64 = 4 << 20;
/// Below it, bytes per second, packets would take forever. Linux: cake_set_rate().
const LEAST_RATE: u64 = 64;

/// How many DSCPs there are.
const DSCPS: usize = 64;

struct Cake {
    tins: Vec<Tin>,
    /// The tin of each DSCP.
    tin_of: [u8; DSCPS],
    packets: Packets,
    limit: BufferLimit,
    memory_limit: u64,
    hash: Hash,
    rng: Stream,
    isolates: Isolates,
    ack_filter: AckFilter,
    overhead: u64,
    mpu: u64,
    /// Bytes per second; 0: nothing shapes.
    rate: u64,
    time_next: Nanos,
    /// The tin that sends, when nothing shapes.
    current: usize,
    /// Nothing waits in the others, and none of them takes a quantum when it is
    /// passed: as long as that holds they need not be looked at.
    alone: bool,
}

/// What is told apart.
#[derive(Clone, Copy)]
struct Isolates {
    /// Hosts that send, and hosts that receive.
    hosts: [bool; 2],
    flows: bool,
}

impl Isolates {
    /// By the place of its word in [`ISOLATION`].
    fn of(place: u64) -> Isolates {
        Isolates {
            hosts: [place & 1 != 0, place & 2 != 0],
            flows: place & 4 != 0,
        }
    }

    /// Do the flows of a host that sends, or that receives, share its turn?
    fn divides(self) -> [bool; 2] {
        self.hosts.map(|hosts| hosts && self.flows)
    }

    /// What packets of one queue have in common.
    #[inline]
    fn tag(self, packet: &Packet, hash: &Hash) -> u32 {
        let [source, destination] = packet.hosts;
        match (self.flows, self.hosts) {
            (true, _) => packet.flow,
            (false, [true, true]) => hash.mix(source) ^ destination,
            (false, [true, false]) => source,
            (false, [false, true]) => destination,
            (false, [false, false]) => 0,
        }
    }
}

impl Cake {
    fn new(mut setup: Setup) -> Cake {
        let params = &setup.params;
        let rate = match params.get("bandwidth") {
            f64::INFINITY => 0,
            bits => (bits / 8.0) as u64,
        };
        let mtu = u64::from(setup.max_packet_bytes);
        let interval = params.int("rtt");
        let isolates = Isolates::of(params.int("isolation"));
        let tins = match params.int("tins") {
            8.. => 8,
            4.. => 4,
            3 => 3,
            _ => 1,
        };
        let tin = |(rate, weight): (u64, u32)| {
            let rate = if rate > 0 { rate.max(LEAST_RATE) } else { 0 };
            let target = interval / 20;
            let packet_time = Cake::time_at(rate, mtu);
            let stretched = target.max(packet_time.0 * 3 / 2);
            let settings = Settings {
                target: Nanos(stretched),
                interval: Nanos((interval + stretched - target).max(2 * stretched)),
                packet_time,
            };
            let flow_quantum = match rate {
                0 => mtu,
                rate => (rate >> 12).min(mtu).max(300),
            };
            Tin::new(
                rate,
                weight,
                flow_quantum as u32,
                isolates.divides(),
                settings,
            )
        };
        let auto_limit = match u128::from(rate) * u128::from(interval) * 4 / 1_000_000_000 {
            0 => u64::MAX,
            bytes => (bytes as u64).max(LEAST_LIMIT_BYTES),
        };
        Cake {
            tins: shares(tins, rate).into_iter().map(tin).collect(),
            tin_of: std::array::from_fn(|dscp| tin_of(tins, dscp as u8) as u8),
            packets: Packets::new(),
            limit: setup.limit,
            memory_limit: match params.int("memory_limit") {
                0 => auto_limit.min(LIMIT_PKTS * mtu),
                bytes => bytes,
            },
            isolates,
            ack_filter: match params.int("ack_filter") {
                0 => AckFilter::No,
                1 => AckFilter::Yes,
                _ => AckFilter::Aggressive,
            },
            overhead: params.int("overhead"),
            mpu: params.int("mpu"),
            rate,
            time_next: Nanos::ZERO,
            current: 0,
            alone: false,
            hash: Hash::new(&mut setup.rng, QUEUES as u32),
            rng: setup.rng,
        }
    }

    /// Time of `bytes` at a rate of bytes per second; none without a rate.
    /// No rate: no time.
    fn time_at(rate: u64, bytes: u64) -> Nanos {
        Nanos((bytes * 1_000_000_000).checked_div(rate).unwrap_or(0))
    }

    /// The tin and the queue of a packet.
    #[inline]
    fn classify(&mut self, packet: &Packet) -> (usize, usize) {
        let t = usize::from(self.tin_of[usize::from(packet.dscp) % DSCPS]);
        let tag = self.isolates.tag(packet, &self.hash);
        (t, self.tins[t].find(tag, packet.hosts, &self.hash))
    }

    /// A shaper that rested does not send what it missed.
    #[inline]
    fn wake_shapers(&mut self, t: usize, now: Nanos) {
        let tin = &mut self.tins[t];
        if tin.pkts == 0 {
            tin.time_next = tin.time_next.max(now);
            if self.packets.count == 0 {
                self.time_next = self.time_next.max(now);
            }
        }
    }

    /// The flow of a packet that came takes its place in the rotation.
    #[inline]
    fn activate(&mut self, t: usize, i: usize) {
        let set = self.tins[t].flows[i].set;
        if !matches!(set, Set::Bulk | Set::Sparse) {
            self.enlist(t, i, set);
        }
    }

    fn enlist(&mut self, t: usize, i: usize, set: Set) {
        self.alone = false;
        let tin = &mut self.tins[t];
        if set == Set::SparseWait {
            tin.set(i, Set::Bulk);
            return;
        }
        if set == Set::Decaying {
            tin.unlink(DECAYING, i);
        }
        tin.append(NEW, i);
        tin.set(i, Set::Sparse);
        tin.flows[i].deficit = tin.turn(&tin.flows[i]);
    }

    /// Drops from the queue that is longest.
    #[cold]
    fn drop_fattest(&mut self, now: Nanos, dropped: &mut Vec<Packet>) {
        let fattest = (self.tins.iter().enumerate())
            .filter_map(|(t, tin)| tin.fattest().map(|(bytes, i)| (bytes, t, i)))
            .reduce(|most, next| if next.0 > most.0 { next } else { most });
        let Some((_, t, i)) = fattest else { return };
        let tin = &mut self.tins[t];
        let flow = &mut tin.flows[i];
        // It has one, since those without are none of the fattest.
        dropped.push(flow.take_first(&mut self.packets));
        flow.cobalt.buffer_full(&tin.settings, now);
        tin.pkts -= 1;
    }

    /// The tin whose turn it is; something waits in one of them.
    #[inline]
    fn choose_tin(&mut self, now: Nanos) -> usize {
        if self.rate == 0 {
            if self.alone {
                let tin = &mut self.tins[self.current];
                while tin.deficit < 0 {
                    tin.deficit += tin.quantum;
                }
            } else {
                self.turn_to_tin();
            }
            return self.current;
        }
        let mut best = (Nanos::MAX, 0);
        for (t, tin) in self.tins.iter().enumerate() {
            let wait = tin.time_next.saturating_sub(now);
            if tin.is_active() && wait <= best.0 {
                best = (wait, t);
            }
        }
        best.1
    }

    /// In proportion to the weights.
    fn turn_to_tin(&mut self) {
        loop {
            let tin = &mut self.tins[self.current];
            if tin.deficit >= 0 && tin.is_active() {
                break;
            }
            if tin.deficit <= 0 {
                tin.deficit += tin.quantum;
            }
            self.current += 1;
            if self.current == self.tins.len() {
                self.current = 0;
            }
        }
        let current = self.current;
        let mut others = (self.tins.iter().enumerate()).filter(|&(t, _)| t != current);
        self.alone = others.all(|(_, tin)| !tin.is_active() && tin.deficit > 0);
    }

    /// The queue whose first packet is to leave the tin, of the flow whose turn it is; `None` when the flow had none.
    /// `decaying`: first forget a little of one that is empty.
    #[inline]
    fn serve(
        &mut self,
        t: usize,
        decaying: bool,
        now: Nanos,
        dropped: &mut Vec<Packet>,
    ) -> Option<usize> {
        let tin = &mut self.tins[t];
        let (list, i) = if tin.heads[NEW] == NONE && !(decaying && tin.heads[DECAYING] != NONE) {
            (OLD, tin.next_old()?)
        } else {
            tin.next_new(decaying)?
        };
        let flow = &mut tin.flows[i % QUEUES];
        while let Some(first) = self.packets.first_mut(&flow.chain) {
            let drops = flow.cobalt.drops(&tin.settings, first, now, &mut self.rng);
            // The last packet of a queue may be marked, but not dropped.
            if !drops || flow.chain.head == flow.chain.tail {
                return Some(i);
            }
            tin.pkts -= 1;
            dropped.push(flow.take_first(&mut self.packets));
        }
        tin.retire(list, i, now);
        None
    }

    /// Takes the first packet of a queue, and what it costs off the flow, the tin and the shapers.
    #[inline]
    fn take(&mut self, t: usize, i: usize, now: Nanos) -> Packet {
        let tin = &mut self.tins[t];
        let flow = &mut tin.flows[i % QUEUES];
        let packet = flow.take_first(&mut self.packets);
        let bytes = (u64::from(packet.bytes) + self.overhead).max(self.mpu);
        flow.deficit -= turn_of(bytes as u32);
        tin.pkts -= 1;
        tin.deficit -= bytes.cast_signed();
        let time = Cake::time_at(tin.rate, bytes);
        tin.time_next = if tin.time_next < now {
            tin.time_next + time
        } else {
            tin.time_next.max(now + time)
        };
        self.time_next += Cake::time_at(self.rate, bytes);
        packet
    }
}

impl Queue for Cake {
    #[inline]
    fn enqueue(&mut self, now: Nanos, mut packet: Packet, dropped: &mut Vec<Packet>) {
        packet.enqueued = now;
        let (t, i) = self.classify(&packet);
        self.wake_shapers(t, now);
        let tin = &mut self.tins[t];
        tin.flows[i].push(&mut self.packets, packet);
        tin.pkts += 1;
        if self.ack_filter != AckFilter::No
            && let Some(ack) = (self.ack_filter).take(&mut self.packets, &mut tin.flows[i], &packet)
        {
            tin.pkts -= 1;
            dropped.push(ack);
        }
        self.activate(t, i);
        while self.packets.bytes > self.memory_limit
            || !self.limit.holds(self.packets.count, self.packets.bytes)
        {
            self.drop_fattest(now, dropped);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Packet>) -> Option<Packet> {
        let mut decaying = true;
        while self.packets.count > 0 && self.time_next <= now {
            let t = self.choose_tin(now);
            if let Some(i) = self.serve(t, decaying, now, dropped) {
                return Some(self.take(t, i, now));
            }
            decaying = false;
        }
        None
    }

    fn retry_at(&self) -> Option<Nanos> {
        (self.packets.count > 0).then_some(self.time_next)
    }

    fn len_pkts(&self) -> u32 {
        self.packets.count
    }

    fn len_bytes(&self) -> u64 {
        self.packets.bytes
    }
}

#[cfg(test)]
mod tests;
