//! One end of a TCP connection, as Linux 6.12 to 6.18 behaves.
//!
//! An [`Endpoint`] is a state machine without a clock or a network: it is told
//! of segments and timers, and puts what it sends into [`Cx::out`]. Both
//! directions of a connection live in it; one that only receives never touches
//! the sending half. Rules and constants: see docs/simulator.md.
//!
//! - `host`: settings and clock; `account`: what is told
//! - `input`: an ACK's way through the sender, RTT, windows
//! - `sack`, `rack`, `recovery`: scoreboard, loss detection, the loss state
//!   machine with PRR and undo
//! - `timers`: RTO, TLP, RACK's reordering timer, window probes
//! - `sndbuf`, `output`, `retransmit`: what is written, sent and sent again
//! - `rate`, `rtt`: delivery-rate samples, RTT and its minimum
//! - `receive`: reassembly, ACK policy, SACK blocks, receive window
//! - `rtx`: the retransmission queue
//! - `ecn`: marks, their echo and their count

mod account;
mod ecn;
mod host;
mod input;
mod output;
mod rack;
mod rate;
mod receive;
mod recovery;
mod retransmit;
mod rtt;
mod rtx;
mod sack;
mod sndbuf;
#[cfg(test)]
mod testing;
mod timers;
mod write_queue;

use knee_cc::{ACK_STATE_ECHO, CaState, CcIn, CcOut, INFINITE_SSTHRESH, Instance, Op};
use knee_model::record::Histogram;
use knee_model::rng::Stream;
use knee_model::scenario::Pacing;

use crate::ranges::RangeSet;
use ecn::EcnState;
pub use host::{Cx, HostConf};
pub use receive::Receiver;
use rtt::{MinRtt, Rtt};
use rtx::RtxQueue;
use timers::{XmitTimer, XmitTimerKind};
use write_queue::WriteQueue;

pub const NEVER: u64 = u64::MAX;

/// Linux: include/net/tcp.h
const TCP_INIT_CWND: u32 = 10;
const MAX_REORDERING: u32 = 300;
const DEFAULT_REORDERING: u32 = 3;

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Closed,
    SynSent,
    SynReceived,
    Established,
}

/// What held the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing yet or nothing any more: opening, closed.
    None = 0,
    Cwnd = 1,
    Rwnd = 2,
    Sndbuf = 3,
    Pacing = 4,
    App = 5,
}

pub const LIMITS: usize = 6;

/// Counters of one end, as `tcp_info` has them.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub data_segs_out: u64,
    pub total_retrans: u64,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub bytes_acked: u64,
    pub rto_count: u64,
    pub recovery_count: u64,
    pub undo_count: u64,
    pub tlp_count: u64,
    pub dsack_dups: u64,
    /// Time spent under each [`Limit`], ns.
    pub limit_ns: [u64; LIMITS],
    pub busy_ns: u64,
}

/// One end of a connection.
pub struct Endpoint {
    pub state: State,
    pub cc: Box<CcIn>,
    alg: Instance,
    rng: Stream,
    /// What the other end adds to its clock in timestamps (net.ipv4.tcp_timestamps = 1). The segments show it without.
    peer_tsoffset: u32,
    has_cong_control: bool,
    ecn: EcnState,

    // Sending: sequence space. The SYN is 0.
    pub snd_una: u64,
    pub snd_nxt: u64,
    /// End of what the application wrote; the FIN, once queued, is at this number.
    pub write_seq: u64,
    fin_queued: bool,
    snd_wnd: u64,
    snd_wl1: u64,
    max_window: u64,
    /// End of the last sub-MSS segment sent (Minshall's Nagle).
    snd_sml: u64,
    nodelay: bool,

    // Sending: scoreboard.
    rtx: RtxQueue,
    sacked: RangeSet,
    /// Marked lost and not (again) retransmitted.
    to_retransmit: RangeSet,
    reord_seen: u32,
    rack: rack::Rack,

