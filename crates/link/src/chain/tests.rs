//! Pipes in a row, on made-up times.

use knee_path::bottleneck::{Bottleneck, Link};
use knee_path::packet::Ecn;
use knee_path::queue::BufferLimit;
use knee_path::queue::Fifo;
use knee_path::trace::Schedule;
use knee_units::Rate;

use super::*;

#[derive(Default)]
struct Log {
    dropped: Vec<u32>,
    left: Vec<(u32, u64, Nanos)>,
    arrived: Vec<(u32, u64, bool)>,
}

impl Sink for Log {
    fn lost(&mut self, _packet: Packet) {
        panic!("no pipe loses");
    }
    fn dropped(&mut self, packet: Packet) {
        self.dropped.push(packet.handle);
    }
    fn left(&mut self, packet: &Packet, at_ns: u64, waited: Nanos) {
        self.left.push((packet.handle, at_ns, waited));
    }
    fn copy(&mut self, _handle: u32) -> u32 {
        panic!("no pipe copies");
    }
    fn arrived(&mut self, _flow: u32, at_ns: u64, packets: &[Passing]) {
        let entries = packets.iter();
        self.arrived
            .extend(entries.map(|passing| (passing.handle, at_ns, passing.left.is_some())));
    }
}

const MS: u64 = 1_000_000;

/// A pipe in which 1500 bytes take so many ms, with a queue of so many packets.
fn pipe(ms: u64, packets: u32) -> Pipe {
    let rate = Rate::from_bits_per_sec(12_000_000 / ms).expect("not zero");
    let queue = Box::new(Fifo::new(BufferLimit::Packets(packets)));
    let link = Link::new(Schedule::new(rate, None, &[], 0), queue as _);
    Pipe::new(Bottleneck::new(None, None, Some(link)), None, Nanos::ZERO)
}

fn packet(handle: u32, flow: u32) -> Packet {
    Packet {
        handle,
        bytes: 1_500,
        flow,
        host: 0,
        ecn: Ecn::NotEct,
        dscp: 0,
        pure_ack: None,
        enqueued: Nanos::ZERO,
    }
}

/// 1 ms and 3 ms per packet, 10 ms and 20 ms behind. Flow 0 takes both pipes,
/// flow 1 the first, flow 2 the second.
fn chain() -> Chain {
    let mut chain = Chain::new(vec![pipe(1, 100), pipe(3, 2)], vec![0, 0]);
    let delays = [Nanos::from_ms(10), Nanos::from_ms(20)];
    for stretch in [0..=1, 0..=0, 1..=1] {
        chain.add_flow(stretch, &delays);
    }
    chain
}

#[test]
fn packets_take_the_time_of_every_pipe_and_tell_all_their_waits_at_the_last() {
    let (mut chain, mut log) = (chain(), Log::default());
    chain.enter(0, packet(0, 0), &mut log);
    chain.enter(0, packet(1, 0), &mut log);
    // One late call does it all.
    chain.advance(1_000 * MS, &mut log);
    // They leave the first pipe at 1 and 2 ms and reach the second at 11 and 12;
    // there the second one waits until 14 ms.
    let waits = [Nanos::ZERO, Nanos::from_ms(1 + 2)];
    assert_eq!(log.left, [(0, 14 * MS, waits[0]), (1, 17 * MS, waits[1])]);
    assert_eq!(log.arrived, [(0, 34 * MS, true), (1, 37 * MS, true)]);
}

#[test]
fn flows_enter_and_leave_at_their_own_pipes() {
    let (mut chain, mut log) = (chain(), Log::default());
    chain.enter(0, packet(0, 1), &mut log);
    chain.enter(0, packet(1, 2), &mut log);
    chain.advance(1_000 * MS, &mut log);
    // What leaves before the last pipe is no measure of the direction's rate.
    assert_eq!(log.arrived, [(0, 11 * MS, false), (1, 23 * MS, true)]);
}

#[test]
fn queue_that_is_full_is_that_of_the_slower_pipe() {
    let (mut chain, mut log) = (chain(), Log::default());
    for handle in 0..10 {
        chain.enter(0, packet(handle, 0), &mut log);
    }
    chain.advance(1_000 * MS, &mut log);
    // Three times as many come as leave; two wait and one is on the wire.
    assert_eq!(chain.pipes[0].bottleneck.counters.dropped_pkts, 0);
    assert_eq!(
        chain.pipes[1].bottleneck.counters.dropped_pkts,
        log.dropped.len() as u64
    );
    assert_eq!(log.dropped.len() + log.arrived.len(), 10);
    assert!(log.dropped.len() >= 4, "{:?}", log.dropped);
}

#[test]
fn each_pipe_counts_its_own_overhead() {
    let mut chain = Chain::new(vec![pipe(1, 100), pipe(1, 100)], vec![0, 1_500]);
    chain.add_flow(0..=1, &[Nanos::ZERO; 2]);
    let mut log = Log::default();
    chain.enter(0, packet(0, 0), &mut log);
    chain.advance(1_000 * MS, &mut log);
    assert_eq!(log.arrived, [(0, 3 * MS, true)]);
}
