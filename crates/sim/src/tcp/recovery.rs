//! Loss: the SACK scoreboard, RACK (RFC 8985), the recovery state machine with
//! PRR (RFC 6937 as Linux has it), F-RTO (RFC 5682) and undo.

use knee_cc::{Event, Op};

use super::input::{AckFlags, Rexmit};
use super::rate::RateSample;
use super::rtx::{EVER_RETRANS, LOST, RETRANS, SACKED};
use super::timers::XmitTimerKind;
use super::{CaState, Cx, DEFAULT_REORDERING, Endpoint, MAX_REORDERING, TCP_INFINITE_SSTHRESH};
use crate::segment::Segment;

/// Resolution that keeps RACK's timer from firing at once (TCP_TIMEOUT_MIN_US).
const TIMEOUT_MIN_US: u64 = 2_000;
/// Recoveries for which a widened reordering window lasts (TCP_RACK_RECOVERY_THRESH).
const REO_WND_PERSIST: u8 = 16;

/// RACK's view of the connection.
#[derive(Clone, Debug)]
pub struct Rack {
    /// Transmission time, end and RTT of the most recently sent segment delivered.
    mstamp_ns: u64,
    end_seq: u64,
    rtt_us: u32,
    advanced: bool,
    dsack_seen: bool,
    /// The window in quarters of the minimum RTT.
    reo_wnd_steps: u8,
    reo_wnd_persist: u8,
    /// `tp.delivered` when the window last changed.
    last_delivered: u32,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            mstamp_ns: 0,
            end_seq: 0,
            rtt_us: 0,
            advanced: false,
            dsack_seen: false,
            reo_wnd_steps: 1,
            reo_wnd_persist: 0,
            last_delivered: 0,
        }
    }
}

impl Rack {
    /// tcp_rack_advance(): a segment was delivered.
    #[inline]
    pub fn advance(
        &mut self,
        now_us: u64,
        min_rtt_us: u32,
        seg_flags: u8,
        end_seq: u64,
        sent_ns: u64,
    ) {
        let rtt_us = now_us.saturating_sub(sent_ns / 1_000) as u32;
        if rtt_us < min_rtt_us && seg_flags & (RETRANS | EVER_RETRANS) != 0 {
            // Too fast for the retransmission: the original was delivered.
            return;
        }
        self.advanced = true;
        self.rtt_us = rtt_us;
        if sent_after(sent_ns, end_seq, self.mstamp_ns, self.end_seq) {
            self.mstamp_ns = sent_ns;
            self.end_seq = end_seq;
        }
    }
}

