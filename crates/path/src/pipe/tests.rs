//! The path on made-up times: nothing early, nothing lost from the account,
//! the rate exact however late the caller is.

use crate::bottleneck::Link;
use crate::impairment::{
    Form, IMPAIRMENTS, Impairment, ImpairmentKind, ImpairmentSpec, Impairments, Key, Passage,
    Stage, Value, find,
};
use crate::packet::Ecn;
use crate::queue::policer::{Action, Policer, PolicerSpec};
use crate::queue::{self, BufferLimit, Fifo, Queue, QueueKind, Setup};
use crate::trace::{Outage, Schedule};
use knee_units::Rate;
use knee_units::params::Params;
use knee_units::rng::Stream;
use proptest::prelude::*;

use knee_units::NEVER;

use super::*;

mod trains;

#[derive(Default)]
struct Log {
    lost: usize,
    dropped: usize,
    copies: usize,
    left: Vec<(u32, u64)>,
    marked: Vec<bool>,
    waited: Vec<(u64, Nanos)>,
    announced: Vec<(u32, bool)>,
    arrived: Vec<(u32, u64, u32)>,
}

impl Sink for Log {
    type Note = ();
    fn lost(&mut self, _packet: &Packet) {
        self.lost += 1;
    }
    fn dropped(&mut self, _packet: &Packet) {
        self.dropped += 1;
    }
    fn cut(&mut self, handle: u32, _pkts: u32) -> u32 {
        handle
    }
    fn left(&mut self, packet: &Packet, departure: &Departure) {
        self.left.push((packet.handle, departure.at_ns));
        self.marked.push(packet.ecn == Ecn::Ce);
    }
    fn waited(&mut self, _flow: u32, waits: impl Iterator<Item = (u64, Nanos)>) {
        self.waited.extend(waits);
    }
    fn copy(&mut self, packet: &Packet, (): ()) -> (u32, ()) {
        self.copies += 1;
        (packet.handle, ())
    }
    fn expects(&mut self, passing: &Passing<()>, is_next: bool) {
        self.announced.push((passing.handle, is_next));
    }
    fn arrived(&mut self, at_ns: u64, packets: &[Passing<()>]) {
        for passing in packets {
            let entry = (passing.flow, at_ns, passing.handle);
            self.arrived.extend((0..passing.pkts).map(|_| entry));
        }
    }
}

fn packet(handle: u32, flow: u32, bytes: u32) -> Packet {
    Packet {
        handle,
        bytes,
        flow,
        hosts: [0; 2],
        ecn: Ecn::NotEct,
        dscp: 0,
        pure_ack: None,
        enqueued: Nanos::ZERO,
    }
}

/// 12 Mbit/s, but in the outages: 1500 bytes take 1 ms.
fn link(limit: BufferLimit, outages: &[Outage]) -> Link {
    let rate = Rate::from_bits_per_sec(12_000_000).unwrap();
    let queue = Box::new(Fifo::new(limit));
    Link::new(Schedule::new(rate, None, outages, 0), queue)
}

fn pipe(limit: BufferLimit, coalesce: Nanos) -> Pipe<()> {
    let link = link(limit, &[]);
    let mut pipe = Pipe::new(Bottleneck::new(None, None, Some(link)), None, coalesce);
    pipe.add_flow(Nanos::from_ms(10));
    pipe.set_nic(0, 0, 0);
    pipe.add_flow(Nanos::from_ms(3));
    pipe.set_nic(1, 1, 1);
    pipe
}

/// Does everything that is due at that time or before.
fn advance(pipe: &mut Pipe<()>, now_ns: u64, log: &mut Log) {
    while pipe.next().at_ns() <= now_ns && pipe.next().at_ns() != NEVER {
        pipe.step(log);
    }
}

#[test]
fn packets_leave_at_the_rate_however_late_the_caller_is() {
    let mut pipe = pipe(BufferLimit::Unlimited, Nanos::ZERO);
    let mut log = Log::default();
    for handle in 0..100 {
        pipe.enter(5_000, Train::of(packet(handle, 0, 1_500)), &mut log);
    }
    // One late call does it all.
    advance(&mut pipe, 1_000_000_000, &mut log);
    for (n, &(handle, at_ns)) in log.left.iter().enumerate() {
        assert_eq!(handle, n as u32);
        assert_eq!(at_ns, 5_000 + (n as u64 + 1) * 1_000_000);
    }
    assert_eq!(log.arrived.last(), Some(&(0, 5_000 + 110_000_000, 99)));
}

