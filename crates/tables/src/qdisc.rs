//! `qdisc`: queues of devices over time.

use crate::{Name, table};

table! {
    /// A row per qdisc and sample. Columns that begin with fq_codel_ and fq_ are
    /// of those two only.
    "qdisc" Qdisc {
        t_unix_ns: Option<i64>, "ns", "CLOCK_REALTIME", "wall time of the sample, since 1970-01-01 UTC";
        t_mono_ns: Option<i64>, "ns", "CLOCK_MONOTONIC", "time of the sample on a clock that is never set; only differences mean something";
        host: Option<Name>, "", "uname nodename", "host";
        boot_id: Option<Name>, "", "/proc/sys/kernel/random/boot_id", "boot of the host; as anonymised";
        netns: Option<Name>, "", "/proc/PID/ns/net, or the name asked for", "network namespace";
        interface: Option<Name>, "", "tcmsg.tcm_ifindex", "device";
        kind: Option<Name>, "", "TCA_KIND", "fq, fq_codel, mq, pfifo_fast, …";
        handle: Option<Name>, "", "tcmsg.tcm_handle", "as tc prints it";
        parent: Option<Name>, "", "tcmsg.tcm_parent", "root, ingress, or the class that it hangs from, as tc prints it";
        bytes: Option<i64>, "bytes", "TCA_STATS_BASIC", "sent so far";
        packets: Option<i64>, "packets", "TCA_STATS_PKT64, TCA_STATS_BASIC", "sent so far";
        drops: Option<i64>, "packets", "TCA_STATS_QUEUE", "dropped so far";
        overlimits: Option<i64>, "", "TCA_STATS_QUEUE", "times over the limit so far";
        requeues: Option<i64>, "packets", "TCA_STATS_QUEUE", "put back because the device was busy, so far";
        backlog_bytes: Option<i64>, "bytes", "TCA_STATS_QUEUE", "in the queue";
        qlen_pkts: Option<i64>, "packets", "TCA_STATS_QUEUE", "in the queue";
        fq_codel_maxpacket_bytes: Option<i64>, "bytes", "tc_fq_codel_qd_stats.maxpacket", "largest packet so far";
        fq_codel_drop_overlimit: Option<i64>, "packets", "tc_fq_codel_qd_stats.drop_overlimit", "dropped because the queue was full, so far";
        fq_codel_drop_overmemory: Option<i64>, "packets", "tc_fq_codel_qd_stats.drop_overmemory", "dropped because of the memory limit, so far";
        fq_codel_ecn_mark: Option<i64>, "packets", "tc_fq_codel_qd_stats.ecn_mark", "marked instead of dropped, so far";
        fq_codel_ce_mark: Option<i64>, "packets", "tc_fq_codel_qd_stats.ce_mark", "marked because of ce_threshold, so far";
        fq_codel_new_flow_count: Option<i64>, "", "tc_fq_codel_qd_stats.new_flow_count", "flows that began so far";
        fq_codel_new_flows: Option<i64>, "", "tc_fq_codel_qd_stats.new_flows_len", "flows in the list of new ones";
        fq_codel_old_flows: Option<i64>, "", "tc_fq_codel_qd_stats.old_flows_len", "flows in the list of old ones";
        fq_codel_memory_bytes: Option<i64>, "bytes", "tc_fq_codel_qd_stats.memory_usage", "memory of queued packets";
        fq_flows: Option<i64>, "", "tc_fq_qd_stats.flows", "flows known";
        fq_inactive_flows: Option<i64>, "", "tc_fq_qd_stats.inactive_flows", "of those: without packets";
        fq_throttled_flows: Option<i64>, "", "tc_fq_qd_stats.throttled_flows", "of those: waiting because of their pacing rate";
        fq_gc_flows: Option<i64>, "", "tc_fq_qd_stats.gc_flows", "flows forgotten so far";
        fq_throttled: Option<i64>, "", "tc_fq_qd_stats.throttled", "times that a flow had to wait, so far";
        fq_flows_plimit: Option<i64>, "packets", "tc_fq_qd_stats.flows_plimit", "dropped because of the limit for each flow, so far";
        fq_pkts_too_long: Option<i64>, "packets", "tc_fq_qd_stats.pkts_too_long", "paced slower than the horizon, so far";
        fq_allocation_errors: Option<i64>, "", "tc_fq_qd_stats.allocation_errors", "flows for which there was no memory, so far";
        fq_highprio_packets: Option<i64>, "packets", "tc_fq_qd_stats.highprio_packets", "of the highest priority so far; not counted since Linux 6.7";
        fq_tcp_retrans: Option<i64>, "packets", "tc_fq_qd_stats.tcp_retrans", "retransmissions put first so far; not counted since Linux 4.20";
        fq_time_next_delayed_flow_ns: Option<i64>, "ns", "tc_fq_qd_stats.time_next_delayed_flow", "until the next waiting flow may send";
        fq_unthrottle_latency_ns: Option<i64>, "ns", "tc_fq_qd_stats.unthrottle_latency_ns", "how late its timer is, smoothed";
        fq_ce_mark: Option<i64>, "packets", "tc_fq_qd_stats.ce_mark", "marked because of ce_threshold, so far";
        fq_horizon_drops: Option<i64>, "packets", "tc_fq_qd_stats.horizon_drops", "dropped because their time was too far off, so far";
        fq_horizon_caps: Option<i64>, "packets", "tc_fq_qd_stats.horizon_caps", "sent earlier than asked because their time was too far off, so far";
        fq_fastpath_packets: Option<i64>, "packets", "tc_fq_qd_stats.fastpath_packets", "sent without a flow of their own, so far";
    }
}
