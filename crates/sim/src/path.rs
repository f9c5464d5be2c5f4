//! The path: loss, bottleneck queue and link, delay lines. It holds its own
//! packets, and of each part at most the next event is in the event queue.

use std::collections::{BTreeMap, VecDeque};

use knee_model::loss::Loss;
use knee_model::packet::{Ecn, Packet};
use knee_model::queue::Queue;
use knee_model::queue::policer::Policer;
use knee_model::scenario::Link as ModelLink;
use knee_model::trace::Schedule;
use knee_model::units::Nanos;

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

/// Counters of the bottleneck, as the `queue` table has them.
#[derive(Clone, Debug, Default)]
pub struct LinkCounters {
    pub sent_pkts: u64,
    pub sent_bytes: u64,
    pub dropped_pkts: u64,
    pub marked_pkts: u64,
    pub lost_pkts: u64,
    /// Most bytes waiting since it was last read.
    pub max_bytes: u64,
}

/// The bottleneck of a direction.
pub struct Bottleneck {
    /// What wakes it.
    target: Target,
    loss: Option<Box<dyn Loss>>,
    policer: Option<Policer>,
    /// `None`: unlimited.
    link: Option<Link>,
    pub counters: LinkCounters,
    dropped: Vec<Packet>,
}

/// A limited rate and the queue before it.
struct Link {
    schedule: Schedule,
    queue: Box<dyn Queue>,
    /// The packet on the wire and when its last bit leaves.
    sending: Option<(u64, Packet)>,
    /// When the queue is asked again that holds its packets back.
    retry_ns: Option<u64>,
}

/// What became of a packet offered to the bottleneck.
pub enum Entry {
    /// Waits, is being sent, or was dropped.
    Taken,
    /// The link is unlimited: it is through already, marked perhaps.
    Through(Ecn),
    /// Lost before the queue.
    Lost,
}

impl Bottleneck {
    pub fn new(
        target: Target,
        loss: Option<Box<dyn Loss>>,
        policer: Option<Policer>,
        link: Option<ModelLink>,
    ) -> Bottleneck {
        Bottleneck {
            target,
            loss,
            policer,
            link: link.map(|(schedule, queue)| Link {
                schedule,
                queue,
                sending: None,
                retry_ns: None,
            }),
            counters: LinkCounters::default(),
            dropped: Vec::new(),
        }
    }

    /// Is there nothing in a packet's way?
    #[inline]
    pub fn is_open(&self) -> bool {
        self.loss.is_none() && self.policer.is_none() && self.link.is_none()
    }

    /// Offers a packet. Packets that the queue drops are found by [`Self::take_dropped`].
    #[inline]
    pub fn enter(&mut self, events: &mut EventQueue, now_ns: u64, mut packet: Packet) -> Entry {
        if let Some(loss) = &mut self.loss
            && loss.lose()
        {
            self.counters.lost_pkts += 1;
            return Entry::Lost;
        }
        if let Some(policer) = &mut self.policer
            && !policer.admit(Nanos(now_ns), &mut packet)
        {
            self.dropped.push(packet);
            return Entry::Taken;
        }
        let Some(link) = &mut self.link else {
            self.count_sent(&packet);
            return Entry::Through(packet.ecn);
        };
        link.queue.enqueue(Nanos(now_ns), packet, &mut self.dropped);
        if link.sending.is_none() {
            link.send_next(events, self.target, now_ns, &mut self.dropped);
        }
        self.counters.max_bytes = self.counters.max_bytes.max(link.queue.len_bytes());
        Entry::Taken
    }

    /// The packet whose last bit leaves now, if there is one; starts the next.
    #[inline]
    pub fn wake(&mut self, events: &mut EventQueue, now_ns: u64) -> Option<Packet> {
        let link = self.link.as_mut()?;
        let left = match link.sending {
            Some((end_ns, packet)) if end_ns == now_ns => Some(packet),
            // Asked to look at the queue again, and a packet came meanwhile.
            Some(_) => return None,
            None => None,
        };
        link.send_next(events, self.target, now_ns, &mut self.dropped);
        if let Some(packet) = &left {
            self.count_sent(packet);
        }
        left
    }

    fn count_sent(&mut self, packet: &Packet) {
        self.counters.sent_pkts += 1;
        self.counters.sent_bytes += u64::from(packet.bytes);
        // Senders never mark, so policer or queue did.
        self.counters.marked_pkts += u64::from(packet.ecn == Ecn::Ce);
    }

    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Packets dropped since the last call.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<Packet> {
        let packet = self.dropped.pop()?;
        self.counters.dropped_pkts += 1;
        Some(packet)
    }

    pub fn len_pkts(&self) -> u32 {
        self.link.as_ref().map_or(0, |link| link.queue.len_pkts())
    }

