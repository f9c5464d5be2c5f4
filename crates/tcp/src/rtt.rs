//! RTT estimation: smoothed RTT and timeout (RFC 6298 as Linux has it) and the
//! windowed minimum.

use super::HostConf;
use super::host::RTO_MAX_US;

/// TCP_TIMEOUT_INIT
const TIMEOUT_INIT_US: u64 = 1_000_000;

/// tcp_rtt_estimator() and tcp_set_rto().
#[derive(Clone, Debug)]
pub struct Rtt {
    /// Smoothed RTT × 8 and mean deviation × 4, so that gains of 1/8 and 1/4
    /// keep their remainders; us.
    srtt_x8: u32,
    mdev_x4: u32,
    mdev_max_x4: u32,
    rttvar_x4: u32,
    /// The largest deviation is taken per window: until this is acked.
    window_end: u64,
    rto_min_us: u32,
    /// Recomputed when a sample arrives; us, and in ticks, which several timers ask for.
    rto_us: u64,
    rto_jiffies: u64,
}

impl Rtt {
    pub fn new(conf: &HostConf) -> Rtt {
        let rto_min_us = conf.settings.tcp_rto_min.as_us() as u32;
        Rtt {
            srtt_x8: 0,
            mdev_x4: TIMEOUT_INIT_US as u32,
            mdev_max_x4: rto_min_us,
            rttvar_x4: rto_min_us,
            window_end: 0,
            rto_min_us,
            rto_us: TIMEOUT_INIT_US,
            rto_jiffies: conf.us_to_jiffies(TIMEOUT_INIT_US),
        }
    }

    pub fn srtt_us(&self) -> u32 {
        self.srtt_x8 >> 3
    }
    /// srtt × 8, for thresholds that Linux computes from it.
    pub fn srtt_x8(&self) -> u32 {
        self.srtt_x8
    }
    /// As tcpi_rttvar prints it.
    pub fn rttvar_us(&self) -> u32 {
        self.mdev_x4 >> 2
    }

    pub fn sample(&mut self, conf: &HostConf, rtt_us: u32, snd_una: u64, snd_nxt: u64) {
        // A zero sample would read as "no RTT yet".
        let rtt_us = rtt_us.max(1);
        if self.srtt_x8 == 0 {
            self.srtt_x8 = rtt_us << 3;
            self.mdev_x4 = rtt_us << 1;
            self.rttvar_x4 = self.mdev_x4.max(self.rto_min_us);
            self.mdev_max_x4 = self.rttvar_x4;
            self.window_end = snd_nxt;
        } else {
            let error = i64::from(rtt_us) - i64::from(self.srtt_x8 >> 3);
            self.srtt_x8 = (i64::from(self.srtt_x8) + error).max(1) as u32;
            let mut deviation = error.abs() - i64::from(self.mdev_x4 >> 2);
            if error < 0 && deviation > 0 {
                // A sharp fall of the RTT should not lengthen the timeout much.
                deviation >>= 3;
            }
            self.mdev_x4 = (i64::from(self.mdev_x4) + deviation).max(0) as u32;
            if self.mdev_x4 > self.mdev_max_x4 {
                self.mdev_max_x4 = self.mdev_x4;
                self.rttvar_x4 = self.rttvar_x4.max(self.mdev_max_x4);
            }
            if snd_una > self.window_end {
                if self.mdev_max_x4 < self.rttvar_x4 {
                    self.rttvar_x4 -= (self.rttvar_x4 - self.mdev_max_x4) >> 2;
                }
                self.window_end = snd_nxt;
                self.mdev_max_x4 = self.rto_min_us;
            }
        }
        let rto_us = (u64::from(self.srtt_x8 >> 3) + u64::from(self.rttvar_x4)).min(RTO_MAX_US);
        if rto_us != self.rto_us {
            self.rto_us = rto_us;
            self.rto_jiffies = conf.us_to_jiffies(rto_us);
        }
    }

    #[inline]
    pub fn rto_jiffies(&self) -> u64 {
        self.rto_jiffies
    }

    /// With exponential backoff.
    #[inline]
    pub fn backed_off_jiffies(&self, conf: &HostConf, backoff: u32) -> u64 {
        match backoff {
            0 => self.rto_jiffies,
            _ => (self.rto_jiffies << backoff.min(16)).min(conf.rto_max_jiffies),
        }
    }
}

/// Minimum RTT over the last 300 s (tcp_min_rtt_wlen), by three candidates of
/// rising age, as lib/win_minmax.c keeps it (Kathleen Nichols' filter).
#[derive(Clone, Debug, Default)]
pub struct MinRtt {
    /// (time us, RTT us), best first. Time 0: none yet.
    best: [(u64, u32); 3],
    /// Until then, us, a sample above the third changes nothing.
    quiet_until_us: u64,
}

const WINDOW_US: u64 = 300_000_000;

