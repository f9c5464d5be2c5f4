//! Values of a column: what type it has, and how engines append rows to it. Columns that recorders fill by row number
//! are in [`column`](crate::column).

use std::fmt;
use std::ops::Index;

use crate::{Type, Values};

/// A type that a table declares for a column.
pub trait Value {
    /// Holds the column's values.
    type Store: Store;
}

/// A column's values, in the order of rows.
pub trait Store: Default {
    const TYPE: Type;
    const NULLABLE: bool;
    fn values(&self) -> Values<'_>;
}

/// A column to which engines append rows.
pub trait Append<V>: Store {
    fn push(&mut self, value: V);
    fn rows(&self) -> usize;
    /// Puts row `order[n]` in place n. Each row is named once.
    fn reorder(&mut self, order: &[u32]);
    /// Removes all rows; the memory stays.
    fn clear(&mut self);
}

/// A column that is filled by row number and leaves with its batch.
pub trait Taken: Store {
    /// The first `rows` rows; the column is empty afterwards.
    fn take(&mut self, rows: usize) -> Self;
}

macro_rules! plain {
    ($($type:ty => $variant:ident),*) => {$(
        impl Value for $type {
            type Store = Vec<$type>;
        }

        impl Store for Vec<$type> {
            const TYPE: Type = Type::$variant;
            const NULLABLE: bool = false;

            fn values(&self) -> Values<'_> {
                Values::$variant(self)
            }
        }

        impl Append<$type> for Vec<$type> {
            #[inline]
            fn push(&mut self, value: $type) {
                self.push(value);
            }

            fn rows(&self) -> usize {
                self.len()
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

/// Few distinct texts that live as long as the program: each row has the number of one.
#[derive(Clone, Default)]
pub struct Words {
    /// In the order of their first rows.
    names: Vec<&'static str>,
    keys: Vec<i32>,
}

impl Words {
    #[inline]
    pub fn push(&mut self, name: &'static str) {
        // Neighbours are usually equal.
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

    /// The texts that keys stand for.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    pub fn keys(&self) -> &[i32] {
        &self.keys
    }
}

impl Index<usize> for Words {
    type Output = &'static str;

    fn index(&self, row: usize) -> &&'static str {
        &self.names[self.keys[row] as usize]
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Words) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Value for &'static str {
    type Store = Words;
}

impl Store for Words {
    const TYPE: Type = Type::Name;
    const NULLABLE: bool = false;

    fn values(&self) -> Values<'_> {
        Values::Name(self)
    }
}

impl Append<&'static str> for Words {
    #[inline]
    fn push(&mut self, name: &'static str) {
        self.push(name);
    }

    fn rows(&self) -> usize {
        self.keys.len()
    }

    fn reorder(&mut self, order: &[u32]) {
        let mut ordered = Words::default();
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

/// Bytes that differ from row to row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bytes {
    bytes: Vec<u8>,
    /// Where those of each row end.
    ends: Vec<i32>,
}

impl Bytes {
    /// # Panics
    /// All rows together have 2 GiB.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let end = i32::try_from(self.bytes.len());
        self.ends
            .push(end.expect("a table's bytes are below 2 GiB"));
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        (0..self.ends.len()).map(|row| &self[row])
    }
}

impl Index<usize> for Bytes {
    type Output = [u8];

    fn index(&self, row: usize) -> &[u8] {
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin as usize..self.ends[row] as usize]
    }
}

impl Value for Vec<u8> {
    type Store = Bytes;
}

impl Store for Bytes {
    const TYPE: Type = Type::Bytes;
    const NULLABLE: bool = false;

    fn values(&self) -> Values<'_> {
        Values::Bytes(self)
    }
}

impl Append<Vec<u8>> for Bytes {
    fn push(&mut self, value: Vec<u8>) {
        self.push(&value);
    }

    fn rows(&self) -> usize {
        self.ends.len()
    }

    fn reorder(&mut self, order: &[u32]) {
        let mut ordered = Bytes::default();
        order
            .iter()
            .for_each(|&row| ordered.push(&self[row as usize]));
        *self = ordered;
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_clear_no_name_is_left() {
        let mut names = Words::default();
        names.push("one");
        Append::clear(&mut names);
        names.push("two");
        assert_eq!(
            (names.names(), names.keys()),
            (["two"].as_slice(), [0].as_slice())
        );
    }

    #[test]
    fn bytes_are_those_of_their_rows() {
        let mut bytes = Bytes::default();
        [&b"one"[..], b"", b"three"]
            .into_iter()
            .for_each(|row| bytes.push(row));
        Append::reorder(&mut bytes, &[2, 0, 1]);
        assert!(bytes.iter().eq([&b"three"[..], b"one", b""]));
        Append::clear(&mut bytes);
        bytes.push(b"two");
        assert_eq!((bytes.rows(), &bytes[0]), (1, &b"two"[..]));
    }

    #[test]
    fn rows_of_words_are_put_in_order() {
        let mut names = Words::default();
        ["one", "two", "one"]
            .into_iter()
            .for_each(|name| names.push(name));
        names.reorder(&[1, 0, 2]);
        assert!(names.iter().eq(["two", "one", "one"]));
        assert_eq!(names.names(), ["two", "one"], "as they first come");
    }
}
