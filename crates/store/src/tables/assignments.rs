//! `assignments`: which connection was given which algorithm.

use crate::column::{Names, Numbers, Texts};
use crate::table::observed;

observed! {
    /// A row per connection that was assigned.
    "assignments" Assignments {
        t_unix_ns: Numbers<i64> = own("ns", "CLOCK_REALTIME", "wall time when the connection was established, since 1970-01-01 UTC");
        host: Names = own("", "uname nodename", "host");
        host_id: Names = own("", "/etc/machine-id", "installation of the host, the same over its boots; null: it has none");
        boot_id: Names = own("", "/proc/sys/kernel/random/boot_id", "boot of the host, within which a cookie is unique");
        cookie: Numbers<u64> = own("", "SO_COOKIE", "the connection, as in sockets");
        unit: Texts = own("", "knee assign --unit", "what was assigned as a whole: a prefix of the far end, the connection (its cookie), the host");
        arm: Names = own("", "knee assign", "arm of the experiment");
        algorithm: Names = own("", "TCP_CONGESTION", "congestion control that the connection was given, as the kernel calls it; null: the kernel refused");
        design: Names = own("", "knee assign --design", "ab, cluster, switchback, paired-link or ramp");
        allocation_pct: Numbers<f64> = own("%", "knee assign", "share of units that this arm was meant to have then, on this link");
        period: Numbers<i64> = own("", "knee assign --period", "number of the period (switchback) or step (ramp); null: the design has none");
        link: Names = own("", "knee assign --link", "link of the pair; null: the design has none");
        seed: Numbers<u64> = own("", "knee assign --seed", "seed of the assignment");
        errno: Numbers<i32> = own("", "bpf_setsockopt", "why the kernel refused the algorithm; null: it did not");
    }
}
