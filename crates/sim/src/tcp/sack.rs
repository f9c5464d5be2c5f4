//! The SACK scoreboard: what the receiver reports to hold, or to hold twice.

use super::input::AckFlags;
use super::rate::RateSample;
use super::rtx::{EVER_RETRANS, LOST, RETRANS, SACKED, SKB_END};
use super::{CaState, Cx, Endpoint, MAX_REORDERING};
use crate::segment::Segment;

/// What the SACK blocks of one ACK told.
pub struct SackTag {
    /// Lowest start of a never-retransmitted segment SACKed out of order.
    reord: u64,
    pub first_sent_ns: u64,
    pub last_sent_ns: u64,
    /// Segments delivered: newly SACKed, or reported as duplicates.
    pub delivered: u32,
    pub first_tx_ns: u64,
}

impl SackTag {
    pub fn new(first_tx_ns: u64) -> SackTag {
        SackTag {
            reord: u64::MAX,
            first_sent_ns: 0,
            last_sent_ns: 0,
            delivered: 0,
            first_tx_ns,
        }
    }
}

impl Endpoint {
    /// tcp_highest_sack_seq(): one past the highest SACKed, or snd_una.
    pub(super) fn highest_sacked(&self) -> u64 {
        self.sacked
            .last()
            .map_or(self.snd_una, |(_, end)| end.max(self.snd_una))
    }

    /// tcp_sacktag_write_queue(). Cost grows with what is newly SACKed, not
    /// with the window: the set of ranges tells what is new.
    pub(super) fn tag_sacked(
        &mut self,
        cx: &Cx,
        segment: &Segment,
        prior_una: u64,
        flags: &mut AckFlags,
        tag: &mut SackTag,
        sample: &mut RateSample,
    ) {
        let prior_highest = self.highest_sacked();
        let mut blocks = segment.sack.blocks(segment.ack);
        if segment.sack.has_dsack()
            && let Some((start, end)) = blocks.next()
        {
            self.on_dsack(start, end, prior_una, flags, tag);
        }
        let mut fresh: [(u64, u64); 3] = [(0, 0); 3];
        let mut count = 0;
        for block in blocks {
            fresh[count] = block;
            count += 1;
        }
        // In sequence order, as Linux sorts them.
        fresh[..count].sort_unstable();
        for &(start, end) in &fresh[..count] {
            let start = start.max(self.snd_una);
            if start >= end || end > self.snd_nxt {
                continue;
            }
            // Out of `self` meanwhile, which tagging borrows.
            let mut sacked = std::mem::take(&mut self.sacked);
            sacked.insert(start, end, |a, b| {
                self.tag_range(cx, (a, b), prior_highest, flags, tag, sample);
            });
            self.sacked = sacked;
        }
        if self.ca_state != CaState::Loss || self.undo_marker != 0 {
            self.check_reordering(tag.reord);
        }
    }

    /// tcp_sacktag_one() for each segment of a newly SACKed range.
    fn tag_range(
        &mut self,
        cx: &Cx,
        (start, end): (u64, u64),
        prior_highest: u64,
        flags: &mut AckFlags,
        tag: &mut SackTag,
        sample: &mut RateSample,
    ) {
        let now_us = cx.now_us();
        let min_rtt_us = self.min_rtt.get();
        let Some(first) = self.rtx.find(start) else {
            return;
        };
        let mut id = first;
        let mut at = start;
        while at < end {
            let seg = self.rtx.get_mut(id);
            let (seq, end_seq, seg_flags, sent_ns) =
                (seg.seq, seg.end_seq(), seg.flags, seg.sent_ns);
            self.rack
                .advance(now_us, min_rtt_us, seg_flags, end_seq, sent_ns);
            if seg_flags & RETRANS != 0 {
                // Retransmitted but never marked lost: the retransmission is
                // still believed in flight, as in Linux.
                if seg_flags & LOST != 0 {
                    seg.flags &= !(LOST | RETRANS);
                    self.cc.lost_out -= 1;
                    self.cc.retrans_out -= 1;
                }
            } else {
                if seg_flags & EVER_RETRANS == 0 {
                    if seq < prior_highest {
                        tag.reord = tag.reord.min(seq);
                    }
                    flags.orig_sack_acked |= end_seq <= self.high_seq;
                    if tag.first_sent_ns == 0 {
                        tag.first_sent_ns = sent_ns;
                    }
                    tag.last_sent_ns = sent_ns;
                }
                if seg_flags & LOST != 0 {
                    seg.flags &= !LOST;
                    self.cc.lost_out -= 1;
                    self.to_retransmit.remove(seq, end_seq);
                }
            }
            seg.flags |= SACKED;
            Endpoint::rate_on_delivered(&mut tag.first_tx_ns, seg, sample);
            flags.data_sacked = true;
            tag.delivered += 1;
            self.cc.sacked_out += 1;
            self.rtx.unlink(id);
            at = end_seq;
            id = id.wrapping_add(1);
        }
        self.shift_skbs(first, id);
    }

