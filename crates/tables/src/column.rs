//! Columns that are filled by row number. Every value may be missing, and a column without any takes no memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::store::{Append, Store, Taken, Value};
use crate::{Type, Values};

/// Most rows of a batch.
pub const ROWS: usize = 8192;

/// Rows that [`Numbers::set_run`] sets together.
pub const RUN: usize = 64;

/// A dictionary of more names than this starts anew with the next batch, so that names that never repeat do not
/// accumulate.
const NAMES_KEPT: usize = 1 << 16;

/// A bit for each row; rows beyond the last word have none.
#[derive(Clone, Debug, Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    #[inline]
    fn set(&mut self, row: usize) {
        self.or_word(row / 64, 1 << (row % 64));
    }

    #[inline]
    fn or_word(&mut self, place: usize, bits: u64) {
        if place >= self.0.len() {
            self.0.resize(place + 1, 0);
        }
        self.0[place] |= bits;
    }

    fn clear_row(&mut self, row: usize) {
        if let Some(word) = self.0.get_mut(row / 64) {
            *word &= !(1 << (row % 64));
        }
    }

    fn set_range(&mut self, from: usize, to: usize) {
        let first = from / 64;
        for place in first..to.div_ceil(64) {
            let below = u64::MAX << from.saturating_sub(place * 64).min(63);
            let above = (place * 64 + 64).saturating_sub(to).min(63);
            self.or_word(place, below & u64::MAX >> above);
        }
    }

    /// Drops the bits from row `rows` on.
    fn truncate(&mut self, rows: usize) {
        self.0.truncate(rows.div_ceil(64));
        if !rows.is_multiple_of(64)
            && let Some(word) = self.0.get_mut(rows / 64)
        {
            *word &= (1 << (rows % 64)) - 1;
        }
    }

    #[inline]
    pub fn get(&self, row: usize) -> bool {
        self.0
            .get(row / 64)
            .is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// The bits as words, row 0 in the lowest bit of the first.
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// A number that a column may hold.
pub trait Number: Copy + Default + fmt::Debug + PartialEq + 'static {
    const TYPE: Type;
    fn values(column: &Numbers<Self>) -> Values<'_>;
}

macro_rules! numbers {
    ($($type:ty => $kind:ident $variant:ident),*) => {$(
        impl Number for $type {
            const TYPE: Type = Type::$kind;

            fn values(column: &Numbers<$type>) -> Values<'_> {
                Values::$variant(column)
            }
        }

        impl Value for Option<$type> {
            type Store = Numbers<$type>;
        }
    )*};
}
numbers!(i32 => I32 OptI32, i64 => I64 OptI64, u64 => U64 OptU64, f64 => F64 OptF64);

/// Numbers, stored densely up to the last row that has one. A bit marks each row without.
#[derive(Clone)]
pub struct Numbers<T> {
    rows: usize,
    /// 0 in rows without a number.
    values: Vec<T>,
    missing: Bits,
}

impl<T> Default for Numbers<T> {
    fn default() -> Numbers<T> {
        Numbers {
            rows: 0,
            values: Vec::new(),
            missing: Bits::default(),
        }
    }
}

