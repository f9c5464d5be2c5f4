//! Walks the registries: whoever adds a queue or a loss is enrolled here without
//! a further line.

use knee_path::loss::{self, LossSpec};
use knee_path::packet::{Ecn, Packet};
use knee_path::queue::{BufferLimit, QUEUES, Queue, QueueKind, Setup};
use knee_units::files::{Files, ReadFile};
use knee_units::params::Params;
use knee_units::rng::Stream;
use knee_units::{Nanos, Rate};

const LIMITS: [BufferLimit; 3] = [
    BufferLimit::Unlimited,
    BufferLimit::Bytes(20_000),
    BufferLimit::Packets(13),
];

/// What a queue let out and threw away, in order, under a random load.
struct Passage {
    offered: Vec<Packet>,
    sent: Vec<(Nanos, Packet)>,
    dropped: Vec<Packet>,
    left_bytes: u64,
    left_pkts: u32,
    most_bytes: u64,
    most_pkts: u32,
}

fn build(kind: &QueueKind, limit: BufferLimit) -> Box<dyn Queue> {
    build_with(kind, limit, Params::defaults(kind.params))
}

fn build_with(kind: &QueueKind, limit: BufferLimit, params: Params) -> Box<dyn Queue> {
    (kind.build)(Setup {
        limit,
        rate: Rate::from_bits_per_sec(20_000_000).unwrap(),
        max_packet_bytes: 1_500,
        rng: Stream::new(7, "draws"),
        params,
    })
}

fn packet(handle: u32, bytes: u32) -> Packet {
    Packet {
        handle,
        bytes,
        flow: 0,
        hosts: [0; 2],
        ecn: Ecn::NotEct,
        dscp: 0,
        pure_ack: None,
        enqueued: Nanos::ZERO,
    }
}

/// Offers 5,000 packets of five flows at random times and sizes, and takes some
/// out in between, more slowly than they come.
fn pass(kind: &QueueKind, limit: BufferLimit) -> Passage {
    pass_through(build(kind, limit))
}

fn pass_through(mut queue: Box<dyn Queue>) -> Passage {
    let mut rng = Stream::new(7, "queue");
    let mut now = Nanos::from_secs(1);
    let mut passage = Passage {
        offered: Vec::new(),
        sent: Vec::new(),
        dropped: Vec::new(),
        left_bytes: 0,
        left_pkts: 0,
        most_bytes: 0,
        most_pkts: 0,
    };
    for handle in 0..5_000 {
        now += Nanos(u64::from(rng.next_u32() % 200_000));
        let packet = Packet {
            flow: rng.next_u32() % 5,
            hosts: [rng.next_u32() % 2; 2],
            ..packet(handle, 40 + rng.next_u32() % 1_461)
        };
        // The queue is to stamp it.
        passage.offered.push(Packet {
            enqueued: now,
            ..packet
        });
        queue.enqueue(now, packet, &mut passage.dropped);
        passage.most_bytes = passage.most_bytes.max(queue.len_bytes());
        passage.most_pkts = passage.most_pkts.max(queue.len_pkts());
        if rng.next_u32().is_multiple_of(2)
            && let Some(packet) = queue.dequeue(now, &mut passage.dropped)
        {
            passage.sent.push((now, packet));
        }
    }
    passage.left_bytes = queue.len_bytes();
    passage.left_pkts = queue.len_pkts();
    passage
}

fn bytes(packets: impl IntoIterator<Item = u32>) -> u64 {
    packets.into_iter().map(u64::from).sum()
}

#[test]
fn every_queue_accounts_for_every_byte_and_packet() {
    for kind in QUEUES {
        for limit in LIMITS {
            let passage = pass(kind, limit);
            let offered = bytes(passage.offered.iter().map(|p| p.bytes));
            let sent = bytes(passage.sent.iter().map(|(_, p)| p.bytes));
            let dropped = bytes(passage.dropped.iter().map(|p| p.bytes));
            assert_eq!(
                offered,
                sent + dropped + passage.left_bytes,
                "{} {limit:?}: bytes in = out + dropped + queued",
                kind.name
            );
            assert_eq!(
                passage.offered.len(),
                passage.sent.len() + passage.dropped.len() + passage.left_pkts as usize,
                "{} {limit:?}: packets",
                kind.name
            );
        }
    }
}

#[test]
fn every_queue_bears_the_least_and_the_most_of_each_parameter() {
    for kind in QUEUES {
        for param in kind.params {
            assert!(
                (param.min..=param.max).contains(&param.default),
                "{}.{}",
                kind.name,
                param.name
            );
            for value in [param.min, param.max] {
                for limit in LIMITS {
                    let mut params = Params::defaults(kind.params);
                    params.set(param.name, value);
                    let passage = pass_through(build_with(kind, limit, params));
                    let case = format!("{}.{} = {value}, {limit:?}", kind.name, param.name);
                    let out = passage.sent.len() + passage.dropped.len();
                    assert_eq!(
                        passage.offered.len(),
                        out + passage.left_pkts as usize,
                        "{case}"
                    );
                    assert!(limit.holds(passage.most_pkts, passage.most_bytes), "{case}");
                }
            }
        }
    }
}

