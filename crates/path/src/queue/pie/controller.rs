//! The probability, and what it is steered by.

use knee_units::Nanos;
use knee_units::rng::Stream;

use super::settings::{ONE, Settings, percent};
use crate::packet::Packet;

/// RFC 8033 section 4.4 and Linux: what a burst after a quiet time may take.
pub(super) const BURST: Nanos = Nanos::from_ms(150);

/// A longer wait adds to the probability. RFC 8033 section 4.2, Linux.
const LONG: Nanos = Nanos::from_ms(250);

/// Backlog at which the departure rate is worth measuring, and over how many
/// bytes. RFC 8033 section 5.2: DQ_THRESHOLD, 2^14.
const DQ_THRESHOLD_BYTES: u64 = 16_384;

/// Fraction bits of the departure rate, bytes per ns: at 1 Mbit/s 11 bits are left.
pub(super) const DQ_RATE_BITS: u32 = 24;

/// "Not measured yet."
const NEVER: Nanos = Nanos::MAX;

/// State of one PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pie {
    /// Of a drop, of [`ONE`].
    pub(super) prob: u64,
    /// Sum of the probabilities since the last drop.
    pub(super) accu_prob: u64,
    pub(super) delay: Nanos,
    pub(super) delay_before: Nanos,
    /// How much of [`BURST`] is left.
    pub(super) burst: Nanos,
    /// Last departure, or the start of the rate's measurement; or [`NEVER`].
    pub(super) measured_from: Nanos,
    /// Bytes that left since then; `None`: the rate is not being measured.
    pub(super) measured_bytes: Option<u64>,
    /// Departure rate, bytes per ns in 2^-[`DQ_RATE_BITS`]; 0: unknown.
    pub(super) dq_rate: u64,
}

impl Default for Pie {
    fn default() -> Pie {
        let mut pie = Pie {
            prob: 0,
            accu_prob: 0,
            delay: Nanos::ZERO,
            delay_before: Nanos::ZERO,
            burst: Nanos::ZERO,
            measured_from: NEVER,
            measured_bytes: None,
            dq_rate: 0,
        };
        pie.start();
        pie
    }
}

impl Pie {
    /// A new measurement, and a new burst allowance.
    fn start(&mut self) {
        self.burst = BURST;
        self.measured_from = NEVER;
        self.accu_prob = 0;
        self.measured_bytes = None;
        self.dq_rate = 0;
    }

    /// Is an arriving packet dropped, for which there is room? It may be marked instead.
    #[inline]
    pub fn drops(
        &mut self,
        settings: &Settings,
        packet: &mut Packet,
        backlog_bytes: u64,
        rng: &mut Stream,
    ) -> bool {
        if !self.wants_drop(settings, packet, backlog_bytes, rng)
            || settings.ecn && self.prob <= settings.mark_prob && packet.mark_ce()
        {
            return false;
        }
        self.dropped();
        true
    }

    /// A packet was dropped, by [`Self::drops`] or for want of room.
    #[inline]
    pub fn dropped(&mut self) {
        self.accu_prob = 0;
    }

    #[inline]
    fn wants_drop(
        &mut self,
        settings: &Settings,
        packet: &Packet,
        backlog_bytes: u64,
        rng: &mut Stream,
    ) -> bool {
        if self.burst > Nanos::ZERO
            || (self.delay.0 < settings.target.0 / 2 && self.prob < ONE / 5)
            || backlog_bytes < 2 * settings.max_packet_bytes
        {
            return false;
        }
        let bytes = u64::from(packet.bytes);
        let prob = if settings.bytemode && bytes <= settings.max_packet_bytes {
            self.prob / settings.max_packet_bytes * bytes
        } else {
            self.prob
        };
        // RFC 8033 section 5.4: drops neither follow each other too closely nor too late.
        self.accu_prob = if prob == 0 { 0 } else { self.accu_prob + prob };
        if self.accu_prob < percent(85) {
            return false;
        }
        if self.accu_prob >= ONE / 2 * 17 {
            return true;
        }
        if rng.next_u64() >> 8 < prob {
            self.accu_prob = 0;
            return true;
        }
        false
    }

