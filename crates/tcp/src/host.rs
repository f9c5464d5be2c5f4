//! A host's settings and clock, and what an endpoint is given when called.

use knee_kit::odds::unlikely;
use knee_units::Nanos;

use crate::pacer::TimerRule;
use crate::prr::PrrRule;
use crate::segment::Slab;

/// TCP_RTO_MAX
pub const RTO_MAX_US: u64 = 120_000_000;

/// Who spaces a sender's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// TCP's own timer, for algorithms that ask for pacing; the rest is unpaced.
    Internal,
    /// TCP's own timer, whatever the algorithm: what SO_MAX_PACING_RATE switches on.
    Timer,
    /// The fq qdisc, for every socket.
    Fq,
}

/// The window that the receive buffer holds after a round trip in which more was read than in any before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferGrowth {
    /// Twice what was read, and twice again by the share that it is more, as the sender may double its rate: since Linux 6.18
    /// (aa251c84636c, "tcp: fix too slow tcp_rcvbuf_grow() action").
    Rise,
    /// Twice what was read, as those that follow, and what waits beyond a hole: Linux 6.16 and 6.17 (65c5287892e9, "tcp: fix
    /// sk_rcvbuf overshoot"; 63ad7dfedfae, "tcp: adjust rcvbuf in presence of reorders").
    Twice,
    /// As `Rise`, of sixteen segments more, and nothing for what waits beyond a hole: before.
    Margin,
}

/// What TCP knows of its host's settings, named as the sysctls.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Jiffies per second.
    pub hz: u32,
    /// Least, initial and largest send buffer.
    pub tcp_wmem_bytes: [u64; 3],
    /// Least, initial and largest receive buffer.
    pub tcp_rmem_bytes: [u64; 3],
    /// Do both ends scale windows?
    pub tcp_window_scaling: bool,
    /// Do receive buffers grow?
    pub tcp_moderate_rcvbuf: bool,
    pub tcp_limit_output_bytes: u64,
    /// Does it limit sockets that are paced, too?
    pub tsq_limits_paced: bool,
    /// Does TSQ count packets until the NIC reports them sent, and not only those that the qdisc holds back?
    pub reports_sent: bool,
    pub tcp_slow_start_after_idle: bool,
    pub tcp_rto_min: Nanos,
    /// Delay of compressed SACKs, and how many one ACK may stand for.
    pub tcp_comp_sack_delay: Nanos,
    pub tcp_comp_sack_nr: u32,
    /// Share of the RTT that a compressed SACK waits at most, %.
    pub tcp_comp_sack_rtt_percent: u32,
    pub tcp_syn_linear_timeouts: u32,
    pub tcp_ecn: u8,
    pub pacing: Pacing,
    /// When TCP arms its pacing timer, if it has one.
    pub pacing_timer: TimerRule,
    /// Default pacing rate in percent of cwnd/srtt: below half of ssthresh, and from there on.
    pub tcp_pacing_ss_ratio: u32,
    pub tcp_pacing_ca_ratio: u32,
    /// Is the sending time of a packet when TCP handed it to the qdisc, as before Linux 4.20, and not when the qdisc lets it
    /// go?
    pub stamps_handover: bool,
    /// Route attribute: ACK everything at once.
    pub quickack: bool,
    pub initcwnd: u32,
    /// Largest TSO packet; 0 turns segmentation offload off.
    pub gso_max_bytes: u32,
    /// Does the pacing rate bound the size of TSO packets?
    pub tso_autosizing: bool,
    /// Log2 of the minimum RTT, us, that halves what TSO packets have beside a millisecond's worth.
    pub tcp_tso_rtt_log: u32,
    /// Share of the receive buffer that is taken for payload, in 256ths, and whether full packets show another.
    pub payload_share_q8: u32,
    pub measures_payload: bool,
    /// What the receive buffer grows to, and the RTT below which it grows by that.
    pub rcvbuf_growth: BufferGrowth,
    pub tcp_rcvbuf_low_rtt: Nanos,
    /// Does a packet take what it lacks from the next skb (Linux from 6.10 on)?
    pub grow_skb: bool,
    /// How the window grows in a reduction.
    pub prr: PrrRule,
}

/// Settings of a host, with what follows from them.
#[derive(Clone, Debug)]
pub struct HostConf {
    pub settings: Settings,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    pub tick_ns: u64,
    tick: Divisor,
    /// [`RTO_MAX_US`] in ticks.
    pub rto_max_jiffies: u64,
    /// Window scale that this host offers.
    pub wscale: u8,
}

/// tcp_select_initial_window(): the scale that lets so many bytes be offered in 16 bits.
pub(crate) fn window_scale(mut space: u64) -> u8 {
    let mut wscale = 0;
    while space > crate::segment::WINDOW_FIELD_MAX && wscale < 14 {
        space >>= 1;
        wscale += 1;
    }
    wscale
}

