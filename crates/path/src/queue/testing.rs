//! What the queues' tests share: a link behind a queue, and senders that react.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use knee_units::params::Params;
use knee_units::rng::Stream;
use knee_units::{Nanos, Rate};

use super::{Queue, QueueKind, Setup};
use crate::bottleneck;
use crate::packet::{Ecn, Packet};
use crate::queue::BufferLimit;
use crate::trace::Schedule;

pub const MTU: u32 = 1_500;

pub fn setup(kind: &QueueKind, limit: BufferLimit, rate: Rate, changed: &[(&str, f64)]) -> Setup {
    let mut params = Params::defaults(kind.params);
    for (name, value) in changed {
        params.set(name, *value);
    }
    Setup {
        limit,
        rate,
        max_packet_bytes: MTU,
        rng: Stream::new(11, "path.queue"),
        params,
    }
}

pub fn mbit(mbit: u64) -> Rate {
    Rate::from_bits_per_sec(mbit * 1_000_000).unwrap()
}

/// A full packet that does not understand ECN.
pub fn packet(flow: u32) -> Packet {
    Packet {
        handle: 0,
        bytes: MTU,
        flow,
        hosts: [0; 2],
        ecn: Ecn::NotEct,
        dscp: 0,
        pure_ack: None,
        enqueued: Nanos::ZERO,
    }
}

/// A packet that the link took.
#[derive(Clone, Copy)]
pub struct Sent {
    pub at: Nanos,
    pub waited: Nanos,
    pub packet: Packet,
}

/// A queue and the link behind it, with what became of its packets.
pub struct Link<Q: Queue + ?Sized = dyn Queue> {
    link: bottleneck::Link<Q>,
    pub sent: Vec<Sent>,
    pub dropped: Vec<(Nanos, Packet)>,
    scratch: Vec<Packet>,
}

impl<Q: Queue + ?Sized> Link<Q> {
    pub fn new(rate: Rate, queue: Box<Q>) -> Link<Q> {
        Link {
            link: bottleneck::Link::new(Schedule::new(rate, None, &[], 0), queue),
            sent: Vec::new(),
            dropped: Vec::new(),
            scratch: Vec::new(),
        }
    }

    pub fn queue(&mut self) -> &mut Q {
        &mut self.link.queue
    }

    /// A packet comes; what left the link before is done first.
    pub fn offer(&mut self, now: Nanos, packet: Packet) {
        self.run_until(now);
        let was_sending = self.link.sending().is_some();
        self.link.enter(now.0, packet, &mut self.scratch);
        self.note(now, !was_sending);
    }

    pub fn run_until(&mut self, now: Nanos) {
        while let Some(at) = self.next().filter(|&at| at <= now) {
            self.step(at);
        }
    }

    /// Lets everything out that waits.
    pub fn drain(&mut self) {
        while let Some(at) = self.next() {
            self.step(at);
        }
    }

    fn next(&self) -> Option<Nanos> {
        self.link.next_ns().map(Nanos)
    }

    fn step(&mut self, at: Nanos) {
        self.link.send_next(at.0, &mut self.scratch);
        self.note(at, true);
    }

    fn note(&mut self, now: Nanos, sets_out: bool) {
        self.note_drops(now);
        if let Some((&packet, waited)) = self.link.sending().filter(|_| sets_out) {
            self.sent.push(Sent {
                at: now,
                waited,
                packet,
            });
        }
    }

    fn note_drops(&mut self, now: Nanos) {
        let drops = self.scratch.drain(..).map(|packet| (now, packet));
        self.dropped.extend(drops);
    }

    /// Offers full packets of one flow at a rate that does not react.
    pub fn offer_constant(&mut self, from: Nanos, to: Nanos, rate: Rate, mut packet: Packet) {
        let gap = rate.transmit_time(u64::from(packet.bytes));
        let mut now = from;
        while now < to {
            packet.handle += 1;
            self.offer(now, packet);
            now += gap;
        }
    }

    /// Lets `flows` senders with Reno's window rules (slow start, one segment
    /// per round trip, half upon a loss or a mark, at most once per round trip)
    /// send from `from` to `to`.
    pub fn run_reno(&mut self, flows: u32, rtt: Nanos, from: Nanos, to: Nanos, ecn: Ecn) {
        #[derive(Clone)]
        struct Sender {
            cwnd: f64,
            ssthresh: f64,
            inflight: u32,
            reduced: Nanos,
        }
        let mut senders = vec![
            Sender {
                cwnd: 10.0,
                ssthresh: f64::MAX,
                inflight: 0,
                reduced: from,
            };
            flows as usize
        ];
        // (when, flow, congested?); flows start 1 ms apart.
        let mut acks = BinaryHeap::new();
        let start = |flow| from + Nanos::from_ms(1) * u64::from(flow);
        let mut waiting: Vec<_> = (0..flows).map(|flow| (start(flow), flow)).collect();
        waiting.reverse();
        let (mut seen_sent, mut seen_dropped) = (self.sent.len(), self.dropped.len());
        let mut now = from;
        while now < to {
            let next_ack = acks
                .peek()
                .map(|Reverse((at, ..)): &Reverse<(Nanos, u32, bool)>| *at);
            let next_start = waiting.last().map(|(at, _)| *at);
            now = [next_ack, next_start, self.next()]
                .into_iter()
                .flatten()
                .min()
                .expect("a window always has a packet on its way");
            self.run_until(now);
            let flow = if next_start == Some(now) {
                waiting.pop().map(|(_, flow)| flow)
            } else if next_ack == Some(now) {
                acks.pop().map(|Reverse((_, flow, congested))| {
                    let sender = &mut senders[flow as usize];
                    sender.inflight -= 1;
                    if !congested {
                        let slow_start = sender.cwnd < sender.ssthresh;
                        sender.cwnd += if slow_start { 1.0 } else { 1.0 / sender.cwnd };
                    } else if now.saturating_sub(sender.reduced) > rtt {
                        sender.cwnd = (sender.cwnd / 2.0).max(2.0);
                        sender.ssthresh = sender.cwnd;
                        sender.reduced = now;
                    }
                    flow
                })
            } else {
                None
            };
            if let Some(flow) = flow {
                let sender = &mut senders[flow as usize];
                while f64::from(sender.inflight) < sender.cwnd.floor() {
                    sender.inflight += 1;
                    self.offer(
                        now,
                        Packet {
                            ecn,
                            ..packet(flow)
                        },
                    );
                }
            }
            for sent in &self.sent[seen_sent..] {
                let ce = sent.packet.ecn == Ecn::Ce;
                acks.push(Reverse((sent.at + rtt, sent.packet.flow, ce)));
            }
            for (at, packet) in &self.dropped[seen_dropped..] {
                acks.push(Reverse((*at + rtt, packet.flow, true)));
            }
            (seen_sent, seen_dropped) = (self.sent.len(), self.dropped.len());
        }
    }

    /// Mean wait of what was sent in that time.
    pub fn mean_wait(&self, from: Nanos, to: Nanos) -> Nanos {
        let sent = self.sent_between(from, to);
        let total: u64 = sent.clone().map(|sent| sent.waited.0).sum();
        Nanos(total / sent.count().max(1) as u64)
    }

    pub fn sent_between(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = &Sent> + Clone {
        self.sent
            .iter()
            .filter(move |sent| from <= sent.at && sent.at < to)
    }
}
