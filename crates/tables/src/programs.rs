//! `programs`: external programs that ran inside a lab.

use crate::table;

table! {
    /// One row per external program of a repetition.
    "programs" Programs of Program {
        cell: i32, "", "tcpknee", "cell of the matrix";
        rep: i32, "", "tcpknee", "repetition, from 0";
        group: i32, "", "tcpknee", "which [[flow]] table of the scenario started it, from 0";
        role: &'static str, "", "tcpknee", "server: at the sender's host; client: at the receiver's";
        command: String, "", "tcpknee", "as run, placeholders filled in";
        start_ns: i64, "ns", "tcpknee", "when it was started, since the run began";
        wall_us: i64, "us", "tcpknee", "how long it ran";
        exit_code: Option<i64>, "", "wait(2)", "its exit code; null: ended by a signal";
        signal: Option<i64>, "", "wait(2)", "the signal that ended it; null: it exited. 15: ended by the lab, its work done";
        output: String, "", "tcpknee", "file of the run folder that holds what it printed, stdout and stderr";
    }
}
