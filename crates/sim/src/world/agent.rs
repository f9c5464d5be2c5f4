//! A run in which somebody decides for one connection: it stops where he is asked, and goes on with what he answers.

use knee_cc::CcIn;
use knee_scenario::Cell;
use knee_tables::QueueSample;
use knee_tcp::{Answer, Asks, Since};
use knee_units::{NEVER, Nanos};

use super::World;
use super::plan::Plan;
use crate::event::{EndpointId, Side};
use crate::{Decisions, Options, SimError};

/// The connection that the agent decides for.
pub struct Seat {
    pub number: u32,
    decisions: Decisions,
    /// When it decides next by the clock; NEVER: not before it is asked at its opening.
    next_ns: u64,
    /// When it decided last, or the start.
    decided_ns: u64,
}

/// What the agent's end knows.
#[derive(Clone, Debug)]
pub struct Sight {
    /// After the start.
    pub t: Nanos,
    /// Since the last decision; of the first, since the start.
    pub step: Nanos,
    pub cc: CcIn,
    pub since: Since,
    pub in_flight: u32,
    pub rttvar_us: u32,
    pub notsent_bytes: u64,
    pub delivery_rate_bits_per_sec: u64,
    pub delivery_rate_app_limited: bool,
    /// Is all that the connection was to carry delivered?
    pub is_complete: bool,
}

/// What only the simulator knows.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Of each hop, with its counters.
    pub queues: Vec<QueueSample>,
    /// Payload that the receivers of all other flows have read so far, and how many of those have begun and are not done.
    pub others_read_bytes: u64,
    pub others: u32,
}

impl Seat {
    /// The agent's, if there is one.
    pub fn find(
        cell: &Cell,
        plan: &Plan,
        options: &Options,
        boot_ns: u64,
    ) -> Result<Option<Seat>, SimError> {
        let Some(steered) = options.agent else {
            return Ok(None);
        };
        let refuse = |what: String| Err(SimError::NoSeat { what });
        if [&cell.sender, &cell.receiver]
            .iter()
            .any(|host| host.costs.is_some())
        {
            let what = "its hosts have processors; expected a scenario without `costs`";
            return refuse(what.into());
        }
        let of_group = |(number, one): (u32, &knee_scenario::Connection)| {
            (one.group == steered.group).then_some(number)
        };
        let numbers: Vec<u32> = (0..).zip(&plan.list).filter_map(of_group).collect();
        let [number] = numbers[..] else {
            let name = &cell.flows[steered.group].name;
            let count = numbers.len();
            let what = format!("flow \"{name}\" has {count} connections; expected one");
            return refuse(what);
        };
        Ok(Some(Seat {
            number,
            decisions: steered.decisions,
            next_ns: NEVER,
            decided_ns: boot_ns,
        }))
    }

    pub fn asks(&self) -> Asks {
        match self.decisions {
            Decisions::EachAck => Asks::EachAck,
            Decisions::EachRound => Asks::EachRound,
            Decisions::Every(_) => Asks::NoAck,
        }
    }
}

impl World {
    /// Runs on until the agent is to decide; false: the run, or its connection, is over before.
    ///
    /// # Panics
    /// The run has no agent ([`Options::agent`]).
    pub fn next_decision(&mut self) -> bool {
        let (number, next_ns) = (self.seat().number, self.seat().next_ns);
        let next = Nanos(next_ns.saturating_sub(self.boot_ns));
        self.advance(next, &mut |_, _| true);
        let waits = |flow: &crate::flow::Flow| flow.ends[0].tcp.waits_for_agent();
        if self.conns.flows.get(number).is_some_and(waits) {
            return true;
        }
        !self.is_over() && self.now_ns >= next_ns
    }

    /// The agent decides, now.
    pub fn decide(&mut self, answer: Answer) {
        let now_ns = self.now_ns;
        let seat = self.seat.as_mut().expect(NO_AGENT);
        seat.decided_ns = now_ns;
        if let Decisions::Every(interval) = seat.decisions {
            seat.next_ns = now_ns + interval.0.max(1);
        }
        let id = EndpointId::new(seat.number, Side::Sender);
        let mut turn = self.begin(id);
        self.call(&mut turn, |tcp, cx| tcp.on_answer(cx, answer));
        self.wake_app(&mut turn, false);
        self.end(turn);
        self.send_out();
    }

    /// What the agent's end knows; `None`: its connection is not open yet.
    pub fn sight(&self) -> Option<Sight> {
        let flow = self.conns.flows.get(self.seat().number)?;
        let tcp = &flow.ends[0].tcp;
        Some(Sight {
            t: self.now(),
            step: Nanos(self.now_ns - self.seat().decided_ns),
            cc: tcp.cc,
            since: tcp.since_answer(),
            in_flight: tcp.packets_in_flight(),
            rttvar_us: tcp.rttvar_us(),
            notsent_bytes: tcp.notsent_bytes(),
            delivery_rate_bits_per_sec: tcp.delivery_rate_bits_per_sec(),
            delivery_rate_app_limited: tcp.delivery_rate_app_limited(),
            is_complete: flow.final_times.is_some(),
        })
    }

    /// What only the simulator knows. Asking changes nothing of the run, but for maxima of the `queue` table.
    pub fn truth(&mut self) -> Truth {
        let now_ns = self.now_ns;
        self.settle(now_ns - 1);
        let queues = self.ways[Side::Receiver as usize].sample(now_ns).collect();
        let (mut others_read_bytes, mut others) = (0, 0);
        for number in 0..self.conns.flows.count() as u32 {
            if let Some(flow) = self.conns.flows.get(number)
                && number != self.seat().number
            {
                others_read_bytes += flow.ends[1].tcp.rx.bytes_read();
                others += u32::from(flow.final_times.is_none());
            }
        }
        Truth {
            queues,
            others_read_bytes,
            others,
        }
    }

    fn seat(&self) -> &Seat {
        self.seat.as_ref().expect(NO_AGENT)
    }
}

const NO_AGENT: &str = "the run has an agent";
