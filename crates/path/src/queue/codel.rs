//! Controlled delay: a queue may absorb a burst, but not stand. When the time
//! that packets wait has not been below `target` for a whole `interval`, the
//! head of the queue is dropped, and dropped again ever sooner, until the
//! wait is below the target once. The rate of the link need not be known.
//!
//! ```text
//! next drop = last drop + interval / sqrt(count)        count: drops since the queue stands
//! ```
//!
//! Source: RFC 8289; Nichols, Jacobson: Controlling Queue Delay, ACM Queue
//! 10(5) 2012; Linux 6.12 include/net/codel_impl.h, net/sched/sch_codel.c.
//!
//! Differs from the RFC, as Linux does: 1/sqrt(count) comes from one step of
//! Newton's method for each drop, in 16 bits; the second interval is therefore
//! interval / 2 and not interval / 1.41, later ones are right within 3 %.
//! Differs from Linux: where the step would diverge (fq_codel adds to the
//! count in one go) the root is computed, while Linux' 64 bits wrap around;
//! time counts in ns, not in units of 1,024 ns.

use knee_units::Nanos;
use knee_units::params::{Param, Params, Unit};

use super::fifo::Fifo;
use super::{Queue, QueueKind, Setup};
use crate::packet::Packet;

pub(super) const KIND: QueueKind = QueueKind {
    name: "codel",
    summary: "controlled delay: drops at the head, ever sooner, while packets wait longer than a target",
    source: "RFC 8289; Linux net/sched/sch_codel.c",
    params: &[
        TARGET,
        INTERVAL,
        Param {
            name: "ecn",
            default: 0.0,
            source: "Linux include/net/codel_impl.h",
            ..ECN
        },
        CE_THRESHOLD,
    ],
    conflict: None,
    caution: None,
    build: |setup| Box::new(CodelQueue::new(&setup)),
};

pub(super) const TARGET: Param = Param {
    name: "target",
    unit: Unit::Time,
    default: 5e6,
    min: 1e3,
    max: 1e10,
    doc: "wait that is acceptable for good",
    source: "RFC 8289 section 4.3; Linux include/net/codel_impl.h",
};

pub(super) const INTERVAL: Param = Param {
    name: "interval",
    unit: Unit::Time,
    default: 1e8,
    min: 1e4,
    max: 1e11,
    doc: "how long a wait above the target is a burst; of the order of the largest common round-trip time",
    source: "RFC 8289 section 4.2; Linux include/net/codel_impl.h",
};

pub(super) const ECN: Param = Param {
    name: "ecn",
    unit: Unit::Flag,
    default: 1.0,
    min: 0.0,
    max: 1.0,
    doc: "mark instead of dropping, where the sender understands ECN",
    source: "Linux net/sched/sch_fq_codel.c",
};

pub(super) const CE_THRESHOLD: Param = Param {
    name: "ce_threshold",
    unit: Unit::Time,
    default: 0.0,
    min: 0.0,
    max: 1e10,
    doc: "mark every packet that understands ECN and waited longer; 0: none",
    source: "Linux include/net/codel_impl.h",
};

/// A drop within so many intervals of the last dropping state continues at its rate. RFC 8289 section 5.5 says 16.
const RESUME_INTERVALS: u64 = 16;

/// Bits of 1/sqrt(count) that are kept. Linux include/net/codel.h: REC_INV_SQRT_BITS.
const ROOT_BITS: u32 = 16;

/// "The wait is not above the target."
const NOT_ABOVE: Nanos = Nanos::MAX;

/// What a CoDel was told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    target: Nanos,
    interval: Nanos,
    ecn: bool,
    /// [`Nanos::MAX`]: none.
    ce_threshold: Nanos,
    /// A backlog that is not larger never drops: it is what a busy link needs.
    max_packet_bytes: u64,
}

