//! Text forms of quantities: `100ms`, `50Mbit/s`, `1.5%`, `256KiB`, `2bdp`.
//!
//! A form is a decimal number and a unit. Arithmetic is exact: a value that is
//! not a whole number of the smallest unit is refused, never rounded.

use super::{Nanos, Rate};

mod measure;

pub use measure::Measure;

/// Forms of a length of time, as errors and help show them.
pub const DURATION_FORMS: &str = "a length of time such as \"100ms\" (ns, us, ms, s, min, h)";
/// Forms of a rate.
pub const RATE_FORMS: &str =
    "a rate such as \"50Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or \"unlimited\"";
/// Forms of an amount of data.
pub const BYTES_FORMS: &str = "an amount of data such as \"256KiB\" (B, kB, MB, GB, KiB, MiB, GiB)";
/// Forms of a share.
pub const SHARE_FORMS: &str = "a share such as \"1.5%\"";
/// Forms of a queue's size.
pub const PER_SEC_FORMS: &str = "a number per second such as \"50/s\"";

pub const BUFFER_FORMS: &str =
    "a queue size such as \"1bdp\", \"256KiB\", \"170packets\", \"20ms\" or \"unlimited\"";
/// Forms of a figure that others published.
pub const FIGURE_FORMS: &str = "a quantity with its unit such as \"10.5Mbit/s\", \"57ms\", \"80kB\", \"140000/s\" or \"1.5%\", or a ratio such as \"31.7\", in quotes";

/// No limit: a form of rates and queue sizes.
const UNLIMITED: &str = "unlimited";

/// Why a text is not the quantity it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    #[error("got {}; expected {expected}.{}", quoted(.text), did_you_mean(.suggestion))]
    NotANumber {
        text: String,
        expected: &'static str,
        suggestion: Option<String>,
    },
    #[error("got {}, a bare number; expected {expected}. Write the unit behind the number.", quoted(.text))]
    NoUnit {
        text: String,
        expected: &'static str,
    },
    #[error(
        "got {}, whose unit {} is unknown here; expected {expected}.{}",
        quoted(.text), quoted(.unit), .meant.question()
    )]
    UnknownUnit {
        text: String,
        unit: String,
        expected: &'static str,
        meant: Box<Meant>,
    },
    #[error("got {}, which is negative; expected {expected}.", quoted(.text))]
    Negative {
        text: String,
        expected: &'static str,
    },
    /// Not a whole number of `step`.
    #[error("got {}, which is not a whole number of {step}; expected {expected}. Round it.", quoted(.text))]
    TooFine {
        text: String,
        step: &'static str,
        expected: &'static str,
    },
    #[error("got {}, which is too large to compute with; expected {expected}.", quoted(.text))]
    TooLarge {
        text: String,
        expected: &'static str,
    },
    #[error("got {}; expected a rate above zero, or \"unlimited\". Nothing ever leaves at rate zero.", quoted(.text))]
    ZeroRate { text: String },
}

/// What a quantity with an unknown unit probably says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    Unknown,
    This(String),
    /// A rate whose unit does not tell bits from bytes.
    Either {
        bits: String,
        bytes: String,
    },
}

impl Meant {
    /// ` Did you mean "…"?`, or nothing.
    fn question(&self) -> String {
        match self {
            Meant::Unknown => String::new(),
            Meant::This(text) => format!(" Did you mean {}?", quoted(text)),
            Meant::Either { bits, bytes } => format!(
                " Did you mean {} or, if these are bytes, {}?",
                quoted(bits),
                quoted(bytes)
            ),
        }
    }
}

/// A queue's size as written, before rate and RTT turn it into bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    Unlimited,
    Bytes(u64),
    Packets(u32),
    /// What the link sends in this time.
    Time(Nanos),
    /// `numerator / denominator` times rate × RTT.
    Bdp {
        numerator: u64,
        denominator: u64,
    },
}

/// `100ms`, to the nanosecond.
pub fn duration(text: &str) -> Result<Nanos, UnitError> {
    Quantity::read(text, DURATION_FORMS)?
        .whole(TIMES, "nanoseconds")
        .map(Nanos)
}

/// `50Mbit/s`; `None` is `unlimited`.
pub fn rate(text: &str) -> Result<Option<Rate>, UnitError> {
    if text == UNLIMITED {
        return Ok(None);
    }
    let bits = Quantity::read(text, RATE_FORMS)?.whole(RATES, "bits per second")?;
    Rate::from_bits_per_sec(bits)
        .map(Some)
        .ok_or(UnitError::ZeroRate { text: text.into() })
}

/// `256KiB`.
pub fn bytes(text: &str) -> Result<u64, UnitError> {
    Quantity::read(text, BYTES_FORMS)?.whole(SIZES, "bytes")
}

