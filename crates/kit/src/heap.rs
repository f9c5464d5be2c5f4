//! A queue of what is due, the least first.

use crate::odds::likely;

/// A heap of four children to a place: half as deep as one of two, and what it moves is small and copied.
///
/// It beats the standard library's where the least is mostly replaced, which is done in one go.
#[derive(Clone, Debug)]
pub struct Heap<T> {
    items: Vec<T>,
}

impl<T> Default for Heap<T> {
    fn default() -> Heap<T> {
        Heap { items: Vec::new() }
    }
}

const CHILDREN: usize = 4;

impl<T: Copy + Ord> Heap<T> {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn clear(&mut self) {
        self.items.clear();
    }

    /// All of them, in no order.
    pub fn into_items(self) -> Vec<T> {
        self.items
    }

    /// The least.
    #[inline]
    pub fn first(&self) -> Option<&T> {
        self.items.first()
    }

    #[inline]
    pub fn push(&mut self, item: T) {
        self.items.push(item);
        if self.items.len() > 1 {
            self.sift_up();
        }
    }

    /// The last may be less than others. It is compared where it lies, and copied only if it moves: its parts were written one
    /// by one just now, and to load it as a whole would wait for all of them.
    #[inline(never)]
    fn sift_up(&mut self) {
        let mut place = self.items.len() - 1;
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.items[parent] <= self.items[place] {
                break;
            }
            self.items.swap(place, parent);
            place = parent;
        }
    }

    /// Takes the least, which is lost.
    #[inline]
    pub fn remove_first(&mut self) {
        if let Some(last) = self.items.pop()
            && !self.items.is_empty()
        {
            self.replace_first(last);
        }
    }

    /// Puts another in the least one's place, which there must be.
    #[inline]
    pub fn replace_first(&mut self, item: T) {
        // It lies in its place where it is the only one, which is common.
        self.items[0] = item;
        if likely(self.items.len() > 1) {
            self.sift_down();
        }
    }

    /// The first may be greater than others. It is compared where it lies, as in [`Self::sift_up`].
    #[inline(never)]
    fn sift_down(&mut self) {
        let mut place = 0;
        loop {
            let begin = place * CHILDREN + 1;
            let end = (begin + CHILDREN).min(self.items.len());
            let Some(children) = self.items.get(begin..end) else {
                break;
            };
            let Some((mut least, rest)) = children.split_first() else {
                break;
            };
            let mut child = begin;
            for (n, other) in (begin + 1..).zip(rest) {
                if other < least {
                    (child, least) = (n, other);
                }
            }
            if self.items[place] <= *least {
                break;
            }
            self.items.swap(place, child);
            place = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set that is kept in order.
        #[test]
        fn the_least_comes_first(ops in prop::collection::vec((0u8..4, 0u32..1_000), 0..200)) {
            let mut heap = Heap::default();
            let mut set = BTreeSet::new();
            for (number, (op, key)) in (0u32..).zip(ops) {
                let item = (key, number);
                match op {
                    0 => {
                        heap.remove_first();
                        set.pop_first();
                    }
                    1 if !heap.is_empty() => {
                        heap.replace_first(item);
                        set.pop_first();
                        set.insert(item);
                    }
                    _ => {
                        heap.push(item);
                        set.insert(item);
                    }
                }
                prop_assert_eq!(heap.first(), set.first());
                prop_assert_eq!(heap.len(), set.len());
            }
        }
    }
}
