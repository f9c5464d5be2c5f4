//! One end of a TCP connection, as Linux 6.12 to 6.18 behaves.
//!
//! An [`Endpoint`] is a state machine without a clock or a network: it is told
//! of segments and timers, and puts what it sends into [`Cx::out`]. Both
//! directions of a connection live in it; one that only receives never touches
//! the sending half. Rules and constants: see docs/simulator.md.
//!
//! - `host`: settings and clock; `agent`: somebody who decides in an algorithm's place
//! - `account`: what was done and how time was spent; `info`: what others may ask
//! - `input`: an ACK's way through the sender, RTT, windows
//! - `scoreboard` with its queue `rtx` and its counts `flight`: what is outstanding
//! - `sack`, `rack` and `losses`: what SACKs mean, loss detection
//! - `recovery`, `undo`, `prr`, `probe` and `alert`: the loss state machine
//! - `handshake`, `peer_window`: the handshake, the window that the peer offers
//! - `xmit_timer`, `timers`: RTO, TLP, RACK's reordering timer, window probes
//! - `segment`: segments and trains of them, SACK blocks, the slab where they live until they arrive
//! - `sndbuf` with its `write_queue`, `write`: what the application writes
//! - `nagle`, `output`, `retransmit`, `emit`: what is sent and sent again, as segments
//! - `pacer`, `small_queue`: when packets may leave, what waits in the qdisc
//! - `usage`: whether the window is used
//! - `rate`, `rtt`: delivery-rate samples, RTT and its minimum
//! - `receive` with its `reassembly`: ACK policy, SACK blocks, receive window
//! - `ecn`, `marks`: marks, their echo and their count; what they do

use knee_kit::odds::unlikely;

mod account;
mod agent;
mod alert;
mod ecn;
mod emit;
mod flight;
mod handshake;
mod host;
mod info;
mod input;
mod losses;
mod marks;
mod min_rtt;
mod nagle;
mod output;
mod pacer;
mod peer_window;
mod probe;
mod prr;
mod rack;
mod rate;
mod reassembly;
mod receive;
mod recovery;
mod retransmit;
mod rtt;
mod rtx;
mod sack;
mod scoreboard;
pub mod segment;
mod small_queue;
mod sndbuf;
#[cfg(test)]
mod testing;
mod timers;
mod undo;
mod usage;
mod write;
mod write_queue;
mod xmit_timer;

use account::{Counters, Means, TimeSpent};
pub use account::{LIMITS, Limit};
use agent::Agent;
pub use agent::{ASKS, Answer, Asks, Since};
use ecn::EcnState;
pub use ecn::agreed_ecn;
use handshake::Handshake;
pub use host::{BufferGrowth, Clock, Cx, HostConf, Pacing, Settings};
use knee_cc::{ACK_STATE_ECHO, CaState, CcIn, CcOut, INFINITE_SSTHRESH, Instance, Op};

use knee_units::rng::Stream;
use min_rtt::MinRtt;
use nagle::Nagle;
use pacer::Pacer;
pub use pacer::TimerRule;
use peer_window::PeerWindow;
use probe::Probe;
use prr::Prr;
pub use prr::PrrRule;
use rack::Rack;
use rate::{RateSampler, Totals};
pub use receive::Receiver;
use recovery::Recovery;
use rtt::Rtt;
use scoreboard::Scoreboard;
use small_queue::SmallQueue;
use sndbuf::SendBuffer;
use undo::Undo;
use usage::CwndUsage;
use xmit_timer::XmitTimer;

/// Linux: include/net/tcp.h
const TCP_INIT_CWND: u32 = 10;

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Closed,
    SynSent,
    SynReceived,
    Established,
    /// Established too, and an agent is asked: nothing is sent until it answers.
    Waiting,
}

