//! Adaptive interrupt coalescing: a driver compares how much came, and how often it was interrupted for that, and moves the
//! NIC between five levels (Linux, Documentation/networking/net_dim.rst; lib/dim/net_dim.c).

/// A level of coalescing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Least time from one interrupt to the next.
    pub ns: u64,
    /// The NIC interrupts earlier if this many packets wait.
    pub pkts: u32,
}

const fn level(us: u64) -> Level {
    Level {
        ns: us * 1_000,
        pkts: 256,
    }
}

/// NET_DIM_RX_EQE_PROFILES: those of NICs that count from the last interrupt.
pub const LEVELS: [Level; 5] = [level(1), level(8), level(64), level(128), level(256)];
/// NET_DIM_DEF_PROFILE_EQE.
const FIRST_LEVEL: usize = 1;
/// How many interrupts a measurement takes: DIM_NEVENTS.
const EVENTS: u64 = 64;
/// Differences up to this do not count: IS_SIGNIFICANT_DIFF().
const SAME_PCT: u64 = 10;
/// After this many steps it rests: NET_DIM_PARAMS_NUM_PROFILES * 2.
const STEPS_MAX: u32 = 2 * LEVELS.len() as u32;

/// Counters of a receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub interrupts: u64,
    pub pkts: u64,
    pub bytes: u64,
}

/// What a measurement says, per millisecond.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    bytes: u64,
    pkts: u64,
    interrupts: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Better,
    Same,
    Worse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It stays, until the traffic changes.
    Parked,
    /// It stays for as many measurements as it has made steps.
    Tired,
    /// To longer intervals, or to shorter ones.
    Longer,
    Shorter,
}

/// The coalescing of one receive queue.
#[derive(Clone, Debug)]
pub struct Dim {
    level: usize,
    way: Way,
    /// Steps in either direction since it last turned to that direction.
    longer_steps: u32,
    shorter_steps: u32,
    steps: u32,
    before: Rates,
    /// When the measurement under way began, and where the counters stood; `None`: it begins with the next poll.
    began: Option<(u64, Traffic)>,
}

impl Default for Dim {
    fn default() -> Dim {
        Dim {
            level: FIRST_LEVEL,
            way: Way::Longer,
            longer_steps: 0,
            shorter_steps: 0,
            steps: 0,
            before: Rates::default(),
            began: None,
        }
    }
}

impl Dim {
    pub fn level(&self) -> Level {
        LEVELS[self.level]
    }

    /// A poll has emptied the queue. Returns whether the level has changed.
    pub fn polled(&mut self, now_ns: u64, traffic: Traffic) -> bool {
        let Some((began_ns, then)) = self.began else {
            self.began = Some((now_ns, traffic));
            return false;
        };
        let us = (now_ns - began_ns) / 1_000;
        if traffic.interrupts - then.interrupts < EVENTS || us == 0 {
            return false;
        }
        let level = self.level;
        let per_ms = |count: u64| (count * 1_000).div_ceil(us);
        self.decide(Rates {
            bytes: per_ms(traffic.bytes - then.bytes),
            pkts: per_ms(traffic.pkts - then.pkts),
            interrupts: per_ms(traffic.interrupts - then.interrupts),
        });
        // What arrived at the old level says nothing about the new one.
        let changed = self.level != level;
        self.began = (!changed).then_some((now_ns, traffic));
        changed
    }

    fn decide(&mut self, now: Rates) {
        let was_parked = self.way == Way::Parked;
        match self.way {
            Way::Parked if self.compare(now) != Verdict::Same => self.leave(),
            Way::Parked => {}
            Way::Tired => {
                self.steps -= 1;
                if self.steps == 0 {
                    self.leave();
                }
            }
            Way::Longer | Way::Shorter => {
                if self.compare(now) != Verdict::Better {
                    self.turn();
                }
                match self.is_between_worse_ones() {
                    true => self.park(),
                    false => self.step(),
                }
            }
        }
        if !(was_parked && self.way == Way::Parked) {
            self.before = now;
        }
    }

    /// More bytes are better, else more packets, else fewer interrupts.
    fn compare(&self, now: Rates) -> Verdict {
        let differs = |now: u64, before: u64| 100 * now.abs_diff(before) / before > SAME_PCT;
        let before = self.before;
        for (now, before) in [(now.bytes, before.bytes), (now.pkts, before.pkts)] {
            match before {
                0 if now > 0 => return Verdict::Better,
                0 => return Verdict::Same,
                _ if !differs(now, before) => {}
                _ if now > before => return Verdict::Better,
                _ => return Verdict::Worse,
            }
        }
        match before.interrupts {
            0 => Verdict::Same,
            before if !differs(now.interrupts, before) => Verdict::Same,
            before if now.interrupts < before => Verdict::Better,
            _ => Verdict::Worse,
        }
    }

