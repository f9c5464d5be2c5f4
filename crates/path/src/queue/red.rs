//! Random early detection: an arriving packet is dropped with a probability
//! that rises with the average backlog, from 0 at `min` to `probability` at
//! `max`; above `max` every packet is.
//!
//! ```text
//! avg += w * (backlog - avg)                w = 2^-wlog, at each arrival
//! pb   = probability * (avg - min) / (max - min)
//! ```
//!
//! and a packet is dropped when pb times the packets since the last drop
//! passes a random number of 0 .. 1, so that the gaps between drops are spread
//! evenly over 1 .. 1/pb (the paper's method 2, section 8).
//!
//! Source: Floyd, Jacobson: Random Early Detection Gateways for Congestion
//! Avoidance, ToN 1(4) 1993; Floyd, Gummadi, Shenker: Adaptive RED, 2001; Linux
//! 6.12 include/net/red.h, net/sched/sch_red.c; what tc makes of its arguments:
//! iproute2 tc/q_red.c, tc/tc_red.c.
//!
//! Differs from the paper, as Linux does: the average counts bytes; no
//! `gentle` slope above `max`; after an idle time the average is shifted right
//! by whole bits, and by 69 % of those that (1 - w)^packets asks for: tc takes
//! a natural logarithm for a binary one.
//! Differs from Linux: the random number has 64 bits, and its range is
//! computed without the rounding of a reciprocal.

use knee_units::params::{Param, Params, Unit};
use knee_units::rng::Stream;
use knee_units::{Nanos, Rate};

use super::fifo::Fifo;
use super::{Queue, QueueKind, Setup};
use crate::packet::Packet;
use crate::queue::BufferLimit;

pub(super) const KIND: QueueKind = QueueKind {
    name: "red",
    summary: "drops arriving packets with a probability that rises with the average backlog",
    source: "Floyd, Jacobson: ToN 1(4) 1993; Linux net/sched/sch_red.c",
    params: &[
        Param {
            name: "min",
            unit: Unit::Bytes,
            default: 0.0,
            min: 0.0,
            max: MAX_BYTES,
            doc: "average backlog from which on packets are dropped; 0: a third of max",
            source: "iproute2 tc/q_red.c",
        },
        Param {
            name: "max",
            unit: Unit::Bytes,
            default: 0.0,
            min: 0.0,
            max: MAX_BYTES,
            doc: "average backlog from which on all are, not below min; 0: three times min, else a quarter of path.buffer, else three times what the link sends in 2.5ms, at least 15 packets",
            source: "iproute2 tc/q_red.c; without a limit: Floyd, Gummadi, Shenker 2001",
        },
        Param {
            name: "avpkt",
            unit: Unit::Bytes,
            default: 1_000.0,
            min: 40.0,
            max: 65_535.0,
            doc: "mean packet, for burst and for the idle time",
            source: "tc-red(8)",
        },
        Param {
            name: "burst",
            unit: Unit::Count,
            default: 0.0,
            min: 0.0,
            max: 1_000_000.0,
            doc: "packets that may come at once without a drop, which sets wlog; 0: (2 min + max) / (3 avpkt)",
            source: "iproute2 tc/q_red.c",
        },
        Param {
            name: "wlog",
            unit: Unit::Count,
            default: 0.0,
            min: 0.0,
            max: 31.0,
            doc: "weight of the average, as a negative power of 2; 0: from burst (the paper: 9)",
            source: "iproute2 tc/tc_red.c: tc_red_eval_ewma()",
        },
        Param {
            name: "probability",
            unit: Unit::Share,
            default: 0.02,
            min: 0.000_001,
            max: 1.0,
            doc: "of a drop when the average reaches max",
            source: "iproute2 tc/q_red.c",
        },
        Param {
            name: "ecn",
            unit: Unit::Flag,
            default: 0.0,
            min: 0.0,
            max: 1.0,
            doc: "mark instead of dropping, where the sender understands ECN",
            source: "iproute2 tc/q_red.c",
        },
        Param {
            name: "harddrop",
            unit: Unit::Flag,
            default: 0.0,
            min: 0.0,
            max: 1.0,
            doc: "with ecn: drop above max all the same",
            source: "iproute2 tc/q_red.c",
        },
        Param {
            name: "adaptive",
            unit: Unit::Flag,
            default: 0.0,
            min: 0.0,
            max: 1.0,
            doc: "correct the probability every 500ms so that the average stays in the middle",
            source: "iproute2 tc/q_red.c",
        },
    ],
    conflict: Some(max_below_min),
    caution: None,
    build: |setup| Box::new(Red::new(setup)),
};

