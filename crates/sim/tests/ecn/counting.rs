//! How many marks the sender counts.

use super::{NO_GRO, assert_exact, counted, marked_path};
use crate::common::run;

/// Source: RFC 8257, section 3.2.
#[test]
fn a_dctcp_receiver_tells_every_mark() {
    for offload in ["gro = true", NO_GRO] {
        let receiver = format!("algorithm = \"dctcp\"\n{offload}");
        assert_exact(offload, &run(&marked_path("dctcp", "", &receiver)));
    }
}

/// Source: RFC 9768, section 3.2; section 3.2.3 for the option's bytes, which merged ACKs need.
#[test]
fn accurate_ecn_tells_every_mark() {
    for algorithm in ["reno", "cubic", "dctcp"] {
        for (offload, rate) in [("gro = true", "1Gbit/s"), (NO_GRO, "100Mbit/s")] {
            let receiver = format!("tcp_ecn = 3\n{offload}");
            let scenario = marked_path(algorithm, "tcp_ecn = 3", &receiver);
            let output = run(&scenario.replace("100Mbit/s", rate));
            assert_exact(&format!("{algorithm}, {offload}, {rate}"), &output);
        }
    }
}

/// Source: RFC 9768, section 1.3: counters, so that the next ACK tells what a lost one would have.
#[test]
fn accurate_ecn_misses_no_mark_when_acks_are_lost() {
    let scenario = marked_path("dctcp", "tcp_ecn = 3", "tcp_ecn = 3");
    let output = run(&scenario.replace("[sender]", "ack_loss = \"20%\"\n[sender]"));
    assert_exact("a fifth of the ACKs lost", &output);
}

/// Source: RFC 3168, section 6.1.3: the echo says that there was a mark, not how many.
#[test]
fn classic_ecn_counts_more_marks_than_there_were() {
    let (counted, marked) = counted(&run(&marked_path("cubic", "tcp_ecn = 1", "")));
    assert!(counted > 2 * marked, "{counted} counted of {marked}");
}
