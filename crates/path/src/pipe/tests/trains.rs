//! Trains against the same packets one by one, which a link sends that takes a step for each.

use std::collections::BTreeMap;

use crate::loss::LossSpec;
use crate::trace::Schedule;
use knee_units::rng::Stream;
use knee_units::{NEVER, Rate};
use proptest::prelude::*;

use super::super::*;
use crate::bottleneck::Link;
use crate::packet::Ecn;
use crate::queue::{BufferLimit, QUEUES, QueueKind};

/// What became of each packet, by its number.
#[derive(Default)]
struct Fates {
    /// Of each handle: the number of the packet that it stands for next, and how many there are.
    trains: BTreeMap<u32, (u32, u32)>,
    handles: u32,
    lost: Vec<u32>,
    dropped: Vec<u32>,
    marked: Vec<u32>,
    waited: Vec<(u32, u64, Nanos)>,
    /// Packets of an interrupt, and when it was.
    arrived: Vec<(u64, Vec<u32>)>,
}

impl Fates {
    fn add(&mut self, first: u32, pkts: u32) -> u32 {
        self.handles += 1;
        self.trains.insert(self.handles, (first, pkts));
        self.handles
    }

    fn take(&mut self, handle: u32, pkts: u32) -> Vec<u32> {
        let (first, left) = self.trains.get_mut(&handle).expect("it stands for packets");
        let taken = *first..*first + pkts;
        (*first, *left) = (
            *first + pkts,
            left.checked_sub(pkts).expect("so many are left"),
        );
        if *left == 0 {
            self.trains.remove(&handle);
        }
        taken.collect()
    }
}

impl Sink for Fates {
    type Note = ();
    fn lost(&mut self, packet: &Packet) {
        let taken = self.take(packet.handle, 1);
        self.lost.extend(taken);
    }
    fn dropped(&mut self, packet: &Packet) {
        let taken = self.take(packet.handle, 1);
        self.dropped.extend(taken);
    }
    fn cut(&mut self, handle: u32, pkts: u32) -> u32 {
        let first = self.take(handle, pkts)[0];
        self.add(first, pkts)
    }
    fn left(&mut self, packet: &Packet, _departure: &Departure) {
        let (first, pkts) = self.trains[&packet.handle];
        if packet.ecn == Ecn::Ce {
            self.marked.extend(first..first + pkts);
        }
    }
    fn waited(&mut self, flow: u32, waits: impl Iterator<Item = (u64, Nanos)>) {
        let waits = waits.map(|(at_ns, waited)| (flow, at_ns, waited));
        self.waited.extend(waits);
    }
    fn copy(&mut self, _packet: &Packet, (): ()) -> (u32, ()) {
        panic!("nothing copies");
    }
    fn arrived(&mut self, at_ns: u64, packets: &[Passing<()>]) {
        let numbers = packets.iter();
        let numbers = numbers.flat_map(|passing| self.take(passing.handle, passing.pkts));
        let numbers = numbers.collect();
        self.arrived.push((at_ns, numbers));
    }
}

/// A train: when it comes after the one before, its flow, how many packets, of how many bytes the last, and whether its
/// sender understands marks.
type Entering = (u64, u32, u32, u32, bool);

struct Setting {
    kind: &'static QueueKind,
    limit: BufferLimit,
    /// Where the queue named step marks: packets, us.
    ce: (u32, u64),
    loss: bool,
    coalesce_us: u64,
    nics: [u32; 3],
}