fn max_below_min(params: &Params) -> Option<(&'static str, &'static str)> {
    let (min, max) = (params.int("min"), params.int("max"));
    (0 < max && max < min).then_some(("max", "at least red.min"))
}

const MAX_BYTES: f64 = 4_294_967_295.0;

/// Largest shift that an idle time makes. iproute2 tc/tc_red.c.
const MAX_IDLE_SHIFT: u64 = 31;

/// Cells of Linux' table of idle times; the last one stands for all longer ones.
const IDLE_CELLS: u64 = 256;

/// Linux' clock for idle times: PSCHED_SHIFT, 64 ns.
const TICK_NS: u64 = 64;

/// Time between two corrections with `adaptive`. Linux net/sched/sch_red.c: HZ / 2.
const ADAPT_INTERVAL: Nanos = Nanos::from_ms(500);

/// Corrections made up for at most after a pause, an hour of them: 45 take
/// the probability from its most to its least.
const MAX_CATCH_UP: u64 = 7_200;

/// Probability 1.
const ONE: u64 = 1 << 32;

/// `adaptive` keeps the probability between these. Floyd, Gummadi, Shenker 2001; Linux include/net/red.h.
const LEAST_PROB: u64 = ONE / 100;
const MOST_PROB: u64 = ONE / 2;

/// Without a limit: the wait at `min`, half of a target of 5 ms. Floyd, Gummadi, Shenker 2001; ns-2 queue/red.cc.
const UNLIMITED_WAIT: Nanos = Nanos::from_us(2_500);
/// And the least `min`, of the same sources.
const UNLIMITED_LEAST_PACKETS: u64 = 5;

struct Red {
    fifo: Fifo,
    settings: Settings,
    /// Of a drop at `max`, of [`ONE`]; changes with `adaptive`.
    max_prob: u64,
    /// Average backlog in bytes, with `wlog` fraction bits.
    avg: u64,
    /// Packets since the last drop; `None`: the average was not between the thresholds.
    count: Option<u64>,
    /// 0 .. 1/slope, to compare with (avg - min) * count.
    random: u64,
    /// Since when there has been nothing to send.
    idle_since: Option<Nanos>,
    /// When the probability is corrected next, with `adaptive`.
    adapt_at: Nanos,
    rng: Stream,
}

/// What a RED was told, in its own units.
struct Settings {
    min_bytes: u64,
    max_bytes: u64,
    wlog: u32,
    idle: IdleDamping,
    ecn: bool,
    harddrop: bool,
    adaptive: bool,
}

impl Settings {
    fn new(setup: &Setup) -> Settings {
        let params = &setup.params;
        let avpkt = params.int("avpkt");
        let (min_bytes, max_bytes) = thresholds(setup);
        // tc refuses a burst that is smaller than the least.
        let least = 1 + min_bytes / avpkt;
        let burst = match params.int("burst") {
            0 => (2 * min_bytes + max_bytes) / (3 * avpkt),
            burst => burst,
        };
        let wlog = match params.int("wlog") as u32 {
            0 => wlog_of_burst(burst.max(least), min_bytes as f64 / avpkt as f64),
            wlog => wlog,
        };
        Settings {
            min_bytes,
            max_bytes,
            wlog,
            idle: IdleDamping::new(wlog, setup.rate.transmit_time(avpkt)),
            ecn: params.flag("ecn"),
            harddrop: params.flag("harddrop"),
            adaptive: params.flag("adaptive"),
        }
    }
}

