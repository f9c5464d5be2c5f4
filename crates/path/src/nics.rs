//! The far hosts' NICs behind a pipe: each gathers what arrives until it interrupts.

use crate::pipe::Passing;

/// The NICs behind a pipe, and which of them each flow's far host has.
pub(crate) struct Nics<N> {
    list: Vec<Nic>,
    /// The place of each flow's in that list; `None`: it is not behind this pipe, and packets go on at once.
    place_of: Vec<Option<u32>>,
    coalesce_ns: u64,
    /// What NICs have gathered. There are as many as have ever waited at a time: an idle NIC has none.
    gathered: Vec<Vec<Passing<N>>>,
    /// Those that are empty.
    spare: Vec<u32>,
}

/// A far host's NIC.
#[derive(Clone, Copy)]
struct Nic {
    /// Of those that interrupt at one instant, and wait since the same, the lowest is first.
    number: u32,
    /// Which of the lists holds what it has gathered; NONE: nothing.
    pending: u32,
    /// No interrupt before this: the last one plus the moderation interval.
    next_interrupt_ns: u64,
}

/// "No list".
const NONE: u32 = u32::MAX;

/// What becomes of a packet at the end of a pipe.
pub(crate) enum Reached {
    /// It goes on at once.
    Through,
    /// It waits for an interrupt that is due already.
    Waits,
    /// It waits for an interrupt at that time, of the NIC of this number and place.
    WaitsUntil(u64, u32, u32),
}

impl<N: Copy> Nics<N> {
    /// `coalesce_ns`: how long they gather packets before they interrupt.
    pub(crate) fn new(coalesce_ns: u64) -> Nics<N> {
        Nics {
            list: Vec::new(),
            place_of: Vec::new(),
            coalesce_ns,
            gathered: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// A further flow, which has none yet.
    pub(crate) fn add_flow(&mut self) {
        self.place_of.push(None);
    }

    /// The NIC of a flow's far host: its number, and the place that it takes, which another had before it.
    pub(crate) fn set(&mut self, flow: u32, number: u32, place: u32) {
        self.place_of[flow as usize] = Some(place);
        let least = place as usize + 1;
        if self.list.len() < least {
            let idle = Nic {
                number,
                pending: NONE,
                next_interrupt_ns: 0,
            };
            self.list.resize(least, idle);
        }
        self.list[place as usize].number = number;
    }

    /// The flow's NIC has handed over all that came, and its place is another's from now on.
    pub(crate) fn free(&mut self, flow: u32) {
        if let Some(place) = self.place_of[flow as usize].take() {
            self.list[place as usize].next_interrupt_ns = 0;
        }
    }

    /// A packet arrives. A NIC that has not interrupted for the moderation interval does so at once; else packets wait for the
    /// interval's end.
    #[inline]
    pub(crate) fn reach(&mut self, at_ns: u64, passing: Passing<N>) -> Reached {
        let Some(place) = self.place_of[passing.flow as usize] else {
            return Reached::Through;
        };
        let nic = &mut self.list[place as usize];
        if nic.pending != NONE {
            self.gathered[nic.pending as usize].push(passing);
            return Reached::Waits;
        }
        if at_ns >= nic.next_interrupt_ns {
            nic.next_interrupt_ns = at_ns + self.coalesce_ns;
            return Reached::Through;
        }
        nic.pending = self.spare.pop().unwrap_or_else(|| {
            self.gathered.push(Vec::new());
            (self.gathered.len() - 1) as u32
        });
        self.gathered[nic.pending as usize].push(passing);
        Reached::WaitsUntil(nic.next_interrupt_ns, nic.number, place)
    }

    /// Takes a packet that will arrive then, if it would be found only by an interrupt that is already due.
    #[inline]
    pub(crate) fn gather(&mut self, at_ns: u64, passing: Passing<N>) -> bool {
        let Some(place) = self.place_of[passing.flow as usize] else {
            return false;
        };
        let nic = self.list[place as usize];
        let sleeps = nic.pending != NONE && at_ns <= nic.next_interrupt_ns;
        if sleeps {
            self.gathered[nic.pending as usize].push(passing);
        }
        sleeps
    }

    /// The NIC at this place interrupts and hands over what it has gathered.
    #[inline]
    pub(crate) fn interrupt(
        &mut self,
        at_ns: u64,
        place: u32,
        hand_over: impl FnOnce(&[Passing<N>]),
    ) {
        let nic = &mut self.list[place as usize];
        nic.next_interrupt_ns = at_ns + self.coalesce_ns;
        let list = std::mem::replace(&mut nic.pending, NONE);
        let batch = &mut self.gathered[list as usize];
        hand_over(batch);
        batch.clear();
        self.spare.push(list);
    }

    /// Everything that they have gathered, for a final account.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Passing<N>> {
        self.gathered.iter_mut().flat_map(|list| list.drain(..))
    }
}
