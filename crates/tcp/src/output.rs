//! What is sent when: tcp_write_xmit() with TSO autosizing and deferral,
//! Nagle, pacing, TSQ and cwnd validation.

use knee_cc::{CcIn, Event, Op, PacingStatus};
use knee_kit::odds::{likely, unlikely};
use knee_units::NEVER;

use super::rtx::{FIN_SEG, PSH_SEG, SKB_END, Seg};
use super::sndbuf::SKB_OVERHEAD_BYTES;
use super::xmit_timer::XmitTimerKind;
use super::{CaState, Cx, Endpoint, Limit, State};
use crate::segment::{ACK, SYN, Segment};

/// sk_pacing_shift, tcp_min_tso_segs, tcp_tso_win_divisor
const PACING_SHIFT: u32 = 10;
const MIN_TSO_SEGS: u32 = 2;
const TSO_WIN_DIVISOR: u64 = 3;
/// sk_setup_caps() keeps room for headers: MAX_TCP_HEADER + 1.
const GSO_HEADROOM_BYTES: u32 = 321;

/// Largest TSO packet.
pub fn gso_max_bytes(cc: &CcIn) -> u32 {
    cc.gso_max_bytes.saturating_sub(GSO_HEADROOM_BYTES)
}

/// How eagerly write_xmit() sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    Normal,
    /// A small rest goes too (TCP_NAGLE_PUSH).
    Now,
    /// One packet, without waiting to make it larger: tcp_push_one().
    One,
    /// A loss probe: one segment, cwnd or not.
    Probe,
}

impl Endpoint {
    // ---- opening and closing ---------------------------------------------

    /// connect()
    pub fn open(&mut self, cx: &mut Cx) {
        self.state = State::SynSent;
        cx.events.push("open");
        self.send_syn(cx);
    }

    /// A SYN arrived at a listening end.
    pub(super) fn accept(&mut self, cx: &mut Cx, segment: &Segment) {
        self.state = State::SynReceived;
        self.rx.on_syn(segment);
        self.rx.note_timestamp(segment);
        self.ecn.on_syn(cx.host.settings.tcp_ecn, segment);
        self.send_syn(cx);
    }

    /// SYN, or SYN-ACK at the end that was asked; armed to be repeated.
    pub(super) fn send_syn(&mut self, cx: &mut Cx) {
        self.snd_nxt = 1;
        self.handshake.on_sent(cx.now_ns());
        self.time.set_busy(cx.now_ns(), true);
        let ack = if self.state == State::SynReceived {
            ACK
        } else {
            0
        };
        self.emit(cx, 0, self.rx.rcv_nxt(), SYN | ack);
        let jiffies = self.rto_jiffies(cx);
        self.arm_xmit_timer(cx, XmitTimerKind::Retransmit, jiffies);
    }

    // ---- sending new data ------------------------------------------------

    /// Data, or a FIN, that was never sent?
    pub(super) fn has_unsent(&self) -> bool {
        self.buffer.has_unsent(self.snd_nxt)
    }

    /// tcp_snd_wnd_test() of the next segment.
    pub(super) fn window_allows_next(&self) -> bool {
        let mss = u64::from(self.cc.mss_bytes);
        let allows = |bytes| self.peer_window.allows(self.snd_una, self.snd_nxt + bytes);
        likely(allows(mss)) || allows(self.notsent_bytes().min(mss))
    }

    /// What TSQ and the pacing timer call: first what was lost, then new data. Returns how many segments of that.
    #[inline(always)]
    pub(super) fn send_when_allowed(&mut self, cx: &mut Cx) -> u32 {
        if self.state != State::Established {
            return 0;
        }
        let flight = self.board.flight();
        let has_lost = unlikely(flight.lost_out > flight.retrans_out);
        if has_lost && self.cc.snd_cwnd > self.packets_in_flight() {
            self.retransmit_lost(cx);
        }
        self.push_pending(cx)
    }

