//! Somebody in the place of an algorithm who cannot be called: the endpoint stops where an algorithm would be called, waits
//! for an answer, and goes on as if an algorithm had given it.
//!
//! As with an algorithm that has cong_control(), the window is the agent's own in recovery too; a timeout closes it, as it
//! closes everybody's. What Linux asks at a loss (ssthresh, undo) the algorithm below answers.

use knee_cc::{CcIn, PacingStatus};
use knee_kit::odds::unlikely;

use super::input::Rexmit;
use super::{Cx, Endpoint, State};

/// In the log of an endpoint ([`Cx::events`]): the agent is asked, and the endpoint waits.
pub const ASKS: &str = "asks";

/// At which ACKs the agent is asked, besides at the connection's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// At each of which an algorithm with cong_control() is told.
    EachAck,
    /// At the first of each round trip: of a packet that was sent after the round before had begun.
    EachRound,
    /// At none: others say when.
    NoAck,
}

/// What the agent answers. What it leaves out stays as it is; a pacing rate that it never gave is the stack's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Segments; 0 counts as 1.
    pub snd_cwnd: Option<u32>,
    /// Bytes/s.
    pub pacing_rate: Option<u64>,
}

/// What came since the last answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// ACKs of which an algorithm would have been told.
    pub acks: u32,
    /// Did one of them move `snd_una`?
    pub una_advanced: bool,
    /// RTTs measured: how many, their sum and the least.
    pub rtts: u32,
    pub rtt_sum_us: u64,
    pub least_rtt_us: u32,
    /// Segments, retransmissions too.
    pub sent: u32,
    pub retransmitted: u32,
    pub delivered: u32,
    pub delivered_ce: u32,
    /// Segments marked lost.
    pub lost: u32,
    pub acked_bytes: u64,
}

/// Counters of a connection as they are now, or were at the last answer.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: u64,
    retransmitted: u64,
    delivered: u32,
    delivered_ce: u32,
    lost: u32,
    acked_bytes: u64,
}

pub struct Agent {
    asks: Asks,
    /// Did it ever give a pacing rate?
    paces: bool,
    /// The round is over when a packet is acked that was sent when so many had been delivered.
    round_end: u32,
    /// What the endpoint was about to do when it stopped; `None`: the connection had just opened.
    left: Option<Rexmit>,
    before: Counts,
    /// Of ACKs alone.
    acks: Since,
}

impl Agent {
    fn new(asks: Asks) -> Agent {
        Agent {
            asks,
            paces: false,
            round_end: 0,
            left: None,
            before: Counts::default(),
            acks: Since::default(),
        }
    }

    /// An ACK came; is the agent asked?
    fn on_ack(&mut self, cc: &CcIn, una_advanced: bool) -> bool {
        let since = &mut self.acks;
        since.acks += 1;
        since.una_advanced |= una_advanced;
        if let Ok(rtt_us) = u32::try_from(cc.rs_rtt_us) {
            since.least_rtt_us = match since.rtts {
                0 => rtt_us,
                _ => since.least_rtt_us.min(rtt_us),
            };
            since.rtts += 1;
            since.rtt_sum_us += u64::from(rtt_us);
        }
        match self.asks {
            Asks::EachAck => true,
            Asks::NoAck => false,
            Asks::EachRound => {
                let ends = cc.rs_has_tx != 0
                    && cc.rs_prior_delivered.wrapping_sub(self.round_end) as i32 >= 0;
                if ends {
                    self.round_end = cc.delivered;
                }
                ends
            }
        }
    }
}

impl Endpoint {
    /// From its opening on an agent decides for this end.
    pub fn give_to_agent(&mut self, asks: Asks) {
        self.has_cong_control = true;
        self.agent = Some(Box::new(Agent::new(asks)));
    }

    /// Does it wait for the agent's answer?
    pub fn waits_for_agent(&self) -> bool {
        self.state == State::Waiting
    }

    /// The connection has opened: the agent is asked before the first packet of data.
    pub(super) fn ask_at_opening(&mut self, cx: &mut Cx) {
        if unlikely(self.agent.is_some()) {
            self.show(cx);
            self.stop(cx);
        }
    }

    /// An ACK of which an algorithm would have been told; the agent is asked, or it goes on as before.
    #[cold]
    pub(super) fn tell_agent(&mut self, cx: &mut Cx, una_advanced: bool) {
        self.show(cx);
        let agent = self.agent.as_mut().expect("there is an agent");
        let (asked, paces) = (agent.on_ack(&self.cc, una_advanced), agent.paces);
        if asked && self.state == State::Established {
            self.stop(cx);
        } else if !asked && !paces {
            self.update_pacing_rate(cx);
        }
    }

    fn stop(&mut self, cx: &mut Cx) {
        self.state = State::Waiting;
        cx.events.push(ASKS);
    }

    /// It would go on with that, and waits.
    #[cold]
    pub(super) fn leave_until_answer(&mut self, rexmit: Rexmit) {
        let agent = self.agent.as_mut().expect("it waits for an agent");
        if rexmit != Rexmit::None || agent.left.is_none() {
            agent.left = Some(rexmit);
        }
    }

    /// What the agent decided holds from now on, and the endpoint goes on where it stopped, if it did.
    pub fn on_answer(&mut self, cx: &mut Cx, answer: Answer) {
        if let Some(snd_cwnd) = answer.snd_cwnd {
            let snd_cwnd = snd_cwnd.clamp(1, self.cc.snd_cwnd_clamp);
            if snd_cwnd != self.cc.snd_cwnd {
                self.set_cwnd(cx, snd_cwnd);
            }
        }
        let before = self.counts();
        let agent = self.agent.as_mut().expect("there is an agent");
        (agent.before, agent.acks) = (before, Since::default());
        agent.paces |= answer.pacing_rate.is_some();
        let (paces, left) = (agent.paces, agent.left.take());
        if let Some(rate) = answer.pacing_rate {
            self.cc.pacing_rate = rate.clamp(1, self.cc.max_pacing_rate);
            if self.cc.pacing_status == PacingStatus::None as u32 && self.pacer.has_timer() {
                self.cc.pacing_status = PacingStatus::Needed as u32;
            }
        } else if !paces {
            self.update_pacing_rate(cx);
        }
        match self.state {
            State::Waiting => self.state = State::Established,
            State::Established => {
                self.send_after_ack(cx);
                return;
            }
            _ => return,
        }
        if let Some(rexmit) = left {
            self.send_retransmissions(cx, rexmit);
            self.send_after_ack(cx);
        }
    }

    fn counts(&self) -> Counts {
        Counts {
            sent: self.counters.data_segs_out,
            retransmitted: self.counters.total_retrans,
            delivered: self.board.delivered(),
            delivered_ce: self.ecn.delivered_ce(),
            lost: self.board.lost(),
            acked_bytes: self.counters.bytes_acked,
        }
    }

    /// What came since the agent's last answer.
    pub fn since_answer(&self) -> Since {
        let Some(agent) = &self.agent else {
            return Since::default();
        };
        let (now, before) = (self.counts(), &agent.before);
        Since {
            sent: (now.sent - before.sent) as u32,
            retransmitted: (now.retransmitted - before.retransmitted) as u32,
            delivered: now.delivered.wrapping_sub(before.delivered),
            delivered_ce: now.delivered_ce.wrapping_sub(before.delivered_ce),
            lost: now.lost.wrapping_sub(before.lost),
            acked_bytes: now.acked_bytes - before.acked_bytes,
            ..agent.acks
        }
    }
}
