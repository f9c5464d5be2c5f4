//! What every queue does with drawn parameters under a drawn load, as a row of digests: tests/golden/queues_drawn.txt.
//! A row that changes is a change of behaviour: write it anew and say why in the commit,
//! `KNEE_WRITE_GOLDEN=1 cargo test -p knee-path --test queues_drawn`.
//!
//! Half of the loads run in round numbers, of sizes, gaps and waits, so that what a queue compares is often equal.

#[path = "../../sim/tests/common/golden.rs"]
mod golden;

use std::fmt::Write as _;
use std::hash::Hasher as _;

use fnv::FnvHasher;
use golden::assert_golden;
use knee_path::packet::{Ecn, Packet};
use knee_path::queue::BufferLimit;
use knee_path::queue::{QUEUES, Queue, QueueKind, Setup};
use knee_units::params::{Param, Params, Unit};
use knee_units::rng::Stream;
use knee_units::{Nanos, Rate};

const LOADS: u64 = 600;
const PACKETS: u32 = 1_200;

fn below(rng: &mut Stream, n: u32) -> u32 {
    ((u64::from(rng.next_u32()) * u64::from(n)) >> 32) as u32
}

fn one_of<T: Copy>(rng: &mut Stream, choices: &[T]) -> T {
    choices[below(rng, choices.len() as u32) as usize]
}

/// Mostly the default, or a power of two from it, or a bound.
fn value(rng: &mut Stream, param: &Param) -> f64 {
    match (below(rng, 8), param.unit) {
        (0..=3, _) => param.default,
        (_, Unit::Flag) => f64::from(below(rng, 2)),
        (_, Unit::Choice(words)) => f64::from(below(rng, words.len() as u32)),
        (4, _) => param.min,
        (5, _) => param.max,
        (_, unit) => {
            let base = match param.default {
                // Off: what an on would be.
                0.0 => one_of(rng, &[0.1, 1_500.0, 50_000.0, 2e6, 2e7]),
                default => default,
            };
            let near = base * f64::from(1 << below(rng, 5)) / 4.0;
            let whole = !matches!(unit, Unit::Share | Unit::Number);
            (if whole { near.round() } else { near }).clamp(param.min, param.max)
        }
    }
}

/// All that was seen, as one number.
#[derive(Default)]
struct Digest(FnvHasher);

impl Digest {
    fn add(&mut self, value: u64) {
        self.0.write(&value.to_le_bytes());
    }

    fn add_packet(&mut self, packet: &Packet, now: Nanos) {
        for value in [
            u64::from(packet.handle),
            now.0,
            packet.ecn as u64,
            packet.enqueued.0,
        ] {
            self.add(value);
        }
    }
}

/// A queue, the link behind it, and all that can be seen of them.
struct Drawn {
    rng: Stream,
    queue: Box<dyn Queue>,
    rate: Rate,
    is_round: bool,
    flows: u32,
    overload: u32,
    ack: u32,
    now: Nanos,
    free_at: Nanos,
    dropped: Vec<Packet>,
    seen: Digest,
}

impl Drawn {
    fn new(kind: &QueueKind, number: u64) -> Drawn {
        let mut rng = Stream::new(number, kind.name);
        let mut params = Params::defaults(kind.params);
        for param in kind.params {
            let value = value(&mut rng, param);
            params.set(param.name, value);
        }
        let bits_per_sec = one_of(&mut rng, &[300_000, 10_000_000, 20_000_000, 1_000_000_000]);
        let rate = Rate::from_bits_per_sec(bits_per_sec).expect("a rate");
        let limit = match below(&mut rng, 3) {
            0 => BufferLimit::Unlimited,
            1 => BufferLimit::Bytes(1_500 + u64::from(below(&mut rng, 200_000))),
            _ => BufferLimit::Packets(1 + below(&mut rng, 200)),
        };
        let queue = (kind.build)(Setup {
            limit,
            rate,
            max_packet_bytes: 1_500,
            rng: Stream::new(number, "draws"),
            params,
        });
        Drawn {
            is_round: below(&mut rng, 2) == 0,
            flows: one_of(&mut rng, &[1, 2, 8, 2_000]),
            overload: one_of(&mut rng, &[1, 2, 3]),
            rng,
            queue,
            rate,
            ack: 0,
            now: Nanos::from_secs(1),
            free_at: Nanos::ZERO,
            dropped: Vec::new(),
            seen: Digest::default(),
        }
    }