#[test]
fn no_queue_sends_a_packet_before_it_came_or_twice() {
    for kind in QUEUES {
        for limit in LIMITS {
            let passage = pass(kind, limit);
            let mut seen = vec![false; passage.offered.len()];
            for (at, packet) in &passage.sent {
                let came = passage.offered[packet.handle as usize].enqueued;
                assert!(
                    packet.enqueued == came && came <= *at,
                    "{} {limit:?}: packet {} came at {came}, is stamped {} and left at {at}",
                    kind.name,
                    packet.handle,
                    packet.enqueued
                );
                assert!(
                    !std::mem::replace(&mut seen[packet.handle as usize], true),
                    "{} {limit:?}: packet {} left twice",
                    kind.name,
                    packet.handle
                );
            }
        }
    }
}

/// Queues that drop for want of room alone. The others drop early, by rules that their own tests check.
const TAIL_DROP: &[&str] = &["fifo"];

#[test]
fn every_queue_keeps_its_limit() {
    for kind in QUEUES {
        for limit in LIMITS {
            let passage = pass(kind, limit);
            assert!(
                limit.holds(passage.most_pkts, passage.most_bytes),
                "{} {limit:?}: held {} packets, {} bytes",
                kind.name,
                passage.most_pkts,
                passage.most_bytes
            );
            assert!(
                limit != BufferLimit::Unlimited
                    || !TAIL_DROP.contains(&kind.name)
                    || passage.dropped.is_empty(),
                "{} drops although there is room",
                kind.name
            );
        }
    }
}

#[test]
fn no_queue_drops_or_marks_a_packet_that_need_not_wait() {
    for kind in QUEUES {
        let mut queue = build(kind, BufferLimit::Unlimited);
        let mut dropped = Vec::new();
        for handle in 0..20_000 {
            let now = Nanos::from_ms(u64::from(handle));
            let packet = Packet {
                ecn: Ecn::Ect0,
                ..packet(handle, 1_500)
            };
            queue.enqueue(now, packet, &mut dropped);
            let sent = queue.dequeue(now, &mut dropped).expect(kind.name);
            assert_eq!(
                (sent.handle, sent.ecn),
                (handle, Ecn::Ect0),
                "{}",
                kind.name
            );
            assert!(queue.dequeue(now, &mut dropped).is_none(), "{}", kind.name);
        }
        assert!(dropped.is_empty(), "{}", kind.name);
    }
}

#[test]
fn every_queue_does_the_same_twice() {
    for kind in QUEUES {
        for limit in LIMITS {
            let trace = |passage: Passage| {
                let sent: Vec<_> = passage.sent.iter().map(|(at, p)| (*at, p.handle)).collect();
                let dropped: Vec<_> = passage.dropped.iter().map(|p| p.handle).collect();
                (sent, dropped)
            };
            assert_eq!(
                trace(pass(kind, limit)),
                trace(pass(kind, limit)),
                "{} {limit:?}",
                kind.name
            );
        }
    }
}

/// A loss as a scenario writes it; files hold every tenth packet's loss.
fn loss(text: &str) -> LossSpec {
    let every_tenth = ReadFile::of_texts(|_| Ok("0000000001".into()));
    let files = Files {
        read: Some(&every_tenth),
        scenario: "s.toml",
        seen: None,
    };
    LossSpec::read(text, files).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// Losses of every kind, from its example and with other numbers in it.
fn losses() -> Vec<LossSpec> {
    let mut specs: Vec<LossSpec> = loss::KINDS.iter().map(|kind| loss(kind.example)).collect();
    let further = ["1%", "10%", "50%", "periodic 1%", "periodic 50%"].map(loss);
    specs.extend(further);
    specs.extend(["gilbert 10% burst 2", "gilbert p 1% r 10% 1-h 60% 1-k 0.5%"].map(loss));
    specs
}

#[test]
fn every_loss_loses_the_share_it_was_asked_to() {
    // 4,000,000 packets: at 1 % in bursts of 5 four standard deviations are 6 %
    // of it, three times those of independent losses.
    const PACKETS: u32 = 4_000_000;
    for spec in losses() {
        let mut process = spec.build(Stream::new(3, "loss")).expect("a share above 0");
        let lost = (0..PACKETS).filter(|_| process.lose()).count();
        let measured = lost as f64 / f64::from(PACKETS);
        assert!(
            (measured / spec.share - 1.0).abs() < 0.065,
            "{spec}: {measured}"
        );
    }
    for kind in loss::KINDS {
        let never = LossSpec {
            share: 0.0,
            ..loss(kind.example)
        };
        assert!(
            never.build(Stream::new(3, "loss")).is_none(),
            "{}",
            kind.name
        );
    }
}

#[test]
fn every_loss_reads_what_it_writes_and_does_the_same_twice() {
    for spec in losses() {
        let again = loss(&spec.to_string());
        assert_eq!(again.to_string(), spec.to_string());
        assert!((again.share / spec.share - 1.0).abs() < 1e-6, "{spec}");
        let fate = || {
            let mut process = spec.build(Stream::new(9, "loss")).expect("a share above 0");
            (0..10_000).map(|_| process.lose()).collect::<Vec<_>>()
        };
        assert_eq!(fate(), fate(), "{spec}");
    }
}
