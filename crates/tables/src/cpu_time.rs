//! `cpu_time`: who used the processors while a run was measured.

use crate::table;

table! {
    /// Processor time so far of each thread of a lab, and of each processor of
    /// the host. Softirq time, which no thread is charged for, is on the
    /// processors' rows; other work of the host is in it too.
    "cpu_time" CpuSamples of CpuSample {
        cell: i32, "", "tcpknee", "cell of the matrix";
        rep: i32, "", "tcpknee", "repetition, from 0";
        t_ns: i64, "ns", "tcpknee", "time since the run began";
        name: String, "", "tcpknee", "cpu0, cpu1, … a processor, sender/cpu0 one of a host; else role/thread: link/main, sender/main, receiver/main, client.0/redis-benchmark";
        run_us: i64, "us", "/proc/PID/task/TID/schedstat; /proc/stat", "time on a processor since the run began; of a processor: time not idle";
        user_us: Option<i64>, "us", "/proc/stat user, nice", "of a processor: time in programs; null: a thread";
        system_us: Option<i64>, "us", "/proc/stat system", "of a processor: time in the kernel on behalf of programs; null: a thread";
        softirq_us: Option<i64>, "us", "/proc/stat softirq, irq", "of a processor: time in interrupts; null: a thread";
        steal_us: Option<i64>, "us", "/proc/stat steal", "of a processor: time that the hypervisor gave to others; null: a thread";
    }
}
