//! What an ACK's SACK blocks mean to the sender: what the receiver holds, or holds twice.

use super::input::AckFlags;
use super::rate::RateSample;
use super::scoreboard::Sacked;
use super::{CaState, Cx, Endpoint};
use crate::segment::Segment;

impl Endpoint {
    /// tcp_sacktag_write_queue(); returns when the first and the last were sent that are new and never retransmitted; 0: none.
    #[inline(never)]
    pub(super) fn tag_sacked(
        &mut self,
        cx: &Cx,
        segment: &Segment,
        prior_una: u64,
        flags: &mut AckFlags,
        sample: &mut RateSample,
    ) -> (u64, u64) {
        let prior_highest = self.board.highest_sacked(self.snd_una);
        let mut blocks = segment.sack.blocks(segment.ack);
        if segment.sack.has_dsack()
            && let Some((start, end)) = blocks.next()
        {
            self.on_dsack(start, end, prior_una, flags);
        }
        let mut fresh: [(u64, u64); 3] = [(0, 0); 3];
        let mut count = 0;
        for block in blocks {
            fresh[count] = block;
            count += 1;
        }
        // In sequence order, as Linux sorts them.
        fresh[..count].sort_unstable();
        let mut told = Sacked::default();
        let now_us = cx.now_us();
        let min_rtt_us = self.min_rtt.get();
        let high_seq = self.recovery.high_seq();
        for &(start, end) in &fresh[..count] {
            let start = start.max(self.snd_una);
            if start >= end || end > self.snd_nxt {
                continue;
            }
            let block = (start, end);
            self.board
                .sack(block, prior_highest, high_seq, &mut told, |seg| {
                    self.rack.advance(now_us, min_rtt_us, seg);
                    self.rate.on_delivered(seg, sample);
                });
        }
        self.board.add_delivered(told.segs);
        flags.data_sacked |= told.segs > 0;
        flags.orig_sack_acked |= told.orig_sack_acked;
        if self.recovery.state() != CaState::Loss || self.undo.is_on() {
            self.check_reordering(told.reord);
        }
        (told.first_sent_ns, told.last_sent_ns)
    }

    /// tcp_check_dsack(): the receiver got something twice.
    fn on_dsack(&mut self, start: u64, end: u64, prior_una: u64, flags: &mut AckFlags) {
        let mss = u64::from(self.cc.mss_bytes);
        let mut dups = 1;
        if end - start > mss {
            dups = (end - start).div_ceil(mss);
        } else if self.probe.ends_at(end) {
            flags.dsack_tlp = true;
        }
        self.counters.dsack_dups += dups;
        if self.counters.dsack_dups > self.counters.total_retrans {
            // More than we ever retransmitted: the network duplicates.
            return;
        }
        if self.board.reord_seen() > 0 && !flags.dsack_tlp {
            self.rack.on_dsack();
        }
        flags.dsacking = true;
        self.board.add_delivered(dups as u32);
        let undoing = self.undo.awaits_duplicates();
        if undoing && end <= prior_una {
            self.undo.on_duplicates(end, dups);
        }
        // A duplicate above the cumulative ACK: its segment is still queued.
        if end > self.snd_una
            && let Some(end_seq) = self.board.duplicate(start)
            && undoing
        {
            self.undo.on_duplicates(end_seq, 1);
        }
    }

    #[inline(never)]
    pub(super) fn check_reordering(&mut self, low_seq: u64) {
        self.board
            .check_reordering(low_seq, self.snd_una, self.cc.mss_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::HostConf;
    use super::super::rtx::SKB_END;
    use super::super::testing::{MSS, segment, sender};
    use super::*;
    use crate::Clock;
    use crate::segment::{SackBlocks, Slab};

    /// tcp_sacktag_write_queue(): after a timeout SACKs tell of reordering only while it may yet be undone.
    #[test]
    fn a_timeout_that_is_not_undone_hides_reordering() {
        let conf = HostConf::untuned();
        for (may_undo, reordering) in [(true, 9), (false, 3)] {
            let mut tcp = sender(&conf, "reno", &[SKB_END; 10]);
            assert_eq!(tcp.recovery.change(CaState::Loss).count(), 1);
            if may_undo {
                tcp.undo.start(1, 0);
            }
            let last = (1 + 9 * MSS, 1 + 10 * MSS);
            tcp.board.sack(last, 1, 0, &mut Sacked::default(), |_| {});
            let mut sack = SackBlocks::default();
            sack.push(1, (1 + MSS, 1 + 2 * MSS));
            let segment = Segment {
                sack,
                ..segment(1, 1)
            };
            let cx = Cx {
                now: &Clock::at(1_000_000_000, &conf),
                host: &conf,
                slab: &mut Slab::default(),
                out: &mut Vec::new(),
                events: &mut Vec::new(),
            };
            let mut flags = AckFlags::default();
            let mut sample = RateSample::new(0);
            tcp.tag_sacked(&cx, &segment, 1, &mut flags, &mut sample);
            assert_eq!(tcp.board.reordering(), reordering, "{may_undo}");
            assert_eq!(tcp.board.reord_seen(), u32::from(may_undo));
        }
    }
}