    // Sending: recovery.
    ca_state: CaState,
    high_seq: u64,
    undo_marker: u64,
    undo_retrans: i64,
    /// ms stamp of the first retransmission of the episode; 0: none.
    retrans_stamp_ms: u32,
    prior_ssthresh: u32,
    prr_delivered: u32,
    prr_out: u32,
    tlp_high_seq: u64,
    tlp_retrans: bool,
    frto: bool,
    retransmits: u32,
    backoff: u32,
    syn_sent_ns: u64,
    syn_timeouts: u32,

    // Sending: RTT and rates.
    rtt: Rtt,
    min_rtt: MinRtt,
    first_tx_ns: u64,
    delivered_ns: u64,
    rate_delivered: u32,
    rate_interval_us: u64,
    rate_app_limited: bool,

    // Sending: cwnd validation.
    cwnd_usage_seq: u64,
    snd_cwnd_used: u32,
    snd_cwnd_stamp: u32,

    // Sending: buffer and qdisc.
    sndbuf_bytes: u64,
    /// Packets in the retransmission queue as the stack allocated them.
    skbs_out: u64,
    nospace: bool,
    write_queue: WriteQueue,
    /// Up to where PSH was asked for.
    pushed_seq: u64,
    /// Does the application wait in write() for space?
    blocking: bool,
    /// In the middle of a write(), possibly waiting for space.
    in_sendmsg: bool,
    qdisc_bytes: u64,
    /// Departure allowed before the last skb, for the pacing credit.
    prior_wstamp_ns: u64,
    tsq_throttled: bool,

    // Timers.
    xmit_timer: XmitTimer,
    pacing_timer_ns: u64,

    // What held it back, since when.
    limit: Limit,
    limit_since_ns: u64,
    busy_since_ns: u64,

    pub rx: Receiver,
    pub counters: Counters,
    /// Of smoothed RTTs, per ACK, once told to measure.
    pub srtt_histogram: Histogram,
    pub measuring: bool,
    cwnd_integral: f64,
    inflight_integral: f64,
    integral_since_ns: u64,
}

/// What a socket begins with.
fn pacing_status(pacing: Pacing) -> u32 {
    let status = match pacing {
        Pacing::Internal => knee_cc::PacingStatus::None,
        Pacing::Timer => knee_cc::PacingStatus::Needed,
        Pacing::Fq => knee_cc::PacingStatus::Fq,
    };
    status as u32
}

impl Endpoint {
    pub fn new(
        conf: &HostConf,
        alg: Instance,
        rng: Stream,
        peer_tsoffset: u32,
        nodelay: bool,
    ) -> Endpoint {
        let cc = CcIn {
            hz: conf.host.hz,
            snd_cwnd: TCP_INIT_CWND,
            snd_cwnd_clamp: u32::MAX,
            snd_ssthresh: INFINITE_SSTHRESH,
            mss_bytes: conf.mss_bytes,
            gso_max_bytes: conf.host.gso_max_bytes,
            min_rtt_us: u32::MAX,
            max_pacing_rate: u64::MAX,
            pacing_rate: u64::MAX,
            app_limited: u32::MAX,
            reordering: DEFAULT_REORDERING,
            pacing_status: pacing_status(conf.host.pacing),
            ..CcIn::default()
        };
        Endpoint {
            state: State::Closed,
            has_cong_control: alg.has(Op::CongControl),
            ecn: EcnState::new(alg.algorithm()),
            cc: Box::new(cc),
            alg,
            rng,
            peer_tsoffset,
            snd_una: 0,
            snd_nxt: 0,
            write_seq: 1,
            fin_queued: false,
            snd_wnd: crate::segment::WINDOW_FIELD_MAX,
            snd_wl1: 0,
            max_window: 0,
            snd_sml: 0,
            nodelay,
            rtx: RtxQueue::default(),
            sacked: RangeSet::default(),
            to_retransmit: RangeSet::default(),
            reord_seen: 0,
            rack: rack::Rack::default(),
            ca_state: CaState::Open,
            high_seq: 0,
            undo_marker: 0,
            undo_retrans: 0,
            retrans_stamp_ms: 0,
            prior_ssthresh: 0,
            prr_delivered: 0,
            prr_out: 0,
            tlp_high_seq: 0,
            tlp_retrans: false,
            frto: false,
            retransmits: 0,
            backoff: 0,
            syn_sent_ns: 0,
            syn_timeouts: 0,
            rtt: Rtt::new(conf),
            min_rtt: MinRtt::default(),
            first_tx_ns: 0,
            delivered_ns: 0,
            rate_delivered: 0,
            rate_interval_us: 0,
            rate_app_limited: false,
            cwnd_usage_seq: 0,
            snd_cwnd_used: 0,
            snd_cwnd_stamp: 0,
            sndbuf_bytes: conf.host.tcp_wmem_bytes[1],
            skbs_out: 0,
            nospace: false,
            write_queue: WriteQueue::new(),
            pushed_seq: 0,
            blocking: false,
            in_sendmsg: false,
            qdisc_bytes: 0,
            prior_wstamp_ns: 0,
            tsq_throttled: false,
            xmit_timer: XmitTimer {
                kind: XmitTimerKind::None,
                at_ns: NEVER,
            },
            pacing_timer_ns: NEVER,
            limit: Limit::None,
            limit_since_ns: 0,
            busy_since_ns: NEVER,
            rx: Receiver::new(conf),
            counters: Counters::default(),
            srtt_histogram: Histogram::default(),
            measuring: false,
            cwnd_integral: 0.0,
            inflight_integral: 0.0,
            integral_since_ns: 0,
        }
    }