impl MinRtt {
    /// The minimum; u32::MAX before the first sample.
    pub fn get(&self) -> u32 {
        match self.best[0].0 {
            0 => u32::MAX,
            _ => self.best[0].1,
        }
    }

    /// Takes a sample, unless that changes nothing.
    #[inline]
    pub fn sample(&mut self, now_us: u64, rtt_us: u32) {
        if rtt_us <= self.best[2].1 || now_us > self.quiet_until_us {
            self.take(now_us, rtt_us);
        }
    }

    #[inline(never)]
    fn take(&mut self, now_us: u64, rtt_us: u32) {
        self.update(now_us, rtt_us);
        let [first, second, third] = self.best.map(|(time_us, _)| time_us);
        self.quiet_until_us = first
            + match () {
                _ if second == first => WINDOW_US / 4,
                _ if third == second => WINDOW_US / 2,
                _ => WINDOW_US,
            };
    }

    /// lib/win_minmax.c: minmax_running_min()
    fn update(&mut self, now_us: u64, rtt_us: u32) {
        let new = (now_us, rtt_us);
        if self.best[0].0 == 0 || rtt_us <= self.best[0].1 || now_us - self.best[2].0 > WINDOW_US {
            self.best = [new; 3];
            return;
        }
        if rtt_us <= self.best[1].1 {
            self.best[1] = new;
            self.best[2] = new;
        } else if rtt_us <= self.best[2].1 {
            self.best[2] = new;
        }
        let age_us = now_us - self.best[0].0;
        if age_us > WINDOW_US {
            self.best = [self.best[1], self.best[2], new];
            if now_us - self.best[0].0 > WINDOW_US {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].0 == self.best[0].0 && age_us > WINDOW_US / 4 {
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].0 == self.best[1].0 && age_us > WINDOW_US / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use knee_units::Nanos;

    use super::super::host::Settings;
    use super::*;

    /// Of a kernel with a jiffy of a millisecond and no least timeout.
    fn conf() -> HostConf {
        let settings = Settings {
            tcp_rto_min: Nanos(1_000),
            ..Settings::untuned()
        };
        HostConf::new(settings, 1500)
    }

    #[test]
    fn the_timeout_doubles_until_it_is_two_minutes() {
        let conf = conf();
        let mut rtt = Rtt::new(&conf);
        for _ in 0..100 {
            rtt.sample(&conf, 100, 1, 1);
        }
        assert_eq!(rtt.rto_jiffies(), 1);
        for backoff in 0..=16 {
            assert_eq!(rtt.backed_off_jiffies(&conf, backoff), 1 << backoff);
        }
        rtt.sample(&conf, 10_000, 1, 1);
        assert_eq!(rtt.backed_off_jiffies(&conf, 16), 120_000);
    }

    /// Samples, at seconds, and the minimum after each.
    fn minima(samples: &[(u64, u32)]) -> Vec<u32> {
        let mut filter = MinRtt::default();
        let after = |&(s, rtt_us): &(u64, u32)| {
            filter.sample(s * 1_000_000 + 1, rtt_us);
            filter.get()
        };
        samples.iter().map(after).collect()
    }

    #[test]
    fn runners_up_are_of_the_second_quarter_and_half_of_the_window() {
        let samples = [
            (0, 50),
            (70, 60),  // in the first quarter nothing runs up
            (80, 70),  // runner-up, until a better one comes
            (145, 65), // which is this
            (160, 90), // a third, in the second half
            (165, 200),
            (301, 95), // the first is too old
            (371, 99),
            (446, 130), // now the second
            (461, 120), // and the third
        ];
        assert_eq!(minima(&samples), [50, 50, 50, 50, 50, 50, 65, 65, 90, 95]);
    }

    #[test]
    fn a_third_is_taken_in_the_second_half_of_the_window() {
        let samples = [
            (0, 50),
            (80, 70),
            (100, 85),
            (160, 90),
            (301, 95),
            (381, 99),
        ];
        assert_eq!(minima(&samples), [50, 50, 50, 50, 70, 90]);
    }

    #[test]
    fn a_better_third_replaces_the_third_alone() {
        let samples = [
            (0, 50),
            (80, 70),
            (160, 90),
            (165, 200),
            (170, 80),
            (301, 95),
        ];
        assert_eq!(minima(&samples), [50, 50, 50, 50, 50, 70]);
        let later = [&samples[..], &[(381, 99)]].concat();
        assert_eq!(minima(&later)[6], 80);
        let all_old = [&samples[..], &[(700, 99)]].concat();
        assert_eq!(minima(&all_old)[6], 99);
    }

    #[test]
    fn minimum_is_forgotten_after_its_window_and_the_runner_up_takes_over() {
        let mut filter = MinRtt::default();
        assert_eq!(filter.get(), u32::MAX);
        filter.sample(1, 50);
        filter.sample(100_000_000, 80);
        filter.sample(200_000_000, 70);
        assert_eq!(filter.get(), 50);
        filter.sample(300_000_002, 90);
        assert_eq!(filter.get(), 70);
    }
}
