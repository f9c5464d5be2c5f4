//! What a packet costs in each queue, in and out, beside the FIFO.
//!
//! "nothing" holds one packet and is what the measurement itself costs.
//!
//! Three loads: a queue that stands at 100 packets of ten flows with a wait
//! below every target (the common case), the same of a single flow, and one
//! that stands at a wait above the targets, so that packets are dropped.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use knee_path::packet::{Ecn, Packet};
use knee_path::queue::BufferLimit;
use knee_path::queue::{QUEUES, Queue, QueueKind, Setup};
use knee_units::params::Params;
use knee_units::rng::Stream;
use knee_units::{Nanos, Rate};

/// Packets per measured pass.
const PACKETS: u32 = 10_000;
/// That stand in the queue.
const STANDING: u32 = 100;

struct Load {
    name: &'static str,
    flows: u32,
    /// Time between two packets: with 100 of them waiting, 1/100 of the wait.
    gap: Nanos,
    /// Out of this many that come, one more than leaves.
    excess: u32,
}

const LOADS: &[Load] = &[
    Load {
        name: "ten flows, 1 ms",
        flows: 10,
        gap: Nanos(10_000),
        excess: u32::MAX,
    },
    Load {
        name: "one flow, 1 ms",
        flows: 1,
        gap: Nanos(10_000),
        excess: u32::MAX,
    },
    Load {
        name: "ten flows, overload of 5 %",
        flows: 10,
        gap: Nanos(1_000_000),
        excess: 20,
    },
];

struct Bench {
    queue: Box<dyn Queue>,
    now: Nanos,
    handle: u32,
    dropped: Vec<Packet>,
}

/// Hands out the packet it was given last.
struct Nothing(Option<Packet>);

impl Queue for Nothing {
    #[inline]
    fn enqueue(&mut self, now: Nanos, mut packet: Packet, _dropped: &mut Vec<Packet>) {
        packet.enqueued = now;
        self.0 = Some(packet);
    }
    #[inline]
    fn dequeue(&mut self, _now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.0.take()
    }
    fn len_pkts(&self) -> u32 {
        u32::from(self.0.is_some())
    }
    fn len_bytes(&self) -> u64 {
        self.0.map_or(0, |packet| u64::from(packet.bytes))
    }
}

fn build(kind: &QueueKind) -> Box<dyn Queue> {
    (kind.build)(Setup {
        limit: BufferLimit::Packets(1_000),
        rate: Rate::from_bits_per_sec(1_200_000_000).unwrap(),
        max_packet_bytes: 1_500,
        rng: Stream::new(1, "path.queue"),
        params: Params::defaults(kind.params),
    })
}

impl Bench {
    fn new(queue: Box<dyn Queue>, load: &Load) -> Bench {
        let mut bench = Bench {
            queue,
            now: Nanos::from_secs(1),
            handle: 0,
            dropped: Vec::new(),
        };
        for _ in 0..STANDING {
            bench.enqueue(load);
        }
        bench
    }

    #[inline]
    fn enqueue(&mut self, load: &Load) {
        self.now += load.gap;
        self.handle = self.handle.wrapping_add(1);
        let packet = Packet {
            handle: self.handle,
            bytes: 1_500,
            flow: self.handle % load.flows,
            hosts: [0; 2],
            ecn: Ecn::NotEct,
            dscp: 0,
            pure_ack: None,
            enqueued: Nanos::ZERO,
        };
        self.queue.enqueue(self.now, packet, &mut self.dropped);
    }

    fn pass(&mut self, load: &Load) {
        for i in 0..PACKETS {
            self.enqueue(load);
            if i % load.excess != load.excess - 1 {
                black_box(self.queue.dequeue(self.now, &mut self.dropped));
            }
            self.dropped.clear();
        }
    }
}

fn queues(c: &mut Criterion) {
    for load in LOADS {
        let mut group = c.benchmark_group(load.name);
        group.throughput(Throughput::Elements(u64::from(PACKETS)));
        let nothing: Box<dyn Queue> = Box::new(Nothing(None));
        let queues = QUEUES.iter().map(|kind| (kind.name, build(kind)));
        for (name, queue) in queues.chain([("nothing", nothing)]) {
            let mut bench = Bench::new(queue, load);
            // Past the start: burst allowances, first drops.
            for _ in 0..20 {
                bench.pass(load);
            }
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter(|| bench.pass(load));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, queues);
criterion_main!(benches);
