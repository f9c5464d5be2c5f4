//! The scoreboard: every segment that is outstanding, what is known of each, and how many there are of each kind.

use super::flight::Flight;
use super::rtx::{APP_LIMITED, EVER_RETRANS, LOST, RETRANS, RtxQueue, SACKED, SKB_END, Seg, Tx};
use knee_kit::odds::{likely, unlikely};
use knee_kit::ranges::RangeSet;

const MAX_REORDERING: u32 = 300;
/// TCP_FASTRETRANS_THRESH
pub const DEFAULT_REORDERING: u32 = 3;

/// What the SACK blocks of one ACK reported.
#[derive(Clone, Copy, Debug)]
pub struct Sacked {
    /// Lowest start of a never-retransmitted segment SACKed out of order.
    pub reord: u64,
    /// When the first and the last of them were sent that were never retransmitted; 0: none.
    pub first_sent_ns: u64,
    pub last_sent_ns: u64,
    /// Segments newly SACKed.
    pub segs: u32,
    /// Was data below `high_seq` that was never retransmitted among them?
    pub orig_sack_acked: bool,
}

impl Default for Sacked {
    fn default() -> Sacked {
        Sacked {
            reord: u64::MAX,
            first_sent_ns: 0,
            last_sent_ns: 0,
            segs: 0,
            orig_sack_acked: false,
        }
    }
}

/// What a cumulative ACK took off the queue.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    pub segs: u32,
    /// As in [`Sacked`], of what was not SACKed before.
    pub reord: u64,
    pub first_sent_ns: u64,
    pub last_sent_ns: u64,
    pub orig_sack_acked: bool,
}

/// Segments that were just marked lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    pub segs: u32,
    /// Were they retransmissions, marked before?
    again: bool,
    pub tx: Tx,
    pub is_app_limited: bool,
}

/// The sender's view of what it has outstanding.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    flight: Flight,
    /// [`Flight::packets_in_flight`], which is asked for far more often than a count changes.
    in_flight: u32,
    delivered: u32,
    lost: u32,
    reordering: u32,
    reord_seen: u32,
    rtx: RtxQueue,
    /// Packets in the queue as the stack allocated them.
    skbs: u64,
    sacked: RangeSet,
    /// Marked lost and not (again) retransmitted.
    to_retransmit: RangeSet,
}

impl Scoreboard {
    pub fn new() -> Scoreboard {
        Scoreboard {
            flight: Flight::default(),
            in_flight: 0,
            delivered: 0,
            lost: 0,
            reordering: DEFAULT_REORDERING,
            reord_seen: 0,
            rtx: RtxQueue::default(),
            skbs: 0,
            sacked: RangeSet::default(),
            to_retransmit: RangeSet::default(),
        }
    }

    // ---- what it knows ---------------------------------------------------

