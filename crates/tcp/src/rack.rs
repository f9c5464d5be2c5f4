//! RACK (RFC 8985): a segment is lost when one sent later has been delivered
//! and it has had its round trip and some time for reordering.

use super::rtx::{EVER_RETRANS, RETRANS, Seg};
use knee_kit::odds::unlikely;

/// Recoveries for which a widened reordering window lasts (TCP_RACK_RECOVERY_THRESH).
const REO_WND_PERSIST: u8 = 16;

/// RACK's view of the connection.
#[derive(Clone, Debug)]
pub struct Rack {
    /// Transmission time, end and RTT of the most recently sent segment delivered.
    sent_us: u64,
    end_seq: u64,
    rtt_us: u32,
    /// Was anything delivered since the last look for losses?
    advanced: bool,
    /// Did a DSACK arrive since the window last changed?
    dsack_seen: bool,
    /// The window in quarters of the minimum RTT, and the recoveries that it lasts.
    reo_wnd_steps: u8,
    reo_wnd_persist: u8,
    /// `tp.delivered` when the window last changed.
    last_delivered: u32,
}

/// What RACK says of an outstanding segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing sent later was delivered: nor was it for any segment sent after this one.
    NotYet,
    /// It may still arrive, for that long, in us.
    Waits(u64),
    Lost,
}

impl Rack {
    pub fn new() -> Rack {
        Rack {
            sent_us: 0,
            end_seq: 0,
            rtt_us: 0,
            advanced: false,
            dsack_seen: false,
            reo_wnd_steps: 1,
            reo_wnd_persist: 0,
            last_delivered: 0,
        }
    }

    /// RTT of the most recently sent segment delivered.
    pub fn rtt_us(&self) -> u32 {
        self.rtt_us
    }

    /// tcp_rack_advance(): a segment was delivered.
    #[inline]
    pub fn advance(&mut self, now_us: u64, min_rtt_us: u32, seg: &Seg) {
        let rtt_us = now_us.saturating_sub(seg.sent_us) as u32;
        if rtt_us < min_rtt_us && seg.has(RETRANS | EVER_RETRANS) {
            // Too fast for the retransmission: the original was delivered.
            return;
        }
        self.advanced = true;
        self.rtt_us = rtt_us;
        let end_seq = seg.end_seq();
        if sent_after((seg.sent_us, end_seq), (self.sent_us, self.end_seq)) {
            self.sent_us = seg.sent_us;
            self.end_seq = end_seq;
        }
    }

    /// Was anything delivered since the last call?
    #[inline]
    pub fn take_advanced(&mut self) -> bool {
        std::mem::replace(&mut self.advanced, false)
    }

    /// The reordering window, us, where the network is known to reorder or nothing presses.
    pub fn reo_wnd_us(&self, min_rtt_us: u32, srtt_us: u32) -> u64 {
        let steps = u64::from(self.reo_wnd_steps);
        (u64::from(min_rtt_us >> 2) * steps).min(u64::from(srtt_us))
    }

    /// What tcp_rack_detect_loss() asks of each segment, from the one sent longest ago on.
    #[inline]
    pub fn judge(&self, now_us: u64, reo_wnd_us: u64, seg: &Seg) -> Verdict {
        let last_delivered = (self.sent_us, self.end_seq);
        if !sent_after(last_delivered, (seg.sent_us, seg.end_seq())) {
            return Verdict::NotYet;
        }
        let deadline_us = u64::from(self.rtt_us) + reo_wnd_us;
        let waited_us = now_us.saturating_sub(seg.sent_us);
        if waited_us >= deadline_us {
            Verdict::Lost
        } else {
            Verdict::Waits(deadline_us - waited_us)
        }
    }

