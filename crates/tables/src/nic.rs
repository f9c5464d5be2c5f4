//! `nic`: counters of network devices over time.

use crate::{Name, table};

table! {
    /// A row per device and sample.
    "nic" Nic {
        t_unix_ns: Option<i64>, "ns", "CLOCK_REALTIME", "wall time of the sample, since 1970-01-01 UTC";
        t_mono_ns: Option<i64>, "ns", "CLOCK_MONOTONIC", "time of the sample on a clock that is never set; only differences mean something";
        host: Option<Name>, "", "uname nodename", "host";
        boot_id: Option<Name>, "", "/proc/sys/kernel/random/boot_id", "boot of the host; as anonymised";
        netns: Option<Name>, "", "/proc/PID/ns/net, or the name asked for", "network namespace";
        interface: Option<Name>, "", "IFLA_IFNAME", "device";
        operstate: Option<Name>, "", "IFLA_OPERSTATE", "up, down, unknown, …";
        mtu_bytes: Option<i64>, "bytes", "IFLA_MTU", "largest packet";
        rx_packets: Option<i64>, "packets", "rtnl_link_stats64.rx_packets", "packets received, so far";
        tx_packets: Option<i64>, "packets", "rtnl_link_stats64.tx_packets", "packets sent, so far";
        rx_bytes: Option<i64>, "bytes", "rtnl_link_stats64.rx_bytes", "bytes received, so far";
        tx_bytes: Option<i64>, "bytes", "rtnl_link_stats64.tx_bytes", "bytes sent, so far";
        rx_errors: Option<i64>, "packets", "rtnl_link_stats64.rx_errors", "bad packets received, so far";
        tx_errors: Option<i64>, "packets", "rtnl_link_stats64.tx_errors", "packets that could not be sent, so far";
        rx_dropped: Option<i64>, "packets", "rtnl_link_stats64.rx_dropped", "received and dropped for want of memory or a taker, so far";
        tx_dropped: Option<i64>, "packets", "rtnl_link_stats64.tx_dropped", "dropped on the way out, so far";
        multicast: Option<i64>, "packets", "rtnl_link_stats64.multicast", "multicast packets received, so far";
        collisions: Option<i64>, "", "rtnl_link_stats64.collisions", "collisions, so far";
        rx_length_errors: Option<i64>, "packets", "rtnl_link_stats64.rx_length_errors", "of rx_errors, wrong length, so far";
        rx_over_errors: Option<i64>, "packets", "rtnl_link_stats64.rx_over_errors", "of rx_errors, ring overflow, so far";
        rx_crc_errors: Option<i64>, "packets", "rtnl_link_stats64.rx_crc_errors", "of rx_errors, checksum, so far";
        rx_frame_errors: Option<i64>, "packets", "rtnl_link_stats64.rx_frame_errors", "of rx_errors, alignment, so far";
        rx_fifo_errors: Option<i64>, "packets", "rtnl_link_stats64.rx_fifo_errors", "of rx_errors, fifo overrun, so far";
        rx_missed_errors: Option<i64>, "packets", "rtnl_link_stats64.rx_missed_errors", "missed by the device, host too slow, so far";
        tx_aborted_errors: Option<i64>, "packets", "rtnl_link_stats64.tx_aborted_errors", "of tx_errors, aborted, so far";
        tx_carrier_errors: Option<i64>, "packets", "rtnl_link_stats64.tx_carrier_errors", "of tx_errors, no carrier, so far";
        tx_fifo_errors: Option<i64>, "packets", "rtnl_link_stats64.tx_fifo_errors", "of tx_errors, fifo underrun, so far";
        tx_heartbeat_errors: Option<i64>, "packets", "rtnl_link_stats64.tx_heartbeat_errors", "of tx_errors, heartbeat, so far";
        tx_window_errors: Option<i64>, "packets", "rtnl_link_stats64.tx_window_errors", "of tx_errors, late collisions, so far";
        rx_nohandler: Option<i64>, "packets", "rtnl_link_stats64.rx_nohandler", "dropped on a device that is not in use, so far";
    }
}
