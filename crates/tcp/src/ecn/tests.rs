use super::*;
use crate::testing::segment;

fn state(algorithm: &str) -> EcnState {
    EcnState::new(knee_cc::find(algorithm).expect("it is built in"))
}

/// A handshake of a client with this tcp_ecn and a server with that; what each end makes of it.
fn agreed(client: (&str, u8), server: (&str, u8)) -> (EcnMode, EcnMode) {
    let (mut ours, mut theirs) = (state(client.0), state(server.0));
    let (flags, ecn) = ours.of_syn(client.1, false);
    let syn = Segment {
        flags: SYN | flags,
        ecn,
        ..segment(0, 0)
    };
    theirs.on_syn(server.1, &syn);
    let (flags, ecn) = theirs.of_syn_ack();
    let syn_ack = Segment {
        flags: SYN | flags,
        ecn,
        ..segment(0, 1)
    };
    ours.on_syn_ack(&syn_ack);
    (ours.mode(), theirs.mode())
}

#[test]
fn both_ends_agree_on_what_both_can() {
    use EcnMode::{Accurate, Classic, None};
    for (client, server, mode) in [
        (("cubic", 0), ("cubic", 2), None),
        (("cubic", 1), ("cubic", 0), None),
        (("cubic", 1), ("cubic", 2), Classic),
        (("cubic", 3), ("cubic", 2), Classic),
        (("cubic", 3), ("cubic", 3), Accurate),
        (("prague", 0), ("cubic", 3), Accurate),
        (("prague", 0), ("cubic", 1), None),
        (("dctcp", 0), ("dctcp", 0), Classic),
    ] {
        let (ours, theirs) = agreed(client, server);
        assert_eq!(ours, mode, "{client:?} {server:?}");
        // A client that needs more than it is offered does without; the server cannot know.
        assert!(theirs == mode || mode == None && client.0 == "prague");
    }
}

#[test]
fn a_classic_mark_is_echoed_until_the_sender_has_reduced() {
    let mut ecn = state("cubic");
    assert_eq!(ecn.on_data(Ecn::Ce), DataMark::Ignored);
    ecn.mode = EcnMode::Classic;
    assert_eq!(ecn.on_data(Ecn::NotEct), DataMark::Ignored);
    assert_eq!(ecn.on_data(Ecn::Ect0), DataMark::Capable);
    assert_eq!(ecn.on_data(Ecn::NotEct), DataMark::Suspicious);
    assert!(ecn.start_echo() && !ecn.start_echo());
    assert_eq!(ecn.of_segment(false), (ECE, Ecn::NotEct));
    let reduced = Segment {
        flags: CWR,
        ..segment(1, 1)
    };
    assert!(!ecn.accept_cwr(&segment(1, 1)) && ecn.echoes());
    assert!(ecn.accept_cwr(&reduced) && !ecn.echoes());
}

#[test]
fn a_reduction_is_told_once_with_new_data() {
    let mut ecn = state("cubic");
    ecn.mode = EcnMode::Classic;
    ecn.queue_cwr();
    assert_eq!(ecn.of_segment(false), (0, Ecn::NotEct));
    assert_eq!(ecn.of_segment(true), (CWR, Ecn::Ect0));
    assert_eq!(ecn.of_segment(true), (0, Ecn::Ect0));
    ecn.queue_cwr();
    ecn.withdraw_cwr();
    assert_eq!(ecn.of_segment(true), (0, Ecn::Ect0));
}

#[test]
fn accurate_feedback_acks_at_a_change_and_at_every_second_mark() {
    let mut ecn = state("prague");
    ecn.mode = EcnMode::Accurate;
    let data = |ecn| Segment {
        ecn,
        payload_bytes: 1_000,
        ..segment(1, 1)
    };
    let marks = [Ecn::Ect1, Ecn::Ce, Ecn::Ce, Ecn::Ect1, Ecn::Ect1];
    let told: Vec<_> = marks.map(|mark| ecn.on_arrival(&data(mark))).into();
    assert_eq!(told, [false, true, true, true, true]);
    ecn.on_ack_sent();
    assert!(!ecn.on_arrival(&data(Ecn::Ect1)));
    assert_eq!(ecn.option_ce_bytes(), 2_000);
    assert_eq!(
        ace_count(ecn.of_segment(true).0),
        (ACE_START + 2) & ACE_MASK
    );
}

/// Of packets of 1000 bytes.
fn marks(delta: u32, delivered: u32, marked_bytes: Option<u64>) -> u32 {
    marks_of_ack(
        delta,
        delivered,
        u64::from(delivered) * 1_000,
        marked_bytes,
        1_000,
    )
}

/// tcp_accecn_process(): a marked byte where none is counted says that the count has wrapped, however few bytes.
#[test]
fn one_marked_byte_tells_of_a_wrapped_count() {
    assert_eq!(marks(0, 8, Some(0)), 0);
    assert_eq!(marks(0, 8, Some(1)), 8);
}

/// RFC 9768, appendix A.1: the most that agrees with the three bits.
#[test]
fn without_the_option_the_count_has_wrapped_if_it_can_have() {
    for delta in 0..8 {
        assert_eq!(marks(delta, 7, None), delta);
        for delivered in 8..40 {
            let most = (delta..=delivered).step_by(8).last().unwrap();
            assert_eq!(
                marks(delta, delivered, None),
                most,
                "{delta} of {delivered}"
            );
        }
    }
}

/// RFC 9768, appendix A.2.2.
#[test]
fn the_bytes_that_were_marked_tell_how_often_the_count_has_wrapped() {
    for (delta, delivered, marked_packets, expected) in [
        (3, 12, 0, 3),
        (3, 12, 3, 3),
        (3, 12, 4, 11),
        (2, 10, 10, 10),
        // From 16 packets on: as many as the bytes say.
        (0, 16, 3, 0),
        (3, 40, 19, 19),
        (3, 40, 11, 11),
        (0, 40, 40, 40),
        (1, 40, 40, 33),
    ] {
        let found = marks(delta, delivered, Some(marked_packets * 1_000));
        assert_eq!(
            found, expected,
            "{delta} of {delivered}, {marked_packets} marked"
        );
    }
}