impl<T: Number> Numbers<T> {
    /// Appends a row.
    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        if let Some(value) = value {
            if self.values.len() != self.rows {
                self.skip_to(self.rows);
            }
            self.values.push(value);
        }
        self.rows += 1;
    }

    /// Sets a row of a batch.
    #[inline]
    pub fn set(&mut self, row: usize, value: T) {
        if row == self.values.len() && row < self.values.capacity() {
            self.values.push(value);
            self.rows = self.rows.max(row + 1);
        } else {
            self.set_elsewhere(row, value);
        }
    }

    /// Sets a row that is not the next one.
    fn set_elsewhere(&mut self, row: usize, value: T) {
        self.begin();
        self.skip_to(row);
        if row == self.values.len() {
            self.values.push(value);
        } else {
            self.values[row] = value;
            self.missing.clear_row(row);
        }
        self.rows = self.rows.max(row + 1);
    }

    /// Gives the first `rows` rows the same value. None of them has a value yet.
    ///
    /// # Panics
    /// There are more than [`ROWS`].
    pub fn fill(&mut self, rows: usize, value: T) {
        assert!(rows <= ROWS, "a batch has no more rows");
        self.clear();
        self.begin();
        self.values.resize(rows, value);
        self.rows = rows;
    }

    /// Sets those of the [`RUN`] rows from `first` on whose bit is set in `rows` and that have a value.
    ///
    /// # Panics
    /// `first` is not a multiple of [`RUN`], or not below [`ROWS`].
    #[inline]
    pub fn set_run(&mut self, first: usize, rows: u64, value: impl Fn(usize) -> Option<T>) {
        assert!(
            first.is_multiple_of(RUN) && first < ROWS,
            "a run begins at its own first row"
        );
        self.begin();
        let end = first + RUN;
        if self.values.len() <= first {
            self.skip_to(first);
            let mut valid = 0u64;
            // Rows without a value get one that nobody reads.
            self.values.extend((0..RUN).map(|position| {
                let value = value(position);
                valid |= u64::from(value.is_some()) << position;
                value.unwrap_or_default()
            }));
            let missing = !(valid & rows);
            if missing != 0 {
                self.missing.or_word(first / RUN, missing);
            }
        } else {
            self.skip_to(end);
            for position in (0..RUN).filter(|position| rows >> position & 1 == 1) {
                if let Some(value) = value(position) {
                    self.values[first + position] = value;
                    self.missing.clear_row(first + position);
                }
            }
        }
        self.rows = self.rows.max(end);
    }

    /// Reserves memory for a batch: it is written once, not zeroed first.
    #[inline]
    fn begin(&mut self) {
        if self.values.capacity() == 0 {
            self.values.reserve_exact(ROWS);
        }
    }

    /// Marks the rows before `row` that have no number.
    fn skip_to(&mut self, row: usize) {
        let from = self.values.len();
        if from < row {
            self.missing.set_range(from, row);
            self.values.resize(row, T::default());
        }
    }

    /// `None`: the row has no number, or does not exist.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        let value = self.values.get(row).copied();
        value.filter(|_| !self.missing.get(row))
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<T>> + '_ {
        (0..self.rows).map(|row| self.get(row))
    }

    pub fn last(&self) -> Option<Option<T>> {
        self.rows.checked_sub(1).map(|row| self.get(row))
    }

    /// The numbers, if memory holds one for each row; those of rows without a number mean nothing.
    pub fn dense(&self) -> Option<&[T]> {
        (self.values.len() == self.rows).then_some(&self.values)
    }

    /// Bits of the rows without a number; rows behind the last number have none.
    pub fn missing(&self) -> &Bits {
        &self.missing
    }

    pub fn any_missing(&self) -> bool {
        self.values.len() < self.rows || self.missing.count() > 0
    }

    /// Returns whether any row has a number.
    pub fn any(&self) -> bool {
        self.values.len() > self.missing.count()
    }

    /// Puts row `order[n]` in place n. Each row is named once.
    pub(crate) fn reorder(&mut self, order: &[u32]) {
        *self = order.iter().map(|&row| self.get(row as usize)).collect();
    }

    /// Removes all rows; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.rows = 0;
        self.values.clear();
        self.missing.0.clear();
    }
}

impl<T: Number> PartialEq for Numbers<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Number> fmt::Debug for Numbers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Number> FromIterator<Option<T>> for Numbers<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(values: I) -> Self {
        let mut column = Numbers::default();
        values.into_iter().for_each(|value| column.push(value));
        column
    }
}

impl<T: Number> Store for Numbers<T> {
    const TYPE: Type = T::TYPE;
    const NULLABLE: bool = true;

    fn values(&self) -> Values<'_> {
        T::values(self)
    }
}

impl<T: Number> Append<Option<T>> for Numbers<T> {
    #[inline]
    fn push(&mut self, value: Option<T>) {
        self.push(value);
    }

    fn rows(&self) -> usize {
        self.len()
    }

    fn reorder(&mut self, order: &[u32]) {
        self.reorder(order);
    }

    fn clear(&mut self) {
        self.clear();
    }
}

impl<T: Number> Taken for Numbers<T> {
    fn take(&mut self, rows: usize) -> Numbers<T> {
        self.values.truncate(rows);
        self.missing.truncate(rows);
        let mut taken = if self.any() {
            std::mem::take(self)
        } else {
            // The memory stays for the next batch.
            self.clear();
            Numbers::default()
        };
        if taken.any() {
            taken.skip_to(rows);
        }
        taken.rows = rows;
        taken
    }
}

/// Sets a row if it has a value.
#[inline]
pub fn set<T: Number>(column: &mut Numbers<T>, row: usize, value: Option<impl Into<T>>) {
    if let Some(value) = value {
        column.set(row, value.into());
    }
}

/// Yes, no or missing.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    rows: usize,
    values: Bits,
    valid: Bits,
}

impl Flags {
    #[inline]
    pub fn set(&mut self, row: usize, value: bool) {
        if value {
            self.values.set(row);
        }
        self.valid.set(row);
    }