    fn turn(&mut self) {
        if self.way == Way::Longer {
            (self.way, self.shorter_steps) = (Way::Shorter, 0);
        } else {
            (self.way, self.longer_steps) = (Way::Longer, 0);
        }
    }

    /// Has it gone one step back after several, so that the level it is at was the best?
    fn is_between_worse_ones(&self) -> bool {
        match self.way {
            Way::Longer => self.shorter_steps > 1 && self.longer_steps == 1,
            Way::Shorter => self.longer_steps > 1 && self.shorter_steps == 1,
            Way::Parked | Way::Tired => true,
        }
    }

    fn park(&mut self) {
        self.way = Way::Parked;
        (self.longer_steps, self.shorter_steps, self.steps) = (0, 0, 0);
    }

    /// It has stayed for long enough.
    fn leave(&mut self) {
        self.way = match self.level {
            0 => Way::Longer,
            _ => Way::Shorter,
        };
        self.step();
    }

    fn step(&mut self) {
        if self.steps == STEPS_MAX {
            self.way = Way::Tired;
            (self.longer_steps, self.shorter_steps) = (0, 0);
            return;
        }
        match self.way {
            Way::Longer if self.level + 1 < LEVELS.len() => {
                self.level += 1;
                self.longer_steps += 1;
            }
            Way::Shorter if self.level > 0 => {
                self.level -= 1;
                self.shorter_steps += 1;
            }
            _ => return self.park(),
        }
        self.steps += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures the traffic that `rates` gives for each level: bytes, packets and interrupts per millisecond. Returns the
    /// level after each measurement, us.
    fn levels(
        dim: &mut Dim,
        measurements: usize,
        rates: impl Fn(Level) -> (u64, u64, u64),
    ) -> Vec<u64> {
        let (mut now_ns, mut traffic) = (0, Traffic::default());
        let mut passed = Vec::new();
        for _ in 0..measurements {
            dim.polled(now_ns, traffic);
            let (bytes, pkts, interrupts) = rates(dim.level());
            let ms = EVENTS.div_ceil(interrupts);
            now_ns += ms * 1_000_000;
            traffic.bytes += ms * bytes;
            traffic.pkts += ms * pkts;
            traffic.interrupts += ms * interrupts;
            dim.polled(now_ns, traffic);
            passed.push(dim.level().ns / 1_000);
        }
        passed
    }

    #[test]
    fn it_goes_to_longer_intervals_while_they_spare_interrupts() {
        let mut dim = Dim::default();
        // 83 packets in a millisecond, as 1 Gbit/s brings: interrupts spare nothing below 12 us.
        let of = |level: Level| (125_000, 83, 83.min(1_000_000 / level.ns));
        let passed = levels(&mut dim, 12, of);
        assert_eq!(passed[..4], [64, 128, 256, 256]);
        assert!(passed[4..].iter().all(|&us| us == 256), "{passed:?}");
    }

    #[test]
    fn an_interval_that_costs_throughput_is_given_up_again() {
        let mut dim = Dim::default();
        // Beyond 64 us the ring overflows.
        let of = |level: Level| match level.ns {
            ..=64_000 => (1_250_000, 830, 830.min(1_000_000 / level.ns)),
            _ => (600_000, 400, 1_000_000 / level.ns),
        };
        let passed = levels(&mut dim, 30, of);
        assert_eq!(passed[..3], [64, 128, 64]);
        let at_64 = passed.iter().filter(|&&us| us == 64).count();
        assert!(at_64 > 20, "{passed:?}");
    }

    #[test]
    fn where_no_level_differs_it_tires_and_rests() {
        let mut dim = Dim::default();
        // A packet each millisecond is an interrupt by itself, whatever the interval.
        let passed = levels(&mut dim, 21, |_| (300, 1, 1));
        assert_eq!(passed[..4], [64, 8, 64, 8]);
        assert!(
            passed[9..20].iter().all(|&us| us == passed[9]),
            "{passed:?}"
        );
        assert_ne!(passed[20], passed[19]);
    }

    #[test]
    fn a_measurement_takes_64_interrupts() {
        let mut dim = Dim::default();
        let traffic = |interrupts| Traffic {
            interrupts,
            pkts: 10 * interrupts,
            bytes: 15_000 * interrupts,
        };
        assert!(!dim.polled(0, traffic(0)));
        assert!(!dim.polled(1_000_000, traffic(63)));
        assert!(dim.polled(1_100_000, traffic(64)));
        assert_eq!(dim.level(), LEVELS[2]);
    }
}
