//! Columns under construction: dense values and a bit per row.
//!
//! A column without a value costs nothing: memory is taken when the first value
//! of a batch arrives, and a row without one is a bit that stays 0. Arrow takes
//! the memory over without a copy.

use std::sync::{Arc, Mutex, PoisonError};

use ahash::AHashMap;
use arrow_array::builder::StringBuilder;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, PrimitiveArray, StringArray,
    new_null_array,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::DataType;

use crate::table::ROWS;

/// A dictionary with more texts than this starts anew with the next batch:
/// names that never repeat must not make memory grow.
const NAMES_KEPT: usize = 1 << 16;

/// Rows that are set together by [`Numbers::set_run`].
pub const RUN: usize = 64;

/// One kind of column.
pub trait Fill: Default {
    fn data_type() -> DataType;
    /// The first `rows` rows; the column is empty afterwards.
    fn take(&mut self, rows: usize) -> ArrayRef;
}

/// A number as a column stores it.
pub trait Number: ArrowNativeType {
    type Arrow: ArrowPrimitiveType<Native = Self>;
}
impl Number for i32 {
    type Arrow = Int32Type;
}
impl Number for i64 {
    type Arrow = Int64Type;
}
impl Number for u64 {
    type Arrow = UInt64Type;
}
impl Number for f64 {
    type Arrow = Float64Type;
}

/// A bit per row. Of fixed size, as all that columns hold per row: where a row
/// is known to be below [`ROWS`] the compiler checks no bound.
struct Bits(Box<[u8; ROWS / 8]>);

impl Bits {
    fn new() -> Bits {
        Bits(zeroed())
    }

    #[inline]
    fn set(&mut self, row: usize) {
        self.0[row >> 3] |= 1 << (row & 7);
    }

    fn set_first(&mut self, rows: usize) {
        self.0[..rows >> 3].fill(u8::MAX);
        if rows & 7 > 0 {
            self.0[rows >> 3] |= (1 << (rows & 7)) - 1;
        }
    }

    /// Sets those of the [`RUN`] rows from `first` on whose bit is set.
    #[inline]
    fn set_run(&mut self, first: usize, rows: u64) {
        let bytes = &mut self.0[first >> 3..(first + RUN) >> 3];
        for (to, byte) in bytes.iter_mut().zip(rows.to_le_bytes()) {
            *to |= byte;
        }
    }

    #[inline]
    fn get(&self, row: usize) -> bool {
        self.0[row >> 3] >> (row & 7) & 1 == 1
    }

    fn into_arrow(self, rows: usize) -> BooleanBuffer {
        let bytes: Box<[u8]> = self.0;
        BooleanBuffer::new(Buffer::from_vec(bytes.into_vec()), 0, rows)
    }
}

/// Made on the heap, without a copy on the stack.
fn zeroed<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    let values = vec![T::default(); N].into_boxed_slice();
    match values.try_into() {
        Ok(values) => values,
        Err(_) => unreachable!("it has N values"),
    }
}

/// An all-null column. All of them share one array, so absent columns cost no
/// memory.
fn absent(data_type: DataType, rows: usize) -> ArrayRef {
    static ABSENT: Mutex<Vec<ArrayRef>> = Mutex::new(Vec::new());
    let mut known = ABSENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(whole) = known.iter().find(|column| *column.data_type() == data_type) {
        return whole.slice(0, rows);
    }
    let whole = new_null_array(&data_type, ROWS);
    known.push(Arc::clone(&whole));
    whole.slice(0, rows)
}

/// Validity in Arrow's form: absent when every row has a value.
fn nulls(valid: BooleanBuffer) -> Option<NullBuffer> {
    Some(NullBuffer::new(valid)).filter(|nulls| nulls.null_count() > 0)
}

/// A column of numbers.
#[derive(Default)]
pub struct Numbers<T>(Option<Filled<T>>);

struct Filled<T> {
    /// Up to the last row set, and as much room as a batch takes: memory is
    /// written once, not zeroed first.
    values: Vec<T>,
    valid: Bits,
    is_any_valid: bool,
}

impl<T: Number> Numbers<T> {
    /// # Panics
    /// `row` is not below [`ROWS`].
    #[inline]
    pub fn set(&mut self, row: usize, value: T) {
        if let Some(filled) = &mut self.0
            && row == filled.values.len()
            && row < filled.values.capacity()
        {
            filled.values.push(value);
            filled.valid.set(row);
            filled.is_any_valid = true;
        } else {
            self.set_elsewhere(row, value);
        }
    }

