//! Tables whose rows the front makes, and the tables of runs and fleets.

use crate::{
    Assignments, CpuSamples, Events, Flows, HostCosts, Links, Packets, Programs, QueueSamples,
    Samples, Schema, Stacks, Table, TcpInfoSamples, declare,
};

declare! {
    /// One row per repetition of a run.
    "runs" RUNS from "tcpknee" {
        cell: I32, "", "cell of the matrix";
        rep: I32, "", "repetition, from 0";
        title: Text, "", "title of the scenario";
        claim: Text, "", "published claim that the scenario reproduces; null: none";
        scenario_sha256: Text, "", "SHA-256 of the scenario's text";
        seed: U64, "", "seed of the cell; with the repetition it settles every random draw";
        engine: Text, "", "what ran the cell";
        engine_version: Text, "", "version of tcpknee";
        axes: Text, "", "what tells this cell from the others, as a JSON object";
        algorithms: Text, "", "algorithms of the cell's flows with their counts, as in cubic:1,bbr1:2";
        duration_ns: I64, "ns", "length of the run";
        warmup_ns: I64, "ns", "left out of steady-state metrics";
        rate_bits_per_sec: I64, "bit/s", "rate of the bottleneck; null: unlimited";
        rtt_ns: I64, "ns", "base round-trip time of the path";
        bdp_bytes: I64, "bytes", "rate x base RTT, rounded down; null: unlimited rate";
        buffer_bytes: I64, "bytes", "bytes the bottleneck's queue holds; null: not limited in bytes";
        buffer_pkts: I64, "packets", "packets the bottleneck's queue holds; null: not limited in packets";
        data_packets: I64, "packets", "data packets that entered the path: the work done";
    }
}

declare! {
    /// Columns of `programs` that the client's own output fills. If it ran several tests, requests per second are over all
    /// of them, and percentiles are means.
    "client_output" CLIENT_OUTPUT from "what the client printed" {
        requests_per_sec: F64, "1/s", "requests answered per second; null: it did not print them";
        latency_us_p50: F64, "us", "median latency of a request; null: as above";
        latency_us_p95: F64, "us", "95th percentile of it; null: as above";
        latency_us_p99: F64, "us", "99th percentile of it; null: as above";
        goodput_bits_per_sec: F64, "bit/s", "payload received; null: as above";
    }
}

