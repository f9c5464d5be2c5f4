//! RTT estimation: smoothed RTT and timeout (RFC 6298 as Linux has it).

use super::HostConf;
use super::host::RTO_MAX_US;
use knee_kit::odds::{likely, unlikely};

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
        if unlikely(self.srtt_x8 == 0) {
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
            if unlikely(self.mdev_x4 > self.mdev_max_x4) {
                self.mdev_max_x4 = self.mdev_x4;
                self.rttvar_x4 = self.rttvar_x4.max(self.mdev_max_x4);
            }
            if unlikely(snd_una > self.window_end) {
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
        match likely(backoff == 0) {
            true => self.rto_jiffies,
            false => (self.rto_jiffies << backoff.min(16)).min(conf.rto_max_jiffies),
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
}