#[test]
fn interrupts_keep_their_distance_and_take_all_that_came_meanwhile() {
    let mut pipe = pipe(BufferLimit::Unlimited, Nanos::from_us(4_500));
    let mut log = Log::default();
    for handle in 0..8 {
        pipe.enter(0, Train::of(packet(handle, 1, 1_500)), &mut log);
    }
    advance(&mut pipe, u64::MAX - 1, &mut log);
    let times: Vec<u64> = log
        .arrived
        .iter()
        .map(|&(_, at_ns, _)| at_ns / 100_000)
        .collect();
    // The first at once (1 ms + 3 ms), then every 4.5 ms.
    assert_eq!(times, [40, 85, 85, 85, 85, 130, 130, 130]);
}

#[test]
fn what_goes_to_several_hosts_is_announced_and_announced_again_when_it_is_next() {
    let mut pipe = Pipe::new(Bottleneck::new(None, None, None), None, Nanos::ZERO);
    for flow in 0..2 {
        pipe.add_flow(Nanos::from_ms(1));
        pipe.set_nic(flow, flow, flow);
    }
    let mut log = Log::default();
    for handle in 0..6 {
        let packet = packet(handle, handle % 2, 1_500);
        pipe.enter(u64::from(handle) * 10_000, Train::of(packet), &mut log);
    }
    advance(&mut pipe, NEVER - 1, &mut log);
    let of = |is_next: bool| {
        let announced = log
            .announced
            .iter()
            .filter(move |(_, next)| *next == is_next);
        announced.map(|&(handle, _)| handle).collect::<Vec<_>>()
    };
    assert_eq!((of(false), of(true)), (vec![3, 4, 5], vec![1, 2, 3, 4, 5]));
    assert_eq!(log.arrived.len(), 6);
}

#[test]
fn flows_that_end_at_one_host_share_its_interrupts() {
    let arrived = |nics: [u32; 2]| {
        let bottleneck = Bottleneck::new(None, None, None);
        let mut pipe = Pipe::new(bottleneck, None, Nanos::from_us(100));
        for (flow, nic) in (0..).zip(nics) {
            pipe.add_flow(Nanos::from_ms(1));
            pipe.set_nic(flow, nic, nic);
        }
        let mut log = Log::default();
        for (handle, flow) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
            pipe.enter(
                u64::from(handle) * 10_000,
                Train::of(packet(handle, flow, 1_500)),
                &mut log,
            );
        }
        advance(&mut pipe, NEVER - 1, &mut log);
        let us = |&(flow, at_ns, handle): &(u32, u64, u32)| (flow, at_ns / 1_000, handle);
        log.arrived.iter().map(us).collect::<Vec<_>>()
    };
    // Each host's first packet interrupts at once, the rest waits for 100 us.
    assert_eq!(
        arrived([0, 1]),
        [(0, 1_000, 0), (1, 1_010, 1), (0, 1_100, 2), (1, 1_110, 3)]
    );
    assert_eq!(
        arrived([0, 0]),
        [(0, 1_000, 0), (1, 1_100, 1), (0, 1_100, 2), (1, 1_100, 3)]
    );
}

#[test]
fn a_policer_drops_before_the_queue_and_counts_as_it() {
    let rate = Rate::from_bits_per_sec(12_000_000).unwrap();
    let policer = Policer::new(PolicerSpec {
        rate,
        burst_bytes: 3_000,
        action: Action::Drop,
    });
    for limited in [true, false] {
        let link = limited.then(|| link(BufferLimit::Unlimited, &[]));
        let bottleneck = Bottleneck::new(None, Some(policer.clone()), link);
        let mut pipe = Pipe::new(bottleneck, None, Nanos::ZERO);
        pipe.add_flow(Nanos::ZERO);
        pipe.set_nic(0, 0, 0);
        let mut log = Log::default();
        for handle in 0..5 {
            pipe.enter(0, Train::of(packet(handle, 0, 1_500)), &mut log);
        }
        advance(&mut pipe, 1_000_000_000, &mut log);
        assert_eq!((log.left.len(), log.dropped), (2, 3));
        assert_eq!(pipe.bottleneck.counters.dropped_pkts, 3);
    }
}

/// As [`pipe`], with a transit behind the bottleneck.
fn uneven(limit: BufferLimit, impairments: &Impairments) -> Pipe<()> {
    let mut pipe = pipe(limit, Nanos::ZERO);
    let draws = |spec: &ImpairmentSpec| Stream::new(1, spec.kind.name);
    pipe.transit = Transit::build(impairments.iter(), draws, 0);
    pipe
}