/// One end of a connection: parts that each keep a state of their own, and what ties them together. A part is told the
/// time and what it needs of the others, and says what is due; it knows neither the endpoint nor the event loop.
///
/// With thousands of connections an endpoint is in no cache when something happens to it, so what is needed together lies
/// together, in this order.
#[repr(C)]
pub struct Endpoint {
    // What each arrival looks at.
    snd_una: u64,
    snd_nxt: u64,
    xmit_timer: XmitTimer,
    pacer: Pacer,
    peer_window: PeerWindow,
    alg: Instance,
    /// Added by the other end to its clock in timestamps (net.ipv4.tcp_timestamps = 1). Our segments carry the bare clock.
    peer_tsoffset: u32,
    state: State,
    has_cong_control: bool,
    ecn: EcnState,
    time: TimeSpent,
    pub rx: Receiver,
    buffer: SendBuffer,

    // What each ACK looks at: what is outstanding, and which of it is lost.
    pub cc: CcIn,
    board: Scoreboard,
    rack: Rack,
    rate: RateSampler,
    rtt: Rtt,
    recovery: Recovery,
    probe: Probe,
    usage: CwndUsage,
    nagle: Nagle,
    small_queue: SmallQueue,
    min_rtt: MinRtt,
    pub counters: Counters,
    means: Means,

    // The rest.
    undo: Undo,
    prr: Prr,
    handshake: Handshake,
    rng: Stream,
    agent: Option<Box<Agent>>,
}

/// The pacing status that a socket begins with.
fn pacing_status(pacing: Pacing, has_timer: bool) -> u32 {
    let status = match pacing {
        Pacing::Timer if has_timer => knee_cc::PacingStatus::Needed,
        Pacing::Internal | Pacing::Timer => knee_cc::PacingStatus::None,
        Pacing::Fq => knee_cc::PacingStatus::Fq,
    };
    status as u32
}

impl Endpoint {
    pub fn new(
        conf: &HostConf,
        alg: Instance,
        mut rng: Stream,
        peer_tsoffset: u32,
        nodelay: bool,
    ) -> Endpoint {
        // What fq paces needs no timer.
        let pacer = Pacer::new(match conf.settings.pacing {
            Pacing::Fq => TimerRule::WhenNeeded,
            _ => conf.settings.pacing_timer,
        });
        let cc = CcIn {
            hz: conf.settings.hz,
            snd_cwnd: TCP_INIT_CWND,
            snd_cwnd_clamp: u32::MAX,
            snd_ssthresh: INFINITE_SSTHRESH,
            mss_bytes: conf.mss_bytes,
            gso_max_bytes: conf.settings.gso_max_bytes,
            min_rtt_us: u32::MAX,
            max_pacing_rate: u64::MAX,
            pacing_rate: u64::MAX,
            pacing_status: pacing_status(conf.settings.pacing, pacer.has_timer()),
            random: rng.next_u32(),
            ..CcIn::default()
        };
        Endpoint {
            state: State::Closed,
            has_cong_control: alg.has(Op::CongControl),
            ecn: EcnState::new(alg.algorithm()),
            cc,
            alg,
            rng,
            agent: None,
            peer_tsoffset,
            snd_una: 0,
            snd_nxt: 0,
            peer_window: PeerWindow::new(),
            nagle: Nagle::new(nodelay),
            board: Scoreboard::new(),
            rack: Rack::new(),
            recovery: Recovery::new(),
            undo: Undo::default(),
            prr: Prr::default(),
            probe: Probe::default(),
            handshake: Handshake::default(),
            rtt: Rtt::new(conf),
            min_rtt: MinRtt::default(),
            rate: RateSampler::new(),
            usage: CwndUsage::default(),
            buffer: SendBuffer::new(conf.settings.tcp_wmem_bytes[1]),
            small_queue: SmallQueue::default(),
            pacer,
            xmit_timer: XmitTimer::new(),
            rx: Receiver::new(conf),
            counters: Counters::default(),
            time: TimeSpent::new(),
            means: Means::default(),
        }
    }

    /// Without O_NONBLOCK a write() waits for space.
    pub fn set_blocking(&mut self, blocking: bool) {
        self.buffer.set_blocking(blocking);
    }

    /// SO_SNDBUF, before it connects.
    pub fn set_sndbuf(&mut self, bytes: u64) {
        self.buffer.ask_for(bytes);
    }

    /// SO_RCVBUF, before it connects or listens.
    pub fn set_rcvbuf(&mut self, bytes: u64) {
        self.rx.set_rcvbuf(bytes);
    }

