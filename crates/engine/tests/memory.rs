//! What a run holds while it goes on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use knee_engine::{Options, Run, parse};

/// The system's allocator, which counts.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes held at once by a run of that many seconds, and its rows of samples.
fn most_bytes(seconds: u32, taken: bool) -> (usize, usize) {
    let text = format!(
        "duration = \"{seconds}s\"\nsample_interval = \"1ms\"\n[path]\nrate = \"100Mbit/s\"\nrtt = \"20ms\"\n\
         [[flow]]\nalgorithm = \"cubic\"\ncount = 5\n"
    );
    let scenario = parse(&text, "memory.toml", None).unwrap_or_else(|error| panic!("{error}"));
    let cell = scenario.cell(0).expect("it has one");
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let mut rows = 0;
    let run = Run::new(cell, 0, &Options::default()).expect("the simulator can run it");
    let output = run.to_end(&mut |_, gathered| {
        if taken {
            rows += std::mem::take(gathered).samples.t_ns.len();
        }
        true
    });
    rows += output.samples.t_ns.len();
    (MOST.load(Ordering::Relaxed) - before, rows)
}

// The only test of this process: others would be counted too.
#[test]
fn a_run_whose_rows_are_taken_holds_no_more_when_it_is_ten_times_as_long() {
    let (short, short_rows) = most_bytes(6, true);
    let (long, long_rows) = most_bytes(60, true);
    assert!(
        long_rows > 9 * short_rows,
        "{short_rows} and {long_rows} rows"
    );
    // Vectors double, so that a few rows more may take twice the room.
    assert!(long < 3 * short, "{short} and {long} bytes");
    let (kept, _) = most_bytes(60, false);
    assert!(kept > 10 * long, "the rows weigh: {kept} and {long} bytes");
}
