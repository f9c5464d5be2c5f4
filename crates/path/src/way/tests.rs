//! Hops in a row, on made-up times.

use knee_units::Rate;
use knee_units::params::Params;

use super::*;
use crate::impairment::Impairments;
use crate::loss::LossSpec;
use crate::packet::Ecn;
use crate::queue::BufferLimit;
use crate::{AckLink, Backend, RttChange};

#[derive(Default)]
struct Log {
    dropped: Vec<u32>,
    /// When packets left their last pipe, and how long they had waited.
    waited: Vec<(u64, Nanos)>,
    /// Handle, time, and whether it measures the direction's rate.
    arrived: Vec<(u32, u64, bool)>,
}

impl Sink for Log {
    type Note = bool;
    fn lost(&mut self, _packet: &Packet) {
        panic!("no pipe loses");
    }
    fn dropped(&mut self, packet: &Packet) {
        self.dropped.push(packet.handle);
    }
    fn cut(&mut self, _handle: u32, _pkts: u32) -> u32 {
        panic!("packets come one by one");
    }
    fn left(&mut self, _packet: &Packet, departure: &Departure) -> bool {
        departure.period.is_some()
    }
    fn waited(&mut self, _flow: u32, waits: impl Iterator<Item = (u64, Nanos)>) {
        self.waited.extend(waits);
    }
    fn copy(&mut self, _packet: &Packet, _note: bool) -> (u32, bool) {
        panic!("no pipe copies");
    }
    fn arrived(&mut self, at_ns: u64, packets: &[Passing<bool>]) {
        let entries = packets.iter();
        self.arrived
            .extend(entries.map(|passing| (passing.handle, at_ns, passing.note)));
    }
}

const MS: u64 = 1_000_000;

/// A hop whose link takes `ms` for 1500 bytes and whose queue holds `packets`.
fn hop(ms: u64, rtt_ms: u64, packets: u32) -> Path {
    Path {
        rate: Rate::from_bits_per_sec(12_000_000 / ms),
        rate_trace: None,
        rtt: Nanos::from_ms(rtt_ms),
        rtt_changes: Vec::new(),
        impairments: Impairments::NONE,
        ack: AckLink::open(),
        loss: LossSpec::NONE,
        ack_loss: LossSpec::NONE,
        buffer: BufferLimit::Packets(packets),
        queue: "fifo",
        queue_params: Params::defaults(&[]),
        policer: None,
        mtu_bytes: 1_500,
        overhead_bytes: 0,
        backend: Backend::Auto,
        keep_super_packets: false,
    }
}

/// The data's way over these hops.
fn way(hops: &[Path]) -> Way<bool> {
    let stream = |component: &str| Stream::new(1, component);
    Way::new(hops.iter(), Direction::Forward, stream, 0, Nanos::ZERO)
}

fn packet(handle: u32, flow: u32) -> Packet {
    Packet {
        handle,
        bytes: 1_500,
        flow,
        hosts: [0; 2],
        ecn: Ecn::NotEct,
        dscp: 0,
        pure_ack: None,
        enqueued: Nanos::ZERO,
    }
}

/// 1 ms and 3 ms per packet, 10 ms and 20 ms behind. Flow 0 takes both hops,
/// flow 1 the first, flow 2 the second.
fn two_hops() -> Way<bool> {
    let mut way = way(&[hop(1, 20, 100), hop(3, 40, 2)]);
    way.add_flow(0..2, Nanos::from_ms(60));
    way.set_nic(0, 0, 0);
    way.add_flow(0..1, Nanos::from_ms(20));
    way.set_nic(1, 1, 1);
    way.add_flow(1..2, Nanos::from_ms(40));
    way.set_nic(2, 2, 2);
    way
}

#[test]
fn packets_take_the_time_of_every_pipe_and_tell_all_their_waits_at_the_last() {
    let (mut way, mut log) = (two_hops(), Log::default());
    way.enter(0, Train::of(packet(0, 0)), &mut log);
    way.enter(0, Train::of(packet(1, 0)), &mut log);
    // One late call does it all.
    way.advance(1_000 * MS, &mut log);
    // They leave the first pipe at 1 and 2 ms and reach the second at 11 and 12;
    // there the second one waits until 14 ms.
    let waits = [Nanos::ZERO, Nanos::from_ms(1 + 2)];
    assert_eq!(log.waited, [(14 * MS, waits[0]), (17 * MS, waits[1])]);
    assert_eq!(log.arrived, [(0, 34 * MS, true), (1, 37 * MS, true)]);
}

#[test]
fn flows_enter_and_leave_at_their_own_pipes() {
    let (mut way, mut log) = (two_hops(), Log::default());
    way.enter(0, Train::of(packet(0, 1)), &mut log);
    way.enter(0, Train::of(packet(1, 2)), &mut log);
    way.advance(1_000 * MS, &mut log);
    // What leaves before the last pipe is no measure of the direction's rate.
    assert_eq!(log.arrived, [(0, 11 * MS, false), (1, 23 * MS, true)]);
}

#[test]
fn queue_that_is_full_is_that_of_the_slower_pipe() {
    let (mut way, mut log) = (two_hops(), Log::default());
    for handle in 0..10 {
        way.enter(0, Train::of(packet(handle, 0)), &mut log);
    }
    way.advance(1_000 * MS, &mut log);
    // Three times as many come as leave; two wait and one is on the wire.
    assert_eq!(way.pipes[0].bottleneck.counters.dropped_pkts, 0);
    assert_eq!(
        way.pipes[1].bottleneck.counters.dropped_pkts,
        log.dropped.len() as u64
    );
    assert_eq!(log.dropped.len() + log.arrived.len(), 10);
    assert!(log.dropped.len() >= 4, "{:?}", log.dropped);
}

#[test]
fn each_pipe_counts_its_own_overhead() {
    let second = Path {
        overhead_bytes: 1_500,
        ..hop(1, 0, 100)
    };
    let mut way = way(&[hop(1, 0, 100), second]);
    way.add_flow(0..2, Nanos::ZERO);
    way.set_nic(0, 0, 0);
    let mut log = Log::default();
    way.enter(0, Train::of(packet(0, 0)), &mut log);
    way.advance(1_000 * MS, &mut log);
    assert_eq!(log.arrived, [(0, 3 * MS, true)]);
}

#[test]
fn route_changes_for_what_leaves_a_hop_from_then_on() {
    let changing = Path {
        rtt_changes: vec![RttChange {
            at: Nanos::from_ms(2),
            rtt: Nanos::from_ms(50),
        }],
        ..hop(1, 20, 100)
    };
    let (mut way, mut log) = (way(&[changing]), Log::default());
    way.add_flow(0..1, Nanos::from_ms(20));
    way.set_nic(0, 0, 0);
    for handle in 0..3 {
        way.enter(0, Train::of(packet(handle, 0)), &mut log);
    }
    way.advance(1_000 * MS, &mut log);
    // They leave at 1, 2 and 3 ms; half the round trip is before them.
    let arrived: Vec<u64> = log
        .arrived
        .iter()
        .map(|&(_, at_ns, _)| at_ns / MS)
        .collect();
    assert_eq!(arrived, [11, 27, 28]);
}
