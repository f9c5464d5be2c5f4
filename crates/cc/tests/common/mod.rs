//! A connection for tests: an algorithm, the stack's fields, and the few things the stack does around an op.

#![allow(dead_code)] // each test file uses its part

pub mod digest;

use knee_cc::{
    ACK_STATE_ECHO, CaState, CcIn, CcOut, Event, INFINITE_SSTHRESH, Info, Instance, Op,
    PacingStatus, find,
};

pub const MSS_BYTES: u32 = 1448;
pub const HZ: u32 = 1000;

#[derive(Clone)]
pub struct Conn {
    algorithm: Instance,
    pub stack: CcIn,
    /// What the last op asked of the receiving half: `ack_prior`, `ack_prior_seq`, `ack_now`.
    pub acks: (u32, u32, u32),
}

impl Conn {
    pub fn new(name: &str, params: &[(&str, u32)]) -> Conn {
        let stack = CcIn {
            now_us: 5_000_000,
            max_pacing_rate: u64::MAX,
            jiffies: 5000,
            lsndtime: 5000,
            hz: HZ,
            snd_cwnd: 10,
            snd_cwnd_clamp: u32::MAX,
            snd_ssthresh: INFINITE_SSTHRESH,
            min_rtt_us: u32::MAX,
            mss_bytes: MSS_BYTES,
            gso_max_bytes: 65536,
            is_cwnd_limited: 1,
            delivered: 1,
            ..CcIn::default()
        };
        let algorithm = Instance::new(find(name).unwrap(), params).unwrap();
        let mut conn = Conn {
            algorithm,
            stack,
            acks: (0, 0, 0),
        };
        conn.op(Op::Init);
        conn
    }

    /// Runs one op as the stack does: `out` filled before, copied back after. Returns `out.ret`.
    pub fn op(&mut self, op: Op) -> u32 {
        let mut out = CcOut {
            pacing_rate: self.stack.pacing_rate,
            pacing_status: self.stack.pacing_status,
            snd_cwnd: self.stack.snd_cwnd,
            snd_cwnd_cnt: self.stack.snd_cwnd_cnt,
            snd_ssthresh: self.stack.snd_ssthresh,
            app_limited: self.stack.app_limited,
            ecn_echo: self.stack.ack_state & ACK_STATE_ECHO,
            ..CcOut::default()
        };
        self.algorithm.call(op, &self.stack, &mut out);
        assert!(out.snd_cwnd >= 1, "{op:?} set snd_cwnd to 0");
        self.stack.pacing_rate = out.pacing_rate;
        self.stack.pacing_status = out.pacing_status;
        self.stack.snd_cwnd = out.snd_cwnd;
        self.stack.snd_cwnd_cnt = out.snd_cwnd_cnt;
        self.stack.snd_ssthresh = out.snd_ssthresh;
        self.stack.app_limited = out.app_limited;
        self.stack.ack_state = self.stack.ack_state & !ACK_STATE_ECHO | out.ecn_echo;
        self.acks = (out.ack_prior, out.ack_prior_seq, out.ack_now.into());
        out.ret
    }

    pub fn info(&self) -> Option<Info> {
        self.algorithm.info(&self.stack)
    }

    pub fn cwnd(&self) -> u32 {
        self.stack.snd_cwnd
    }

    pub fn pass_us(&mut self, us: u64) {
        let ticks = |t: u64| t * u64::from(self.stack.hz) / 1_000_000;
        let elapsed = ticks(self.stack.now_us + us) - ticks(self.stack.now_us);
        self.stack.now_us += us;
        self.stack.clock_ns = self.stack.now_us * 1000;
        self.stack.wstamp_ns = self.stack.clock_ns;
        self.stack.jiffies = self.stack.jiffies.wrapping_add(elapsed as u32);
        self.stack.lsndtime = self.stack.jiffies;
    }

    /// An ACK for `acked` packets, for an algorithm with `cong_avoid`: the RTT sample first, then the growth.
    pub fn ack(&mut self, acked: u32, rtt_us: i64) {
        self.stack.acked = acked;
        self.stack.ack_rtt_us = rtt_us;
        self.stack.max_packets_out = self.stack.snd_cwnd;
        self.stack.snd_una = self.stack.snd_una.wrapping_add(acked * MSS_BYTES);
        self.stack.snd_nxt = self
            .stack
            .snd_una
            .wrapping_add(self.stack.snd_cwnd * MSS_BYTES);
        self.op(Op::PktsAcked);
        self.op(Op::InAckEvent);
        self.op(Op::CongAvoid);
    }

    /// One window acked in ACKs of two packets, evenly over `rtt_us`.
    pub fn round(&mut self, rtt_us: u32) {
        let acks = (self.cwnd() / 2).max(1);
        for _ in 0..acks {
            self.pass_us(u64::from((rtt_us / acks).max(1)));
            self.ack(2, rtt_us.into());
        }
        self.pass_us(u64::from(rtt_us - rtt_us / acks * acks));
    }

    /// A loss repaired by fast recovery, seen from its end: `snd_cwnd` is `snd_ssthresh`.
    pub fn lose(&mut self) {
        self.stack.prior_cwnd = self.cwnd();
        self.stack.snd_ssthresh = self.op(Op::Ssthresh);
        self.set_state(CaState::Recovery);
        self.stack.snd_cwnd = self.stack.snd_ssthresh;
        self.event(Event::CompleteCwr);
        self.set_state(CaState::Open);
    }

    /// A retransmission timeout, as Linux enters it.
    pub fn time_out(&mut self) {
        self.stack.prior_cwnd = self.cwnd();
        self.stack.snd_ssthresh = self.op(Op::Ssthresh);
        self.event(Event::Loss);
        self.stack.snd_cwnd = 1;
        self.set_state(CaState::Loss);
    }

    pub fn set_state(&mut self, state: CaState) {
        self.stack.state = state as u32;
        self.op(Op::SetState);
        self.stack.ca_state = state as u32;
    }

    pub fn event(&mut self, event: Event) {
        self.stack.event = event as u32;
        self.op(Op::CwndEvent);
    }

    pub fn paced(mut self) -> Conn {
        self.stack.pacing_status = PacingStatus::Needed as u32;
        self
    }
}
