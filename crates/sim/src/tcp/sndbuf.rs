//! The application's writes and the send buffer that takes them.

use knee_cc::{Event, Op};

use super::output::Push;
use super::{Cx, Endpoint, State};

/// What an skb of the write queue takes besides payload: sk_buff (256) and a
/// head of MAX_TCP_HEADER (320) + skb_shared_info (320), as counted in truesize.
pub(super) const SKB_OVERHEAD_BYTES: u64 = 896;
/// tcp_sndbuf_expand(): what one MSS of 1460 is taken to need, a head rounded
/// up to a power of two plus the sk_buff.
const SNDBUF_PER_SEGMENT_BYTES: u64 = 4096 + 256;
/// sk_setup_caps() keeps room for headers: MAX_TCP_HEADER + 1.
const GSO_HEADROOM_BYTES: u32 = 321;

impl Endpoint {
    pub(super) fn size_goal_bytes(&self) -> u64 {
        let gso = u64::from(self.gso_max_bytes());
        // Half the largest window seen, so that a small window is not one packet.
        let goal = match self.max_window {
            0 => gso,
            window => gso.min((window >> 1).max(68)),
        };
        let mss = u64::from(self.cc.mss_bytes);
        (goal / mss).max(1) * mss
    }

    pub(super) fn gso_max_bytes(&self) -> u32 {
        self.cc.gso_max_bytes.saturating_sub(GSO_HEADROOM_BYTES)
    }

    /// sk_wmem_queued: payload unacked and unsent, and what its skbs cost.
    fn wmem_queued_bytes(&self) -> u64 {
        let payload = self.write_seq.saturating_sub(self.snd_una);
        payload + (self.skbs_out + self.write_queue.len()) * SKB_OVERHEAD_BYTES
    }

    /// What still fits into the last skb that was not sent.
    fn tail_room_bytes(&self) -> u64 {
        let tail_bytes = self.write_queue.tail_bytes(self.snd_nxt);
        tail_bytes.map_or(0, |bytes| self.size_goal_bytes().saturating_sub(bytes))
    }

    /// Would a write() be taken now? A refusal is remembered: SOCK_NOSPACE.
    ///
    /// tcp_sendmsg() asks for memory only when it needs a new skb; what fits
    /// into an unsent one is added to it. A sender whose TSO packets are smaller
    /// than its skbs therefore goes beyond its buffer.
    pub fn is_writable(&mut self) -> bool {
        if self.state != State::Established || self.fin_queued || self.nospace {
            return false;
        }
        self.nospace = self.tail_room_bytes() == 0 && self.wmem_queued_bytes() >= self.sndbuf_bytes;
        !self.nospace
    }

    /// Did the last write() stop for want of space?
    pub fn is_blocked(&self) -> bool {
        self.nospace
    }

    /// tcp_sendmsg(): takes what fills one skb; returns the bytes taken. A full
    /// skb goes out at once when nothing is queued before it.
    pub fn write(&mut self, cx: &mut Cx, bytes: u64) -> u64 {
        if !(self.blocking && self.in_sendmsg) {
            // Once per call, not when one that waited for space goes on. A
            // nonblocking writer calls again, and everything before may be sent.
            self.rate_check_app_limited();
        }
        self.restart_after_idle(cx);
        self.set_busy(cx.now_ns, true);
        let mut room = self.tail_room_bytes();
        let new_skb = room == 0;
        if new_skb {
            room = self.size_goal_bytes();
        }
        let taken = bytes.min(room);
        let goes_on = std::mem::replace(&mut self.in_sendmsg, taken < bytes);
        self.write_seq += taken;
        if new_skb {
            self.write_queue.add(self.write_seq);
        } else {
            self.write_queue.extend(self.write_seq, !goes_on);
        }
        if taken == room {
            if self.write_seq > self.pushed_seq + (self.max_window >> 1) {
                self.mark_push();
                self.write_xmit(cx, Push::Now);
            } else if self.write_queue.head_is_tail() {
                self.write_xmit(cx, Push::One);
            }
        }
        taken
    }

    /// tcp_push() at the end of a write, or when a write has to wait.
    pub fn push(&mut self, cx: &mut Cx) {
        if self.state != State::Established {
            return;
        }
        self.mark_push();
        self.push_pending(cx);
    }

    fn mark_push(&mut self) {
        self.write_queue.mark_push();
        self.pushed_seq = self.write_seq;
    }

    /// tcp_push_pending_frames()
    pub(super) fn push_pending(&mut self, cx: &mut Cx) {
        let push = if self.nospace {
            Push::Now
        } else {
            Push::Normal
        };
        self.write_xmit(cx, push);
        self.rearm_window_probe(cx);
    }

    /// tcp_check_space(): room again, and is it time for a larger buffer? After
    /// each skb as well, when the window is not full yet.
    pub(super) fn check_space(&mut self, cx: &Cx) {
        if !self.nospace {
            return;
        }
        if self.packets_in_flight() < self.cc.snd_cwnd {
            self.expand_sndbuf(cx);
            self.snd_cwnd_stamp = cx.jiffies();
        }
        // sk_stream_write_space(): a third must be free before the writer wakes.
        let queued = self.wmem_queued_bytes();
        if queued < self.sndbuf_bytes && self.sndbuf_bytes - queued >= queued / 2 {
            self.nospace = false;
        }
    }

    /// tcp_sndbuf_expand()
    pub(super) fn expand_sndbuf(&mut self, cx: &Cx) {
        let factor = match self.alg.has(Op::SndbufExpand) {
            true => self.call_cc(cx, Op::SndbufExpand),
            false => 2,
        };
        let segs = self.cc.snd_cwnd.max(10).max(self.cc.reordering + 1);
        let wanted = u64::from(factor) * u64::from(segs) * SNDBUF_PER_SEGMENT_BYTES;
        if wanted > self.sndbuf_bytes {
            self.sndbuf_bytes = wanted
                .min(cx.host.host.tcp_wmem_bytes[2])
                .max(self.sndbuf_bytes);
        }
    }

    /// tcp_slow_start_after_idle_check() and tcp_cwnd_restart()
    fn restart_after_idle(&mut self, cx: &Cx) {
        if !cx.host.host.tcp_slow_start_after_idle
            || self.cc.packets_out > 0
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
        let floor = cx.host.host.initcwnd.min(self.cc.snd_cwnd);
        let mut snd_cwnd = self.cc.snd_cwnd;
        idle -= rto;
        while idle > 0 && snd_cwnd > floor {
            snd_cwnd >>= 1;
            idle -= rto;
        }
        self.set_cwnd(cx, snd_cwnd.max(floor));
        self.snd_cwnd_stamp = cx.jiffies();
        self.snd_cwnd_used = 0;
    }
}