/// `min` and `max` with their defaults. Where both are the same, all are dropped from there on.
fn thresholds(setup: &Setup) -> (u64, u64) {
    let packet_bytes = u64::from(setup.max_packet_bytes);
    let limit_bytes = match setup.limit {
        BufferLimit::Bytes(bytes) => Some(bytes),
        BufferLimit::Packets(packets) => Some(u64::from(packets) * packet_bytes),
        BufferLimit::Unlimited => None,
    };
    let (min, max) = (setup.params.int("min"), setup.params.int("max"));
    let max = match (min, max, limit_bytes) {
        (0, 0, Some(limit)) => limit / 4,
        (0, 0, None) => 3 * unlimited_min_bytes(setup.rate, packet_bytes),
        (min, 0, _) => 3 * min,
        (_, max, _) => max,
    };
    let min = if min == 0 { max / 3 } else { min };
    (min, max.max(min + 1))
}

fn unlimited_min_bytes(rate: Rate, packet_bytes: u64) -> u64 {
    rate.bytes_in(UNLIMITED_WAIT)
        .max(UNLIMITED_LEAST_PACKETS * packet_bytes)
}

/// The weight with which `burst` packets upon an empty queue take the average
/// to `min_packets`: burst + 1 - min <= (1 - (1 - w)^burst) / w. Paper, section 6.2.
fn wlog_of_burst(burst: u64, min_packets: f64) -> u32 {
    let needed = burst as f64 + 1.0 - min_packets;
    let reaches = |wlog: u32| {
        let w = 1.0 / (1_u64 << wlog) as f64;
        // By multiplication alone: the same on every machine.
        let mut rest = 1.0;
        let (mut base, mut exponent) = (1.0 - w, burst);
        while exponent > 0 {
            if exponent % 2 == 1 {
                rest *= base;
            }
            base *= base;
            exponent /= 2;
        }
        needed <= (1.0 - rest) / w
    };
    (1..31).find(|&wlog| reaches(wlog)).unwrap_or(31)
}

/// How an idle time lowers the average: Linux' table, which tc fills, without
/// the table.
struct IdleDamping {
    /// -ln(1 - w) per clock tick of the kernel: what one packet of `avpkt` would do.
    per_tick: f64,
    /// The clock tick is shifted right by so many bits to find the table's cell.
    cell_log: u32,
}

impl IdleDamping {
    fn new(wlog: u32, packet_time: Nanos) -> IdleDamping {
        // -ln(1 - w) = w + w^2 / 2 + w^3 / 3 + ... : 60 terms are exact for w = 1/2,
        // and sums are the same on every machine, which logarithms need not be.
        let w = 1.0 / (1_u64 << wlog) as f64;
        let (mut power, mut log) = (1.0, 0.0);
        for k in 1..=60 {
            power *= w;
            log += power / f64::from(k);
        }
        let packet_ticks = packet_time.0 as f64 / TICK_NS as f64;
        let per_tick = log / packet_ticks.max(1.0);
        let longest = MAX_IDLE_SHIFT as f64 / per_tick;
        let cell_log = (0..32).find(|&log| longest / f64::from(1_u32 << log) < 512.0);
        IdleDamping {
            per_tick,
            cell_log: cell_log.unwrap_or(31),
        }
    }

    fn damped(&self, avg: u64, idle: Nanos) -> u64 {
        let ticks = (idle.0 / TICK_NS).min((IDLE_CELLS - 1) << self.cell_log);
        let cell = ticks >> self.cell_log;
        let shift = if cell == IDLE_CELLS - 1 {
            MAX_IDLE_SHIFT
        } else {
            let ticks = (cell << self.cell_log) as f64;
            ((ticks * self.per_tick) as u64).min(MAX_IDLE_SHIFT)
        };
        if shift > 0 {
            return avg >> shift;
        }
        // Less than a bit: a straight line, half at most.
        let loss = (u128::from(avg) * u128::from(ticks)) >> self.cell_log;
        avg - loss.min(u128::from(avg / 2)) as u64
    }
}

