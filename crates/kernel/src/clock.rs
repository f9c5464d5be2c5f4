//! The clock of a run.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC: the same in every process of the host.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the clock is always there");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
