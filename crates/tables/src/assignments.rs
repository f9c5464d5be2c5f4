//! `assignments`: which connection was given which algorithm.

use crate::{Name, Text, table};

table! {
    /// A row per connection that was assigned.
    "assignments" Assignments {
        t_unix_ns: Option<i64>, "ns", "CLOCK_REALTIME", "wall time when the connection was established, since 1970-01-01 UTC";
        host: Option<Name>, "", "uname nodename", "host";
        host_id: Option<Name>, "", "/etc/machine-id", "installation of the host, the same over its boots; null: it has none";
        boot_id: Option<Name>, "", "/proc/sys/kernel/random/boot_id", "boot of the host, within which a cookie is unique";
        cookie: Option<u64>, "", "SO_COOKIE", "the connection, as in sockets";
        unit: Option<Text>, "", "knee assign --unit", "what was assigned as a whole: a prefix of the far end, the connection (its cookie), the host";
        arm: Option<Name>, "", "knee assign", "arm of the experiment";
        algorithm: Option<Name>, "", "TCP_CONGESTION", "congestion control that the connection was given, as the kernel calls it; null: the kernel refused";
        design: Option<Name>, "", "knee assign --design", "ab, cluster, switchback, paired-link or ramp";
        allocation_pct: Option<f64>, "%", "knee assign", "share of units that this arm was meant to have then, on this link";
        period: Option<i64>, "", "knee assign --period", "number of the period (switchback) or step (ramp); null: the design has none";
        link: Option<Name>, "", "knee assign --link", "link of the pair; null: the design has none";
        seed: Option<u64>, "", "knee assign --seed", "seed of the assignment";
        errno: Option<i32>, "", "bpf_setsockopt", "why the kernel refused the algorithm; null: it did not";
    }
}