    #[inline]
    pub fn flight(&self) -> Flight {
        self.flight
    }
    #[inline]
    pub fn packets_out(&self) -> u32 {
        self.flight.packets_out
    }
    #[inline]
    pub fn packets_in_flight(&self) -> u32 {
        self.in_flight
    }
    /// A count of `flight` has changed.
    #[inline]
    fn recount(&mut self) {
        self.in_flight = self.flight.packets_in_flight();
    }
    /// Segments delivered so far, retransmissions included; wraps.
    #[inline]
    pub fn delivered(&self) -> u32 {
        self.delivered
    }
    /// Segments marked lost so far; wraps.
    #[inline]
    pub fn lost(&self) -> u32 {
        self.lost
    }
    /// Segments by which the network reorders, as far as seen.
    #[inline]
    pub fn reordering(&self) -> u32 {
        self.reordering
    }
    /// How often reordering was seen.
    pub fn reord_seen(&self) -> u32 {
        self.reord_seen
    }
    /// Packets outstanding as the stack allocated them.
    pub fn skbs(&self) -> u64 {
        self.skbs
    }
    /// The segment that the next cumulative ACK is about.
    #[inline]
    pub fn head(&self) -> Option<&Seg> {
        self.rtx.front()
    }
    pub fn head_id(&self) -> u32 {
        self.rtx.front_id()
    }
    /// The segment with the highest sequence number.
    pub fn last_id(&self) -> Option<u32> {
        self.rtx.back_id()
    }
    pub fn is_empty(&self) -> bool {
        self.rtx.is_empty()
    }
    #[inline]
    pub fn get(&self, id: u32) -> &Seg {
        self.rtx.get(id)
    }
    /// From the oldest sequence number on, as far as a condition holds.
    pub fn ids(&self, which: impl Fn(&Seg) -> bool) -> Vec<u32> {
        self.rtx.ids(which)
    }
    /// Least recently sent of those neither SACKed nor lost, and of what a loss probe repeated, which may be SACKed.
    #[inline]
    pub fn oldest_sent(&self) -> Option<u32> {
        self.rtx.oldest_sent()
    }
    /// The one sent after it.
    #[inline]
    pub fn sent_next(&self, id: u32) -> Option<u32> {
        self.rtx.sent_next(id)
    }
    /// Bytes SACKed above the cumulative ACK.
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked.total()
    }
    /// tcp_highest_sack_seq(): one past the highest SACKed, or snd_una.
    #[inline]
    pub fn highest_sacked(&self, snd_una: u64) -> u64 {
        let last = self.sacked.last();
        last.map_or(snd_una, |(_, end)| end.max(snd_una))
    }
    /// tcp_any_retrans_done()
    pub fn any_retrans_done(&self) -> bool {
        self.flight.retrans_out > 0 || self.head().is_some_and(|head| head.has(EVER_RETRANS))
    }
    /// Fetches ahead what tells whether anything is SACKed or lost.
    #[inline]
    pub fn fetch_sets(&self) {
        self.sacked.fetch();
        self.to_retransmit.fetch();
    }
    /// Does anything lost wait for its retransmission?
    #[inline]
    pub fn has_lost(&self) -> bool {
        !self.to_retransmit.is_empty()
    }

    // ---- sending ---------------------------------------------------------

    /// An skb is sent for the first time.
    #[inline(always)]
    pub fn push(&mut self, skb: Seg) {
        self.flight.packets_out += skb.segs();
        self.recount();
        self.skbs += u64::from(skb.has(SKB_END));
        self.rtx.push(skb);
    }

    /// The lowest segments that are lost and were sent as one skb, at most `quota`: the first, and how many.
    pub fn next_lost(&self, quota: u32) -> Option<(u32, u32)> {
        let (seq, end_seq) = self.to_retransmit.first()?;
        let found = self.rtx.find(seq);
        let id = found.expect("what is to be retransmitted is queued");
        let mut skb = self.rtx.get(id);
        // What is lost is so in whole, or was cut.
        let mut segs = skb.segs();
        while segs < quota && skb.end_seq() < end_seq && !skb.has(SKB_END) {
            skb = self.rtx.get(id.wrapping_add(segs));
            segs += skb.segs();
        }
        Some((id, segs.min(quota)))
    }

    /// Cuts so that a segment and no more than so many that follow it stand for themselves, as far as they are of one skb;
    /// returns how many they are.
    pub fn isolate(&mut self, id: u32, most: u32) -> u32 {
        self.rtx.isolate(id, most)
    }

    /// What stands for itself is sent once more.
    pub fn send_again(&mut self, id: u32, sent_ns: u64, tx: Tx, app_limited: bool) -> &Seg {
        self.rtx.touch(id);
        let skb = self.rtx.get_mut(id);
        skb.record_sent(sent_ns, tx, app_limited);
        skb.flags |= EVER_RETRANS;
        skb
    }

    /// `segs` segments sent again count as under way again (tcp_retransmit_skb(); a loss probe's does not).
    pub fn count_retransmission(&mut self, id: u32, segs: u32) {
        let begin = self.rtx.get(id).seq;
        let (mut counted, mut end) = (0, begin);
        while counted < segs {
            let skb = self.rtx.get_mut(id.wrapping_add(counted));
            // After an undo the timer may repeat a segment whose last retransmission still counts.
            self.flight.retrans_out += skb.segs() * u32::from(!skb.has(RETRANS));
            skb.flags |= RETRANS;
            counted += skb.segs();
            end = skb.end_seq();
        }
        self.recount();
        self.to_retransmit.remove(begin, end);
    }

    // ---- acknowledgements ------------------------------------------------

    /// Segments arrived that the queue does not show: the SYN, or what a DSACK reports.
    pub fn add_delivered(&mut self, segs: u32) {
        self.delivered += segs;
    }

    /// tcp_sacktag_write_queue() for one SACK block. `deliver` is called with each segment newly SACKed, as it was
    /// before. Cost grows with what is newly SACKed, not with the window: the set of ranges tells what is new.
    pub fn sack(
        &mut self,
        (start, end): (u64, u64),
        prior_highest: u64,
        high_seq: u64,
        told: &mut Sacked,
        mut deliver: impl FnMut(&Seg),
    ) {
        let Scoreboard {
            flight,
            rtx,
            skbs,
            sacked,
            to_retransmit,
            ..
        } = self;
        sacked.insert(start, end, |start, end| {
            let Some(first) = rtx.find(start) else {
                return;
            };
            let mut id = first;
            let mut at = start;
            while at < end {
                let skb = rtx.get(id);
                let segs = match skb.end_seq() <= end {
                    true => skb.segs(),
                    false => (end - at).div_ceil(u64::from(skb.mss_bytes())) as u32,
                };
                let segs = rtx.sack(id, segs, |skb| {
                    deliver(skb);
                    tag(skb, flight, to_retransmit, prior_highest, high_seq, told);
                    at = skb.end_seq();
                });
                id = id.wrapping_add(segs);
            }
            shift_skbs(rtx, skbs, first, id);
        });
        self.recount();
    }

    /// A DSACK reports data that is still queued. Returns the end of its segment if that was retransmitted.
    pub fn duplicate(&mut self, start: u64) -> Option<u64> {
        let id = self.rtx.find(start)?;
        self.rtx.isolate(id, 1);
        let seg = self.rtx.get_mut(id);
        let again = seg.has(RETRANS | EVER_RETRANS);
        if seg.has(SACKED) && seg.has(RETRANS) {
            seg.flags &= !RETRANS;
            self.flight.retrans_out -= 1;
        }
        let end_seq = again.then(|| seg.end_seq());
        self.recount();
        end_seq
    }

    /// The queue's part of tcp_clean_rtx_queue(): removes what is below `snd_una`. `deliver` is called with
    /// what was sent together and is known the same of.
    #[inline]
    pub fn ack(&mut self, snd_una: u64, high_seq: u64, mut deliver: impl FnMut(&Seg)) -> Acked {
        let mut acked = Acked {
            segs: 0,
            reord: u64::MAX,
            first_sent_ns: 0,
            last_sent_ns: 0,
            orig_sack_acked: false,
        };
        let mut delivered = 0;
        let Scoreboard {
            flight, rtx, skbs, ..
        } = self;
        while let Some((skb, rest, may_go_on)) = rtx.front_below(snd_una) {
            let segs = skb.segs();
            if unlikely(skb.has(RETRANS | EVER_RETRANS)) {
                flight.retrans_out -= segs * u32::from(skb.has(RETRANS));
            } else if !skb.has(SACKED) {
                acked.last_sent_ns = skb.sent_ns;
                if acked.first_sent_ns == 0 {
                    acked.first_sent_ns = skb.sent_ns;
                }
                acked.reord = acked.reord.min(skb.seq);
                acked.orig_sack_acked |= skb.first_end_seq() <= high_seq;
            }
            if unlikely(skb.has(SACKED | LOST)) {
                flight.sacked_out -= segs * u32::from(skb.has(SACKED));
                flight.lost_out -= segs * u32::from(skb.has(LOST));
            }
            *skbs -= u64::from(skb.has(SKB_END));
            delivered += segs * u32::from(!skb.has(SACKED));
            deliver(skb);
            acked.segs += segs;
            rtx.take_front(rest);
            if likely(!may_go_on) {
                break;
            }
        }
        self.delivered += delivered;
        self.flight.packets_out -= acked.segs;
        self.recount();
        if unlikely(!self.sacked.is_empty()) {
            self.sacked.remove_below(snd_una);
        }
        if unlikely(self.has_lost()) {
            self.to_retransmit.remove_below(snd_una);
        }
        acked
    }

    /// tcp_check_sack_reordering(): the segment at `low_seq` arrived, without being retransmitted, after one sent later.
    pub fn check_reordering(&mut self, low_seq: u64, snd_una: u64, mss_bytes: u32) {
        let fack = self.highest_sacked(snd_una);
        if low_seq >= fack {
            return;
        }
        let mss = u64::from(mss_bytes);
        let metric = fack - low_seq;
        if metric > u64::from(self.reordering) * mss {
            self.reordering = (metric.div_ceil(mss) as u32).min(MAX_REORDERING);
        }
        self.reord_seen += 1;
    }

    /// A timeout with so much SACKed shows that `reordering` was overestimated.
    pub fn forget_reordering(&mut self) {
        self.reordering = self.reordering.min(DEFAULT_REORDERING);
    }

    // ---- losses ----------------------------------------------------------

    /// tcp_mark_skb_lost(); [`count_lost`](Scoreboard::count_lost) follows for each of its segments. `None`: it cannot be
    /// lost.
    pub fn mark_lost(&mut self, id: u32) -> Option<Lost> {
        let skb = self.rtx.get_mut(id);
        if !skb.can_be_lost() {
            return None;
        }
        let again = skb.has(LOST);
        match again {
            true => skb.flags &= !RETRANS,
            false => skb.flags |= LOST,
        }
        let lost = Lost {
            segs: skb.segs(),
            again,
            tx: skb.tx,
            is_app_limited: skb.has(APP_LIMITED),
        };
        // Undo takes the mark from a segment, not its retransmission. Marked anew, it is not sent again before the
        // timeout (tcp_xmit_retransmit_queue() skips it), and not counted twice.
        if !skb.has(RETRANS) {
            self.to_retransmit.insert(skb.seq, skb.end_seq(), |_, _| {});
        }
        Some(lost)
    }

    /// RACK does not look at it again before it is next sent. What a timeout marks stays in the order, where RACK finds
    /// it when the mark is taken back.
    pub fn leave_order(&mut self, id: u32) {
        self.rtx.unlink(id);
    }

    /// One segment of those that were marked counts as lost.
    pub fn count_lost(&mut self, lost: &Lost) {
        match lost.again {
            true => self.flight.retrans_out -= 1,
            false => self.flight.lost_out += 1,
        }
        self.recount();
        self.lost += 1;
    }

    /// No segment was lost after all.
    pub fn unmark_losses(&mut self) {
        for skb in self.rtx.iter_mut() {
            // Outstanding again; what RACK marked is out of its order until next sent, as in Linux.
            skb.flags &= !LOST;
        }
        self.flight.lost_out = 0;
        self.recount();
        self.to_retransmit.clear();
    }
}