    /// tcp_write_xmit(); returns segments sent.
    pub(super) fn write_xmit(&mut self, cx: &mut Cx, push: Push) -> u32 {
        if !self.has_unsent() {
            self.note_limit(cx, None);
            return 0;
        }
        let mss = u64::from(self.cc.mss_bytes);
        let mut sent = 0;
        let mut cwnd_limited = false;
        let mut limit = None;
        while self.has_unsent() {
            if self.pacing_blocks(cx) {
                limit = Some(Limit::Pacing);
                break;
            }
            let (cwnd, in_flight) = (self.cc.snd_cwnd, self.packets_in_flight());
            let quota = match in_flight < cwnd {
                true => (cwnd - in_flight).min((cwnd >> 1).max(1)),
                false if push == Push::Probe => 1,
                false => {
                    limit = Some(Limit::Cwnd);
                    break;
                }
            };
            if !self.window_allows_next() {
                limit = Some(Limit::Rwnd);
                break;
            }
            let max_segs = self.tso_segs(cx);
            let segs = quota.min(max_segs);
            let quota_bytes = u64::from(segs) * mss;
            if cx.host.settings.grow_skb {
                self.buffer.queue().grow_head(self.snd_nxt, quota_bytes);
            }
            let skb_len = self.buffer.queue().head_bytes(self.snd_nxt);
            if skb_len <= mss {
                let last = self.buffer.head_is_tail();
                if last && push == Push::Normal && self.nagle_holds(skb_len) {
                    break;
                }
            } else if matches!(push, Push::Normal | Push::Now)
                && let Some(by) = self.defer_tso(cx, skb_len, max_segs)
            {
                cwnd_limited |= by == Limit::Cwnd;
                limit = Some(by);
                break;
            }
            let segs = if push == Push::Probe { 1 } else { segs };
            let len = self.split_point(skb_len, segs);
            if self.tsq_blocks(cx, segs, 1) {
                limit = Some(Limit::Pacing);
                break;
            }
            // Mostly it is all that may go.
            let sends = match likely(len == u64::from(segs) * mss) {
                true => segs,
                false => self.segs_of(len),
            };
            sent += self.transmit_new(cx, (len, sends), push != Push::Probe);
            if matches!(push, Push::One | Push::Probe) {
                break;
            }
        }
        cwnd_limited |= self.packets_in_flight() >= self.cc.snd_cwnd;
        if sent > 0 || cwnd_limited {
            self.validate_cwnd(cx, cwnd_limited);
        }
        if sent > 0 {
            if unlikely(self.recovery.in_cwnd_reduction()) {
                self.prr.on_sent(sent);
            }
            if likely(push != Push::Probe) {
                self.schedule_loss_probe(cx, false);
            }
        }
        self.note_limit(cx, limit);
        sent
    }

    /// Books the time since the last decision and says what holds from now.
    pub(super) fn note_limit(&mut self, cx: &Cx, limit: Option<Limit>) {
        let limit = limit.unwrap_or_else(|| match () {
            _ if unlikely(self.board.has_lost()) => match self.pacer.timer_ns() {
                NEVER => Limit::Cwnd,
                _ => Limit::Pacing,
            },
            _ if self.buffer.is_full() => Limit::Sndbuf,
            _ if unlikely(self.buffer.fin_queued())
                && !self.has_unsent()
                && self.board.is_empty() =>
            {
                Limit::None
            }
            _ => Limit::App,
        });
        self.time.set_limit(cx.now_ns(), limit);
    }

    /// tcp_tso_autosize(): a millisecond's worth, more on short paths.
    pub(super) fn tso_segs(&mut self, cx: &Cx) -> u32 {
        let mss = self.cc.mss_bytes;
        let gso = gso_max_bytes(&self.cc);
        if gso < mss {
            return 1;
        }
        let min_segs = match self.alg.has(Op::MinTsoSegs) {
            true => self.call_cc(cx, Op::MinTsoSegs),
            false => MIN_TSO_SEGS,
        };
        if unlikely(!cx.host.settings.tso_autosizing) {
            return gso / mss;
        }
        let mut bytes = self.cc.pacing_rate >> PACING_SHIFT;
        let shift = self.cc.min_rtt_us >> cx.host.settings.tcp_tso_rtt_log;
        if shift < u32::BITS {
            bytes += u64::from(gso >> shift);
        }
        (bytes.min(u64::from(gso)) as u32 / mss).max(min_segs)
    }

    /// tcp_nagle_check() with Minshall's rule: one small segment at a time.
    fn nagle_holds(&self, len: u64) -> bool {
        len < u64::from(self.cc.mss_bytes)
            && !self.buffer.fin_queued()
            && self.nagle.holds(self.board.packets_out(), self.snd_una)
    }

