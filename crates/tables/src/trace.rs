//! What `knee trace` writes of live connections: every segment that arrives,
//! what happened, and who the connections are.

use crate::{Samples, Schema, Table, TcpInfoSamples, table};

table! {
    /// A connection's sender at each segment that arrives at an established
    /// socket, as the segment finds it: what the ACKs before it made of the
    /// connection.
    "acks" Acks of Ack {
        t_ns: i64, "ns", "bpf_ktime_get_ns()", "time since the trace began, by the monotonic clock";
        cookie: i64, "", "SO_COOKIE", "number of the connection, unique since boot";
        seq: i64, "", "TCP header of the segment", "its sequence number";
        ack_seq: i64, "", "tcp_skb_cb.ack_seq", "what it acknowledges: sequence numbers below this; of segments that were put together, what the last does";
        payload_bytes: i64, "bytes", "TCP header of the segment", "its payload; 0: an ACK and no more";
        tcp_flags: i32, "", "TCP header of the segment", "bits: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR";
        snd_una: i64, "", "tcp_sock.snd_una", "first sequence number not acknowledged, modulo 2^32";
        snd_nxt: i64, "", "tcp_sock.snd_nxt", "next sequence number to send, modulo 2^32";
        snd_wnd_bytes: i64 = like Samples;
        rcv_wnd_bytes: i64 = like TcpInfoSamples;
        ca_state: i32 = like Samples;
        snd_cwnd: i64 = like Samples;
        snd_ssthresh: i64 = like Samples;
        inflight: i64 = like Samples;
        unacked: i64 = like Samples;
        sacked: i64 = like Samples;
        lost: i64 = like Samples;
        retrans: i64 = like Samples;
        total_retrans: i64 = like Samples;
        data_segs_out: i64 = like Samples;
        srtt_us: i64 = like Samples;
        rttvar_us: i64 = like Samples;
        min_rtt_us: i64 = like Samples;
        backoff: i32 = like Samples;
        retransmits: i32 = like TcpInfoSamples;
        pacing_rate_bits_per_sec: Option<i64> = like Samples;
        delivery_rate_bits_per_sec: i64 = like Samples;
        delivery_rate_app_limited: bool = like Samples;
        delivered: i64 = like Samples;
        delivered_ce: i64 = like Samples;
        total_lost: i64, "segments", "tcp_sock.lost", "marked lost so far";
        bytes_sent: i64 = like Samples;
        bytes_retrans: i64 = like Samples;
        bytes_acked: i64 = like Samples;
        notsent_bytes: i64 = like Samples;
        snd_mss_bytes: i64, "bytes", "tcp_sock.mss_cache", "payload bytes of a full segment sent";
        reordering: i32 = like Samples;
    }
}

table! {
    /// Turning points of traced connections, in the words of a run's `events`.
    "trace_events" TraceEvents of TraceEvent {
        t_ns: i64, "ns", "bpf_ktime_get_ns()", "time since the trace began, by the monotonic clock";
        cookie: i64, "", "SO_COOKIE", "number of the connection";
        event: &'static str, "", "tcpknee", "open, established, fin_wait1, fin_wait2, closing, close_wait, last_ack, time_wait, closed; cwr, recovery, loss, and cwr_end, recovery_end, loss_end where none of them follows; retransmit";
        snd_cwnd: i64, "segments", "tcp_info.tcpi_snd_cwnd", "congestion window as the event begins, before it has changed it";
        snd_ssthresh: i64, "segments", "tcp_info.tcpi_snd_ssthresh", "slow-start threshold then";
        snd_una: i64, "", "tcp_sock.snd_una", "first sequence number not acknowledged, modulo 2^32";
        seq: Option<i64>, "", "tcp_skb_cb.seq", "of a retransmit: first sequence number sent again";
        payload_bytes: Option<i64>, "bytes", "tcp_skb_cb.end_seq - seq", "of a retransmit: sequence numbers sent again, a FIN or SYN as one";
    }
}

table! {
    /// The connections of a trace, each written as it closes or as the trace ends.
    "connections" Connections of Connection {
        cookie: i64, "", "SO_COOKIE", "number of the connection, unique since boot";
        netns: i64, "", "inode of /proc/PID/ns/net", "network namespace of the socket";
        source: String, "", "inet_sock.inet_saddr", "address of this end";
        source_port: i32, "", "inet_sock.inet_num", "port of this end";
        destination: String, "", "inet_sock.inet_daddr", "address of the far end";
        destination_port: i32, "", "inet_sock.inet_dport", "port of the far end";
        algorithm: String, "", "TCP_CONGESTION", "congestion control, the last that was seen";
        first_ns: i64, "ns", "tcpknee", "time of its first record";
        last_ns: i64, "ns", "tcpknee", "time of its last record";
        acks: i64, "", "tcpknee", "its rows of acks";
        events: i64, "", "tcpknee", "its rows of events";
        closed: bool, "", "tcpknee", "was it closed within the trace?";
    }
}

/// Tables of a trace.
pub const TRACE: &[Schema] = &[Acks::SCHEMA, TraceEvents::SCHEMA, Connections::SCHEMA];
