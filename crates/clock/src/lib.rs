//! The clock of a run, and being there on time.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC: the same in every process of the host.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the clock is always there");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Nanoseconds of processor time that the calling thread has had.
pub fn thread_ns() -> u64 {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the clock is always there");
    used.tv_sec() as u64 * 1_000_000_000 + used.tv_nsec() as u64
}

/// While it lives the calling thread is woken on time: it has the priority of the
/// link's threads, where the kernel grants it. Processes that it starts have not.
#[derive(Debug)]
pub struct Punctual {
    pub granted: bool,
}

impl Punctual {
    pub fn request() -> Punctual {
        Punctual {
            granted: set_scheduler(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1),
        }
    }
}

impl Drop for Punctual {
    fn drop(&mut self) {
        if self.granted {
            set_scheduler(libc::SCHED_OTHER, 0);
        }
    }
}

/// Of the calling thread; false: refused.
fn set_scheduler(policy: i32, priority: i32) -> bool {
    // SAFETY: an all-zero sched_param is valid, and it outlives the call.
    unsafe {
        let mut param: libc::sched_param = std::mem::zeroed();
        param.sched_priority = priority;
        libc::sched_setscheduler(0, policy, &param) == 0
    }
}

/// The same for a thread until its end, with timers without slack; false: refused. The kernel's throttle of real-time
/// threads (95 %) keeps the machine alive.
pub fn be_punctual() -> bool {
    // SAFETY: the call takes integers.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
    set_scheduler(libc::SCHED_FIFO, 1)
}