    /// tcp_mss_split_point(): how much of the skb goes now.
    fn split_point(&self, skb_len: u64, segs: u32) -> u64 {
        let mss = u64::from(self.cc.mss_bytes);
        let window = self.peer_window.room_bytes(self.snd_una, self.snd_nxt);
        let max_len = mss * u64::from(segs);
        if max_len <= window && !self.buffer.head_is_tail() {
            return max_len.min(skb_len);
        }
        let needed = skb_len.min(window);
        if max_len <= needed {
            return max_len;
        }
        let partial = needed % mss;
        if partial != 0 && needed > mss && self.nagle_holds(partial) {
            needed - partial
        } else {
            needed
        }
    }

    /// tcp_tso_should_defer(): wait for the next ACK to send a larger packet?
    fn defer_tso(&self, cx: &Cx, skb_len: u64, max_segs: u32) -> Option<Limit> {
        if self.recovery.state() >= CaState::Recovery {
            return None;
        }
        if cx.now_ns().saturating_sub(self.pacer.next_ns()) > 1_000_000 {
            // The last transmission is long ago: no train to join.
            return None;
        }
        let mss = u64::from(self.cc.mss_bytes);
        let send_win = self.peer_window.room_bytes(self.snd_una, self.snd_nxt);
        let cong_win = u64::from(self.cc.snd_cwnd - self.packets_in_flight()) * mss;
        let limit = send_win.min(cong_win);
        if limit >= u64::from(max_segs) * mss {
            return None;
        }
        if !self.buffer.head_is_tail() && limit >= skb_len {
            return None;
        }
        let chunk = self
            .peer_window
            .bytes()
            .min(u64::from(self.cc.snd_cwnd) * mss)
            / TSO_WIN_DIVISOR;
        if limit >= chunk {
            return None;
        }
        let head = self.board.head()?;
        let srtt_ns = u64::from(self.srtt_us()) * 1_000;
        let ack_in_ns = (head.sent_ns + srtt_ns).saturating_sub(cx.now_ns());
        if ack_in_ns > (srtt_ns / 2).min(1_000_000) {
            return None;
        }
        if cong_win < send_win {
            if cong_win <= skb_len {
                return Some(Limit::Cwnd);
            }
        } else if send_win <= skb_len {
            return Some(Limit::Rwnd);
        }
        if self.buffer.fin_queued() {
            None
        } else {
            Some(Limit::App)
        }
    }

    /// tcp_small_queue_check(): enough of this connection waits in qdisc and NIC.
    pub(super) fn tsq_blocks(&mut self, cx: &Cx, segs: u32, factor: u64) -> bool {
        if likely(self.small_queue.is_empty()) {
            return false;
        }
        let truesize = u64::from(segs) * u64::from(self.cc.mss_bytes) + SKB_OVERHEAD_BYTES;
        let mut limit = (2 * truesize).max(self.cc.pacing_rate >> PACING_SHIFT);
        let is_paced = self.cc.pacing_status != PacingStatus::None as u32;
        if !is_paced || cx.host.settings.tsq_limits_paced {
            limit = limit.min(cx.host.settings.tcp_limit_output_bytes);
        }
        self.small_queue.blocks(limit * factor, self.board.skbs())
    }

    /// `bytes` of what counts for TSQ have left: the qdisc, or the NIC where it reports that.
    #[inline]
    pub fn on_sent(&mut self, cx: &mut Cx, bytes: u32) {
        if self.small_queue.release(bytes) {
            self.send_when_allowed(cx);
        }
    }

    /// tcp_pacing_check()
    pub(super) fn pacing_blocks(&mut self, cx: &Cx) -> bool {
        self.cc.pacing_status == PacingStatus::Needed as u32 && self.pacer.blocks(cx.now_ns())
    }

    /// tcp_cwnd_validate()
    fn validate_cwnd(&mut self, cx: &Cx, limited: bool) {
        let idle = self.usage.on_sent(
            limited,
            (self.snd_una, self.snd_nxt),
            self.board.packets_out(),
            cx.jiffies(),
            &mut self.cc,
        );
        if let Some(idle) = idle
            && cx.host.settings.tcp_slow_start_after_idle
            && idle >= self.rto_jiffies(cx)
            && !self.has_cong_control
        {
            self.decay_cwnd(cx);
        }
    }

    /// tcp_cwnd_application_limited(): RFC 2861
    #[inline(never)]
    fn decay_cwnd(&mut self, cx: &Cx) {
        if self.recovery.state() != CaState::Open || self.buffer.is_full() {
            self.usage.refresh(cx.jiffies());
            return;
        }
        let used = self.usage.used().max(cx.host.settings.initcwnd);
        if used < self.cc.snd_cwnd {
            self.cc.snd_ssthresh = self.current_ssthresh();
            self.set_cwnd(cx, (self.cc.snd_cwnd + used) >> 1);
        }
        self.usage.restart(cx.jiffies());
    }

