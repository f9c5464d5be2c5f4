//! When a link sends: at a constant rate, or as a trace says, with outages.

use std::fmt;
use std::sync::Arc;

use knee_units::{Nanos, Rate};
use serde::Serialize;

use super::rate::{Cursor, RateTrace};

/// A time during which a link sends nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Outage {
    /// After the run's start.
    pub start: Nanos,
    pub length: Nanos,
}

impl fmt::Display for Outage {
    /// As a scenario writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for {}", self.start, self.length)
    }
}

/// A link's outages, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Outages {
    /// Start and end on the engine's clock, those to come.
    ahead: std::collections::VecDeque<(u64, u64)>,
}

impl Outages {
    /// `outages` in order of time, apart from each other.
    pub fn new(outages: &[Outage], origin_ns: u64) -> Outages {
        let absolute = |outage: &Outage| {
            let start_ns = origin_ns + outage.start.0;
            (start_ns, start_ns + outage.length.0)
        };
        Outages {
            ahead: outages.iter().map(absolute).collect(),
        }
    }

    /// `now_ns`, or the end of the outage at that time. Times do not fall between calls.
    pub fn up_at(&mut self, now_ns: u64) -> u64 {
        while let Some(&(start_ns, end_ns)) = self.ahead.front() {
            if now_ns < start_ns {
                break;
            }
            if now_ns < end_ns {
                return end_ns;
            }
            self.ahead.pop_front();
        }
        now_ns
    }

    /// When work of `work_ns` that begins at `now_ns` is done: it rests in outages.
    fn end_ns(&mut self, now_ns: u64, work_ns: u64) -> u64 {
        let begin_ns = self.up_at(now_ns);
        let mut end_ns = begin_ns + work_ns;
        for &(start, end) in &self.ahead {
            if (begin_ns..end_ns).contains(&start) {
                end_ns += end - start;
            }
        }
        end_ns
    }
}

/// When a link is done with a packet.
#[derive(Clone, Debug)]
pub struct Schedule {
    course: Course,
    offer: Arc<Offer>,
}

/// What a link could send, had it always something to.
#[derive(Debug)]
struct Offer {
    rate: Rate,
    trace: Option<Arc<RateTrace>>,
    origin_ns: u64,
    /// Start and end of each.
    outages: Outages,
}

impl Offer {
    /// Without outages, before that time.
    fn uninterrupted(&self, at_ns: u64) -> u64 {
        let at = Nanos(at_ns.saturating_sub(self.origin_ns));
        match &self.trace {
            Some(trace) => trace.bytes_before(at),
            None => self.rate.bytes_in(at),
        }
    }

    fn bytes_before(&self, at_ns: u64) -> u64 {
        let away = self.outages.ahead.iter().map(|&(start_ns, end_ns)| {
            self.uninterrupted(end_ns.min(at_ns)) - self.uninterrupted(start_ns.min(at_ns))
        });
        self.uninterrupted(at_ns) - away.sum::<u64>()
    }
}

#[derive(Clone, Debug)]
enum Course {
    Constant {
        rate: Rate,
        /// Time on the wire of the packet size last seen: nearly all are alike.
        wire_time: (u32, u64),
    },
    Interrupted {
        rate: Rate,
        outages: Outages,
    },
    Trace {
        cursor: Cursor,
        outages: Outages,
    },
}

impl Schedule {
    /// `rate`: without a `trace` the link's, which begins at `origin_ns`.
    pub fn new(
        rate: Rate,
        trace: Option<Arc<RateTrace>>,
        outages: &[Outage],
        origin_ns: u64,
    ) -> Schedule {
        let is_interrupted = !outages.is_empty();
        let outages = Outages::new(outages, origin_ns);
        let offer = Arc::new(Offer {
            rate,
            trace: trace.clone(),
            origin_ns,
            outages: outages.clone(),
        });
        let course = match trace {
            Some(trace) => Course::Trace {
                cursor: Cursor::new(trace, origin_ns),
                outages,
            },
            None if is_interrupted => Course::Interrupted { rate, outages },
            None => Course::Constant {
                rate,
                wire_time: (0, 0),
            },
        };
        Schedule { course, offer }
    }

    /// Does it send at one rate, always?
    pub fn is_constant(&self) -> bool {
        matches!(self.course, Course::Constant { .. })
    }

