//! Rates that change with time, as recorded: the format of mahimahi.
//!
//! A line is a millisecond since the beginning at which one packet of 1504
//! bytes may leave, lines of the same number are packets of the same
//! millisecond; after the last line the trace begins anew. An opportunity
//! carries whole small packets or a part of a large one; what nobody uses is lost.

use std::fmt::Write as _;
use std::sync::Arc;

use knee_units::files::{FileError, Files, lines};
use knee_units::parse::quoted;
use knee_units::{Nanos, Rate};
use serde::Serialize;

/// Bytes of an opportunity. Netravali et al.: Mahimahi, USENIX ATC 2015; mahimahi's
/// packets are 1500 bytes and the four of the TUN device's header.
pub const OPPORTUNITY_BYTES: u32 = 1504;
/// A day of milliseconds.
const LONGEST_MS: u32 = 86_400_000;

/// Traces that need no file.
const BUNDLED: &[(&str, &str)] = &[
    (
        "cellular",
        include_str!("../../../../gallery/traces/cellular.up"),
    ),
    ("wifi", include_str!("../../../../gallery/traces/wifi.up")),
    (
        "satellite",
        include_str!("../../../../gallery/traces/satellite.up"),
    ),
];

/// Names of the bundled traces.
pub fn bundled() -> impl Iterator<Item = &'static str> {
    BUNDLED.iter().map(|(name, _)| *name)
}

/// When packets may leave a link, over and over.
#[derive(Debug, PartialEq, Serialize)]
pub struct RateTrace {
    /// As the scenario names it.
    #[serde(skip)]
    pub name: String,
    /// Not falling, the last one above 0.
    opportunities_ms: Vec<u32>,
}

impl RateTrace {
    /// A bundled trace, or a file.
    ///
    /// # Errors
    /// The file cannot be read or is no trace.
    pub fn find(name: &str, files: Files<'_>) -> Result<Arc<RateTrace>, FileError> {
        let found = BUNDLED.iter().find(|(known, _)| *known == name);
        let trace = match found {
            Some((_, text)) => RateTrace::read(name, name, text)?,
            None => files.parsed(name, |path, found| RateTrace::read(name, path, &found.text))?,
        };
        Ok(Arc::new(trace))
    }

    /// Reads mahimahi's format; `path` stands in errors.
    ///
    /// # Errors
    /// The first line that is none.
    pub fn read(name: &str, path: &str, text: &str) -> Result<RateTrace, FileError> {
        let mut opportunities_ms = Vec::new();
        for (line, word) in lines(text) {
            let last = opportunities_ms.last().copied().unwrap_or(0);
            let ms = word.parse().ok();
            let Some(ms) = ms.filter(|ms| (last..=LONGEST_MS).contains(ms)) else {
                return Err(FileError::Content {
                    file: path.into(),
                    line: Some(line),
                    got: format!("got {} behind {last}", quoted(word)),
                    expected: format!("whole milliseconds up to {LONGEST_MS}, which never fall"),
                });
            };
            opportunities_ms.push(ms);
        }
        if opportunities_ms.last().is_none_or(|&last| last == 0) {
            return Err(FileError::Content {
                file: path.into(),
                line: None,
                got: "it says nothing after the millisecond 0".into(),
                expected: "a line for each packet that may leave".into(),
            });
        }
        Ok(RateTrace {
            name: name.into(),
            opportunities_ms,
        })
    }

    /// Of a link whose rate stays: opportunities as early as the rate has earned them,
    /// for `length` rounded up to whole ms. `None`: there would be none in it.
    pub fn constant(rate: Rate, length: Nanos) -> Option<RateTrace> {
        const NS_PER_MS: u128 = 1_000_000;
        let bit_ns = u128::from(OPPORTUNITY_BYTES) * 8 * 1_000_000_000;
        let length_ns = u128::from(length.0).next_multiple_of(NS_PER_MS);
        let bits_per_sec = u128::from(rate.bits_per_sec());
        let earned_ms = |n: u128| (n * bit_ns).div_ceil(bits_per_sec).div_ceil(NS_PER_MS) as u32;
        let count = length_ns * bits_per_sec / bit_ns;
        (count > 0).then(|| RateTrace {
            name: rate.to_string(),
            opportunities_ms: (1..=count).map(earned_ms).collect(),
        })
    }

