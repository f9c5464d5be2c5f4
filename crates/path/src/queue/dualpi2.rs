//! Two queues, coupled: senders whose reaction to marks is in proportion (L4S:
//! DCTCP, Prague) wait in one of their own, where marks are frequent and the
//! wait is short; classic senders wait in the other, whose length a PI
//! controller keeps. What it computes is squared for classic senders and
//! multiplied for the others, so that both get about the same window.
//!
//! ```text
//! every tupdate:  p = p + alpha * (wait - target) + beta * (wait - wait before)
//! classic:        dropped or marked with p^2
//! L4S:            marked with k * p, and always when it waited longer than step
//!                 and min_qlen_step or more L4S packets waited when it came
//! overload:       k * p > 1: both are dropped with p^2, whatever their ECN
//! ```
//!
//! Source: RFC 9332, appendix A; Linux 6.17 net/sched/sch_dualpi2.c;
//! De Schepper et al.: PI2, CoNEXT 2016.
//!
//! Kernels differ in `min_qlen_step`. Linux 6.17 and later have it as an option,
//! 0 by default: the step holds for every packet. Those before it, out of tree
//! (L4STeam/linux, google/bbr, the patch to netdev of August 2019), have no such
//! option and 2 built in: a packet is marked by the step only when two others
//! waited in front of it. RFC 9332 has Th_len, 1 packet. It decides below
//! 12 Mbit/s, where one packet of 1500 bytes takes longer than the step of 1 ms.
//!
//! Differs from the RFC, as Linux does: the queue of L4S goes first unless
//! classic packets have been passed over for nine tenths of the bytes (a
//! weighted round robin and not time-shifted FIFOs); marks of L4S and the
//! coupled marks come from one draw each, not from a ramp.
//! Differs from Linux: probabilities are floating point, where Linux has 32
//! bits; there is no limit of the queue's own, path.buffer is one.

use std::collections::VecDeque;

use knee_units::params::{Param, Params, Unit};
use knee_units::rng::Stream;
use knee_units::{Nanos, Rate};

use super::{Queue, QueueKind, Setup};
use crate::packet::{Ecn, Packet};
use crate::queue::BufferLimit;

const LINUX: &str = "RFC 9332 appendix A.1; Linux net/sched/sch_dualpi2.c: dualpi2_reset_default()";

pub(super) const KIND: QueueKind = QueueKind {
    name: "dualpi2",
    summary: "two coupled queues: L4S senders wait little and are marked often, classic ones are kept at a target by a PI controller",
    source: "RFC 9332; Linux net/sched/sch_dualpi2.c",
    params: &[
        Param {
            name: "target",
            unit: Unit::Time,
            default: 15e6,
            min: 1e3,
            max: 1e10,
            doc: "wait of classic packets that the controller aims at",
            source: LINUX,
        },
        Param {
            name: "tupdate",
            unit: Unit::Time,
            default: 16e6,
            min: 1e6,
            max: 1e10,
            doc: "how often the probability is computed",
            source: LINUX,
        },
        Param {
            name: "alpha",
            unit: Unit::Number,
            default: 0.16,
            min: 0.0,
            max: 1e3,
            doc: "gain of the wait's distance from the target, Hz",
            source: LINUX,
        },
        Param {
            name: "beta",
            unit: Unit::Number,
            default: 3.2,
            min: 0.0,
            max: 1e4,
            doc: "gain of the wait's growth, Hz",
            source: LINUX,
        },
        Param {
            name: "coupling",
            unit: Unit::Number,
            default: 2.0,
            min: 1.0,
            max: 255.0,
            doc: "L4S packets are marked with so many times the probability whose square classic packets are dropped with",
            source: LINUX,
        },
        Param {
            name: "step",
            unit: Unit::Time,
            default: 1e6,
            min: 0.0,
            max: 1e10,
            doc: "L4S packets that waited longer are marked",
            source: LINUX,
        },
        Param {
            name: "min_qlen_step",
            unit: Unit::Count,
            default: 0.0,
            min: 0.0,
            max: 4_294_967_295.0,
            doc: "the step holds for a packet that came when so many L4S packets or more waited; 0: for every one. Kernels before 6.17, out of tree, have 2 built in (L4STeam/linux, google/bbr); RFC 9332 has Th_len = 1 packet",
            source: "Linux 6.17 net/sched/sch_dualpi2.c: dualpi2_reset_default(), skb_apply_step(); tc-dualpi2(8)",
        },
        Param {
            name: "classic_protection",
            unit: Unit::Share,
            default: 0.1,
            min: 0.0,
            max: 1.0,
            doc: "share of the link that classic packets get at least while both kinds wait",
            source: LINUX,
        },
        Param {
            name: "drop_overload",
            unit: Unit::Flag,
            default: 1.0,
            min: 0.0,
            max: 1.0,
            doc: "upon overload drop L4S packets too; false: mark them and let the queue grow",
            source: LINUX,
        },
    ],
    conflict: None,
    caution: Some(step_below_a_packet),
    build: |setup| Box::new(DualPi2::new(setup)),
};

