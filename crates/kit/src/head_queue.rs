//! First in, first out, with the head at hand.

use crate::odds::unlikely;

/// A queue whose first item lies beside the others: it is looked at and changed several times before it goes, and a queue of
/// one item costs no more than that item.
#[derive(Clone, Debug)]
pub struct HeadQueue<T> {
    /// `None`: the queue is empty.
    first: Option<T>,
    /// A ring of the others: places that are a power of two, ...
    ring: Vec<T>,
    /// ... the place of the oldest, ...
    oldest: usize,
    /// ... and how many they are.
    others: usize,
}

impl<T> Default for HeadQueue<T> {
    fn default() -> HeadQueue<T> {
        HeadQueue {
            first: None,
            ring: Vec::new(),
            oldest: 0,
            others: 0,
        }
    }
}

impl<T: Copy> HeadQueue<T> {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub fn first(&self) -> Option<&T> {
        self.first.as_ref()
    }

    #[inline]
    pub fn first_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    /// The one behind the first and `between` others.
    #[inline]
    pub fn behind_first(&self, between: usize) -> Option<&T> {
        (between < self.others).then(|| &self.ring[self.place(between)])
    }

    /// Behind all others.
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        if unlikely(self.first.is_none()) {
            self.first = Some(item);
            return;
        }
        if self.others == self.ring.len() {
            self.grow();
        }
        let place = self.place(self.others);
        self.ring[place] = item;
        self.others += 1;
    }

    /// Before all others.
    pub fn push_first(&mut self, item: T) {
        let Some(before) = self.first.replace(item) else {
            return;
        };
        if self.others == self.ring.len() {
            self.grow();
        }
        self.oldest = self.oldest.wrapping_sub(1) & (self.ring.len() - 1);
        self.ring[self.oldest] = before;
        self.others += 1;
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        match self.first {
            None => 0,
            Some(_) => 1 + self.others,
        }
    }

    /// How many there are behind the first.
    #[inline]
    pub fn others(&self) -> usize {
        self.others
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let first = self.first;
        self.remove_first();
        first
    }

    /// The first goes.
    #[inline]
    pub fn remove_first(&mut self) {
        if self.others == 0 {
            self.first = None;
            return;
        }
        self.first = Some(self.ring[self.oldest]);
        self.oldest = self.place(1);
        self.others -= 1;
    }

    /// Takes all of them, in their order.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        std::iter::from_fn(|| self.pop())
    }

    /// The place in the ring of the item with this index, counted from the first.
    #[inline]
    fn place(&self, before: usize) -> usize {
        (self.oldest + before) & self.ring.len().wrapping_sub(1)
    }

    /// The ring is full: it gets twice the places, which are filled with anything. What is to be pushed is not, since it would
    /// then have to lie in memory each time, and be copied from there.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.ring.rotate_left(self.oldest);
        self.oldest = 0;
        let with = self.first.expect("there is a first before others");
        self.ring.resize((2 * self.others).max(4), with);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a queue that has them all in one place.
        #[test]
        fn what_came_first_goes_first(ops in prop::collection::vec((0u8..4, 0u32..1_000), 0..200)) {
            let (mut queue, mut model) = (HeadQueue::default(), VecDeque::new());
            for (op, item) in ops {
                match op {
                    0 => {
                        prop_assert_eq!(queue.pop(), model.pop_front());
                    }
                    3 => {
                        queue.push_first(item);
                        model.push_front(item);
                    }
                    1 => {
                        queue.push(item);
                        model.push_back(item);
                    }
                    _ => {
                        if let (Some(a), Some(b)) = (queue.first_mut(), model.front_mut()) {
                            *a += 1;
                            *b += 1;
                        }
                    }
                }
                prop_assert_eq!(queue.first(), model.front());
                prop_assert_eq!(queue.behind_first(1), model.get(2));
                prop_assert_eq!((queue.is_empty(), queue.len()), (model.is_empty(), model.len()));
            }
            let drained: Vec<u32> = queue.drain().collect();
            prop_assert_eq!(drained, Vec::from(model));
            prop_assert!(queue.is_empty());
        }
    }
}