fn fates(entering: &[Entering], setting: &Setting, trains: bool) -> (Fates, String) {
    let rate = Rate::from_bits_per_sec(12_000_000).expect("a rate");
    let (pkts, us) = setting.ce;
    let thresholds = [
        ("ce_packets", f64::from(pkts)),
        ("ce_threshold", us as f64 / 1e6),
    ];
    let set = match setting.kind.name {
        "step" => &thresholds[..],
        _ => &[],
    };
    let queue = super::tests::queue_of(setting.kind, setting.limit, rate, set);
    let share = if setting.loss { 0.1 } else { 0.0 };
    let loss = LossSpec {
        share,
        ..LossSpec::NONE
    };
    let loss = loss.build(Stream::new(1, "loss"));
    let link = Link::new(Schedule::new(rate, None, &[], 0), queue);
    let coalesce = Nanos::from_us(setting.coalesce_us);
    let mut pipe = Pipe::new(Bottleneck::new(loss, None, Some(link)), None, coalesce);
    if trains {
        pipe.foresee();
    }
    for ((flow, nic), delay_ms) in (0..).zip(setting.nics).zip([10, 3, 10]) {
        pipe.add_flow(Nanos::from_ms(delay_ms));
        pipe.set_nic(flow, nic, nic);
    }
    let (mut fates, mut rows, mut now_ns, mut number) = (Fates::default(), String::new(), 0, 0);
    for (i, &(gap_ns, flow, pkts, last_bytes, ect)) in entering.iter().enumerate() {
        now_ns += gap_ns;
        while pipe.next().at_ns() <= now_ns {
            pipe.step(&mut fates);
        }
        let mut enter = |number: u32, pkts: u32, bytes: u32, last_bytes: u32| {
            let packet = Packet {
                handle: fates.add(number, pkts),
                flow,
                bytes,
                ecn: if ect { Ecn::Ect0 } else { Ecn::NotEct },
                ..Packet::default()
            };
            let train = Train {
                packet,
                pkts,
                last_bytes,
            };
            pipe.enter(now_ns, train, &mut fates);
        };
        let first_bytes = if pkts == 1 { last_bytes } else { 1_500 };
        match trains {
            true => enter(number, pkts, first_bytes, last_bytes),
            false => (0..pkts).for_each(|place| {
                let bytes = if place + 1 == pkts { last_bytes } else { 1_500 };
                enter(number + place, 1, bytes, bytes);
            }),
        }
        number += pkts;
        if i % 5 == 0 {
            pipe.settle(now_ns, &mut fates);
            rows += &format!("{:?}\n", pipe.bottleneck.sample(now_ns));
        }
    }
    while pipe.next().at_ns() != NEVER {
        pipe.step(&mut fates);
    }
    pipe.settle(u64::MAX, &mut fates);
    (fates, rows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Behind each queue: where it is not foreseen when a packet leaves, the link takes its steps late.
    #[test]
    fn trains_fare_as_their_packets_do(
        entering in prop::collection::vec(
            (0u64..6_000_000, 0u32..3, 1u32..12, 60u32..=1_500, any::<bool>()),
            1..150,
        ),
        kind in 0..QUEUES.len(),
        limit in prop_oneof![
            (1u32..30).prop_map(BufferLimit::Packets),
            (300u64..40_000).prop_map(BufferLimit::Bytes),
            Just(BufferLimit::Unlimited),
        ],
        ce in (0u32..10, 0u64..20_000),
        loss in any::<bool>(),
        coalesce_us in prop_oneof![Just(0u64), 1u64..6_000],
        nics in prop_oneof![Just([0, 1, 2]), Just([0, 0, 0]), Just([0, 1, 0])],
    ) {
        let setting = Setting { kind: QUEUES[kind], limit, ce, loss, coalesce_us, nics };
        let (trains, rows) = fates(&entering, &setting, true);
        let (mut alone, rows_alone) = fates(&entering, &setting, false);
        prop_assert!(trains.trains.is_empty(), "all packets came to an end");
        prop_assert_eq!(rows, rows_alone);
        prop_assert_eq!(trains.lost, alone.lost);
        prop_assert_eq!(trains.dropped, alone.dropped);
        prop_assert_eq!(trains.marked, alone.marked);
        prop_assert_eq!(trains.waited, alone.waited);
        // Interrupts of one instant have an order of their own.
        let mut arrived = trains.arrived;
        arrived.sort();
        alone.arrived.sort();
        prop_assert_eq!(arrived, alone.arrived);
    }
}
