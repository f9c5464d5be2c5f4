//! `cpu`: what processors spent their time on.

use crate::column::{Names, Numbers};
use crate::table::observed;

observed! {
    /// A row per processor and sample. Times count from the start of the host,
    /// in steps of 10 ms.
    "cpu" Cpu {
        t_unix_ns: Numbers<i64> = own("ns", "CLOCK_REALTIME", "wall time of the sample, since 1970-01-01 UTC");
        t_mono_ns: Numbers<i64> = own("ns", "CLOCK_MONOTONIC", "time of the sample on a clock that is never set; only differences mean something");
        host: Names = own("", "uname nodename", "host");
        boot_id: Names = own("", "/proc/sys/kernel/random/boot_id", "boot of the host; as anonymised");
        cpu: Numbers<i32> = own("", "/proc/stat", "processor");
        user_us: Numbers<i64> = own("us", "/proc/stat user", "in programs, guests included");
        nice_us: Numbers<i64> = own("us", "/proc/stat nice", "in programs of lowered priority");
        system_us: Numbers<i64> = own("us", "/proc/stat system", "in the kernel");
        idle_us: Numbers<i64> = own("us", "/proc/stat idle", "idle");
        iowait_us: Numbers<i64> = own("us", "/proc/stat iowait", "idle while a disk was waited for");
        irq_us: Numbers<i64> = own("us", "/proc/stat irq", "in interrupts");
        softirq_us: Numbers<i64> = own("us", "/proc/stat softirq", "in soft interrupts, where packets are received");
        steal_us: Numbers<i64> = own("us", "/proc/stat steal", "given to others by the hypervisor");
        guest_us: Numbers<i64> = own("us", "/proc/stat guest", "of user: in guests");
        guest_nice_us: Numbers<i64> = own("us", "/proc/stat guest_nice", "of nice: in guests");
    }
}
