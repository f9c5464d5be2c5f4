//! Proportional integral controller enhanced: arriving packets are dropped at
//! random, with a probability that is corrected every `tupdate` by how far the
//! delay is from `target` and by how it has changed.
//!
//! ```text
//! p += alpha * (delay - target) + beta * (delay - delay before)
//! ```
//!
//! both gains divided while p is small (RFC 8033 section 4.2). A burst of
//! 150 ms after a quiet time passes unharmed.
//!
//! Source: RFC 8033; Linux 6.12 net/sched/sch_pie.c, include/net/pie.h.
//!
//! Differs from Linux: what its timer does is caught up with at the next
//! packet, which nothing can tell, except that the first update is one
//! `tupdate` after the first packet and not 500 ms after the queue was set up;
//! `tupdate` is not rounded to jiffies, of which Linux' timer takes one more
//! than asked: 15 ms are 20 ms with HZ 250 and 16 ms with HZ 1000; times count
//! in ns, not in units of 64 ns; the probability stays within 1, where Linux'
//! may pass it.
//! Differs from the RFC, as Linux does: waits are read from timestamps unless
//! `dq_rate_estimator`; the cap of 2 % per update applies from p = 10 % on.

mod clock;
mod controller;
mod settings;

use knee_units::Nanos;
use knee_units::rng::Stream;

pub(super) use self::clock::Clock;
pub(super) use self::controller::Pie;
pub(super) use self::settings::{
    ALPHA, BETA, BYTEMODE, DQ_RATE_ESTIMATOR, ECN, Settings, TARGET, TUPDATE, percent,
};

use super::fifo::Fifo;
use super::{Queue, QueueKind, Setup};
use crate::packet::Packet;

pub(super) const KIND: QueueKind = QueueKind {
    name: "pie",
    summary: "drops arriving packets with a probability that steers the wait to a target",
    source: "RFC 8033; Linux net/sched/sch_pie.c",
    params: &[
        TARGET,
        TUPDATE,
        ALPHA,
        BETA,
        ECN,
        BYTEMODE,
        DQ_RATE_ESTIMATOR,
    ],
    conflict: None,
    caution: None,
    build: |setup| Box::new(PieQueue::new(setup)),
};

/// Up to this probability ECN marks; beyond it the sender is taken for one
/// that does not react. RFC 8033 section 5.1, Linux: 10 %.
const MARK_PERCENT: u64 = 10;

struct PieQueue {
    fifo: Fifo,
    pie: Pie,
    clock: Clock,
    settings: Settings,
    rng: Stream,
}

impl PieQueue {
    fn new(setup: Setup) -> PieQueue {
        PieQueue {
            fifo: Fifo::new(setup.limit),
            pie: Pie::default(),
            clock: Clock::UNSET,
            settings: Settings::new(&setup.params, setup.max_packet_bytes, percent(MARK_PERCENT)),
            rng: setup.rng,
        }
    }

    #[inline]
    fn catch_up(&mut self, now: Nanos) {
        self.clock
            .catch_up(&mut self.pie, &self.settings, self.fifo.len_bytes(), now);
    }
}

impl Queue for PieQueue {
    #[inline]
    fn enqueue(&mut self, now: Nanos, mut packet: Packet, dropped: &mut Vec<Packet>) {
        if self.clock.is_unset() {
            self.clock = Clock::start(&self.settings, now, now);
        }
        self.catch_up(now);
        packet.enqueued = now;
        let backlog_bytes = self.fifo.len_bytes();
        if !self.fifo.fits(&packet) {
            self.pie.dropped();
            dropped.push(packet);
        } else if self
            .pie
            .drops(&self.settings, &mut packet, backlog_bytes, &mut self.rng)
        {
            dropped.push(packet);
        } else {
            self.fifo.push(packet);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.catch_up(now);
        let packet = self.fifo.pop()?;
        self.pie
            .departed(&self.settings, &packet, self.fifo.len_bytes(), now);
        Some(packet)
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
