//! `settings`: what a host is set to, and when that changed.

use crate::{Name, table};

table! {
    /// A row per setting when the recording begins and at the beginning of each
    /// segment, and one when it changed. What holds at a time is the last row of
    /// the same boot_id, netns, kind, interface, handle, parent and name.
    "settings" Settings {
        t_unix_ns: Option<i64>, "ns", "CLOCK_REALTIME", "wall time when it was read, since 1970-01-01 UTC";
        t_mono_ns: Option<i64>, "ns", "CLOCK_MONOTONIC", "time when it was read, on a clock that is never set; only differences mean something";
        host: Option<Name>, "", "uname nodename", "host";
        boot_id: Option<Name>, "", "/proc/sys/kernel/random/boot_id", "boot of the host; as anonymised";
        host_id: Option<Name>, "", "/etc/machine-id", "installation of the host, the same over its boots; as anonymised; null: it has none";
        netns: Option<Name>, "", "/proc/PID/ns/net, or the name asked for", "network namespace";
        cause: Option<Name>, "", "tcpknee", "start: the recording begins; repeat: a segment of this table begins; change: it is not as it was in the row before, or new, or gone";
        kind: Option<Name>, "", "tcpknee", "sysctl; link, driver, offload, coalesce, ring, channels, speed of a device; qdisc";
        interface: Option<Name>, "", "IFLA_IFNAME", "device; null: none";
        handle: Option<Name>, "", "tcmsg.tcm_handle", "of a qdisc, as tc prints it and as in the table qdisc";
        parent: Option<Name>, "", "tcmsg.tcm_parent", "of a qdisc: root, ingress, or the class that it hangs from";
        name: Option<Name>, "", "sysctl(8), ethtool(8), tc(8), ip-link(8)", "name, as those programs print it; null: all of the kind";
        value: Option<Name>, "", "/proc/sys, rtnetlink, ethtool netlink", "value: a number, on or off, or text; words of a sysctl with one blank between; null: not known, or gone";
        unit: Option<Name>, "", "tcpknee", "what a number counts: us, bytes, packets, bit/s, …; null: it is none, or its source does not say";
        missing: Option<Name>, "", "tcpknee", "why value is null: gone, permission denied, not shown in this network namespace, …";
    }
}
