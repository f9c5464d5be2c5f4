//! Which columns of `samples` a run keeps.

use crate::{Column, Samples, Table, TcpInfoSamples, position};

/// Columns of `samples` that every row has: which sender it is of, and when.
const KEYS: [&str; 4] = ["cell", "rep", "t_ns", "flow"];

/// Their bits.
const KEY_BITS: u128 = {
    let (mut bits, mut n) = (0, 0);
    while n < KEYS.len() {
        bits |= 1 << position(KEYS[n], Samples::COLUMNS);
        n += 1;
    }
    bits
};

/// The bits of all columns.
const ALL_BITS: u128 =
    u128::MAX >> (u128::BITS as usize - Samples::COLUMNS.len() - TcpInfoSamples::COLUMNS.len());

/// The columns of `samples` that a run keeps, in a real kernel's run those of `tcp_info` too. The columns that say which
/// sender a row is of, and when, are always among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(into = "Option<Vec<&'static str>>")]
pub struct KeptSamples {
    /// A bit per column: those of `samples` in their order, then those of `tcp_info`.
    bits: u128,
}

impl KeptSamples {
    /// Every column.
    pub const ALL: KeptSamples = KeptSamples { bits: u128::MAX };

    /// No column, and so no row.
    pub const NONE: KeptSamples = KeptSamples { bits: 0 };

    /// Columns that can be chosen, in their order.
    pub fn choices() -> impl Iterator<Item = &'static Column> {
        let all = Samples::COLUMNS.iter().chain(TcpInfoSamples::COLUMNS);
        all.filter(|column| !KEYS.contains(&column.name))
    }

    /// These columns.
    ///
    /// # Errors
    /// The first name that no column has.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<KeptSamples, &'a str> {
        let mut bits = 0;
        for name in names {
            let known = KeptSamples::choices().any(|column| column.name == name);
            bits |= bit(name).filter(|_| known).ok_or(name)?;
        }
        let keys = KEYS.iter().filter_map(|name| bit(name));
        // No column, no rows: then the keys are of no use.
        Ok(KeptSamples {
            bits: keys.fold(bits, |bits, key| bits | key),
        })
    }

    /// Is it every column?
    pub fn is_all(&self) -> bool {
        self.bits | KEY_BITS | !ALL_BITS == u128::MAX
    }

    /// Does a row say anything? Without a column beside the keys no row is kept.
    pub fn any(self) -> bool {
        self.bits & !KEY_BITS != 0
    }

    /// Is the column of that name kept?
    pub fn has(self, name: &str) -> bool {
        bit(name).is_some_and(|bit| self.bits & bit != 0)
    }

    /// Is the column of `samples` at that position kept?
    #[inline]
    pub fn has_at(self, position: usize) -> bool {
        self.bits >> position & 1 != 0
    }

    /// The first column among those chosen that only a real kernel fills.
    pub fn of_kernels(self) -> Option<&'static str> {
        let mut names = TcpInfoSamples::COLUMNS.iter().map(|column| column.name);
        names.find(|name| !self.is_all() && self.has(name))
    }

    /// The columns that were chosen, in their order; `None`: all of them.
    pub fn chosen(self) -> Option<Vec<&'static str>> {
        let names = KeptSamples::choices().map(|column| column.name);
        (!self.is_all()).then(|| names.filter(|name| self.has(name)).collect())
    }
}

impl From<KeptSamples> for Option<Vec<&'static str>> {
    fn from(kept: KeptSamples) -> Self {
        kept.chosen()
    }
}

fn bit(name: &str) -> Option<u128> {
    let all = Samples::COLUMNS.iter().chain(TcpInfoSamples::COLUMNS);
    let position = all
        .map(|column| column.name)
        .position(|other| other == name);
    position.map(|position| 1 << position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_bit_of_its_own() {
        let names = || Samples::COLUMNS.iter().chain(TcpInfoSamples::COLUMNS);
        assert!(names().count() <= 128);
        let bits = names().fold(0, |bits, column| bits | bit(column.name).expect("known"));
        assert_eq!(bits.count_ones() as usize, names().count());
    }

    #[test]
    fn those_chosen_are_kept_with_the_keys_and_no_others() {
        let kept = KeptSamples::of(["srtt_us", "rcv_rtt_us"]).expect("both are columns");
        for name in ["srtt_us", "rcv_rtt_us", "cell", "rep", "t_ns", "flow"] {
            assert!(kept.has(name), "{name}");
        }
        assert!(!kept.has("snd_cwnd") && !kept.has("srtt"));
        assert!(kept.has_at(position("srtt_us", Samples::COLUMNS)));
        assert!(!kept.has_at(position("snd_cwnd", Samples::COLUMNS)));
        assert_eq!(kept.chosen(), Some(vec!["srtt_us", "rcv_rtt_us"]));
        assert_eq!(KeptSamples::ALL.chosen(), None);
        assert_eq!(kept.of_kernels(), Some("rcv_rtt_us"));
        assert_eq!(KeptSamples::ALL.of_kernels(), None);
        assert_eq!(KeptSamples::of(["srtt_us", "srtt"]), Err("srtt"));
        assert_eq!(KeptSamples::of(["flow"]), Err("flow"), "a key is no choice");
    }

    #[test]
    fn without_a_column_there_are_no_rows() {
        let none = KeptSamples::of([]).expect("nothing is unknown");
        assert!(!none.any() && none.has("t_ns"));
        assert!(KeptSamples::ALL.any());
        assert!(KeptSamples::of(["cc_phase"]).expect("a column").any());
    }
}
