//! The windowed minimum of the RTT.

use knee_kit::odds::unlikely;

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
    #[inline]
    pub fn get(&self) -> u32 {
        match self.best[0].0 {
            0 => u32::MAX,
            _ => self.best[0].1,
        }
    }

    /// Takes a sample, unless that changes nothing. Returns whether it may have changed the minimum.
    #[inline]
    pub fn sample(&mut self, now_us: u64, rtt_us: u32) -> bool {
        let counts = rtt_us <= self.best[2].1 || now_us > self.quiet_until_us;
        if unlikely(counts) {
            self.take(now_us, rtt_us);
        }
        counts
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
    use super::*;

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
