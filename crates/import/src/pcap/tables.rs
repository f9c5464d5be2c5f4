//! `capture_acks` and `capture_connections`: what packet captures tell.

use knee_tables::{Name, Text, table};

table! {
    /// A row per ACK that says something new to a sender of data, or per interval
    /// with one. Local is the side whose data is acknowledged: a connection that
    /// carries data both ways has rows of both sides. Counters count from the
    /// start of the capture, after the row's ACK.
    "capture_acks" CaptureAcks {
        t_unix_ns: Option<i64>, "ns", "capture", "time of the ACK at the capture, since 1970-01-01 UTC; of an interval: its start";
        connection: Option<i64>, "", "tcpknee", "number of the connection within its import, from 0, in the order of first packets";
        host: Option<Name>, "", "tcpknee", "host of the capture, as said; null: not said";
        local_addr: Option<Text>, "", "IP header", "address of the side that sent the data; as anonymised";
        local_port: Option<i32>, "", "TCP header", "its port";
        remote_addr: Option<Text>, "", "IP header", "address of the side that acknowledges it; as anonymised";
        remote_port: Option<i32>, "", "TCP header", "its port";
        rtt_us: Option<i64>, "us", "data -> ACK; Karn and Partridge, SIGCOMM 1987", "round-trip time between the capture and the receiver, of the newest segment that the ACK acknowledges first, by number or SACK; of an interval: the mean; null: none, or it acknowledges what was sent again";
        rtt_us_min: Option<i64>, "us", "tcpknee", "least rtt_us of the interval; null: no interval";
        rtt_us_max: Option<i64>, "us", "tcpknee", "greatest rtt_us of the interval; null: no interval";
        rtt_samples: Option<i64>, "", "tcpknee", "values of rtt_us in the interval; null: no interval";
        rtt_ts_us: Option<i64>, "us", "TCP timestamps, RFC 7323", "round-trip time from the first data with a timestamp to its first echo, also of what was sent again; of an interval: the least; null: no new echo";
        bytes_sent: Option<i64>, "bytes", "tcpknee", "payload sent so far, with retransmissions";
        bytes_retrans: Option<i64>, "bytes", "tcpknee", "of those: sent again";
        bytes_acked: Option<i64>, "bytes", "tcpknee", "cumulatively acknowledged so far";
        delivered_bytes: Option<i64>, "bytes", "tcpknee", "acknowledged so far, cumulatively or by SACK";
        unacked_bytes: Option<i64>, "bytes", "snd_nxt - snd_una", "sent and not cumulatively acknowledged";
        sacked_bytes: Option<i64>, "bytes", "RFC 2018", "of those: acknowledged by SACK";
        inflight_bytes: Option<i64>, "bytes", "unacked_bytes - sacked_bytes", "sent and not acknowledged in any way; what is lost counts until it is acknowledged";
        snd_wnd_bytes: Option<i64>, "bytes", "TCP header, scaled", "window that the far end allows; null: the handshake, which says its scale, was not captured";
        data_segs_out: Option<i64>, "segments", "bytes over the MSS, rounded up", "data segments sent so far, with retransmissions; a packet that segmentation offload was to cut counts as its pieces";
        total_retrans: Option<i64>, "segments", "tcpknee", "retransmissions so far";
        spurious_retrans: Option<i64>, "segments", "DSACK, RFC 2883", "of those: the far end says that it had them already";
        dsack_dups: Option<i64>, "segments", "DSACK, RFC 2883", "what the far end says it got twice so far, whoever made it two";
        dup_acks: Option<i64>, "", "RFC 5681, RFC 6675", "duplicate ACKs so far";
        out_of_order: Option<i64>, "segments", "tcpknee", "data that came to the capture later than data after it, so far, and was not sent again";
        ce_packets: Option<i64>, "packets", "RFC 3168", "data and ACKs of this side that came to the capture with CE, so far";
        ece_acks: Option<i64>, "packets", "RFC 3168", "ACKs with ECE so far";
    }
}

