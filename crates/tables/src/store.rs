//! How a column holds its values: densely, as Arrow does.

use std::fmt;
use std::ops::Index;

use crate::Values;

/// A type that can stand in a column.
pub trait Value: Sized {
    /// What holds many of them.
    type Store: Store<Value = Self>;
}

/// A column's values, in the order of rows.
pub trait Store: Default {
    type Value;
    fn push(&mut self, value: Self::Value);
    fn rows(&self) -> usize;
    fn values(&self) -> Values<'_>;
    /// Puts row `order[n]` in place n. Each row is named once.
    fn reorder(&mut self, order: &[u32]);
    /// Without rows; the memory stays.
    fn clear(&mut self);
}

macro_rules! plain {
    ($($type:ty => $variant:ident),*) => {$(
        impl Value for $type {
            type Store = Vec<$type>;
        }

        impl Store for Vec<$type> {
            type Value = $type;

            #[inline]
            fn push(&mut self, value: $type) {
                self.push(value);
            }

            fn rows(&self) -> usize {
                self.len()
            }

            fn values(&self) -> Values<'_> {
                Values::$variant(self)
            }

            fn reorder(&mut self, order: &[u32]) {
                let taken = order.iter().map(|&row| std::mem::take(&mut self[row as usize]));
                *self = taken.collect();
            }

            fn clear(&mut self) {
                self.clear();
            }
        }
    )*};
}
plain!(i32 => I32, i64 => I64, f64 => F64, bool => Bool, String => Text);

/// Numbers some of which are missing. Before the first that is there nothing is stored, so that a column without any
/// takes no memory; from then on a number for each row, and a bit as far as any is missing.
#[derive(Clone, Default)]
pub struct Nullable<T> {
    /// Rows before the first number.
    leading: usize,
    /// Of the rows from there on; 0 where none is.
    values: Vec<T>,
    /// A bit for each of those, set where none is; up to the last such row.
    missing: Vec<u64>,
}

impl<T: Copy + Default> Nullable<T> {
    #[inline]
    pub fn push(&mut self, value: Option<T>) {
        match value {
            Some(value) => self.values.push(value),
            None if self.values.is_empty() => self.leading += 1,
            None => self.push_missing(),
        }
    }

    fn push_missing(&mut self) {
        let place = self.values.len();
        self.missing.resize(place / 64 + 1, 0);
        self.missing[place / 64] |= 1 << (place % 64);
        self.values.push(T::default());
    }

    pub fn len(&self) -> usize {
        self.leading + self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// # Panics
    /// There is no such row.
    pub fn get(&self, row: usize) -> Option<T> {
        let place = row.checked_sub(self.leading)?;
        let value = self.values[place];
        let missing = self.missing.get(place / 64).copied().unwrap_or(0);
        (missing >> (place % 64) & 1 == 0).then_some(value)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<T>> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }

    pub fn last(&self) -> Option<Option<T>> {
        self.len().checked_sub(1).map(|row| self.get(row))
    }

    /// The numbers, where no row comes before the first; those of rows without one are not to be looked at.
    pub fn dense(&self) -> Option<&[T]> {
        (self.leading == 0).then_some(&self.values)
    }

    /// Is a number missing?
    pub fn any_missing(&self) -> bool {
        self.leading > 0 || !self.missing.is_empty()
    }

    /// Is there any number?
    pub fn any(&self) -> bool {
        !self.values.is_empty()
    }
}

impl<T: Copy + Default + PartialEq> PartialEq for Nullable<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Copy + Default + fmt::Debug> fmt::Debug for Nullable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Copy + Default> FromIterator<Option<T>> for Nullable<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(values: I) -> Self {
        let mut column = Nullable::default();
        values.into_iter().for_each(|value| column.push(value));
        column
    }
}

macro_rules! nullable {
    ($($type:ty => $variant:ident),*) => {$(
        impl Value for Option<$type> {
            type Store = Nullable<$type>;
        }

        impl Store for Nullable<$type> {
            type Value = Option<$type>;

            #[inline]
            fn push(&mut self, value: Option<$type>) {
                self.push(value);
            }

            fn rows(&self) -> usize {
                self.len()
            }

            fn values(&self) -> Values<'_> {
                Values::$variant(self)
            }

            fn reorder(&mut self, order: &[u32]) {
                *self = order.iter().map(|&row| self.get(row as usize)).collect();
            }

            fn clear(&mut self) {
                self.leading = 0;
                self.values.clear();
                self.missing.clear();
            }
        }
    )*};
}
nullable!(i64 => OptI64, f64 => OptF64);

