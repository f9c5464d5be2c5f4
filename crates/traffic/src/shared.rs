//! What the generators publish while they run, in memory that all processes of
//! a lab see.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};

/// One connection. Times are of CLOCK_MONOTONIC, 0: not yet.
#[derive(Debug, Default)]
pub struct Progress {
    /// Read in order by the application at the receiver's host.
    pub bytes_read: AtomicU64,
    pub opened_ns: AtomicU64,
    pub established_ns: AtomicU64,
    pub completed_ns: AtomicU64,
    pub closed_ns: AtomicU64,
}

impl Progress {
    /// Notes when something first happened.
    pub fn note(slot: &AtomicU64, now_ns: u64) {
        let _ = slot.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// When it happened, if it has.
    pub fn when(slot: &AtomicU64) -> Option<u64> {
        Some(slot.load(Ordering::Relaxed)).filter(|&ns| ns != 0)
    }
}

/// Zeros for that many values, in memory that all processes forked from now on see. It stays until the process ends.
pub(crate) fn zeros<T>(count: usize) -> io::Result<NonNull<T>> {
    let bytes = NonZeroUsize::new(count * size_of::<T>()).expect("not zero");
    // SAFETY: a fresh anonymous mapping, wherever the kernel puts it.
    let base = unsafe {
        mmap_anonymous(
            None,
            bytes,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_SHARED,
        )
    }?;
    Ok(base.cast())
}

/// One [`Progress`] per connection, shared by the processes forked after it was made.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    base: NonNull<Progress>,
    count: usize,
}

// SAFETY: all access to the memory is atomic.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Memory for that many connections; it stays until the process ends.
    pub fn new(count: usize) -> io::Result<Shared> {
        Ok(Shared {
            base: zeros(count.max(1))?,
            count,
        })
    }

    /// The connection with that flow number.
    pub fn get(&self, number: u32) -> &Progress {
        assert!((number as usize) < self.count, "a flow of this run");
        // SAFETY: within the mapping, which is never unmapped; zeros are valid
        // atomics, and all access is atomic.
        unsafe { self.base.add(number as usize).as_ref() }
    }
}
