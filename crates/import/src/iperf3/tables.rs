//! `iperf3_intervals` and `iperf3_streams`: what iperf3 measured.

use knee_tables::{Name, Samples, TcpInfoSamples, Text, table};

table! {
    /// A row per interval and stream that an end reported on.
    "iperf3_intervals" Iperf3Intervals {
        file: Option<Name>, "", "tcpknee", "file that it was read from, as it was named";
        test: Option<i32>, "", "tcpknee", "position of the test within the file, from 0";
        stream: Option<i64>, "", "socket", "iperf3's number of the stream at this end, [ID] in its text";
        sender: Option<bool>, "", "sender", "does this end send? before iperf3 3.7: from side and direction";
        omitted: Option<bool>, "", "omitted", "is it among the first seconds, which -O leaves out of all sums?";
        t_unix_ns: Option<i64>, "ns", "start.timestamp", "wall time of its end, since 1970-01-01 UTC; iperf3 tells when it connected, in whole seconds before 3.20";
        start_ns: Option<i64>, "ns", "start", "its beginning, since the stream began to count; below 0: omitted";
        end_ns: Option<i64>, "ns", "end", "its end, when the figures of tcp_info were taken";
        bytes: Option<i64>, "bytes", "bytes", "payload that this end's application wrote (sender) or read";
        written_bits_per_sec: Option<f64>, "bit/s", "bits_per_second", "payload written by the sending application: what its send buffer took; null: this end receives";
        goodput_bits_per_sec: Option<f64>, "bit/s", "bits_per_second", "payload read in order by the receiving application; null: this end sends";
        interval_retrans: Option<i64>, "segments", "retransmits", "retransmissions within the interval";
        snd_cwnd_bytes: Option<i64>, "bytes", "snd_cwnd", "congestion window: tcpi_snd_cwnd x tcpi_snd_mss, which iperf3 does not tell by itself";
        snd_wnd_bytes: Option<i64> = like Samples;
        srtt_us: Option<i64> = like Samples;
        rttvar_us: Option<i64> = like Samples;
        pmtu_bytes: Option<i64> = like TcpInfoSamples;
        reord_seen: Option<i64>, "", "reorder", "reordering events seen in the stream's life so far";
        packets: Option<i64>, "packets", "packets", "of UDP: datagrams sent, or expected by this end";
        lost_packets: Option<i64>, "packets", "lost_packets", "of UDP: of those expected, not received";
        jitter_us: Option<f64>, "us", "jitter_ms", "of UDP: smoothed difference of transit times, RFC 1889";
    }
}

