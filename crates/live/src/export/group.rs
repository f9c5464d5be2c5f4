//! What is summed for the sockets of one group.

use std::collections::BTreeMap;

use knee_collect::sock_diag::tcp_info::TcpInfo;
use serde::Serialize;

use super::counter::{SHORT, WORD, moved_on};
use super::histogram::{BYTES_PER_SEC, Histogram, PPM, SEGMENTS, TIME_US};

/// A counter of `tcp_info` that only grows while its connection lasts.
struct Counter {
    name: &'static str,
    /// As wide as the kernel's own, which begins again from 0 beyond it.
    mask: u64,
    read: fn(&TcpInfo<'_>) -> Option<u64>,
}

macro_rules! counters {
    ($($name:ident $mask:expr;)*) => {
        /// In the order in which [`Values`] has them.
        const COUNTERS: &[Counter] = &[$(Counter {
            name: stringify!($name),
            mask: $mask,
            read: |info| info.$name().map(u64::from),
        }),*];
    };
}

const WIDE: u64 = u64::MAX;

counters! {
    bytes_sent WIDE;
    bytes_acked WIDE;
    bytes_received WIDE;
    bytes_retrans WIDE;
    busy_us WIDE;
    rwnd_limited_us WIDE;
    sndbuf_limited_us WIDE;
    data_segs_out WORD;
    total_retrans WORD;
    delivered WORD;
    delivered_ce WORD;
    dsack_dups WORD;
    reord_seen WORD;
    total_rto SHORT;
}

/// Positions in [`COUNTERS`].
const BYTES_SENT: usize = 0;
const BYTES_ACKED: usize = 1;
const BYTES_RECEIVED: usize = 2;
const BUSY_US: usize = 4;
const RWND_LIMITED_US: usize = 5;
const SNDBUF_LIMITED_US: usize = 6;
const DATA_SEGS_OUT: usize = 7;
const TOTAL_RETRANS: usize = 8;
const DELIVERED: usize = 9;

/// A connection's counters at one moment; those that its kernel lacks are 0.
pub type Values = [u64; COUNTERS.len()];

pub fn values(info: &TcpInfo<'_>) -> Values {
    std::array::from_fn(|at| (COUNTERS[at].read)(info).unwrap_or(0))
}

/// How far they came since then.
///
/// A socket that was disconnected, or cleared by its own reset, counts from 0.
fn since(now: &Values, earlier: &Values) -> Values {
    let begun_anew = [BYTES_SENT, BYTES_ACKED, BYTES_RECEIVED]
        .iter()
        .any(|&at| now[at] < earlier[at]);
    if begun_anew {
        return *now;
    }
    std::array::from_fn(|at| match COUNTERS[at].mask {
        // The kernel's clocks of busy times may be read a little apart.
        WIDE => now[at].saturating_sub(earlier[at]),
        mask => moved_on(now[at], earlier[at], mask),
    })
}

/// What can hold a connection back, in the order of [`Group::limited_us`].
const LIMITS: [&str; 7] = ["cwnd", "rwnd", "sndbuf", "pacing", "app", "idle", "unknown"];
const CWND: usize = 0;
const RWND: usize = 1;
const SNDBUF: usize = 2;
const PACING: usize = 3;
const APP: usize = 4;
const IDLE: usize = 5;
const UNKNOWN: usize = 6;
/// `tcpi_ca_state` of Recovery; Loss is above it.
const RECOVERY: u8 = 3;

/// Sums of all connections that ever were in the group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Of the last sample.
    pub connections: u64,
    pub closed: u64,
    counters: Values,
    limited_us: [u64; LIMITS.len()],
    srtt_us: Histogram,
    min_rtt_us: Histogram,
    snd_cwnd: Histogram,
    delivery_rate: Histogram,
    retransmit_ppm: Histogram,
}

impl Default for Group {
    fn default() -> Group {
        Group {
            connections: 0,
            closed: 0,
            counters: [0; COUNTERS.len()],
            limited_us: [0; LIMITS.len()],
            srtt_us: Histogram::new(TIME_US),
            min_rtt_us: Histogram::new(TIME_US),
            snd_cwnd: Histogram::new(SEGMENTS),
            delivery_rate: Histogram::new(BYTES_PER_SEC),
            retransmit_ppm: Histogram::new(PPM),
        }
    }
}

