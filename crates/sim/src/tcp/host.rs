//! A host's settings and clock, and what an endpoint is given when called.

use knee_model::scenario::Host;

use crate::segment::Slab;

/// Settings of a host, with what follows from them.
#[derive(Clone, Debug)]
pub struct HostConf {
    pub host: Host,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    pub tick_ns: u64,
    /// Window scale that this host offers.
    pub wscale: u8,
}

impl HostConf {
    pub fn new(host: &Host, mtu_bytes: u32) -> HostConf {
        // tcp_select_initial_window(): the scale that lets the largest buffer
        // be offered in 16 bits.
        let mut space = host.tcp_rmem_bytes[2];
        let mut wscale = 0;
        while space > 65_535 && wscale < 14 {
            space >>= 1;
            wscale += 1;
        }
        HostConf {
            mss_bytes: mtu_bytes - crate::segment::HEADER_BYTES,
            tick_ns: 1_000_000_000 / u64::from(host.hz),
            wscale,
            host: host.clone(),
        }
    }

    pub fn jiffies(&self, now_ns: u64) -> u32 {
        (now_ns / self.tick_ns) as u32
    }

    /// usecs_to_jiffies(): rounded up.
    pub fn us_to_jiffies(&self, us: u64) -> u64 {
        (us * 1_000).div_ceil(self.tick_ns)
    }

    /// When a timer armed now for `jiffies` ticks fires: at a tick, never
    /// early, and from 63 ticks on at every 8th tick only, from 511 on at every
    /// 64th (kernel/time/timer.c, the wheel's levels).
    pub fn timer_at(&self, now_ns: u64, jiffies: u64) -> u64 {
        let expires = now_ns / self.tick_ns + jiffies;
        let shift = match jiffies {
            0..63 => 0,
            63..504 => 3,
            _ => 6,
        };
        (((expires >> shift) + 1) << shift) * self.tick_ns
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