table! {
    /// A row per stream of a test that an end reported on.
    "iperf3_streams" Iperf3Streams {
        file: Option<Name>, "", "tcpknee", "file that it was read from, as it was named";
        test: Option<i32>, "", "tcpknee", "position of the test within the file, from 0";
        stream: Option<i64>, "", "socket", "iperf3's number of the stream at this end, [ID] in its text";
        side: Option<Name>, "", "connecting_to, accepted_connection", "client or server: who reports";
        sender: Option<bool>, "", "sender", "does this end send? before iperf3 3.7: from side and direction";
        protocol: Option<Name>, "", "protocol", "TCP, UDP or SCTP";
        algorithm: Option<Name>, "", "sender_tcp_congestion; of a two-way test's other direction receiver_tcp_congestion", "congestion control of the sender, as the kernel names it; null: not told, as by a receiving server";
        t_unix_ns: Option<i64>, "ns", "timestamp", "wall time when iperf3 connected, since 1970-01-01 UTC; in whole seconds before 3.20";
        duration_ns: Option<i64>, "ns", "end.streams seconds", "length of the test without what was omitted";
        omit_ns: Option<i64>, "ns", "omit", "left out of all sums at the beginning";
        local_addr: Option<Text>, "", "local_host", "address of this end; as anonymised";
        local_port: Option<i32>, "", "local_port", "port of this end";
        remote_addr: Option<Text>, "", "remote_host", "address of the far end; as anonymised";
        remote_port: Option<i32>, "", "remote_port", "port of the far end";
        bytes_written: Option<i64>, "bytes", "sender.bytes; udp.bytes", "payload that the sending application wrote";
        bytes_read: Option<i64>, "bytes", "receiver.bytes", "payload that the receiving application read; null: this end was not told";
        written_bits_per_sec: Option<f64>, "bit/s", "sender.bits_per_second; udp.bits_per_second", "payload that the sending application wrote, over the test";
        goodput_bits_per_sec: Option<f64>, "bit/s", "receiver.bits_per_second; RFC 2647, 3.17", "payload read in order by the receiving application, over the test; null: this end was not told";
        total_retrans: Option<i64>, "segments", "retransmits", "retransmissions over the test";
        snd_cwnd_bytes_max: Option<i64>, "bytes", "max_snd_cwnd", "largest congestion window at the end of an interval";
        snd_wnd_bytes_max: Option<i64>, "bytes", "max_snd_wnd", "largest window allowed by the far end, at the end of an interval";
        srtt_us_max: Option<i64>, "us", "max_rtt", "largest smoothed RTT at the end of an interval";
        srtt_us_min: Option<i64>, "us", "min_rtt", "smallest smoothed RTT at the end of an interval";
        srtt_us_mean: Option<f64>, "us", "mean_rtt", "mean smoothed RTT over the ends of intervals";
        reord_seen: Option<i64>, "", "reorder", "reordering events seen in the stream's life";
        packets: Option<i64>, "packets", "udp.packets", "of UDP: datagrams sent, or expected";
        lost_packets: Option<i64>, "packets", "udp.lost_packets", "of UDP: of those expected, not received";
        out_of_order: Option<i64>, "packets", "udp.out_of_order", "of UDP: received out of order";
        jitter_us: Option<f64>, "us", "udp.jitter_ms", "of UDP: smoothed difference of transit times, RFC 1889";
        cpu_pct: Option<f64>, "%", "cpu_utilization_percent.host_total", "processor time of iperf3 at this end, of one processor; the whole test's";
        cpu_user_pct: Option<f64>, "%", "cpu_utilization_percent.host_user", "of that, in user space";
        cpu_system_pct: Option<f64>, "%", "cpu_utilization_percent.host_system", "of that, in the kernel";
        remote_cpu_pct: Option<f64>, "%", "cpu_utilization_percent.remote_total", "processor time of iperf3 at the far end";
        remote_cpu_user_pct: Option<f64>, "%", "cpu_utilization_percent.remote_user", "of that, in user space";
        remote_cpu_system_pct: Option<f64>, "%", "cpu_utilization_percent.remote_system", "of that, in the kernel";
        streams: Option<i64>, "", "num_streams", "streams of the test in one direction (-P)";
        reverse: Option<bool>, "", "reverse", "does the server send (-R)?";
        bidir: Option<bool>, "", "bidir", "do both ends send (--bidir)? null: iperf3 did not say, and the streams are of one direction";
        target_bits_per_sec: Option<i64>, "bit/s", "target_bitrate", "rate asked for per stream (-b); 0: unlimited";
        write_bytes: Option<i64>, "bytes", "blksize", "bytes of one write or datagram (-l)";
        control_mss_bytes: Option<i64>, "bytes", "tcp_mss, tcp_mss_default", "segment size asked for (-M), or that of the control connection, which may differ from the streams'";
        tos: Option<i64>, "", "tos", "IP_TOS asked for (-S)";
        title: Option<Text>, "", "title", "as given (-T)";
        extra_data: Option<Text>, "", "extra_data", "as given (--extra-data)";
        host: Option<Text>, "", "connecting_to.host, accepted_connection.host", "the far end as it was called for, or as it came; ? where it is a name and addresses are anonymised";
        cookie: Option<Name>, "", "cookie", "what client and server call the test";
        version: Option<Name>, "", "version", "iperf3's";
        system_info: Option<Name>, "", "system_info", "uname of this end; null where addresses are anonymised: it has the host's name";
        error: Option<Text>, "", "error", "what iperf3 says went wrong; null: nothing";
    }
}
