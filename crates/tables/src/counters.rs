//! `counters`: the network counters of /proc over time.

use crate::{Name, table};

table! {
    /// A row per counter and sample, in the kernel's names. Counters count from
    /// the start of the host or namespace; sockstat's are states, not counters.
    "counters" Counters {
        t_unix_ns: Option<i64>, "ns", "CLOCK_REALTIME", "wall time of the sample, since 1970-01-01 UTC";
        t_mono_ns: Option<i64>, "ns", "CLOCK_MONOTONIC", "time of the sample on a clock that is never set; only differences mean something";
        host: Option<Name>, "", "uname nodename", "host";
        boot_id: Option<Name>, "", "/proc/sys/kernel/random/boot_id", "boot of the host; as anonymised";
        netns: Option<Name>, "", "/proc/PID/ns/net, or the name asked for", "network namespace; softnet counts for the host";
        source: Option<Name>, "", "/proc/net/*", "file of /proc/net: snmp, netstat, sockstat, sockstat6, softnet_stat";
        name: Option<Name>, "", "/proc/net/*", "the counter, as the file has it: Tcp.RetransSegs, TcpExt.TCPTimeouts, TCP.inuse, dropped";
        cpu: Option<i32>, "", "/proc/net/softnet_stat", "processor; null: of all";
        value: Option<i64>, "", "/proc/net/*", "its value";
    }
}