    /// TCP_WINDOW_CLAMP, before it connects or listens.
    pub fn set_window_clamp(&mut self, bytes: u64) {
        self.rx.set_window_clamp(bytes);
    }

    /// Spaces packets in another way than the host's settings say.
    pub fn set_pacing(&mut self, pacing: Pacing) {
        self.cc.pacing_status = pacing_status(pacing, self.pacer.has_timer());
    }

    /// How often its pacing timer was armed, and how often it fired, since somebody took that.
    #[inline]
    pub fn pacing_timer_counts(&mut self) -> [&mut u64; 2] {
        [&mut self.pacer.arms, &mut self.pacer.fires]
    }

    /// Packets, as the stack has them, that are sent and not acked.
    pub fn skbs_out(&self) -> u64 {
        // Of an end that only receives, the scoreboard is in no near cache.
        match self.snd_una == self.snd_nxt {
            true => 0,
            false => self.board.skbs(),
        }
    }

    /// SO_MAX_PACING_RATE: also makes TCP pace when nothing else does.
    pub fn set_max_pacing_rate(&mut self, bytes_per_sec: u64) {
        self.cc.max_pacing_rate = bytes_per_sec;
        self.cc.pacing_rate = self.cc.pacing_rate.min(bytes_per_sec);
        if self.cc.pacing_status == knee_cc::PacingStatus::None as u32 && self.pacer.has_timer() {
            self.cc.pacing_status = knee_cc::PacingStatus::Needed as u32;
        }
    }

    /// Earliest time at which [`Endpoint::on_timer`] has something to do.
    #[inline]
    pub fn next_timer_ns(&self) -> u64 {
        self.xmit_timer
            .at_ns()
            .min(self.pacer.timer_ns())
            .min(self.rx.next_timer_ns())
    }

    /// Runs the timers that are due.
    pub fn on_timer(&mut self, cx: &mut Cx) {
        if self.pacer.take_due(cx.now_ns()) {
            self.send_when_allowed(cx);
        }
        if self.xmit_timer.at_ns() <= cx.now_ns() {
            self.on_xmit_timer(cx);
        }
        if self.rx.next_timer_ns() <= cx.now_ns() {
            self.on_receive_timer(cx);
        }
    }

    /// Nothing is left to do: both directions are closed and acked.
    #[inline]
    pub fn is_done(&self) -> bool {
        unlikely(self.buffer.fin_queued())
            && self.snd_una > self.buffer.write_seq()
            && self.rx.fin_received()
    }

    #[inline]
    pub fn packets_in_flight(&self) -> u32 {
        self.board.packets_in_flight()
    }

    fn totals(&self) -> Totals {
        Totals {
            delivered: self.board.delivered(),
            delivered_ce: self.ecn.delivered_ce(),
            lost: self.board.lost(),
        }
    }

    /// tcp_current_ssthresh()
    fn current_ssthresh(&self) -> u32 {
        match self.recovery.in_cwnd_reduction() {
            true => self.cc.snd_ssthresh,
            false => self
                .cc
                .snd_ssthresh
                .max((self.cc.snd_cwnd >> 1) + (self.cc.snd_cwnd >> 2)),
        }
    }

    /// Calls an op and takes over what it changed; returns its result.
    #[inline(never)]
    fn call_cc(&mut self, cx: &Cx, op: Op) -> u32 {
        self.call_cc_out(cx, op).ret
    }

    /// The same; returns all that it said.
    #[inline(always)]
    fn call_cc_out(&mut self, cx: &Cx, op: Op) -> CcOut {
        self.show(cx);
        self.run_cc(cx, op)
    }

    /// Calls an op once more in one ACK, with nothing changed since that the algorithm is shown, but for the limit of the
    /// application.
    #[inline(always)]
    fn call_cc_again(&mut self, cx: &Cx, op: Op) -> CcOut {
        self.cc.app_limited = self.rate.app_limited();
        if cfg!(debug_assertions) {
            let shown = self.cc;
            self.show(cx);
            assert_eq!(shown, self.cc, "it was shown");
        }
        self.run_cc(cx, op)
    }

