use super::*;

const MSS: u64 = 1_000;

/// Segments of these flags, sent a microsecond apart.
fn board(flags: &[u8]) -> Scoreboard {
    let mut board = Scoreboard::new();
    for (i, &flags) in (0..).zip(flags) {
        let mut seg = Seg::new(1 + i * MSS, MSS as u32, 1, MSS as u32, flags);
        seg.sent_ns = 1_000 * (i + 1);
        seg.tx.delivered_us = 1;
        board.push(seg);
    }
    board
}

/// Marks a segment lost; false: it was before.
fn lose(board: &mut Scoreboard, id: u32) -> bool {
    let lost = board.mark_lost(id);
    if let Some(lost) = &lost {
        (0..lost.segs).for_each(|_| board.count_lost(lost));
    }
    lost.is_some()
}

fn sack(board: &mut Scoreboard, first: u64, end: u64) -> Sacked {
    let mut told = Sacked::default();
    let highest = board.highest_sacked(1);
    let block = (1 + first * MSS, 1 + end * MSS);
    board.sack(block, highest, 0, &mut told, |_| {});
    told
}

fn counts(board: &Scoreboard) -> (u32, u32, u32, u32) {
    let f = board.flight();
    (f.packets_out, f.sacked_out, f.lost_out, f.retrans_out)
}

/// tcp_shift_skb_data() takes what is SACKed and nothing else. A part of an skb that was sent again, and is no longer
/// believed lost (an undo), stays the skb that it was.
#[test]
fn what_was_sent_again_is_neither_merged_nor_cut() {
    let again = SACKED | RETRANS;
    let mut board = board(&[0, again, again, SKB_END]);
    shift_skbs(&mut board.rtx, &mut board.skbs, 1, 3);
    let ends: Vec<_> = (0..4).map(|id| board.get(id).has(SKB_END)).collect();
    assert_eq!(ends, [true, false, true, true]);
    assert_eq!(board.skbs(), 3);
}

/// SACKs that grow leave no more parts behind than there are ranges, also beyond the end of an skb.
#[test]
fn what_is_sacked_piece_by_piece_is_one_part() {
    let mut board = Scoreboard::new();
    for skb in 0..2 {
        let seq = 1 + skb * 10 * MSS;
        board.push(Seg::new(seq, 10 * MSS as u32, 10, MSS as u32, SKB_END));
    }
    let parts = |board: &Scoreboard| board.ids(|_| true);
    assert_eq!(sack(&mut board, 2, 4).segs, 2);
    assert_eq!(sack(&mut board, 4, 7).segs, 3);
    assert_eq!(parts(&board), [0, 2, 7, 10]);
    assert_eq!(sack(&mut board, 7, 12).segs, 5);
    assert_eq!(parts(&board), [0, 2, 7, 12]);
    assert_eq!(board.oldest_sent(), Some(1));
    assert_eq!(board.sent_next(1), Some(19));
    assert_eq!(counts(&board), (20, 10, 0, 0));
    // The lost one, what is SACKed, and the rest of the second.
    assert_eq!(board.skbs(), 3);
    let acked = board.ack(1 + 12 * MSS, 0, |_| {});
    assert_eq!((acked.segs, board.skbs()), (12, 1));
    assert_eq!(counts(&board), (8, 0, 0, 0));
}

#[test]
fn each_segment_is_delivered_once_whether_sacked_or_acked() {
    let mut board = board(&[SKB_END; 5]);
    let told = sack(&mut board, 2, 4);
    assert_eq!((told.segs, told.reord), (2, u64::MAX));
    assert_eq!((told.first_sent_ns, told.last_sent_ns), (3_000, 4_000));
    assert_eq!(sack(&mut board, 2, 4).segs, 0);
    assert_eq!(counts(&board), (5, 2, 0, 0));
    board.add_delivered(2);
    let mut seen = Vec::new();
    let acked = board.ack(1 + 5 * MSS, 0, |seg| seen.push(seg.tx.delivered_us));
    assert_eq!(seen, [1, 1, 0, 0, 1]);
    assert_eq!((acked.segs, acked.reord), (5, 1));
    assert_eq!((acked.first_sent_ns, acked.last_sent_ns), (1_000, 5_000));
    assert_eq!((board.delivered(), board.skbs()), (5, 0));
    assert_eq!(counts(&board), (0, 0, 0, 0));
    assert!(board.is_empty());
}