    #[inline]
    pub fn get(&self, row: usize) -> Option<bool> {
        self.valid.get(row).then(|| self.values.get(row))
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns whether any row has a value.
    pub fn any(&self) -> bool {
        self.valid.count() > 0
    }

    /// Bits of the rows that are true.
    pub fn values(&self) -> &Bits {
        &self.values
    }

    /// Bits of the rows with a value.
    pub fn valid(&self) -> &Bits {
        &self.valid
    }
}

impl Value for Option<bool> {
    type Store = Flags;
}

impl Store for Flags {
    const TYPE: Type = Type::Bool;
    const NULLABLE: bool = true;

    fn values(&self) -> Values<'_> {
        Values::OptBool(self)
    }
}

impl Taken for Flags {
    fn take(&mut self, rows: usize) -> Flags {
        Flags {
            rows,
            ..std::mem::take(self)
        }
    }
}

/// Texts that differ from row to row, or are missing. Rows are set in order.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    bytes: Vec<u8>,
    /// 0, then where the text of each row ends.
    offsets: Vec<i32>,
    valid: Bits,
}

impl Texts {
    /// # Panics
    /// A later row has a text.
    #[inline]
    pub fn set(&mut self, row: usize, text: &str) {
        if self.offsets.capacity() == 0 {
            self.offsets.reserve(ROWS + 1);
            self.bytes.reserve(ROWS * 16);
        }
        self.append(row, text);
    }

    #[inline]
    fn append(&mut self, row: usize, text: &str) {
        assert!(
            self.offsets.len() <= row + 2,
            "rows of a text column are set in order"
        );
        self.offsets.resize(row + 1, self.end());
        self.bytes.extend_from_slice(text.as_bytes());
        self.offsets.push(self.end());
        self.valid.set(row);
    }

    pub fn get(&self, row: usize) -> Option<&str> {
        let text = || std::str::from_utf8(self.text(row)).expect("only texts are set");
        self.valid.get(row).then(text)
    }

    #[inline]
    fn text(&self, row: usize) -> &[u8] {
        &self.bytes[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// ROWS texts of less than 256 KiB each are below 2^31 together; a longer one is not a socket's.
    fn end(&self) -> i32 {
        i32::try_from(self.bytes.len()).expect("a batch's texts are below 2 GiB")
    }

    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether any row has a text.
    pub fn any(&self) -> bool {
        self.valid.count() > 0
    }

    /// The texts one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// 0, then where the text of each row ends.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// Bits of the rows with a text.
    pub fn valid(&self) -> &Bits {
        &self.valid
    }
}

/// A text that differs from row to row, as the type of a column.
pub struct Text;

impl Value for Option<Text> {
    type Store = Texts;
}

impl Store for Texts {
    const TYPE: Type = Type::Text;
    const NULLABLE: bool = true;

    fn values(&self) -> Values<'_> {
        Values::OptText(self)
    }
}

impl Taken for Texts {
    fn take(&mut self, rows: usize) -> Texts {
        let mut taken = std::mem::take(self);
        taken.offsets.resize(rows + 1, taken.end());
        taken
    }
}

/// Few distinct texts, or missing: each row has the number of one.
#[derive(Clone, Debug, Default)]
pub struct Names {
    keys: Numbers<i32>,
    /// Shared with the batches that were taken, until a new name comes.
    names: Arc<Texts>,
    known: HashMap<Box<str>, i32>,
    /// Key of the row before: neighbours are usually equal.
    last: usize,
}

impl Names {
    #[inline]
    pub fn set(&mut self, row: usize, name: &str) {
        let key = if self.last < self.names.len() && self.names.text(self.last) == name.as_bytes() {
            self.last as i32
        } else {
            self.key(name)
        };
        self.last = key as usize;
        self.keys.set(row, key);
    }

    /// Sets a row to the name of this [`key`](Names::key).
    #[inline]
    pub fn set_key(&mut self, row: usize, key: i32) {
        self.keys.set(row, key);
    }

    /// Gives the first `rows` rows the same name. None of them has a name yet.
    ///
    /// # Panics
    /// There are more than [`ROWS`].
    pub fn fill(&mut self, rows: usize, name: &str) {
        let key = self.key(name);
        self.keys.fill(rows, key);
    }

    pub fn get(&self, row: usize) -> Option<&str> {
        self.names.get(self.keys.get(row)? as usize)
    }