    /// How many segments so many bytes are; a FIN alone is one.
    #[inline]
    pub(super) fn segs_of(&self, len: u64) -> u32 {
        (len as u32).div_ceil(self.cc.mss_bytes).max(1)
    }

    /// Sends `len` bytes from snd_nxt as one skb of `segs` segments, and the FIN if it is due. `probes`: a loss probe is
    /// scheduled for it, if one may be.
    #[inline(always)]
    pub(super) fn transmit_new(
        &mut self,
        cx: &mut Cx,
        (len, segs): (u64, u32),
        probes: bool,
    ) -> u32 {
        let mss = u64::from(self.cc.mss_bytes);
        let end = self.snd_nxt + len;
        let fin = self.buffer.ends_at(end);
        // A packet of several segments asks to be handed up at once, so that
        // GRO does not hold its end back.
        let push_flag = self.buffer.queue().sent(end) || segs > 1;
        let departure_ns = self.pacer.departure(cx.now_ns());
        let stamp_ns = cx.stamp_ns(departure_ns);
        self.on_data_sent(cx);
        let prior_packets = self.board.packets_out();
        let last = SKB_END | if_set(push_flag, PSH_SEG) | if_set(fin, FIN_SEG);
        self.emit_data(cx, self.snd_nxt, (len, segs), last, departure_ns);
        let in_flight = self.packets_in_flight() + segs;
        let is_first = prior_packets == 0;
        let tx = self
            .rate
            .on_send(stamp_ns / 1_000, self.totals(), in_flight, is_first);
        let app_limited = self.rate.app_limited() != 0;
        let mut skb = Seg::new(self.snd_nxt, len as u32, segs, self.cc.mss_bytes, last);
        skb.record_sent(stamp_ns, tx, app_limited);
        self.board.push(skb);
        self.after_departure(len);
        self.snd_nxt = end + u64::from(fin);
        if unlikely(len > 0 && len != u64::from(segs) * mss) {
            self.nagle.on_small_sent(end);
        }
        let rearms = prior_packets == 0 || self.xmit_timer.kind() == XmitTimerKind::LossProbe;
        if unlikely(rearms && !(probes && self.may_probe())) {
            self.rearm_rto(cx);
        }
        self.check_space(cx);
        segs
    }

    /// tcp_event_data_sent()
    pub(super) fn on_data_sent(&mut self, cx: &mut Cx) {
        if unlikely(self.packets_in_flight() == 0) {
            self.cwnd_event(cx, Event::TxStart);
        }
        self.cc.lsndtime = cx.jiffies();
        self.rx.on_data_sent(cx.jiffies());
        self.integrate(cx.now_ns());
    }

    /// A packet was handed down: when the next may leave.
    pub(super) fn after_departure(&mut self, payload_bytes: u64) {
        if self.cc.pacing_status != PacingStatus::None as u32 {
            let (rate, segs) = (self.cc.pacing_rate, self.counters.data_segs_out);
            self.pacer.on_sent(payload_bytes, rate, segs);
        }
    }

    /// tcp_update_pacing_rate(): the default, for algorithms without their own.
    pub(super) fn update_pacing_rate(&mut self, cx: &Cx) {
        if self.has_cong_control && self.agent.is_none() {
            return;
        }
        let cc = &mut self.cc;
        let factor_pct = if cc.snd_cwnd < cc.snd_ssthresh / 2 {
            cx.host.settings.tcp_pacing_ss_ratio
        } else {
            cx.host.settings.tcp_pacing_ca_ratio
        };
        let window = u64::from(cc.snd_cwnd.max(self.board.packets_out())) * u64::from(cc.mss_bytes);
        // As in Linux what goes beyond 64 bits is lost: a file's algorithm may ask for any window.
        let mut rate = window.wrapping_mul(u64::from(factor_pct) * 10_000);
        if self.rtt.srtt_x8() > 0 {
            rate = rate.wrapping_mul(8) / u64::from(self.rtt.srtt_x8());
        }
        cc.pacing_rate = rate.min(cc.max_pacing_rate);
    }
}

pub fn if_set(condition: bool, flag: u8) -> u8 {
    if condition { flag } else { 0 }
}