/// A group as it is told.
#[derive(Serialize)]
pub struct GroupView<'a> {
    pub algorithm: &'a str,
    pub by: Option<&'a str>,
    connections: u64,
    closed: u64,
    counters: BTreeMap<&'static str, u64>,
    limited_us: BTreeMap<&'static str, u64>,
    histograms: BTreeMap<&'static str, &'a Histogram>,
}

impl Group {
    /// Adds a connection's part since `earlier`. `elapsed_us`: the time since then,
    /// where it is known; `open`: it has not ended, so that the moment tells
    /// something of what holds it back.
    pub fn add(
        &mut self,
        info: &TcpInfo<'_>,
        earlier: &Values,
        elapsed_us: Option<u64>,
        open: bool,
    ) {
        let delta = since(&values(info), earlier);
        for (sum, part) in self.counters.iter_mut().zip(delta) {
            *sum = sum.saturating_add(part);
        }
        self.add_limits(info, &delta, elapsed_us, open);
        // What nothing was acked for is as old as the last ACK: it was told then.
        if delta[DELIVERED] > 0 || delta[BYTES_ACKED] > 0 {
            self.observe(info);
        }
        if delta[DATA_SEGS_OUT] > 0 {
            // A SYN sent again is no data: the kernel counts it with the one and not the other.
            let retrans = delta[TOTAL_RETRANS].min(delta[DATA_SEGS_OUT]);
            self.retransmit_ppm
                .observe(retrans * 1_000_000 / delta[DATA_SEGS_OUT]);
        }
    }

    fn observe(&mut self, info: &TcpInfo<'_>) {
        let told = |value: Option<u32>| value.filter(|&us| us > 0 && us != u32::MAX);
        if let Some(us) = told(info.srtt_us()) {
            self.srtt_us.observe(us.into());
        }
        if let Some(us) = told(info.min_rtt_us()) {
            self.min_rtt_us.observe(us.into());
        }
        if let Some(segments) = info.snd_cwnd() {
            self.snd_cwnd.observe(segments.into());
        }
        if let Some(rate) = info.delivery_rate().filter(|&rate| rate > 0) {
            self.delivery_rate.observe(rate);
        }
    }

    /// The kernel times the receiver's window and the send buffer. The rest of the
    /// busy time goes by the moment of the sample: to the window where it is full,
    /// to pacing where data waits all the same, else to the application. TSO may
    /// leave a third of the window unused on purpose.
    /// Source: tcp_info; sysctl net.ipv4.tcp_tso_win_divisor, 3 by default.
    fn add_limits(
        &mut self,
        info: &TcpInfo<'_>,
        delta: &Values,
        elapsed_us: Option<u64>,
        open: bool,
    ) {
        let (busy, rwnd, sndbuf) = (
            delta[BUSY_US],
            delta[RWND_LIMITED_US],
            delta[SNDBUF_LIMITED_US],
        );
        let full = 3 * u64::from(info.inflight()) >= 2 * u64::from(info.snd_cwnd().unwrap_or(0))
            || info.ca_state().is_some_and(|state| state >= RECOVERY);
        let rest = match () {
            () if !open => UNKNOWN,
            () if full => CWND,
            () if info.notsent_bytes().unwrap_or(0) > 0 => PACING,
            () => APP,
        };
        let quiet = match delta[BYTES_SENT] > 0 || busy > 0 {
            true => APP,
            false => IDLE,
        };
        for (limit, part_us) in [
            (RWND, rwnd),
            (SNDBUF, sndbuf),
            (rest, busy.saturating_sub(rwnd.saturating_add(sndbuf))),
            (
                quiet,
                elapsed_us.map_or(0, |elapsed| elapsed.saturating_sub(busy)),
            ),
        ] {
            let sum_us = &mut self.limited_us[limit];
            *sum_us = sum_us.saturating_add(part_us);
        }
    }

    pub fn view<'a>(&'a self, algorithm: &'a str, by: Option<&'a str>) -> GroupView<'a> {
        let names = COUNTERS.iter().map(|counter| counter.name);
        GroupView {
            algorithm,
            by,
            connections: self.connections,
            closed: self.closed,
            counters: names.zip(self.counters).collect(),
            limited_us: LIMITS.into_iter().zip(self.limited_us).collect(),
            histograms: BTreeMap::from([
                ("srtt_us", &self.srtt_us),
                ("min_rtt_us", &self.min_rtt_us),
                ("snd_cwnd", &self.snd_cwnd),
                ("delivery_rate", &self.delivery_rate),
                ("retransmit_ppm", &self.retransmit_ppm),
            ]),
        }
    }
}