/// `1.5%` as a share: 0.015, the double nearest to it. Not bounded from above.
pub fn share(text: &str) -> Result<f64, UnitError> {
    let quantity = Quantity::read(text, SHARE_FORMS)?;
    if quantity.unit != "%" {
        return Err(quantity.unknown_unit(&[("%", 1)]));
    }
    // A mantissa below 2^53 and powers of ten up to 10^22 are exact, so the quotient is correctly rounded.
    Ok(quantity.mantissa as f64 / 10u128.pow(quantity.places + 2) as f64)
}

/// `50/s`, `0.2/s`: the double nearest to it.
pub fn per_sec(text: &str) -> Result<f64, UnitError> {
    let quantity = Quantity::read(text, PER_SEC_FORMS)?;
    if quantity.unit != "/s" {
        return Err(quantity.unknown_unit(&[("/s", 1)]));
    }
    Ok(quantity.mantissa as f64 / 10u128.pow(quantity.places) as f64)
}

/// `10.5Mbit/s`, `57ms`, `80kB`, `140000/s`, `1.5%`, or a bare ratio: says whether it is a figure.
///
/// A figure is shown and never computed with here, so it may be finer than the units' smallest.
pub fn figure(text: &str) -> Result<(), UnitError> {
    let quantity = match Quantity::read(text, FIGURE_FORMS) {
        // A ratio has no unit.
        Err(UnitError::NoUnit { .. }) => return Ok(()),
        other => other?,
    };
    let every: Vec<_> = [RATES, TIMES, SIZES, &[("/s", 1), ("%", 1)]].concat();
    if every.iter().any(|(name, _)| *name == quantity.unit) {
        Ok(())
    } else {
        Err(quantity.unknown_unit(&every))
    }
}

/// `1bdp`, `256KiB`, `170packets`, `20ms` or `unlimited`.
pub fn buffer(text: &str) -> Result<BufferSize, UnitError> {
    if text == UNLIMITED {
        return Ok(BufferSize::Unlimited);
    }
    let quantity = Quantity::read(text, BUFFER_FORMS)?;
    let has = |units: &[(&str, u64)]| units.iter().any(|(name, _)| *name == quantity.unit);
    if has(TIMES) {
        return quantity
            .whole(TIMES, "nanoseconds")
            .map(|ns| BufferSize::Time(Nanos(ns)));
    }
    if has(SIZES) {
        return quantity.whole(SIZES, "bytes").map(BufferSize::Bytes);
    }
    if has(PACKETS) {
        let packets = quantity.whole(PACKETS, "packets")?;
        let packets = u32::try_from(packets).map_err(|_| quantity.too_large())?;
        return Ok(BufferSize::Packets(packets));
    }
    if quantity.unit == "bdp" {
        let numerator = u64::try_from(quantity.mantissa).map_err(|_| quantity.too_large())?;
        let denominator = 10u64
            .checked_pow(quantity.places)
            .ok_or_else(|| quantity.too_large())?;
        return Ok(BufferSize::Bdp {
            numerator,
            denominator,
        });
    }
    let every: Vec<_> = [TIMES, SIZES, PACKETS, &[("bdp", 1)]].concat();
    Err(quantity.unknown_unit(&every))
}

/// A text from a file, quoted for an error: on one line, cut after 60 characters.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", on_one_line(text, 60))
}

/// A text from a file for an error, cut after `limit` characters.
pub fn on_one_line(text: &str, limit: usize) -> String {
    let more = text.chars().nth(limit).map(|_| '…');
    // Only what would break the line is escaped: a quote inside stays readable.
    let clean = text.chars().take(limit).flat_map(|c| {
        if c.is_control() {
            c.escape_default().collect::<Vec<_>>()
        } else {
            vec![c]
        }
    });
    clean.chain(more).collect()
}

/// ` Did you mean "…"?`, or nothing.
pub fn did_you_mean(suggestion: &Option<String>) -> String {
    suggestion
        .as_ref()
        .map(|s| format!(" Did you mean {}?", quoted(s)))
        .unwrap_or_default()
}

const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const RATES: &[(&str, u64)] = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
];
const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
const PACKETS: &[(&str, u64)] = &[("packets", 1), ("packet", 1)];

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
struct Quantity<'a> {
    text: &'a str,
    mantissa: u128,
    places: u32,
    unit: &'a str,
    expected: &'static str,
}

