//! What stands before a direction's delay: loss, policer, queue and link. It has no clock: it is told the time, and says
//! when something happens next.

use knee_tables::QueueSample;
use knee_units::{NEVER, Nanos};

use crate::loss::Loss;
use crate::packet::{Ecn, Packet};
use crate::queue::Queue;
use crate::queue::policer::Policer;
use crate::trace::Schedule;

/// Counts since the beginning, as the `queue` table has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub sent_pkts: u64,
    pub sent_bytes: u64,
    pub dropped_pkts: u64,
    pub marked_pkts: u64,
    pub lost_pkts: u64,
    /// Most bytes waiting since the last sample.
    pub max_bytes: u64,
}

/// What became of a packet that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It waits, is being sent, or was dropped.
    Taken,
    /// The link is unlimited: it is through already, marked perhaps.
    Through(Ecn),
    /// The path's own loss took it.
    Lost,
}

/// What a bottleneck does next, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The last bit of the packet on the wire leaves.
    Sent(u64),
    /// The queue is asked again that holds its packets back; `u64::MAX`: it holds none.
    Retry(u64),
}

/// One direction's bottleneck.
pub struct Bottleneck {
    loss: Option<Box<dyn Loss>>,
    policer: Option<Policer>,
    /// `None`: unlimited.
    link: Option<Link>,
    pub counters: Counters,
    dropped: Vec<Packet>,
}

/// A limited rate and the queue before it.
pub struct Link<Q: Queue + ?Sized = dyn Queue> {
    schedule: Schedule,
    pub(crate) queue: Box<Q>,
    /// The packet on the wire, or the last that was. Its `enqueued` holds how long it waited.
    packet: Packet,
    is_sending: bool,
    /// When its last bit leaves, or, with none on the wire, the queue is asked again that holds its packets back.
    next_ns: u64,
}

impl<Q: Queue + ?Sized> Link<Q> {
    pub fn new(schedule: Schedule, queue: Box<Q>) -> Link<Q> {
        Link {
            schedule,
            queue,
            packet: Packet::default(),
            is_sending: false,
            next_ns: NEVER,
        }
    }

    /// The packet on the wire. Its `enqueued` holds how long it waited.
    #[inline]
    pub fn sending(&self) -> Option<&Packet> {
        self.is_sending.then_some(&self.packet)
    }

    /// When the packet on the wire has left, or the queue is asked again.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        (self.next_ns != NEVER).then_some(self.next_ns)
    }

    /// A packet comes; it sets out if none is on the wire. `due` is told what is due next when that is new.
    #[inline]
    pub fn enter(
        &mut self,
        now_ns: u64,
        packet: Packet,
        dropped: &mut Vec<Packet>,
        due: impl FnMut(Due),
    ) {
        self.queue.enqueue(Nanos(now_ns), packet, dropped);
        if !self.is_sending {
            self.send_next(now_ns, dropped, due);
        }
    }

    /// The packet on the wire is through, and the next sets out.
    #[inline]
    pub fn step(
        &mut self,
        at_ns: u64,
        dropped: &mut Vec<Packet>,
        due: impl FnMut(Due),
    ) -> Option<Packet> {
        let left = self.is_sending.then_some(self.packet);
        self.send_next(at_ns, dropped, due);
        left
    }

    fn send_next(&mut self, now_ns: u64, dropped: &mut Vec<Packet>, mut due: impl FnMut(Due)) {
        let Some(mut packet) = self.queue.dequeue(Nanos(now_ns), dropped) else {
            self.is_sending = false;
            self.next_ns = self.queue.retry_at().map_or(NEVER, |at| at.0);
            return due(Due::Retry(self.next_ns));
        };
        packet.enqueued = Nanos(now_ns - packet.enqueued.0);
        self.packet = packet;
        self.is_sending = true;
        self.next_ns = self.schedule.end_ns(now_ns, packet.bytes);
        due(Due::Sent(self.next_ns));
    }

    /// What waits or is on the wire, for a final account.
    fn drain(&mut self, now_ns: u64, dropped: &mut Vec<Packet>) -> Vec<Packet> {
        let mut packets: Vec<Packet> = self.sending().copied().into_iter().collect();
        self.is_sending = false;
        let mut now = Nanos(now_ns);
        loop {
            match (self.queue.dequeue(now, dropped), self.queue.retry_at()) {
                (Some(packet), _) => packets.push(packet),
                (None, Some(at)) => now = at,
                (None, None) => return packets,
            }
        }
    }
}

impl Bottleneck {
    /// `link`: `None` is an unlimited rate.
    pub fn new(
        loss: Option<Box<dyn Loss>>,
        policer: Option<Policer>,
        link: Option<Link>,
    ) -> Bottleneck {
        Bottleneck {
            loss,
            policer,
            link,
            counters: Counters::default(),
            dropped: Vec::new(),
        }
    }

    /// Is there nothing in a packet's way?
    #[inline]
    pub fn is_open(&self) -> bool {
        self.loss.is_none() && self.policer.is_none() && self.link.is_none()
    }