table! {
    /// A row per connection of a capture. Local is the side that sent more
    /// payload; between equals, the one that opened it.
    "capture_connections" CaptureConnections {
        t_unix_ns: Option<i64>, "ns", "capture", "time of its first packet, since 1970-01-01 UTC";
        connection: Option<i64>, "", "tcpknee", "number of the connection within its import, from 0, in the order of first packets";
        host: Option<Name>, "", "tcpknee", "host of the capture, as said; null: not said";
        local_addr: Option<Text>, "", "IP header", "address of the side that sent more payload; as anonymised";
        local_port: Option<i32>, "", "TCP header", "its port";
        remote_addr: Option<Text>, "", "IP header", "address of the other side; as anonymised";
        remote_port: Option<i32>, "", "TCP header", "its port";
        opened_by: Option<Name>, "", "SYN", "local or remote; null: the SYN was not captured";
        ended: Option<Name>, "", "tcpknee", "fin: both sides closed it; rst: one reset it; open: neither was seen; reused: another connection took its ports; left: it was silent longest when too many were open";
        vantage: Option<Name>, "", "the two legs", "where the capture was taken: sender (rtt_us is the sender's), receiver (rtt_us is that host's alone), middle; null: not told, or legs below 200 us together";
        duration_us: Option<i64>, "us", "capture", "from its first packet to its last";
        handshake_rtt_us: Option<i64>, "us", "SYN -> SYN-ACK -> ACK", "round-trip time of the handshake, whole wherever the capture was taken; null: not captured, or something of it was sent again";
        local_leg_us: Option<i64>, "us", "handshake; else TCP timestamps", "part of a round trip between the capture and the local side";
        remote_leg_us: Option<i64>, "us", "handshake; else least rtt_us", "part of it between the capture and the remote side";
        mss_bytes: Option<i64>, "bytes", "MSS options less timestamps", "payload of a full segment; null: the handshake was not captured";
        snd_wscale: Option<i32>, "", "RFC 7323", "shift of the windows that the remote side allows; null: the handshake was not captured";
        rcv_wscale: Option<i32>, "", "RFC 7323", "shift of the windows that the local side allows";
        sack: Option<bool>, "", "RFC 2018", "did both sides permit SACK? null: the handshake was not captured";
        timestamps: Option<bool>, "", "RFC 7323", "did both sides use timestamps? null: the handshake was not captured";
        packets_out: Option<i64>, "packets", "capture", "packets captured of the local side";
        packets_in: Option<i64>, "packets", "capture", "packets captured of the remote side";
        bytes_sent: Option<i64>, "bytes", "tcpknee", "payload that the local side sent, with retransmissions";
        bytes_retrans: Option<i64>, "bytes", "tcpknee", "of those: sent again";
        bytes_acked: Option<i64>, "bytes", "tcpknee", "of its payload: acknowledged";
        bytes_received: Option<i64>, "bytes", "tcpknee", "payload of the remote side that was acknowledged";
        bytes_received_retrans: Option<i64>, "bytes", "tcpknee", "payload that the remote side sent again";
        bytes_not_captured: Option<i64>, "bytes", "tcpknee", "acknowledged, either way, and not in the capture: more than 0 means that it dropped packets, and that losses may not be losses";
        data_segs_out: Option<i64>, "segments", "bytes over the MSS, rounded up", "data segments that the local side sent, with retransmissions";
        total_retrans: Option<i64>, "segments", "tcpknee", "retransmissions of the local side";
        retransmit_pct: Option<f64>, "%", "total_retrans / data_segs_out", "null: no data";
        spurious_retrans: Option<i64>, "segments", "DSACK, RFC 2883", "of its retransmissions: the far end says that it had them already";
        dsack_dups: Option<i64>, "segments", "DSACK, RFC 2883", "what the far end says it got twice";
        dup_acks: Option<i64>, "", "RFC 5681, RFC 6675", "duplicate ACKs of the remote side";
        out_of_order: Option<i64>, "segments", "tcpknee", "data of the local side that came to the capture late and was not sent again";
        ce_packets: Option<i64>, "packets", "RFC 3168", "packets of the local side that came to the capture with CE";
        ece_acks: Option<i64>, "packets", "RFC 3168", "ACKs of the remote side with ECE";
        zero_windows: Option<i64>, "packets", "TCP header", "packets of the remote side that allow nothing";
        rtt_us_min: Option<i64>, "us", "data -> ACK", "least rtt_us of the local side's data; null: none";
        rtt_us_p50: Option<i64>, "us", "data -> ACK", "median, to 0.8 %";
        rtt_us_p95: Option<i64>, "us", "data -> ACK", "95th percentile, to 0.8 %";
        rtt_us_max: Option<i64>, "us", "data -> ACK", "greatest";
        rtt_samples: Option<i64>, "", "tcpknee", "values of rtt_us";
        rtt_ts_us_min: Option<i64>, "us", "TCP timestamps, RFC 7323", "least rtt_ts_us; null: none";
        inflight_bytes_max: Option<i64>, "bytes", "tcpknee", "most that was in flight";
        goodput_bits_per_sec: Option<i64>, "bit/s", "bytes_acked over time", "payload acknowledged, from the first data to the last ACK of new data; null: none was acknowledged, or at once";
    }
}
