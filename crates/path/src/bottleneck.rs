//! What stands before a direction's delay: loss, policer, queue and link. It has no clock: it is told the time, and says
//! when something happens next.

use knee_kit::odds::unlikely;
use knee_tables::QueueSample;
use knee_units::{NEVER, Nanos};

use crate::departures::{Burst, Departures};
use crate::loss::Loss;
use crate::packet::{Ecn, Packet};
use crate::queue::Queue;
use crate::queue::policer::Policer;
use crate::sink::Departure;
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

impl Counters {
    #[inline]
    fn count_sent(&mut self, bytes: u32, pkts: u32, marked: bool) {
        self.sent_pkts += u64::from(pkts);
        self.sent_bytes += u64::from(pkts) * u64::from(bytes);
        // Senders never mark, so policer or queue did.
        self.marked_pkts += u64::from(pkts) * u64::from(marked);
    }
}

/// What becomes of the first packets that are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// They leave so.
    Leaves(Departure),
    /// The policer or the queue drops so many.
    Dropped(u32),
    /// The path's own loss takes one.
    Lost,
}

impl Entry {
    /// How many they are.
    #[inline]
    pub(crate) fn pkts(&self) -> u32 {
        match *self {
            Entry::Leaves(departure) => departure.pkts,
            Entry::Dropped(pkts) => pkts,
            Entry::Lost => 1,
        }
    }
}

/// One direction's bottleneck.
pub struct Bottleneck {
    loss: Option<Losses>,
    /// Of TSO packets as a whole, before they enter.
    whole_loss: Option<Box<dyn Loss>>,
    policer: Option<Policer>,
    server: Server,
    pub counters: Counters,
    dropped: Vec<Packet>,
}

/// So many draws are made at a time, unless one loses: a call for each packet costs as much as its draw.
const DRAWN_AHEAD: u32 = 256;

/// The path's own loss, with a draw for each packet. They are drawn before packets come, up to the first that is lost, since
/// nothing else has a part in them.
struct Losses {
    loss: Box<dyn Loss>,
    /// How many that come next are spared, ...
    spared: u32,
    /// ... and is the one behind them known to be lost?
    then_loses: bool,
}

impl Losses {
    /// How many packets pass before the next one is lost, `most` at most; 0: the next one is lost.
    #[inline]
    fn spares(&mut self, most: u32) -> u32 {
        if self.spared < most && !self.then_loses {
            let (more, then_loses) = self.loss.spare(most.max(DRAWN_AHEAD));
            self.spared += more;
            self.then_loses = then_loses;
        }
        if self.spared == 0 {
            self.then_loses = false;
        }
        self.spared.min(most)
    }

    /// So many of them went on, or met another fate.
    #[inline]
    fn pass(&mut self, pkts: u32) {
        self.spared -= pkts;
    }
}

/// What limits the rate. Which of them it is has a place of its own, since several ask for it for each packet.
#[repr(u8)]
enum Server {
    Nothing,
    Link(Link),
    Computed(Box<Departures>),
}

