//! `flows`: one row per flow and repetition, what became of it.

use crate::table;

table! {
    /// What became of each flow. Counts are of the flow's whole life; rates,
    /// distributions and limits are of its steady part. That is from the later
    /// of warm-up and the flow's start to its end; of a finite transfer it is
    /// the whole life, from its opening to the last byte read by the far
    /// application or, where that is not within the run, to the run's end.
    "flows" Flows of Flow {
        cell: i32, "", "tcpknee", "cell of the matrix";
        rep: i32, "", "tcpknee", "repetition, from 0";
        flow: i32, "", "tcpknee", "flow number, from 0";
        group: i32, "", "tcpknee", "which [[flow]] table of the scenario it came from, from 0";
        name: String, "", "tcpknee", "name of that table";
        algorithm: String, "", "TCP_CONGESTION", "congestion control of the sender";
        workload: &'static str, "", "tcpknee", "what the application does";
        start_ns: i64, "ns", "tcpknee", "when the connection was opened";
        end_ns: Option<i64>, "ns", "tcpknee", "when its work was complete; null: not within the run";
        completion_us: Option<i64>, "us", "tcpknee", "from opening to the last byte read by the far application; null: not a finite transfer, or not complete";
        transfer_bytes: Option<i64>, "bytes", "tcpknee", "payload that the transfer is to carry; null: not a finite transfer";
        slowdown: Option<f64>, "", "normalized FCT: Alizadeh et al.: pFabric, SIGCOMM 2013, section 5", "completion over the least that the path allows: a handshake, half a round trip, and the transfer's packets at the rate of its narrowest hop; null: as completion_us, or the rate or the route changes with time";
        goodput_bits_per_sec: f64, "bit/s", "RFC 2647, 3.17", "payload read in order by the far application, over the steady part";
        throughput_bits_per_sec: Option<f64>, "bit/s", "tcpknee", "payload sent, with retransmissions, over the steady part; null: the kernel does not tell";
        bytes_read: i64, "bytes", "tcpknee", "payload read in order by the far application";
        bytes_acked: Option<i64>, "bytes", "tcp_info.tcpi_bytes_acked", "cumulatively acked; SYN and FIN count one each, as in Linux; null: the kernel does not tell";
        bytes_sent: Option<i64>, "bytes", "tcp_info.tcpi_bytes_sent", "payload sent, with retransmissions; null: the kernel does not tell";
        bytes_retrans: Option<i64>, "bytes", "tcp_info.tcpi_bytes_retrans", "of those: retransmitted; null: the kernel does not tell";
        data_segs_out: Option<i64>, "segments", "tcp_info.tcpi_data_segs_out", "data segments sent, with retransmissions; null: the kernel does not tell";
        total_retrans: i64, "segments", "tcp_info.tcpi_total_retrans", "retransmissions, those of SYN and FIN too, which data_segs_out does not count";
        retransmit_pct: Option<f64>, "%", "tcpknee", "total_retrans / data_segs_out, to which a retransmitted SYN or FIN counts as well; null: the kernel does not tell";
        path_lost_pkts: Option<i64>, "packets", "tcpknee", "packets on the way to the receiver, SYN and FIN too, lost by the path's own loss; null: known of the simulator\'s path and of our link alone, not of netem, a veth pair or a path between two hosts";
        queue_dropped_pkts: Option<i64>, "packets", "tcpknee", "packets on that way dropped by the queue; null: known of the simulator\'s path and of our link alone, not of netem, a veth pair or a path between two hosts";
        srtt_us_mean: Option<f64>, "us", "tcpknee", "mean smoothed RTT over the steady part's ACKs; on a real kernel, of each sample for the segments received since the last; null: no sample of that part";
        srtt_us_p50: Option<f64>, "us", "tcpknee", "median over the steady part's ACKs, within 1 %; null: as the mean";
        srtt_us_p95: Option<f64>, "us", "tcpknee", "95th percentile, within 1 %; null: as the mean";
        srtt_us_p99: Option<f64>, "us", "tcpknee", "99th percentile, within 1 %; null: as the mean";
        min_rtt_us: Option<i64>, "us", "tcp_info.tcpi_min_rtt", "least RTT measured in the flow's life";
        queue_delay_us_mean: Option<f64>, "us", "tcpknee", "mean wait of this flow's packets in the queue, steady part; null: no packet left it then, or, as of netem, a veth pair or two hosts, nobody tells it by flow";
        queue_delay_us_p50: Option<f64>, "us", "tcpknee", "median wait, within 1 %; null: as the mean";
        queue_delay_us_p95: Option<f64>, "us", "tcpknee", "95th percentile of the wait, within 1 %; null: as the mean";
        queue_delay_us_p99: Option<f64>, "us", "tcpknee", "99th percentile of the wait, within 1 %; null: as the mean";
        snd_cwnd_mean: Option<f64>, "segments", "tcpknee", "mean congestion window over time, steady part; null: no sample of that part";
        inflight_mean: Option<f64>, "segments", "tcpknee", "mean packets in flight over time, steady part; null: as above";
        cwnd_limited_us: Option<i64>, "us", "tcpknee", "time of the steady part when the congestion window held data back; no kernel counts it: of a real one estimated from the samples that show a full window, once the times that it counts are taken out; null: no sample of that part, or the kernel does not tell enough (before Linux 4.6)";
        rwnd_limited_us: Option<i64>, "us", "tcp_info.tcpi_rwnd_limited", "time of the steady part when the receive window held data back; null: the kernel does not tell";
        sndbuf_limited_us: Option<i64>, "us", "tcp_info.tcpi_sndbuf_limited", "time of the steady part when the send buffer held the application back; of a real kernel also where samples show a full buffer and a window with room, as kernels count little of it; null: the kernel does not tell";
        pacing_limited_us: Option<i64>, "us", "tcpknee", "time of the steady part when the pacing timer held data back, or the qdisc or NIC; of a real kernel the part of samples that show data waiting and a window with room; null: there is no sample";
        app_limited_us: Option<i64>, "us", "tcpknee", "time of the steady part when the application had nothing to send, of a real kernel when besides nothing was outstanding; null: the kernel does not tell";
        cpu_limited_us: Option<i64>, "us", "tcpknee", "time of the steady part when a processor of the sender's or the receiver's host that the flow needs was busy for 95 % and more of a sample_interval, and TCP waited, for whatever; it counts under no other limit; null: the hosts have no processors (sender.costs, receiver.costs), or a real kernel's, which does not tell";
        rto_count: Option<i64>, "", "tcp_info.tcpi_total_rto", "retransmission timeouts; null: the kernel does not tell";
        recovery_count: Option<i64>, "", "tcpknee", "fast recoveries entered; null: the kernel does not tell";
        undo_count: Option<i64>, "", "tcpknee", "reductions undone as spurious; null: the kernel does not tell";
        tlp_count: Option<i64>, "", "tcpknee", "tail loss probes sent; null: the kernel does not tell";
        requests: Option<i64>, "", "tcpknee", "requests answered in the steady part; null: not a request/response workload";
        requests_per_sec: Option<f64>, "1/s", "tcpknee", "requests answered per second of the steady part";
        latency_us_p50: Option<f64>, "us", "tcpknee", "median time from writing a request to reading its whole answer, within 1 %";
        latency_us_p95: Option<f64>, "us", "tcpknee", "95th percentile of it";
        latency_us_p99: Option<f64>, "us", "tcpknee", "99th percentile of it";
        writes: i64, "", "send(2)", "write() calls of the sender's application of which the socket took something; one that finds too little room in the send buffer is made again for the rest";
        reads: Option<i64>, "", "recv(2)", "read() calls of the receiver's application that brought something; null: not workload small-writes";
        read_bytes_p50: Option<f64>, "bytes", "tcpknee", "median of what a read brought, within 1 %; null: as above";
        read_bytes_p99: Option<f64>, "bytes", "tcpknee", "99th percentile of it";
        read_gap_us_p50: Option<f64>, "us", "tcpknee", "median time from a read to the next, within 1 %; null: as above, or fewer than two";
        read_gap_us_p99: Option<f64>, "us", "tcpknee", "99th percentile of it";
    }
}
