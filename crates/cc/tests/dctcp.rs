//! DCTCP does what RFC 8257 says, in Linux' units: alpha follows the share of marked packets, and the receiver's
//! half tells each packet's mark.

use crate::common::{Conn, MSS_BYTES};
use knee_cc::{ACK_STATE_DELAYED, ACK_STATE_ECHO, AckPrior, CaState, EcnMode, Event, Op};

fn dctcp(params: &[(&str, u32)]) -> Conn {
    let mut c = Conn::new("dctcp", params);
    c.stack.ecn_mode = EcnMode::Classic as u32;
    c.op(Op::Init);
    c
}

/// A window of 100 packets is acked, so many of them marked.
fn window(c: &mut Conn, marked: u32) {
    c.stack.delivered += 100;
    c.stack.delivered_ce += marked;
    c.stack.snd_una += 100 * MSS_BYTES;
    c.stack.snd_nxt = c.stack.snd_una + 100 * MSS_BYTES;
    c.op(Op::InAckEvent);
}

/// Alpha in 1/1024, by what a cut takes off a window of 2048.
fn alpha(c: &mut Conn) -> u32 {
    let cwnd = std::mem::replace(&mut c.stack.snd_cwnd, 2048);
    let ssthresh = c.op(Op::Ssthresh);
    c.stack.snd_cwnd = cwnd;
    2048 - ssthresh
}

/// Source: RFC 8257, section 4.2.
#[test]
fn dctcp_halves_the_window_at_its_first_mark() {
    let mut c = dctcp(&[]);
    c.stack.snd_cwnd = 100;
    assert_eq!(c.op(Op::Ssthresh), 50);
    let mut c = dctcp(&[("alpha_on_init", 512)]);
    c.stack.snd_cwnd = 100;
    assert_eq!(c.op(Op::Ssthresh), 75);
}

/// Source: RFC 8257, section 3.3, steps 5 to 7, with g = 1/16.
#[test]
fn dctcp_smooths_the_share_of_marks_by_a_sixteenth() {
    let mut c = dctcp(&[("alpha_on_init", 0)]);
    window(&mut c, 0);
    assert_eq!(alpha(&mut c), 0);
    window(&mut c, 100);
    assert_eq!(alpha(&mut c), 1024 / 16);
    window(&mut c, 50);
    assert_eq!(alpha(&mut c), 64 - 64 / 16 + 1024 / 16 / 2);
}

#[test]
fn dctcp_alpha_comes_to_rest_at_the_share_that_is_marked() {
    for marked in [10, 50, 100] {
        let mut c = dctcp(&[]);
        for _ in 0..200 {
            window(&mut c, marked);
        }
        let expected = 1024 * marked / 100;
        assert!(
            alpha(&mut c).abs_diff(expected) <= 16,
            "{marked} %: {}",
            alpha(&mut c)
        );
    }
}

/// Without Linux' last step of decay it would stay at 15/1024 for ever.
#[test]
fn dctcp_forgets_all_marks_in_the_end() {
    let mut c = dctcp(&[]);
    for _ in 0..80 {
        window(&mut c, 0);
    }
    assert_eq!(alpha(&mut c), 0);
}

#[test]
fn dctcp_learns_once_per_window() {
    let mut c = dctcp(&[("alpha_on_init", 0)]);
    window(&mut c, 0);
    c.stack.delivered += 10;
    c.stack.delivered_ce += 10;
    c.stack.snd_una += 10 * MSS_BYTES;
    c.op(Op::InAckEvent);
    assert_eq!(alpha(&mut c), 0, "the window is not over");
    window(&mut c, 0);
    // 10 of the 110 packets of the window that ended.
    assert_eq!(alpha(&mut c), (10 << 6) / 110);
}

