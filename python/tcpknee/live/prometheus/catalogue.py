"""What the exporter tells: each metric's name, unit and meaning, and which number of a sample it is.

Names follow Prometheus' rules: base units (seconds, bytes, ratios) as the last word, `_total` on counters, which is
not written here. Windows are in segments, as everywhere in TCP.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """`key` names the number in a sample (`crates/live/src/export/`), `factor` brings it to `unit`."""

    key: str
    name: str
    help: str
    unit: str = ""
    factor: float = 1.0


TCP_COUNTERS = (
    Metric("bytes_sent", "tcpknee_tcp_sent_bytes", "Payload sent, retransmissions included.", "bytes"),
    Metric(
        "bytes_acked",
        "tcpknee_tcp_acked_bytes",
        "Payload that the far end acknowledged; a SYN or FIN is a byte.",
        "bytes",
    ),
    Metric("bytes_received", "tcpknee_tcp_received_bytes", "Payload received in order; a FIN is a byte.", "bytes"),
    Metric("bytes_retrans", "tcpknee_tcp_retransmitted_bytes", "Payload sent again.", "bytes"),
    Metric("data_segs_out", "tcpknee_tcp_sent_data_segments", "Segments with payload sent.", "segments"),
    Metric("total_retrans", "tcpknee_tcp_retransmitted_segments", "Segments sent again, SYNs included.", "segments"),
    Metric("delivered", "tcpknee_tcp_delivered_segments", "Segments acknowledged or SACKed.", "segments"),
    Metric(
        "delivered_ce",
        "tcpknee_tcp_delivered_ce_segments",
        "Of the delivered segments, those that came with a congestion mark (ECN CE).",
        "segments",
    ),
    Metric(
        "dsack_dups",
        "tcpknee_tcp_duplicate_segments",
        "Segments that the far end told by DSACK to have had already.",
        "segments",
    ),
    Metric("reord_seen", "tcpknee_tcp_reordering_events", "Times that packets were seen to come out of order."),
    Metric("total_rto", "tcpknee_tcp_retransmission_timeouts", "Retransmission timeouts (Linux 6.7)."),
    Metric("busy_us", "tcpknee_tcp_busy_seconds", "Time with data outstanding, over all connections.", "seconds", 1e-6),
)
"""Sums over all connections since the exporter began, with those that have ended: what each did since it began or
since the first sample."""

TCP_LIMITED = Metric(
    "limited_us",
    "tcpknee_tcp_limited_seconds",
    "Time of connections by what held them back: rwnd and sndbuf as the kernel times them; of the rest of the busy "
    "time cwnd, pacing or app by the state at the sample, unknown after the last sample of a connection; else "
    "app or idle.",
    "seconds",
    1e-6,
)

TCP_CLOSED = Metric("closed", "tcpknee_tcp_closed_connections", "Connections that ended, attempts included.")

TCP_CONNECTIONS = Metric("connections", "tcpknee_tcp_connections", "Connections in the last sample.")

TCP_HISTOGRAMS = (
    Metric("srtt_us", "tcpknee_tcp_srtt_seconds", "Smoothed round-trip time.", "seconds", 1e-6),
    Metric("min_rtt_us", "tcpknee_tcp_min_rtt_seconds", "Least round-trip time of late.", "seconds", 1e-6),
    Metric("snd_cwnd", "tcpknee_tcp_snd_cwnd_segments", "Congestion window.", "segments"),
    Metric(
        "delivery_rate",
        "tcpknee_tcp_delivery_rate_bytes_per_second",
        "Delivery rate as the kernel measures it.",
        "bytes_per_second",
    ),
    Metric(
        "retransmit_ppm",
        "tcpknee_tcp_retransmit_ratio",
        "Segments sent again, of those sent since the sample before.",
        "ratio",
        1e-6,
    ),
)
"""One observation per sample of each connection that had something acknowledged since the one before (the last one:
that sent data), and one at its end."""


def _host(key: str, name: str, help: str, unit: str = "") -> Metric:
    return Metric(key, f"tcpknee_host_{name}", f"{help} ({key}).", unit)


HOST_COUNTERS = (
    _host("Tcp.ActiveOpens", "tcp_active_opens", "Connections begun by this host"),
    _host("Tcp.PassiveOpens", "tcp_passive_opens", "Connections begun by others"),
    _host("Tcp.AttemptFails", "tcp_failed_attempts", "Connections that were never established"),
    _host("Tcp.EstabResets", "tcp_established_resets", "Established connections that were reset"),
    _host("Tcp.InSegs", "tcp_received_segments", "Segments received", "segments"),
    _host("Tcp.OutSegs", "tcp_sent_segments", "Segments sent, without those sent again", "segments"),
    _host("Tcp.RetransSegs", "tcp_retransmitted_segments", "Segments sent again", "segments"),
    _host("Tcp.InErrs", "tcp_receive_errors", "Segments received with an error"),
    _host("Tcp.OutRsts", "tcp_sent_resets", "Segments sent with RST"),
    _host("TcpExt.TCPTimeouts", "tcp_timeouts", "Retransmission timers that went off"),
    _host("TcpExt.TCPSpuriousRTOs", "tcp_spurious_timeouts", "Timeouts that F-RTO found needless"),
    _host("TcpExt.TCPLossProbes", "tcp_loss_probes", "Tail loss probes sent"),
    _host("TcpExt.TCPFastRetrans", "tcp_fast_retransmits", "Segments sent again in recovery"),
    _host("TcpExt.TCPSlowStartRetrans", "tcp_slow_start_retransmits", "Segments sent again in slow start"),
    _host("TcpExt.TCPLostRetransmit", "tcp_lost_retransmits", "Segments whose retransmission was lost too"),
    _host("TcpExt.TCPSynRetrans", "tcp_syn_retransmits", "SYNs and SYN-ACKs sent again"),
    _host("TcpExt.TCPDSACKRecv", "tcp_received_dsacks", "DSACKs received"),
    _host("TcpExt.TCPSACKReorder", "tcp_sack_reorderings", "Reorderings found by SACK"),
    _host("TcpExt.TCPTSReorder", "tcp_timestamp_reorderings", "Reorderings found by timestamps"),
    _host("TcpExt.TCPAbortOnTimeout", "tcp_aborts_on_timeout", "Connections given up after too many timeouts"),
    _host("TcpExt.TCPAbortOnMemory", "tcp_aborts_on_memory", "Connections given up for want of memory"),
    _host("TcpExt.TCPMemoryPressures", "tcp_memory_pressures", "Times that TCP came under memory pressure"),
    _host("TcpExt.ListenOverflows", "tcp_listen_overflows", "Connections that found the accept queue full"),
    _host("TcpExt.ListenDrops", "tcp_listen_drops", "Connections that a listening socket dropped"),
    _host("TcpExt.TCPReqQFullDrop", "tcp_syn_queue_drops", "SYNs that found the SYN queue full"),
    _host("TcpExt.SyncookiesSent", "tcp_sent_syncookies", "SYN cookies sent"),
    _host("TcpExt.TCPBacklogDrop", "tcp_backlog_drops", "Segments dropped at a socket's full backlog"),
    _host("TcpExt.TCPRcvQDrop", "tcp_receive_queue_drops", "Segments dropped at a socket's full receive queue"),
    _host("TcpExt.TCPOFOQueue", "tcp_out_of_order_segments", "Segments queued out of order"),
    _host("TcpExt.TCPOFODrop", "tcp_out_of_order_drops", "Segments dropped at a full out-of-order queue"),
    _host("TcpExt.PruneCalled", "tcp_receive_prunes", "Times that a receive queue was pruned for memory"),
    _host("TcpExt.TCPZeroWindowDrop", "tcp_zero_window_drops", "Segments dropped for a closed window"),
    _host("TcpExt.TCPToZeroWindowAdv", "tcp_zero_window_advertisements", "Times that a window was closed"),
    _host("TcpExt.TCPTimeWaitOverflow", "tcp_time_wait_overflows", "Connections without room for TIME_WAIT"),
    _host("TcpExt.PAWSEstab", "tcp_paws_drops", "Segments of established connections dropped by PAWS"),
    _host("IpExt.InCEPkts", "ip_received_ce_packets", "Packets received with a congestion mark", "packets"),
    _host("IpExt.InECT0Pkts", "ip_received_ect0_packets", "Packets received with ECT(0)", "packets"),
    _host("IpExt.InECT1Pkts", "ip_received_ect1_packets", "Packets received with ECT(1)", "packets"),
    _host("softnet.dropped", "softnet_dropped_packets", "Packets dropped at a full per-processor backlog", "packets"),
    _host("softnet.time_squeeze", "softnet_time_squeezes", "Times that receiving ran out of its budget"),
)
"""Of the network namespace; of softnet, of the whole host. What a kernel does not count is absent."""

HOST_GAUGES = (
    _host("Tcp.CurrEstab", "tcp_established_connections", "Connections in ESTABLISHED or CLOSE_WAIT"),
    _host("TCP.inuse", "tcp_used_sockets", "TCP sockets of IPv4 in use"),
    _host("TCP.orphan", "tcp_orphaned_sockets", "Sockets that no process holds"),
    _host("TCP.tw", "tcp_time_wait_sockets", "Sockets in TIME_WAIT"),
    _host("TCP.mem", "tcp_memory_bytes", "Memory of all TCP buffers", "bytes"),
)

QDISC_COUNTERS = (
    Metric("bytes", "tcpknee_qdisc_sent_bytes", "Bytes that left the qdisc.", "bytes"),
    Metric("packets", "tcpknee_qdisc_sent_packets", "Packets that left the qdisc.", "packets"),
    Metric("drops", "tcpknee_qdisc_dropped_packets", "Packets that the qdisc dropped.", "packets"),
    Metric("overlimits", "tcpknee_qdisc_overlimits", "Times that the qdisc held a packet back."),
    Metric("requeues", "tcpknee_qdisc_requeues", "Packets that the device gave back."),
)
"""By device and kind, summed over qdiscs of one kind on one device. Those of a parent such as mq hold those of its
children."""

QDISC_GAUGES = (
    Metric("backlog_bytes", "tcpknee_qdisc_backlog_bytes", "Bytes that wait in the qdisc.", "bytes"),
    Metric("qlen_pkts", "tcpknee_qdisc_backlog_packets", "Packets that wait in the qdisc.", "packets"),
)

SAMPLING_COUNTERS = (
    Metric("samples", "tcpknee_samples", "Samples taken."),
    Metric("missed", "tcpknee_missed_samples", "Intervals left out because a sample took longer than one."),
    Metric(
        "failed", "tcpknee_failed_samples", "Samples that the kernel refused; the sums are those of the one before."
    ),
    Metric("interrupted", "tcpknee_interrupted_samples", "Samples during which the kernel's table changed."),
    Metric(
        "events_lost",
        "tcpknee_lost_events",
        "Ends of connections that the kernel had no room to tell: their last part is in no sum.",
    ),
    Metric(
        "final_left_out",
        "tcpknee_unjudged_events",
        "Ends of connections for which the filters ask what the kernel does not tell then; in no sum.",
    ),
)

SAMPLING_GAUGES = (
    Metric("events", "tcpknee_destroy_events_available", "1: the kernel tells when connections end; 0: it does not."),
    Metric("t_unix_ns", "tcpknee_sample_timestamp_seconds", "When the last sample was whole.", "seconds", 1e-9),
    Metric("elapsed_us", "tcpknee_sample_duration_seconds", "What the last sample took.", "seconds", 1e-6),
)

SAMPLING_CPU = Metric(
    "cpu",
    "tcpknee_sample_cpu_seconds",
    "Processor time of sampling; process_cpu_seconds_total has that of answering too.",
    "seconds",
    1e-6,
)

BUILD_INFO = Metric("build", "tcpknee_build_info", "1, with the version of tcpknee and of the kernel.")
