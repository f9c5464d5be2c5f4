//! How long each flow takes behind each hop of a direction, also while routes change.

use std::ops::{Range, RangeInclusive};

use knee_units::{NEVER, Nanos};

use crate::{Direction, Path, last_legs};

/// The lengths of a direction's hops.
pub(crate) struct Routes {
    direction: Direction,
    /// In the data's order.
    hops: Vec<Path>,
    kinds: Vec<Kind>,
    /// Every hop's changes, in order of time.
    changes: Vec<(u64, usize)>,
    /// How many have been.
    changed: usize,
    /// When the next one is; NEVER: there is none.
    next_ns: u64,
}

/// Flows that take the same: flows are many, and these few.
struct Kind {
    /// The hops that they cross.
    hops: Range<usize>,
    /// Their base round-trip time.
    rtt: Nanos,
    /// Their present delay behind each pipe of the direction.
    delays: Vec<Nanos>,
}

impl Routes {
    /// `hops` in the data's order; `origin_ns`: the run's start on the engine's clock.
    pub(crate) fn new(hops: &[&Path], direction: Direction, origin_ns: u64) -> Routes {
        let changes = hops.iter().enumerate().flat_map(|(n, hop)| {
            let changes = hop.rtt_changes.iter();
            changes.map(move |change| (origin_ns + change.at.0, n))
        });
        let mut changes: Vec<(u64, usize)> = changes.collect();
        changes.sort_unstable();
        let next_ns = changes.first().map_or(NEVER, |&(at_ns, _)| at_ns);
        Routes {
            direction,
            hops: hops.iter().map(|&hop| hop.clone()).collect(),
            kinds: Vec::new(),
            changes,
            changed: 0,
            next_ns,
        }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// When a hop changes its length next; `u64::MAX`: none does.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// The number of the kind of flows that cross these hops and have this base round-trip time.
    pub(crate) fn kind(&mut self, hops: Range<usize>, rtt: Nanos) -> u32 {
        // That of the last flow, most of the time.
        let is_it = |kind: &Kind| kind.hops == hops && kind.rtt == rtt;
        let known = self.kinds.iter().rposition(is_it);
        known.unwrap_or_else(|| {
            let delays = self.compute_delays(&hops, rtt);
            self.kinds.push(Kind { hops, rtt, delays });
            self.kinds.len() - 1
        }) as u32
    }

    /// The pipes that flows of a kind pass.
    #[inline]
    pub(crate) fn stretch(&self, kind: u32) -> RangeInclusive<usize> {
        let hops = &self.kinds[kind as usize].hops;
        match self.direction {
            Direction::Forward => hops.start..=hops.end - 1,
            Direction::Back => self.hops.len() - hops.end..=self.hops.len() - 1 - hops.start,
        }
    }

    /// Their present delay behind each pipe.
    pub(crate) fn delays(&self, kind: u32) -> &[Nanos] {
        &self.kinds[kind as usize].delays
    }

    /// Makes the changes that are due at `now_ns`.
    pub(crate) fn change(&mut self, now_ns: u64) {
        self.changed = self.changes.partition_point(|&(at_ns, _)| at_ns <= now_ns);
        let next = self.changes.get(self.changed);
        self.next_ns = next.map_or(NEVER, |&(at_ns, _)| at_ns);
        for kind in 0..self.kinds.len() {
            let Kind { hops, rtt, .. } = &self.kinds[kind];
            self.kinds[kind].delays = self.compute_delays(hops, *rtt);
        }
    }

    fn compute_delays(&self, crossed: &Range<usize>, rtt: Nanos) -> Vec<Nanos> {
        let rtts: Vec<Nanos> = self.hops.iter().map(|hop| hop.rtt).collect();
        let [data_end, ack_end] = last_legs(&rtts, crossed.clone(), rtt);
        let (last, rest) = match self.direction {
            Direction::Forward => data_end,
            Direction::Back => ack_end,
        };
        let changes = &self.changes[..self.changed];
        let delay = |(n, hop): (usize, &Path)| {
            let rtt = if n == last { rest } else { hop.rtt };
            let changed = changes.iter().filter(|&&(_, at)| at == n).count();
            let [forward, back] = hop.delays(rtt, changed);
            match self.direction {
                Direction::Forward => forward,
                Direction::Back => back,
            }
        };
        let mut delays: Vec<Nanos> = self.hops.iter().enumerate().map(delay).collect();
        if self.direction == Direction::Back {
            delays.reverse();
        }
        delays
    }
}