/// tcp_sacktag_one()
#[inline]
fn tag(
    seg: &mut Seg,
    flight: &mut Flight,
    to_retransmit: &mut RangeSet,
    prior_highest: u64,
    high_seq: u64,
    told: &mut Sacked,
) {
    let segs = seg.segs();
    if seg.has(RETRANS) {
        // Retransmitted but never marked lost: the retransmission is still believed in flight, as in Linux.
        if seg.has(LOST) {
            seg.flags &= !(LOST | RETRANS);
            flight.lost_out -= segs;
            flight.retrans_out -= segs;
        }
    } else {
        if !seg.has(EVER_RETRANS) {
            if seg.seq < prior_highest {
                told.reord = told.reord.min(seg.seq);
            }
            told.orig_sack_acked |= seg.first_end_seq() <= high_seq;
            if told.first_sent_ns == 0 {
                told.first_sent_ns = seg.sent_ns;
            }
            told.last_sent_ns = seg.sent_ns;
        }
        if seg.has(LOST) {
            seg.flags &= !LOST;
            flight.lost_out -= segs;
            to_retransmit.remove(seg.seq, seg.end_seq());
        }
    }
    seg.flags |= SACKED;
    // The cumulative ACK will not count it again.
    seg.tx.delivered_us = 0;
    told.segs += segs;
    flight.sacked_out += segs;
}

/// tcp_shift_skb_data(): SACKed neighbours become one skb, which gives the memory of the others back to the writer
/// while snd_una stands. Where SACKed segments and missing ones meet there is an skb's end.
fn shift_skbs(rtx: &mut RtxQueue, skbs: &mut u64, first: u32, end: u32) {
    rtx.each_pair(first, end, |seg, after| {
        let both = seg.flags & after;
        let either = seg.flags | after;
        if both & SACKED != 0 && either & (RETRANS | LOST) == 0 {
            *skbs -= u64::from(seg.has(SKB_END));
            seg.flags &= !SKB_END;
        } else if (seg.flags ^ after) & SACKED != 0 {
            *skbs += u64::from(!seg.has(SKB_END));
            seg.flags |= SKB_END;
        }
    });
}

#[cfg(test)]
mod tests;
