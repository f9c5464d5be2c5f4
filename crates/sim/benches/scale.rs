//! Cost per packet and memory as flows grow from 1 to 10,000.
//!
//! Twice: with a link whose rate grows with the flows, so that each flow has
//! the same share and does the same; and with one fixed rate, where 10,000
//! flows have less than a packet each in flight and live on timeouts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use knee_scenario::Cell;
use knee_units::Nanos;

mod common;

/// The system's allocator, counting what is held and the most ever held.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn took(bytes: usize) {
    let held = HELD.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(held, Relaxed);
}

// SAFETY: every call is handed to the system's allocator as it came; the
// counters own nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // Both blocks may exist at once while the content moves.
        took(bytes);
        HELD.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(memory, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most bytes held while the cell ran, above what was held before, its tables included.
fn peak_bytes(cell: &Cell) -> usize {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    drop(common::run(cell));
    PEAK.load(Relaxed) - before
}

struct Measured {
    packets: u64,
    wall: Duration,
    peak_bytes: usize,
}

/// Best wall time of three runs: what else the machine does only adds.
fn measure(cell: &Cell) -> Measured {
    let peak_bytes = peak_bytes(cell);
    let mut packets = 0;
    let wall = (0..3)
        .map(|_| {
            let begin = Instant::now();
            packets = common::run(cell).data_packets;
            begin.elapsed()
        })
        .min()
        .expect("three runs");
    Measured {
        packets,
        wall,
        peak_bytes,
    }
}

fn flows_cell(flows: u64, rate_mbit_per_sec: u64, duration: &str) -> Cell {
    common::cell(&format!(
        r#"
        title = "scale"
        duration = "{duration}"
        [path]
        rate = "{rate_mbit_per_sec}Mbit/s"
        rtt = "20ms"
        buffer = "1bdp"
        [[flow]]
        algorithm = "cubic"
        count = {flows}
        "#
    ))
}

/// A table of one series: (flows, link rate in Mbit/s, duration).
fn series(title: &str, rows: &[(u64, u64, &str)]) {
    println!("\n{title}");
    println!(
        "{:>7} {:>12} {:>8} {:>11} {:>10} {:>10} {:>7} {:>12}",
        "flows", "link Mbit/s", "for", "packets", "Mpkt/s", "ns/packet", "x one", "peak MiB"
    );
    let mut first = None;
    for &(flows, rate, duration) in rows {
        let Measured {
            packets,
            wall,
            peak_bytes,
        } = measure(&flows_cell(flows, rate, duration));
        let ns = wall.as_secs_f64() * 1e9 / packets as f64;
        let ratio = ns / *first.get_or_insert(ns);
        let peak_mib = peak_bytes as f64 / f64::from(1 << 20);
        println!(
            "{flows:>7} {rate:>12} {duration:>8} {packets:>11} {:>10.2} {ns:>10.1} {ratio:>7.2} {peak_mib:>12.1}",
            1e3 / ns
        );
    }
}

/// Bytes that a connection costs once it has written once and waits: what is
/// held then, and the most that was ever held.
fn idle_flow_bytes() -> (f64, f64) {
    const FLOWS: u64 = 10_000;
    /// All have what was written; nothing is sampled before the end.
    const IDLE_FROM: Nanos = Nanos::from_secs(3);
    let cell = |flows: u64| {
        common::cell(&format!(
            r#"
            title = "idle"
            duration = "5s"
            sample_interval = "5s"
            [path]
            rate = "1Gbit/s"
            rtt = "20ms"
            [sender]
            tcp_wmem_max = "4608B"
            tcp_wmem_default = "4608B"
            # Keeps the world going, so that progress is told, while the others wait.
            [[flow]]
            algorithm = "cubic"
            name = "busy"
            [[flow]]
            algorithm = "cubic"
            name = "idle"
            workload = "on-off"
            on = "1ms"
            off = "60s"
            write = "4kB"
            count = {flows}
            stagger = "100us"
            "#
        ))
    };
    let measure = |flows: u64| {
        let cell = cell(flows);
        let before = HELD.load(Relaxed);
        PEAK.store(before, Relaxed);
        let mut idle = None;
        drop(common::watched(&cell, |now| {
            if now >= IDLE_FROM {
                idle.get_or_insert_with(|| HELD.load(Relaxed) - before);
            }
        }));
        (
            idle.expect("progress is told while flows are idle"),
            PEAK.load(Relaxed) - before,
        )
    };
    let (few_idle, few_peak) = measure(1);
    let (many_idle, many_peak) = measure(FLOWS + 1);
    let per_flow = |many: usize, few: usize| many.saturating_sub(few) as f64 / FLOWS as f64;
    (per_flow(many_idle, few_idle), per_flow(many_peak, few_peak))
}

fn main() {
    println!(
        "\ncubic, 20 ms x 1 BDP, samples of every flow each 10 ms; best of three runs, memory counts the tables"
    );
    series(
        "the link grows with the flows: 10 Mbit/s each",
        &[
            (1, 10, "200s"),
            (10, 100, "100s"),
            (100, 1_000, "20s"),
            (1_000, 10_000, "4s"),
            (10_000, 100_000, "2s"),
        ],
    );
    series(
        "one link of 1 Gbit/s shared by all",
        &[
            (1, 1_000, "10s"),
            (10, 1_000, "10s"),
            (100, 1_000, "10s"),
            (1_000, 1_000, "10s"),
            (10_000, 1_000, "10s"),
        ],
    );
    println!("\nmemory of an idle flow (it has written once; both ends)");
    let (idle, peak) = idle_flow_bytes();
    println!("{idle:>10.0} bytes held, {peak:.0} bytes at the peak of the run");
}
