//! The far hosts' NICs behind a pipe: each gathers what arrives until it interrupts.

use knee_kit::ahead;

use crate::sink::Passing;

/// The NICs behind a pipe, and which of them each flow's far host has.
pub(crate) struct Nics<N> {
    list: Vec<Nic>,
    /// The place of each flow's in that list; NONE: it is not behind this pipe, and packets go on at once.
    place_of: Vec<u32>,
    coalesce_ns: u64,
    /// What NICs have gathered. There are as many as have ever waited at a time: an idle NIC has none.
    gathered: Vec<Vec<Passing<N>>>,
    /// Those that are empty.
    spare: Vec<u32>,
}

/// A far host's NIC.
#[derive(Clone, Copy)]
pub(crate) struct Nic {
    /// Of those that interrupt at one instant, and wait since the same, the lowest is first.
    pub number: u32,
    /// Which of the lists holds what it has gathered; NONE: nothing.
    pending: u32,
    /// No interrupt before this: the last one plus the moderation interval.
    pub next_interrupt_ns: u64,
    /// The line that all its packets come from; NONE: there are several, FREE: none yet.
    line: u32,
}

/// "No place", "no list", "no line".
pub(crate) const NONE: u32 = u32::MAX;
const FREE: u32 = u32::MAX - 1;
/// From so many flows on, their NICs do not fit into the nearest cache.
const MANY: usize = 1 << 10;

impl Nic {
    const IDLE: Nic = Nic {
        number: 0,
        pending: NONE,
        next_interrupt_ns: 0,
        line: FREE,
    };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pending == NONE
    }

    /// The line that all its packets come from.
    #[inline]
    pub fn line(&self) -> Option<u32> {
        (self.line < FREE).then_some(self.line)
    }

    /// Packets come from this line, too; are they the first?
    pub fn join(&mut self, line: u32) -> bool {
        let is_first = self.line == FREE;
        if is_first {
            self.line = line;
        }
        is_first
    }

    /// Packets come from several lines.
    pub fn share(&mut self) {
        self.line = NONE;
    }
}

impl<N: Copy> Nics<N> {
    /// `coalesce_ns`: how long they gather packets before they interrupt.
    pub fn new(coalesce_ns: u64) -> Nics<N> {
        Nics {
            list: Vec::new(),
            place_of: Vec::new(),
            coalesce_ns,
            gathered: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// A further flow, which has none yet.
    pub fn add_flow(&mut self) {
        self.place_of.push(NONE);
    }

    /// The NIC of a flow's far host: its number, and the place that it takes, which another had before it.
    pub fn set(&mut self, flow: u32, number: u32, place: u32) {
        self.place_of[flow as usize] = place;
        let least = place as usize + 1;
        if self.list.len() < least {
            self.list.resize(least, Nic::IDLE);
        }
        self.list[place as usize].number = number;
    }

    /// The flow's NIC has handed over all that came, and its place, which is returned, is another's from now on.
    pub fn free(&mut self, flow: u32) -> Option<u32> {
        let place = self.place(flow)?;
        self.place_of[flow as usize] = NONE;
        self.list[place as usize] = Nic::IDLE;
        Some(place)
    }

    /// The place of the NIC of a flow's far host, if it is behind this pipe.
    #[inline]
    pub fn place(&self, flow: u32) -> Option<u32> {
        let place = self.place_of[flow as usize];
        (place != NONE).then_some(place)
    }

    /// Packets of this flow come soon, or next: asks for its NIC.
    #[inline]
    pub fn expects(&self, flow: u32, is_next: bool) {
        if self.place_of.len() < MANY {
            return;
        }
        match is_next {
            true => {
                if let Some(place) = self.place(flow) {
                    ahead::fetch(self.at(place));
                }
            }
            false => ahead::fetch(&self.place_of[flow as usize]),
        }
    }

    #[inline]
    pub fn at(&self, place: u32) -> &Nic {
        &self.list[place as usize]
    }

    #[inline]
    pub fn at_mut(&mut self, place: u32) -> &mut Nic {
        &mut self.list[place as usize]
    }

    /// When a NIC may interrupt again that does so now.
    #[inline]
    pub fn after_interrupt(&self, at_ns: u64) -> u64 {
        at_ns + self.coalesce_ns
    }

    /// It interrupts now.
    #[inline]
    fn interrupts(&mut self, place: u32, at_ns: u64) {
        self.list[place as usize].next_interrupt_ns = self.after_interrupt(at_ns);
    }

    /// Packets wait for the next interrupt. Those of a train are taken up one behind the other.
    #[inline]
    pub fn hold(&mut self, place: u32, passing: Passing<N>) {
        let nic = &mut self.list[place as usize];
        if nic.pending == NONE {
            nic.pending = self.spare.pop().unwrap_or_else(|| {
                self.gathered.push(Vec::new());
                (self.gathered.len() - 1) as u32
            });
        }
        let pending = &mut self.gathered[nic.pending as usize];
        match pending.last_mut() {
            Some(last) if last.handle == passing.handle => last.pkts += passing.pkts,
            _ => pending.push(passing),
        }
    }

    /// A packet arrives. A NIC that has not interrupted for the moderation interval does so at once; else packets wait for the
    /// interval's end. Returns whether the packet passes immediately, and the NIC's place if it is the first to wait (the
    /// caller then schedules the interrupt), else NONE.
    #[inline]
    pub fn reach(&mut self, at_ns: u64, passing: Passing<N>) -> (bool, u32) {
        let Some(place) = self.place(passing.flow) else {
            return (true, NONE);
        };
        let nic = self.at(place);
        let is_first = nic.is_empty();
        if is_first && at_ns >= nic.next_interrupt_ns {
            self.interrupts(place, at_ns);
            return (true, NONE);
        }
        self.hold(place, passing);
        (false, if is_first { place } else { NONE })
    }

    /// The NIC at this place interrupts and hands over what it has gathered, in the place of `batch`, which is empty.
    #[inline]
    pub fn interrupt(&mut self, at_ns: u64, place: u32, batch: &mut Vec<Passing<N>>) {
        self.interrupts(place, at_ns);
        let list = std::mem::replace(&mut self.at_mut(place).pending, NONE);
        std::mem::swap(batch, &mut self.gathered[list as usize]);
        self.spare.push(list);
    }

    /// Everything that they have gathered, for a final account.
    pub fn drain(&mut self) -> impl Iterator<Item = Passing<N>> {
        self.gathered.iter_mut().flat_map(|list| list.drain(..))
    }
}
