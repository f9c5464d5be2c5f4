//! What is said when an algorithm of `cc/` crashes the process: which, in which function, when, and in which cell.
//!
//! A handler hears of the signal, says so, and leaves the rest to whoever had the signal before it, as Python's
//! faulthandler: the process ends as it would have ended. It neither takes memory nor a lock.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst,
};
use std::sync::{Arc, OnceLock};

use knee_cc::{CcIn, CcOut, UnderWay};
use knee_engine::Run;
use knee_scenario::Cell;
use pyo3::prelude::*;

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
    watch_calls(words, run.under_way(), run.boot_ns())
}

/// The same of calls that are none of a run.
pub fn watch_calls(words: String, under_way: Arc<UnderWay>, boot_ns: u64) -> Watch {
    for (&(signal, _), before) in SIGNALS.iter().zip(&BEFORE) {
        before.get_or_init(|| listen(signal));
    }
    let id = this_thread();
    let free = |thread: &&Thread| thread.id.compare_exchange(0, id, SeqCst, SeqCst).is_ok();
    let thread = THREADS.iter().find(free);
    if let Some(thread) = thread {
        let watched = Box::new(Watched {
            under_way,
            boot_ns,
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

/// Where a call that went wrong is put down, a descriptor; negative: it is told on stderr.
static REPORT: AtomicI32 = AtomicI32::new(-1);

/// Exit code of a process whose algorithm did what it may not.
const BREACHED: c_int = 70;

/// How often a call that takes long is looked at, and how many looks it is given.
const TICK_USEC: libc::suseconds_t = 100_000;
const MOST_TICKS: u32 = 10;

/// The call that was under way at the last tick, and for how many ticks it has been.
static SEEN: AtomicU64 = AtomicU64::new(0);
static TICKS: AtomicU32 = AtomicU32::new(0);

/// Makes this process one that runs algorithms from files: a call that crashes, takes more than a second of processor time
/// or writes where it may not is put down in the file `report`, and ends the process.
#[pyfunction]
pub fn guard_process(report: c_int) {
    const STACK_BYTES: usize = 1 << 18;
    REPORT.store(report, SeqCst);
    knee_cc::on_breach(|under_way, what| {
        let report = REPORT.load(SeqCst);
        if report >= 0 {
            put_down(
                report,
                what,
                under_way,
                this_run().map_or(0, |run| run.boot_ns),
            );
            // SAFETY: it has no conditions.
            unsafe { libc::_exit(BREACHED) };
        }
    });
    // SAFETY: the stack stays, since nobody frees it; all zeros are a valid sigaction; `on_tick` is what it asks for.
    unsafe {
        let stack = libc::stack_t {
            ss_sp: Box::leak(vec![0u8; STACK_BYTES].into_boxed_slice())
                .as_mut_ptr()
                .cast(),
            ss_flags: 0,
            ss_size: STACK_BYTES,
        };
        libc::sigaltstack(&stack, ptr::null_mut());
        let mut ours: libc::sigaction = MaybeUninit::zeroed().assume_init();
        ours.sa_sigaction = on_tick as *const () as usize;
        ours.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(libc::SIGVTALRM, &ours, ptr::null_mut());
        let tick = libc::timeval {
            tv_sec: 0,
            tv_usec: TICK_USEC,
        };
        let every = libc::itimerval {
            it_interval: tick,
            it_value: tick,
        };
        libc::setitimer(libc::ITIMER_VIRTUAL, &every, ptr::null_mut());
    }
}

extern "C" fn on_tick(_: c_int) {
    let run = this_run();
    let under_way = run.and_then(|run| Some((run, run.under_way.number()?)));
    let Some((run, number)) = under_way else {
        return TICKS.store(0, SeqCst);
    };
    if SEEN.swap(number, SeqCst) != number {
        return TICKS.store(0, SeqCst);
    }
    if TICKS.fetch_add(1, SeqCst) + 1 >= MOST_TICKS {
        tell("took more than a second of processor time", run);
        // SAFETY: it has no conditions.
        unsafe { libc::_exit(BREACHED) };
    }
}

/// The run of this thread.
fn this_run() -> Option<&'static Watched> {
    let id = this_thread();
    let thread = THREADS.iter().find(|thread| thread.id.load(SeqCst) == id)?;
    // SAFETY: only this thread drops what it has there, and takes it away before.
    unsafe { thread.run.load(SeqCst).as_ref() }
}

/// What stands before the blocks of a call that is put down.
#[repr(C)]
struct Head {
    ns: u64,
    state_bytes: u64,
    what: [u8; 64],
    algorithm: [u8; 64],
    function: [u8; 32],
}

fn put_down(report: c_int, what: &str, under_way: &UnderWay, boot_ns: u64) {
    let Some((algorithm, function, clock_ns)) = under_way.call() else {
        return;
    };
    // SAFETY: this is the thread that makes the calls.
    let call = unsafe { under_way.taken_down() };
    // Calls of ours are not taken down.
    let Some(call) = call.filter(|_| algorithm.digest().is_some()) else {
        return;
    };
    let head = Head {
        ns: clock_ns.saturating_sub(boot_ns),
        state_bytes: algorithm.state_bytes() as u64,
        what: padded(what),
        algorithm: padded(algorithm.name()),
        function: padded(function),
    };
    let put = |start: *const c_void, bytes: usize| {
        // SAFETY: so many bytes are there.
        unsafe { libc::write(report, start, bytes) }
    };
    put((&raw const head).cast(), size_of::<Head>());
    // SAFETY: the call is under way.
    let (input, out) = unsafe { (call.input(), call.out()) };
    put(ptr::from_ref(input).cast(), size_of::<CcIn>());
    put(ptr::from_ref(out).cast(), size_of::<CcOut>());
    put(call.state().as_ptr().cast(), 8 * call.state().len());
}

fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut found = [0; N];
    let fits = text.len().min(N);
    found[..fits].copy_from_slice(&text.as_bytes()[..fits]);
    found
}

/// The fields of a block as JSON.
pub fn fields(names: &[&str], get: impl Fn(&str) -> Option<i128>) -> serde_json::Value {
    let number = |value: i128| match u64::try_from(value) {
        Ok(value) => serde_json::Value::from(value),
        Err(_) => serde_json::Value::from(value as i64),
    };
    let found = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), number(get(name)?))));
    serde_json::Value::Object(found.collect())
}

