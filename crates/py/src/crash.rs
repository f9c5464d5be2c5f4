//! What is said when an algorithm of `cc/` crashes the process: which, in which function, when, and in which cell.
//!
//! A handler hears of the signal, says so, and leaves the rest to whoever had the signal before it, as Python's
//! faulthandler: the process ends as it would have ended. It neither takes memory nor a lock.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use knee_cc::UnderWay;
use knee_engine::Run;
use knee_scenario::Cell;

/// How an op crashes; compilers make SIGILL or SIGTRAP of what they see that is undefined.
const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGTRAP, "SIGTRAP"),
];

/// Who had each signal before.
static BEFORE: [OnceLock<libc::sigaction>; SIGNALS.len()] =
    [const { OnceLock::new() }; SIGNALS.len()];

/// Threads that run a cell. Of more than these a crash says nothing.
static THREADS: [Thread; 256] = [const { Thread::free() }; 256];

struct Thread {
    /// Of pthread_self(); 0: free.
    id: AtomicUsize,
    run: AtomicPtr<Watched>,
}

impl Thread {
    const fn free() -> Thread {
        Thread {
            id: AtomicUsize::new(0),
            run: AtomicPtr::new(ptr::null_mut()),
        }
    }
}

struct Watched {
    under_way: Arc<UnderWay>,
    boot_ns: u64,
    words: String,
}

/// Until it is dropped, a crash of an algorithm in this thread names the algorithm.
pub struct Watch {
    thread: Option<&'static Thread>,
    /// It stays on its thread.
    _not_send: PhantomData<*const ()>,
}

/// The cell and the repetition in words.
pub fn words(cell: &Cell, rep: u32) -> String {
    let axes: Vec<String> = (cell.axes.iter())
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    let axes = match axes.is_empty() {
        true => String::new(),
        false => format!(" ({})", axes.join(", ")),
    };
    // An axis may be long, and holds what somebody wrote.
    let axes: String = axes.chars().take(500).collect();
    let words = format!("cell {}{axes}, repetition {rep}", cell.index);
    words.replace(char::is_control, "?")
}

/// Watches the run of those words, which is run in this thread.
pub fn watch(words: String, run: &Run) -> Watch {
    for (&(signal, _), before) in SIGNALS.iter().zip(&BEFORE) {
        before.get_or_init(|| listen(signal));
    }
    let id = this_thread();
    let free = |thread: &&Thread| thread.id.compare_exchange(0, id, SeqCst, SeqCst).is_ok();
    let thread = THREADS.iter().find(free);
    if let Some(thread) = thread {
        let watched = Box::new(Watched {
            under_way: run.under_way(),
            boot_ns: run.boot_ns(),
            words,
        });
        thread.run.store(Box::into_raw(watched), SeqCst);
    }
    Watch {
        thread,
        _not_send: PhantomData,
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(thread) = self.thread {
            let watched = thread.run.swap(ptr::null_mut(), SeqCst);
            thread.id.store(0, SeqCst);
            // SAFETY: watch() made it of a box, and no one else takes it.
            drop(unsafe { Box::from_raw(watched) });
        }
    }
}

fn this_thread() -> usize {
    // SAFETY: it has no conditions.
    unsafe { libc::pthread_self() as usize }
}

/// Puts the handler before the one of that signal, which is returned.
fn listen(signal: c_int) -> libc::sigaction {
    let mut before = MaybeUninit::zeroed();
    // SAFETY: all zeros are a valid sigaction, and both point to one. `on_crash` is what SA_SIGINFO asks for.
    unsafe {
        let mut ours: libc::sigaction = MaybeUninit::zeroed().assume_init();
        ours.sa_sigaction = on_crash as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(signal, &ours, before.as_mut_ptr());
        before.assume_init()
    }
}

extern "C" fn on_crash(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    let known = SIGNALS
        .iter()
        .zip(&BEFORE)
        .find(|((number, _), _)| *number == signal);
    let Some((&(_, name), before)) = known else {
        return;
    };
    let before = before.get().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the kernel gave `info`; the others point to a sigaction or to nothing.
    let is_sent = unsafe {
        if before.is_null() {
            // It came while the handler was put in.
            libc::signal(signal, libc::SIG_DFL);
        } else {
            libc::sigaction(signal, before, ptr::null_mut());
        }
        (*info).si_code <= 0
    };
    // What failed is tried again when this function is left, and fails again; a trap may be over.
    if is_sent || signal == libc::SIGTRAP {
        // SAFETY: it has no conditions. The signal comes when this function is left.
        unsafe { libc::raise(signal) };
    }
    if is_sent {
        return;
    }
    let id = this_thread();
    let thread = THREADS.iter().find(|thread| thread.id.load(SeqCst) == id);
    let run = thread.map_or(ptr::null_mut(), |thread| thread.run.load(SeqCst));
    // SAFETY: only this thread drops what it has there, and takes it away before.
    if let Some(run) = unsafe { run.as_ref() } {
        tell(name, run);
    }
}

fn tell(signal: &str, run: &Watched) {
    let Some((algorithm, function, clock_ns)) = run.under_way.call() else {
        return;
    };
    let (name, ns) = (algorithm.name(), clock_ns.saturating_sub(run.boot_ns));
    let mut bytes = [0; 4096];
    let mut free = &mut bytes[..];
    // What is too long is cut off.
    let _ = writeln!(
        free,
        "\ntcpknee: the algorithm {name} crashed the process: got {signal} in its {function} at {}.{:09} s of {}; expected \
         that it divides by no zero and keeps to its memory, whatever it is shown. Look for both in cc/{name}.c.",
        ns / 1_000_000_000,
        ns % 1_000_000_000,
        run.words
    );
    let len = 4096 - free.len();
    // SAFETY: so many bytes are there.
    unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), len) };
}