    /// A packet leaves; `backlog_bytes` stay.
    #[inline]
    pub fn departed(
        &mut self,
        settings: &Settings,
        packet: &Packet,
        backlog_bytes: u64,
        now: Nanos,
    ) {
        let passed = if settings.dq_rate_estimator {
            self.measure_rate(packet, backlog_bytes, now)
        } else {
            self.delay = if backlog_bytes == 0 {
                Nanos::ZERO
            } else {
                now.saturating_sub(packet.enqueued)
            };
            // 0 the first time: `NEVER` is later than now.
            let passed = now.saturating_sub(self.measured_from);
            self.measured_from = now;
            passed
        };
        self.burst = self.burst.saturating_sub(passed);
    }

    /// The time over which the rate has been measured, when that is now complete.
    fn measure_rate(&mut self, packet: &Packet, backlog_bytes: u64, now: Nanos) -> Nanos {
        if backlog_bytes >= DQ_THRESHOLD_BYTES && self.measured_bytes.is_none() {
            self.measured_from = now;
            self.measured_bytes = Some(0);
        }
        let Some(bytes) = &mut self.measured_bytes else {
            return Nanos::ZERO;
        };
        *bytes += u64::from(packet.bytes);
        let passed = now.saturating_sub(self.measured_from);
        if *bytes < DQ_THRESHOLD_BYTES || passed == Nanos::ZERO {
            return Nanos::ZERO;
        }
        let rate = (*bytes << DQ_RATE_BITS) / passed.0;
        self.dq_rate = if self.dq_rate == 0 {
            rate
        } else {
            self.dq_rate - self.dq_rate / 8 + rate / 8
        };
        if backlog_bytes < DQ_THRESHOLD_BYTES {
            self.measured_bytes = None;
        } else {
            self.measured_bytes = Some(0);
            self.measured_from = now;
        }
        passed
    }

    /// One correction of the probability.
    pub(super) fn update(&mut self, settings: &Settings, backlog_bytes: u64) {
        let (delay, before) = if settings.dq_rate_estimator {
            self.delay_before = self.delay;
            let bytes = u128::from(backlog_bytes) << DQ_RATE_BITS;
            let delay = bytes.checked_div(u128::from(self.dq_rate)).unwrap_or(0);
            (Nanos(delay as u64), self.delay)
        } else {
            (self.delay, self.delay_before)
        };
        let difference = |a: Nanos, b: Nanos| i128::from(a.0) - i128::from(b.0);
        let shift = self.gain_shift();
        let mut delta = i128::from(settings.alpha >> shift) * difference(delay, settings.target)
            + i128::from(settings.beta >> shift) * difference(delay, before);
        // RFC 8033 section 5.5: at most 2 % at once.
        if delta > i128::from(percent(2)) && self.prob >= ONE / 10 {
            delta = i128::from(percent(2));
        }
        if delay > LONG {
            delta += i128::from(percent(2));
        }
        self.prob = (i128::from(self.prob) + delta).clamp(0, i128::from(ONE)) as u64;
        if delay == Nanos::ZERO && before == Nanos::ZERO && backlog_bytes == 0 {
            // RFC 8033 section 4.2: an unused link forgets.
            self.prob -= self.prob / 64;
        }
        self.delay = delay;
        let calm = settings.target.0 / 2;
        if delay.0 < calm
            && self.delay_before.0 < calm
            && self.prob == 0
            && (!settings.dq_rate_estimator || self.dq_rate > 0)
        {
            self.start();
        }
        if !settings.dq_rate_estimator {
            self.delay_before = delay;
        }
    }

    /// RFC 8033 section 4.2: the gains halve below 10 %, and are a quarter of
    /// that for each further power of ten, six in all (Linux).
    fn gain_shift(&self) -> u32 {
        if self.prob >= ONE / 10 {
            return 0;
        }
        let mut shift = 1;
        let mut power = 100;
        while self.prob < ONE / power && power <= 1_000_000 {
            shift += 2;
            power *= 10;
        }
        shift
    }
}
