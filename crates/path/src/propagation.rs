//! What happens behind a bottleneck: packets take their flow's delay and, where that is their last, wait for the interrupt
//! of the far host's NIC.

use knee_kit::head_queue::HeadQueue;
use knee_kit::heap::Heap;
use knee_kit::odds::unlikely;
use knee_units::NEVER;

use crate::nics::{NONE, Nics};
use crate::packet::count_until;
use crate::sink::{Passing, Sink, When};

/// A train is announced when this many others stand between it and the first of its line, and again when none does.
const SOON: usize = 2;

/// Packets in order of arrival: all take the same time, or none overtakes another.
struct Line<N> {
    delay_ns: u64,
    /// When the last one arrives.
    latest_ns: u64,
    trains: HeadQueue<Arriving<N>>,
    /// The NICs that its packets go to.
    to: To,
}

/// Where a line leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Nowhere,
    /// To the NIC at this place alone, which no other line leads to: what it hands over, and when, is known from the line,
    /// and so is when it may interrupt again.
    Only(u32, u64),
    Several,
}

/// Packets that arrive one behind the other.
#[derive(Clone, Copy)]
struct Arriving<N> {
    /// When the first does, and how long after each the next.
    at_ns: u64,
    every_ns: u64,
    passing: Passing<N>,
}

impl<N: Copy> Arriving<N> {
    /// How many have arrived then, if the first has.
    #[inline]
    fn until(&self, at_ns: u64) -> u32 {
        count_until(self.at_ns, self.every_ns, self.passing.pkts, at_ns)
    }
}

impl<N: Copy> Line<N> {
    /// When the first packet arrives.
    #[inline]
    fn next_ns(&self) -> u64 {
        self.trains.first().map_or(NEVER, |front| front.at_ns)
    }

    /// Takes the next `pkts` packets, which are of one train.
    #[inline]
    fn take(&mut self, pkts: u32) -> Passing<N> {
        let front = self.trains.first_mut().expect("its head is due");
        let taken = Passing {
            pkts,
            ..front.passing
        };
        if pkts == front.passing.pkts {
            self.trains.remove_first();
        } else {
            front.passing.pkts -= pkts;
            front.at_ns += u64::from(pkts) * front.every_ns;
        }
        taken
    }

    /// Announces those trains behind the first whose turn it is.
    #[inline]
    fn announce(&self, nics: &Nics<N>, sink: &mut impl Sink<Note = N>) {
        for between in [0, SOON] {
            if let Some(train) = self.trains.behind_first(between) {
                sink.expects(&train.passing, between == 0);
                nics.expects(train.passing.flow, between == 0);
            }
        }
    }

    /// Takes the packets of the first train, which has begun to arrive, that have arrived then.
    #[inline]
    fn take_until(&mut self, at_ns: u64) -> Passing<N> {
        let front = self.trains.first().expect("its head is due");
        self.take(front.until(at_ns))
    }

    #[inline]
    fn when(&self, at_ns: u64) -> When {
        When::new(at_ns, at_ns.saturating_sub(self.delay_ns))
    }

    /// When the NIC at the line's end interrupts, which may again from `next_interrupt_ns` on, with nothing pending, for a
    /// packet that arrives then.
    #[inline]
    fn wakes(&self, next_interrupt_ns: u64, at_ns: u64) -> When {
        match at_ns >= next_interrupt_ns {
            true => self.when(at_ns),
            false => When::last_at(next_interrupt_ns),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The oldest packet of this line arrives.
    Line(u32),
    /// The NIC interrupts that this line leads to.
    Only(u32),
    /// The packet at this place of those that keep no order arrives.
    Loose(u32),
    /// The NIC of this number interrupts, which has this place.
    Interrupt(u32, u32),
}

/// What is due, and when: of what is due at one time the lesser [`Due`] is first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    when: When,
    due: Due,
}

impl Event {
    fn new(when: When, due: Due) -> Event {
        Event { when, due }
    }
}

/// The delays and NICs behind one bottleneck. `N` is the [`Sink::Note`] of its sink.
pub struct Propagation<N> {
    lines: Vec<Line<N>>,
    /// The least delay of a line; NEVER: there is none.
    least_delay_ns: u64,
    /// The line of each flow.
    line_of: Vec<u32>,
    due: Heap<Event>,
    /// Packets that keep no order.
    loose: Vec<Option<Passing<N>>>,
    free: Vec<u32>,
    nics: Nics<N>,
    /// Does each flow's delay stay as it is, and do all packets keep their order?
    is_steady: bool,
    /// What a NIC hands over, kept to spare allocations.
    batch: Vec<Passing<N>>,
}

impl<N: Copy> Propagation<N> {
    /// `coalesce_ns`: how long NICs gather packets before they interrupt.
    pub fn new(coalesce_ns: u64) -> Propagation<N> {
        Propagation {
            lines: Vec::new(),
            least_delay_ns: NEVER,
            line_of: Vec::new(),
            due: Heap::default(),
            loose: Vec::new(),
            free: Vec::new(),
            nics: Nics::new(coalesce_ns),
            is_steady: false,
            batch: Vec::new(),
        }
    }

