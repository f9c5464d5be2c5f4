//! `events`: what happened to a flow, when.

use crate::table;

table! {
    /// Turning points of flows: openings, recoveries, timeouts, undos, ends.
    "events" Events of Event {
        cell: i32, "", "tcpknee", "cell of the matrix";
        rep: i32, "", "tcpknee", "repetition, from 0";
        t_ns: i64, "ns", "tcpknee", "time since the run began";
        flow: i32, "", "tcpknee", "flow number, from 0";
        event: &'static str, "", "tcpknee", "open, established, recovery, recovery_end, loss, loss_end, cwr, cwr_end, undo, tlp, complete, closed";
        snd_cwnd: Option<i64>, "segments", "tcp_info.tcpi_snd_cwnd", "congestion window after the event; null: no sample was taken then";
        snd_ssthresh: Option<i64>, "segments", "tcp_info.tcpi_snd_ssthresh", "slow-start threshold after the event; null: as above";
    }
}
