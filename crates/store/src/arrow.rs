//! Tables as Arrow record batches. Numbers, texts and keys of names are lent, not copied: the batch keeps the table
//! alive.

use std::any::TypeId;
use std::collections::HashMap;
use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, PrimitiveArray, RecordBatch, StringArray,
    new_null_array,
};
use arrow_buffer::alloc::Allocation;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use knee_tables::{Batch, Column, Number, Numbers, ROWS, Table, Taken, Texts, Type, Values};

/// A table that can be lent to Arrow.
pub trait Lent: Table + RefUnwindSafe + Send + Sync + 'static {}

impl<T: Table + RefUnwindSafe + Send + Sync + 'static> Lent for T {}

/// The table's Arrow schema: each column with its unit, meaning and source.
pub fn schema<T: Table + 'static>() -> SchemaRef {
    static KNOWN: LazyLock<Mutex<HashMap<TypeId, SchemaRef>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let made = || Arc::new(schema_of(T::NAME, T::COLUMNS.iter().map(field).collect()));
    Arc::clone(known.entry(TypeId::of::<T>()).or_insert_with(made))
}

/// The schema of a table of this name.
pub fn schema_of(name: &str, fields: Vec<Field>) -> Schema {
    let named = HashMap::from([("table".to_owned(), name.to_owned())]);
    Schema::new_with_metadata(fields, named)
}

fn field(column: &Column) -> Field {
    described(
        column.name,
        column.kind,
        column.nullable,
        [column.unit, column.doc, column.source],
    )
}

/// A field with its unit, meaning and source.
pub fn described(name: &str, kind: Type, nullable: bool, [unit, doc, source]: [&str; 3]) -> Field {
    let metadata = [("unit", unit), ("doc", doc), ("source", source)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    Field::new(name, data_type(kind), nullable).with_metadata(HashMap::from(metadata))
}

/// # Panics
/// Arrow holds no column of a snapshot.
pub fn data_type(kind: Type) -> DataType {
    match kind {
        Type::I32 => DataType::Int32,
        Type::I64 => DataType::Int64,
        Type::U64 => DataType::UInt64,
        Type::F64 => DataType::Float64,
        Type::Bool => DataType::Boolean,
        Type::Text => DataType::Utf8,
        Type::Bytes => DataType::Binary,
        Type::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        _ => unreachable!("a snapshot is no Arrow table"),
    }
}

/// The columns of the table that are kept, as a record batch.
pub fn record_batch<T: Lent>(table: &Arc<T>, kept: impl Fn(&str) -> bool) -> RecordBatch {
    let places: Vec<usize> = (0..T::COLUMNS.len())
        .filter(|&place| kept(T::COLUMNS[place].name))
        .collect();
    let schema = schema::<T>();
    let schema = match places.len() == T::COLUMNS.len() {
        true => schema,
        false => Arc::new(schema.project(&places).expect("they are its columns")),
    };
    let values = table.values();
    let owner: Arc<dyn Allocation> = Arc::clone(table) as _;
    let arrays = places.iter().map(|&place| array(values[place], &owner));
    RecordBatch::try_new(schema, arrays.collect()).expect("a table's columns are of one length")
}

/// Takes the rows of a batch out of the table.
pub fn take<T: Batch + Lent>(table: &mut T) -> RecordBatch {
    record_batch(&Arc::new(table.take(|_| true)), |_| true)
}

/// Takes the rows out; of the columns only those at `places`, in that order. The memory of the others is freed.
pub fn take_columns<T: Batch + Lent>(table: &mut T, places: &[usize]) -> RecordBatch {
    let chosen: Vec<&str> = places.iter().map(|&place| T::COLUMNS[place].name).collect();
    let kept = |name: &str| chosen.contains(&name);
    let batch = record_batch(&Arc::new(table.take(kept)), kept);
    let order: Vec<usize> = chosen
        .iter()
        .filter_map(|name| batch.schema_ref().index_of(name).ok())
        .collect();
    batch.project(&order).expect("they are its columns")
}

/// Takes the first `rows` rows of a column that belongs to no table.
pub fn take_column<C>(column: &mut C, rows: usize) -> ArrayRef
where
    C: Taken + RefUnwindSafe + Send + Sync + 'static,
{
    let column = Arc::new(column.take(rows));
    let owner: Arc<dyn Allocation> = Arc::clone(&column) as _;
    array(column.values(), &owner)
}

/// A column's values, which `owner` keeps in memory.
fn array(values: Values<'_>, owner: &Arc<dyn Allocation>) -> ArrayRef {
    match values {
        Values::I32(values) => Arc::new(lend::<Int32Type>(values, owner, None)),
        Values::I64(values) => Arc::new(lend::<Int64Type>(values, owner, None)),
        Values::F64(values) => Arc::new(lend::<Float64Type>(values, owner, None)),
        Values::Bool(values) => Arc::new(BooleanArray::from_iter(values.iter().copied().map(Some))),
        Values::Text(values) => Arc::new(StringArray::from_iter_values(values)),
        Values::Bytes(values) => Arc::new(BinaryArray::from_iter_values(values.iter())),
        Values::Name(values) => Arc::new(DictionaryArray::<Int32Type>::new(
            lend(values.keys(), owner, None),
            Arc::new(StringArray::from_iter_values(values.names())),
        )),
        Values::OptI32(values) => numbers::<Int32Type>(values, owner),
        Values::OptI64(values) => numbers::<Int64Type>(values, owner),
        Values::OptU64(values) => numbers::<UInt64Type>(values, owner),
        Values::OptF64(values) => numbers::<Float64Type>(values, owner),
        Values::OptBool(values) if !values.any() => absent(Type::Bool, values.len()),
        Values::OptBool(values) => {
            let rows = values.len();
            let nulls = nulls(values.valid().words().iter().copied(), rows);
            let values = bits(values.values().words().iter().copied(), rows);
            Arc::new(BooleanArray::new(values, nulls))
        }
        Values::OptText(values) if !values.any() => absent(Type::Text, values.len()),
        Values::OptText(values) => {
            let valid = values.valid().words().iter().copied();
            Arc::new(texts(values, owner, nulls(valid, values.len())))
        }
        Values::OptName(values) if !values.keys().any() => absent(Type::Name, values.keys().len()),
        Values::OptName(values) => {
            let keys = filled::<Int32Type>(values.keys(), owner);
            let names = texts(values.names(), owner, None);
            Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(names)))
        }
    }
}

