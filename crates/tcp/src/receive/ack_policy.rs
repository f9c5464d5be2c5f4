//! When an ACK is sent: at once, after a delay, or for several segments beyond a hole together.

use knee_kit::odds::{likely, unlikely};
use knee_units::NEVER;

use crate::{Clock, HostConf};

/// TCP_MAX_QUICKACKS
pub const MAX_QUICKACKS: u32 = 16;
/// Duplicate ACKs per hole before they are compressed (TCP_FASTRETRANS_THRESH).
const DUP_ACKS: u8 = 3;
/// TCP_ATO_MIN = TCP_DELACK_MIN and TCP_DELACK_MAX
const ATO_MIN_US: u64 = 40_000;
const DELACK_MAX_US: u64 = 200_000;

#[derive(Clone, Debug)]
pub struct AckPolicy {
    ack_scheduled: bool,
    ack_now: bool,
    /// A write's end was seen, once or more than once, since the last ACK
    /// (ICSK_ACK_PUSHED, ICSK_ACK_PUSHED2).
    ack_pushed: bool,
    ack_pushed_twice: bool,
    pingpong: bool,
    /// The route says to acknowledge everything at once (RTAX_QUICKACK).
    quickack_route: bool,
    /// ACKs that still go at once.
    quick: u32,
    /// Delayed-ACK estimate, jiffies; 0: no data yet.
    ato: u64,
    ato_min_jiffies: u64,
    /// icsk_delack_max: below the other side's least timeout.
    ato_max_jiffies: u64,
    /// Jiffies of the last data received.
    lrcvtime: u32,
    delack_at_ns: u64,
    compressed_acks: u32,
    compressed_rcv_nxt: u64,
    dup_acks: u8,
    compress_at_ns: u64,
}

/// What to do about an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Nothing,
    Now,
    /// After a while, see [`AckPolicy::delay`].
    Later,
    /// With those of further segments, see [`AckPolicy::compress`].
    Compressed,
}

impl AckPolicy {
    pub fn new(conf: &HostConf) -> AckPolicy {
        let rto_min_jiffies = conf.us_to_jiffies(conf.settings.tcp_rto_min.as_us());
        AckPolicy {
            ack_scheduled: false,
            ack_now: false,
            ack_pushed: false,
            ack_pushed_twice: false,
            pingpong: false,
            quickack_route: conf.settings.quickack,
            quick: 0,
            ato: 0,
            ato_min_jiffies: conf.us_to_jiffies(ATO_MIN_US),
            ato_max_jiffies: conf
                .us_to_jiffies(DELACK_MAX_US)
                .min(rto_min_jiffies.saturating_sub(1)),
            lrcvtime: 0,
            delack_at_ns: NEVER,
            compressed_acks: 0,
            compressed_rcv_nxt: 0,
            dup_acks: 0,
            compress_at_ns: NEVER,
        }
    }

    /// The connection is established.
    pub fn start(&mut self, rcv_nxt: u64) {
        self.compressed_rcv_nxt = rcv_nxt;
    }

    #[inline]
    pub fn next_timer_ns(&self) -> u64 {
        self.delack_at_ns.min(self.compress_at_ns)
    }

    /// Is an ACK being delayed?
    pub fn is_delayed(&self) -> bool {
        self.delack_at_ns != NEVER
    }

    /// Are ACKs held back that report holes?
    #[inline]
    pub fn is_compressing(&self) -> bool {
        self.compressed_acks > 0
    }

    // ---- what happens ----------------------------------------------------

    /// Something arrived that is to be acknowledged some time.
    #[inline]
    pub fn schedule(&mut self) {
        self.ack_scheduled = true;
    }

    /// The next chance to acknowledge is to be taken, if `now`.
    #[inline]
    pub fn hurry(&mut self, now: bool) {
        self.ack_now |= now;
    }

    /// We sent data: a reply soon after receiving makes the connection
    /// interactive, and ACKs wait for replies.
    #[inline]
    pub fn on_data_sent(&mut self, jiffies: u32) {
        let since_jiffies = u64::from(jiffies.wrapping_sub(self.lrcvtime));
        if unlikely(self.ato > 0 && since_jiffies < self.ato) {
            self.pingpong = true;
        }
    }

