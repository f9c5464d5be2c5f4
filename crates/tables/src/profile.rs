//! What `knee profile` writes of a live host beside `host_costs` and `stacks`.

use crate::{HostCosts, Schema, Stacks, Table, table};

table! {
    /// How packets were sized and how many a poll handled, in powers of two.
    "histograms" Histograms of HistogramRow {
        host: &'static str, "", "tcpknee", "machine";
        histogram: &'static str, "", "tcpknee", "sent_bytes: payload of each data skb that was sent; received_bytes: payload of each skb that was received with some; packets_per_poll";
        least: i64, "", "tcpknee", "the least size of this row, in bytes or packets";
        most: i64, "", "tcpknee", "the greatest size of this row";
        count: i64, "", "tcpknee", "skbs or polls of that size";
    }
}

table! {
    /// What each processor did in the interval.
    "processors" Processors of ProcessorRow {
        cpu: i32, "", "/proc/stat", "number of the processor";
        user_us: i64, "us", "/proc/stat user, nice", "time in programs";
        system_us: i64, "us", "/proc/stat system", "time in the kernel on behalf of programs";
        irq_us: i64, "us", "/proc/stat irq", "time in hard interrupts; 0 where the kernel does not tell it apart";
        softirq_us: i64, "us", "/proc/stat softirq", "time in softirqs, by samples of the kernel's tick; the table softirqs measures it";
        steal_us: i64, "us", "/proc/stat steal", "time that the hypervisor gave to others";
        idle_us: i64, "us", "/proc/stat idle, iowait", "time without anything to run";
    }
}

table! {
    /// Time in each softirq of each processor.
    "softirqs" SoftirqRows of SoftirqRow {
        cpu: i32, "", "tcpknee", "number of the processor";
        softirq: &'static str, "", "softirq:softirq_entry", "net_rx, net_tx, timer, hrtimer, sched, rcu, tasklet, block, irq_poll, hi";
        ns: i64, "ns", "softirq:softirq_entry, softirq_exit", "time from its beginning to its end, hard interrupts in between included";
        runs: i64, "", "softirq:softirq_exit", "how often it ran";
    }
}

table! {
    /// Each thread that ran in the interval.
    "threads" ThreadRows of ThreadRow {
        pid: i32, "", "/proc", "number of the process";
        tid: i32, "", "/proc", "number of the thread";
        program: String, "", "/proc/PID/comm", "name of the process";
        thread: String, "", "/proc/PID/task/TID/stat", "name of the thread";
        run_ns: i64, "ns", "/proc/PID/task/TID/schedstat", "time on a processor, softirqs that ran meanwhile included";
        wait_ns: i64, "ns", "/proc/PID/task/TID/schedstat", "time ready to run without a processor";
        user_us: i64, "us", "/proc/PID/task/TID/stat utime", "time in the program, by samples of the kernel's tick";
        system_us: i64, "us", "/proc/PID/task/TID/stat stime", "time in the kernel on its behalf, likewise";
    }
}

/// Tables of a profile.
pub const PROFILE: &[Schema] = &[
    HostCosts::SCHEMA,
    Stacks::SCHEMA,
    Histograms::SCHEMA,
    Processors::SCHEMA,
    SoftirqRows::SCHEMA,
    ThreadRows::SCHEMA,
];
