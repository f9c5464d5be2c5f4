//! The path by events: bottlenecks and delay lines. They hold their own packets,
//! and of each at most the next event is in the event queue.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};

use knee_path::bottleneck::{self, Due, Entry};
use knee_path::packet::Packet;
use knee_units::NEVER;
use knee_units::Nanos;

use crate::event::{EndpointId, EventQueue, Target};

/// Where packets come to when they have taken their delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// The host that they are for.
    Host,
    /// Another hop of the path.
    Hop(u32),
}

/// Packets in order of arrival: all take the same time, or none overtakes another.
struct DelayLine {
    delay_ns: u64,
    next: Next,
    packets: VecDeque<(u64, EndpointId, u32)>,
    /// When the last one arrives that did not take that time.
    latest_ns: u64,
}

/// Delay lines, one per distinct delay, kind and end, and packets that keep no order.
#[derive(Default)]
pub struct Delays {
    lines: Vec<DelayLine>,
    by_delay: BTreeMap<(u64, u32, Next), u32>,
    /// Each with an event of its own, which names its place here.
    loose: Vec<Option<(EndpointId, u32, Next)>>,
    free: Vec<u32>,
}

impl Delays {
    /// The line with this delay and end; lines of another `kind` share none with it.
    pub fn line(&mut self, delay: Nanos, kind: u32, next: Next) -> u32 {
        *self
            .by_delay
            .entry((delay.0, kind, next))
            .or_insert_with(|| {
                self.lines.push(DelayLine {
                    delay_ns: delay.0,
                    next,
                    packets: VecDeque::new(),
                    latest_ns: 0,
                });
                (self.lines.len() - 1) as u32
            })
    }

    #[inline]
    pub fn push(
        &mut self,
        events: &mut EventQueue,
        now_ns: u64,
        line: u32,
        to: EndpointId,
        handle: u32,
    ) {
        let DelayLine {
            delay_ns, packets, ..
        } = &mut self.lines[line as usize];
        let at_ns = now_ns + *delay_ns;
        if packets.is_empty() {
            events.push(at_ns, Target::Delay(line));
        }
        packets.push_back((at_ns, to, handle));
    }

    /// The line's delay.
    pub fn delay_ns(&self, line: u32) -> u64 {
        self.lines[line as usize].delay_ns
    }

    /// Where the line ends.
    #[inline]
    pub fn next(&self, line: u32) -> Next {
        self.lines[line as usize].next
    }

    /// Puts a packet at the line's end that arrives at `at_ns`, but not before those ahead of it.
    pub fn push_at(
        &mut self,
        events: &mut EventQueue,
        at_ns: u64,
        line: u32,
        to: EndpointId,
        handle: u32,
    ) {
        let DelayLine {
            packets, latest_ns, ..
        } = &mut self.lines[line as usize];
        *latest_ns = at_ns.max(*latest_ns);
        if packets.is_empty() {
            events.push(*latest_ns, Target::Delay(line));
        }
        packets.push_back((*latest_ns, to, handle));
    }

    /// A packet of this line that arrives at `at_ns` whatever is ahead of it.
    pub fn push_loose(
        &mut self,
        events: &mut EventQueue,
        at_ns: u64,
        line: u32,
        to: EndpointId,
        handle: u32,
    ) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.loose.push(None);
            (self.loose.len() - 1) as u32
        });
        self.loose[place as usize] = Some((to, handle, self.next(line)));
        events.push(at_ns, Target::Loose(place));
    }

    /// Takes the packet that keeps no order.
    pub fn take_loose(&mut self, place: u32) -> (EndpointId, u32, Next) {
        self.free.push(place);
        self.loose[place as usize]
            .take()
            .expect("a place wakes for a packet")
    }

    /// Takes the oldest packet of a line; the caller arms the line again.
    #[inline]
    pub fn pop(&mut self, line: u32) -> (EndpointId, u32) {
        let packets = &mut self.lines[line as usize].packets;
        let (_, to, handle) = packets
            .pop_front()
            .expect("a delay line wakes for a packet");
        (to, handle)
    }

    /// When the line's oldest packet arrives, and where.
    #[inline]
    pub fn head(&self, line: u32) -> Option<(u64, EndpointId)> {
        self.lines[line as usize]
            .packets
            .front()
            .map(|&(at_ns, to, _)| (at_ns, to))
    }

    /// Everything under way.
    pub fn handles(&self) -> impl Iterator<Item = (EndpointId, u32)> + '_ {
        let in_order = self
            .lines
            .iter()
            .flat_map(|line| line.packets.iter().map(|&(_, to, handle)| (to, handle)));
        let loose = self.loose.iter().flatten();
        in_order.chain(loose.map(|&(to, handle, _)| (to, handle)))
    }
}

/// The bottleneck of a direction, and what wakes it.
pub struct Bottleneck {
    target: Target,
    inner: bottleneck::Bottleneck,
    /// The queue that holds its packets back is asked again then: that event is there.
    retry_ns: u64,
}

impl Bottleneck {
    pub fn new(target: Target, inner: bottleneck::Bottleneck) -> Bottleneck {
        Bottleneck {
            target,
            inner,
            retry_ns: NEVER,
        }
    }

    /// Offers a packet. Packets that the queue drops are found by [`bottleneck::Bottleneck::take_dropped`].
    #[inline]
    pub fn enter(&mut self, events: &mut EventQueue, now_ns: u64, packet: Packet) -> Entry {
        let (target, retry_ns) = (self.target, &mut self.retry_ns);
        self.inner
            .enter(now_ns, packet, |due| arm(events, target, retry_ns, due))
    }

    /// The packet whose last bit leaves now, if there is one; starts the next.
    #[inline]
    pub fn wake(&mut self, events: &mut EventQueue, now_ns: u64) -> Option<Packet> {
        if self.inner.is_sending() && self.inner.next_ns() != Some(now_ns) {
            // Asked to look at the queue again, and a packet came meanwhile.
            return None;
        }
        let (target, retry_ns) = (self.target, &mut self.retry_ns);
        self.inner
            .step(now_ns, |due| arm(events, target, retry_ns, due))
    }
}

#[inline]
fn arm(events: &mut EventQueue, target: Target, retry_ns: &mut u64, due: Due) {
    match due {
        Due::Sent(at_ns) => events.push(at_ns, target),
        Due::Retry(at_ns) => {
            if at_ns != *retry_ns && at_ns != NEVER {
                events.push(at_ns, target);
            }
            *retry_ns = at_ns;
        }
    }
}

impl Deref for Bottleneck {
    type Target = bottleneck::Bottleneck;

    fn deref(&self) -> &bottleneck::Bottleneck {
        &self.inner
    }
}

impl DerefMut for Bottleneck {
    fn deref_mut(&mut self) -> &mut bottleneck::Bottleneck {
        &mut self.inner
    }
}
