//! A receive queue of a NIC: its descriptors, and whether it interrupts or is polled.

use std::collections::VecDeque;

/// What waits in a queue's descriptors: entries of one or more packets, each of which takes one.
#[derive(Debug)]
pub struct Ring<P> {
    entries: VecDeque<(P, u32)>,
    descriptors: u32,
    used: u32,
    /// Is its NAPI scheduled, so that it does not interrupt?
    pub polled: bool,
}

impl<P> Ring<P> {
    pub fn new(descriptors: u32) -> Ring<P> {
        Ring {
            entries: VecDeque::new(),
            descriptors,
            used: 0,
            polled: false,
        }
    }

    /// How many of `pkts` further packets find a descriptor. The others are lost.
    pub fn room(&self, pkts: u32) -> u32 {
        pkts.min(self.descriptors - self.used)
    }

    /// Packets for which there is [`Ring::room`]. True: the queue interrupts for them.
    pub fn push(&mut self, entry: P, pkts: u32) -> bool {
        self.used += pkts;
        self.entries.push_back((entry, pkts));
        let interrupts = !self.polled;
        self.polled = true;
        interrupts
    }

    /// How many descriptors are taken.
    pub fn used(&self) -> u32 {
        self.used
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// One poll of up to `weight` packets: whole entries, and of the last as many packets as may be, which `cut` makes an
    /// entry of their own. Returns how many packets it were.
    pub fn poll(
        &mut self,
        weight: u32,
        into: &mut Vec<P>,
        mut cut: impl FnMut(&mut P, u32) -> P,
    ) -> u32 {
        let mut left = weight;
        while left > 0
            && let Some((entry, pkts)) = self.entries.front_mut()
        {
            if *pkts <= left {
                left -= *pkts;
                into.extend(self.entries.pop_front().map(|(entry, _)| entry));
            } else {
                *pkts -= left;
                into.push(cut(entry, left));
                left = 0;
            }
        }
        let pkts = weight - left;
        self.used -= pkts;
        pkts
    }

    /// All that waits, for a final account.
    pub fn drain(&mut self) -> impl Iterator<Item = P> + '_ {
        self.used = 0;
        self.entries.drain(..).map(|(entry, _)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets `from..to`.
    type Packets = (u32, u32);

    fn cut(packets: &mut Packets, pkts: u32) -> Packets {
        let first = (packets.0, packets.0 + pkts);
        packets.0 += pkts;
        first
    }

    #[test]
    fn a_full_ring_takes_no_more() {
        let mut ring = Ring::new(4);
        assert_eq!(ring.room(3), 3);
        assert!(ring.push((0, 3), 3));
        assert_eq!(ring.room(3), 1);
        assert!(!ring.push((3, 4), 1));
        assert_eq!(ring.room(1), 0);
    }

    #[test]
    fn a_poll_takes_its_weight_and_cuts_the_last_entry() {
        let mut ring = Ring::new(100);
        ring.push((0, 10), 10);
        ring.push((10, 30), 20);
        let mut taken = Vec::new();
        assert_eq!(ring.poll(16, &mut taken, cut), 16);
        assert_eq!(taken, [(0, 10), (10, 16)]);
        taken.clear();
        assert_eq!(ring.poll(16, &mut taken, cut), 14);
        assert_eq!(taken, [(16, 30)]);
        assert!(ring.is_empty() && ring.room(200) == 100);
    }
}