    /// The number that stands for a name until the batch is taken.
    pub fn key(&mut self, name: &str) -> i32 {
        if let Some(&key) = self.known.get(name) {
            return key;
        }
        let place = self.names.len();
        let key = i32::try_from(place).expect("names are fewer than 2^31");
        self.known.insert(name.into(), key);
        Arc::make_mut(&mut self.names).append(place, name);
        key
    }

    pub fn keys(&self) -> &Numbers<i32> {
        &self.keys
    }

    /// The names that keys stand for.
    pub fn names(&self) -> &Texts {
        &self.names
    }
}

/// One of few texts, as the type of a column.
pub struct Name;

impl Value for Option<Name> {
    type Store = Names;
}

impl Store for Names {
    const TYPE: Type = Type::Name;
    const NULLABLE: bool = true;

    fn values(&self) -> Values<'_> {
        Values::OptName(self)
    }
}

impl Taken for Names {
    /// Known names stay known.
    fn take(&mut self, rows: usize) -> Names {
        let taken = Names {
            keys: self.keys.take(rows),
            names: Arc::clone(&self.names),
            ..Names::default()
        };
        if self.names.len() > NAMES_KEPT {
            *self = Names::default();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_put_in_order() {
        let mut column: Numbers<i64> = [None, Some(1), None, Some(3)].into_iter().collect();
        column.reorder(&[3, 2, 1, 0]);
        assert!(column.iter().eq([Some(3), None, Some(1), None]));
    }

    #[test]
    fn what_went_in_comes_out_whatever_is_missing_where() {
        for leading in [0, 1, 64, 65] {
            for every in [1, 2, 63, 64, 1_000] {
                let value = |row: i64| (row >= leading && row % every == 0).then_some(row);
                let column: Numbers<i64> = (0..200).map(value).collect();
                assert_eq!(column.len(), 200);
                assert!(column.iter().eq((0..200).map(value)), "{leading} {every}");
                assert_eq!(
                    column.any_missing(),
                    (0..200).any(|row| value(row).is_none())
                );
                assert_eq!(column.any(), (0..200).any(|row| value(row).is_some()));
                assert_eq!(column.last(), Some(value(199)));
            }
        }
    }

    #[test]
    fn rows_set_in_any_order_one_by_one_or_in_runs_are_those_pushed() {
        let value = |row: usize| (row % 3 != 1 && row != 70).then_some(row as i64);
        let pushed: Numbers<i64> = (0..256).map(value).collect();
        let mut column = Numbers::default();
        for row in [200, 5, 130, 250] {
            set(&mut column, row, value(row));
        }
        for first in [0, 64, 128, 192] {
            column.set_run(first, u64::MAX, |position| value(first + position));
        }
        assert!(column.take(256).iter().eq(pushed.iter()));
        // Only rows whose bit is set, and none beyond those taken.
        column.set_run(0, 0b1010, |position| Some(position as i64));
        let taken = column.take(3);
        assert!(taken.iter().eq([None, Some(1), None]));
        assert!(taken.dense().is_some());
    }

    #[test]
    fn a_column_without_a_number_takes_no_memory() {
        let column: Numbers<i64> = (0..1_000).map(|_| None).collect();
        assert_eq!((column.len(), column.values.capacity()), (1_000, 0));
        assert_eq!(column.missing.0.capacity(), 0);
        assert!(column.dense().is_none() && !column.any());
    }

    #[test]
    fn a_column_without_a_gap_is_dense() {
        let column: Numbers<f64> = [Some(1.0), Some(2.0)].into_iter().collect();
        assert_eq!(column.dense(), Some([1.0, 2.0].as_slice()));
        assert!(!column.any_missing());
    }

    #[test]
    fn after_a_clear_nothing_is_left_of_the_rows() {
        let mut column: Numbers<i64> = [None, Some(3), None].into_iter().collect();
        column.clear();
        column.push(Some(7));
        column.push(None);
        assert!(column.iter().eq([Some(7), None]));
    }

    #[test]
    fn texts_and_names_are_those_of_their_rows() {
        let (mut texts, mut names) = (Texts::default(), Names::default());
        for (row, text) in [(1, "a"), (2, "b"), (4, ""), (5, "a")] {
            texts.set(row, text);
            names.set(row, text);
        }
        let (texts, taken) = (texts.take(7), names.take(7));
        for (row, text) in [None, Some("a"), Some("b"), None, Some(""), Some("a"), None]
            .into_iter()
            .enumerate()
        {
            assert_eq!((texts.get(row), taken.get(row)), (text, text), "{row}");
        }
        assert_eq!((texts.len(), taken.names().len()), (7, 3));
        names.set(0, "b");
        assert_eq!(names.keys().get(0), Some(1), "a known name stays known");
    }
}
