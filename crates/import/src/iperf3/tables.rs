//! `iperf3_intervals` and `iperf3_streams`: what iperf3 measured.

use knee_store::column::{Flags, Names, Numbers, Texts};
use knee_store::table::observed;
use knee_tables::{Samples, Table as _, TcpInfoSamples};

observed! {
    /// A row per interval and stream that an end reported on.
    "iperf3_intervals" Iperf3Intervals {
        file: Names = own("", "tcpknee", "file that it was read from, as it was named");
        test: Numbers<i32> = own("", "tcpknee", "position of the test within the file, from 0");
        stream: Numbers<i64> = own("", "socket", "iperf3's number of the stream at this end, [ID] in its text");
        sender: Flags = own("", "sender", "does this end send? before iperf3 3.7: from side and direction");
        omitted: Flags = own("", "omitted", "is it among the first seconds, which -O leaves out of all sums?");
        t_unix_ns: Numbers<i64> = own("ns", "start.timestamp", "wall time of its end, since 1970-01-01 UTC; iperf3 tells when it connected, in whole seconds before 3.20");
        start_ns: Numbers<i64> = own("ns", "start", "its beginning, since the stream began to count; below 0: omitted");
        end_ns: Numbers<i64> = own("ns", "end", "its end, when the figures of tcp_info were taken");
        bytes: Numbers<i64> = own("bytes", "bytes", "payload that this end's application wrote (sender) or read");
        written_bits_per_sec: Numbers<f64> = own("bit/s", "bits_per_second", "payload written by the sending application: what its send buffer took; null: this end receives");
        goodput_bits_per_sec: Numbers<f64> = own("bit/s", "bits_per_second", "payload read in order by the receiving application; null: this end sends");
        interval_retrans: Numbers<i64> = own("segments", "retransmits", "retransmissions within the interval");
        snd_cwnd_bytes: Numbers<i64> = own("bytes", "snd_cwnd", "congestion window: tcpi_snd_cwnd x tcpi_snd_mss, which iperf3 does not tell by itself");
        snd_wnd_bytes: Numbers<i64> = like(Samples::COLUMNS);
        srtt_us: Numbers<i64> = like(Samples::COLUMNS);
        rttvar_us: Numbers<i64> = like(Samples::COLUMNS);
        pmtu_bytes: Numbers<i64> = like(TcpInfoSamples::COLUMNS);
        reord_seen: Numbers<i64> = own("", "reorder", "reordering events seen in the stream's life so far");
        packets: Numbers<i64> = own("packets", "packets", "of UDP: datagrams sent, or expected by this end");
        lost_packets: Numbers<i64> = own("packets", "lost_packets", "of UDP: of those expected, not received");
        jitter_us: Numbers<f64> = own("us", "jitter_ms", "of UDP: smoothed difference of transit times, RFC 1889");
    }
}

