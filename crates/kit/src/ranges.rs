//! A set of sequence ranges, kept sorted and merged: what SACK scoreboards and
//! reassembly queues are made of. Cost per change is logarithmic in the number
//! of ranges plus a short move, never in the window.

use crate::odds::likely;
use std::collections::VecDeque;

use crate::ahead;

/// Disjoint, non-adjacent half-open ranges in ascending order. A connection that has lost nothing yet has none, and it takes a
/// word.
#[derive(Clone, Debug, Default)]
pub struct RangeSet(Option<Box<Ranges>>);

#[derive(Clone, Debug, Default)]
struct Ranges {
    ranges: VecDeque<(u64, u64)>,
    /// Sum of the ranges' lengths.
    total: u64,
}

impl RangeSet {
    /// Asks for what tells whether it is empty.
    #[inline]
    pub fn fetch(&self) {
        if let Some(set) = &self.0 {
            ahead::fetch(&**set);
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Some(set) => likely(set.ranges.is_empty()),
            None => true,
        }
    }

    /// Those that there are, if any.
    #[inline]
    fn ranges(&self) -> Option<&VecDeque<(u64, u64)>> {
        let set = self.0.as_ref()?;
        (!likely(set.ranges.is_empty())).then_some(&set.ranges)
    }

    /// Numbers covered.
    #[inline]
    pub fn total(&self) -> u64 {
        self.0.as_ref().map_or(0, |set| set.total)
    }

    pub fn first(&self) -> Option<(u64, u64)> {
        self.ranges()?.front().copied()
    }

    pub fn last(&self) -> Option<(u64, u64)> {
        self.ranges()?.back().copied()
    }

    /// The range that holds `at`.
    pub fn containing(&self, at: u64) -> Option<(u64, u64)> {
        let ranges = self.ranges()?;
        let i = ranges.partition_point(|&(_, end)| end <= at);
        ranges.get(i).copied().filter(|&(start, _)| start <= at)
    }

    /// Adds `start..end`; `fresh` is told each part that was not covered
    /// before, in order. Returns the whole range that now holds it.
    pub fn insert(&mut self, start: u64, end: u64, fresh: impl FnMut(u64, u64)) -> (u64, u64) {
        self.0.get_or_insert_default().insert(start, end, fresh)
    }

    /// Removes everything below `below`.
    #[inline]
    pub fn remove_below(&mut self, below: u64) {
        if let Some(set) = &mut self.0 {
            set.remove_below(below);
        }
    }

    /// Removes `start..end`.
    #[inline]
    pub fn remove(&mut self, start: u64, end: u64) {
        if let Some(set) = &mut self.0 {
            set.remove(start, end);
        }
    }

    pub fn clear(&mut self) {
        if let Some(set) = &mut self.0 {
            set.ranges.clear();
            set.total = 0;
        }
    }
}

impl Ranges {
    fn insert(&mut self, start: u64, end: u64, mut fresh: impl FnMut(u64, u64)) -> (u64, u64) {
        debug_assert!(start < end, "an empty range is not inserted");
        // The common case: at or beyond the last range.
        let first = match self.ranges.back() {
            None => 0,
            Some(&(_, last_end)) if start > last_end => self.ranges.len(),
            Some(_) => self
                .ranges
                .partition_point(|&(_, range_end)| range_end < start),
        };
        let (mut low, mut high) = (start, end);
        let mut at = start;
        let mut beyond = first;
        while let Some(&(range_start, range_end)) = self.ranges.get(beyond) {
            if range_start > end {
                break;
            }
            if at < range_start {
                fresh(at, range_start);
                self.total += range_start - at;
            }
            at = at.max(range_end);
            low = low.min(range_start);
            high = high.max(range_end);
            beyond += 1;
        }
        if at < end {
            fresh(at, end);
            self.total += end - at;
        }
        if beyond == first {
            self.ranges.insert(first, (low, high));
        } else {
            self.ranges[first] = (low, high);
            self.ranges.drain(first + 1..beyond);
        }
        (low, high)
    }

    fn remove_below(&mut self, below: u64) {
        while let Some(front) = self.ranges.front_mut() {
            if front.0 >= below {
                return;
            }
            let cut = front.1.min(below);
            self.total -= cut - front.0;
            front.0 = cut;
            if front.0 < front.1 {
                return;
            }
            self.ranges.pop_front();
        }
    }

    fn remove(&mut self, start: u64, end: u64) {
        let mut i = self
            .ranges
            .partition_point(|&(_, range_end)| range_end <= start);
        while let Some(&(range_start, range_end)) = self.ranges.get(i) {
            if range_start >= end {
                return;
            }
            self.total -= range_end.min(end) - range_start.max(start);
            match (range_start < start, range_end > end) {
                (true, true) => {
                    self.ranges[i].1 = start;
                    self.ranges.insert(i + 1, (end, range_end));
                    return;
                }
                (true, false) => {
                    self.ranges[i].1 = start;
                    i += 1;
                }
                (false, true) => {
                    self.ranges[i].0 = end;
                    return;
                }
                (false, false) => {
                    self.ranges.remove(i);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against the plainest model: a set of numbers.
        #[test]
        fn behaves_as_a_set_of_numbers(ops in prop::collection::vec((0u8..3, 0u64..60, 1u64..12), 1..80)) {
            let mut ranges = RangeSet::default();
            let mut numbers = BTreeSet::new();
            for (op, start, len) in ops {
                match op {
                    0 => {
                        let mut fresh = Vec::new();
                        let (low, high) = ranges.insert(start, start + len, |a, b| fresh.extend(a..b));
                        let expected: Vec<u64> = (start..start + len).filter(|n| numbers.insert(*n)).collect();
                        prop_assert_eq!(fresh, expected);
                        prop_assert!((low..high).all(|n| numbers.contains(&n)));
                        prop_assert!(!numbers.contains(&high) && (low == 0 || !numbers.contains(&(low - 1))));
                    }
                    1 => {
                        ranges.remove_below(start);
                        numbers = numbers.split_off(&start);
                    }
                    _ => {
                        ranges.remove(start, start + len);
                        numbers.retain(|n| !(start..start + len).contains(n));
                    }
                }
                prop_assert_eq!(ranges.total(), numbers.len() as u64);
                let list: Vec<(u64, u64)> = ranges.ranges().into_iter().flatten().copied().collect();
                let covered: Vec<u64> = list.iter().flat_map(|&(a, b)| a..b).collect();
                prop_assert_eq!(&covered, &numbers.iter().copied().collect::<Vec<_>>());
                prop_assert!(list.is_sorted_by(|a, b| a.1 < b.0));
                prop_assert_eq!(ranges.is_empty(), list.is_empty());
                prop_assert_eq!(ranges.containing(start).is_some(), numbers.contains(&start));
            }
        }
    }
}
