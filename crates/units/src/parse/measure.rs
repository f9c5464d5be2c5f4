//! What a quantity counts, whatever its unit: for values that are computed and then written as a file writes them.

use super::UnitError;
use super::quantity::{PACKETS, Quantity, RATES, SIZES, TIMES};

/// What a number counts, and in which unit it is given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// In ns.
    Time,
    /// In bit/s.
    Rate,
    Bytes,
    Packets,
    /// In percent.
    Share,
    PerSec,
    Bdp,
    /// A whole number without a unit.
    Count,
    /// A number without a unit.
    Ratio,
}

/// Those with a unit, each with its units and their sizes.
const WITH_UNIT: &[(Measure, &[(&str, u64)])] = &[
    (Measure::Time, TIMES),
    (Measure::Rate, RATES),
    (Measure::Bytes, SIZES),
    (Measure::Packets, PACKETS),
    (Measure::Share, &[("%", 1)]),
    (Measure::PerSec, &[("/s", 1)]),
    (Measure::Bdp, &[("bdp", 1)]),
];

impl Measure {
    /// What `text` counts, and how many. `expected` is for the error.
    ///
    /// # Errors
    /// It is neither a number nor one with a unit.
    pub fn read(text: &str, expected: &'static str) -> Result<(Measure, f64), UnitError> {
        let quantity = match Quantity::read(text, expected) {
            Err(UnitError::NoUnit { .. }) => {
                let measure = match text.contains('.') {
                    false => Measure::Count,
                    true => Measure::Ratio,
                };
                let number = text.parse();
                return Ok((measure, number.expect("it is digits and a point")));
            }
            other => other?,
        };
        for (measure, units) in WITH_UNIT {
            if let Some((_, factor)) = units.iter().find(|(name, _)| *name == quantity.unit) {
                let number = quantity.mantissa as f64 / 10u128.pow(quantity.places) as f64;
                return Ok((*measure, number * *factor as f64));
            }
        }
        let units = WITH_UNIT.iter().flat_map(|(_, units)| *units);
        let every: Vec<_> = units.copied().collect();
        Err(quantity.unknown_unit(&every))
    }

    /// Is it counted in whole numbers?
    pub fn is_whole(self) -> bool {
        use Measure::{Bytes, Count, Packets, Rate, Time};
        matches!(self, Time | Rate | Bytes | Packets | Count)
    }

    /// `43.22ms`: so many as a file writes them. What is counted in whole numbers is rounded to one.
    pub fn write(self, number: f64) -> String {
        if self == Measure::Packets {
            // Its units are of one size.
            return format!("{}packets", number.round());
        }
        let units = WITH_UNIT.iter().find(|(measure, _)| *measure == self);
        match units {
            Some((_, units)) if self.is_whole() => in_units(number.round() as u64, units),
            Some((_, units)) => format!("{number}{}", units[0].0),
            None if self.is_whole() => format!("{}", number.round()),
            None => format!("{number}"),
        }
    }
}

/// In the largest of the units that the number reaches and that are decimal: `43.22ms`, exactly.
fn in_units(number: u64, units: &[(&str, u64)]) -> String {
    let is_decimal = |size: u64| 10u64.pow(size.ilog10()) == size;
    let reached = units
        .iter()
        .rfind(|(_, size)| is_decimal(*size) && *size <= number)
        .unwrap_or(&units[0]);
    let (unit, size) = *reached;
    let (whole, rest) = (number / size, number % size);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let places = size.ilog10() as usize;
    let fraction = format!("{rest:0places$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_read_whatever_it_counts_and_written_in_the_largest_unit_that_it_reaches() {
        for (text, measure, number, written) in [
            ("43.22ms", Measure::Time, 43_220_000.0, "43.22ms"),
            ("0.5us", Measure::Time, 500.0, "500ns"),
            ("90s", Measure::Time, 9e10, "90s"),
            ("1500Mbit/s", Measure::Rate, 1.5e9, "1.5Gbit/s"),
            ("64KiB", Measure::Bytes, 65_536.0, "65.536kB"),
            ("1packet", Measure::Packets, 1.0, "1packets"),
            ("1.25%", Measure::Share, 1.25, "1.25%"),
            ("0.5bdp", Measure::Bdp, 0.5, "0.5bdp"),
            ("50/s", Measure::PerSec, 50.0, "50/s"),
            ("12", Measure::Count, 12.0, "12"),
            ("1.5", Measure::Ratio, 1.5, "1.5"),
            ("0ms", Measure::Time, 0.0, "0ns"),
        ] {
            assert_eq!(
                Measure::read(text, "a quantity"),
                Ok((measure, number)),
                "{text}"
            );
            assert_eq!(measure.write(number), written);
        }
        assert_eq!(Measure::Count.write(11.6), "12");
        assert!(Measure::read("12parsec", "a quantity").is_err());
        assert!(Measure::read("fast", "a quantity").is_err());
    }
}
