//! What the kernel's emulation did, in the words of tcpknee's own link.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use knee_clock::monotonic_ns;
use knee_link::{DirectionReport, LinkConfig, Report};
use knee_path::Path;
use knee_tables::QueueSample;
use knee_units::{Nanos, Rate};
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::stats::{Counters, Reader, Which};
use super::{TO_RECEIVER, TO_SENDER, is_user_mode_linux};

/// As of tcpknee's own link: a rate further off is another path.
const RATE_ERROR_PCT: f64 = 0.5;
/// A queue that was busy for less says little of the rate: neither in time, as of tcpknee's own link, nor in packets, of
/// which one more or less is seen.
const LEAST_BUSY_NS: u64 = 100_000_000;
const LEAST_BUSY_PKTS: u64 = 400;
/// The token bucket's handle and netem's, and the one of what comes in, where the policer is.
const BUCKET: u16 = 2;
const NETEM: u16 = 1;
const INGRESS: u16 = 0xffff;

/// Samples the router's qdiscs until `stop` becomes readable, in the router's
/// network namespace. Flows are not told apart, and lateness is not known.
///
/// `start_ns`: the run's beginning on CLOCK_MONOTONIC; times in the report count from it.
///
/// # Errors
/// The qdiscs cannot be read.
pub fn run(config: &LinkConfig, start_ns: u64, stop: BorrowedFd<'_>) -> io::Result<Report> {
    let index = |device| if_nametoindex(device).map(|index| index as i32);
    let (to_receiver, to_sender) = (index(TO_RECEIVER)?, index(TO_SENDER)?);
    let mut reader = Reader::new()?;
    let mut bottleneck = Bottleneck::new(&config.path);
    let mut next_ns = start_ns + config.sample_interval.0;
    while !stopped(stop, next_ns)? {
        let found = reader.read()?;
        let t_ns = monotonic_ns().saturating_sub(start_ns);
        let netem = of(&found, (to_receiver, NETEM))?;
        // Without a rate there is no bucket.
        let bucket = config.path.rate.map(|_| of(&found, (to_receiver, BUCKET)));
        let ingress = config.path.policer.as_ref();
        let ingress = ingress.map(|_| of(&found, (to_sender, INGRESS)));
        let policed_pkts = ingress.transpose()?.unwrap_or_default().dropped_pkts;
        bottleneck.sample(t_ns, netem, bucket.transpose()?, policed_pkts);
        next_ns += config.sample_interval.0;
    }
    let found = reader.read()?;
    let data = of(&found, (to_receiver, NETEM))?;
    let back = of(&found, (to_sender, NETEM))?;
    Ok(Report {
        directions: [
            bottleneck.report(data),
            DirectionReport {
                kept_up: true,
                ..carried(back)
            },
        ],
        queue: bottleneck.queue,
        flows: Vec::new(),
        realtime: false,
    })
}

/// The data direction over time.
struct Bottleneck {
    rate: Option<Rate>,
    /// A full one.
    packet_bytes: u64,
    queue: Vec<QueueSample>,
    busy_ns: u64,
    busy_bytes: u64,
}

impl Bottleneck {
    fn new(path: &Path) -> Self {
        Self {
            rate: path.rate,
            packet_bytes: u64::from(path.mtu_bytes + path.overhead_bytes),
            queue: Vec::new(),
            busy_ns: 0,
            busy_bytes: 0,
        }
    }

    /// `bucket`: without a rate there is none, and nothing waits for one. `policed_pkts`: what a policer dropped.
    fn sample(&mut self, t_ns: u64, netem: Counters, bucket: Option<Counters>, policed_pkts: u32) {
        let waiting = bucket.unwrap_or_default();
        let sent = bucket.unwrap_or(netem);
        let bytes = i64::from(waiting.queue_bytes);
        let (before, busy) = match self.queue.last() {
            Some(last) => (last.queue_bytes, last.queue_bytes > 0 && bytes > 0),
            None => (0, false),
        };
        if let Some(last) = self.queue.last().filter(|_| busy) {
            self.busy_ns += t_ns - last.t_ns as u64;
            self.busy_bytes += sent.sent_bytes - last.sent_bytes as u64;
        }
        let delay = self
            .rate
            .map_or(Nanos::ZERO, |rate| rate.transmit_time(bytes as u64));
        self.queue.push(QueueSample {
            cell: 0,
            rep: 0,
            t_ns: t_ns as i64,
            hop: 0,
            queue_pkts: i64::from(waiting.queue_pkts),
            queue_bytes: bytes,
            // What lies between two looks is not known.
            queue_bytes_max: bytes.max(before),
            queue_delay_us: delay.as_us() as i64,
            sent_pkts: i64::from(sent.sent_pkts),
            sent_bytes: sent.sent_bytes as i64,
            offered_bytes: self.rate.map(|rate| rate.bytes_in(Nanos(t_ns)) as i64),
            dropped_pkts: i64::from(waiting.dropped_pkts) + i64::from(policed_pkts),
            // Each kind of qdisc counts marks in a form of its own.
            marked_pkts: None,
            lost_pkts: i64::from(netem.dropped_pkts.saturating_sub(waiting.dropped_pkts)),
        });
    }