impl<'a> Quantity<'a> {
    fn read(text: &'a str, expected: &'static str) -> Result<Quantity<'a>, UnitError> {
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
    fn whole(&self, units: &[(&str, u64)], step: &'static str) -> Result<u64, UnitError> {
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

    fn too_large(&self) -> UnitError {
        UnitError::TooLarge {
            text: self.text.into(),
            expected: self.expected,
        }
    }

    fn unknown_unit(&self, units: &[(&str, u64)]) -> UnitError {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        assert_eq!(duration("100ms"), Ok(Nanos::from_ms(100)));
        assert_eq!(duration("0.0000001s"), Ok(Nanos(100)));
        assert_eq!(duration("1.5 min"), Ok(Nanos::from_secs(90)));
        assert_eq!(rate("0.1Mbit/s"), Ok(Rate::from_bits_per_sec(100_000)));
        assert_eq!(rate("unlimited"), Ok(None));
        assert_eq!(bytes("1.5KiB"), Ok(1536));
        assert_eq!(bytes("64kB"), Ok(64_000));
        assert_eq!(share("1.5%"), Ok(0.015));
        assert_eq!(share("0.001%"), Ok(1e-5));
        assert_eq!(
            buffer("0.5bdp"),
            Ok(BufferSize::Bdp {
                numerator: 5,
                denominator: 10
            })
        );
        assert_eq!(buffer("170packets"), Ok(BufferSize::Packets(170)));
        assert_eq!(buffer("20ms"), Ok(BufferSize::Time(Nanos::from_ms(20))));
        assert_eq!(buffer("256KiB"), Ok(BufferSize::Bytes(262_144)));
    }

    #[test]
    fn what_is_not_a_quantity_is_refused_with_the_next_step() {
        let said = |error: UnitError| error.to_string();
        assert_eq!(
            said(duration("100").unwrap_err()),
            "got \"100\", a bare number; expected a length of time such as \"100ms\" (ns, us, ms, s, min, h). Write the unit behind the number."
        );
        assert!(said(rate("50Mbps").unwrap_err()).ends_with("Did you mean \"50Mbit/s\"?"));
        assert!(said(rate("50mbit/s").unwrap_err()).ends_with("Did you mean \"50Mbit/s\"?"));
        for (text, bits, bytes) in [
            ("200Mb", "200Mbit/s", "1600Mbit/s"),
            ("10G", "10Gbit/s", "80Gbit/s"),
            ("0.05 MB/s", "0.05Mbit/s", "0.4Mbit/s"),
            ("2.5k", "2.5kbit/s", "20kbit/s"),
            ("1/s", "1bit/s", "8bit/s"),
        ] {
            let question = format!("Did you mean \"{bits}\" or, if these are bytes, \"{bytes}\"?");
            let got = said(rate(text).unwrap_err());
            assert!(got.ends_with(&question), "{text}: {got}");
        }
        assert!(said(duration("10G").unwrap_err()).ends_with("(ns, us, ms, s, min, h)."));
        assert!(said(duration("20msec").unwrap_err()).ends_with("Did you mean \"20ms\"?"));
        assert!(said(bytes("64K").unwrap_err()).ends_with("Did you mean \"64KiB\"?"));
        assert!(said(buffer("10pkts").unwrap_err()).ends_with("Did you mean \"10packets\"?"));
        assert!(said(rate("unlimitd").unwrap_err()).ends_with("Did you mean \"unlimited\"?"));
        assert!(matches!(duration("-1s"), Err(UnitError::Negative { .. })));
        assert!(matches!(duration("1.5ns"), Err(UnitError::TooFine { .. })));
        assert!(matches!(
            duration("99999999999h"),
            Err(UnitError::TooLarge { .. })
        ));
        assert!(matches!(
            duration(&"9".repeat(500)),
            Err(UnitError::NoUnit { .. })
        ));
        assert!(matches!(
            bytes(&format!("{}B", "9".repeat(500))),
            Err(UnitError::TooLarge { .. })
        ));
        assert!(matches!(rate("0bit/s"), Err(UnitError::ZeroRate { .. })));
        for text in ["", "ms", ".5s", "5.s", "+1s", "one", "∞"] {
            assert!(
                matches!(duration(text), Err(UnitError::NotANumber { .. })),
                "{text}"
            );
        }
        assert!(
            duration("1e3s").is_err() && duration("1_000s").is_err() && duration("0x1s").is_err()
        );
    }

    #[test]
    fn a_figure_is_any_quantity_or_a_ratio() {
        for text in [
            "10.5Mbit/s",
            "57 ms",
            "2.7us",
            "80kB",
            "140000/s",
            "98.20%",
            "31.7",
            "0%",
        ] {
            assert_eq!(figure(text), Ok(()), "{text}");
        }
        let said = |text| figure(text).unwrap_err().to_string();
        assert!(said("611Mbps").ends_with("Did you mean \"611Mbit/s\"?"));
        assert!(said("4packets").contains("whose unit \"packets\" is unknown here"));
        for text in [
            "",
            "about 600Mbit/s",
            "-1ms",
            "1.55-1.86",
            "1.2x",
            "unlimited",
        ] {
            assert!(figure(text).is_err(), "{text}");
        }
    }

    #[test]
    fn quoted_text_stays_on_one_line_and_short() {
        assert_eq!(quoted("a\nb\u{7f}"), "\"a\\nb\\u{7f}\"");
        assert_eq!(quoted(&"x".repeat(100)).chars().count(), 63);
    }
}