fn step_below_a_packet(params: &Params, rate: Rate, packet_bytes: u32) -> Option<String> {
    let (step, packet) = (
        Nanos(params.int("step")),
        rate.transmit_time(packet_bytes.into()),
    );
    (params.int("min_qlen_step") == 0 && packet > step).then(|| {
        format!(
            "a packet of {packet_bytes} bytes takes {packet} at {rate}, longer than dualpi2.step = {step}, so an L4S packet \
             is marked whenever one is in front of it, as in Linux 6.17 and later by default; \
             dualpi2.min_qlen_step = 1 (RFC 9332) or 2 (kernels before) mends that"
        )
    })
}

/// Of the shares that classic protection weighs with.
const WEIGHTS: f64 = 10_000.0;

struct Settings {
    target: Nanos,
    tupdate: Nanos,
    alpha: f64,
    beta: f64,
    coupling: f64,
    step: Nanos,
    min_qlen_step: usize,
    /// Of [`WEIGHTS`].
    classic_weight: i64,
    drop_overload: bool,
    /// Less than this behind the head, and nothing is dropped or marked at random.
    least_backlog_bytes: u64,
    /// Credit of the round robin when nothing waits, weighted bytes.
    initial_credit: i64,
}

impl Settings {
    fn new(params: &Params, max_packet_bytes: u32) -> Settings {
        let classic_weight = (params.get("classic_protection") * WEIGHTS).round() as i64;
        Settings {
            target: Nanos(params.int("target")),
            tupdate: Nanos(params.int("tupdate")),
            alpha: params.get("alpha"),
            beta: params.get("beta"),
            coupling: params.get("coupling"),
            step: Nanos(params.int("step")),
            min_qlen_step: params.int("min_qlen_step") as usize,
            classic_weight,
            drop_overload: params.flag("drop_overload"),
            least_backlog_bytes: 2 * u64::from(max_packet_bytes),
            initial_credit: i64::from(max_packet_bytes) * (2 * classic_weight - WEIGHTS as i64),
        }
    }
}

/// The controller.
struct Pi {
    probability: f64,
    /// The wait when it was last computed, s.
    wait_s: f64,
    /// When it is computed again; `None` before the first packet.
    next: Option<Nanos>,
}

/// A packet of the L4S queue.
struct Waiting {
    packet: Packet,
    /// Were enough others there when it came?
    apply_step: bool,
}

struct DualPi2 {
    l4s: VecDeque<Waiting>,
    classic: VecDeque<Packet>,
    bytes: u64,
    limit: BufferLimit,
    settings: Settings,
    pi: Pi,
    /// At most 0: it is L4S's turn. In weighted bytes.
    credit: i64,
    rng: Stream,
}

