//! `counters`: the network counters of /proc over time.

use crate::column::{Names, Numbers};
use crate::table::observed;

observed! {
    /// A row per counter and sample, in the kernel's names. Counters count from
    /// the start of the host or namespace; sockstat's are states, not counters.
    "counters" Counters {
        t_unix_ns: Numbers<i64> = own("ns", "CLOCK_REALTIME", "wall time of the sample, since 1970-01-01 UTC");
        t_mono_ns: Numbers<i64> = own("ns", "CLOCK_MONOTONIC", "time of the sample on a clock that is never set; only differences mean something");
        host: Names = own("", "uname nodename", "host");
        boot_id: Names = own("", "/proc/sys/kernel/random/boot_id", "boot of the host; as anonymised");
        netns: Names = own("", "/proc/PID/ns/net, or the name asked for", "network namespace; softnet counts for the host");
        source: Names = own("", "/proc/net/*", "file of /proc/net: snmp, netstat, sockstat, sockstat6, softnet_stat");
        name: Names = own("", "/proc/net/*", "the counter, as the file has it: Tcp.RetransSegs, TcpExt.TCPTimeouts, TCP.inuse, dropped");
        cpu: Numbers<i32> = own("", "/proc/net/softnet_stat", "processor; null: of all");
        value: Numbers<i64> = own("", "/proc/net/*", "its value");
    }
}
