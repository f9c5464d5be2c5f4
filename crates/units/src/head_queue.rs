//! First in, first out, with the head at hand.

use std::collections::VecDeque;

/// A queue whose first item lies beside the others: it is looked at and changed several times before it goes, and a queue of
/// one item costs no more than that item.
#[derive(Clone, Debug)]
pub struct HeadQueue<T> {
    /// `None`: the queue is empty.
    first: Option<T>,
    rest: VecDeque<T>,
}

impl<T> Default for HeadQueue<T> {
    fn default() -> HeadQueue<T> {
        HeadQueue {
            first: None,
            rest: VecDeque::new(),
        }
    }
}

impl<T> HeadQueue<T> {
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
        self.rest.get(between)
    }

    /// Behind all others.
    #[inline]
    pub fn push(&mut self, item: T) {
        match self.first {
            None => self.first = Some(item),
            Some(_) => self.rest.push_back(item),
        }
    }

    /// The first goes.
    #[inline]
    pub fn remove_first(&mut self) {
        self.first = match self.rest.is_empty() {
            true => None,
            false => self.rest.pop_front(),
        };
    }

    /// Takes all of them, in their order.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.first.take().into_iter().chain(self.rest.drain(..))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a queue that has them all in one place.
        #[test]
        fn what_came_first_goes_first(ops in prop::collection::vec((0u8..3, 0u32..1_000), 0..200)) {
            let (mut queue, mut model) = (HeadQueue::default(), VecDeque::new());
            for (op, item) in ops {
                match op {
                    0 => {
                        queue.remove_first();
                        model.pop_front();
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
                prop_assert_eq!(queue.is_empty(), model.is_empty());
            }
            let drained: Vec<u32> = queue.drain().collect();
            prop_assert_eq!(drained, Vec::from(model));
            prop_assert!(queue.is_empty());
        }
    }
}
