//! What an end has done and how it spent its time.

use knee_kit::odds::unlikely;
use knee_tables::Histogram;
use knee_units::NEVER;

/// What held the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing: the connection is being opened, or everything is sent and closed.
    None = 0,
    Cwnd = 1,
    Rwnd = 2,
    Sndbuf = 3,
    Pacing = 4,
    App = 5,
}

pub const LIMITS: usize = 6;

/// Counters of one end, as `tcp_info` has them.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub data_segs_out: u64,
    pub total_retrans: u64,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub bytes_acked: u64,
    pub rto_count: u64,
    pub recovery_count: u64,
    pub undo_count: u64,
    pub tlp_count: u64,
    pub dsack_dups: u64,
}

/// How long the sender was busy, and how long each [`Limit`] held it back.
#[derive(Clone, Debug)]
pub struct TimeSpent {
    limit: Limit,
    limit_since_ns: u64,
    /// Time under each limit until `limit_since_ns`.
    limit_ns: [u64; LIMITS],
    /// NEVER: the sender is idle.
    busy_since_ns: u64,
    /// Busy time until it was idle last.
    busy_ns: u64,
}

impl TimeSpent {
    pub fn new() -> TimeSpent {
        TimeSpent {
            limit: Limit::None,
            limit_since_ns: 0,
            limit_ns: [0; LIMITS],
            busy_since_ns: NEVER,
            busy_ns: 0,
        }
    }

    /// From now on `limit` holds the sender back.
    #[inline]
    pub fn set_limit(&mut self, now_ns: u64, limit: Limit) {
        if unlikely(limit != self.limit) {
            self.settle(now_ns);
            self.limit = limit;
        }
    }

    /// Counts the time since the last change of the limit.
    pub fn settle(&mut self, now_ns: u64) {
        self.limit_ns[self.limit as usize] += now_ns - self.limit_since_ns;
        self.limit_since_ns = now_ns;
    }

    /// From now on the sender has something outstanding or to send, or it has nothing.
    pub fn set_busy(&mut self, now_ns: u64, busy: bool) {
        match (busy, self.busy_since_ns) {
            (true, NEVER) => self.busy_since_ns = now_ns,
            (false, since) if since != NEVER => {
                self.busy_ns += now_ns - since;
                self.busy_since_ns = NEVER;
            }
            _ => {}
        }
    }

    /// Time under each limit, as of the last change or [`settle`](TimeSpent::settle).
    pub fn settled_ns(&self) -> [u64; LIMITS] {
        self.limit_ns
    }

    /// Time under a limit up to now.
    pub fn limited_ns(&self, limit: Limit, now_ns: u64) -> u64 {
        let current = match self.limit == limit {
            true => now_ns - self.limit_since_ns,
            false => 0,
        };
        self.limit_ns[limit as usize] + current
    }

    /// Time with something outstanding or to send, up to now.
    pub fn busy_ns(&self, now_ns: u64) -> u64 {
        let current = match self.busy_since_ns {
            NEVER => 0,
            since => now_ns - since,
        };
        self.busy_ns + current
    }
}

/// Means over time and the distribution of smoothed RTTs, of the steady part of a run.
#[derive(Clone, Debug, Default)]
pub struct Means {
    cwnd_integral: f64,
    inflight_integral: f64,
    since_ns: u64,
    /// Has the steady part begun?
    measuring: bool,
    srtt_us: Histogram,
}

impl Means {
    /// `snd_cwnd` and `in_flight` were in force until now. To be called before either changes.
    #[inline]
    pub fn integrate(&mut self, now_ns: u64, snd_cwnd: u32, in_flight: u32) {
        let dt_ns = now_ns - self.since_ns;
        if dt_ns > 0 {
            // A signed integer becomes a float in one instruction.
            let dt = dt_ns as i64 as f64;
            self.cwnd_integral += f64::from(snd_cwnd) * dt;
            self.inflight_integral += f64::from(in_flight) * dt;
            self.since_ns = now_ns;
        }
    }

    /// Means count from here.
    pub fn restart(&mut self) {
        self.cwnd_integral = 0.0;
        self.inflight_integral = 0.0;
    }

    /// The steady part begins: means and distributions count from here.
    pub fn start(&mut self) {
        self.measuring = true;
        self.restart();
    }

    /// An ACK was processed; 0: there is no RTT yet.
    #[inline]
    pub fn add_srtt(&mut self, srtt_us: u32) {
        if self.measuring && srtt_us > 0 {
            self.srtt_us.add(u64::from(srtt_us));
        }
    }

    /// Integrals over the steady part, in segment-nanoseconds: cwnd, inflight.
    pub fn integrals(&self) -> (f64, f64) {
        (self.cwnd_integral, self.inflight_integral)
    }

    /// Smoothed RTTs, one per ACK of the steady part.
    pub fn srtt_us(&self) -> &Histogram {
        &self.srtt_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_under_all_limits_add_up_to_the_time_that_passed() {
        let mut time = TimeSpent::new();
        time.set_limit(100, Limit::Cwnd);
        time.set_limit(250, Limit::Rwnd);
        time.set_limit(300, Limit::Cwnd);
        assert_eq!(time.limited_ns(Limit::Cwnd, 320), 150 + 20);
        assert_eq!(time.limited_ns(Limit::Rwnd, 320), 50);
        assert_eq!(time.settled_ns()[Limit::Cwnd as usize], 150);
        time.settle(320);
        assert_eq!(time.settled_ns().iter().sum::<u64>(), 320);
    }

    #[test]
    fn busy_time_counts_from_the_first_of_several_starts_and_stops_once() {
        let mut time = TimeSpent::new();
        assert_eq!(time.busy_ns(50), 0);
        time.set_busy(100, true);
        time.set_busy(120, true);
        assert_eq!(time.busy_ns(150), 50);
        time.set_busy(160, false);
        time.set_busy(170, false);
        assert_eq!(time.busy_ns(1_000), 60);
    }

    #[test]
    fn means_and_rtts_count_from_the_start_of_the_steady_part() {
        let mut means = Means::default();
        means.integrate(10, 100, 50);
        means.add_srtt(5_000);
        means.start();
        means.integrate(20, 10, 4);
        means.integrate(20, 99, 99);
        means.integrate(40, 30, 6);
        assert_eq!(means.integrals(), (700.0, 160.0));
        assert_eq!(means.srtt_us().count(), 0);
        means.add_srtt(0);
        means.add_srtt(7_000);
        assert_eq!(means.srtt_us().count(), 1);
    }
}
