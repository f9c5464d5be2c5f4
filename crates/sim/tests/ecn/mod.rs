//! Explicit Congestion Notification from end to end: agreed on, marked by the
//! queue, echoed, answered; and what DCTCP and Prague make of it.
//!
//! Method: one flow (more where stated) through the queue `step`, whose marks
//! are known; what the capture at the sender's interface and the tables show is
//! compared with the rule.

mod classic;
mod counting;
mod dctcp;
mod prague;

use crate::common::rows_of;
use knee_sim::{CapturedPacket, Output};

const NOT_ECT: u8 = 0;
const ECT_0: u8 = 2;
const NO_GRO: &str = "gro = false\nrx_coalesce = \"0s\"";

fn is_data(packet: &CapturedPacket) -> bool {
    packet.outbound && packet.payload_bytes > 0
}

/// A flow over a link that marks beyond 20 packets; hosts' settings as given.
fn marked_path(algorithm: &str, sender: &str, receiver: &str) -> String {
    format!(
        r#"
duration = "6s"
warmup = "500ms"
[path]
rate = "100Mbit/s"
rtt = "10ms"
buffer = "4bdp"
queue = "step"
[sender]
{sender}
[receiver]
{receiver}
[[flow]]
algorithm = "{algorithm}"
"#
    )
}

/// Marks that the sender counted, and those the queue made.
fn counted(output: &Output) -> (i64, i64) {
    let last = rows_of(&output.samples, 0).last().unwrap();
    let marked = output.queue.marked_pkts.last().unwrap().unwrap();
    assert!(marked > 20, "{marked} marks");
    (output.samples.delivered_ce.get(last).unwrap(), marked)
}

fn assert_exact(what: &str, output: &Output) {
    let (counted, marked) = counted(output);
    let last = rows_of(&output.samples, 0).last().unwrap();
    let under_way = output.samples.inflight[last] + 1;
    assert!(
        (marked - under_way..=marked).contains(&counted),
        "{what}: {counted} marks counted of {marked}, {under_way} packets under way"
    );
}
