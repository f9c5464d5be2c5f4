//! Memory for many values of one type, side by side, in large pages where the system has them.
//!
//! With thousands of values that come up in any order the processor has to look up where nearly each of them lies, which a
//! page of 2 MiB in the place of 4 KiB makes rare. Nothing else depends on it.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of a large page, of x86-64 and of most others.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Memory of a group of places, which the last of them gives back.
struct Group {
    begin: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it is memory that nobody reads through it; each place hands out its own part.
unsafe impl Send for Group {}
// SAFETY: as above.
unsafe impl Sync for Group {}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: it was allocated so, and no place is left.
        unsafe { dealloc(self.begin.as_ptr(), self.layout) }
    }
}

/// One value's part of the memory.
#[repr(C)]
struct Slot<T> {
    value: MaybeUninit<T>,
    group: Arc<Group>,
}

/// Room for one value.
pub struct Place<T>(NonNull<Slot<T>>);

// SAFETY: a place is the only one that refers to its part of the memory.
unsafe impl<T: Send> Send for Place<T> {}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        // SAFETY: the group was written when the place was made, and is not looked at any more.
        drop(unsafe { (&raw const (*self.0.as_ptr()).group).read() });
    }
}

/// A value in its place.
pub struct Placed<T>(Place<T>);

/// Room for so many values, in large pages if it takes one at least.
///
/// # Panics
/// There are none.
pub fn places<T: Send>(count: usize) -> impl Iterator<Item = Place<T>> + Send + use<T> {
    let layout = Layout::array::<Slot<T>>(count).expect("no memory is so large");
    assert!(count > 0, "somebody needs room");
    let is_large = layout.size() >= LARGE_PAGE_BYTES;
    let align = if is_large { LARGE_PAGE_BYTES } else { 1 };
    let layout = layout.align_to(align).expect("it is a power of two");
    // SAFETY: each slot has a size, that of its group at least.
    let Some(begin) = NonNull::new(unsafe { alloc(layout) }) else {
        handle_alloc_error(layout)
    };
    if is_large {
        ask_for_large_pages(begin, layout.size());
    }
    let group = Arc::new(Group { begin, layout });
    (0..count).map(move |n| {
        // SAFETY: the memory has room for `count`, and is aligned for them.
        let slot = unsafe { group.begin.cast::<Slot<T>>().add(n) };
        // SAFETY: as above; nobody else has this one.
        unsafe { (&raw mut (*slot.as_ptr()).group).write(Arc::clone(&group)) };
        Place(slot)
    })
}

/// A wish: who has none gives small ones.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(begin: NonNull<u8>, bytes: usize) {
    // SAFETY: the advice changes no content, and all of it is memory of ours.
    unsafe { libc::madvise(begin.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_begin: NonNull<u8>, _bytes: usize) {}

impl<T> Place<T> {
    pub fn put(mut self, value: T) -> Placed<T> {
        // SAFETY: this is the only one that refers to it.
        unsafe { self.0.as_mut() }.value.write(value);
        Placed(self)
    }
}

impl<T> Placed<T> {
    /// Drops the value.
    pub fn empty(self) -> Place<T> {
        let slot = self.0.0;
        std::mem::forget(self);
        let mut place = Place(slot);
        // SAFETY: a value was put there, and this was the only one that referred to it.
        unsafe { place.0.as_mut().value.assume_init_drop() };
        place
    }
}

impl<T> Drop for Placed<T> {
    fn drop(&mut self) {
        // SAFETY: as in `empty`.
        unsafe { self.0.0.as_mut().value.assume_init_drop() }
    }
}

impl<T> Deref for Placed<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: a value was put there, and it is lent as this one is.
        unsafe { self.0.0.as_ref().value.assume_init_ref() }
    }
}

impl<T> DerefMut for Placed<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { self.0.0.as_mut().value.assume_init_mut() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outlive_the_places_they_came_with_and_are_dropped_once() {
        let mut free = places::<Arc<u32>>(3);
        let value = Arc::new(7);
        let mut held: Vec<_> = free.by_ref().take(2).collect();
        drop(free);
        let first = held.remove(0).put(Arc::clone(&value));
        let second = held.remove(0).put(Arc::clone(&value));
        assert_eq!((**first, **second, Arc::strong_count(&value)), (7, 7, 3));
        let place = first.empty();
        assert_eq!(Arc::strong_count(&value), 2);
        let again = place.put(Arc::new(8));
        drop(second);
        assert_eq!((**again, Arc::strong_count(&value)), (8, 1));
    }

    #[test]
    fn many_lie_side_by_side_on_large_pages() {
        let held: Vec<_> = places::<[u64; 512]>(600)
            .map(|place| place.put([1; 512]))
            .collect();
        let address = |n: usize| std::ptr::from_ref(&*held[n]).addr();
        assert_eq!(address(0) % LARGE_PAGE_BYTES, 0);
        assert!((1..600).all(|n| address(n) == address(n - 1) + 4_104));
        assert!(held.iter().all(|value| value.iter().sum::<u64>() == 512));
    }
}
