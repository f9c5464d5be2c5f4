//! How well the link does what it was asked: rate and lateness.

use std::collections::VecDeque;

use knee_tables::Histogram;
use knee_units::{Nanos, Rate};
use serde::{Deserialize, Serialize};

/// A rate further off than this is not the path that was asked for.
pub const RATE_ERROR_PCT: f64 = 0.5;
/// Lateness is bounded by this share of the RTT, but not below `LATE`: what is
/// far below the RTT's own variation is seen by no congestion control.
pub const LATE_SHARE_OF_RTT: f64 = 0.01;
/// A packet that leaves this much later than asked counts as late.
pub const LATE: Nanos = Nanos::from_ms(1);
/// Busy periods ideally shorter than this say little of the rate: a last packet that is
/// 500 us late is 0.5 % of 100 ms.
const LEAST_BUSY_NS: u64 = 100_000_000;
/// Periods of which packets may still be under way.
const OPEN_PERIODS: usize = 8;

/// What one direction of the link achieved.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Rate at which packets left while the bottleneck was never idle, bit/s.
    /// `None`: it was never busy for long, or has no rate.
    pub achieved_rate_bits_per_sec: Option<f64>,
    /// How far that is from what was asked, signed.
    pub rate_error_pct: Option<f64>,
    /// How much later than asked packets were handed over, µs.
    pub added_delay_us: Histogram,
    /// More than [`LATE`] late.
    pub late_pkts: u64,
    pub forwarded_pkts: u64,
    pub forwarded_bytes: u64,
    /// Not taken by the far device.
    pub refused_pkts: u64,
    /// Dropped by the near device because the link did not read them in time,
    /// unknown to the queue; `None`: the kernel does not tell.
    pub overflowed_pkts: Option<u64>,
    /// How often reading stopped because packets under way filled the memory allowed.
    pub memory_full: u64,
    /// System calls of reading, writing and waiting.
    pub syscalls: u64,
    pub cpu_ns: u64,
    pub kept_up: bool,
}

/// A time during which the bottleneck was never idle.
#[derive(Clone, Copy)]
struct Busy {
    period: u32,
    first_ns: u64,
    last_ns: u64,
    /// The same without lateness. Whether the period counts goes by these: else
    /// one stall would make a short period look like a long and slow one.
    ideal_first_ns: u64,
    ideal_last_ns: u64,
    /// Of all packets, and of the first: the others left between the two times.
    bytes: u64,
    first_bytes: u64,
}

/// Measures one direction.
#[derive(Default)]
pub struct Meter {
    pub report: DirectionReport,
    open: VecDeque<Busy>,
    busy_ns: u64,
    busy_bytes: u64,
}

impl Meter {
    /// A packet was handed over at `actual_ns` instead of `ideal_ns`. `left_ns`:
    /// when it ideally left the bottleneck, in which busy period.
    #[inline]
    pub fn handed_over(&mut self, packet: Handed, actual_ns: u64) {
        let late_ns = actual_ns.saturating_sub(packet.ideal_ns);
        self.report.added_delay_us.add(late_ns / 1_000);
        self.report.late_pkts += u64::from(late_ns > LATE.0);
        self.report.forwarded_pkts += 1;
        self.report.forwarded_bytes += u64::from(packet.bytes);
        let Some((period, left_ns)) = packet.left else {
            return;
        };
        let ideal_ns = left_ns;
        let left_ns = ideal_ns + late_ns;
        match self
            .open
            .iter_mut()
            .rev()
            .find(|busy| busy.period == period)
        {
            Some(busy) => {
                if ideal_ns < busy.ideal_first_ns {
                    // The path let another overtake it.
                    busy.first_ns = busy.first_ns.min(left_ns);
                    busy.ideal_first_ns = ideal_ns;
                    busy.first_bytes = u64::from(packet.bytes);
                }
                busy.last_ns = busy.last_ns.max(left_ns);
                busy.ideal_last_ns = busy.ideal_last_ns.max(ideal_ns);
                busy.bytes += u64::from(packet.bytes);
            }
            None => {
                if self.open.len() == OPEN_PERIODS
                    && let Some(over) = self.open.pop_front()
                {
                    self.close(over);
                }
                self.open.push_back(Busy {
                    period,
                    first_ns: left_ns,
                    last_ns: left_ns,
                    ideal_first_ns: ideal_ns,
                    ideal_last_ns: ideal_ns,
                    bytes: u64::from(packet.bytes),
                    first_bytes: u64::from(packet.bytes),
                });
            }
        }
    }

