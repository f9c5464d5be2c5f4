//! Clocks of a recording.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use super::report::Cpu;

/// One moment on two clocks. The wall clock may be set, the other one never is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub unix_ns: i64,
    pub mono_ns: i64,
}

impl Moment {
    pub fn now() -> Moment {
        let read = |clock| {
            let now = clock_gettime(clock).expect("the clock is always there");
            now.num_nanoseconds()
        };
        Moment {
            unix_ns: read(ClockId::CLOCK_REALTIME),
            mono_ns: read(ClockId::CLOCK_MONOTONIC),
        }
    }
}

/// Processor time of the calling thread so far.
pub fn thread_cpu() -> Cpu {
    let used = getrusage(UsageWho::RUSAGE_THREAD).expect("a thread may ask for its own");
    Cpu {
        user_us: used.user_time().num_microseconds(),
        system_us: used.system_time().num_microseconds(),
    }
}

/// The most memory that the process has held, bytes.
pub fn peak_rss_bytes() -> u64 {
    let used = getrusage(UsageWho::RUSAGE_SELF).expect("a process may ask for its own");
    used.max_rss() as u64 * 1024
}
