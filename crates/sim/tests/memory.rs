//! What connections take: an idle one little, one that is over nothing but its rows.
//!
//! Method: an allocator that counts what a thread holds, while a run is taken from one instant to another.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use knee_sim::{Options, World};
use knee_tables::{Events, Table, Values};
use knee_units::Nanos;

/// The system's allocator, counting what is held.
struct Counting;

thread_local! {
    /// Bytes, by this thread: those of tests beside it, and of what starts them, are not counted.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator as it came; the counter owns nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get().wrapping_add(layout.size()));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(layout.size()));
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that a world holds after each of these times, and the rows of its table of events when it ends.
fn held_after<const N: usize>(text: &str, options: &Options, times: [Nanos; N]) -> ([f64; N], f64) {
    let cell = Arc::new(common::cell(text));
    let before = HELD.get();
    let mut world = World::new(cell, 0, options).expect("it can be simulated");
    let held = times.map(|until| {
        assert!(world.step(until), "it is over before {until:?}");
        (HELD.get() - before) as f64
    });
    (held, world.finish().events.rows() as f64)
}

/// Bytes of a row of the table of events.
fn event_bytes() -> f64 {
    let width = |values| match values {
        Values::I32(_) | Values::Name(_) => 4,
        Values::I64(_) => 8,
        Values::OptI64(_) => 8,
        other => panic!("events have no column of {other:?}"),
    };
    let table = Events::default();
    let widths = table.values().into_iter().map(width);
    widths.sum::<usize>() as f64
}

/// Each writes once, a few packets, and waits. Waits in the queue are counted in 20 bytes for those that differ from the others
/// by 4 %, besides.
#[test]
fn an_idle_connection_takes_four_kib_with_both_ends() {
    let held = |count: u32| {
        let text = format!(
            "duration = \"5s\"\nsample_interval = \"5s\"\n[path]\nrate = \"1Gbit/s\"\nrtt = \"20ms\"\n\
             [sender]\ntcp_wmem_max = \"4608B\"\ntcp_wmem_default = \"4608B\"\n\
             [[flow]]\nalgorithm = \"cubic\"\nworkload = \"on-off\"\non = \"1ms\"\noff = \"60s\"\n\
             write = \"4kB\"\ncount = {count}\nstagger = \"1ms\"\n"
        );
        let ([held], events) = held_after(&text, &Options::default(), [Nanos::from_secs(4)]);
        held - events * event_bytes()
    };
    // Lists have room for the next power of two.
    let each = (held(2_000) - held(1_000)) / 1_000.0;
    println!("an idle connection takes {each:.0} bytes");
    assert!(each <= 4_096.0, "{each}");
}

/// Small transfers, all of one size.
#[test]
fn a_transfer_that_is_over_leaves_rows_and_nothing_else() {
    let text = "duration = \"10s\"\nsample_interval = \"1s\"\n[path]\nrate = \"1Gbit/s\"\nrtt = \"20ms\"\n\
                [[flow]]\nalgorithm = \"cubic\"\nworkload = \"web\"\narrivals = \"1000/s\"\n\
                arrival_process = \"regular\"\nsizes = \"pareto from 10000B to 10001B\"\n";
    let times = [4, 8].map(Nanos::from_secs);
    let grows = |keep_connections| {
        let options = Options {
            keep_connections,
            ..Options::default()
        };
        let ([early, late], _) = held_after(text, &options, times);
        (late - early) / 4_000.0
    };
    let (given_up, kept) = (grows(false), grows(true));
    println!("a transfer that is over takes {given_up:.0} bytes, or {kept:.0} if it is kept");
    assert!(given_up <= 2_112.0, "{given_up}");
    assert!(kept - given_up >= 3_000.0, "{kept} against {given_up}");
}