    pub fn len_bytes(&self) -> u64 {
        self.link.as_ref().map_or(0, |link| link.queue.len_bytes())
    }

    /// How long what waits takes to leave.
    pub fn delay(&self, now_ns: u64) -> Nanos {
        self.link.as_ref().map_or(Nanos::ZERO, |link| {
            link.schedule.delay(now_ns, link.queue.len_bytes())
        })
    }

    /// Most bytes waiting since the last call.
    pub fn take_max_bytes(&mut self) -> u64 {
        let now_bytes = self.len_bytes();
        std::mem::replace(&mut self.counters.max_bytes, now_bytes)
    }

    /// Every packet in the queue or on the wire, for a final account.
    pub fn drain(&mut self, now_ns: u64) -> Vec<Packet> {
        let Some(link) = &mut self.link else {
            return Vec::new();
        };
        let mut packets: Vec<Packet> = link.sending.take().map(|(_, p)| p).into_iter().collect();
        let mut now = Nanos(now_ns);
        loop {
            match (
                link.queue.dequeue(now, &mut self.dropped),
                link.queue.retry_at(),
            ) {
                (Some(packet), _) => packets.push(packet),
                (None, Some(at)) => now = at,
                (None, None) => break,
            }
        }
        packets.append(&mut self.dropped);
        packets
    }
}

impl Link {
    fn send_next(
        &mut self,
        events: &mut EventQueue,
        target: Target,
        now_ns: u64,
        dropped: &mut Vec<Packet>,
    ) {
        self.sending = None;
        let Some(mut packet) = self.queue.dequeue(Nanos(now_ns), dropped) else {
            let retry_ns = self.queue.retry_at().map(|at| at.0);
            if retry_ns != self.retry_ns
                && let Some(at_ns) = retry_ns
            {
                events.push(at_ns, target);
            }
            self.retry_ns = retry_ns;
            return;
        };
        // From here on the field holds how long it waited.
        packet.enqueued = Nanos(now_ns - packet.enqueued.0);
        let end_ns = self.schedule.end_ns(now_ns, packet.bytes);
        events.push(end_ns, target);
        self.sending = Some((end_ns, packet));
    }
}

#[cfg(test)]
mod tests {
    use knee_model::units::Rate;

    use super::*;

    /// Lets a packet out every 5 ms and not before.
    #[derive(Default)]
    struct HoldBack {
        packets: VecDeque<Packet>,
        next: Nanos,
    }

    impl Queue for HoldBack {
        fn enqueue(&mut self, now: Nanos, mut packet: Packet, _dropped: &mut Vec<Packet>) {
            packet.enqueued = now;
            self.packets.push_back(packet);
        }
        fn dequeue(&mut self, now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Packet> {
            if now < self.next {
                return None;
            }
            let packet = self.packets.pop_front()?;
            self.next = now + Nanos::from_ms(5);
            Some(packet)
        }
        fn retry_at(&self) -> Option<Nanos> {
            (!self.packets.is_empty()).then_some(self.next)
        }
        fn len_pkts(&self) -> u32 {
            self.packets.len() as u32
        }
        fn len_bytes(&self) -> u64 {
            self.packets
                .iter()
                .map(|packet| u64::from(packet.bytes))
                .sum()
        }
    }

    /// Lets the events pass up to `end_ms`; when packets left, ms.
    fn left_ms(bottleneck: &mut Bottleneck, events: &mut EventQueue, end_ms: u64) -> Vec<u64> {
        let mut left = Vec::new();
        while let Some((at_ns, target)) = events.pop() {
            assert!(matches!(target, Target::Link(_)) && at_ns <= end_ms * 1_000_000);
            if bottleneck.wake(events, at_ns).is_some() {
                left.push(at_ns / 1_000_000);
            }
        }
        left
    }

    #[test]
    fn a_queue_that_holds_packets_back_is_asked_again_when_it_says() {
        let rate = Rate::from_bits_per_sec(12_000_000).unwrap();
        let queue = Box::new(HoldBack::default());
        let schedule = Schedule::new(rate, None, &[], 0);
        let mut bottleneck = Bottleneck::new(Target::Link(0), None, None, Some((schedule, queue)));
        let mut events = EventQueue::default();
        for handle in 0..5 {
            let packet = Packet {
                handle,
                bytes: 1_500,
                flow: 0,
                host: 0,
                ecn: Ecn::NotEct,
                dscp: 0,
                pure_ack: None,
                enqueued: Nanos::ZERO,
            };
            bottleneck.enter(&mut events, 0, packet);
        }
        assert_eq!(
            left_ms(&mut bottleneck, &mut events, 21),
            [1, 6, 11, 16, 21]
        );
        assert_eq!(bottleneck.len_pkts(), 0);
    }
}