impl HostConf {
    pub fn new(settings: Settings, mtu_bytes: u32) -> HostConf {
        let wscale = match settings.tcp_window_scaling {
            true => window_scale(settings.tcp_rmem_bytes[2]),
            false => 0,
        };
        let tick_ns = 1_000_000_000 / u64::from(settings.hz);
        HostConf {
            mss_bytes: mtu_bytes - crate::segment::HEADER_BYTES,
            tick_ns,
            tick: Divisor::new(tick_ns),
            rto_max_jiffies: (RTO_MAX_US * 1_000).div_ceil(tick_ns),
            wscale,
            settings,
        }
    }

    /// Whole ticks in `ns`.
    #[inline]
    pub fn ticks(&self, ns: u64) -> u64 {
        self.tick.quotient(ns)
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

    /// When a timer armed in tick `now` for `jiffies` ticks fires: at a tick, never
    /// early, and from 63 ticks on at every 8th tick only, from 511 on at every
    /// 64th (kernel/time/timer.c, the wheel's levels).
    #[inline]
    pub fn timer_at(&self, now: u64, jiffies: u64) -> u64 {
        let expires = now + jiffies;
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

/// The time that a host's clock shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// Since the hosts booted, ns.
    pub now_ns: u64,
    /// The same in whole us. Each arrival asks for it several times.
    pub now_us: u64,
    /// Whole ticks until then.
    pub ticks: u64,
    /// When the last of them was.
    tick_ns: u64,
}

impl Clock {
    /// Time goes on.
    #[inline]
    pub fn set(&mut self, now_ns: u64, host: &HostConf) {
        self.now_ns = now_ns;
        self.now_us = now_ns / 1_000;
        if unlikely(now_ns - self.tick_ns >= host.tick_ns) {
            self.ticks = host.ticks(now_ns);
            self.tick_ns = self.ticks * host.tick_ns;
        }
    }
}

/// What an endpoint may use while it is called.
pub struct Cx<'a> {
    pub now: &'a Clock,
    pub host: &'a HostConf,
    /// Where segments live until they arrive.
    pub slab: &'a mut Slab,
    /// What was handed to the qdisc, in order: segments, and trains of them.
    pub out: &'a mut Vec<u32>,
    /// Turning points, for the `events` table.
    pub events: &'a mut Vec<&'static str>,
}

impl Cx<'_> {
    /// Time since the hosts booted, ns.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now.now_ns
    }
    /// The sending time of a packet that the qdisc lets go at `departure_ns`, for samples of RTT and delivery rate.
    #[inline]
    pub fn stamp_ns(&self, departure_ns: u64) -> u64 {
        match self.host.settings.stamps_handover {
            true => self.now_ns(),
            false => departure_ns,
        }
    }
    #[inline]
    pub fn now_us(&self) -> u64 {
        self.now.now_us
    }
    #[inline]
    pub fn now_ms(&self) -> u32 {
        (self.now_ns() / 1_000_000) as u32
    }
    #[inline]
    pub fn jiffies(&self) -> u32 {
        self.now.ticks as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Settings {
        /// Of a kernel that nobody tuned, with a jiffy of a millisecond.
        pub fn untuned() -> Settings {
            Settings {
                hz: 1000,
                tcp_wmem_bytes: [4_096, 16_384, 4 << 20],
                tcp_rmem_bytes: [4_096, 131_072, 6 << 20],
                tcp_window_scaling: true,
                tcp_moderate_rcvbuf: true,
                tcp_limit_output_bytes: 4 << 20,
                tsq_limits_paced: false,
                reports_sent: false,
                tcp_slow_start_after_idle: true,
                tcp_rto_min: Nanos(200_000_000),
                tcp_comp_sack_delay: Nanos(1_000_000),
                tcp_comp_sack_nr: 44,
                tcp_comp_sack_rtt_percent: 5,
                tcp_syn_linear_timeouts: 4,
                tcp_ecn: 2,
                pacing: Pacing::Internal,
                pacing_timer: TimerRule::WhenNeeded,
                tcp_pacing_ss_ratio: 200,
                tcp_pacing_ca_ratio: 120,
                stamps_handover: false,
                quickack: false,
                initcwnd: 10,
                gso_max_bytes: 65_536,
                tso_autosizing: true,
                tcp_tso_rtt_log: 9,
                payload_share_q8: 128,
                measures_payload: true,
                rcvbuf_growth: BufferGrowth::Rise,
                tcp_rcvbuf_low_rtt: Nanos::ZERO,
                grow_skb: true,
                prr: PrrRule::CatchUp,
            }
        }
    }

    impl Clock {
        pub fn at(now_ns: u64, host: &HostConf) -> Clock {
            let mut clock = Clock::default();
            clock.set(now_ns, host);
            clock
        }
    }

    impl HostConf {
        pub fn untuned() -> HostConf {
            HostConf::new(Settings::untuned(), 1500)
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