/// tcp_skb_sent_after(): later, or at once and further on.
fn sent_after(t1_ns: u64, seq1: u64, t2_ns: u64, seq2: u64) -> bool {
    let (t1_us, t2_us) = (t1_ns / 1_000, t2_ns / 1_000);
    t1_us > t2_us || t1_us == t2_us && seq1 > seq2
}

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
        if segment.sack.dsack
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
            let mut new_parts: [(u64, u64); 8] = [(0, 0); 8];
            let mut parts = 0;
            let mut more = Vec::new();
            self.sacked.insert(start, end, |a, b| match parts {
                8 => more.push((a, b)),
                _ => {
                    new_parts[parts] = (a, b);
                    parts += 1;
                }
            });
            for &(a, b) in new_parts[..parts].iter().chain(&more) {
                self.tag_range(cx, (a, b), prior_highest, flags, tag, sample);
            }
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
        let Some(mut id) = self.rtx.find(start) else {
            return;
        };
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
        if self.undo_marker != 0 && self.undo_retrans > 0 {
            if end <= prior_una && end > self.undo_marker {
                self.undo_retrans = (self.undo_retrans - dups as i64).max(0);
            } else if end > self.snd_una
                && let Some(id) = self.rtx.find(start)
            {
                // A duplicate above the cumulative ACK: its segment is SACKed.
                let seg = self.rtx.get_mut(id);
                if seg.has(RETRANS | EVER_RETRANS) && seg.end_seq() > self.undo_marker {
                    self.undo_retrans = (self.undo_retrans - 1).max(0);
                }
            }
        }
        if end > self.snd_una
            && let Some(id) = self.rtx.find(start)
        {
            let seg = self.rtx.get_mut(id);
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

    // ---- RACK ------------------------------------------------------------

    fn rack_reo_wnd_us(&self) -> u64 {
        if self.reord_seen == 0
            && (self.ca_state >= CaState::Recovery || self.cc.sacked_out >= self.cc.reordering)
        {
            return 0;
        }
        let steps = u64::from(self.rack.reo_wnd_steps);
        (u64::from(self.min_rtt.get() >> 2) * steps).min(u64::from(self.srtt_us()))
    }

    /// tcp_rack_mark_lost(): returns whether the reordering timer was armed.
    fn rack_mark_lost(&mut self, cx: &mut Cx) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let timeout_us = self.rack_detect_loss(cx);
        if timeout_us == 0 {
            return false;
        }
        let jiffies = cx.host.us_to_jiffies(timeout_us + TIMEOUT_MIN_US);
        self.arm_xmit_timer(cx, XmitTimerKind::Reorder, jiffies);
        true
    }

    /// tcp_rack_detect_loss(): marks what was sent long enough before the last
    /// delivered; returns how long the rest still has to wait, in us.
    pub(super) fn rack_detect_loss(&mut self, cx: &Cx) -> u64 {
        let reo_wnd_us = self.rack_reo_wnd_us();
        let deadline_us = u64::from(self.rack.rtt_us) + reo_wnd_us;
        let now_us = cx.now_us();
        let mut timeout_us = 0;
        let mut next = self.rtx.oldest_sent();
        while let Some(id) = next {
            let seg = self.rtx.get(id);
            if !sent_after(
                self.rack.mstamp_ns,
                self.rack.end_seq,
                seg.sent_ns,
                seg.end_seq(),
            ) {
                break;
            }
            next = self.rtx.sent_next(id);
            let waited_us = now_us.saturating_sub(seg.sent_ns / 1_000);
            if waited_us >= deadline_us {
                self.mark_lost(id);
            } else {
                timeout_us = timeout_us.max(deadline_us - waited_us);
            }
        }
        timeout_us
    }

    /// tcp_rack_update_reo_wnd()
    pub(super) fn rack_update_reo_wnd(&mut self, sample: &RateSample) {
        if sample.is_empty() {
            return;
        }
        let rack = &mut self.rack;
        if (sample.prior_delivered().wrapping_sub(rack.last_delivered) as i32) < 0 {
            // Not a round trip since the last change.
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.reo_wnd_steps = rack.reo_wnd_steps.saturating_add(1);
            rack.dsack_seen = false;
            rack.last_delivered = self.cc.delivered;
            rack.reo_wnd_persist = REO_WND_PERSIST;
        } else if rack.reo_wnd_persist == 0 {
            rack.reo_wnd_steps = 1;
        }
    }

    /// tcp_mark_skb_lost()
    fn mark_lost(&mut self, id: u32) {
        let seg = self.rtx.get_mut(id);
        if seg.has(SACKED) {
            return;
        }
        if seg.has(LOST) {
            if !seg.has(RETRANS) {
                return;
            }
            seg.flags &= !RETRANS;
            self.cc.retrans_out -= 1;
        } else {
            seg.flags |= LOST;
            self.cc.lost_out += 1;
        }
        self.cc.lost += 1;
        let (seq, end_seq) = (seg.seq, seg.end_seq());
        self.to_retransmit.insert(seq, end_seq, |_, _| {});
        self.rtx.unlink(id);
    }

    // ---- the state machine -----------------------------------------------

    /// tcp_fastretrans_alert()
    pub(super) fn alert(
        &mut self,
        cx: &mut Cx,
        prior_una: u64,
        flags: &mut AckFlags,
        duplicate: bool,
    ) -> Rexmit {
        if self.ca_state == CaState::Open {
            self.retrans_stamp_ms = 0;
        } else if self.snd_una >= self.high_seq {
            match self.ca_state {
                CaState::Cwr if self.snd_una != self.high_seq => {
                    self.end_cwnd_reduction(cx);
                    self.set_ca_state(cx, CaState::Open);
                }
                CaState::Recovery => {
                    self.try_undo_recovery(cx);
                    self.end_cwnd_reduction(cx);
                }
                _ => {}
            }
        }
        match self.ca_state {
            CaState::Recovery => {
                if flags.una_advanced && self.try_undo_partial(cx, prior_una) {
                    return Rexmit::Lost;
                }
                if self.try_undo_dsack(cx) {
                    self.try_to_open(cx);
                }
                self.identify_loss(cx, flags);
                if self.ca_state != CaState::Recovery {
                    if self.cc.lost_out == 0 {
                        return Rexmit::None;
                    }
                    self.enter_recovery(cx);
                }
                Rexmit::Lost
            }
            CaState::Loss => {
                let rexmit = self.process_loss(cx, flags, duplicate);
                self.identify_loss(cx, flags);
                if !(self.ca_state == CaState::Open || flags.lost_retrans) {
                    return rexmit;
                }
                self.alert_open(cx, flags)
            }
            _ => self.alert_open(cx, flags),
        }
    }

    /// The default arm of tcp_fastretrans_alert(): Open, Disorder, CWR.
    fn alert_open(&mut self, cx: &mut Cx, flags: &mut AckFlags) -> Rexmit {
        if self.ca_state <= CaState::Disorder {
            self.try_undo_dsack(cx);
        }
        self.identify_loss(cx, flags);
        if self.cc.lost_out == 0 {
            self.try_to_open(cx);
            return Rexmit::None;
        }
        self.enter_recovery(cx);
        Rexmit::Lost
    }

    fn identify_loss(&mut self, cx: &mut Cx, flags: &mut AckFlags) {
        let prior_retrans = self.cc.retrans_out;
        if self.rack_mark_lost(cx) {
            flags.set_xmit_timer = false;
        }
        flags.lost_retrans |= prior_retrans > self.cc.retrans_out;
    }

    /// tcp_enter_recovery()
    pub(super) fn enter_recovery(&mut self, cx: &mut Cx) {
        self.counters.recovery_count += 1;
        self.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_cwnd_reduction() {
            self.prior_ssthresh = self.current_ssthresh();
            self.init_cwnd_reduction(cx);
        }
        self.set_ca_state(cx, CaState::Recovery);
    }

    fn init_undo(&mut self) {
        self.undo_marker = self.snd_una;
        // Retransmissions in flight from before could be mistaken for ours;
        // none: -1, so that undo waits for the first.
        self.undo_retrans = match self.cc.retrans_out {
            0 => -1,
            n => i64::from(n),
        };
    }

    /// tcp_init_cwnd_reduction()
    pub(super) fn init_cwnd_reduction(&mut self, cx: &Cx) {
        self.high_seq = self.snd_nxt;
        self.tlp_high_seq = 0;
        self.cc.snd_cwnd_cnt = 0;
        self.cc.prior_cwnd = self.cc.snd_cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.cc.snd_ssthresh = self.call_cc(cx, Op::Ssthresh);
    }

    /// tcp_cwnd_reduction(): proportional rate reduction.
    pub(super) fn reduce_cwnd(&mut self, cx: &Cx, delivered: u32, lost: u32, una_advanced: bool) {
        if delivered == 0 || self.cc.prior_cwnd == 0 {
            return;
        }
        self.prr_delivered += delivered;
        let in_flight = i64::from(self.packets_in_flight());
        let delta = i64::from(self.cc.snd_ssthresh) - in_flight;
        let (prr_delivered, prr_out) = (i64::from(self.prr_delivered), i64::from(self.prr_out));
        let mut send = if delta < 0 {
            let share = i64::from(self.cc.snd_ssthresh) * prr_delivered;
            (share as u64).div_ceil(u64::from(self.cc.prior_cwnd)) as i64 - prr_out
        } else {
            let mut send = (prr_delivered - prr_out).max(i64::from(delivered));
            if una_advanced && lost == 0 {
                send += 1;
            }
            send.min(delta)
        };
        // The fast retransmission itself always goes out.
        send = send.max(i64::from(prr_out == 0));
        self.set_cwnd(cx, (in_flight + send).max(1) as u32);
    }

    /// tcp_end_cwnd_reduction()
    pub(super) fn end_cwnd_reduction(&mut self, cx: &Cx) {
        if self.has_cong_control {
            return;
        }
        if self.cc.snd_ssthresh < TCP_INFINITE_SSTHRESH
            && (self.ca_state == CaState::Cwr || self.undo_marker != 0)
        {
            self.set_cwnd(cx, self.cc.snd_ssthresh);
            self.snd_cwnd_stamp = cx.jiffies();
        }
        self.cwnd_event(cx, Event::CompleteCwr);
    }

    fn try_to_open(&mut self, cx: &mut Cx) {
        if !self.any_retrans_done() {
            self.retrans_stamp_ms = 0;
        }
        if self.ca_state != CaState::Cwr {
            self.try_keep_open(cx);
        }
    }

    pub(super) fn try_keep_open(&mut self, cx: &mut Cx) {
        let state = match self.left_out() > 0 || self.any_retrans_done() {
            true => CaState::Disorder,
            false => CaState::Open,
        };
        if self.ca_state != state {
            self.set_ca_state(cx, state);
            self.high_seq = self.snd_nxt;
        }
    }

    /// tcp_any_retrans_done()
    fn any_retrans_done(&self) -> bool {
        self.cc.retrans_out > 0 || self.rtx.front().is_some_and(|head| head.has(EVER_RETRANS))
    }

    // ---- undo ------------------------------------------------------------

    /// tcp_packet_delayed(): the ACK answers data sent before the first
    /// retransmission (Eifel, RFC 3522).
    fn packet_delayed(&self) -> bool {
        self.retrans_stamp_ms != 0 && self.echo_before(self.retrans_stamp_ms)
    }

    fn echo_before(&self, stamp_ms: u32) -> bool {
        self.rx
            .echoed_ms()
            .is_some_and(|echo_ms| (echo_ms.wrapping_sub(stamp_ms) as i32) < 0)
    }

    /// tcp_skb_spurious_retrans()
    pub(super) fn spurious_retrans(&self, sent_ns: u64, seg_flags: u8) -> bool {
        seg_flags & (RETRANS | EVER_RETRANS) != 0 && self.echo_before((sent_ns / 1_000_000) as u32)
    }

    fn may_undo(&self) -> bool {
        self.undo_marker != 0 && (self.undo_retrans == 0 || self.packet_delayed())
    }

    fn undo_cwnd_reduction(&mut self, cx: &mut Cx, unmark_loss: bool) {
        if unmark_loss {
            self.unmark_losses();
        }
        if self.prior_ssthresh != 0 {
            let snd_cwnd = self.call_cc(cx, Op::UndoCwnd);
            self.set_cwnd(cx, snd_cwnd.max(1));
            if self.prior_ssthresh > self.cc.snd_ssthresh {
                self.cc.snd_ssthresh = self.prior_ssthresh;
            }
        }
        self.snd_cwnd_stamp = cx.jiffies();
        self.undo_marker = 0;
        self.rack.advanced = true;
        self.counters.undo_count += 1;
        cx.events.push("undo");
    }

    fn unmark_losses(&mut self) {
        for id in self.rtx.ids() {
            // Outstanding again, but out of RACK's order until next sent, as
            // in Linux.
            self.rtx.get_mut(id).flags &= !LOST;
        }
        self.cc.lost_out = 0;
        self.to_retransmit.clear();
    }

    fn try_undo_recovery(&mut self, cx: &mut Cx) {
        if self.may_undo() {
            self.undo_cwnd_reduction(cx, false);
        } else if self.rack.reo_wnd_persist > 0 {
            self.rack.reo_wnd_persist -= 1;
        }
        self.set_ca_state(cx, CaState::Open);
    }

    fn try_undo_partial(&mut self, cx: &mut Cx, prior_una: u64) -> bool {
        if self.undo_marker == 0 || !self.packet_delayed() {
            return false;
        }
        self.check_reordering(prior_una);
        if self.cc.retrans_out > 0 {
            // Wait for the retransmissions to be acked before judging.
            return true;
        }
        if !self.any_retrans_done() {
            self.retrans_stamp_ms = 0;
        }
        self.undo_cwnd_reduction(cx, true);
        self.try_keep_open(cx);
        true
    }

    fn try_undo_dsack(&mut self, cx: &mut Cx) -> bool {
        if self.undo_marker == 0 || self.undo_retrans != 0 {
            return false;
        }
        self.rack.reo_wnd_persist = (self.rack.reo_wnd_persist + 1).min(REO_WND_PERSIST);
        self.undo_cwnd_reduction(cx, false);
        true
    }

    fn try_undo_loss(&mut self, cx: &mut Cx, frto: bool) -> bool {
        if !frto && !self.may_undo() {
            return false;
        }
        self.undo_cwnd_reduction(cx, true);
        self.retransmits = 0;
        self.set_ca_state(cx, CaState::Open);
        true
    }

    // ---- timeout ---------------------------------------------------------

    /// tcp_enter_loss(): the retransmission timer fired.
    pub(super) fn enter_loss(&mut self, cx: &mut Cx) {
        let new_recovery = self.ca_state < CaState::Recovery;
        self.timeout_mark_lost(cx);
        if self.ca_state <= CaState::Disorder
            || self.high_seq <= self.snd_una
            || self.ca_state == CaState::Loss && self.retransmits == 0
        {
            self.prior_ssthresh = self.current_ssthresh();
            self.cc.prior_cwnd = self.cc.snd_cwnd;
            self.cc.snd_ssthresh = self.call_cc(cx, Op::Ssthresh);
            self.cwnd_event(cx, Event::Loss);
            self.init_undo();
        }
        self.set_cwnd(cx, self.packets_in_flight() + 1);
        self.cc.snd_cwnd_cnt = 0;
        self.snd_cwnd_stamp = cx.jiffies();
        if self.ca_state <= CaState::Disorder && self.cc.sacked_out >= self.cc.reordering {
            self.cc.reordering = self.cc.reordering.min(DEFAULT_REORDERING);
        }
        self.set_ca_state(cx, CaState::Loss);
        self.high_seq = self.snd_nxt;
        self.tlp_high_seq = 0;
        self.frto = new_recovery || self.retransmits > 0;
    }

    /// tcp_timeout_mark_lost(): the head, and what RACK thinks is overdue.
    fn timeout_mark_lost(&mut self, cx: &Cx) {
        let deadline_us = u64::from(self.rack.rtt_us);
        let now_us = cx.now_us();
        let head = self.rtx.front_id();
        for id in self.rtx.ids() {
            let seg = self.rtx.get(id);
            if id == head || now_us.saturating_sub(seg.sent_ns / 1_000) >= deadline_us {
                self.mark_lost(id);
            }
        }
    }

    /// tcp_process_loss()
    fn process_loss(&mut self, cx: &mut Cx, flags: &AckFlags, duplicate: bool) -> Rexmit {
        let recovered = self.snd_una >= self.high_seq;
        if flags.una_advanced && self.try_undo_loss(cx, false) {
            return Rexmit::None;
        }
        if self.frto {
            if flags.orig_sack_acked && self.try_undo_loss(cx, true) {
                // RFC 5682, step 3b: the timeout was spurious.
                return Rexmit::None;
            }
            if self.snd_nxt > self.high_seq {
                if flags.data_sacked || duplicate {
                    self.frto = false;
                }
            } else if flags.una_advanced && !recovered {
                self.high_seq = self.snd_nxt;
                // Step 2b: new data decides; without any, recover as usual.
                if self.notsent_bytes() > 0 && self.snd_una + self.snd_wnd > self.snd_nxt {
                    return Rexmit::New;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(cx);
            return Rexmit::None;
        }
        Rexmit::Lost
    }
}