#[test]
fn bursts_arrive_at_multiples_of_the_interval_and_a_delay() {
    let time = Value::Time(Nanos::from_ms(4));
    let spec = ImpairmentSpec::new(find("aggregate").unwrap(), &[("aggregate", time)]);
    let mut pipe = uneven(BufferLimit::Unlimited, &Impairments::NONE.with(spec));
    let mut log = Log::default();
    for handle in 0..8 {
        pipe.enter(0, Train::of(packet(handle, 0, 1_500)), &mut log);
    }
    advance(&mut pipe, u64::MAX - 1, &mut log);
    let times = log.arrived.iter().map(|&(_, at_ns, _)| at_ns / 1_000_000);
    // They leave the bottleneck at 1 … 8 ms and take 10 ms from 4 or 8 ms on.
    assert_eq!(times.collect::<Vec<_>>(), [14, 14, 14, 14, 18, 18, 18, 18]);
}

#[test]
fn outage_stops_the_bottleneck_and_moves_what_comes_behind() {
    let outage = Outage {
        start: Nanos::from_ms(2),
        length: Nanos::from_ms(5),
    };
    let link = link(BufferLimit::Unlimited, &[outage]);
    let mut pipe = Pipe::new(Bottleneck::new(None, None, Some(link)), None, Nanos::ZERO);
    pipe.add_flow(Nanos::from_ms(10));
    pipe.set_nic(0, 0, 0);
    let mut log = Log::default();
    for handle in 0..4 {
        pipe.enter(500_000, Train::of(packet(handle, 0, 1_500)), &mut log);
    }
    advance(&mut pipe, u64::MAX - 1, &mut log);
    let left: Vec<u64> = log.left.iter().map(|&(_, at_ns)| at_ns / 100_000).collect();
    assert_eq!(left, [15, 75, 85, 95]);
}

#[test]
fn shorter_route_overtakes_what_is_under_way() {
    let mut pipe = pipe(BufferLimit::Unlimited, Nanos::ZERO);
    let mut log = Log::default();
    pipe.enter(0, Train::of(packet(0, 0, 1_500)), &mut log);
    advance(&mut pipe, 2_000_000, &mut log);
    pipe.set_delay(0, Nanos::from_ms(3));
    pipe.enter(2_000_000, Train::of(packet(1, 0, 1_500)), &mut log);
    advance(&mut pipe, u64::MAX - 1, &mut log);
    assert_eq!(log.arrived, [(0, 6_000_000, 1), (0, 11_000_000, 0)]);
}

/// Takes every packet.
struct Gone;

impl Impairment for Gone {
    fn act(&mut self, passage: &mut Passage) {
        passage.copies = 0;
    }
}

#[test]
fn packet_that_an_impairment_takes_is_lost_behind_the_bottleneck() {
    static GONE: ImpairmentKind = ImpairmentKind {
        name: "gone",
        summary: "every packet is lost",
        source: "this test",
        keys: &[Key {
            name: "gone",
            form: Form::Flag,
            default: Value::Flag(false),
            example: Value::Flag(true),
            doc: "",
            source: "",
        }],
        stage: Stage::Arrival,
        both_ways: false,
        is_random: false,
        keeps_order: |_| true,
        netem: None,
        build: |_, _| Box::new(Gone),
    };
    let impairments = Impairments::NONE.with(ImpairmentSpec::example(&GONE));
    let mut pipe = uneven(BufferLimit::Unlimited, &impairments);
    let mut log = Log::default();
    for handle in 0..5 {
        pipe.enter(0, Train::of(packet(handle, 0, 1_500)), &mut log);
    }
    advance(&mut pipe, u64::MAX - 1, &mut log);
    assert_eq!((log.left.len(), log.lost, log.arrived.len()), (5, 5, 0));
}

/// A value that a key may have, of such an order that some acts and some does not.
fn value(key: &'static Key) -> BoxedStrategy<Value> {
    match key.form {
        Form::Time(_) => (0u64..20_000)
            .prop_map(|us| Value::Time(Nanos::from_us(us)))
            .boxed(),
        Form::Share => (0.0..0.5f64).prop_map(Value::Share).boxed(),
        Form::Flag => any::<bool>().prop_map(Value::Flag).boxed(),
        Form::Word(_, words) => prop::sample::select(words()).prop_map(Value::Word).boxed(),
        Form::Outages => (0u64..50, 1u64..50)
            .prop_map(|(start, length)| {
                let outage = Outage {
                    start: Nanos::from_ms(start),
                    length: Nanos::from_ms(length),
                };
                Value::Outages(vec![outage].into())
            })
            .boxed(),
    }
}