impl Settings {
    pub(super) fn new(params: &Params, max_packet_bytes: u32) -> Settings {
        let ce_threshold = params.int("ce_threshold");
        Settings {
            target: Nanos(params.int("target")),
            interval: Nanos(params.int("interval")),
            ecn: params.flag("ecn"),
            ce_threshold: if ce_threshold == 0 {
                Nanos::MAX
            } else {
                Nanos(ce_threshold)
            },
            max_packet_bytes: u64::from(max_packet_bytes),
        }
    }
}

/// Where a CoDel takes its packets.
pub(super) trait Source {
    fn pop(&mut self) -> Option<Packet>;
    /// What is left in front of the link, all flows together.
    fn backlog_bytes(&self) -> u64;
}

/// State of one CoDel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codel {
    /// Drops since the queue stands; wraps.
    count: u32,
    /// `count` when the dropping state was entered.
    last_count: u32,
    /// 1/sqrt(count) as a fraction of 2^[`ROOT_BITS`].
    inv_sqrt: u16,
    dropping: bool,
    /// When a wait above the target is no burst any more, or [`NOT_ABOVE`].
    first_above: Nanos,
    drop_next: Nanos,
}

impl Default for Codel {
    fn default() -> Codel {
        Codel {
            count: 0,
            last_count: 0,
            inv_sqrt: 0,
            dropping: false,
            first_above: NOT_ABOVE,
            drop_next: Nanos::ZERO,
        }
    }
}

impl Codel {
    /// The next packet to send; those dropped on the way are appended to `dropped`.
    #[inline]
    pub(super) fn dequeue(
        &mut self,
        settings: &Settings,
        source: &mut impl Source,
        now: Nanos,
        dropped: &mut Vec<Packet>,
    ) -> Option<Packet> {
        let Some(mut packet) = source.pop() else {
            self.first_above = NOT_ABOVE;
            self.dropping = false;
            return None;
        };
        if !self.stands(settings, &packet, source.backlog_bytes(), now) {
            self.dropping = false;
        } else if !self.dropping || now >= self.drop_next {
            packet = self.act(settings, packet, source, now, dropped)?;
        }
        if now.saturating_sub(packet.enqueued) > settings.ce_threshold {
            packet.mark_ce();
        }
        Some(packet)
    }

    /// The head is to be dropped or marked. Returns what is the head then.
    #[cold]
    fn act(
        &mut self,
        settings: &Settings,
        packet: Packet,
        source: &mut impl Source,
        now: Nanos,
        dropped: &mut Vec<Packet>,
    ) -> Option<Packet> {
        let mut head = Some(packet);
        match self.dropping {
            false => self.start(settings, &mut head, source, now, dropped),
            true => self.go_on(settings, &mut head, source, now, dropped),
        }
        head
    }

    /// Says a caller that it dropped for want of room: the signal must grow too.
    pub(super) fn count_drops(&mut self, drops: u32) {
        self.count = self.count.wrapping_add(drops);
    }

    /// Has the wait been above the target for an interval?
    #[inline]
    fn stands(
        &mut self,
        settings: &Settings,
        head: &Packet,
        backlog_bytes: u64,
        now: Nanos,
    ) -> bool {
        let waited = now.saturating_sub(head.enqueued);
        if waited < settings.target || backlog_bytes <= settings.max_packet_bytes {
            self.first_above = NOT_ABOVE;
            return false;
        }
        if self.first_above == NOT_ABOVE {
            self.first_above = now + settings.interval;
            return false;
        }
        now > self.first_above
    }

    /// Drops or marks the head and replaces it by the next packet where it was
    /// dropped. Is the wait still above the target?
    fn signal(
        &mut self,
        settings: &Settings,
        head: &mut Option<Packet>,
        source: &mut impl Source,
        now: Nanos,
        dropped: &mut Vec<Packet>,
    ) -> Signal {
        if settings.ecn && head.as_mut().is_some_and(Packet::mark_ce) {
            return Signal::Marked;
        }
        dropped.extend(head.take());
        *head = source.pop();
        let stands = match head {
            Some(packet) => self.stands(settings, packet, source.backlog_bytes(), now),
            None => {
                self.first_above = NOT_ABOVE;
                false
            }
        };
        Signal::Dropped { stands }
    }

