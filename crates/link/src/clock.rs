//! What time it is, and threads that keep to it.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the clock is always there");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Timers without slack, and real-time priority where that is allowed; the
/// kernel's throttle of real-time threads (95 %) keeps the machine alive.
pub fn be_punctual() -> bool {
    // SAFETY: both calls take integers or a struct that outlives them.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        let mut param: libc::sched_param = std::mem::zeroed();
        param.sched_priority = 1;
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &param) == 0
    }
}

pub fn thread_cpu_ns() -> u64 {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a thread has a clock");
    used.tv_sec() as u64 * 1_000_000_000 + used.tv_nsec() as u64
}
