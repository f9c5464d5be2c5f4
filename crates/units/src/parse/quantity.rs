//! A number with its unit, read exactly, and what was meant where the unit is unknown.

use super::{Meant, UNLIMITED, UnitError};

pub(super) const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
pub(super) const RATES: &[(&str, u64)] = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
];
pub(super) const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
pub(super) const PACKETS: &[(&str, u64)] = &[("packets", 1), ("packet", 1)];

/// What people write instead, in lower case, and what they mean.
const OTHER_SPELLINGS: &[(&str, &str)] = &[
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("msec", "ms"),
    ("msecs", "ms"),
    ("usec", "us"),
    ("usecs", "us"),
    ("µs", "us"),
    ("μs", "us"),
    ("nsec", "ns"),
    ("m", "min"),
    ("mins", "min"),
    ("minutes", "min"),
    ("hours", "h"),
    ("bps", "bit/s"),
    ("kbps", "kbit/s"),
    ("mbps", "Mbit/s"),
    ("gbps", "Gbit/s"),
    ("tbps", "Tbit/s"),
    ("bit", "bit/s"),
    ("kbit", "kbit/s"),
    ("mbit", "Mbit/s"),
    ("gbit", "Gbit/s"),
    ("tbit", "Tbit/s"),
    ("byte", "B"),
    ("bytes", "B"),
    ("k", "KiB"),
    ("m", "MiB"),
    ("g", "GiB"),
    ("p", "packets"),
    ("pkt", "packets"),
    ("pkts", "packets"),
    ("percent", "%"),
    ("pct", "%"),
];

/// A decimal number and its unit: `mantissa / 10^places` `unit`.
pub(super) struct Quantity<'a> {
    text: &'a str,
    pub(super) mantissa: u128,
    pub(super) places: u32,
    pub(super) unit: &'a str,
    expected: &'static str,
}

impl<'a> Quantity<'a> {
    pub(super) fn read(text: &'a str, expected: &'static str) -> Result<Quantity<'a>, UnitError> {
        let own = || text.to_string();
        if text
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        {
            return Err(UnitError::Negative {
                text: own(),
                expected,
            });
        }
        let digits =
            |s: &'a str| s.split_at(s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len()));
        let (whole, rest) = digits(text);
        let (fraction, unit) = match rest.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", rest),
        };
        if whole.is_empty() || (fraction.is_empty() && rest.starts_with('.')) {
            // Five letters in common tell "unlimitd" and "unlimeted" from other words.
            let unlimited =
                expected.contains(UNLIMITED) && text.to_lowercase().starts_with("unlim");
            let suggestion = unlimited.then(|| UNLIMITED.into());
            return Err(UnitError::NotANumber {
                text: own(),
                expected,
                suggestion,
            });
        }
        if unit.is_empty() {
            return Err(UnitError::NoUnit {
                text: own(),
                expected,
            });
        }
        let fraction = fraction.trim_end_matches('0');
        // 18 places are finer than any unit here can show; 10^18 still fits u64.
        let mantissa = format!("{whole}{fraction}")
            .parse()
            .ok()
            .filter(|_| fraction.len() <= 18);
        let mantissa = mantissa.ok_or_else(|| UnitError::TooLarge {
            text: own(),
            expected,
        })?;
        Ok(Quantity {
            text,
            mantissa,
            places: fraction.len() as u32,
            unit: unit.trim_start_matches(' '),
            expected,
        })
    }

    /// The value in the smallest of `units`, which must be a whole number of it.
    pub(super) fn whole(
        &self,
        units: &[(&str, u64)],
        step: &'static str,
    ) -> Result<u64, UnitError> {
        let Some((_, factor)) = units.iter().find(|(name, _)| *name == self.unit) else {
            return Err(self.unknown_unit(units));
        };
        let scaled = self
            .mantissa
            .checked_mul(*factor as u128)
            .ok_or_else(|| self.too_large())?;
        let divisor = 10u128.pow(self.places);
        if scaled % divisor != 0 {
            return Err(UnitError::TooFine {
                text: self.text.into(),
                step,
                expected: self.expected,
            });
        }
        u64::try_from(scaled / divisor).map_err(|_| self.too_large())
    }

    pub(super) fn too_large(&self) -> UnitError {
        UnitError::TooLarge {
            text: self.text.into(),
            expected: self.expected,
        }
    }

    pub(super) fn unknown_unit(&self, units: &[(&str, u64)]) -> UnitError {
        let lower = self.unit.to_lowercase();
        let same_but_case = units
            .iter()
            .map(|(name, _)| *name)
            .find(|name| name.to_lowercase() == lower);
        let spelled_otherwise = || {
            let known = |right: &&str| units.iter().any(|(name, _)| name == right);
            OTHER_SPELLINGS
                .iter()
                .filter(|(wrong, _)| *wrong == lower)
                .map(|(_, right)| *right)
                .find(known)
        };
        let right = same_but_case.or_else(spelled_otherwise);
        let number = self
            .text
            .strip_suffix(self.unit)
            .unwrap_or_default()
            .trim_end();
        let meant = match (right, self.bits_or_bytes(units)) {
            (Some(unit), _) => Meant::This(format!("{number}{unit}")),
            (None, Some(unit)) => Meant::Either {
                bits: format!("{number}{unit}"),
                bytes: format!("{}{unit}", self.eightfold()),
            },
            (None, None) => Meant::Unknown,
        };
        UnitError::UnknownUnit {
            text: self.text.into(),
            unit: self.unit.into(),
            expected: self.expected,
            meant: Box::new(meant),
        }
    }

    /// Of "Mb", "MB/s", "G" where a rate is expected: the rate's unit with that prefix.
    fn bits_or_bytes(&self, units: &[(&str, u64)]) -> Option<&'static str> {
        let lower = self.unit.to_lowercase();
        let without = |ending| lower.strip_suffix(ending);
        let prefix = without("b/s")
            .or_else(|| without("b"))
            .or_else(|| without("/s"))
            .unwrap_or(&lower);
        let known = |right: &&str| units.iter().any(|(name, _)| name == right);
        let with_prefix = |right: &&str| right.to_lowercase().strip_suffix("bit/s") == Some(prefix);
        let mut rates = RATES.iter().map(|(name, _)| *name).filter(known);
        rates.find(with_prefix)
    }

    /// Eight times the number.
    fn eightfold(&self) -> String {
        let digits = self.mantissa.saturating_mul(8).to_string();
        let places = self.places as usize;
        let digits = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let fraction = fraction.trim_end_matches('0');
        match fraction {
            "" => whole.into(),
            _ => format!("{whole}.{fraction}"),
        }
    }
}