/// Source: RFC 8257, section 3.4.
#[test]
fn dctcp_halves_at_a_loss_whatever_alpha_says() {
    let mut c = dctcp(&[("alpha_on_init", 0)]);
    c.stack.snd_cwnd = 100;
    c.stack.snd_ssthresh = c.op(Op::Ssthresh);
    assert_eq!(c.stack.snd_ssthresh, 100);
    c.set_state(CaState::Recovery);
    assert_eq!((c.stack.snd_ssthresh, c.cwnd()), (50, 100));
    c.stack.snd_cwnd = 50;
    assert_eq!(c.op(Op::UndoCwnd), 100);

    let mut c = dctcp(&[("alpha_on_init", 0)]);
    c.stack.snd_cwnd = 100;
    c.event(Event::Loss);
    assert_eq!(c.stack.snd_ssthresh, 50);
}

#[test]
fn dctcp_keeps_two_segments() {
    let mut c = dctcp(&[]);
    c.stack.snd_cwnd = 2;
    assert_eq!(c.op(Op::Ssthresh), 2);
}

#[test]
fn dctcp_without_ecn_is_reno() {
    let (mut c, mut reno) = (Conn::new("dctcp", &[]), Conn::new("reno", &[]));
    for c in [&mut c, &mut reno] {
        for _ in 0..3 {
            c.round(50_000);
        }
        c.lose();
        c.round(50_000);
        c.time_out();
        c.round(50_000);
    }
    assert_eq!(
        (c.cwnd(), c.stack.snd_ssthresh),
        (reno.cwnd(), reno.stack.snd_ssthresh)
    );
    c.event(Event::EcnIsCe);
    assert_eq!(
        ((c.stack.ack_state & ACK_STATE_ECHO), c.acks),
        (0, (0, 0, 0))
    );
}

// ---- the receiver ----------------------------------------------------------------------------------------------

/// A packet arrives with or without a mark; an ACK for the one before may be waiting.
fn arrive(c: &mut Conn, event: Event, ack_delayed: bool) -> (u32, u32, u32) {
    c.stack.rcv_nxt += MSS_BYTES;
    let delayed = if ack_delayed { ACK_STATE_DELAYED } else { 0 };
    c.stack.ack_state = c.stack.ack_state & ACK_STATE_ECHO | delayed;
    c.event(event);
    c.acks
}

/// Source: RFC 8257, section 3.2, figure 1.
#[test]
fn dctcp_receiver_acks_what_came_before_a_change_with_the_old_echo() {
    let mut c = dctcp(&[]);
    let none = (AckPrior::None as u32, 0, 0);
    assert_eq!(arrive(&mut c, Event::EcnNoCe, false), none);
    assert_eq!(arrive(&mut c, Event::EcnNoCe, true), none);
    let before = c.stack.rcv_nxt;
    assert_eq!(
        arrive(&mut c, Event::EcnIsCe, true),
        (AckPrior::Plain as u32, before, 1)
    );
    assert_eq!((c.stack.ack_state & ACK_STATE_ECHO), 1);
    assert_eq!(arrive(&mut c, Event::EcnIsCe, true), none);
    let before = c.stack.rcv_nxt;
    assert_eq!(
        arrive(&mut c, Event::EcnNoCe, true),
        (AckPrior::Ece as u32, before, 1)
    );
    assert_eq!((c.stack.ack_state & ACK_STATE_ECHO), 0);
}

#[test]
fn dctcp_receiver_without_a_waiting_ack_acks_the_change_alone() {
    let mut c = dctcp(&[]);
    assert_eq!(
        arrive(&mut c, Event::EcnIsCe, false),
        (AckPrior::None as u32, 0, 1)
    );
}

/// CWR ends a classic echo; DCTCP's tells marks, whatever the sender does.
#[test]
fn dctcp_receiver_restores_an_echo_that_cwr_ended() {
    let mut c = dctcp(&[]);
    arrive(&mut c, Event::EcnIsCe, false);
    c.stack.ack_state = 0;
    arrive(&mut c, Event::EcnIsCe, false);
    assert_eq!((c.stack.ack_state & ACK_STATE_ECHO), 1);
}