/// A limited rate and the queue before it.
pub struct Link<Q: Queue + ?Sized = dyn Queue> {
    schedule: Schedule,
    pub(crate) queue: Box<Q>,
    /// The packet on the wire, or the last that was, and how long it waited.
    packet: Packet,
    waited: Nanos,
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
            waited: Nanos::ZERO,
            is_sending: false,
            next_ns: NEVER,
        }
    }

    /// The packet on the wire, and how long it waited.
    #[inline]
    pub fn sending(&self) -> Option<(&Packet, Nanos)> {
        self.is_sending.then_some((&self.packet, self.waited))
    }

    /// When the packet on the wire has left, or the queue is asked again.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        (self.next_ns != NEVER).then_some(self.next_ns)
    }

    /// A packet comes; it sets out if none is on the wire.
    #[inline]
    pub fn enter(&mut self, now_ns: u64, packet: Packet, dropped: &mut Vec<Packet>) {
        self.queue.enqueue(Nanos(now_ns), packet, dropped);
        if unlikely(!self.is_sending) {
            self.send_next(now_ns, dropped);
        }
    }

    /// What was on the wire is through: the next packet sets out.
    #[inline]
    pub fn send_next(&mut self, now_ns: u64, dropped: &mut Vec<Packet>) {
        let Some(packet) = self.queue.dequeue(Nanos(now_ns), dropped) else {
            self.is_sending = false;
            self.next_ns = self.queue.retry_at().map_or(NEVER, |at| at.0);
            return;
        };
        self.waited = Nanos(now_ns - packet.enqueued.0);
        self.packet = packet;
        self.is_sending = true;
        self.next_ns = self.schedule.end_ns(now_ns, packet.bytes);
    }

    /// What waits or is on the wire, for a final account.
    fn drain(&mut self, now_ns: u64, dropped: &mut Vec<Packet>) -> Vec<Packet> {
        let mut packets: Vec<Packet> = self
            .sending()
            .map(|(packet, _)| *packet)
            .into_iter()
            .collect();
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
        let losses = |loss| Losses {
            loss,
            spared: 0,
            then_loses: false,
        };
        Bottleneck {
            loss: loss.map(losses),
            whole_loss: None,
            policer,
            server: link.map_or(Server::Nothing, Server::Link),
            counters: Counters::default(),
            dropped: Vec::new(),
        }
    }

    /// It loses TSO packets as a whole.
    pub(crate) fn with_whole_loss(mut self, loss: Option<Box<dyn Loss>>) -> Bottleneck {
        self.whole_loss = loss;
        self
    }

    /// Does it lose TSO packets as a whole?
    pub(crate) fn takes_whole(&self) -> bool {
        self.whole_loss.is_some()
    }

    /// Is the whole next TSO packet lost? It has `pkts` packets, which are counted then.
    pub(crate) fn loses_whole(&mut self, pkts: u32) -> bool {
        let lost = self.whole_loss.as_mut().is_some_and(|loss| loss.lose());
        self.counters.lost_pkts += if lost { u64::from(pkts) } else { 0 };
        lost
    }

    /// Compute each departure on entry, where queue and link allow that. Call before the first packet.
    pub(crate) fn foresee(&mut self) {
        let Server::Link(link) = &self.server else {
            return;
        };
        if let Some(tail) = link.queue.tail()
            && link.schedule.is_constant()
        {
            let departures = Departures::new(link.schedule.clone(), tail);
            self.server = Server::Computed(Box::new(departures));
        }
    }

    /// Is there nothing in a packet's way?
    #[inline]
    pub fn is_open(&self) -> bool {
        self.loss.is_none()
            && self.whole_loss.is_none()
            && self.policer.is_none()
            && matches!(self.server, Server::Nothing)
    }

    /// Does its link take a step for each packet?
    #[inline]
    pub fn takes_steps(&self) -> bool {
        matches!(self.server, Server::Link(_))
    }

    /// Is a packet on the wire of a link that takes steps?
    #[inline]
    pub fn is_sending(&self) -> bool {
        matches!(&self.server, Server::Link(link) if link.is_sending)
    }

    /// When [`Self::step`] has something to do: the packet on the wire has left, or the queue is asked again.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        match &self.server {
            Server::Link(link) => link.next_ns(),
            Server::Nothing | Server::Computed(_) => None,
        }
    }

    /// Are packets that come together told of together, as far as their fates are alike?
    pub(crate) fn takes_trains(&self) -> bool {
        self.policer.is_none() && !self.takes_steps()
    }

    /// Offers packets like this one, back to back: more than one if this [`Self::takes_trains`], and not to a link that
    /// [`Self::takes_steps`]. What left until `now_ns` has been reported by [`Self::settle`].
    #[inline(always)]
    pub fn enter(&mut self, now_ns: u64, packet: Packet, most: u32) -> Entry {
        match self.loss {
            None => self.enter_spared(now_ns, packet, most),
            Some(_) => self.enter_lossy(now_ns, packet, most),
        }
    }

    #[inline(never)]
    fn enter_lossy(&mut self, now_ns: u64, packet: Packet, most: u32) -> Entry {
        let loss = self.loss.as_mut();
        let spared = loss.map_or(most, |loss| loss.spares(most));
        if spared == 0 {
            self.counters.lost_pkts += 1;
            return Entry::Lost;
        }
        let entry = self.enter_spared(now_ns, packet, spared);
        if let Some(loss) = &mut self.loss {
            loss.pass(entry.pkts());
        }
        entry
    }

    /// The same behind the path's own loss.
    #[inline(always)]
    fn enter_spared(&mut self, now_ns: u64, mut packet: Packet, most: u32) -> Entry {
        if unlikely(self.policer.is_some())
            && let Some(policer) = &mut self.policer
            && !policer.admit(Nanos(now_ns), &mut packet)
        {
            self.counters.dropped_pkts += 1;
            return Entry::Dropped(1);
        }
        let Server::Computed(departures) = &mut self.server else {
            debug_assert!(!self.takes_steps(), "packets enter such a link one by one");
            let is_marked = packet.ecn == Ecn::Ce;
            self.counters.count_sent(packet.bytes, most, is_marked);
            // The link is unlimited: they are through already, marked perhaps.
            return Entry::Leaves(Departure {
                at_ns: now_ns,
                every_ns: 0,
                pkts: most,
                waited: Nanos::ZERO,
                ecn: packet.ecn,
                period: None,
            });
        };
        match departures.enter(now_ns, &packet, most) {
            Ok(departure) => {
                let len_bytes = departures.len_bytes();
                self.counters.max_bytes = self.counters.max_bytes.max(len_bytes);
                Entry::Leaves(departure)
            }
            Err(pkts) => {
                self.counters.dropped_pkts += u64::from(pkts);
                Entry::Dropped(pkts)
            }
        }
    }

    /// Does the policer, if there is one, let a packet pass?
    #[inline(always)]
    fn admit(&mut self, now_ns: u64, packet: &mut Packet) -> bool {
        let Some(policer) = &mut self.policer else {
            return true;
        };
        let admitted = policer.admit(Nanos(now_ns), packet);
        if !admitted {
            self.dropped.push(*packet);
        }
        admitted
    }

    /// Offers a packet to a link that [`Self::takes_steps`]; `false`: the path's own loss took it. What is due until `now_ns`
    /// has been done; what the policer or the queue drops is found by [`Self::take_dropped`].
    #[inline(always)]
    pub fn enter_link(&mut self, now_ns: u64, mut packet: Packet) -> bool {
        if unlikely(self.loss.is_some())
            && let Some(loss) = &mut self.loss
        {
            if loss.spares(1) == 0 {
                self.counters.lost_pkts += 1;
                return false;
            }
            loss.pass(1);
        }
        if self.admit(now_ns, &mut packet)
            && let Server::Link(link) = &mut self.server
        {
            link.enter(now_ns, packet, &mut self.dropped);
            let len_bytes = link.queue.len_bytes();
            self.counters.max_bytes = self.counters.max_bytes.max(len_bytes);
        }
        true
    }

    /// What [`Self::next_ns`] told is due: the packet on the wire is through; and how long it waited. `None`: the queue is
    /// asked again. [`Self::send_next`] follows.
    #[inline(always)]
    pub fn leaves(&mut self) -> Option<(Packet, Nanos)> {
        let Server::Link(link) = &self.server else {
            return None;
        };
        let (packet, waited) = link.sending()?;
        self.counters
            .count_sent(packet.bytes, 1, packet.ecn == Ecn::Ce);
        Some((*packet, waited))
    }

    /// The next packet sets out.
    #[inline(always)]
    pub fn send_next(&mut self, at_ns: u64) {
        if let Server::Link(link) = &mut self.server {
            link.send_next(at_ns, &mut self.dropped);
        }
    }

    /// Reports the packets whose departure was computed on entry and has come.
    #[inline(always)]
    pub fn settle(&mut self, now_ns: u64, mut report: impl FnMut(&Burst)) {
        let Server::Computed(departures) = &mut self.server else {
            return;
        };
        let counters = &mut self.counters;
        departures.settle(now_ns, |burst| {
            counters.count_sent(burst.bytes, burst.pkts, burst.marked);
            report(burst);
        });
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
        match &self.server {
            Server::Nothing => 0,
            Server::Link(link) => link.queue.len_pkts(),
            Server::Computed(departures) => departures.len_pkts(),
        }
    }

    /// A row of the `queue` table; whose it is, and when, its caller knows. The most bytes are those since the last row.
    /// What left until then has been told by [`Self::settle`].
    pub fn sample(&mut self, now_ns: u64) -> QueueSample {
        let (bytes, schedule) = match &self.server {
            Server::Nothing => (0, None),
            Server::Link(link) => (link.queue.len_bytes(), Some(&link.schedule)),
            Server::Computed(departures) => (departures.len_bytes(), Some(departures.schedule())),
        };
        let delay = schedule.map_or(Nanos::ZERO, |schedule| schedule.delay(now_ns, bytes));
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
            offered_bytes: schedule.map(|schedule| schedule.offered_bytes(now_ns) as i64),
            dropped_pkts: self.counters.dropped_pkts as i64,
            marked_pkts: Some(self.counters.marked_pkts as i64),
            lost_pkts: self.counters.lost_pkts as i64,
        }
    }

    /// Every packet in the queue or on the wire, for a final account; but not those whose departure is foreseen, which
    /// whoever was told of it has.
    pub fn drain(&mut self, now_ns: u64) -> Vec<Packet> {
        let Server::Link(link) = &mut self.server else {
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

    fn step(bottleneck: &mut Bottleneck, at_ns: u64) -> Option<(Packet, Nanos)> {
        let left = bottleneck.leaves();
        bottleneck.send_next(at_ns);
        left
    }

    #[test]
    fn a_queue_that_holds_packets_back_is_asked_again_when_it_says() {
        const MS: u64 = 1_000_000;
        let mut bottleneck = bottleneck();
        for _ in 0..4 {
            assert!(bottleneck.enter_link(0, packet(0)));
        }
        // While the first is on the wire the queue is not asked.
        assert_eq!(bottleneck.next_ns(), Some(MS));
        assert!(step(&mut bottleneck, MS).is_some());
        assert_eq!(bottleneck.next_ns(), Some(5 * MS));
        // A packet that comes meanwhile asks too, in vain.
        bottleneck.enter_link(3 * MS, packet(0));
        assert_eq!(bottleneck.next_ns(), Some(5 * MS));
        let mut left_ms = Vec::new();
        while let Some(at_ns) = bottleneck.next_ns() {
            if let Some((_, waited)) = step(&mut bottleneck, at_ns) {
                left_ms.push((at_ns / MS, waited.0 / MS));
            }
        }
        assert_eq!(left_ms, [(6, 5), (11, 10), (16, 15), (21, 17)]);
        assert_eq!(bottleneck.len_pkts(), 0);
    }

    #[test]
    fn a_row_has_the_most_bytes_since_the_one_before() {
        let mut bottleneck = bottleneck();
        for _ in 0..3 {
            bottleneck.enter_link(0, packet(0));
        }
        let row = bottleneck.sample(0);
        assert_eq!(
            (row.queue_pkts, row.queue_bytes, row.queue_bytes_max),
            (2, 3_000, 3_000)
        );
        assert_eq!(row.queue_delay_us, 2_000);
        let (_, waited) = step(&mut bottleneck, 1_000_000).expect("the first");
        assert_eq!(
            (waited, bottleneck.drain(1_000_000).len()),
            (Nanos::ZERO, 2)
        );
        assert_eq!(bottleneck.sample(1_000_000).queue_bytes_max, 3_000);
        assert_eq!(bottleneck.sample(1_000_000).queue_bytes_max, 0);
    }
}
