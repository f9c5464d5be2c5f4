//! What the algorithms of a run are doing, for one who tells of a crash.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use crate::algorithm::{Algorithm, algorithms};
use crate::file;
use crate::watched::Call;

/// The function of an algorithm that is under way. A signal handler of the thread that called it may ask.
#[derive(Debug, Default)]
pub struct UnderWay {
    /// Grows with each call of an algorithm from a file.
    number: AtomicU64,
    /// Of an algorithm from a file, the last call. Only the thread that makes the calls, and its signal handlers, look at it.
    taken_down: UnsafeCell<Option<Box<Call>>>,
    /// Where the algorithm's description has the function; null: there is none.
    entry: AtomicPtr<()>,
    clock_ns: AtomicU64,
}

// SAFETY: only the thread that runs the algorithms touches `taken_down`.
unsafe impl Sync for UnderWay {}

impl UnderWay {
    /// The number of the call that is under way; `None`: none is.
    pub fn number(&self) -> Option<u64> {
        (!self.entry.load(Relaxed).is_null()).then(|| self.number.load(Relaxed))
    }

    /// The call of an algorithm from a file that is under way, or was found to do what it may not.
    ///
    /// # Safety
    /// It is asked by the thread that makes the calls, as by a signal handler there, and no call is made while it is held.
    pub unsafe fn taken_down(&self) -> Option<&Call> {
        unsafe { (*self.taken_down.get()).as_deref() }
    }

    /// The place to take down a call, which is counted.
    ///
    /// # Safety
    /// As of [`taken_down`](UnderWay::taken_down), and nobody else holds it.
    #[expect(clippy::mut_from_ref, reason = "it is the one thread's")]
    pub(crate) unsafe fn place(&self) -> &mut Call {
        let number = self.number.load(Relaxed).wrapping_add(1);
        self.number.store(number, Relaxed);
        unsafe { (*self.taken_down.get()).get_or_insert_with(|| Box::new(Call::new())) }
    }

    /// Says that this function did what it may not.
    #[cold]
    pub(crate) fn breach<F>(&self, entry: &'static F, what: &'static str) -> ! {
        self.entry
            .store(ptr::from_ref(entry).cast_mut().cast(), Relaxed);
        breached(self, what)
    }

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

type OnBreach = fn(&UnderWay, &'static str);

static ON_BREACH: OnceLock<OnBreach> = OnceLock::new();

/// Has `told` called when an algorithm did what it may not, with the call that did it under way; it may end the process.
pub fn on_breach(told: OnBreach) {
    let _ = ON_BREACH.set(told);
}

#[cold]
fn breached(under_way: &UnderWay, what: &'static str) -> ! {
    if let Some(told) = ON_BREACH.get() {
        told(under_way, what);
    }
    let name = under_way
        .call()
        .map(|(algorithm, function, _)| (algorithm.name(), function));
    panic!("{name:?} {what}");
}
