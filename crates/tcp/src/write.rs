//! What the application does: write(), push and close().

use knee_cc::{CcIn, Event, Op};

use super::output::{Push, gso_max_bytes};
use super::peer_window::PeerWindow;
use super::segment::TIMESTAMPS_BYTES;
use super::{Cx, Endpoint, State};

/// tcp_xmit_size_goal(): how much a packet of the write queue takes.
fn size_goal_bytes(cc: &CcIn, peer_window: &PeerWindow) -> u64 {
    let gso = u64::from(gso_max_bytes(cc));
    // Half the largest window seen, so that a small window is not one packet.
    let goal = match peer_window.max_bytes() {
        0 => gso,
        window => gso.min((window >> 1).max(68)),
    };
    let mss = u64::from(cc.mss_bytes);
    (goal / mss).max(1) * mss
}

impl Endpoint {
    /// Would a write() be taken now? A refusal is remembered: see [`is_blocked`](Endpoint::is_blocked).
    #[inline]
    pub fn is_writable(&mut self) -> bool {
        if self.state != State::Established || self.buffer.fin_queued() || self.buffer.is_full() {
            return false;
        }
        let goal_bytes = || size_goal_bytes(&self.cc, &self.peer_window);
        let place = (self.snd_una, self.snd_nxt);
        self.buffer.takes_more(place, goal_bytes, self.board.skbs())
    }

    /// Did the last write() stop for want of space?
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.buffer.is_full()
    }

    /// tcp_sendmsg(): takes what fills one skb; returns the bytes taken. A full
    /// skb goes out at once when nothing is queued before it.
    pub fn write(&mut self, cx: &mut Cx, bytes: u64) -> u64 {
        if !self.buffer.write_waits() {
            // Once per write(), not when one that waited for space goes on. A
            // nonblocking writer calls again; by then everything may have been sent.
            self.check_app_limited();
        }
        self.restart_after_idle(cx);
        self.time.set_busy(cx.now_ns(), true);
        let goal_bytes = || size_goal_bytes(&self.cc, &self.peer_window);
        let (taken, is_full) = self.buffer.write(bytes, self.snd_nxt, goal_bytes);
        if is_full {
            if self.buffer.wants_push(self.peer_window.max_bytes()) {
                self.buffer.mark_push();
                self.write_xmit(cx, Push::Now);
            } else if self.buffer.head_is_tail() {
                self.write_xmit(cx, Push::One);
            }
        }
        taken
    }

    /// tcp_rate_check_app_limited(): does the application leave the pipe unfilled?
    #[inline]
    fn check_app_limited(&mut self) {
        let flight = self.board.flight();
        let unsent = self.buffer.write_seq().saturating_sub(self.snd_nxt);
        if unsent < u64::from(self.cc.mss_bytes)
            && self.small_queue.is_empty()
            && self.packets_in_flight() < self.cc.snd_cwnd
            && flight.lost_out <= flight.retrans_out
        {
            let all_delivered = self
                .board
                .delivered()
                .wrapping_add(self.packets_in_flight());
            self.rate.set_app_limited(all_delivered.max(1));
        }
    }

    /// tcp_push() at the end of a write, or when a write has to wait.
    pub fn push(&mut self, cx: &mut Cx) {
        if self.state != State::Established {
            return;
        }
        self.buffer.mark_push();
        self.push_pending(cx);
    }

    /// Was [`close`](Endpoint::close) called?
    pub fn is_closing(&self) -> bool {
        self.buffer.fin_queued()
    }

    /// close(): a FIN follows what was written. False when closed before.
    pub fn close(&mut self) -> bool {
        self.buffer.close()
    }

    /// tcp_push_pending_frames(); returns segments sent.
    pub(super) fn push_pending(&mut self, cx: &mut Cx) -> u32 {
        let push = if self.buffer.is_full() {
            Push::Now
        } else {
            Push::Normal
        };
        let sent = self.write_xmit(cx, push);
        self.rearm_window_probe(cx);
        sent
    }

    /// tcp_check_space(): room again, and is it time for a larger buffer? After
    /// each skb as well, when the window is not full yet.
    #[inline]
    pub(super) fn check_space(&mut self, cx: &Cx) {
        if self.buffer.is_full() {
            self.make_space(cx);
        }
    }

    #[inline(always)]
    fn make_space(&mut self, cx: &Cx) {
        if self.packets_in_flight() < self.cc.snd_cwnd {
            // At its largest it grows no more. An algorithm that has a say is asked all the same.
            let most_bytes = cx.host.settings.tcp_wmem_bytes[2];
            if self.buffer.limit_bytes() < most_bytes || self.alg.has(Op::SndbufExpand) {
                self.expand_sndbuf(cx);
            }
            self.usage.refresh(cx.jiffies());
        }
        self.buffer.check_space(self.snd_una, self.board.skbs());
    }

    /// tcp_sndbuf_expand()
    #[inline(never)]
    pub(super) fn expand_sndbuf(&mut self, cx: &Cx) {
        let factor = match self.alg.has(Op::SndbufExpand) {
            true => self.call_cc(cx, Op::SndbufExpand),
            false => 2,
        };
        let segs = self.cc.snd_cwnd.max(10).max(self.board.reordering() + 1);
        let wanted = u64::from(factor) * u64::from(segs);
        let mss_bytes = u64::from(cx.host.mss_bytes + TIMESTAMPS_BYTES);
        self.buffer
            .expand(wanted, mss_bytes, cx.host.settings.tcp_wmem_bytes[2]);
    }

    /// tcp_slow_start_after_idle_check() and tcp_cwnd_restart()
    fn restart_after_idle(&mut self, cx: &Cx) {
        if !cx.host.settings.tcp_slow_start_after_idle
            || self.board.packets_out() > 0
            || self.has_cong_control
        {
            return;
        }
        let rto = self.rto_jiffies(cx) as i64;
        let mut idle = i64::from(cx.jiffies().wrapping_sub(self.cc.lsndtime) as i32);
        if idle <= rto || self.cc.lsndtime == 0 {
            return;
        }
        self.cwnd_event(cx, Event::CwndRestart);
        self.cc.snd_ssthresh = self.current_ssthresh();
        let floor = cx.host.settings.initcwnd.min(self.cc.snd_cwnd);
        let mut snd_cwnd = self.cc.snd_cwnd;
        idle -= rto;
        while idle > 0 && snd_cwnd > floor {
            snd_cwnd >>= 1;
            idle -= rto;
        }
        self.set_cwnd(cx, snd_cwnd.max(floor));
        self.usage.restart(cx.jiffies());
    }
}