    /// No flow's delay is set anew and no packet overtakes another, so that it is known what comes next to a NIC that one
    /// line leads to; before the first flow.
    pub fn stay(&mut self) {
        self.is_steady = true;
    }

    /// A flow's delay. Flows come in order of their index.
    pub fn add_flow(&mut self, delay_ns: u64) {
        let number = self.line(delay_ns);
        self.line_of.push(number);
        self.nics.add_flow();
    }

    /// The NIC of a flow's far host, which is here, before the flow's first packet: its number, and the place that it takes,
    /// which is free or its own.
    pub fn set_nic(&mut self, flow: u32, number: u32, place: u32) {
        self.nics.set(flow, number, place);
        let line = self.line_of[flow as usize];
        let is_first = self.nics.at_mut(place).join(line);
        match self.lines[line as usize].to {
            To::Nowhere if is_first && self.is_steady => {
                let next_interrupt_ns = self.nics.at(place).next_interrupt_ns;
                self.lines[line as usize].to = To::Only(place, next_interrupt_ns);
            }
            To::Only(only, _) if only == place => {}
            _ => self.share(line),
        }
        if let Some(only) = self.nics.at(place).line()
            && only != line
        {
            self.share(only);
            self.nics.at_mut(place).share();
        }
    }

    /// The flow's NIC has handed over all that came, and its place is another's from now on.
    pub fn free_nic(&mut self, flow: u32) {
        let place = self.nics.free(flow);
        let line = &mut self.lines[self.line_of[flow as usize] as usize];
        if let To::Only(only, _) = line.to
            && place == Some(only)
        {
            line.to = To::Nowhere;
        }
    }

    /// Another NIC is at the line's end, or another line at its NIC. What its NIC would find at the next interrupt is put
    /// there.
    fn share(&mut self, number: u32) {
        let line = &mut self.lines[number as usize];
        let was = std::mem::replace(&mut line.to, To::Several);
        let To::Only(place, next_interrupt_ns) = was else {
            return;
        };
        self.nics.at_mut(place).next_interrupt_ns = next_interrupt_ns;
        if line.trains.is_empty() {
            return;
        }
        let others = std::mem::take(&mut self.due).into_items();
        let when = line.when(line.next_ns());
        self.due.push(Event::new(when, Due::Line(number)));
        self.go_on(number, NONE);
        let others = others.into_iter();
        for event in others.filter(|event| event.due != Due::Only(number)) {
            self.due.push(event);
        }
    }

    /// From now on the flow's packets take this delay.
    pub fn set_delay(&mut self, flow: usize, delay_ns: u64) {
        debug_assert!(!self.is_steady, "delays stay as they are");
        self.line_of[flow] = self.line(delay_ns);
    }

    fn line(&mut self, delay_ns: u64) -> u32 {
        let line = self.lines.iter().position(|line| line.delay_ns == delay_ns);
        let line = line.unwrap_or_else(|| {
            self.least_delay_ns = self.least_delay_ns.min(delay_ns);
            self.lines.push(Line {
                delay_ns,
                latest_ns: 0,
                trains: HeadQueue::default(),
                to: To::Nowhere,
            });
            self.lines.len() - 1
        });
        line as u32
    }

    /// The delay of those flows whose packets arrive first.
    #[inline]
    pub fn least_delay_ns(&self) -> u64 {
        self.least_delay_ns
    }

    /// The delay of a flow's packets.
    #[inline]
    pub fn delay_ns(&self, flow: u32) -> u64 {
        self.lines[self.line_of[flow as usize] as usize].delay_ns
    }