declare! {
    /// One row per connection.
    "connections" CONNECTIONS from "tcpknee, from samples" {
        host_id: Text, "", "installation of the host (machine-id); its name, or that of its folder, where no table tells; of a run its folder, cell and repetition";
        host: Text, "", "name of the host";
        boot_id: Text, "", "boot of the host, within which a cookie is unique";
        cookie: U64, "", "tells connections of a boot apart; of a run the flow's number";
        netns: Text, "", "network namespace";
        algorithm: Text, "", "congestion control, as the last sample that tells it says";
        kernel: Text, "", "release of the host's kernel";
        arm: Text, "", "arm of the experiment that it was assigned to; null: not assigned";
        design: Text, "", "design of that experiment";
        allocation_pct: F64, "%", "share that the experiment intended for that arm then";
        period: I64, "", "period of a switchback";
        link: Text, "", "link of a paired-link experiment";
        unit: Text, "", "what the experiment drew that arm for as a whole: a prefix of clients of any length, or a host (host_id); null: not assigned, or each connection was drawn by itself";
        tags: Text, "", "further words about it as a JSON object: --tag, axes of a run";
        process: Text, "", "a process that held the socket";
        cgroup: Text, "", "path of its cgroup v2";
        mark: I64, "", "SO_MARK";
        local_port: I32, "", "port of this end";
        remote_prefix: Text, "", "network of the client, /24 or /48; the hash of its address where the recorder hashed it";
        begin_unix_ns: I64, "ns", "wall time of its first sample, since 1970-01-01 UTC; of a run from its beginning";
        end_unix_ns: I64, "ns", "wall time of its last sample";
        duration_us: I64, "us", "between those two";
        samples: I64, "", "samples of it; 0: only its end was seen";
        final: Bool, "", "was its end seen?";
        bytes_acked: I64, "bytes", "payload acknowledged while it was recorded: since its beginning, or since the first sample where the recording began later";
        bytes_sent: I64, "bytes", "payload sent, with retransmissions, likewise";
        bytes_retrans: I64, "bytes", "of those: retransmitted";
        data_segs_out: I64, "segments", "data segments sent, with retransmissions, likewise";
        total_retrans: I64, "segments", "retransmissions, those of SYN and FIN too";
        retransmit_pct: F64, "%", "total_retrans / data_segs_out; at most 100, since retransmissions of SYN and FIN are no data segments";
        loss_pct: F64, "%", "data segments lost / data_segs_out: of a simulated run those that path and queue lost, else retransmissions less those that the receiver called needless (DSACK)";
        delivered: I64, "segments", "segments delivered, likewise";
        delivered_ce: I64, "segments", "of those: echoed as CE marked";
        ce_pct: F64, "%", "delivered_ce / delivered";
        ecn: Bool, "", "did both ends agree on ECN? null: no sample told its options";
        ecn_seen: Bool, "", "did a packet with ECN's bits arrive? null: as above";
        delivery_rate_bits_per_sec: F64, "bit/s", "median of the delivery rates that the application did not limit; null: there is none";
        goodput_bits_per_sec: F64, "bit/s", "bytes_acked over the time in which data was outstanding";
        app_throughput_bits_per_sec: F64, "bit/s", "bytes of its requests over their times, as nginx logged them; null: no request was matched to it";
        srtt_us: F64, "us", "median of the smoothed round-trip times";
        min_rtt_us: F64, "us", "least round-trip time that a sample told";
        bbr_bw_bits_per_sec: F64, "bit/s", "bandwidth as BBR last knew it; null: not BBR, or before its first measurement";
        bbr_min_rtt_us: F64, "us", "least round-trip time as BBR last knew it; null: as above";
        queue_delay_us: F64, "us", "srtt_us - min_rtt_us";
        rttvar_us: F64, "us", "mean of the variations of the round-trip time";
        inflight_pkts: F64, "packets", "median of the packets in flight, over samples with data outstanding";
        snd_mss_bytes: I64, "bytes", "payload of a full segment";
        busy_us: I64, "us", "time with data outstanding";
        rwnd_limited_pct: F64, "%", "share of busy_us limited by the receive window";
        sndbuf_limited_pct: F64, "%", "share of busy_us limited by the send buffer";
        busy_pct: F64, "%", "share of its duration with data outstanding";
        reord_seen: I64, "", "reordering events";
        app_limited_pct: F64, "%", "share of the samples whose delivery rate the application limited";
        left_initial_window: Bool, "", "had more than 10 segments to deliver, and a larger window or a loss: before that every algorithm does the same";
        triggered: Bool, "", "left_initial_window, and the application limited fewer than half of the samples: the algorithm could matter";
    }
}

declare! {
    /// One row per host and hour.
    "hosts" HOSTS from "tcpknee, from counters and cpu" {
        host_id: Text, "", "as in `connections`";
        boot_id: Text, "", "as in `connections`";
        begin_unix_ns: I64, "ns", "beginning of the hour, or of what was recorded of it";
        end_unix_ns: I64, "ns", "its end";
        retrans_segs_pct: F64, "%", "Tcp.RetransSegs / Tcp.OutSegs of the host";
        cpu_us_per_gb: F64, "us", "processor time that was not idle, per 10^9 bytes_sent";
        idle_cpu_pct: F64, "%", "processor time that was idle";
        bytes_sent: I64, "bytes", "IpExt.OutOctets: bytes of IP packets sent";
    }
}

/// Tables of a run. `tcp_info` has further columns of `samples`, and `client_output` further columns of `programs`.
pub const RUN: &[Schema] = &[
    RUNS,
    Flows::SCHEMA,
    Samples::SCHEMA,
    QueueSamples::SCHEMA,
    Events::SCHEMA,
    TcpInfoSamples::SCHEMA,
    CpuSamples::SCHEMA,
    Links::SCHEMA,
    Programs::SCHEMA,
    CLIENT_OUTPUT,
    HostCosts::SCHEMA,
    Stacks::SCHEMA,
    Packets::SCHEMA,
];

/// Tables of a fleet.
pub const FLEET: &[Schema] = &[CONNECTIONS, HOSTS, Assignments::SCHEMA];
