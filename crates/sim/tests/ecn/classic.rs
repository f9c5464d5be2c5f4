//! The handshake, and classic ECN.

use super::{ECT_0, NOT_ECT, is_data, marked_path};
use crate::common::{run, run_captured};

/// What two hosts with these settings of tcp_ecn agree on, as data and ACKs show it.
fn agreed(sender: u8, receiver: u8) -> &'static str {
    let output = run_captured(&format!(
        "duration = \"50ms\"\n[path]\nrate = \"100Mbit/s\"\nrtt = \"10ms\"\n\
         [sender]\ntcp_ecn = {sender}\n[receiver]\ntcp_ecn = {receiver}\n\
         [[flow]]\nalgorithm = \"reno\"\n"
    ));
    let data_ecn = output.capture.iter().find(|p| is_data(p)).unwrap().ecn;
    let ack = output.capture.iter().rfind(|p| !p.outbound).unwrap();
    match (data_ecn, ack.ecn) {
        (NOT_ECT, NOT_ECT) => "none",
        (ECT_0, NOT_ECT) => "classic",
        (ECT_0, ECT_0) => "accurate",
        other => panic!("data and ACK are sent with {other:?}"),
    }
}

/// Source: Linux 7.0, Documentation/networking/ip-sysctl.rst, tcp_ecn; RFC 9768, section 3.1.
#[test]
fn hosts_agree_on_the_ecn_that_both_allow() {
    for (sender, receiver, expected) in [
        (0, 1, "none"),
        (1, 0, "none"),
        (2, 1, "none"),
        (5, 3, "none"),
        (1, 1, "classic"),
        (1, 2, "classic"),
        (1, 5, "classic"),
        (4, 3, "classic"),
        (3, 2, "classic"),
        (3, 0, "none"),
        (3, 3, "accurate"),
        (3, 4, "accurate"),
        (3, 5, "accurate"),
    ] {
        assert_eq!(
            agreed(sender, receiver),
            expected,
            "{sender} asks {receiver}"
        );
    }
}

/// Source: RFC 3168, section 6.1.5: no ECT on retransmissions; 6.1.4: none on pure ACKs.
#[test]
fn only_new_data_can_be_marked_in_classic_ecn() {
    let output = run_captured(
        &marked_path("cubic", "tcp_ecn = 1", "").replace("[sender]", "loss = \"1%\"\n[sender]"),
    );
    let mut sent_up_to = 0;
    let mut again = 0;
    for packet in &output.capture {
        let new_data = is_data(packet) && packet.seq >= sent_up_to;
        let expected = if new_data { ECT_0 } else { NOT_ECT };
        assert_eq!(packet.ecn, expected, "{packet:?}");
        if is_data(packet) {
            again += u32::from(!new_data);
            sent_up_to = sent_up_to.max(packet.seq + u64::from(packet.payload_bytes));
        }
    }
    assert!(again > 20, "{again} retransmissions");
}

/// Source: RFC 3168, section 6.1: a mark is answered as a loss would be, without one.
#[test]
fn marks_spare_losses() {
    for algorithm in ["reno", "cubic", "bbr1"] {
        let output = run(&marked_path(algorithm, "tcp_ecn = 1", ""));
        let marked = output.queue.marked_pkts.last().unwrap().unwrap();
        assert!(marked > 10, "{algorithm}: {marked} marks");
        if algorithm != "bbr1" {
            assert_eq!(output.flows.total_retrans[0], 0, "{algorithm}");
        }
    }
    let output = run(&marked_path("cubic", "tcp_ecn = 2", ""));
    assert_eq!(output.queue.marked_pkts.last(), Some(Some(0)));
}

/// Source: RFC 3168, sections 6.1.2 and 6.1.3: one reduction per window of data, CWR with the first new data
/// after it, ECE on every ACK until CWR arrives.
#[test]
fn a_window_is_reduced_once_and_the_echo_lasts_until_cwr() {
    let output = run_captured(&marked_path("cubic", "tcp_ecn = 1", ""));
    let cuts: Vec<i64> = (0..output.events.t_ns.len())
        .filter(|&i| output.events.event[i] == "cwr")
        .map(|i| output.events.t_ns[i])
        .collect();
    assert!(cuts.len() > 5, "{} reductions", cuts.len());
    for pair in cuts.windows(2) {
        assert!(
            pair[1] - pair[0] > 10_000_000,
            "within a round trip: {pair:?}"
        );
    }
    let with_cwr = output.capture.iter().filter(|p| p.cwr && !p.syn);
    let told: Vec<i64> = with_cwr
        .inspect(|p| assert!(is_data(p) && p.ecn == ECT_0, "{p:?}"))
        .map(|p| p.t.0 as i64)
        .collect();
    assert!(told.len().abs_diff(cuts.len()) <= 1, "{told:?}\n{cuts:?}");
    for (cut, told) in cuts.iter().zip(&told) {
        assert!(
            (0..10_000_000).contains(&(told - cut)),
            "{cut}: CWR at {told}"
        );
    }

    let mut told = 0;
    let mut echoing = false;
    for packet in output.capture.iter().filter(|p| !p.syn) {
        told += usize::from(packet.outbound && packet.cwr);
        if !packet.outbound {
            if echoing && !packet.ece {
                assert!(told > 0, "the echo ended without CWR: {packet:?}");
            }
            if packet.ece && !echoing {
                told = 0;
            }
            echoing = packet.ece;
        }
    }
}
