//! What is sent when: tcp_write_xmit() with TSO autosizing and deferral,
//! Nagle, pacing, TSQ and cwnd validation; building segments.

use knee_cc::{Event, Op, PacingStatus};

use super::rtx::{FIN_SEG, PSH_SEG, SKB_END, Seg};
use super::sndbuf::SKB_OVERHEAD_BYTES;
use super::timers::XmitTimerKind;
use super::{CaState, Cx, Endpoint, Limit, NEVER, State};
use crate::segment::{ACK, FIN, PSH, SYN, SackBlocks, Segment};

/// sysctl tcp_tso_rtt_log, sk_pacing_shift, tcp_min_tso_segs, tcp_tso_win_divisor
const TSO_RTT_LOG: u32 = 9;
const PACING_SHIFT: u32 = 10;
const MIN_TSO_SEGS: u32 = 2;
const TSO_WIN_DIVISOR: u64 = 3;
/// Segments at a connection's start that pacing lets pass (TCP_INIT_CWND).
const UNPACED_SEGS: u64 = 10;

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
        self.ecn_on_syn(cx, segment);
        self.send_syn(cx);
    }

    /// SYN, or SYN-ACK at the end that was asked; armed to be repeated.
    pub(super) fn send_syn(&mut self, cx: &mut Cx) {
        self.snd_nxt = 1;
        self.syn_sent_ns = cx.now_ns;
        self.set_busy(cx.now_ns, true);
        let ack = if self.state == State::SynReceived {
            ACK
        } else {
            0
        };
        self.emit(cx, 0, 0, SYN | ack, 0);
        let jiffies = self.rto_jiffies(cx);
        self.arm_xmit_timer(cx, XmitTimerKind::Retransmit, jiffies);
    }

    /// close(): a FIN follows what was written. False when closed before.
    pub fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.fin_queued, true)
    }

    // ---- sending new data ------------------------------------------------

    /// Data, or a FIN, that was never sent?
    pub(super) fn has_unsent(&self) -> bool {
        self.snd_nxt < self.write_seq + u64::from(self.fin_queued)
    }

    /// tcp_snd_wnd_test() of the next segment.
    pub(super) fn window_allows_next(&self) -> bool {
        let next = self.notsent_bytes().min(u64::from(self.cc.mss_bytes));
        self.snd_nxt + next <= self.snd_una + self.snd_wnd
    }

    /// What TSQ and the pacing timer call: first what was lost, then new data.
    pub(super) fn send_when_allowed(&mut self, cx: &mut Cx) {
        if self.state != State::Established {
            return;
        }
        if self.cc.lost_out > self.cc.retrans_out && self.cc.snd_cwnd > self.packets_in_flight() {
            self.retransmit_lost(cx);
        }
        self.push_pending(cx);
    }

    /// tcp_write_xmit(); returns segments sent.
    pub(super) fn write_xmit(&mut self, cx: &mut Cx, push: Push) -> u32 {
        if !self.has_unsent() {
            self.note_limit(cx, None);
            return 0;
        }
        let mss = u64::from(self.cc.mss_bytes);
        let max_segs = self.tso_segs(cx);
        let mut sent = 0;
        let mut cwnd_limited = false;
        let mut limit = None;
        while self.has_unsent() {
            if self.pacing_blocks(cx) {
                limit = Some(Limit::Pacing);
                break;
            }
            let in_flight = self.packets_in_flight();
            let mut quota = self
                .cc
                .snd_cwnd
                .saturating_sub(in_flight)
                .min((self.cc.snd_cwnd >> 1).max(1));
            if quota == 0 {
                if push != Push::Probe {
                    limit = Some(Limit::Cwnd);
                    break;
                }
                quota = 1;
            }
            if !self.window_allows_next() {
                limit = Some(Limit::Rwnd);
                break;
            }
            let segs = quota.min(max_segs);
            let quota_bytes = u64::from(segs) * mss;
            if cx.host.host.grow_skb {
                self.write_queue.grow_head(self.snd_nxt, quota_bytes);
            }
            let skb_len = self.write_queue.head_bytes(self.snd_nxt);
            if skb_len <= mss {
                let last = self.write_queue.head_is_tail();
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
            sent += self.transmit_new(cx, len);
            if matches!(push, Push::One | Push::Probe) {
                break;
            }
        }
        cwnd_limited |= self.packets_in_flight() >= self.cc.snd_cwnd;
        if sent > 0 || cwnd_limited {
            self.validate_cwnd(cx, cwnd_limited);
        }
        if sent > 0 {
            if self.in_cwnd_reduction() {
                self.prr_out += sent;
            }
            if push != Push::Probe {
                self.schedule_loss_probe(cx, false);
            }
        }
        self.note_limit(cx, limit);
        sent
    }

    /// Books the time since the last decision and says what holds from now.
    fn note_limit(&mut self, cx: &Cx, limit: Option<Limit>) {
        let limit = limit.unwrap_or(match () {
            _ if !self.to_retransmit.is_empty() && self.pacing_timer_ns != NEVER => Limit::Pacing,
            _ if !self.to_retransmit.is_empty() => Limit::Cwnd,
            _ if self.nospace => Limit::Sndbuf,
            _ if self.fin_queued && !self.has_unsent() && self.rtx.is_empty() => Limit::None,
            _ => Limit::App,
        });
        self.set_limit(cx.now_ns, limit);
    }

    /// tcp_tso_autosize(): a millisecond's worth, more on short paths.
    pub(super) fn tso_segs(&mut self, cx: &Cx) -> u32 {
        let mss = self.cc.mss_bytes;
        let gso = self.gso_max_bytes();
        if gso < mss {
            return 1;
        }
        let min_segs = match self.alg.has(Op::MinTsoSegs) {
            true => self.call_cc(cx, Op::MinTsoSegs),
            false => MIN_TSO_SEGS,
        };
        let mut bytes = self.cc.pacing_rate >> PACING_SHIFT;
        let shift = self.min_rtt.get() >> TSO_RTT_LOG;
        if shift < u32::BITS {
            bytes += u64::from(gso >> shift);
        }
        ((bytes.min(u64::from(gso)) / u64::from(mss)) as u32).max(min_segs)
    }

    /// tcp_nagle_check() with Minshall's rule: one small segment at a time.
    fn nagle_holds(&self, len: u64) -> bool {
        len < u64::from(self.cc.mss_bytes)
            && !self.nodelay
            && !self.fin_queued
            && self.cc.packets_out > 0
            && self.snd_sml > self.snd_una
    }

    /// tcp_mss_split_point(): how much of the skb goes now.
    fn split_point(&self, skb_len: u64, segs: u32) -> u64 {
        let mss = u64::from(self.cc.mss_bytes);
        let window = self.snd_una + self.snd_wnd - self.snd_nxt;
        let max_len = mss * u64::from(segs);
        if max_len <= window && !self.write_queue.head_is_tail() {
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
        if self.ca_state >= CaState::Recovery {
            return None;
        }
        if cx.now_ns.saturating_sub(self.cc.wstamp_ns) > 1_000_000 {
            // The last transmission is long ago: no train to join.
            return None;
        }
        let mss = u64::from(self.cc.mss_bytes);
        let send_win = self.snd_una + self.snd_wnd - self.snd_nxt;
        let cong_win = u64::from(self.cc.snd_cwnd - self.packets_in_flight()) * mss;
        let limit = send_win.min(cong_win);
        if limit >= u64::from(max_segs) * mss {
            return None;
        }
        if !self.write_queue.head_is_tail() && limit >= skb_len {
            return None;
        }
        let chunk = self.snd_wnd.min(u64::from(self.cc.snd_cwnd) * mss) / TSO_WIN_DIVISOR;
        if limit >= chunk {
            return None;
        }
        let head = self.rtx.front()?;
        let srtt_ns = u64::from(self.srtt_us()) * 1_000;
        let ack_in_ns = (head.sent_ns + srtt_ns).saturating_sub(cx.now_ns);
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
        if self.fin_queued {
            None
        } else {
            Some(Limit::App)
        }
    }

    /// tcp_small_queue_check(): enough of this connection waits in the qdisc.
    pub(super) fn tsq_blocks(&mut self, cx: &Cx, segs: u32, factor: u64) -> bool {
        if self.qdisc_bytes == 0 {
            return false;
        }
        let truesize = u64::from(segs) * u64::from(self.cc.mss_bytes) + SKB_OVERHEAD_BYTES;
        let mut limit = (2 * truesize).max(self.cc.pacing_rate >> PACING_SHIFT);
        if self.cc.pacing_status == PacingStatus::None as u32 {
            limit = limit.min(cx.host.host.tcp_limit_output_bytes);
        }
        self.tsq_throttled = self.qdisc_bytes > limit * factor && self.skbs_out > 1;
        self.tsq_throttled
    }

    /// The qdisc sent `bytes` of what it held.
    pub fn on_qdisc_sent(&mut self, cx: &mut Cx, bytes: u32) {
        self.qdisc_bytes -= u64::from(bytes);
        if self.tsq_throttled {
            self.tsq_throttled = false;
            self.send_when_allowed(cx);
        }
    }

    /// tcp_pacing_check(): is the next departure in the future? Arms the timer.
    pub(super) fn pacing_blocks(&mut self, cx: &Cx) -> bool {
        if self.cc.pacing_status != PacingStatus::Needed as u32 || self.cc.wstamp_ns <= cx.now_ns {
            return false;
        }
        if self.pacing_timer_ns == NEVER {
            self.pacing_timer_ns = self.cc.wstamp_ns;
        }
        true
    }

    /// tcp_cwnd_validate()
    fn validate_cwnd(&mut self, cx: &Cx, limited: bool) {
        if self.snd_una >= self.cwnd_usage_seq
            || limited
            || self.cc.is_cwnd_limited == 0 && self.cc.packets_out > self.cc.max_packets_out
        {
            self.cc.is_cwnd_limited = u32::from(limited);
            self.cc.max_packets_out = self.cc.packets_out;
            self.cwnd_usage_seq = self.snd_nxt;
        }
        if self.is_cwnd_limited() {
            self.snd_cwnd_used = 0;
            self.snd_cwnd_stamp = cx.jiffies();
            return;
        }
        self.snd_cwnd_used = self.snd_cwnd_used.max(self.cc.packets_out);
        let idle = u64::from(cx.jiffies().wrapping_sub(self.snd_cwnd_stamp));
        if cx.host.host.tcp_slow_start_after_idle
            && idle >= self.rto_jiffies(cx)
            && !self.has_cong_control
        {
            self.decay_cwnd(cx);
        }
    }

    /// tcp_cwnd_application_limited(): RFC 2861
    fn decay_cwnd(&mut self, cx: &Cx) {
        if self.ca_state == CaState::Open && !self.nospace {
            let used = self.snd_cwnd_used.max(cx.host.host.initcwnd);
            if used < self.cc.snd_cwnd {
                self.cc.snd_ssthresh = self.current_ssthresh();
                self.set_cwnd(cx, (self.cc.snd_cwnd + used) >> 1);
            }
            self.snd_cwnd_used = 0;
        }
        self.snd_cwnd_stamp = cx.jiffies();
    }

    /// Sends `len` bytes from snd_nxt as one skb, and the FIN if it is due.
    pub(super) fn transmit_new(&mut self, cx: &mut Cx, len: u64) -> u32 {
        let mss = u64::from(self.cc.mss_bytes);
        let end = self.snd_nxt + len;
        let fin = self.fin_queued && end == self.write_seq;
        let segs = (len.div_ceil(mss) as u32).max(1);
        // A packet of several segments asks to be handed up at once, so that
        // GRO does not hold its end back.
        let push_flag = self.write_queue.sent(end) || segs > 1;
        let departure_ns = self.departure(cx);
        self.on_data_sent(cx);
        let prior_packets = self.cc.packets_out;
        let in_flight = self.packets_in_flight() + segs;
        let tx = self.rate_on_send(departure_ns, in_flight);
        let app_limited = self.cc.app_limited != 0;
        let mut seq = self.snd_nxt;
        for i in 0..segs {
            let payload = (end - seq).min(mss) as u32;
            let flags = match i + 1 == segs {
                true => SKB_END | if_set(push_flag, PSH_SEG) | if_set(fin, FIN_SEG),
                false => 0,
            };
            let mut seg = Seg::new(seq, payload, flags);
            seg.record_sent(departure_ns, tx, app_limited);
            match i {
                0 | 1 => self.emit_data(cx, seq, payload, seg.flags, departure_ns),
                _ => self.emit_another(cx, seq, payload, seg.flags),
            }
            self.rtx.push(seg);
            seq += u64::from(payload);
        }
        self.after_departure(len);
        self.skbs_out += 1;
        self.snd_nxt = end + u64::from(fin);
        self.cc.packets_out += segs;
        if !len.is_multiple_of(mss) {
            self.snd_sml = end;
        }
        if prior_packets == 0 || self.xmit_timer.kind == XmitTimerKind::LossProbe {
            self.rearm_rto(cx);
        }
        self.check_space(cx);
        segs
    }

    /// tcp_event_data_sent()
    pub(super) fn on_data_sent(&mut self, cx: &mut Cx) {
        if self.packets_in_flight() == 0 {
            self.cwnd_event(cx, Event::TxStart);
        }
        self.cc.lsndtime = cx.jiffies();
        self.rx.on_data_sent(cx);
        self.integrate(cx.now_ns);
    }

    /// The earliest departure time model: when this skb may leave.
    pub(super) fn departure(&mut self, cx: &Cx) -> u64 {
        self.prior_wstamp_ns = self.cc.wstamp_ns;
        self.cc.wstamp_ns = self.cc.wstamp_ns.max(cx.now_ns);
        self.cc.wstamp_ns
    }

    /// tcp_update_skb_after_send(): pushes the next departure back by this
    /// skb's payload at the pacing rate, less what the last timer was late.
    pub(super) fn after_departure(&mut self, payload_bytes: u64) {
        let rate = self.cc.pacing_rate;
        if self.cc.pacing_status == PacingStatus::None as u32
            || rate == u64::MAX
            || rate == 0
            || self.counters.data_segs_out < UNPACED_SEGS
        {
            return;
        }
        let len_ns = payload_bytes * 1_000_000_000 / rate;
        let credit_ns = self.cc.wstamp_ns - self.prior_wstamp_ns;
        self.cc.wstamp_ns += len_ns - (len_ns / 2).min(credit_ns);
    }

    // ---- segments --------------------------------------------------------

    pub(super) fn emit_data(
        &mut self,
        cx: &mut Cx,
        seq: u64,
        payload: u32,
        seg_flags: u8,
        departure_ns: u64,
    ) {
        self.count_sent(payload);
        self.emit(cx, seq, payload, ACK | wire_flags(seg_flags), departure_ns);
    }

    /// A further segment of an skb whose last stands at the end of `cx.out`: like it, but for what it carries. The first
    /// says what is said once (CWR, a delayed ACK), so that the second is the earliest to copy.
    fn emit_another(&mut self, cx: &mut Cx, seq: u64, payload_bytes: u32, seg_flags: u8) {
        self.count_sent(payload_bytes);
        let &last = cx.out.last().expect("a segment of this skb");
        let last = cx.slab.get(last);
        let segment = Segment {
            seq,
            payload_bytes,
            flags: last.flags | wire_flags(seg_flags),
            ..last.clone()
        };
        self.hand_down(cx, segment);
    }

    /// __tcp_transmit_skb(): a bare FIN is no data.
    fn count_sent(&mut self, payload_bytes: u32) {
        self.counters.data_segs_out += u64::from(payload_bytes > 0);
        self.counters.bytes_sent += u64::from(payload_bytes);
    }

    pub fn send_ack(&mut self, cx: &mut Cx) {
        self.send_ack_of(cx, self.rx.rcv_nxt());
    }

    /// An ACK of less than has arrived (__tcp_send_ack() with an rcv_nxt).
    pub(super) fn send_ack_of(&mut self, cx: &mut Cx, ack: u64) {
        self.emit_acking(cx, ack, self.snd_nxt, 0, ACK, 0);
    }

    pub(super) fn emit(
        &mut self,
        cx: &mut Cx,
        seq: u64,
        payload_bytes: u32,
        flags: u8,
        departure_ns: u64,
    ) {
        let ack = self.rx.rcv_nxt();
        self.emit_acking(cx, ack, seq, payload_bytes, flags, departure_ns);
    }

    fn emit_acking(
        &mut self,
        cx: &mut Cx,
        ack: u64,
        seq: u64,
        payload_bytes: u32,
        flags: u8,
        departure_ns: u64,
    ) {
        let window_bytes = self.rx.offer_window(flags & SYN != 0);
        let sack = match flags & ACK != 0 && payload_bytes == 0 && flags & SYN == 0 {
            true => self.rx.sack_blocks(ack),
            false => SackBlocks::default(),
        };
        if flags & ACK != 0 {
            self.rx.on_ack_sent(ack);
            self.ecn.on_ack_sent();
        }
        let (ecn_flags, ecn) = match flags & SYN != 0 {
            true => self.ecn_of_syn(cx),
            false => self.ecn_of(seq, payload_bytes),
        };
        let segment = Segment {
            seq,
            ack,
            window_bytes,
            payload_bytes,
            flags: flags | ecn_flags,
            ecn,
            packets: 1,
            option_bytes: match flags & SYN != 0 || payload_bytes > 0 {
                true => 0,
                false => self.ecn.option_bytes(sack.count()),
            },
            ce_bytes: self.ecn.option_ce_bytes(),
            // Data carries the time of its departure, as its skb does.
            tsval_ms: (departure_ns.max(cx.now_ns) / 1_000_000) as u32,
            tsecr_ms: self.rx.ts_recent_ms(),
            sack,
            departure_ns,
        };
        self.hand_down(cx, segment);
    }

    /// To the qdisc, which counts what it holds back.
    #[inline]
    fn hand_down(&mut self, cx: &mut Cx, segment: Segment) {
        if segment.departure_ns > cx.now_ns {
            self.qdisc_bytes += u64::from(segment.ip_bytes());
        }
        let handle = cx.slab.insert(segment);
        cx.out.push(handle);
    }

    /// tcp_update_pacing_rate(): the default, for algorithms without their own.
    pub(super) fn update_pacing_rate(&mut self) {
        if self.has_cong_control {
            return;
        }
        let cc = &mut *self.cc;
        let factor_pct = if cc.snd_cwnd < cc.snd_ssthresh / 2 {
            200
        } else {
            120
        };
        let window = u64::from(cc.snd_cwnd.max(cc.packets_out)) * u64::from(cc.mss_bytes);
        let mut rate = window * factor_pct * 10_000;
        if self.rtt.srtt_x8() > 0 {
            rate = rate * 8 / u64::from(self.rtt.srtt_x8());
        }
        cc.pacing_rate = rate.min(cc.max_pacing_rate);
    }
}

/// PSH and FIN, as they stand on the wire.
fn wire_flags(seg_flags: u8) -> u8 {
    if_set(seg_flags & PSH_SEG != 0, PSH) | if_set(seg_flags & FIN_SEG != 0, FIN)
}

fn if_set(condition: bool, flag: u8) -> u8 {
    if condition { flag } else { 0 }
}