fn numbers<P: ArrowPrimitiveType>(
    column: &Numbers<P::Native>,
    owner: &Arc<dyn Allocation>,
) -> ArrayRef
where
    P::Native: Number,
{
    match column.any() {
        true => Arc::new(filled::<P>(column, owner)),
        false => absent(<P::Native as Number>::TYPE, column.len()),
    }
}

/// Numbers some of which may be missing: lent if memory holds one for each row.
fn filled<P: ArrowPrimitiveType>(
    column: &Numbers<P::Native>,
    owner: &Arc<dyn Allocation>,
) -> PrimitiveArray<P>
where
    P::Native: Number,
{
    match column.dense() {
        Some(values) => {
            let valid = column.missing().words().iter().map(|word| !word);
            // Rows behind the last word have a number.
            let valid = valid.chain(std::iter::repeat(u64::MAX));
            let nulls = column.any_missing().then(|| nulls(valid, column.len()));
            lend::<P>(values, owner, nulls.flatten())
        }
        None => PrimitiveArray::from_iter(column.iter()),
    }
}

fn texts(column: &Texts, owner: &Arc<dyn Allocation>, nulls: Option<NullBuffer>) -> StringArray {
    let offsets = OffsetBuffer::new(lent(column.offsets(), owner));
    StringArray::new(
        offsets,
        lent::<u8>(column.bytes(), owner).into_inner(),
        nulls,
    )
}

/// An all-null column. All columns of a type share one array, so absent columns cost no memory.
fn absent(kind: Type, rows: usize) -> ArrayRef {
    static ABSENT: Mutex<Vec<(Type, ArrayRef)>> = Mutex::new(Vec::new());
    if rows > ROWS {
        return new_null_array(&data_type(kind), rows);
    }
    let mut known = ABSENT.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.iter().find(|(known, _)| *known == kind);
    let whole = match found {
        Some((_, whole)) => whole,
        None => {
            known.push((kind, new_null_array(&data_type(kind), ROWS)));
            &known[known.len() - 1].1
        }
    };
    whole.slice(0, rows)
}

/// Validity in Arrow's form; `None`: every row has a value.
fn nulls(valid: impl Iterator<Item = u64>, rows: usize) -> Option<NullBuffer> {
    Some(NullBuffer::new(bits(valid, rows))).filter(|nulls| nulls.null_count() > 0)
}

/// A bit for each row; rows behind the last word have 0.
fn bits(words: impl Iterator<Item = u64>, rows: usize) -> BooleanBuffer {
    let count = rows.div_ceil(64);
    let mut words: Vec<u64> = words.take(count).map(u64::to_le).collect();
    words.resize(count, 0);
    BooleanBuffer::new(Buffer::from_vec(words), 0, rows)
}

fn lend<P: ArrowPrimitiveType>(
    values: &[P::Native],
    owner: &Arc<dyn Allocation>,
    nulls: Option<NullBuffer>,
) -> PrimitiveArray<P> {
    PrimitiveArray::<P>::new(lent(values, owner), nulls)
}

/// A buffer over memory that `owner` holds.
fn lent<T: arrow_buffer::ArrowNativeType>(
    values: &[T],
    owner: &Arc<dyn Allocation>,
) -> ScalarBuffer<T> {
    let first = NonNull::from(values).cast::<u8>();
    // SAFETY: `values` is a slice of a column of `*owner`. The buffer holds a clone of that Arc, and nobody holds the
    // table mutably any more, so the memory stays in place, unchanged, for as long as the buffer lives.
    let buffer =
        unsafe { Buffer::from_custom_allocation(first, size_of_val(values), Arc::clone(owner)) };
    ScalarBuffer::new(buffer, 0, values.len())
}