/// Few distinct texts: the number of one for each row.
#[derive(Clone, Default)]
pub struct Names {
    /// In the order in which they first came.
    names: Vec<&'static str>,
    keys: Vec<i32>,
}

impl Names {
    #[inline]
    pub fn push(&mut self, name: &'static str) {
        // Neighbours are alike more often than not.
        let key = match self.keys.last() {
            Some(&last) if std::ptr::eq(self.names[last as usize], name) => last,
            _ => self.key(name),
        };
        self.keys.push(key);
    }

    fn key(&mut self, name: &'static str) -> i32 {
        let known = self.names.iter().position(|&known| known == name);
        let place = known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        i32::try_from(place).expect("names are few")
    }

    pub fn last(&self) -> Option<&'static str> {
        self.iter().next_back()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'static str> + ExactSizeIterator + '_ {
        self.keys.iter().map(|&key| self.names[key as usize])
    }

    /// Those that the keys stand for.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    pub fn keys(&self) -> &[i32] {
        &self.keys
    }
}

impl Index<usize> for Names {
    type Output = &'static str;

    fn index(&self, row: usize) -> &&'static str {
        &self.names[self.keys[row] as usize]
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Names) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Value for &'static str {
    type Store = Names;
}

impl Store for Names {
    type Value = &'static str;

    #[inline]
    fn push(&mut self, name: &'static str) {
        self.push(name);
    }

    fn rows(&self) -> usize {
        self.keys.len()
    }

    fn values(&self) -> Values<'_> {
        Values::Name(self)
    }

    fn reorder(&mut self, order: &[u32]) {
        let mut ordered = Names::default();
        for &row in order {
            ordered.push(self[row as usize]);
        }
        *self = ordered;
    }

    fn clear(&mut self) {
        self.names.clear();
        self.keys.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_comes_out_whatever_is_missing_where() {
        for leading in [0, 1, 64, 65] {
            for every in [1, 2, 63, 64, 1_000] {
                let value = |row: i64| (row >= leading && row % every == 0).then_some(row);
                let column: Nullable<i64> = (0..200).map(value).collect();
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
    fn a_column_without_a_number_takes_no_memory() {
        let column: Nullable<i64> = (0..1_000).map(|_| None).collect();
        assert_eq!((column.len(), column.values.capacity()), (1_000, 0));
        assert_eq!(column.missing.capacity(), 0);
        assert!(column.dense().is_none() && !column.any());
    }

    #[test]
    fn a_column_without_a_gap_is_dense() {
        let column: Nullable<f64> = [Some(1.0), Some(2.0)].into_iter().collect();
        assert_eq!(column.dense(), Some([1.0, 2.0].as_slice()));
        assert!(!column.any_missing());
    }

    #[test]
    fn after_a_clear_nothing_is_left_of_the_rows() {
        let mut column: Nullable<i64> = [None, Some(3), None].into_iter().collect();
        Store::clear(&mut column);
        column.push(Some(4));
        column.push(Some(5));
        assert!(column.iter().eq([Some(4), Some(5)]));
        let mut names = Names::default();
        names.push("one");
        Store::clear(&mut names);
        names.push("two");
        assert_eq!(
            (names.names(), names.keys()),
            (["two"].as_slice(), [0].as_slice())
        );
    }

    #[test]
    fn rows_are_put_in_order() {
        let mut column: Nullable<i64> = [None, Some(1), None, Some(3)].into_iter().collect();
        column.reorder(&[3, 2, 1, 0]);
        assert!(column.iter().eq([Some(3), None, Some(1), None]));
        let mut names = Names::default();
        ["one", "two", "one"]
            .into_iter()
            .for_each(|name| names.push(name));
        names.reorder(&[1, 0, 2]);
        assert!(names.iter().eq(["two", "one", "one"]));
        assert_eq!(names.names(), ["two", "one"], "as they first come");
    }
}