    /// Packets leave the bottleneck, the first at that time, and take their delay, with nothing else in their way. Returns
    /// whether [`Self::next`] may have changed.
    #[inline(always)]
    pub fn pass(&mut self, at_ns: u64, every_ns: u64, passing: Passing<N>) -> bool {
        let number = self.line_of[passing.flow as usize];
        let arrives_ns = at_ns + self.lines[number as usize].delay_ns;
        self.line_up(number, arrives_ns, every_ns, passing)
    }

    /// A packet arrives then, or when the one before it does, if that is later.
    pub fn pass_in_order(&mut self, arrives_ns: u64, passing: Passing<N>) {
        let number = self.line_of[passing.flow as usize];
        let line = &mut self.lines[number as usize];
        line.latest_ns = line.latest_ns.max(arrives_ns);
        let arrives_ns = line.latest_ns;
        self.line_up(number, arrives_ns, 0, passing);
    }

    /// A packet that left the bottleneck at `at_ns` arrives then, whatever else does.
    pub fn pass_loose(&mut self, at_ns: u64, arrives_ns: u64, passing: Passing<N>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.loose.push(None);
            (self.loose.len() - 1) as u32
        });
        self.loose[place as usize] = Some(passing);
        let when = When::new(arrives_ns, at_ns);
        self.due.push(Event::new(when, Due::Loose(place)));
    }

    /// Returns whether the line was empty.
    #[inline(always)]
    fn line_up(&mut self, number: u32, at_ns: u64, every_ns: u64, passing: Passing<N>) -> bool {
        let arriving = Arriving {
            at_ns,
            every_ns,
            passing,
        };
        let line = &mut self.lines[number as usize];
        let begins = line.trains.is_empty();
        line.trains.push(arriving);
        if begins {
            self.begin(number, at_ns);
        }
        begins
    }

    /// Something arrives then on a line that was empty.
    #[inline(never)]
    fn begin(&mut self, number: u32, at_ns: u64) {
        let line = &self.lines[number as usize];
        let (when, due) = match line.to {
            To::Only(_, next_ns) => (line.wakes(next_ns, at_ns), Due::Only(number)),
            _ => (line.when(at_ns), Due::Line(number)),
        };
        self.due.push(Event::new(when, due));
    }

    /// When something happens next.
    #[inline]
    pub fn next(&self) -> When {
        self.due.first().map_or(When::NEVER, |event| event.when)
    }

    /// Does the one thing that is due at [`Self::next`].
    pub fn step(&mut self, sink: &mut impl Sink<Note = N>) {
        let Some(&Event { when, due }) = self.due.first() else {
            return;
        };
        let at_ns = when.at_ns();
        // In parts, so that all stay in registers: a whole packet that was written in parts is slow to load.
        let parts =
            |(of, is_only): (Passing<N>, bool)| (of.flow, of.handle, of.pkts, of.note, is_only);
        let (flow, handle, pkts, note, is_only) = match due {
            Due::Only(number) => parts(self.interrupt_only(at_ns, number)),
            Due::Line(number) => parts(self.arrive(at_ns, number, sink)),
            Due::Loose(place) => parts(self.arrive_loose(at_ns, place)),
            Due::Interrupt(_, place) => {
                self.due.remove_first();
                self.nics.interrupt(at_ns, place, &mut self.batch);
                return self.hand_over(at_ns, sink);
            }
        };
        let first = Passing {
            flow,
            handle,
            pkts,
            note,
        };
        match is_only {
            true => sink.arrived(at_ns, &[first]),
            false => self.hand_over(at_ns, sink),
        }
    }

    /// Several packets arrive together, if any do.
    #[inline(never)]
    fn hand_over(&mut self, at_ns: u64, sink: &mut impl Sink<Note = N>) {
        if !self.batch.is_empty() {
            sink.arrived(at_ns, &self.batch);
            self.batch.clear();
        }
    }

    /// The first packet of a line arrives. Does its NIC hand it over at once?
    #[inline(always)]
    fn arrive(
        &mut self,
        at_ns: u64,
        number: u32,
        sink: &mut impl Sink<Note = N>,
    ) -> (Passing<N>, bool) {
        let line = &mut self.lines[number as usize];
        line.announce(&self.nics, sink);
        let passing = line.take(1);
        let (through, wakes) = self.nics.reach(at_ns, passing);
        self.go_on(number, wakes);
        (passing, through)
    }

    #[inline(never)]
    fn arrive_loose(&mut self, at_ns: u64, place: u32) -> (Passing<N>, bool) {
        self.due.remove_first();
        self.free.push(place);
        let found = self.loose[place as usize].take();
        let passing = found.expect("its place holds it until it arrives");
        let (through, wakes) = self.nics.reach(at_ns, passing);
        if wakes != NONE {
            self.due.push(self.interrupt_at(wakes));
        }
        (passing, through)
    }

    /// The NIC interrupts that this line alone leads to, for one packet at once or for all that have arrived. The first is
    /// returned: is it the only one? Several are in the batch.
    #[inline(always)]
    fn interrupt_only(&mut self, at_ns: u64, number: u32) -> (Passing<N>, bool) {
        let line = &mut self.lines[number as usize];
        let To::Only(_, next_interrupt_ns) = &mut line.to else {
            unreachable!("a line that leads elsewhere has no such event");
        };
        *next_interrupt_ns = self.nics.after_interrupt(at_ns);
        let next_interrupt_ns = *next_interrupt_ns;
        let at_once = line.next_ns() == at_ns;
        let first = match at_once {
            true => line.take(1),
            false => line.take_until(at_ns),
        };
        // Mostly there is no other train.
        let mut next_ns = line.next_ns();
        let is_only = at_once || next_ns > at_ns;
        if !is_only {
            self.batch.push(first);
            while next_ns <= at_ns {
                self.batch.push(line.take_until(at_ns));
                next_ns = line.next_ns();
            }
        }
        match unlikely(next_ns == NEVER) {
            true => self.due.remove_first(),
            false => {
                let when = line.wakes(next_interrupt_ns, next_ns);
                self.due.replace_first(Event::new(when, Due::Only(number)));
            }
        }
        (first, is_only)
    }

    /// A line's head was the first that is due, and has changed. Packets that would only wait for a later interrupt go to
    /// their NIC now, unless another line could interleave, which saves one event per packet. `wakes`: the place of a NIC whose interrupt is due besides; NONE: there is none.
    #[inline(always)]
    fn go_on(&mut self, number: u32, mut wakes: u32) {
        let line = &mut self.lines[number as usize];
        let mut next = None;
        while let Some(front) = line.trains.first() {
            if let Some(place) = self.nics.place(front.passing.flow)
                && let nic = self.nics.at(place)
                && nic.line().is_some()
            {
                let (at_ns, until_ns) = (front.at_ns, nic.next_interrupt_ns);
                let is_first = nic.is_empty();
                let sleeps = match is_first {
                    false => at_ns <= until_ns,
                    // It is the first for which this NIC will wake, if no other line's packet comes before it.
                    true => at_ns < until_ns && self.is_steady && wakes == NONE,
                };
                if sleeps {
                    if is_first {
                        wakes = place;
                    }
                    let pkts = front.until(until_ns);
                    self.nics.hold(place, line.take(pkts));
                    continue;
                }
            }
            next = Some(line.when(front.at_ns));
            break;
        }
        // What comes takes the place of what was due, in one go.
        match next {
            Some(when) => {
                self.due.replace_first(Event::new(when, Due::Line(number)));
                if wakes != NONE {
                    self.due.push(self.interrupt_at(wakes));
                }
            }
            None if wakes != NONE => self.due.replace_first(self.interrupt_at(wakes)),
            None => self.due.remove_first(),
        }
    }

    /// The next interrupt of the NIC at this place.
    #[inline]
    fn interrupt_at(&self, place: u32) -> Event {
        let nic = self.nics.at(place);
        let when = When::last_at(nic.next_interrupt_ns);
        Event::new(when, Due::Interrupt(nic.number, place))
    }

    /// All that is under way, for a final account: of a train, the first packets first.
    pub fn drain(&mut self) -> Vec<Passing<N>> {
        self.due.clear();
        self.free.clear();
        let pending = self.nics.drain();
        let lines = self.lines.iter_mut();
        let lines = lines.flat_map(|line| line.trains.drain());
        let under_way = lines.map(|arriving| arriving.passing);
        let loose = self.loose.drain(..).flatten();
        pending.chain(under_way).chain(loose).collect()
    }
}
