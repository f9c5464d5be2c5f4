//! How long each flow takes behind each hop of a direction, also while routes change.

use std::ops::{Range, RangeInclusive};

use knee_units::{NEVER, Nanos};

use crate::way::Direction;
use crate::{Path, last_legs};

/// The lengths of a direction's hops.
pub(crate) struct Routes {
    direction: Direction,
    /// In the data's order.
    hops: Vec<Path>,
    /// The hops that each flow crosses, and its base round-trip time.
    flows: Vec<(Range<usize>, Nanos)>,
    /// Every hop's changes, in order of time.
    changes: Vec<(u64, usize)>,
    /// How many have been.
    changed: usize,
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
        Routes {
            direction,
            hops: hops.iter().map(|&hop| hop.clone()).collect(),
            flows: Vec::new(),
            changes,
            changed: 0,
        }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// When a hop changes its length next; `u64::MAX`: none does.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.changes
            .get(self.changed)
            .map_or(NEVER, |&(at_ns, _)| at_ns)
    }

    /// The pipes that the flow passes, and its delay behind each pipe of the direction.
    pub(crate) fn add_flow(
        &mut self,
        hops: Range<usize>,
        rtt: Nanos,
    ) -> (RangeInclusive<usize>, Vec<Nanos>) {
        let stretch = match self.direction {
            Direction::Forward => hops.start..=hops.end - 1,
            Direction::Back => self.hops.len() - hops.end..=self.hops.len() - 1 - hops.start,
        };
        self.flows.push((hops, rtt));
        (stretch, self.delays(self.flows.len() - 1))
    }

    /// Makes the changes that are due at `now_ns`; every flow's delays from then on.
    pub(crate) fn change(&mut self, now_ns: u64) -> Vec<Vec<Nanos>> {
        while self.next_ns() <= now_ns {
            self.changed += 1;
        }
        (0..self.flows.len())
            .map(|flow| self.delays(flow))
            .collect()
    }

    /// A flow's present delay behind each pipe.
    fn delays(&self, flow: usize) -> Vec<Nanos> {
        let (crossed, rtt) = &self.flows[flow];
        let rtts: Vec<Nanos> = self.hops.iter().map(|hop| hop.rtt).collect();
        let [data_end, ack_end] = last_legs(&rtts, crossed.clone(), *rtt);
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