/// A call that was put down as JSON: `what` went wrong, `algorithm`, `op`, `t_ns`, the fields `in` and `out`, and `state`
/// in hexadecimal. Nothing where none was.
#[pyfunction]
pub fn read_call(report: &[u8]) -> Option<String> {
    let blocks = size_of::<Head>() + size_of::<CcIn>() + size_of::<CcOut>();
    if report.len() < blocks {
        return None;
    }
    // SAFETY: integers and bytes have no invalid form, and so many bytes are there.
    let (head, input, out) = unsafe {
        let at = report.as_ptr();
        let head: Head = at.cast::<Head>().read_unaligned();
        let at = at.add(size_of::<Head>());
        let input: CcIn = at.cast::<CcIn>().read_unaligned();
        let out: CcOut = at.add(size_of::<CcIn>()).cast::<CcOut>().read_unaligned();
        (head, input, out)
    };
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|&byte| byte == 0);
        String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
    };
    let state = report[blocks..].iter().take(head.state_bytes as usize);
    let state: String = state.map(|byte| format!("{byte:02x}")).collect();
    let found = serde_json::json!({
        "what": text(&head.what),
        "algorithm": text(&head.algorithm),
        "op": text(&head.function),
        "t_ns": head.ns,
        "in": fields(CcIn::NAMES, |name| input.get(name)),
        "out": fields(CcOut::NAMES, |name| out.get(name)),
        "state": state,
    });
    Some(found.to_string())
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
    if let Some(run) = this_run() {
        tell(name, run);
    }
}

fn tell(signal: &str, run: &Watched) {
    let Some((algorithm, function, clock_ns)) = run.under_way.call() else {
        return;
    };
    let (name, ns) = (algorithm.name(), clock_ns.saturating_sub(run.boot_ns));
    let report = REPORT.load(SeqCst);
    if report >= 0 {
        return put_down(report, signal, &run.under_way, run.boot_ns);
    }
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
