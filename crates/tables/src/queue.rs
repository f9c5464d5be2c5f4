//! `queue`: the bottleneck over time.

use crate::table;

table! {
    /// The bottleneck's queue at intervals. Counters run from the start;
    /// maxima are of the interval that ends at the row.
    "queue" QueueSamples of QueueSample {
        cell: i32, "", "tcpknee", "cell of the matrix";
        rep: i32, "", "tcpknee", "repetition, from 0";
        t_ns: i64, "ns", "tcpknee", "time since the run began";
        hop: i32, "", "tcpknee", "which bottleneck, from 0; data direction";
        queue_pkts: i64, "packets", "tc qdisc backlog", "packets waiting";
        queue_bytes: i64, "bytes", "tc qdisc backlog", "bytes waiting";
        queue_bytes_max: i64, "bytes", "tcpknee", "most bytes waiting within the interval";
        queue_delay_us: i64, "us", "tcpknee", "time the bytes waiting take to leave at the link's rate; 0 on an unlimited link";
        sent_pkts: i64, "packets", "tc qdisc sent", "packets that left so far";
        sent_bytes: i64, "bytes", "tc qdisc sent", "bytes that left so far";
        offered_bytes: Option<i64>, "bytes", "tcpknee", "bytes that the link could have sent so far, had it always had something to send: at its rate, or as its trace says, and nothing in outages; null: it has no rate";
        dropped_pkts: i64, "packets", "tc qdisc dropped", "packets dropped by the queue so far";
        marked_pkts: Option<i64>, "packets", "tc qdisc marked", "packets that left with CE so far, marked by the policer or the queue; of a hop behind others those that an earlier one marked are among them; null: the backend is netem or veth, whose marks are not read";
        lost_pkts: i64, "packets", "tcpknee", "packets lost by the path's own loss so far";
    }
}
