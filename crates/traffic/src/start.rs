//! When a run begins. Its processes say that they are ready, and then get the time.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::shared::zeros;

/// How often who waits looks.
const LOOK_MS: u8 = 1;
/// Later than any time, and room for lengths of time behind it: nothing begins then.
const NEVER_NS: u64 = u64::MAX / 2;

#[derive(Default)]
struct Told {
    /// Who is there and waits, or went on.
    there: AtomicU32,
    /// By CLOCK_MONOTONIC; 0: not told yet.
    at_ns: AtomicU64,
}

/// A run's beginning, shared by the threads, and by the processes forked after it was made.
#[derive(Clone, Copy, Debug)]
pub struct Start(NonNull<Told>);

// SAFETY: all access to the memory is atomic.
unsafe impl Send for Start {}
// SAFETY: as above.
unsafe impl Sync for Start {}

impl Start {
    /// Memory for one; it stays until the process ends.
    pub fn new() -> io::Result<Start> {
        Ok(Start(zeros(1)?))
    }

    fn told(&self) -> &Told {
        // SAFETY: the mapping is never unmapped; zeros are valid atomics, and all access is atomic.
        unsafe { self.0.as_ref() }
    }

    /// Everybody may go on to that time.
    pub fn tell(&self, at_ns: u64) {
        self.told().at_ns.store(at_ns, Ordering::Release);
    }

    /// How many have come to [`wait`](Start::wait).
    pub fn there(&self) -> u32 {
        self.told().there.load(Ordering::Acquire)
    }

    /// The caller is there. Returns when the run begins; where one of `ends` is readable, a time that never comes, since
    /// what it tells ends the run.
    pub fn wait(&self, ends: &[BorrowedFd<'_>]) -> u64 {
        let told = self.told();
        told.there.fetch_add(1, Ordering::AcqRel);
        loop {
            let at_ns = told.at_ns.load(Ordering::Acquire);
            if at_ns > 0 {
                return at_ns;
            }
            let mut fds: Vec<PollFd<'_>> = ends
                .iter()
                .map(|&end| PollFd::new(end, PollFlags::POLLIN))
                .collect();
            if matches!(poll(&mut fds, PollTimeout::from(LOOK_MS)), Ok(1..)) {
                return NEVER_NS;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use nix::sys::eventfd::EventFd;

    use super::*;

    #[test]
    fn all_who_are_there_are_told_the_same_or_that_it_ends() {
        let (start, end) = (Start::new().unwrap(), EventFd::new().unwrap());
        std::thread::scope(|scope| {
            let waiting = [(); 3].map(|()| scope.spawn(|| start.wait(&[end.as_fd()])));
            while start.there() < 3 {
                std::thread::yield_now();
            }
            start.tell(7);
            assert_eq!(waiting.map(|thread| thread.join().unwrap()), [7; 3]);
        });
        let other = Start::new().unwrap();
        end.write(1).unwrap();
        assert_eq!(other.wait(&[end.as_fd()]), NEVER_NS);
    }
}