/// What is to be done with a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl DualPi2 {
    fn new(setup: Setup) -> DualPi2 {
        let settings = Settings::new(&setup.params, setup.max_packet_bytes);
        DualPi2 {
            l4s: VecDeque::new(),
            classic: VecDeque::new(),
            bytes: 0,
            limit: setup.limit,
            pi: Pi {
                probability: 0.0,
                wait_s: 0.0,
                next: None,
            },
            credit: settings.initial_credit,
            settings,
            rng: setup.rng,
        }
    }

    /// Computes the probability as often as it was due since the last call.
    /// Nothing came and nothing left meanwhile, so this is exact.
    #[inline]
    fn catch_up(&mut self, now: Nanos) {
        let next = *self.pi.next.get_or_insert(now + self.settings.tupdate);
        if now >= next {
            self.update(next, now);
        }
    }

    #[cold]
    fn update(&mut self, first: Nanos, now: Nanos) {
        let times = (now - first).0 / self.settings.tupdate.0 + 1;
        let l4s = self.l4s.front().map(|waiting| &waiting.packet);
        let head = [l4s, self.classic.front()];
        let oldest = head.into_iter().flatten().map(|p| p.enqueued).min();
        let mut at = first;
        for done in 1..=times {
            let wait = oldest.map_or(Nanos::ZERO, |came| at.saturating_sub(came));
            self.step_controller(wait);
            if oldest.is_none() {
                // From the second time on an empty queue takes off the same.
                let rest = (times - done) as f64;
                let less = rest * self.settings.alpha * self.settings.target.as_secs_f64();
                self.pi.probability = (self.pi.probability - less).max(0.0);
                break;
            }
            at += self.settings.tupdate;
        }
        self.pi.next = Some(first + self.settings.tupdate * times);
    }

    fn step_controller(&mut self, wait: Nanos) {
        let (s, wait_s) = (&self.settings, wait.as_secs_f64());
        let change =
            s.alpha * (wait_s - s.target.as_secs_f64()) + s.beta * (wait_s - self.pi.wait_s);
        // Without drops L4S' share of marks, k * p, ends at all of them.
        let most = if s.drop_overload {
            1.0
        } else {
            1.0 / s.coupling
        };
        self.pi.wait_s = wait_s;
        self.pi.probability = (self.pi.probability + change).clamp(0.0, most);
    }

    /// The queue whose turn it is, and what its packet's bytes weigh.
    fn turn(&mut self) -> Option<(bool, i64)> {
        let both = !self.l4s.is_empty() && !self.classic.is_empty();
        if !self.l4s.is_empty() && (self.classic.is_empty() || self.credit <= 0) {
            Some((
                true,
                if both {
                    self.settings.classic_weight
                } else {
                    0
                },
            ))
        } else if !self.classic.is_empty() {
            let weight = self.settings.classic_weight - WEIGHTS as i64;
            Some((false, if both { weight } else { 0 }))
        } else {
            self.credit = self.settings.initial_credit;
            None
        }
    }

    fn happens(&mut self, probability: f64) -> bool {
        f64::from(self.rng.next_u32()) < probability * 4_294_967_296.0
    }

    /// `apply_step`: may the step mark it?
    fn judge(&mut self, is_l4s: bool, apply_step: bool, packet: &Packet, now: Nanos) -> Verdict {
        let p = self.pi.probability;
        let mut verdict = Verdict::Pass;
        if p > 0.0 && self.bytes >= self.settings.least_backlog_bytes {
            let coupled = p * self.settings.coupling;
            let overload = coupled > 1.0;
            if !is_l4s || overload && self.settings.drop_overload {
                // Two draws are the square.
                let hit = self.happens(p) && self.happens(p);
                verdict = match (hit, is_l4s) {
                    (true, _) if overload || packet.ecn == Ecn::NotEct => Verdict::Drop,
                    (true, _) | (false, true) => Verdict::Mark,
                    (false, false) => Verdict::Pass,
                };
            } else if overload || self.happens(coupled) {
                verdict = Verdict::Mark;
            }
        }
        let waited = now.saturating_sub(packet.enqueued);
        if apply_step && verdict == Verdict::Pass && waited > self.settings.step {
            verdict = Verdict::Mark;
        }
        verdict
    }
}

/// ECT(1), and CE, which may have been ECT(1). RFC 9331 section 5.1.
fn is_l4s(packet: &Packet) -> bool {
    matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce)
}

impl Queue for DualPi2 {
    #[inline]
    fn enqueue(&mut self, now: Nanos, mut packet: Packet, dropped: &mut Vec<Packet>) {
        self.catch_up(now);
        packet.enqueued = now;
        let bytes = self.bytes + u64::from(packet.bytes);
        if !self.limit.holds(self.len_pkts() + 1, bytes) {
            dropped.push(packet);
            return;
        }
        self.bytes = bytes;
        if is_l4s(&packet) {
            let apply_step = self.l4s.len() >= self.settings.min_qlen_step;
            self.l4s.push_back(Waiting { packet, apply_step });
        } else {
            self.classic.push_back(packet);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.catch_up(now);
        loop {
            let (l4s, weight) = self.turn()?;
            let (mut packet, apply_step) = if l4s {
                let waiting = self.l4s.pop_front()?;
                (waiting.packet, waiting.apply_step)
            } else {
                (self.classic.pop_front()?, false)
            };
            self.bytes -= u64::from(packet.bytes);
            match self.judge(l4s, apply_step, &packet, now) {
                Verdict::Drop => {
                    dropped.push(packet);
                    continue;
                }
                Verdict::Mark => packet.ecn = Ecn::Ce,
                Verdict::Pass => {}
            }
            self.credit += weight * i64::from(packet.bytes);
            return Some(packet);
        }
    }

    fn len_pkts(&self) -> u32 {
        (self.l4s.len() + self.classic.len()) as u32
    }

    fn len_bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