    /// Shows the algorithm where the connection stands.
    #[inline(always)]
    fn show(&mut self, cx: &Cx) {
        let cc = &mut self.cc;
        cc.now_us = cx.now_us();
        cc.clock_ns = cx.now_ns();
        cc.jiffies = cx.jiffies();
        cc.snd_una = self.snd_una as u32;
        cc.snd_nxt = self.snd_nxt as u32;
        cc.rcv_nxt = self.rx.rcv_nxt() as u32;
        let flight = self.board.flight();
        cc.packets_out = flight.packets_out;
        cc.sacked_out = flight.sacked_out;
        cc.lost_out = flight.lost_out;
        cc.retrans_out = flight.retrans_out;
        cc.delivered = self.board.delivered();
        cc.lost = self.board.lost();
        cc.reordering = self.board.reordering();
        cc.app_limited = self.rate.app_limited();
        cc.wstamp_ns = self.pacer.next_ns();
        cc.ca_state = self.recovery.state() as u32;
    }

    #[inline(always)]
    fn run_cc(&mut self, cx: &Cx, op: Op) -> CcOut {
        let cc = &mut self.cc;
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
        if unlikely(out.random_drawn != 0) {
            cc.random = self.rng.next_u32();
        }
        debug_assert!(out.snd_cwnd >= 1, "an algorithm never closes the window");
        cc.pacing_rate = out.pacing_rate.min(cc.max_pacing_rate);
        if unlikely(out.pacing_status != cc.pacing_status)
            && cc.pacing_status == knee_cc::PacingStatus::None as u32
            && self.pacer.has_timer()
        {
            cc.pacing_status = out.pacing_status;
        }
        cc.snd_cwnd_cnt = out.snd_cwnd_cnt;
        cc.snd_ssthresh = out.snd_ssthresh;
        self.rate.set_app_limited(out.app_limited);
        if unlikely(out.snd_cwnd != cc.snd_cwnd) {
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

    #[inline(never)]
    fn cwnd_event(&mut self, cx: &Cx, event: knee_cc::Event) {
        if self.alg.has(Op::CwndEvent) {
            self.cc.event = event as u32;
            self.call_cc(cx, Op::CwndEvent);
        }
    }

    /// The window and what is in flight were as they are until now.
    #[inline]
    fn integrate(&mut self, now_ns: u64) {
        let in_flight = self.packets_in_flight();
        self.means.integrate(now_ns, self.cc.snd_cwnd, in_flight);
    }

    /// Out of line: most calls of an algorithm change nothing.
    #[inline(never)]
    fn set_cwnd(&mut self, cx: &Cx, snd_cwnd: u32) {
        self.integrate(cx.now_ns());
        self.cc.snd_cwnd = snd_cwnd;
    }

    fn set_ca_state(&mut self, cx: &mut Cx, state: CaState) {
        if self.alg.has(Op::SetState) {
            // The op sees the state it leaves in ca_state, as in Linux.
            self.cc.state = state as u32;
            self.call_cc(cx, Op::SetState);
        }
        cx.events.extend(self.recovery.change(state));
    }
}

#[cfg(test)]
mod tests {
    use super::testing::sender;
    use super::*;
    use crate::segment::Slab;

    /// Its first draw is due after ten seconds.
    #[test]
    fn an_op_that_draws_nothing_leaves_the_draw_to_the_next() {
        let conf = HostConf::untuned();
        let drawn_after = |calls: u64| {
            let mut tcp = sender(&conf, "nv", &[]);
            let mut call = |op: Op, now_s: u64| {
                let cx = Cx {
                    now: &Clock::at(now_s * 1_000_000_000, &conf),
                    host: &conf,
                    slab: &mut Slab::default(),
                    out: &mut Vec::new(),
                    events: &mut Vec::new(),
                };
                (tcp.cc.ack_rtt_us, tcp.cc.ack_in_flight_bytes) = (10_000, 1_000);
                tcp.call_cc(&cx, op);
                tcp.cc.random
            };
            call(Op::Init, 1);
            let first = (0..calls).map(|_| call(Op::PktsAcked, 2)).last();
            (first, call(Op::PktsAcked, 100))
        };
        let (first, second) = drawn_after(1);
        assert_ne!(first, Some(second));
        assert_eq!(drawn_after(7), (first, second));
    }
}