    /// Without O_NONBLOCK a write() waits for space.
    pub fn set_blocking(&mut self, blocking: bool) {
        self.blocking = blocking;
    }

    /// Who spaces what it sends, other than the host's settings say.
    pub fn set_pacing(&mut self, pacing: Pacing) {
        self.cc.pacing_status = pacing_status(pacing);
    }

    /// SO_MAX_PACING_RATE: also makes TCP pace when nothing else does.
    pub fn set_max_pacing_rate(&mut self, bytes_per_sec: u64) {
        self.cc.max_pacing_rate = bytes_per_sec;
        self.cc.pacing_rate = self.cc.pacing_rate.min(bytes_per_sec);
        if self.cc.pacing_status == knee_cc::PacingStatus::None as u32 {
            self.cc.pacing_status = knee_cc::PacingStatus::Needed as u32;
        }
    }

    /// Earliest time at which [`Endpoint::on_timer`] has something to do.
    #[inline]
    pub fn next_timer_ns(&self) -> u64 {
        self.xmit_timer
            .at_ns
            .min(self.pacing_timer_ns)
            .min(self.rx.next_timer_ns())
    }

    /// Runs the timers that are due.
    pub fn on_timer(&mut self, cx: &mut Cx) {
        if self.pacing_timer_ns <= cx.now_ns {
            self.pacing_timer_ns = NEVER;
            self.send_when_allowed(cx);
        }
        if self.xmit_timer.at_ns <= cx.now_ns {
            self.on_xmit_timer(cx);
        }
        if self.rx.next_timer_ns() <= cx.now_ns {
            self.on_receive_timer(cx);
        }
    }

    /// Nothing left to do: both directions closed and acked, or never opened.
    pub fn is_done(&self) -> bool {
        self.fin_queued && self.snd_una > self.write_seq && self.rx.fin_received()
    }

    #[inline]
    pub fn packets_in_flight(&self) -> u32 {
        // Signed in Linux too: scoreboard counts may briefly cross.
        (self.cc.packets_out + self.cc.retrans_out)
            .saturating_sub(self.cc.sacked_out + self.cc.lost_out)
    }

    fn left_out(&self) -> u32 {
        self.cc.sacked_out + self.cc.lost_out
    }

    fn in_slow_start(&self) -> bool {
        self.cc.snd_cwnd < self.cc.snd_ssthresh
    }

    fn is_cwnd_limited(&self) -> bool {
        self.cc.is_cwnd_limited != 0
            || self.in_slow_start() && self.cc.snd_cwnd < 2 * self.cc.max_packets_out
    }

