//! Programs of the user's at both ends: `redis-server` and `redis-benchmark`,
//! `iperf3 -s` and `iperf3 -c`. Only a lab can run them.

use super::WorkloadKind;

pub(super) const KIND: WorkloadKind = WorkloadKind {
    name: "programs",
    summary: "the user's own programs, in a lab: a server at the sender's host, a client at the receiver's",
    keys: &["server", "client"],
};