    /// Is a packet on the wire?
    #[inline]
    pub fn is_sending(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.is_sending)
    }

    /// When the packet on the wire has left, or the queue is asked again.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        self.link.as_ref()?.next_ns()
    }

    /// Offers a packet. What is due before `now_ns` has been done by [`Self::step`]; what the policer or the queue drops
    /// is found by [`Self::take_dropped`]. `due` is told what is due next when that is new.
    #[inline]
    pub fn enter(&mut self, now_ns: u64, mut packet: Packet, due: impl FnMut(Due)) -> Entry {
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
        link.enter(now_ns, packet, &mut self.dropped, due);
        self.counters.max_bytes = self.counters.max_bytes.max(link.queue.len_bytes());
        Entry::Taken
    }

    /// Does what [`Self::next_ns`] told for `at_ns`: the packet on the wire is through, and the next sets out. Its
    /// `enqueued` holds how long it waited.
    #[inline]
    pub fn step(&mut self, at_ns: u64, due: impl FnMut(Due)) -> Option<Packet> {
        let link = self.link.as_mut()?;
        let packet = link.step(at_ns, &mut self.dropped, due)?;
        self.count_sent(&packet);
        Some(packet)
    }

    #[inline]
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

    /// A packet that was dropped; the newest first.
    #[inline]
    pub fn take_dropped(&mut self) -> Option<Packet> {
        let packet = self.dropped.pop()?;
        self.counters.dropped_pkts += 1;
        Some(packet)
    }

    /// Packets waiting.
    pub fn len_pkts(&self) -> u32 {
        self.link.as_ref().map_or(0, |link| link.queue.len_pkts())
    }

    /// A row of the `queue` table; whose it is, and when, its caller knows. The most bytes are those since the last row.
    pub fn sample(&mut self, now_ns: u64) -> QueueSample {
        let (bytes, delay) = self.link.as_ref().map_or((0, Nanos::ZERO), |link| {
            let bytes = link.queue.len_bytes();
            (bytes, link.schedule.delay(now_ns, bytes))
        });
        let max_bytes = std::mem::replace(&mut self.counters.max_bytes, bytes);
        QueueSample {
            cell: 0,
            rep: 0,
            t_ns: 0,
            hop: 0,
            queue_pkts: i64::from(self.len_pkts()),
            queue_bytes: bytes as i64,
            queue_bytes_max: max_bytes as i64,
            queue_delay_us: delay.as_us() as i64,
            sent_pkts: self.counters.sent_pkts as i64,
            sent_bytes: self.counters.sent_bytes as i64,
            dropped_pkts: self.counters.dropped_pkts as i64,
            marked_pkts: self.counters.marked_pkts as i64,
            lost_pkts: self.counters.lost_pkts as i64,
        }
    }

    /// Every packet in the queue or on the wire, for a final account.
    pub fn drain(&mut self, now_ns: u64) -> Vec<Packet> {
        let Some(link) = &mut self.link else {
            return Vec::new();
        };
        let mut packets = link.drain(now_ns, &mut self.dropped);
        packets.append(&mut self.dropped);
        packets
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::queue::testing::{mbit, packet};

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

    /// A full packet takes 1 ms.
    fn bottleneck() -> Bottleneck {
        let queue = Box::new(HoldBack::default());
        let schedule = Schedule::new(mbit(12), None, &[], 0);
        Bottleneck::new(None, None, Some(Link::new(schedule, queue)))
    }

    #[test]
    fn a_queue_that_holds_packets_back_is_asked_again_when_it_says() {
        const MS: u64 = 1_000_000;
        let mut bottleneck = bottleneck();
        for _ in 0..4 {
            assert_eq!(bottleneck.enter(0, packet(0), |_| ()), Entry::Taken);
        }
        // While the first is on the wire the queue is not asked.
        assert_eq!(bottleneck.next_ns(), Some(MS));
        assert!(bottleneck.step(MS, |_| ()).is_some());
        assert_eq!(bottleneck.next_ns(), Some(5 * MS));
        // A packet that comes meanwhile asks too, in vain.
        bottleneck.enter(3 * MS, packet(0), |_| ());
        assert_eq!(bottleneck.next_ns(), Some(5 * MS));
        let mut left_ms = Vec::new();
        while let Some(at_ns) = bottleneck.next_ns() {
            if let Some(packet) = bottleneck.step(at_ns, |_| ()) {
                left_ms.push((at_ns / MS, packet.enqueued.0 / MS));
            }
        }
        assert_eq!(left_ms, [(6, 5), (11, 10), (16, 15), (21, 17)]);
        assert_eq!(bottleneck.len_pkts(), 0);
    }

    #[test]
    fn a_row_has_the_most_bytes_since_the_one_before() {
        let mut bottleneck = bottleneck();
        for _ in 0..3 {
            bottleneck.enter(0, packet(0), |_| ());
        }
        let row = bottleneck.sample(0);
        assert_eq!(
            (row.queue_pkts, row.queue_bytes, row.queue_bytes_max),
            (2, 3_000, 3_000)
        );
        assert_eq!(row.queue_delay_us, 2_000);
        let left = bottleneck.step(1_000_000, |_| ()).expect("the first");
        assert_eq!(
            (left.enqueued, bottleneck.drain(1_000_000).len()),
            (Nanos::ZERO, 2)
        );
        assert_eq!(bottleneck.sample(1_000_000).queue_bytes_max, 3_000);
        assert_eq!(bottleneck.sample(1_000_000).queue_bytes_max, 0);
    }
}