    fn was_busy(&self) -> bool {
        self.busy_ns >= LEAST_BUSY_NS && self.busy_bytes >= LEAST_BUSY_PKTS * self.packet_bytes
    }

    fn report(&self, netem: Counters) -> DirectionReport {
        let mut report = carried(netem);
        if let Some(rate) = self.rate.filter(|_| self.was_busy()) {
            let achieved = self.busy_bytes as f64 * 8e9 / self.busy_ns as f64;
            let asked = rate.bits_per_sec() as f64;
            report.achieved_rate_bits_per_sec = Some(achieved);
            report.rate_error_pct = Some((achieved - asked) / asked * 100.0);
        }
        // Between two looks a short queue may have been empty; where time is exact nothing is late.
        report.kept_up = is_user_mode_linux()
            || report
                .rate_error_pct
                .is_none_or(|error| error.abs() <= RATE_ERROR_PCT);
        report
    }
}

fn carried(netem: Counters) -> DirectionReport {
    DirectionReport {
        forwarded_pkts: u64::from(netem.sent_pkts),
        forwarded_bytes: netem.sent_bytes,
        ..DirectionReport::default()
    }
}

/// A qdisc that the kernel does not tell of is gone, which is not the same as one that counts nothing.
fn of(found: &[(Which, Counters)], which: Which) -> io::Result<Counters> {
    let counters = found.iter().find(|(other, _)| *other == which);
    counters.map(|&(_, counters)| counters).ok_or_else(|| {
        let (device, handle) = which;
        let what = format!("the router has no qdisc {handle}: at its device {device} any more");
        io::Error::new(io::ErrorKind::NotFound, what)
    })
}

/// Waits until then; returns whether to stop instead.
fn stopped(stop: BorrowedFd<'_>, then_ns: u64) -> io::Result<bool> {
    loop {
        let left = then_ns.saturating_sub(monotonic_ns());
        let mut fds = [PollFd::new(stop, PollFlags::POLLIN)];
        let timeout = TimeSpec::from_duration(Duration::from_nanos(left));
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(ready) => return Ok(ready > 0),
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of a queue that always has something to send, every 10 ms.
    #[test]
    fn a_rate_is_told_where_the_queue_was_busy_long_enough() {
        for (mbit, packets_each, samples, is_told) in [
            (10, 8, 1, false),
            // A packet is 1.2 % of 100 ms.
            (10, 8, 11, false),
            (10, 8, 60, true),
            (1_200, 1_000, 5, false),
            (1_200, 1_000, 11, true),
        ] {
            let mut bottleneck = Bottleneck {
                rate: Rate::from_bits_per_sec(mbit * 1_000_000),
                packet_bytes: 1_500,
                queue: Vec::new(),
                busy_ns: 0,
                busy_bytes: 0,
            };
            for sample in 0..=samples {
                let counters = Counters {
                    sent_bytes: sample * packets_each * 1_500,
                    queue_bytes: 3_000,
                    ..Counters::default()
                };
                bottleneck.sample(sample * 10_000_000, counters, Some(counters), 0);
            }
            let report = bottleneck.report(Counters::default());
            let found = (report.rate_error_pct.is_some(), report.kept_up);
            // 8 packets in 10 ms are 4 % too few.
            assert_eq!(
                found,
                (is_told, !is_told || mbit != 10),
                "{samples} of {mbit} Mbit/s"
            );
        }
    }

    #[test]
    fn qdisc_that_is_gone_is_no_qdisc_without_packets() {
        let counters = Counters {
            sent_pkts: 3,
            ..Counters::default()
        };
        let found = [((2, NETEM), counters)];
        assert_eq!(of(&found, (2, NETEM)).unwrap(), counters);
        let error = of(&found, (2, BUCKET)).unwrap_err().to_string();
        assert_eq!(error, "the router has no qdisc 2: at its device 2 any more");
    }
}
