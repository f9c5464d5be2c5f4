//! The event queue: what happens next, ordered by (time, insertion number).
//!
//! Hosts' coarse timers fire at ticks of their clock, thousands at the same
//! instant. They are kept in one list per instant, of which only the instant is
//! in the queue, so that the queue stays short however many flows there are.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use knee_kit::heap::Heap;
use knee_units::NEVER;

/// What an event wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A host has work for one of its ends.
    Work(EndpointId, Work),
    /// What a host sends late leaves it.
    Late(HostId),
    /// The NIC's transmit queue of that number reports what it has sent.
    Reported(u32),
    /// A receive queue of that number interrupts, or its NAPI's timer is due.
    Napi(u32),
    /// A processor of that number is done with what it did.
    Cpu(u32),
    /// The coarse timers of this instant are due.
    Tick,
    /// A connection is opened.
    Open(u32),
    /// The warm-up is over.
    Warm,
    /// Flows and queue are sampled.
    Sample,
}

/// What a host does for an end of a connection, besides delivering packets, which the path tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Some timer is due.
    Timer,
    /// The application may write again.
    App,
    /// The qdisc may release a packet.
    Transmit,
}

/// A host: its number and the side, packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostId(u32);

impl HostId {
    pub fn new(host: u32, side: Side) -> HostId {
        HostId(host << 1 | side as u32)
    }
    pub fn host(self) -> u32 {
        self.0 >> 1
    }
    pub fn side(self) -> Side {
        Side::of_bit(self.0)
    }
}

/// One end of a connection: the flow's number and the side, packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointId(u32);

impl EndpointId {
    pub fn new(flow: u32, side: Side) -> EndpointId {
        EndpointId(flow << 1 | side as u32)
    }
    pub fn flow(self) -> u32 {
        self.0 >> 1
    }
    pub fn side(self) -> Side {
        Side::of_bit(self.0)
    }
}

/// The end that sends the data of interest, or the one that receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Sender = 0,
    Receiver = 1,
}

impl Side {
    /// As the lowest bit counts it.
    fn of_bit(bits: u32) -> Side {
        if bits & 1 == 0 {
            Side::Sender
        } else {
            Side::Receiver
        }
    }

    /// As the names of random streams have it.
    pub fn label(self) -> &'static str {
        match self {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        }
    }

    pub fn other(self) -> Side {
        match self {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        }
    }
}

/// Ordered by its key: no two have the same number.
#[derive(Clone, Copy)]
struct Entry {
    t_ns: u64,
    number: u64,
    target: Target,
}

impl Entry {
    /// Time and number as one, which compares without a branch: the queue does
    /// little else, and which of two is earlier cannot be foreseen.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.t_ns) << 64 | u128::from(self.number)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.number == other.number
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
    #[inline]
    fn lt(&self, other: &Entry) -> bool {
        self.key() < other.key()
    }
    #[inline]
    fn le(&self, other: &Entry) -> bool {
        self.key() <= other.key()
    }
}
impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Entry) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The end of a job of the processor `cpu`, an event that has yet to come. At NEVER: there is none.
struct JobEnd {
    t_ns: u64,
    number: u64,
    cpu: u32,
}

/// Pending events.
pub struct EventQueue {
    heap: Heap<Entry>,
    /// The end of a processor's job, if it may come before all in the heap; apart, so that the run can go on with it.
    end: JobEnd,
    /// Is the heap's head the event at work? It stays there until another is
    /// pushed, which most events do: one takes the other's place in one go.
    head_is_taken: bool,
    /// When the head is due, with none at work: each step of the world asks for it.
    next_ns: u64,
    number: u64,
    /// That of the event that is handled now; NEVER: there is none.
    at_number: u64,
    ticks: BTreeMap<u64, Vec<EndpointId>>,
    /// An emptied list, kept for the next instant.
    spare: Vec<EndpointId>,
}

impl EventQueue {
    /// For a run with so many connections, whose openings have the first numbers.
    pub fn new(planned: usize) -> EventQueue {
        EventQueue {
            heap: Heap::default(),
            end: JobEnd {
                t_ns: NEVER,
                number: 0,
                cpu: 0,
            },
            head_is_taken: false,
            next_ns: NEVER,
            number: planned as u64,
            at_number: NEVER,
            ticks: BTreeMap::new(),
            spare: Vec::new(),
        }
    }

    #[inline]
    pub fn push(&mut self, t_ns: u64, target: Target) {
        let number = self.reserve();
        self.insert(t_ns, number, target);
    }

