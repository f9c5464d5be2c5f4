//! Parameters that a queue, a loss or another part of the path lists of itself: a scenario sets them by name.

use serde::{Serialize, Serializer};

/// What a parameter counts, and so how a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A length of time, ns in [`Params`]; written `5ms`.
    Time,
    /// Written `64KiB`.
    Bytes,
    /// A share of 1; written `1.5%`.
    Share,
    /// Bits per second; written `10Mbit/s`.
    Rate,
    /// Whole and without a unit: packets, hosts, levels.
    Count,
    /// A ratio or gain, without a unit.
    Number,
    /// 0 or 1; written `true`, `false`.
    Flag,
    /// One of these words, by its place among them.
    Choice(&'static [&'static str]),
}

/// A parameter as its owner describes it.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub name: &'static str,
    pub unit: Unit,
    /// In the unit's base, as `min` and `max`, which are inclusive.
    pub default: f64,
    pub min: f64,
    pub max: f64,
    pub doc: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
}

/// Values of a list of parameters.
#[derive(Clone, Debug)]
pub struct Params {
    list: &'static [Param],
    values: Vec<f64>,
}

impl Serialize for Params {
    /// Names and values.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.entries().map(|(param, value)| (param.name, value)))
    }
}

impl Params {
    pub fn defaults(list: &'static [Param]) -> Params {
        Params {
            list,
            values: list.iter().map(|param| param.default).collect(),
        }
    }

    /// Sets one. The caller has checked its bounds.
    ///
    /// # Panics
    /// When the owner has no such parameter.
    pub fn set(&mut self, name: &str, value: f64) {
        let i = self.position(name);
        self.values[i] = value;
    }

    /// Has none been set to another value than its default?
    pub fn are_defaults(&self) -> bool {
        self.list
            .iter()
            .zip(&self.values)
            .all(|(param, value)| param.default == *value)
    }

    /// # Panics
    /// When the owner has no such parameter.
    pub fn get(&self, name: &str) -> f64 {
        self.values[self.position(name)]
    }

    /// Each with its value, in the order of its owner.
    pub fn entries(&self) -> impl Iterator<Item = (&'static Param, f64)> {
        self.list.iter().zip(self.values.iter().copied())
    }

    /// A whole number: ns, bytes, bits per second, a count.
    pub fn int(&self, name: &str) -> u64 {
        self.get(name) as u64
    }

    pub fn flag(&self, name: &str) -> bool {
        self.get(name) != 0.0
    }

    fn position(&self, name: &str) -> usize {
        self.list
            .iter()
            .position(|param| param.name == name)
            .unwrap_or_else(|| panic!("no parameter {name:?} in the list of its owner"))
    }
}
