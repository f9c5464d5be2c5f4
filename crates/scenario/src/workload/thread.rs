//! Threads of a server: what one does for a connection, another of its connections waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use knee_units::Nanos;

/// A thread, which does one thing at a time in the order in which it was asked. Connections that it serves share it.
#[derive(Clone, Debug, Default)]
pub struct Thread(Arc<AtomicU64>);

impl Thread {
    /// Asks for so much of its time; returns when that will be done.
    pub fn work(&self, now: Nanos, time: Nanos) -> Nanos {
        let begins = now.max(Nanos(self.0.load(Ordering::Relaxed)));
        let done = begins + time;
        self.0.store(done.0, Ordering::Relaxed);
        done
    }
}

/// Which of so many threads serves a connection, from its place among those of its `[[flow]]`.
pub fn in_turn(place: u32, threads: u32) -> usize {
    (place % threads.max(1)) as usize
}
