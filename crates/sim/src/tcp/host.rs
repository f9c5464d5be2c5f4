//! A host's settings and clock, and what an endpoint is given when called.

use knee_model::scenario::Host;

use crate::segment::Slab;

/// TCP_RTO_MAX
pub const RTO_MAX_US: u64 = 120_000_000;

/// Settings of a host, with what follows from them.
#[derive(Clone, Debug)]
pub struct HostConf {
    pub host: Host,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    pub tick_ns: u64,
    tick: Divisor,
    /// [`RTO_MAX_US`] in ticks.
    pub rto_max_jiffies: u64,
    /// Window scale that this host offers.
    pub wscale: u8,
}

impl HostConf {
    pub fn new(host: &Host, mtu_bytes: u32) -> HostConf {
        // tcp_select_initial_window(): the scale that lets the largest buffer
        // be offered in 16 bits.
        let mut space = host.tcp_rmem_bytes[2];
        let mut wscale = 0;
        while space > crate::segment::WINDOW_FIELD_MAX && wscale < 14 {
            space >>= 1;
            wscale += 1;
        }
        let tick_ns = 1_000_000_000 / u64::from(host.hz);
        HostConf {
            mss_bytes: mtu_bytes - crate::segment::HEADER_BYTES,
            tick_ns,
            tick: Divisor::new(tick_ns),
            rto_max_jiffies: (RTO_MAX_US * 1_000).div_ceil(tick_ns),
            wscale,
            host: host.clone(),
        }
    }

    /// Whole ticks in `ns`.
    #[inline]
    pub fn ticks(&self, ns: u64) -> u64 {
        self.tick.quotient(ns)
    }

    #[inline]
    pub fn jiffies(&self, now_ns: u64) -> u32 {
        self.ticks(now_ns) as u32
    }

    /// Ticks that last at least `ns`.
    #[inline]
    pub fn ns_to_jiffies(&self, ns: u64) -> u64 {
        self.ticks(ns + (self.tick_ns - 1))
    }

    /// usecs_to_jiffies(): rounded up.
    #[inline]
    pub fn us_to_jiffies(&self, us: u64) -> u64 {
        self.ns_to_jiffies(us * 1_000)
    }

    /// When a timer armed now for `jiffies` ticks fires: at a tick, never
    /// early, and from 63 ticks on at every 8th tick only, from 511 on at every
    /// 64th (kernel/time/timer.c, the wheel's levels).
    pub fn timer_at(&self, now_ns: u64, jiffies: u64) -> u64 {
        let expires = self.ticks(now_ns) + jiffies;
        let shift = match jiffies {
            0..63 => 0,
            63..504 => 3,
            _ => 6,
        };
        (((expires >> shift) + 1) << shift) * self.tick_ns
    }
}

/// Divides by a number that stays the same: times are turned into ticks several
/// times per packet, and two multiplications are faster than a division.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    by: u64,
    /// 2^64 / `by`, rounded down.
    inverse: u64,
}

impl Divisor {
    fn new(by: u64) -> Divisor {
        Divisor {
            by,
            inverse: u64::MAX / by,
        }
    }

    #[inline]
    fn quotient(self, n: u64) -> u64 {
        // Right, or one less because of the rounding.
        let q = ((u128::from(n) * u128::from(self.inverse)) >> 64) as u64;
        q + u64::from(n - q * self.by >= self.by)
    }
}

/// What an endpoint may use while it is called.
pub struct Cx<'a> {
    /// Time since the hosts booted, ns.
    pub now_ns: u64,
    pub host: &'a HostConf,
    /// Where segments live until they arrive.
    pub slab: &'a mut Slab,
    /// Segments handed to the qdisc, in order; each is one wire packet.
    pub out: &'a mut Vec<u32>,
    /// Turning points, for the `events` table.
    pub events: &'a mut Vec<&'static str>,
}

impl Cx<'_> {
    pub fn now_us(&self) -> u64 {
        self.now_ns / 1_000
    }
    pub fn now_ms(&self) -> u32 {
        (self.now_ns / 1_000_000) as u32
    }
    pub fn jiffies(&self) -> u32 {
        self.host.jiffies(self.now_ns)
    }
}

#[cfg(test)]
mod tests {
    use knee_model::scenario::{self, AlgorithmInfo, Names};

    use super::*;

    impl HostConf {
        /// A host of a scenario, with these lines in its table.
        pub fn with_keys(keys: &str) -> HostConf {
            let text = format!(
                "duration = \"1s\"\n[path]\nrate = \"1Mbit/s\"\nrtt = \"100ms\"\n[sender]\n{keys}\
                 [[flow]]\nalgorithm = \"reno\"\n"
            );
            let reno = AlgorithmInfo {
                name: "reno".to_owned(),
                params: Vec::new(),
            };
            let names = Names {
                algorithms: vec![reno],
                read_file: None,
            };
            let parsed = scenario::parse(&text, "test", &names).expect("a scenario");
            HostConf::new(&parsed.cells[0].sender, 1500)
        }
    }

    #[test]
    fn a_divisor_gives_the_quotient_of_whatever_number() {
        for by in [1, 2, 3, 1_000_000, 1_001_001, 3_333_333, 10_000_000] {
            let divisor = Divisor::new(by);
            let near = |n: u64| [n - 1, n, n.wrapping_add(1)];
            let powers = (0..64).flat_map(|bit| near(1 << bit));
            let multiples = (1..2_000).flat_map(|k: u64| near(k.pow(3) * by));
            for n in powers.chain(multiples).chain(near(u64::MAX)) {
                assert_eq!(divisor.quotient(n), n / by, "{n} / {by}");
            }
        }
    }
}