    /// Sets a row that is not the next of those set.
    fn set_elsewhere(&mut self, row: usize, value: T) {
        let filled = self.begun();
        if row >= filled.values.len() {
            filled.values.resize(row + 1, T::default());
        }
        filled.values[row] = value;
        filled.valid.set(row);
        filled.is_any_valid = true;
    }

    /// Gives the first `rows` rows the same value. None of them has one yet.
    ///
    /// # Panics
    /// There are more than [`ROWS`].
    pub fn fill(&mut self, rows: usize, value: T) {
        assert!(rows <= ROWS, "a batch has no more rows");
        let filled = self.begun();
        filled.values.resize(rows, value);
        filled.valid.set_first(rows);
        filled.is_any_valid = rows > 0;
    }

    /// Sets, of the [`RUN`] rows from `first` on, those whose bit is set in `rows`
    /// and for which there is a value.
    ///
    /// # Panics
    /// `first` is no multiple of [`RUN`], or not below [`ROWS`].
    #[inline]
    pub fn set_run(&mut self, first: usize, rows: u64, value: impl Fn(usize) -> Option<T>) {
        assert!(
            first.is_multiple_of(RUN) && first < ROWS,
            "a run begins at its own first row"
        );
        let filled = self.begun();
        let mut valid = 0u64;
        let mut all = (0..RUN).map(|position| {
            let value = value(position);
            valid |= u64::from(value.is_some()) << position;
            value.unwrap_or_default()
        });
        if filled.values.len() <= first {
            filled.values.resize(first, T::default());
            // Rows without a value get one that is not looked at.
            filled.values.extend(all);
            valid &= rows;
        } else {
            filled
                .values
                .resize(filled.values.len().max(first + RUN), T::default());
            let to = &mut filled.values[first..first + RUN];
            let values: [T; RUN] = std::array::from_fn(|_| all.next().unwrap_or_default());
            valid &= rows;
            for (position, (to, value)) in to.iter_mut().zip(values).enumerate() {
                if valid >> position & 1 == 1 {
                    *to = value;
                }
            }
        }
        filled.valid.set_run(first, valid);
        filled.is_any_valid |= valid != 0;
    }

    /// # Panics
    /// `row` is not below [`ROWS`].
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        let filled = self.0.as_ref()?;
        filled.valid.get(row).then(|| filled.values[row])
    }

    #[inline]
    fn begun(&mut self) -> &mut Filled<T> {
        match &mut self.0 {
            Some(filled) => filled,
            none => Self::begin(none),
        }
    }

    #[cold]
    fn begin(none: &mut Option<Filled<T>>) -> &mut Filled<T> {
        none.insert(Filled {
            values: Vec::with_capacity(ROWS),
            valid: Bits::new(),
            is_any_valid: false,
        })
    }
}

/// Sets what may be missing.
#[inline]
pub fn set<T: Number>(column: &mut Numbers<T>, row: usize, value: Option<impl Into<T>>) {
    if let Some(value) = value {
        column.set(row, value.into());
    }
}

impl<T: Number> Fill for Numbers<T> {
    fn data_type() -> DataType {
        T::Arrow::DATA_TYPE
    }

    fn take(&mut self, rows: usize) -> ArrayRef {
        let Some(Filled {
            mut values, valid, ..
        }) = self.0.take_if(|filled| filled.is_any_valid)
        else {
            // Runs without a value have left their rows.
            if let Some(filled) = &mut self.0 {
                filled.values.clear();
            }
            return absent(T::Arrow::DATA_TYPE, rows);
        };
        values.resize(rows, T::default());
        Arc::new(PrimitiveArray::<T::Arrow>::new(
            ScalarBuffer::new(Buffer::from_vec(values), 0, rows),
            nulls(valid.into_arrow(rows)),
        ))
    }
}

/// A column of yes and no.
#[derive(Default)]
pub struct Flags(Option<(Bits, Bits)>);

impl Flags {
    /// # Panics
    /// `row` is not below [`ROWS`].
    #[inline]
    pub fn set(&mut self, row: usize, value: bool) {
        let (values, valid) = self.0.get_or_insert_with(|| (Bits::new(), Bits::new()));
        if value {
            values.set(row);
        }
        valid.set(row);
    }

    /// # Panics
    /// `row` is not below [`ROWS`].
    #[inline]
    pub fn get(&self, row: usize) -> Option<bool> {
        let (values, valid) = self.0.as_ref()?;
        valid.get(row).then(|| values.get(row))
    }
}

impl Fill for Flags {
    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn take(&mut self, rows: usize) -> ArrayRef {
        let Some((values, valid)) = self.0.take() else {
            return absent(DataType::Boolean, rows);
        };
        Arc::new(BooleanArray::new(
            values.into_arrow(rows),
            nulls(valid.into_arrow(rows)),
        ))
    }
}

