//! `samples`: each flow's sender over time.

use crate::table;

table! {
    /// A flow's sender at intervals, in the words of `tcp_info`. A flow whose
    /// sender had nothing to do since its last row has no row: the last one holds.
    /// Null, where no other meaning is given: this kernel does not tell.
    "samples" Samples of Sample {
        cell: i32, "", "tcpknee", "cell of the matrix";
        rep: i32, "", "tcpknee", "repetition, from 0";
        t_ns: i64, "ns", "tcpknee", "time since the run began";
        flow: i32, "", "tcpknee", "flow number, from 0";
        ca_state: i32, "", "tcp_info.tcpi_ca_state", "0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss";
        snd_cwnd: i64, "segments", "tcp_info.tcpi_snd_cwnd", "congestion window";
        snd_ssthresh: i64, "segments", "tcp_info.tcpi_snd_ssthresh", "slow-start threshold; 2147483647 before the first congestion event";
        inflight: i64, "segments", "Linux tcp_packets_in_flight()", "unacked - sacked - lost + retrans";
        unacked: i64, "segments", "tcp_info.tcpi_unacked", "sent and not cumulatively acked";
        sacked: i64, "segments", "tcp_info.tcpi_sacked", "of unacked: selectively acked";
        lost: i64, "segments", "tcp_info.tcpi_lost", "of unacked: marked lost";
        retrans: i64, "segments", "tcp_info.tcpi_retrans", "of unacked: retransmitted and not acked";
        total_retrans: i64, "segments", "tcp_info.tcpi_total_retrans", "retransmissions so far, those of SYN and FIN too";
        data_segs_out: Option<i64>, "segments", "tcp_info.tcpi_data_segs_out", "data segments sent so far, with retransmissions";
        srtt_us: i64, "us", "tcp_info.tcpi_rtt", "smoothed round-trip time; 0 before the first";
        rttvar_us: i64, "us", "tcp_info.tcpi_rttvar", "round-trip time variation";
        min_rtt_us: Option<i64>, "us", "tcp_info.tcpi_min_rtt", "least RTT of the window kept (300 s); 0 before the first";
        rto_us: i64, "us", "tcp_info.tcpi_rto", "retransmission timeout without backoff";
        backoff: i32, "", "tcp_info.tcpi_backoff", "times the timeout has doubled";
        pacing_rate_bits_per_sec: Option<i64>, "bit/s", "tcp_info.tcpi_pacing_rate", "sk_pacing_rate; counts payload, as Linux does; null: unlimited, before the first RTT";
        delivery_rate_bits_per_sec: Option<i64>, "bit/s", "tcp_info.tcpi_delivery_rate", "last delivery-rate sample; 0 before the first";
        delivery_rate_app_limited: bool, "", "tcp_info.tcpi_delivery_rate_app_limited", "was that sample limited by the application?";
        delivered: Option<i64>, "segments", "tcp_info.tcpi_delivered", "delivered so far, with retransmissions";
        delivered_ce: Option<i64>, "segments", "tcp_info.tcpi_delivered_ce", "of those: echoed as CE marked";
        bytes_sent: Option<i64>, "bytes", "tcp_info.tcpi_bytes_sent", "payload sent so far, with retransmissions";
        bytes_retrans: Option<i64>, "bytes", "tcp_info.tcpi_bytes_retrans", "of those: retransmitted";
        bytes_acked: Option<i64>, "bytes", "tcp_info.tcpi_bytes_acked", "cumulatively acked so far";
        bytes_read: i64, "bytes", "tcpknee", "read in order by the application at the far end so far";
        notsent_bytes: Option<i64>, "bytes", "tcp_info.tcpi_notsent_bytes", "written by the application, not yet sent";
        snd_wnd_bytes: Option<i64>, "bytes", "tcp_info.tcpi_snd_wnd", "window that the far end allows";
        sndbuf_bytes: Option<i64>, "bytes", "SO_MEMINFO SK_MEMINFO_SNDBUF", "send buffer, as autotuned";
        rcvbuf_bytes: Option<i64>, "bytes", "SO_MEMINFO SK_MEMINFO_RCVBUF", "the far end's receive buffer, as autotuned";
        busy_us: Option<i64>, "us", "tcp_info.tcpi_busy_time", "time with data outstanding or limited by a window or buffer";
        rwnd_limited_us: Option<i64>, "us", "tcp_info.tcpi_rwnd_limited", "time limited by the receive window";
        sndbuf_limited_us: Option<i64>, "us", "tcp_info.tcpi_sndbuf_limited", "time limited by the send buffer";
        reordering: i32, "segments", "tcp_info.tcpi_reordering", "reordering degree assumed";
        reord_seen: Option<i64>, "", "tcp_info.tcpi_reord_seen", "reordering events seen";
        dsack_dups: Option<i64>, "segments", "tcp_info.tcpi_dsack_dups", "duplicates reported by DSACK";
        bbr_bw_bits_per_sec: Option<i64>, "bit/s", "tcp_bbr_info.bbr_bw_lo, bbr_bw_hi", "bandwidth that the algorithm reckons with, payload; null: not measured yet, or the algorithm keeps no model of the path";
        bbr_min_rtt_us: Option<i64>, "us", "tcp_bbr_info.bbr_min_rtt", "round-trip time without queue that it reckons with; null: as above";
        bbr_pacing_gain: Option<f64>, "", "tcp_bbr_info.bbr_pacing_gain", "pacing rate over bandwidth; null: the algorithm keeps no model of the path";
        bbr_cwnd_gain: Option<f64>, "", "tcp_bbr_info.bbr_cwnd_gain", "window over bandwidth-delay product; null: the algorithm keeps no model of the path";
        cc_phase: &'static str, "", "tcpknee", "phase of the algorithm: Startup, Drain, ProbeBw, ProbeRtt of bbr1; empty: it has none";
    }
}