/// Any of the registry's impairments, some of them or none.
fn impairments() -> impl Strategy<Value = Impairments> {
    let spec = |kind: &&'static ImpairmentKind| {
        let kind = *kind;
        let values: Vec<_> = kind.keys.iter().map(value).collect();
        let acts = values.prop_map(move |values| {
            let set: Vec<_> = kind.keys.iter().map(|key| key.name).zip(values).collect();
            ImpairmentSpec::new(kind, &set)
        });
        prop_oneof![Just(ImpairmentSpec::new(kind, &[])), acts]
    };
    let specs: Vec<_> = IMPAIRMENTS.iter().map(spec).collect();
    specs.prop_map(|specs| specs.into_iter().fold(Impairments::NONE, Impairments::with))
}

/// Often none, or a whole number of packets' time: much is then due at one instant.
fn gap() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        (1u64..20).prop_map(|packets| packets * 200_000),
        0u64..3_000_000,
    ]
}

fn fifo(limit: BufferLimit) -> Box<dyn Queue> {
    Box::new(Fifo::new(limit))
}

/// A queue that marks from so many packets, bytes or seconds.
fn step(limit: BufferLimit, rate: Rate, thresholds: [f64; 3]) -> Box<dyn Queue> {
    let names = ["ce_packets", "ce_bytes", "ce_threshold"];
    let set: Vec<_> = names.into_iter().zip(thresholds).collect();
    queue_of(queue::find("step").unwrap(), limit, rate, &set)
}

