//! A generator's clock.

use std::cell::Cell;
use std::time::Duration;

use knee_clock::monotonic_ns;
use knee_units::Nanos;

/// What time it is for a generator. Where the kernel's clock is virtual it stands still between two waits, and reading it
/// is a system call: there it is read once after each wait.
pub struct Clock {
    is_virtual: bool,
    held: Cell<Option<Nanos>>,
}

impl Clock {
    pub fn new(is_virtual: bool) -> Clock {
        Clock {
            is_virtual,
            held: Cell::new(None),
        }
    }

    /// The time of CLOCK_MONOTONIC.
    pub fn now(&self) -> Nanos {
        if let Some(now) = self.held.get() {
            return now;
        }
        let now = Nanos(monotonic_ns());
        self.held.set(self.is_virtual.then_some(now));
        now
    }

    /// Notes that time may have passed.
    pub fn waited(&self) {
        self.held.set(None);
    }

    /// Keeps the processor busy until then, as an application does that computes. A virtual clock would stand still meanwhile.
    pub fn compute(&self, until: Nanos) {
        if self.is_virtual {
            std::thread::sleep(Duration::from_nanos(until.saturating_sub(self.now()).0));
            self.waited();
        }
        while self.now() < until {
            std::hint::spin_loop();
        }
    }
}
