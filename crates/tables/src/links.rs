//! `links`: what the emulated link asked of itself, and what it achieved.

use crate::table;

table! {
    /// One row per repetition and direction of an emulated link.
    "links" Links of Link {
        cell: i32, "", "tcpknee", "cell of the matrix";
        rep: i32, "", "tcpknee", "repetition, from 0";
        direction: &'static str, "", "tcpknee", "data, or back: against the data";
        backend: &'static str, "", "tcpknee", "user: tcpknee's link over TUN; netem: the kernel's qdiscs; veth: a veth pair between the hosts";
        asked_rate_bits_per_sec: Option<i64>, "bit/s", "tcpknee", "rate of the bottleneck; null: unlimited";
        achieved_rate_bits_per_sec: Option<f64>, "bit/s", "tcpknee", "rate at which packets left while the queue was never empty; null: it never was busy for long, or is unlimited";
        rate_error_pct: Option<f64>, "%", "tcpknee", "how far the achieved rate is from the asked one; null: as above";
        added_delay_us_p50: Option<f64>, "us", "tcpknee", "median of how much later than asked packets left; null: the backend is netem or veth, or there was no packet";
        added_delay_us_p99: Option<f64>, "us", "tcpknee", "99th percentile of it; null: as above";
        added_delay_us_max: Option<f64>, "us", "tcpknee", "most of it; null: as above";
        late_pkts: Option<i64>, "packets", "tcpknee", "packets that left more than 1 ms later than asked; null: the backend is netem or veth";
        forwarded_pkts: i64, "packets", "tcpknee", "wire packets that left; of a veth pair what the hosts gave it, a TSO packet once";
        forwarded_bytes: i64, "bytes", "tcpknee", "bytes of those";
        cpu_pct: Option<f64>, "%", "tcpknee", "processor time of this direction's thread, of one processor; null: the backend is netem or veth, which run in the kernel";
        kept_up: bool, "", "tcpknee", "did the link stay within its own bounds?";
    }
}