/// A queue with these parameters.
pub(super) fn queue_of(
    kind: &QueueKind,
    limit: BufferLimit,
    rate: Rate,
    set: &[(&'static str, f64)],
) -> Box<dyn Queue> {
    let mut params = Params::defaults(kind.params);
    for &(name, value) in set {
        params.set(name, value);
    }
    (kind.build)(Setup {
        limit,
        rate,
        max_packet_bytes: 1_500,
        rng: Stream::new(1, "path.queue"),
        params,
    })
}

proptest! {
    #[test]
    fn uneven_path_accounts_for_every_packet_and_copy(
        arrivals in prop::collection::vec((0u64..3_000_000, 0u32..2, 40u32..1_500), 1..300),
        limit_pkts in 1u32..40,
        impairments in impairments(),
    ) {
        let mut pipe = uneven(BufferLimit::Packets(limit_pkts), &impairments);
        let keeps_order = pipe.transit.as_ref().is_none_or(|transit| transit.keeps_order());
        let mut log = Log::default();
        let mut now_ns = 0;
        for (handle, &(gap_ns, flow, bytes)) in arrivals.iter().enumerate() {
            now_ns += gap_ns;
            advance(&mut pipe, now_ns, &mut log);
            pipe.enter(now_ns, Train::of(packet(handle as u32, flow, bytes)), &mut log);
        }
        advance(&mut pipe, u64::MAX - 1, &mut log);
        prop_assert_eq!(pipe.next().at_ns(), NEVER);
        prop_assert_eq!(log.arrived.len() + log.dropped + log.lost, arrivals.len() + log.copies);
        let mut seen = std::collections::HashMap::new();
        let mut last = [0; 2];
        for &(flow, at_ns, handle) in &log.arrived {
            *seen.entry(handle).or_insert(0) += 1;
            let (_, left_ns) = log.left.iter().find(|(left, _)| *left == handle).unwrap();
            prop_assert!(at_ns >= *left_ns, "it arrived before it left");
            if keeps_order {
                prop_assert!(last[flow as usize] <= handle, "out of order");
                last[flow as usize] = handle;
            }
        }
        prop_assert!(seen.values().all(|&times| times <= 2));
        prop_assert_eq!(seen.values().filter(|&&times| times == 2).count(), log.copies);
    }

    #[test]
    fn every_packet_is_accounted_for_in_order_and_never_early(
        arrivals in prop::collection::vec((0u64..3_000_000, 0u32..2, 40u32..1_500), 1..300),
        limit_pkts in 1u32..40,
        coalesce_us in 0u64..5_000,
        step_ns in 1u64..5_000_000,
    ) {
        let mut pipe = pipe(BufferLimit::Packets(limit_pkts), Nanos::from_us(coalesce_us));
        let mut log = Log::default();
        let mut now_ns = 0;
        let mut entered = Vec::new();
        for (handle, &(gap_ns, flow, bytes)) in arrivals.iter().enumerate() {
            now_ns += gap_ns;
            advance(&mut pipe, now_ns, &mut log);
            pipe.enter(now_ns, Train::of(packet(handle as u32, flow, bytes)), &mut log);
            entered.push((now_ns, flow, bytes));
        }
        while pipe.next().at_ns() != NEVER {
            now_ns = pipe.next().at_ns().max(now_ns) + step_ns;
            advance(&mut pipe, now_ns, &mut log);
        }
        prop_assert_eq!(log.arrived.len() + log.dropped + log.lost, arrivals.len());
        prop_assert_eq!(pipe.bottleneck.len_pkts(), 0);
        let mut last = [None; 2];
        for &(flow, at_ns, handle) in &log.arrived {
            let (entered_ns, entered_flow, bytes) = entered[handle as usize];
            prop_assert_eq!(flow, entered_flow);
            let delay_ns = [10_000_000, 3_000_000][flow as usize];
            let wire_ns = u64::from(bytes) * 8 * 1_000 / 12;
            prop_assert!(at_ns >= entered_ns + wire_ns + delay_ns, "early");
            prop_assert!(last[flow as usize] < Some(handle), "out of order");
            last[flow as usize] = Some(handle);
        }
    }

    #[test]
    fn foreseen_departures_are_those_of_a_link_that_takes_a_step_for_each(
        arrivals in prop::collection::vec((gap(), 0u32..2, 1u32..5, any::<bool>()), 1..300),
        limit in prop_oneof![
            (1u32..20).prop_map(BufferLimit::Packets),
            (300u64..20_000).prop_map(BufferLimit::Bytes),
            Just(BufferLimit::Unlimited),
        ],
        marks in prop::option::of((0u32..10, 0u64..10_000, 0u64..5_000)),
        policed in any::<bool>(),
        coalesce_us in 0u64..5_000,
    ) {
        let run = |foresees: bool| {
            let rate = Rate::from_bits_per_sec(12_000_000).unwrap();
            let queue = match marks {
                None => fifo(limit),
                Some((pkts, bytes, us)) => step(limit, rate, [f64::from(pkts), bytes as f64, us as f64 / 1e6]),
            };
            let policer = policed.then(|| Policer::new(PolicerSpec {
                rate: Rate::from_bits_per_sec(9_000_000).unwrap(),
                burst_bytes: 6_000,
                action: Action::Mark,
            }));
            let link = Link::new(Schedule::new(rate, None, &[], 0), queue);
            let bottleneck = Bottleneck::new(None, policer, Some(link));
            let mut pipe = Pipe::new(bottleneck, None, Nanos::from_us(coalesce_us));
            pipe.add_flow(Nanos::from_ms(10));
        pipe.set_nic(0, 0, 0);
            pipe.add_flow(Nanos::from_ms(3));
        pipe.set_nic(1, 1, 1);
            if foresees {
                pipe.foresee();
            }
            let (mut log, mut rows, mut now_ns) = (Log::default(), Vec::new(), 0);
            for (handle, &(gap_ns, flow, hundreds, ect)) in arrivals.iter().enumerate() {
                now_ns += gap_ns;
                advance(&mut pipe, now_ns, &mut log);
                let packet = packet(handle as u32, flow, 300 * hundreds);
                let ecn = if ect { Ecn::Ect0 } else { Ecn::NotEct };
                pipe.enter(now_ns, Train::of(Packet { ecn, ..packet }), &mut log);
                if handle % 7 == 0 {
                    pipe.settle(now_ns, &mut log);
                    rows.push(pipe.bottleneck.sample(now_ns));
                }
            }
            advance(&mut pipe, now_ns + 4_000_000, &mut log);
            pipe.settle(now_ns + 4_000_000, &mut log);
            (log.left, log.marked, log.waited, log.dropped, log.arrived, format!("{rows:?}"))
        };
        let (foreseen, stepped) = (run(true), run(false));
        prop_assert_eq!(&foreseen.0[..stepped.0.len()], &stepped.0[..]);
        prop_assert_eq!(&foreseen.1[..stepped.1.len()], &stepped.1[..]);
        prop_assert_eq!((foreseen.2, foreseen.3, foreseen.4, foreseen.5), (stepped.2, stepped.3, stepped.4, stepped.5));
    }
}