    /// tcp_shift_skb_data(): SACKed neighbours become one skb, which gives the
    /// memory of the others back to the writer while snd_una stands. Where SACKed
    /// segments and missing ones meet there is an skb's end.
    fn shift_skbs(&mut self, first: u32, end: u32) {
        let mut id = first.wrapping_sub(1);
        while id != end {
            let next = id.wrapping_add(1);
            if self.rtx.contains(id) && self.rtx.contains(next) {
                let after = self.rtx.get(next).flags;
                let seg = self.rtx.get_mut(id);
                let both = seg.flags & after;
                let either = seg.flags | after;
                if both & SACKED != 0 && either & (RETRANS | LOST) == 0 {
                    self.skbs_out -= u64::from(seg.has(SKB_END));
                    seg.flags &= !SKB_END;
                } else if (seg.flags ^ after) & SACKED != 0 {
                    self.skbs_out += u64::from(!seg.has(SKB_END));
                    seg.flags |= SKB_END;
                }
            }
            id = next;
        }
    }

    /// tcp_check_dsack(): the receiver got something twice.
    fn on_dsack(
        &mut self,
        start: u64,
        end: u64,
        prior_una: u64,
        flags: &mut AckFlags,
        tag: &mut SackTag,
    ) {
        let mss = u64::from(self.cc.mss_bytes);
        let mut dups = 1;
        if end - start > mss {
            dups = (end - start).div_ceil(mss);
        } else if self.tlp_high_seq != 0 && self.tlp_high_seq == end {
            flags.dsack_tlp = true;
        }
        self.counters.dsack_dups += dups;
        if self.counters.dsack_dups > self.counters.total_retrans {
            // More than we ever retransmitted: the network duplicates.
            return;
        }
        if self.reord_seen > 0 && !flags.dsack_tlp {
            self.rack.dsack_seen = true;
        }
        flags.dsacking = true;
        tag.delivered += dups as u32;
        let undoing = self.undo_marker != 0 && self.undo_retrans > 0;
        if undoing && end <= prior_una && end > self.undo_marker {
            self.undo_retrans = (self.undo_retrans - dups as i64).max(0);
        }
        // A duplicate above the cumulative ACK: its segment is still queued.
        if end > self.snd_una
            && let Some(id) = self.rtx.find(start)
        {
            let seg = self.rtx.get_mut(id);
            if undoing && seg.has(RETRANS | EVER_RETRANS) && seg.end_seq() > self.undo_marker {
                self.undo_retrans = (self.undo_retrans - 1).max(0);
            }
            if seg.has(SACKED) && seg.has(RETRANS) {
                seg.flags &= !RETRANS;
                self.cc.retrans_out -= 1;
            }
        }
    }

    /// tcp_check_sack_reordering(): the segment at `low_seq` arrived, without
    /// being retransmitted, after one sent later.
    pub(super) fn check_reordering(&mut self, low_seq: u64) {
        let fack = self.highest_sacked();
        if low_seq >= fack {
            return;
        }
        let mss = u64::from(self.cc.mss_bytes);
        let metric = fack - low_seq;
        if metric > u64::from(self.cc.reordering) * mss {
            self.cc.reordering = (metric.div_ceil(mss) as u32).min(MAX_REORDERING);
        }
        self.reord_seen += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::HostConf;
    use super::super::testing::{MSS, segment, sender};
    use super::*;
    use crate::segment::{SackBlocks, Slab};

    /// tcp_shift_skb_data() takes what is SACKed and nothing else. A part of an skb that was sent again, and is no longer
    /// held lost (an undo), stays the skb that it was.
    #[test]
    fn what_was_sent_again_is_neither_merged_nor_cut() {
        let conf = HostConf::with_keys("");
        let again = SACKED | RETRANS;
        let mut tcp = sender(&conf, "reno", &[0, again, again, SKB_END]);
        tcp.shift_skbs(1, 3);
        let ends: Vec<_> = (0..4).map(|id| tcp.rtx.get(id).has(SKB_END)).collect();
        assert_eq!(ends, [true, false, true, true]);
        assert_eq!(tcp.skbs_out, 3);
    }

    /// tcp_sacktag_write_queue(): after a timeout SACKs tell of reordering only while it may yet be undone.
    #[test]
    fn a_timeout_that_is_not_undone_hides_reordering() {
        let conf = HostConf::with_keys("");
        for (undo_marker, reordering) in [(1, 9), (0, 3)] {
            let mut tcp = sender(&conf, "reno", &[SKB_END; 10]);
            tcp.ca_state = CaState::Loss;
            tcp.undo_marker = undo_marker;
            tcp.sacked.insert(1 + 9 * MSS, 1 + 10 * MSS, |_, _| {});
            let mut sack = SackBlocks::default();
            sack.push(1, (1 + MSS, 1 + 2 * MSS));
            let segment = Segment {
                sack,
                ..segment(1, 1)
            };
            let cx = Cx {
                now_ns: 1_000_000_000,
                host: &conf,
                slab: &mut Slab::default(),
                out: &mut Vec::new(),
                events: &mut Vec::new(),
            };
            let (mut flags, mut tag) = (AckFlags::default(), SackTag::new(0));
            let mut sample = RateSample::new(0);
            tcp.tag_sacked(&cx, &segment, 1, &mut flags, &mut tag, &mut sample);
            assert_eq!(tcp.cc.reordering, reordering, "undo marker {undo_marker}");
            assert_eq!(tcp.reord_seen, u32::from(undo_marker != 0));
        }
    }
}