    fn start(
        &mut self,
        settings: &Settings,
        head: &mut Option<Packet>,
        source: &mut impl Source,
        now: Nanos,
        dropped: &mut Vec<Packet>,
    ) {
        self.signal(settings, head, source, now, dropped);
        self.dropping = true;
        // If the queue stood a short while ago, the rate that it took then is
        // where to start.
        let delta = self.count.wrapping_sub(self.last_count);
        let resume = Nanos(settings.interval.0 * RESUME_INTERVALS);
        if delta > 1 && now.saturating_sub(self.drop_next) < resume {
            self.count = delta;
            self.newton_step();
        } else {
            self.count = 1;
            self.inv_sqrt = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.after(now, settings);
    }

    fn go_on(
        &mut self,
        settings: &Settings,
        head: &mut Option<Packet>,
        source: &mut impl Source,
        now: Nanos,
        dropped: &mut Vec<Packet>,
    ) {
        // The next drop may be due at once when the link is slow.
        while self.dropping && now >= self.drop_next {
            self.count = self.count.wrapping_add(1);
            self.newton_step();
            match self.signal(settings, head, source, now, dropped) {
                Signal::Marked => {
                    self.drop_next = self.after(self.drop_next, settings);
                    return;
                }
                Signal::Dropped { stands: false } => self.dropping = false,
                Signal::Dropped { stands: true } => {
                    self.drop_next = self.after(self.drop_next, settings);
                }
            }
        }
    }

    fn after(&self, t: Nanos, settings: &Settings) -> Nanos {
        // 37 + 16 bits: an interval is at most 100 s.
        t + Nanos((settings.interval.0 * u64::from(self.inv_sqrt)) >> ROOT_BITS)
    }

    /// x' = x / 2 * (3 - count * x^2), in 32-bit fractions.
    fn newton_step(&mut self) {
        let x = u64::from(self.inv_sqrt) << (32 - ROOT_BITS);
        let count_x2 = u64::from(self.count) * ((x * x) >> 32);
        // Beyond 3 the step turns negative. A count of 0 has wrapped.
        let next = match (3_u64 << 32).checked_sub(count_x2) {
            Some(rest) if x > 0 => ((rest >> 2) * x) >> (32 - 2 + 1),
            _ => (u64::MAX / u64::from(self.count.max(1))).isqrt(),
        };
        self.inv_sqrt = u16::try_from(next >> (32 - ROOT_BITS)).unwrap_or(u16::MAX);
    }
}

enum Signal {
    Marked,
    Dropped { stands: bool },
}

struct CodelQueue {
    fifo: Fifo,
    codel: Codel,
    settings: Settings,
}

impl CodelQueue {
    fn new(setup: &Setup) -> CodelQueue {
        CodelQueue {
            fifo: Fifo::new(setup.limit),
            codel: Codel::default(),
            settings: Settings::new(&setup.params, setup.max_packet_bytes),
        }
    }
}

impl Source for Fifo {
    #[inline]
    fn pop(&mut self) -> Option<Packet> {
        Fifo::pop(self)
    }
    #[inline]
    fn backlog_bytes(&self) -> u64 {
        self.len_bytes()
    }
}

impl Queue for CodelQueue {
    #[inline]
    fn enqueue(&mut self, now: Nanos, packet: Packet, dropped: &mut Vec<Packet>) {
        self.fifo.enqueue(now, packet, dropped);
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.codel
            .dequeue(&self.settings, &mut self.fifo, now, dropped)
    }

    fn len_pkts(&self) -> u32 {
        self.fifo.len_pkts()
    }

    fn len_bytes(&self) -> u64 {
        self.fifo.len_bytes()
    }
}

#[cfg(test)]
mod tests;