    fn in_cwnd_reduction(&self) -> bool {
        matches!(self.ca_state, CaState::Cwr | CaState::Recovery)
    }

    /// tcp_current_ssthresh()
    fn current_ssthresh(&self) -> u32 {
        match self.in_cwnd_reduction() {
            true => self.cc.snd_ssthresh,
            false => self
                .cc
                .snd_ssthresh
                .max((self.cc.snd_cwnd >> 1) + (self.cc.snd_cwnd >> 2)),
        }
    }

    /// Calls an op and takes over what it changed; returns its result.
    #[inline]
    fn call_cc(&mut self, cx: &Cx, op: Op) -> u32 {
        self.call_cc_out(cx, op).ret
    }

    #[inline]
    fn call_cc_out(&mut self, cx: &Cx, op: Op) -> CcOut {
        let cc = &mut *self.cc;
        cc.now_us = cx.now_ns / 1_000;
        cc.clock_ns = cx.now_ns;
        cc.jiffies = cx.host.jiffies(cx.now_ns);
        cc.snd_una = self.snd_una as u32;
        cc.snd_nxt = self.snd_nxt as u32;
        cc.rcv_nxt = self.rx.rcv_nxt() as u32;
        cc.ca_state = self.ca_state as u32;
        cc.random = self.rng.next_u32();
        let mut out = CcOut {
            pacing_rate: cc.pacing_rate,
            pacing_status: cc.pacing_status,
            snd_cwnd: cc.snd_cwnd,
            snd_cwnd_cnt: cc.snd_cwnd_cnt,
            snd_ssthresh: cc.snd_ssthresh,
            app_limited: cc.app_limited,
            ecn_echo: cc.ack_state & ACK_STATE_ECHO,
            ..CcOut::default()
        };
        self.alg.call(op, cc, &mut out);
        debug_assert!(out.snd_cwnd >= 1, "an algorithm never closes the window");
        cc.pacing_rate = out.pacing_rate.min(cc.max_pacing_rate);
        if cc.pacing_status == knee_cc::PacingStatus::None as u32 {
            cc.pacing_status = out.pacing_status;
        }
        cc.snd_cwnd_cnt = out.snd_cwnd_cnt;
        cc.snd_ssthresh = out.snd_ssthresh;
        cc.app_limited = out.app_limited;
        if out.snd_cwnd != cc.snd_cwnd {
            self.set_cwnd(cx, out.snd_cwnd);
        }
        out
    }

    /// Calls an op only if the algorithm has it.
    #[inline]
    fn call_cc_if(&mut self, cx: &Cx, op: Op) {
        if self.alg.has(op) {
            self.call_cc(cx, op);
        }
    }

    fn cwnd_event(&mut self, cx: &Cx, event: knee_cc::Event) {
        if self.alg.has(Op::CwndEvent) {
            self.cc.event = event as u32;
            self.call_cc(cx, Op::CwndEvent);
        }
    }

    fn set_cwnd(&mut self, cx: &Cx, snd_cwnd: u32) {
        self.integrate(cx.now_ns);
        self.cc.snd_cwnd = snd_cwnd;
    }

    fn set_ca_state(&mut self, cx: &mut Cx, state: CaState) {
        if self.alg.has(Op::SetState) {
            // The op sees the state it leaves in ca_state, as in Linux.
            self.cc.state = state as u32;
            self.call_cc(cx, Op::SetState);
        }
        if state != self.ca_state {
            let ended = match self.ca_state {
                CaState::Recovery => Some("recovery_end"),
                CaState::Loss => Some("loss_end"),
                CaState::Cwr => Some("cwr_end"),
                _ => None,
            };
            let entered = match state {
                CaState::Recovery => Some("recovery"),
                CaState::Loss => Some("loss"),
                CaState::Cwr => Some("cwr"),
                _ => None,
            };
            cx.events.extend(ended.into_iter().chain(entered));
        }
        self.ca_state = state;
    }
}
