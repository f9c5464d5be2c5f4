//! `links`: what the emulated link asked of itself, and what it achieved.

use crate::table;

table! {
    /// One row per repetition and direction of an emulated link.
    "links" Links of Link {
        cell: i32, "", "kneepoint", "cell of the matrix";
        rep: i32, "", "kneepoint", "repetition, from 0";
        direction: &'static str, "", "kneepoint", "data, or back: against the data";
        backend: &'static str, "", "kneepoint", "user: Kneepoint's link over TUN; netem: the kernel's qdiscs; veth: a veth pair between the hosts";
        asked_rate_bits_per_sec: Option<i64>, "bit/s", "kneepoint", "rate of the bottleneck; null: unlimited";
        achieved_rate_bits_per_sec: Option<f64>, "bit/s", "kneepoint", "rate at which packets left while the queue was never empty; null: it never was busy, or unlimited";
        rate_error_pct: Option<f64>, "%", "kneepoint", "how far the achieved rate is from the asked one; null: as above";
        added_delay_us_p50: Option<f64>, "us", "kneepoint", "median of how much later than asked packets left; null: not measured, or no packet";
        added_delay_us_p99: Option<f64>, "us", "kneepoint", "99th percentile of it";
        added_delay_us_max: Option<f64>, "us", "kneepoint", "most of it";
        late_pkts: Option<i64>, "packets", "kneepoint", "packets that left more than 1 ms later than asked; null: not measured";
        forwarded_pkts: i64, "packets", "kneepoint", "wire packets that left; of a veth pair what the hosts gave it, a TSO packet once";
        forwarded_bytes: i64, "bytes", "kneepoint", "bytes of those";
        cpu_pct: Option<f64>, "%", "kneepoint", "processor time that the link used, of one processor, both directions; null: it runs in the kernel";
        kept_up: bool, "", "kneepoint", "did the link stay within its own bounds?";
    }
}
