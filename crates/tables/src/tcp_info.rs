//! What the kernel says of a socket besides what `samples` has: the further
//! columns of `samples` when a real kernel was sampled.

use crate::table;

table! {
    /// Further columns of `samples`, row by row beside it, filled where the
    /// samples come from a real kernel. Null: this kernel does not tell.
    "tcp_info" TcpInfoSamples of TcpInfoSample {
        tcp_state: i32, "", "tcp_info.tcpi_state", "1 ESTABLISHED, 4 FIN_WAIT1, 5 FIN_WAIT2, 8 CLOSE_WAIT, …";
        retransmits: i32, "", "tcp_info.tcpi_retransmits", "timeouts in a row without an answer";
        probes: i32, "", "tcp_info.tcpi_probes", "window probes in a row without an answer";
        options: i32, "", "tcp_info.tcpi_options", "bits: 1 timestamps, 2 SACK, 4 window scale, 8 ECN, 16 ECN seen, 32 SYN data, 64 usec timestamps";
        snd_wscale: i32, "", "tcp_info.tcpi_snd_wscale", "window scale of the far end";
        rcv_wscale: i32, "", "tcp_info.tcpi_rcv_wscale", "window scale of this end";
        ato_us: i64, "us", "tcp_info.tcpi_ato", "delayed-ACK timeout";
        snd_mss_bytes: i64, "bytes", "tcp_info.tcpi_snd_mss", "payload bytes of a full segment sent";
        rcv_mss_bytes: i64, "bytes", "tcp_info.tcpi_rcv_mss", "estimate of the far end's segment size";
        last_data_sent_ms: i64, "ms", "tcp_info.tcpi_last_data_sent", "since data was last sent";
        last_data_recv_ms: i64, "ms", "tcp_info.tcpi_last_data_recv", "since data was last received";
        last_ack_recv_ms: i64, "ms", "tcp_info.tcpi_last_ack_recv", "since an ACK was last received";
        pmtu_bytes: i64, "bytes", "tcp_info.tcpi_pmtu", "path MTU";
        rcv_ssthresh_bytes: i64, "bytes", "tcp_info.tcpi_rcv_ssthresh", "clamp of the window offered";
        advmss_bytes: i64, "bytes", "tcp_info.tcpi_advmss", "MSS offered";
        rcv_rtt_us: i64, "us", "tcp_info.tcpi_rcv_rtt", "receiver's estimate of the RTT";
        rcv_space_bytes: i64, "bytes", "tcp_info.tcpi_rcv_space", "receive buffer space that autotuning reckons with";
        max_pacing_rate_bits_per_sec: Option<i64>, "bit/s", "tcp_info.tcpi_max_pacing_rate", "SO_MAX_PACING_RATE; null: unlimited";
        bytes_received: Option<i64>, "bytes", "tcp_info.tcpi_bytes_received", "received in order so far";
        segs_out: Option<i64>, "segments", "tcp_info.tcpi_segs_out", "segments sent so far, ACKs too";
        segs_in: Option<i64>, "segments", "tcp_info.tcpi_segs_in", "segments received so far, ACKs too";
        data_segs_in: Option<i64>, "segments", "tcp_info.tcpi_data_segs_in", "data segments received so far";
        rcv_ooopack: Option<i64>, "segments", "tcp_info.tcpi_rcv_ooopack", "segments received out of order so far";
        rcv_wnd_bytes: Option<i64>, "bytes", "tcp_info.tcpi_rcv_wnd", "window offered to the far end";
        rehash: Option<i64>, "", "tcp_info.tcpi_rehash", "times the flow label changed after timeouts (PLB and others)";
        total_rto: Option<i64>, "", "tcp_info.tcpi_total_rto", "retransmission timeouts so far";
        total_rto_recoveries: Option<i64>, "", "tcp_info.tcpi_total_rto_recoveries", "recoveries from timeouts so far";
        total_rto_time_ms: Option<i64>, "ms", "tcp_info.tcpi_total_rto_time", "time spent in those so far";
        received_ce: Option<i64>, "packets", "tcp_info.tcpi_received_ce", "CE marked packets received so far";
        delivered_e1_bytes: Option<i64>, "bytes", "tcp_info.tcpi_delivered_e1_bytes", "payload that AccECN reported as ECT(1)";
        delivered_e0_bytes: Option<i64>, "bytes", "tcp_info.tcpi_delivered_e0_bytes", "payload that AccECN reported as ECT(0)";
        delivered_ce_bytes: Option<i64>, "bytes", "tcp_info.tcpi_delivered_ce_bytes", "payload that AccECN reported as CE";
        received_e1_bytes: Option<i64>, "bytes", "tcp_info.tcpi_received_e1_bytes", "payload received as ECT(1)";
        received_e0_bytes: Option<i64>, "bytes", "tcp_info.tcpi_received_e0_bytes", "payload received as ECT(0)";
        received_ce_bytes: Option<i64>, "bytes", "tcp_info.tcpi_received_ce_bytes", "payload received as CE";
        vegas_enabled: Option<i64>, "", "tcpvegas_info.tcpv_enabled", "is Vegas in charge? null: no Vegas";
        vegas_rttcnt: Option<i64>, "", "tcpvegas_info.tcpv_rttcnt", "RTTs measured in the last round; null: no Vegas";
        vegas_rtt_us: Option<i64>, "us", "tcpvegas_info.tcpv_rtt", "RTT of the last round; null: no Vegas";
        vegas_minrtt_us: Option<i64>, "us", "tcpvegas_info.tcpv_minrtt", "base RTT; null: no Vegas";
        dctcp_enabled: Option<i64>, "", "tcp_dctcp_info.dctcp_enabled", "did ECN come about? null: no DCTCP";
        dctcp_ce_state: Option<i64>, "", "tcp_dctcp_info.dctcp_ce_state", "is the receiver in a run of CE marks? null: no DCTCP";
        dctcp_alpha: Option<f64>, "", "tcp_dctcp_info.dctcp_alpha", "share of marked bytes, smoothed; null: no DCTCP";
        dctcp_ab_ecn_bytes: Option<i64>, "bytes", "tcp_dctcp_info.dctcp_ab_ecn", "marked bytes acked of the round; null: no DCTCP";
        dctcp_ab_tot_bytes: Option<i64>, "bytes", "tcp_dctcp_info.dctcp_ab_tot", "bytes acked of the round; null: no DCTCP";
        mem_rmem_bytes: Option<i64>, "bytes", "SO_MEMINFO SK_MEMINFO_RMEM_ALLOC", "receive memory in use";
        mem_wmem_bytes: Option<i64>, "bytes", "SO_MEMINFO SK_MEMINFO_WMEM_ALLOC", "memory of packets in qdisc and device";
        mem_wmem_queued_bytes: Option<i64>, "bytes", "SO_MEMINFO SK_MEMINFO_WMEM_QUEUED", "memory of the send queue";
        mem_drops: Option<i64>, "packets", "SO_MEMINFO SK_MEMINFO_DROPS", "packets dropped by the socket";
    }
}