    fn gap(&mut self) -> Nanos {
        let full = self.rate.transmit_time(1_500).0;
        let rng = &mut self.rng;
        Nanos(match (self.is_round, below(rng, 40)) {
            (true, 0) => 100_000_000,
            (true, _) => one_of(rng, &[0, full / 4, full / 2, full]) / u64::from(self.overload) * 2,
            (false, 0) => u64::from(below(rng, 2_000_000_000)),
            (false, _) => {
                (u64::from(below(rng, 1 << 16)) * full * 2 / u64::from(self.overload)) >> 16
            }
        })
    }

    fn packet(&mut self, handle: u32) -> Packet {
        let rng = &mut self.rng;
        let is_ack = below(rng, 5) == 0;
        let bytes = match (is_ack, self.is_round) {
            (true, _) => 52,
            (false, true) => one_of(rng, &[300, 750, 1_500, 1_500]),
            (false, false) => 52 + below(rng, 1_449),
        };
        self.ack = self.ack.wrapping_add(1_448 * below(rng, 3));
        Packet {
            handle,
            bytes,
            flow: below(rng, self.flows),
            // The receiving one without a draw of its own.
            hosts: [below(rng, 3), handle % 2],
            ecn: one_of(
                rng,
                &[Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ect1, Ecn::Ce],
            ),
            dscp: match below(rng, 2) {
                0 => 0,
                _ => below(rng, 64) as u8,
            },
            pure_ack: is_ack.then_some(self.ack),
            enqueued: Nanos::ZERO,
        }
    }

    /// The link takes what it can until then.
    fn run_until(&mut self, until: Nanos) {
        while self.free_at <= until {
            let at = self.free_at.max(self.now);
            let sent = self.queue.dequeue(at, &mut self.dropped);
            self.note_drops(at);
            match sent {
                Some(packet) => {
                    self.seen.add_packet(&packet, at);
                    self.free_at = at + self.rate.transmit_time(u64::from(packet.bytes));
                }
                None => match self.queue.retry_at() {
                    Some(retry) if retry > at => self.free_at = retry,
                    _ => break,
                },
            }
            self.now = at;
        }
        self.now = until;
    }

    fn note_drops(&mut self, now: Nanos) {
        for packet in std::mem::take(&mut self.dropped) {
            self.seen.add_packet(&packet, now);
        }
    }

    fn digest(mut self) -> u64 {
        for handle in 0..PACKETS {
            let until = self.now + self.gap();
            self.run_until(until);
            let packet = self.packet(handle);
            self.queue.enqueue(until, packet, &mut self.dropped);
            self.note_drops(until);
            self.seen.add(self.queue.len_bytes());
            self.seen.add(u64::from(self.queue.len_pkts()));
            self.free_at = self.free_at.max(match self.queue.len_pkts() {
                1 => until,
                _ => Nanos::ZERO,
            });
        }
        let end = self.now + Nanos::from_secs(60);
        self.run_until(end);
        self.seen.0.finish()
    }
}

#[test]
fn every_queue_treats_drawn_loads_as_its_golden_row_says() {
    let mut table = String::new();
    for kind in QUEUES {
        let mut digest = Digest::default();
        for number in 0..LOADS {
            digest.add(Drawn::new(kind, number).digest());
        }
        writeln!(table, "{:<10} {:016x}", kind.name, digest.0.finish())
            .expect("a string takes everything");
    }
    assert_golden(&table, "queues_drawn.txt", "queues_drawn");
}