    fn close(&mut self, busy: Busy) {
        if busy.ideal_last_ns - busy.ideal_first_ns >= LEAST_BUSY_NS {
            self.busy_ns += busy.last_ns - busy.first_ns;
            self.busy_bytes += busy.bytes - busy.first_bytes;
        }
    }

    /// The verdict. `rate`: what was asked of this direction.
    pub fn finish(mut self, rate: Option<Rate>, least_rtt: Nanos) -> DirectionReport {
        while let Some(busy) = self.open.pop_front() {
            self.close(busy);
        }
        let mut report = self.report;
        if let Some(rate) = rate.filter(|_| self.busy_ns > 0) {
            let achieved = self.busy_bytes as f64 * 8e9 / self.busy_ns as f64;
            let asked = rate.bits_per_sec() as f64;
            report.achieved_rate_bits_per_sec = Some(achieved);
            report.rate_error_pct = Some((achieved - asked) / asked * 100.0);
        }
        let bound_us = (least_rtt.0 as f64 * LATE_SHARE_OF_RTT).max(LATE.0 as f64) / 1e3;
        let late = report
            .added_delay_us
            .quantile(0.99)
            .is_some_and(|us| us > bound_us);
        let off = report
            .rate_error_pct
            .is_some_and(|error| error.abs() > RATE_ERROR_PCT);
        let missed = report.refused_pkts + report.overflowed_pkts.unwrap_or(0) + report.memory_full;
        report.kept_up = !late && !off && missed == 0;
        report
    }
}

/// A packet about to be handed over.
#[derive(Clone, Copy, Debug)]
pub struct Handed {
    pub ideal_ns: u64,
    /// Busy period of the bottleneck, and when it left there.
    pub left: Option<(u32, u64)>,
    pub bytes: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(n: u64, ideal_ns: u64) -> Handed {
        Handed {
            ideal_ns,
            left: Some((0, n * 120_000)),
            bytes: 1_500,
        }
    }

    #[test]
    fn rate_of_packets_on_time_is_the_rate_asked() {
        let mut meter = Meter::default();
        for n in 0..10_000 {
            meter.handed_over(packet(n, n * 120_000 + 5), n * 120_000 + 5);
        }
        let report = meter.finish(Rate::from_bits_per_sec(100_000_000), Nanos::from_ms(10));
        assert!(report.rate_error_pct.unwrap().abs() < 0.001, "{report:?}");
        assert!(report.kept_up);
    }

    #[test]
    fn link_that_falls_behind_is_found_out() {
        let mut meter = Meter::default();
        for n in 0..10_000 {
            // Each packet 1 % later than the one before.
            meter.handed_over(packet(n, n * 120_000), n * 121_200);
        }
        let report = meter.finish(Rate::from_bits_per_sec(100_000_000), Nanos::from_ms(10));
        assert!((report.rate_error_pct.unwrap() + 0.99).abs() < 0.01);
        assert!(report.late_pkts > 9_000);
        assert!(!report.kept_up);
    }

    #[test]
    fn stall_in_a_short_busy_period_is_late_but_no_rate_error() {
        let mut meter = Meter::default();
        for n in 0..10 {
            // 1.2 ms of packets, the last one 150 ms late.
            let late_ns = if n == 9 { 150_000_000 } else { 0 };
            meter.handed_over(packet(n, n * 120_000), n * 120_000 + late_ns);
        }
        let report = meter.finish(Rate::from_bits_per_sec(100_000_000), Nanos::from_ms(10));
        assert_eq!(report.rate_error_pct, None);
        assert_eq!(report.late_pkts, 1);
        assert!(!report.kept_up);
    }
}