    /// tcp_event_ack_sent(); one for less than has arrived leaves the rest due.
    #[inline]
    pub fn on_ack_sent(&mut self, of_all: bool) {
        self.compressed_acks = 0;
        self.compress_at_ns = NEVER;
        if !of_all {
            return;
        }
        if unlikely(self.quick > 0) {
            let used = u32::from(self.ack_scheduled);
            if used >= self.quick {
                self.quick = 0;
                // Leaving quick mode deflates the estimate.
                self.ato = self.ato_min_jiffies;
            } else {
                self.quick -= used;
            }
        }
        self.ack_scheduled = false;
        self.ack_now = false;
        self.ack_pushed = false;
        self.ack_pushed_twice = false;
        self.delack_at_ns = NEVER;
    }

    /// A segment of at least the largest size so far arrived, with PSH or without; or a smaller one.
    #[inline]
    pub fn on_size(&mut self, is_full: bool, psh: bool) {
        if likely(is_full) {
            self.ack_pushed |= psh;
        } else {
            self.ack_pushed_twice |= self.ack_pushed;
            self.ack_pushed = true;
        }
    }

    /// tcp_event_data_recv(): feeds the delayed-ACK estimate. `quickacks` is what the window allows at once.
    #[inline]
    pub fn on_data(
        &mut self,
        jiffies: u32,
        rto_jiffies: impl Fn() -> u64,
        quickacks: impl FnOnce() -> u32,
    ) {
        if unlikely(self.ato == 0) {
            self.add_quickacks(quickacks().min(MAX_QUICKACKS));
            self.ato = self.ato_min_jiffies;
        } else {
            let gap = u64::from(jiffies.wrapping_sub(self.lrcvtime));
            if likely(gap <= self.ato_min_jiffies / 2) {
                self.ato = (self.ato >> 1) + self.ato_min_jiffies / 2;
            } else if gap < self.ato {
                self.ato = ((self.ato >> 1) + gap).min(rto_jiffies());
            } else if gap > rto_jiffies() {
                // The sender restarted: let it grow its window quickly.
                self.add_quickacks(quickacks().min(MAX_QUICKACKS));
            }
        }
        self.lrcvtime = jiffies;
    }

    /// tcp_incr_quickack()
    #[cold]
    fn add_quickacks(&mut self, acks: u32) {
        self.quick = self.quick.max(acks);
    }

    /// tcp_enter_quickack_mode()
    pub fn enter_quickack(&mut self, acks: u32) {
        self.add_quickacks(acks);
        self.pingpong = false;
        self.ato = self.ato_min_jiffies;
    }

    /// The buffer is filling up: no ACK goes at once for its sake.
    #[inline]
    pub fn end_quickack(&mut self) {
        self.quick = 0;
    }

    /// The window opened: the sender is told at once.
    #[inline]
    pub fn on_window_opened(&mut self) {
        self.quick |= 1;
    }

    // ---- what to do ------------------------------------------------------

    /// Is there anything that was not acknowledged?
    #[inline]
    pub fn is_scheduled(&self) -> bool {
        self.ack_scheduled
    }

    /// __tcp_ack_snd_check(), where [`Self::is_scheduled`]. `full_frame`: more than a segment was not acknowledged.
    #[inline]
    pub fn decide(&mut self, full_frame: bool, in_order: bool, rcv_nxt: u64, most: u32) -> Due {
        if full_frame || self.in_quickack_mode() || self.ack_now {
            return Due::Now;
        }
        if in_order {
            return Due::Later;
        }
        if self.compressed_acks >= most {
            return Due::Now;
        }
        if self.compressed_rcv_nxt != rcv_nxt {
            self.compressed_rcv_nxt = rcv_nxt;
            self.dup_acks = 0;
        }
        if self.dup_acks < DUP_ACKS {
            self.dup_acks += 1;
            return Due::Now;
        }
        self.compressed_acks += 1;
        match self.compress_at_ns {
            NEVER => Due::Compressed,
            _ => Due::Nothing,
        }
    }

    fn in_quickack_mode(&self) -> bool {
        self.quickack_route || self.quick > 0 && !self.pingpong
    }

    /// ACKs that report holes wait until then.
    pub fn compress(&mut self, until_ns: u64) {
        self.compress_at_ns = until_ns;
    }

    /// __tcp_cleanup_rbuf(): the application has read all there is; is there an ACK that the sender may be waiting for?
    #[inline]
    pub fn is_due_when_read(&self, full_frame: bool) -> bool {
        // Without a branch: it goes either way.
        let due = full_frame | self.ack_pushed_twice | (self.ack_pushed & !self.pingpong);
        self.ack_scheduled & due
    }