#[test]
fn a_lost_segment_is_sent_again_once_and_its_sack_settles_it() {
    let mut board = board(&[SKB_END; 4]);
    assert!(lose(&mut board, 1));
    assert!(!lose(&mut board, 1), "it is marked already");
    assert_eq!((counts(&board), board.lost()), ((4, 0, 1, 0), 1));
    assert_eq!(board.next_lost(9), Some((1, 1)));
    board.send_again(1, 9_000, Tx::default(), false);
    board.count_retransmission(1, 1);
    assert_eq!(board.next_lost(9), None);
    assert_eq!(counts(&board), (4, 0, 1, 1));
    assert_eq!(board.packets_in_flight(), 4);
    assert!(lose(&mut board, 1), "the retransmission is lost too");
    assert_eq!((counts(&board), board.lost()), ((4, 0, 1, 0), 2));
    sack(&mut board, 1, 2);
    assert_eq!(counts(&board), (4, 1, 0, 0));
    assert!(!board.has_lost());
}

/// A loss probe repeats the last segment, whether it was SACKed or not (tcp_send_loss_probe()): tcp_mark_skb_lost() leaves
/// out what is SACKed.
#[test]
fn what_a_probe_repeats_although_it_was_sacked_is_not_lost() {
    let mut board = board(&[SKB_END; 3]);
    sack(&mut board, 2, 3);
    board.send_again(2, 9_000, Tx::default(), false);
    assert_eq!(board.sent_next(1), Some(2));
    assert!(!lose(&mut board, 2), "it is SACKed");
    assert_eq!((counts(&board), board.lost()), ((3, 1, 0, 0), 0));
    assert!(!board.has_lost());
}

#[test]
fn a_retransmission_ends_with_its_skb_or_its_quota() {
    let mut board = board(&[0, 0, 0, SKB_END, 0, SKB_END]);
    (1..6).for_each(|id| assert!(lose(&mut board, id)));
    assert_eq!(board.next_lost(10), Some((1, 3)));
    assert_eq!(board.next_lost(2), Some((1, 2)));
    board.count_retransmission(1, 3);
    assert_eq!(board.next_lost(10), Some((4, 2)));
}

#[test]
fn losses_that_prove_false_leave_nothing_to_send_again() {
    let mut board = board(&[SKB_END; 3]);
    (0..3).for_each(|id| assert!(lose(&mut board, id)));
    board.count_retransmission(0, 1);
    board.unmark_losses();
    assert_eq!(counts(&board), (3, 0, 0, 1));
    assert!(!board.has_lost() && board.any_retrans_done());
}

/// tcp_timeout_mark_lost() leaves them in the order of transmission, and tcp_rack_detect_loss() takes them out.
#[test]
fn what_a_timeout_marked_is_rack_s_again_after_an_undo_and_what_rack_marked_is_not() {
    let mut board = board(&[SKB_END; 3]);
    (0..3).for_each(|id| assert!(lose(&mut board, id)));
    board.leave_order(1);
    assert!(board.get(0).is_to_be_resent());
    board.unmark_losses();
    assert!(!board.get(0).is_to_be_resent());
    assert_eq!(
        (board.oldest_sent(), board.sent_next(0)),
        (Some(0), Some(2))
    );
}

/// Undo takes the mark from a segment, not its retransmission.
#[test]
fn what_is_lost_anew_after_an_undo_waits_for_the_retransmission_that_is_under_way() {
    let mut board = board(&[SKB_END; 3]);
    assert!(lose(&mut board, 0));
    board.send_again(0, 9_000, Tx::default(), false);
    board.count_retransmission(0, 1);
    board.unmark_losses();
    assert!(lose(&mut board, 0));
    assert_eq!(counts(&board), (3, 0, 1, 1));
    assert_eq!(board.next_lost(9), None);
}

#[test]
fn reordering_is_the_distance_to_the_highest_sacked() {
    let mut board = board(&[SKB_END; 10]);
    sack(&mut board, 9, 10);
    board.check_reordering(1 + 10 * MSS, 1, MSS as u32);
    assert_eq!((board.reordering(), board.reord_seen()), (3, 0));
    board.check_reordering(1 + 8 * MSS, 1, MSS as u32);
    assert_eq!((board.reordering(), board.reord_seen()), (3, 1));
    board.check_reordering(1 + MSS, 1, MSS as u32);
    assert_eq!((board.reordering(), board.reord_seen()), (9, 2));
    board.forget_reordering();
    assert_eq!(board.reordering(), DEFAULT_REORDERING);
}

#[test]
fn a_duplicate_of_a_sacked_retransmission_ends_it() {
    let mut board = board(&[0, SACKED | RETRANS, EVER_RETRANS, 0]);
    board.flight.retrans_out = 1;
    assert_eq!(board.duplicate(1), None);
    assert_eq!(board.duplicate(1 + MSS), Some(1 + 2 * MSS));
    assert_eq!(board.flight().retrans_out, 0);
    assert_eq!(board.duplicate(1 + 2 * MSS), Some(1 + 3 * MSS));
    assert_eq!(board.duplicate(1 + 9 * MSS), None);
}