    /// A DSACK tells of a retransmission that was not needed.
    pub fn on_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// tcp_rack_update_reo_wnd(): an ACK delivered a segment, sent when `prior_delivered` were.
    pub fn update_reo_wnd(&mut self, prior_delivered: u32, delivered: u32) {
        // A DSACK counts a round trip after the last change.
        if unlikely(std::mem::replace(&mut self.dsack_seen, false))
            && prior_delivered.wrapping_sub(self.last_delivered) as i32 >= 0
        {
            self.reo_wnd_steps = self.reo_wnd_steps.saturating_add(1);
            self.last_delivered = delivered;
            self.reo_wnd_persist = REO_WND_PERSIST;
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_steps = 1;
        }
    }

    /// A recovery ended that was needed.
    pub fn on_recovery_end(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
    }

    /// DSACKs showed that a recovery was not needed: the window lasts longer.
    pub fn on_spurious_recovery(&mut self) {
        self.reo_wnd_persist = (self.reo_wnd_persist + 1).min(REO_WND_PERSIST);
    }

    /// Segments are believed outstanding again: the next ACK looks for losses anew.
    pub fn on_undo(&mut self) {
        self.advanced = true;
    }
}

/// tcp_skb_sent_after(), of (time in us, end): later, or at once and further on.
#[inline]
fn sent_after((t1_us, seq1): (u64, u64), (t2_us, seq2): (u64, u64)) -> bool {
    t1_us > t2_us || t1_us == t2_us && seq1 > seq2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten bytes sent at that microsecond.
    fn seg(seq: u64, sent_us: u64, flags: u8) -> Seg {
        let mut seg = Seg::new(seq, 10, 1, 10, flags);
        seg.sent_us = sent_us;
        seg
    }

    #[test]
    fn what_was_sent_before_the_last_delivered_waits_a_round_trip_and_the_window() {
        let mut rack = Rack::new();
        assert_eq!(rack.judge(9_999, 0, &seg(0, 0, 0)), Verdict::NotYet);
        rack.advance(300, 200, &seg(20, 100, 0));
        assert!(rack.take_advanced() && !rack.take_advanced());
        assert_eq!(rack.rtt_us(), 200);
        // Sent at once: the sequence numbers decide.
        assert_eq!(rack.judge(300, 0, &seg(20, 100, 0)), Verdict::NotYet);
        assert_eq!(rack.judge(300, 0, &seg(10, 100, 0)), Verdict::Lost);
        let earlier = seg(10, 90, 0);
        assert_eq!(rack.judge(300, 50, &earlier), Verdict::Waits(40));
        assert_eq!(rack.judge(339, 50, &earlier), Verdict::Waits(1));
        assert_eq!(rack.judge(340, 50, &earlier), Verdict::Lost);
    }

    #[test]
    fn a_retransmission_acked_faster_than_light_says_nothing() {
        let mut rack = Rack::new();
        rack.advance(300, 200, &seg(20, 200, EVER_RETRANS));
        assert!(!rack.take_advanced());
        rack.advance(300, 100, &seg(20, 200, EVER_RETRANS));
        assert!(rack.take_advanced());
    }

    #[test]
    fn dsacks_widen_the_window_once_per_round_trip_for_sixteen_recoveries() {
        let mut rack = Rack::new();
        assert_eq!(rack.reo_wnd_us(4_000, 10_000), 1_000);
        rack.on_dsack();
        rack.update_reo_wnd(10, 50);
        assert_eq!(rack.reo_wnd_us(4_000, 10_000), 2_000);
        assert_eq!(rack.reo_wnd_us(4_000, 1_500), 1_500);
        // Sent before the last change.
        rack.on_dsack();
        rack.update_reo_wnd(49, 60);
        assert_eq!(rack.reo_wnd_us(4_000, 10_000), 2_000);
        rack.on_recovery_end();
        rack.on_spurious_recovery();
        rack.on_spurious_recovery();
        for _ in 0..REO_WND_PERSIST {
            rack.update_reo_wnd(70, 80);
            assert_eq!(rack.reo_wnd_us(4_000, 10_000), 2_000);
            rack.on_recovery_end();
        }
        rack.update_reo_wnd(70, 80);
        assert_eq!(rack.reo_wnd_us(4_000, 10_000), 1_000);
    }
}