/// A column of texts that differ from row to row. Rows are set in order.
#[derive(Default)]
pub struct Texts {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    valid: Option<Bits>,
}

impl Texts {
    /// # Panics
    /// `row` is not below [`ROWS`], or a later row has been set already.
    #[inline]
    pub fn set(&mut self, row: usize, text: &str) {
        if self.offsets.is_empty() {
            self.offsets.reserve(ROWS + 1);
            self.bytes.reserve(ROWS * 16);
            self.valid = Some(Bits::new());
        }
        assert!(
            row < ROWS && self.offsets.len() <= row + 1,
            "rows of a text column are set in order"
        );
        let end = self.end();
        if row == self.offsets.len() {
            self.offsets.push(end);
        } else {
            self.offsets.resize(row + 1, end);
        }
        self.bytes.extend_from_slice(text.as_bytes());
        if let Some(valid) = &mut self.valid {
            valid.set(row);
        }
    }

    pub fn get(&self, row: usize) -> Option<&str> {
        let from = *self.offsets.get(row)? as usize;
        let to = self.offsets.get(row + 1).copied().unwrap_or(self.end()) as usize;
        let text = std::str::from_utf8(&self.bytes[from..to]).expect("texts went in");
        self.valid.as_ref()?.get(row).then_some(text)
    }

    /// ROWS texts of less than 256 KiB each are below 2^31 together; a longer
    /// one is not of a socket.
    fn end(&self) -> i32 {
        i32::try_from(self.bytes.len()).expect("a batch's texts are below 2 GiB")
    }
}

impl Fill for Texts {
    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn take(&mut self, rows: usize) -> ArrayRef {
        let Some(valid) = self.valid.take() else {
            return absent(DataType::Utf8, rows);
        };
        let end = self.end();
        self.offsets.resize(rows + 1, end);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::take(&mut self.offsets)));
        let bytes = Buffer::from_vec(std::mem::take(&mut self.bytes));
        Arc::new(StringArray::new(
            offsets,
            bytes,
            nulls(valid.into_arrow(rows)),
        ))
    }
}

/// A column of few distinct texts, stored as a dictionary.
#[derive(Default)]
pub struct Names {
    keys: Numbers<i32>,
    known: AHashMap<Box<str>, i32>,
    names: Vec<Box<str>>,
    /// The dictionary in Arrow's form, as of `names`' length then.
    dictionary: Option<Arc<StringArray>>,
    /// Neighbours are alike more often than not.
    last: i32,
}

impl Names {
    /// # Panics
    /// `row` is not below [`ROWS`].
    #[inline]
    pub fn set(&mut self, row: usize, name: &str) {
        let key = match self.names.get(self.last as usize) {
            Some(last) if **last == *name => self.last,
            _ => self.key(name),
        };
        self.last = key;
        self.keys.set(row, key);
    }

    /// Sets a row to the name that has this [`key`](Names::key) in this batch.
    ///
    /// # Panics
    /// `row` is not below [`ROWS`].
    #[inline]
    pub fn set_key(&mut self, row: usize, key: i32) {
        self.keys.set(row, key);
    }

    /// As [`Numbers::fill`].
    ///
    /// # Panics
    /// There are more than [`ROWS`].
    pub fn fill(&mut self, rows: usize, name: &str) {
        let key = self.key(name);
        self.keys.fill(rows, key);
    }

    pub fn get(&self, row: usize) -> Option<&str> {
        self.keys.get(row).map(|key| &*self.names[key as usize])
    }

    /// The number that stands for a name until the batch is taken.
    pub fn key(&mut self, name: &str) -> i32 {
        if let Some(&key) = self.known.get(name) {
            return key;
        }
        let key = i32::try_from(self.names.len())
            .expect("fewer names than rows of a batch and those kept");
        self.known.insert(name.into(), key);
        self.names.push(name.into());
        key
    }
}

impl Fill for Names {
    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }

    fn take(&mut self, rows: usize) -> ArrayRef {
        let keys = self.keys.take(rows);
        let dictionary = match self.dictionary.take() {
            Some(current) if current.len() == self.names.len() => current,
            _ => {
                let mut builder = StringBuilder::new();
                self.names
                    .iter()
                    .for_each(|name| builder.append_value(name));
                Arc::new(builder.finish())
            }
        };
        if self.names.len() > NAMES_KEPT {
            self.names.clear();
            self.known.clear();
        } else {
            self.dictionary = Some(Arc::clone(&dictionary));
        }
        let keys = keys
            .as_any()
            .downcast_ref::<Int32Array>()
            .expect("keys are 32 bits wide");
        Arc::new(DictionaryArray::<Int32Type>::new(keys.clone(), dictionary))
    }
}
