//! Text forms of quantities: `100ms`, `50Mbit/s`, `1.5%`, `256KiB`, `2bdp`.
//!
//! A form is a decimal number and a unit. Arithmetic is exact: a value that is
//! not a whole number of the smallest unit is refused, never rounded.

mod measure;
mod quantity;

pub use measure::Measure;

use quantity::{PACKETS, Quantity, RATES, SIZES, TIMES};

use super::{Nanos, Rate};

/// Forms of a length of time, as errors and help show them.
pub const DURATION_FORMS: &str = "a length of time such as \"100ms\" (ns, us, ms, s, min, h)";
/// Forms of a rate.
pub const RATE_FORMS: &str =
    "a rate such as \"50Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or \"unlimited\"";
/// Forms of an amount of data.
pub const BYTES_FORMS: &str = "an amount of data such as \"256KiB\" (B, kB, MB, GB, KiB, MiB, GiB)";
/// Forms of a share.
pub const SHARE_FORMS: &str = "a share such as \"1.5%\"";
/// Forms of a number per second.
pub const PER_SEC_FORMS: &str = "a number per second such as \"50/s\"";
/// Forms of a queue's size.
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

#[cfg(test)]
mod tests;