observed! {
    /// A row per stream of a test that an end reported on.
    "iperf3_streams" Iperf3Streams {
        file: Names = own("", "tcpknee", "file that it was read from, as it was named");
        test: Numbers<i32> = own("", "tcpknee", "position of the test within the file, from 0");
        stream: Numbers<i64> = own("", "socket", "iperf3's number of the stream at this end, [ID] in its text");
        side: Names = own("", "connecting_to, accepted_connection", "client or server: who reports");
        sender: Flags = own("", "sender", "does this end send? before iperf3 3.7: from side and direction");
        protocol: Names = own("", "protocol", "TCP, UDP or SCTP");
        algorithm: Names = own("", "sender_tcp_congestion; of a two-way test's other direction receiver_tcp_congestion", "congestion control of the sender, as the kernel names it; null: not told, as by a receiving server");
        t_unix_ns: Numbers<i64> = own("ns", "timestamp", "wall time when iperf3 connected, since 1970-01-01 UTC; in whole seconds before 3.20");
        duration_ns: Numbers<i64> = own("ns", "end.streams seconds", "length of the test without what was omitted");
        omit_ns: Numbers<i64> = own("ns", "omit", "left out of all sums at the beginning");
        local_addr: Texts = own("", "local_host", "address of this end; as anonymised");
        local_port: Numbers<i32> = own("", "local_port", "port of this end");
        remote_addr: Texts = own("", "remote_host", "address of the far end; as anonymised");
        remote_port: Numbers<i32> = own("", "remote_port", "port of the far end");
        bytes_written: Numbers<i64> = own("bytes", "sender.bytes; udp.bytes", "payload that the sending application wrote");
        bytes_read: Numbers<i64> = own("bytes", "receiver.bytes", "payload that the receiving application read; null: this end was not told");
        written_bits_per_sec: Numbers<f64> = own("bit/s", "sender.bits_per_second; udp.bits_per_second", "payload that the sending application wrote, over the test");
        goodput_bits_per_sec: Numbers<f64> = own("bit/s", "receiver.bits_per_second; RFC 2647, 3.17", "payload read in order by the receiving application, over the test; null: this end was not told");
        total_retrans: Numbers<i64> = own("segments", "retransmits", "retransmissions over the test");
        snd_cwnd_bytes_max: Numbers<i64> = own("bytes", "max_snd_cwnd", "largest congestion window at the end of an interval");
        snd_wnd_bytes_max: Numbers<i64> = own("bytes", "max_snd_wnd", "largest window allowed by the far end, at the end of an interval");
        srtt_us_max: Numbers<i64> = own("us", "max_rtt", "largest smoothed RTT at the end of an interval");
        srtt_us_min: Numbers<i64> = own("us", "min_rtt", "smallest smoothed RTT at the end of an interval");
        srtt_us_mean: Numbers<f64> = own("us", "mean_rtt", "mean smoothed RTT over the ends of intervals");
        reord_seen: Numbers<i64> = own("", "reorder", "reordering events seen in the stream's life");
        packets: Numbers<i64> = own("packets", "udp.packets", "of UDP: datagrams sent, or expected");
        lost_packets: Numbers<i64> = own("packets", "udp.lost_packets", "of UDP: of those expected, not received");
        out_of_order: Numbers<i64> = own("packets", "udp.out_of_order", "of UDP: received out of order");
        jitter_us: Numbers<f64> = own("us", "udp.jitter_ms", "of UDP: smoothed difference of transit times, RFC 1889");
        cpu_pct: Numbers<f64> = own("%", "cpu_utilization_percent.host_total", "processor time of iperf3 at this end, of one processor; the whole test's");
        cpu_user_pct: Numbers<f64> = own("%", "cpu_utilization_percent.host_user", "of that, in user space");
        cpu_system_pct: Numbers<f64> = own("%", "cpu_utilization_percent.host_system", "of that, in the kernel");
        remote_cpu_pct: Numbers<f64> = own("%", "cpu_utilization_percent.remote_total", "processor time of iperf3 at the far end");
        remote_cpu_user_pct: Numbers<f64> = own("%", "cpu_utilization_percent.remote_user", "of that, in user space");
        remote_cpu_system_pct: Numbers<f64> = own("%", "cpu_utilization_percent.remote_system", "of that, in the kernel");
        streams: Numbers<i64> = own("", "num_streams", "streams of the test in one direction (-P)");
        reverse: Flags = own("", "reverse", "does the server send (-R)?");
        bidir: Flags = own("", "bidir", "do both ends send (--bidir)? null: iperf3 did not say, and the streams are of one direction");
        target_bits_per_sec: Numbers<i64> = own("bit/s", "target_bitrate", "rate asked for per stream (-b); 0: unlimited");
        write_bytes: Numbers<i64> = own("bytes", "blksize", "bytes of one write or datagram (-l)");
        control_mss_bytes: Numbers<i64> = own("bytes", "tcp_mss, tcp_mss_default", "segment size asked for (-M), or that of the control connection, which may differ from the streams'");
        tos: Numbers<i64> = own("", "tos", "IP_TOS asked for (-S)");
        title: Texts = own("", "title", "as given (-T)");
        extra_data: Texts = own("", "extra_data", "as given (--extra-data)");
        host: Texts = own("", "connecting_to.host, accepted_connection.host", "the far end as it was called for, or as it came; ? where it is a name and addresses are anonymised");
        cookie: Names = own("", "cookie", "what client and server call the test");
        version: Names = own("", "version", "iperf3's");
        system_info: Names = own("", "system_info", "uname of this end; null where addresses are anonymised: it has the host's name");
        error: Texts = own("", "error", "what iperf3 says went wrong; null: nothing");
    }
}