impl Red {
    fn new(setup: Setup) -> Red {
        let settings = Settings::new(&setup);
        Red {
            fifo: Fifo::new(setup.limit),
            max_prob: (setup.params.get("probability") * ONE as f64) as u64,
            settings,
            avg: 0,
            count: None,
            random: 0,
            idle_since: Some(Nanos::ZERO),
            adapt_at: Nanos::MAX,
            rng: setup.rng,
        }
    }

    /// The average after an idle time that ends now, without one as it is.
    #[inline]
    fn avg_at(&self, now: Nanos) -> u64 {
        match self.idle_since {
            Some(since) => self
                .settings
                .idle
                .damped(self.avg, now.saturating_sub(since)),
            None => self.avg,
        }
    }

    /// A number of 0 .. (max - min) / max_prob.
    fn draw(&mut self) -> u64 {
        let bytes = u128::from(self.settings.max_bytes - self.settings.min_bytes);
        let range = bytes * u128::from(ONE) / u128::from(self.max_prob);
        ((u128::from(self.rng.next_u64()) * range) >> 64) as u64
    }

    /// Is the packet that arrives signalled, and is the average above `max`?
    #[inline]
    fn signals(&mut self) -> Option<Signal> {
        let avg = self.avg >> self.settings.wlog;
        if avg < self.settings.min_bytes {
            self.count = None;
            return None;
        }
        if avg >= self.settings.max_bytes {
            self.count = None;
            return Some(Signal::Forced);
        }
        match self.count {
            // The first packet above min draws, and passes.
            None => {
                self.count = Some(0);
                self.random = self.draw();
                None
            }
            Some(count) => {
                let count = count + 1;
                self.count = Some(count);
                let above = avg - self.settings.min_bytes;
                if above.saturating_mul(count) < self.random {
                    return None;
                }
                self.count = Some(0);
                self.random = self.draw();
                Some(Signal::Early)
            }
        }
    }

    #[cold]
    fn adapt(&mut self, now: Nanos) {
        let due = (now - self.adapt_at).0 / ADAPT_INTERVAL.0 + 1;
        // Those left out are the last: by then nothing changes.
        for i in 0..due.min(MAX_CATCH_UP) {
            let avg = self.avg_at(self.adapt_at + Nanos(i * ADAPT_INTERVAL.0));
            self.correct_probability(avg >> self.settings.wlog);
        }
        self.adapt_at += Nanos(due * ADAPT_INTERVAL.0);
    }

    /// The average belongs into the middle fifth between `min` and `max`.
    fn correct_probability(&mut self, avg_bytes: u64) {
        let fifth = (self.settings.max_bytes - self.settings.min_bytes) / 5;
        if avg_bytes > self.settings.min_bytes + 3 * fifth && self.max_prob <= MOST_PROB {
            self.max_prob += LEAST_PROB.min(self.max_prob / 4);
        } else if avg_bytes < self.settings.min_bytes + 2 * fifth && self.max_prob >= LEAST_PROB {
            self.max_prob = self.max_prob / 10 * 9;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Signal {
    Early,
    /// The average is above `max`.
    Forced,
}

impl Queue for Red {
    #[inline]
    fn enqueue(&mut self, now: Nanos, mut packet: Packet, dropped: &mut Vec<Packet>) {
        if self.settings.adaptive {
            if self.adapt_at == Nanos::MAX {
                self.adapt_at = now + ADAPT_INTERVAL;
            }
            if now >= self.adapt_at {
                self.adapt(now);
            }
        }
        if self.idle_since.is_some() {
            self.avg = self.avg_at(now);
            self.idle_since = None;
        } else {
            self.avg = self.avg + self.fifo.len_bytes() - (self.avg >> self.settings.wlog);
        }
        if let Some(signal) = self.signals() {
            let marks = self.settings.ecn && !(self.settings.harddrop && signal == Signal::Forced);
            if !marks || !packet.mark_ce() {
                dropped.push(packet);
                return;
            }
        }
        self.fifo.enqueue(now, packet, dropped);
    }

    #[inline]
    fn dequeue(&mut self, now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Packet> {
        let packet = self.fifo.pop();
        if packet.is_none() {
            self.idle_since.get_or_insert(now);
        }
        packet
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