    /// When the last bit of a packet leaves that the link takes at `now_ns`, after
    /// all before it have left.
    #[inline]
    pub fn end_ns(&mut self, now_ns: u64, bytes: u32) -> u64 {
        match &mut self.course {
            Course::Constant { rate, wire_time } => {
                if wire_time.0 != bytes {
                    *wire_time = (bytes, rate.transmit_time(u64::from(bytes)).0);
                }
                now_ns + wire_time.1
            }
            uneven => uneven.end_ns(now_ns, bytes.into()),
        }
    }

    /// Bytes that could have left until then, at that time included, since the link's beginning; none in outages.
    pub fn offered_bytes(&self, now_ns: u64) -> u64 {
        self.offer.bytes_before(now_ns + 1)
    }

    /// How long `bytes` that wait at `now_ns` take to leave.
    pub fn delay(&self, now_ns: u64, bytes: u64) -> Nanos {
        if bytes == 0 {
            return Nanos::ZERO;
        }
        let end_ns = self.course.clone().end_ns(now_ns, bytes);
        Nanos(end_ns - now_ns)
    }
}

impl Course {
    #[inline(never)]
    fn end_ns(&mut self, now_ns: u64, bytes: u64) -> u64 {
        match self {
            Course::Constant { rate, .. } => now_ns + rate.transmit_time(bytes).0,
            Course::Interrupted { rate, outages } => {
                outages.end_ns(now_ns, rate.transmit_time(bytes).0)
            }
            Course::Trace { cursor, outages } => {
                cursor.end_ns(now_ns, bytes, |at_ns| outages.up_at(at_ns))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rate::OPPORTUNITY_BYTES;
    use super::*;

    const MS: u64 = 1_000_000;

    fn schedule(text: &str, outages: &[Outage], origin_ns: u64) -> Schedule {
        let trace = RateTrace::read("t", "t", text).unwrap();
        Schedule::new(trace.mean(), Some(Arc::new(trace)), outages, origin_ns)
    }

    /// Ends in ms after the origin of packets that wait in a row.
    fn ends(schedule: &mut Schedule, origin_ns: u64, start_ms: u64, bytes: &[u32]) -> Vec<u64> {
        let mut now_ns = origin_ns + start_ms * MS;
        let mut ends = Vec::new();
        for &bytes in bytes {
            now_ns = schedule.end_ns(now_ns, bytes);
            ends.push((now_ns - origin_ns) / MS);
        }
        ends
    }

    #[test]
    fn opportunities_carry_packets_and_parts_of_them() {
        let mut schedule = schedule("2\n2\n5\n9\n", &[], 100 * MS);
        // Two small ones share the first; the large one needs what is left and two more.
        assert_eq!(
            ends(&mut schedule, 100 * MS, 0, &[700, 700, 3_000, 1_504]),
            [2, 2, 5, 9]
        );
    }

    #[test]
    fn trace_begins_anew_after_its_last_line() {
        let mut schedule = schedule("2\n5\n", &[], 0);
        assert_eq!(
            ends(&mut schedule, 0, 0, &[1_504; 6]),
            [2, 5, 7, 10, 12, 15]
        );
        // Long after: the turn from 1,000,000 ms on.
        assert_eq!(
            ends(&mut schedule, 0, 1_000_000, &[1_504; 3]),
            [1_000_000, 1_000_002, 1_000_005]
        );
    }

    #[test]
    fn unused_opportunity_is_gone() {
        let mut schedule = schedule("2\n5\n9\n", &[], 0);
        assert_eq!(ends(&mut schedule, 0, 1, &[100]), [2]);
        assert_eq!(ends(&mut schedule, 0, 3, &[1_504]), [5]);
        assert_eq!(ends(&mut schedule, 0, 6, &[1_504]), [9]);
    }

    #[test]
    fn full_queue_gets_all_that_a_link_offers() {
        let outages = [(4, 2), (11, 3)].map(|(start, length)| Outage {
            start: Nanos::from_ms(start),
            length: Nanos::from_ms(length),
        });
        for outages in [&[][..], &outages] {
            for text in ["2\n2\n5\n9\n", "0\n1\n4\n4\n", "1\n"] {
                let mut schedule = schedule(text, outages, 100 * MS);
                let (mut now_ns, mut bytes) = (100 * MS, 0);
                while now_ns < 140 * MS {
                    let left_ns = schedule.end_ns(now_ns, OPPORTUNITY_BYTES);
                    if left_ns > now_ns {
                        assert_eq!(schedule.offered_bytes(left_ns - 1), bytes, "{text}");
                    }
                    now_ns = left_ns;
                    bytes += u64::from(OPPORTUNITY_BYTES);
                }
            }
        }
        // 1500 bytes take 1 ms, and it rests for five of the 41.
        let rate = Rate::from_bits_per_sec(12_000_000).unwrap();
        let constant = Schedule::new(rate, None, &outages, 7);
        assert_eq!(constant.offered_bytes(7 + 41 * MS), 36 * 1_500);
        assert_eq!(constant.offered_bytes(7 + 5 * MS), 4 * 1_500);
    }

    #[test]
    fn mean_rate_is_what_a_full_queue_gets() {
        for name in super::super::rate::bundled() {
            let trace = RateTrace::find(name, knee_units::files::Files::NONE).unwrap();
            let (mean, length) = (trace.mean().bits_per_sec() as f64, trace.length());
            let mut schedule = Schedule::new(trace.mean(), Some(trace), &[], 7);
            let (mut now_ns, mut bytes) = (7, 0u64);
            while now_ns < 7 + 3 * length.0 {
                now_ns = schedule.end_ns(now_ns, 1_500);
                bytes += 1_500;
            }
            let got = bytes as f64 * 8e9 / (now_ns - 7) as f64;
            assert!((got / mean - 1.0).abs() < 0.001, "{name}: {got} of {mean}");
        }
    }

    #[test]
    fn written_trace_reads_back() {
        let trace = RateTrace::read("t", "t", "0\n1\n1\n7\n").unwrap();
        assert_eq!(trace.write(), "0\n1\n1\n7\n");
        assert_eq!(RateTrace::read("t", "t", &trace.write()).unwrap(), trace);
        // 100 ms of a constant 1 Mbit/s are 8.3 packets: the rate is right within one.
        let steady = RateTrace::constant(
            Rate::from_bits_per_sec(1_000_000).unwrap(),
            Nanos::from_ms(100),
        );
        let text = steady.unwrap().write();
        assert_eq!(text, "13\n25\n37\n49\n61\n73\n85\n97\n");
        let slow = Rate::from_bits_per_sec(1_000).unwrap();
        assert_eq!(RateTrace::constant(slow, Nanos::from_ms(100)), None);
    }

    #[test]
    fn trace_that_goes_back_or_says_nothing_is_refused_with_its_line() {
        let refusal = |text| {
            RateTrace::read("t", "a/t.up", text)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refusal("4\n\n3\n"),
            "a/t.up:3: got \"3\" behind 4; expected whole milliseconds up to 86400000, which never fall."
        );
        assert_eq!(
            refusal("4.5\n"),
            "a/t.up:1: got \"4.5\" behind 0; expected whole milliseconds up to 86400000, which never fall."
        );
        assert!(refusal("0\n0\n").starts_with("a/t.up: it says nothing"));
    }

    #[test]
    fn link_rests_in_outages_and_goes_on_where_it_was() {
        let outages = [(10, 5), (20, 5)].map(|(start, length)| Outage {
            start: Nanos::from_ms(start),
            length: Nanos::from_ms(length),
        });
        // 1500 bytes take 1 ms.
        let rate = Rate::from_bits_per_sec(12_000_000).unwrap();
        let mut constant = Schedule::new(rate, None, &outages, 0);
        assert_eq!(constant.delay(9 * MS, 3_000), Nanos::from_ms(7));
        assert_eq!(ends(&mut constant, 0, 8, &[1_500; 4]), [9, 10, 16, 17]);
        assert_eq!(constant.end_ns(19 * MS + MS / 2, 1_500), 25 * MS + MS / 2);
        assert_eq!(constant.end_ns(30 * MS, 1_500), 31 * MS);
        let mut trace = schedule("1\n", &outages, 0);
        assert_eq!(ends(&mut trace, 0, 9, &[1_504; 4]), [9, 15, 16, 17]);
    }
}