    /// Writes mahimahi's format.
    pub fn write(&self) -> String {
        let mut text = String::new();
        for ms in &self.opportunities_ms {
            let _ = writeln!(text, "{ms}");
        }
        text
    }

    /// How long it is before it begins anew.
    pub fn length(&self) -> Nanos {
        let last = self.opportunities_ms.last().copied();
        Nanos::from_ms(u64::from(last.expect("a trace is not empty")))
    }

    /// Bytes that may leave before `at`, of a trace that is played over and over.
    pub fn bytes_before(&self, at: Nanos) -> u64 {
        // Its last line is at the very end of a turn.
        let turns = at.0.saturating_sub(1) / self.length().0;
        let in_turn_ns = at.0 - turns * self.length().0;
        let lines = &self.opportunities_ms;
        let begun = lines.partition_point(|&ms| Nanos::from_ms(u64::from(ms)).0 < in_turn_ns);
        (turns * lines.len() as u64 + begun as u64) * u64::from(OPPORTUNITY_BYTES)
    }

    /// Over its whole length, rounded down; at least 1 bit/s.
    pub fn mean(&self) -> Rate {
        let bits = self.opportunities_ms.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
        let rate = bits * 1_000_000_000 / u128::from(self.length().0);
        Rate::from_bits_per_sec((rate as u64).max(1)).expect("above zero")
    }
}

/// A place in a trace that is being played.
#[derive(Clone, Debug)]
pub struct Cursor {
    trace: Arc<RateTrace>,
    /// When the trace's present turn began.
    turn_ns: u64,
    /// The next opportunity, within the trace.
    next: usize,
    /// The opportunity in use: when it was, and bytes left of it.
    at_ns: u64,
    left_bytes: u32,
}

impl Cursor {
    pub fn new(trace: Arc<RateTrace>, origin_ns: u64) -> Cursor {
        Cursor {
            trace,
            turn_ns: origin_ns,
            next: 0,
            at_ns: origin_ns,
            left_bytes: 0,
        }
    }

    /// When the last of `bytes` leaves that begin at `now_ns`. `skip` puts off an
    /// opportunity: to the time it gives, or later.
    pub fn end_ns(&mut self, now_ns: u64, bytes: u64, mut skip: impl FnMut(u64) -> u64) -> u64 {
        let mut rest = bytes;
        if self.at_ns < now_ns {
            // Nobody used it when it was there.
            self.left_bytes = 0;
        }
        loop {
            let taken = rest.min(u64::from(self.left_bytes));
            rest -= taken;
            self.left_bytes -= taken as u32;
            if rest == 0 {
                return self.at_ns;
            }
            self.at_ns = self.take(now_ns);
            loop {
                let later = skip(self.at_ns);
                if later == self.at_ns {
                    break;
                }
                self.at_ns = self.take(later);
            }
            self.left_bytes = OPPORTUNITY_BYTES;
        }
    }

    /// The next opportunity at `from_ns` or after, which is then past.
    fn take(&mut self, from_ns: u64) -> u64 {
        let trace = &self.trace.opportunities_ms;
        let length_ns = self.trace.length().0;
        if from_ns > self.turn_ns + length_ns {
            // At its end exactly is the last opportunity of the turn.
            self.turn_ns += (from_ns - self.turn_ns - 1) / length_ns * length_ns;
            self.next = 0;
        }
        let from_ms = from_ns.saturating_sub(self.turn_ns).div_ceil(1_000_000);
        if trace
            .get(self.next)
            .is_some_and(|&ms| u64::from(ms) < from_ms)
        {
            self.next += trace[self.next..].partition_point(|&ms| u64::from(ms) < from_ms);
        }
        if self.next == trace.len() {
            self.turn_ns += length_ns;
            self.next = 0;
        }
        let at_ns = self.turn_ns + u64::from(trace[self.next]) * 1_000_000;
        self.next += 1;
        at_ns
    }
}
