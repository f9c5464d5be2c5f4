//! What the algorithms of a run are doing, for one who tells of a crash.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use crate::algorithm::{Algorithm, algorithms};
use crate::file;

/// The function of an algorithm that is under way. A signal handler of the thread that called it may ask.
#[derive(Debug, Default)]
pub struct UnderWay {
    /// Where the algorithm's description has the function; null: there is none.
    entry: AtomicPtr<()>,
    clock_ns: AtomicU64,
}

impl UnderWay {
    /// Whose function it is, the function's name, and [`CcIn::clock_ns`](crate::CcIn::clock_ns) of the call.
    pub fn call(&self) -> Option<(&'static Algorithm, &'static str, u64)> {
        let entry = self.entry.load(Relaxed);
        let of =
            |a: &'static Algorithm| Some((a, a.function_at(entry)?, self.clock_ns.load(Relaxed)));
        (algorithms().iter()).chain(file::loaded()).find_map(of)
    }

    /// Runs `function`, for which the description has this entry.
    #[inline(always)]
    pub(crate) fn during<F>(&self, entry: &'static F, clock_ns: u64, function: impl FnOnce()) {
        self.clock_ns.store(clock_ns, Relaxed);
        self.entry
            .store(ptr::from_ref(entry).cast_mut().cast(), Relaxed);
        function();
        self.entry.store(ptr::null_mut(), Relaxed);
    }
}