    /// tcp_send_delayed_ack(): arms the timer; true: it would fire soon anyway, so the ACK goes now.
    pub fn delay(&mut self, conf: &HostConf, now: &Clock, srtt_us: u32) -> bool {
        let mut ato = self.ato;
        if unlikely(ato > self.ato_min_jiffies && srtt_us > 0) {
            let srtt_jiffies = conf.us_to_jiffies(u64::from(srtt_us));
            ato = ato.min(srtt_jiffies.max(self.ato_min_jiffies));
        }
        ato = ato.min(self.ato_max_jiffies).max(1);
        let at_ns = conf.timer_at(now.ticks, ato);
        if self.delack_at_ns <= now.now_ns + (ato >> 2) * conf.tick_ns {
            return true;
        }
        self.delack_at_ns = self.delack_at_ns.min(at_ns);
        false
    }

    /// tcp_delack_timer_handler(): is a delayed ACK due now? The delay was too short to meet more data, or no reply came.
    pub fn take_delayed(&mut self, now_ns: u64, rto_jiffies: u64) -> bool {
        if self.delack_at_ns > now_ns {
            return false;
        }
        self.delack_at_ns = NEVER;
        if !self.ack_scheduled {
            return false;
        }
        if self.pingpong {
            self.pingpong = false;
            self.ato = self.ato_min_jiffies;
        } else {
            self.ato = (self.ato << 1).min(rto_jiffies);
        }
        true
    }

    /// Is the ACK due that stands for several?
    pub fn take_compressed(&mut self, now_ns: u64) -> bool {
        if self.compress_at_ns > now_ns {
            return false;
        }
        self.compress_at_ns = NEVER;
        self.compressed_acks > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> (HostConf, AckPolicy) {
        let conf = HostConf::untuned();
        let acks = AckPolicy::new(&conf);
        (conf, acks)
    }

    #[test]
    fn the_first_segments_are_acked_at_once_and_later_ones_every_second() {
        let (_, mut acks) = policy();
        for n in 0..6 {
            acks.schedule();
            acks.on_data(n, || 200, || 5);
            let due = acks.decide(false, true, 1, 44);
            assert_eq!(due, if n < 5 { Due::Now } else { Due::Later });
            acks.on_ack_sent(true);
        }
        acks.schedule();
        assert_eq!(acks.decide(true, true, 1, 44), Due::Now);
        acks.on_ack_sent(true);
        assert!(!acks.is_scheduled());
    }

    #[test]
    fn three_duplicate_acks_go_at_once_and_those_after_them_together() {
        let (_, mut acks) = policy();
        acks.start(1);
        let mut decide = |rcv_nxt| {
            acks.schedule();
            let due = acks.decide(false, false, rcv_nxt, 2);
            match due {
                Due::Now => acks.on_ack_sent(true),
                Due::Compressed => acks.compress(9),
                _ => {}
            }
            due
        };
        let due: Vec<_> = (0..6).map(|_| decide(1)).collect();
        let (now, compressed) = (Due::Now, Due::Compressed);
        assert_eq!(due, [now, now, now, compressed, Due::Nothing, now]);
        assert_eq!(decide(5), now, "a new hole");
        assert!(!acks.take_compressed(9));
    }

    #[test]
    fn a_delayed_ack_comes_with_its_timer_which_then_waits_longer() {
        let (conf, mut acks) = policy();
        acks.schedule();
        acks.on_data(0, || 200, || 0);
        let now = |ns: u64| Clock::at(ns, &conf);
        assert!(!acks.delay(&conf, &now(0), 0) && acks.is_delayed());
        let at_ns = acks.next_timer_ns();
        assert!((40_000_000..=48_000_000).contains(&at_ns), "{at_ns}");
        assert!(acks.delay(&conf, &now(at_ns - 1), 0), "about to expire");
        assert!(!acks.take_delayed(at_ns - 1, 200));
        assert!(acks.take_delayed(at_ns, 200));
        assert_eq!(acks.ato, 80);
    }

    #[test]
    fn a_conversation_waits_for_replies_until_one_does_not_come() {
        let (conf, mut acks) = policy();
        acks.schedule();
        acks.on_data(100, || 200, || 5);
        acks.on_data_sent(110);
        assert_eq!(acks.decide(false, true, 1, 44), Due::Later);
        acks.on_size(false, false);
        assert!(!acks.is_due_when_read(false));
        acks.on_size(false, false);
        assert!(acks.is_due_when_read(false), "a second write's end");
        acks.delay(&conf, &Clock::default(), 0);
        assert!(acks.take_delayed(u64::MAX - 1, 200));
        assert_eq!(acks.decide(false, true, 1, 44), Due::Now);
    }
}
