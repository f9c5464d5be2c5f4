//! Quantities with their units: the types that cross module borders.
//!
//! Text forms ("100ms", "50Mbit/s", "1.5%") are in [`parse`]; arithmetic that
//! mixes a rate with a time is here, with its rounding stated.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::sync::Arc;

use serde::{Serialize, Serializer};

pub mod cpus;
pub mod files;
pub mod params;
pub mod parse;
pub mod rng;
pub mod text;

/// When what never comes is due, ns.
pub const NEVER: u64 = u64::MAX;

/// A point in time or a length of time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Nanos(pub u64);

impl Nanos {
    pub const ZERO: Nanos = Nanos(0);
    /// Later than everything: "no deadline".
    pub const MAX: Nanos = Nanos(u64::MAX);

    pub const fn from_us(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }
    pub const fn from_ms(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }
    pub const fn from_secs(s: u64) -> Nanos {
        Nanos(s * 1_000_000_000)
    }
    /// Whole microseconds, rounded down as the kernel's clocks do.
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}
impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}
impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}
impl Mul<u64> for Nanos {
    type Output = Nanos;
    fn mul(self, n: u64) -> Nanos {
        Nanos(self.0 * n)
    }
}
impl fmt::Display for Nanos {
    /// The largest unit that keeps the value whole: `100ms`, `1500us`, `30s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n % 1_000_000_000 == 0 => write!(f, "{}s", n / 1_000_000_000),
            n if n % 1_000_000 == 0 => write!(f, "{}ms", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{}us", n / 1_000),
            n => write!(f, "{n}ns"),
        }
    }
}

/// A data rate in bits per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Rate(u64);

impl Rate {
    /// `None` when the rate is zero: nothing would ever leave.
    pub const fn from_bits_per_sec(bits_per_sec: u64) -> Option<Rate> {
        if bits_per_sec == 0 {
            None
        } else {
            Some(Rate(bits_per_sec))
        }
    }
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }
    /// Time on the wire of `bytes`, rounded up: a packet is never early.
    pub fn transmit_time(self, bytes: u64) -> Nanos {
        let bit_ns = bytes as u128 * 8 * 1_000_000_000;
        Nanos(bit_ns.div_ceil(self.0 as u128) as u64)
    }
    /// Whole bytes that fit into `time`, rounded down. With `time` = RTT this is the BDP.
    pub fn bytes_in(self, time: Nanos) -> u64 {
        (self.0 as u128 * time.0 as u128 / 8 / 1_000_000_000) as u64
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            r if r % 1_000_000_000 == 0 => write!(f, "{}Gbit/s", r / 1_000_000_000),
            r if r % 1_000_000 == 0 => write!(f, "{}Mbit/s", r / 1_000_000),
            r if r % 1_000 == 0 => write!(f, "{}kbit/s", r / 1_000),
            r => write!(f, "{r}bit/s"),
        }
    }
}

/// What one or several `Arc`s hold, for `#[serde(serialize_with)]`.
pub fn serialize_shared<T: Shared, S: Serializer>(shared: &T, to: S) -> Result<S::Ok, S::Error> {
    shared.content().serialize(to)
}

/// Serialised as what it holds.
pub trait Shared {
    fn content(&self) -> impl Serialize;
}

impl<T: Serialize> Shared for Arc<T> {
    fn content(&self) -> impl Serialize {
        &**self
    }
}

impl<T: Shared> Shared for Option<T> {
    fn content(&self) -> impl Serialize {
        self.as_ref().map(Shared::content)
    }
}
