//! GRO's lists of a receive queue: the packets that it holds from packet to packet, and with a timeout from poll to poll.

use knee_host::hash;
use knee_scenario::GroTable;
use knee_tcp::segment::Segment;

use crate::event::EndpointId;

/// Lists of GRO's hash: GRO_HASH_BUCKETS.
const LISTS: u32 = 8;

/// Packets in the order in which they came, each in a list; a connection has one at most.
#[derive(Default)]
pub struct GroLists {
    /// Apart from the packets, so that a search touches little memory.
    keys: Vec<Key>,
    segments: Vec<Segment>,
    /// How many packets each list has.
    lengths: [u32; LISTS as usize],
}

#[derive(Clone, Copy)]
struct Key {
    of: EndpointId,
    list: u32,
    /// Of the host's clock, when it was put in.
    jiffy: u64,
}

impl GroLists {
    /// Packets that one list holds at most: MAX_GRO_SKBS.
    pub const LIST_MAX: u64 = 8;

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the list of a connection's packets.
    #[inline]
    pub fn list_of(of: EndpointId, table: GroTable) -> u32 {
        match table {
            GroTable::Hash => hash(of.flow()) % LISTS,
            GroTable::ShortList | GroTable::ShortListPassed | GroTable::List => 0,
        }
    }

    /// Counts the packets of a list.
    #[inline]
    pub fn length(&self, list: u32) -> u64 {
        self.lengths[list as usize].into()
    }

    /// Finds a connection's packet.
    #[inline]
    pub fn place(&self, of: EndpointId) -> Option<usize> {
        self.keys.iter().position(|key| key.of == of)
    }

    #[inline]
    pub fn at(&mut self, place: usize) -> &mut Segment {
        &mut self.segments[place]
    }

    pub fn push(&mut self, of: EndpointId, list: u32, jiffy: u64, segment: Segment) {
        self.keys.push(Key { of, list, jiffy });
        self.segments.push(segment);
        self.lengths[list as usize] += 1;
    }

    pub fn remove(&mut self, place: usize) -> (EndpointId, Segment) {
        let key = self.keys.remove(place);
        self.lengths[key.list as usize] -= 1;
        (key.of, self.segments.remove(place))
    }

    /// Takes out the packet that has been in that list for longest.
    pub fn remove_oldest(&mut self, list: u32) -> Option<(EndpointId, Segment)> {
        let place = self.keys.iter().position(|key| key.list == list)?;
        Some(self.remove(place))
    }

    /// Moves to `to` the packets whose jiffy `gives_up` accepts, the longest held first.
    pub fn give_up(&mut self, gives_up: impl Fn(u64) -> bool, to: &mut Vec<(EndpointId, Segment)>) {
        let mut place = 0;
        while let Some(key) = self.keys.get(place) {
            match gives_up(key.jiffy) {
                true => to.push(self.remove(place)),
                false => place += 1,
            }
        }
    }

    /// All of it, for a final account.
    pub fn drain(&mut self) -> impl Iterator<Item = (EndpointId, Segment)> + '_ {
        self.lengths = Default::default();
        let keys = self.keys.drain(..).map(|key| key.of);
        keys.zip(self.segments.drain(..))
    }
}