    /// Takes the number that an event pushed now would have.
    #[inline]
    pub fn reserve(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// An event whose number has been reserved.
    pub fn push_reserved(&mut self, t_ns: u64, number: u64, target: Target) {
        self.insert(t_ns, number, target);
    }

    /// Would an event with this reserved number have come by now?
    #[inline]
    pub fn has_come(&self, t_ns: u64, number: u64, now_ns: u64) -> bool {
        t_ns < now_ns || t_ns == now_ns && number < self.at_number
    }

    /// The end of a processor's job. It stays apart if nothing in the queue comes before, until [`Self::leave_ends`] is called.
    #[inline(always)]
    pub fn push_end(&mut self, t_ns: u64, cpu: u32) {
        let number = self.reserve();
        if self.has_end() || self.head_is_taken || t_ns >= self.next_ns {
            return self.insert(t_ns, number, Target::Cpu(cpu));
        }
        self.end = JobEnd { t_ns, number, cpu };
    }

    /// Stands a job's end apart?
    #[inline]
    pub fn has_end(&self) -> bool {
        self.end.t_ns != NEVER
    }

    /// The end that stands apart is at work, if there is one that comes before all else and not after `most_ns`.
    #[inline(always)]
    pub fn take_end(&mut self, most_ns: u64) -> Option<(u64, u32)> {
        let t_ns = self.end.t_ns;
        if t_ns > most_ns || t_ns >= self.next_ns() {
            return None;
        }
        self.end.t_ns = NEVER;
        self.at_number = self.end.number;
        Some((t_ns, self.end.cpu))
    }

    /// No end is at work any more, and one that stands apart goes among the others.
    #[inline(always)]
    pub fn leave_ends(&mut self) {
        self.at_number = NEVER;
        if self.has_end() {
            self.leave_end();
        }
    }

    #[inline(never)]
    fn leave_end(&mut self) {
        let t_ns = std::mem::replace(&mut self.end.t_ns, NEVER);
        self.insert(t_ns, self.end.number, Target::Cpu(self.end.cpu));
    }

    /// A connection opens: at its instant that comes before everything else, those with lower numbers first.
    pub fn push_open(&mut self, t_ns: u64, flow: u32) {
        self.insert(t_ns, u64::from(flow), Target::Open(flow));
    }

    #[inline]
    fn insert(&mut self, t_ns: u64, number: u64, target: Target) {
        let entry = Entry {
            t_ns,
            number,
            target,
        };
        match std::mem::take(&mut self.head_is_taken) {
            true => self.heap.replace_first(entry),
            false => {
                self.heap.push(entry);
                self.next_ns = self.next_ns.min(t_ns);
            }
        }
    }

    /// Wakes an endpoint at a tick of its host's clock.
    #[inline(always)]
    pub fn push_tick(&mut self, t_ns: u64, id: EndpointId) {
        let mut is_new = false;
        let spare = &mut self.spare;
        self.ticks
            .entry(t_ns)
            .or_insert_with(|| {
                is_new = true;
                std::mem::take(spare)
            })
            .push(id);
        if is_new {
            self.push(t_ns, Target::Tick);
        }
    }

    /// The endpoints to wake at this instant, in the order they asked.
    #[inline(always)]
    pub fn take_tick(&mut self, t_ns: u64) -> Vec<EndpointId> {
        self.ticks.remove(&t_ns).unwrap_or_default()
    }

    /// Gives the list back for reuse.
    pub fn recycle(&mut self, mut list: Vec<EndpointId>) {
        list.clear();
        self.spare = list;
    }

    /// When the next one is due, with none at work; `u64::MAX`: there is none.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        debug_assert!(!self.head_is_taken, "one is at work");
        self.next_ns
    }

    /// The next one is at work: it is the one that [`Self::next_ns`] told of.
    #[inline]
    pub fn take(&mut self) -> Target {
        self.head_is_taken = true;
        let head = self.heap.first().expect("there is one");
        self.at_number = head.number;
        head.target
    }

    /// What was at work is done.
    #[inline]
    pub fn done(&mut self) {
        self.at_number = NEVER;
        if std::mem::take(&mut self.head_is_taken) {
            self.heap.remove_first();
        }
        self.next_ns = self.first_ns();
    }

    /// When the heap's head is due.
    #[inline]
    fn first_ns(&self) -> u64 {
        self.heap.first().map_or(NEVER, |head| head.t_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jobs_end_is_taken_only_if_nothing_comes_before() {
        let mut events = EventQueue::new(0);
        events.push(10, Target::Sample);
        events.push_end(7, 1);
        events.push_end(6, 2);
        // The second is among the others, and earlier.
        assert!(events.has_end());
        assert_eq!(events.take_end(NEVER), None);
        events.leave_ends();
        assert_eq!((events.next_ns(), events.take()), (6, Target::Cpu(2)));
        events.done();
        assert_eq!((events.next_ns(), events.take()), (7, Target::Cpu(1)));
        // While an event is at work, and at the instant of another.
        events.push_end(8, 3);
        events.done();
        events.push_end(8, 4);
        assert!(!events.has_end());
        events.push_end(7, 5);
        assert_eq!(events.take_end(6), None);
        events.leave_ends();
        assert_eq!(events.next_ns(), 7);
        events.push_end(6, 6);
        assert_eq!(events.take_end(6), Some((6, 6)));
        assert_eq!(events.take_end(NEVER), None);
        events.leave_ends();
        assert_eq!(events.next_ns(), 7);
    }

    #[test]
    fn events_at_one_instant_come_in_the_order_they_were_pushed() {
        let mut events = EventQueue::new(0);
        for (t, flow) in [(5, 0), (3, 1), (5, 2), (3, 3), (5, 4)] {
            events.push(t, Target::Open(flow));
        }
        let order: Vec<_> = std::iter::from_fn(|| match events.next_ns() {
            NEVER => None,
            t_ns => {
                let target = events.take();
                events.done();
                Some((t_ns, target))
            }
        })
        .collect();
        assert_eq!(
            order,
            [(3, 1), (3, 3), (5, 0), (5, 2), (5, 4)].map(|(t, flow)| (t, Target::Open(flow)))
        );
    }
}
