//! Sets of sequence numbers as disjoint ranges.

use std::collections::BTreeMap;

/// Ranges `from..to`; those that touch are one.
#[derive(Default)]
pub struct Ranges {
    ranges: BTreeMap<u64, u64>,
    bytes: u64,
}

impl Ranges {
    /// The sum of their lengths.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Adds a range, and tells in `new` which parts of it were not in the set.
    pub fn insert(&mut self, from: u64, to: u64, new: &mut Vec<(u64, u64)>) {
        new.clear();
        if from >= to {
            return;
        }
        let (mut start, mut end, mut next) = (from, to, from);
        if let Some((&before, &before_end)) = self.ranges.range(..from).next_back()
            && before_end >= from
        {
            (start, end) = (before, end.max(before_end));
            next = next.max(before_end);
        }
        while let Some((&other, &other_end)) = self.ranges.range(from..=to).next() {
            if next < other {
                new.push((next, other));
            }
            next = next.max(other_end);
            end = end.max(other_end);
            self.ranges.remove(&other);
        }
        if next < to {
            new.push((next, to));
        }
        self.ranges.insert(start, end);
        self.bytes += new.iter().map(|(from, to)| to - from).sum::<u64>();
    }

    /// Is all of `from..to` in the set?
    pub fn covers(&self, from: u64, to: u64) -> bool {
        (self.ranges.range(..=from).next_back()).is_some_and(|(_, &end)| end >= to)
    }

    /// Takes out what is below `floor`.
    pub fn remove_below(&mut self, floor: u64) {
        while let Some((&from, &to)) = self.ranges.first_key_value() {
            if from >= floor {
                return;
            }
            self.ranges.pop_first();
            self.bytes -= to.min(floor) - from;
            if to > floor {
                self.ranges.insert(floor, to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_numbers(
            steps in prop::collection::vec((0u64..60, 0u64..60, any::<bool>()), 0..60),
        ) {
            let (mut ranges, mut set, mut new) = (Ranges::default(), BTreeSet::new(), Vec::new());
            for (from, to, adds) in steps {
                if adds {
                    ranges.insert(from, to, &mut new);
                    let expected: BTreeSet<u64> = (from..to).filter(|n| !set.contains(n)).collect();
                    let told: BTreeSet<u64> = new.iter().flat_map(|&(a, b)| a..b).collect();
                    prop_assert_eq!(&told, &expected);
                    set.extend(expected);
                } else {
                    ranges.remove_below(from);
                    set.retain(|&n| n >= from);
                }
                prop_assert_eq!(ranges.bytes(), set.len() as u64);
                prop_assert!(from >= to || ranges.covers(from, to) == (from..to).all(|n| set.contains(&n)));
                let edges = set.iter().filter(|&&n| n == 0 || !set.contains(&(n - 1))).count();
                prop_assert_eq!(ranges.len(), edges, "ranges that touch are one");
            }
        }
    }
}
