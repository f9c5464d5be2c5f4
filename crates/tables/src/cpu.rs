//! `cpu`: what processors spent their time on.

use crate::{Name, table};

table! {
    /// A row per processor and sample. Times count from the start of the host,
    /// in steps of 10 ms.
    "cpu" Cpu {
        t_unix_ns: Option<i64>, "ns", "CLOCK_REALTIME", "wall time of the sample, since 1970-01-01 UTC";
        t_mono_ns: Option<i64>, "ns", "CLOCK_MONOTONIC", "time of the sample on a clock that is never set; only differences mean something";
        host: Option<Name>, "", "uname nodename", "host";
        boot_id: Option<Name>, "", "/proc/sys/kernel/random/boot_id", "boot of the host; as anonymised";
        cpu: Option<i32>, "", "/proc/stat", "processor";
        user_us: Option<i64>, "us", "/proc/stat user", "in programs, guests included";
        nice_us: Option<i64>, "us", "/proc/stat nice", "in programs of lowered priority";
        system_us: Option<i64>, "us", "/proc/stat system", "in the kernel";
        idle_us: Option<i64>, "us", "/proc/stat idle", "idle";
        iowait_us: Option<i64>, "us", "/proc/stat iowait", "idle while a disk was waited for";
        irq_us: Option<i64>, "us", "/proc/stat irq", "in interrupts";
        softirq_us: Option<i64>, "us", "/proc/stat softirq", "in soft interrupts, where packets are received";
        steal_us: Option<i64>, "us", "/proc/stat steal", "given to others by the hypervisor";
        guest_us: Option<i64>, "us", "/proc/stat guest", "of user: in guests";
        guest_nice_us: Option<i64>, "us", "/proc/stat guest_nice", "of nice: in guests";
    }
}
