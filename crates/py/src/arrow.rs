//! Tables of the model as Arrow record batches, lent to Python.

use std::collections::HashMap;
use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, RecordBatch,
    RecordBatchIterator, StringArray, StructArray, new_null_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{Field, Schema};
use knee_tables::{Column, Nullable, Table, Values};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

/// One table of a run, for any library that speaks the Arrow PyCapsule
/// interface: `pyarrow.record_batch(t)`, `polars.DataFrame(t)`, ….
#[pyclass(frozen, module = "tcpknee._core")]
pub struct ArrowTable {
    batch: RecordBatch,
}

impl ArrowTable {
    pub fn new<T: Table + RefUnwindSafe + Send + Sync + 'static>(table: T) -> Self {
        ArrowTable {
            batch: record_batch(&Arc::new(table), |_| true),
        }
    }

    pub fn of(batch: RecordBatch) -> Self {
        ArrowTable { batch }
    }

    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }
}

#[pymethods]
impl ArrowTable {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema_ref().as_ref())
            .expect("every column's type has a C form");
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// `requested_schema` is a wish that a producer may disregard: the batch
    /// goes out as it is.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        let schema = self.__arrow_c_schema__(py)?;
        let data = StructArray::from(self.batch.clone()).to_data();
        let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(&data), c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// A table in several batches, for any library that speaks the Arrow PyCapsule
/// interface: `pyarrow.table(t)`, `polars.DataFrame(t)`, ….
#[pyclass(frozen, module = "tcpknee._core")]
pub struct ArrowBatches {
    /// One at least.
    batches: Vec<RecordBatch>,
}

impl ArrowBatches {
    /// # Panics
    /// There is none: then nobody knows the columns.
    pub fn new(batches: Vec<RecordBatch>) -> Self {
        assert!(!batches.is_empty(), "a table has one batch at least");
        ArrowBatches { batches }
    }
}

#[pymethods]
impl ArrowBatches {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let batches = RecordBatchIterator::new(batches, self.batches[0].schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// The columns of the table that are kept as a record batch. Numbers are lent, not copied: the batch keeps the table alive.
pub fn record_batch<T: Table + RefUnwindSafe + Send + Sync + 'static>(
    table: &Arc<T>,
    kept: impl Fn(&str) -> bool,
) -> RecordBatch {
    let mut fields = Vec::with_capacity(T::COLUMNS.len());
    let mut arrays = Vec::with_capacity(T::COLUMNS.len());
    let columns = T::COLUMNS.iter().zip(table.values());
    for (column, values) in columns.filter(|(column, _)| kept(column.name)) {
        let array = array(values, table);
        let nullable = matches!(values, Values::OptI64(_) | Values::OptF64(_));
        fields.push(
            Field::new(column.name, array.data_type().clone(), nullable)
                .with_metadata(metadata(column)),
        );
        arrays.push(array);
    }
    let named = HashMap::from([("table".to_owned(), T::NAME.to_owned())]);
    let schema = Schema::new_with_metadata(fields, named);
    RecordBatch::try_new(Arc::new(schema), arrays).expect("a table's columns are of one length")
}

fn metadata(column: &Column) -> HashMap<String, String> {
    [
        ("unit", column.unit),
        ("doc", column.doc),
        ("source", column.source),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

fn array<T: RefUnwindSafe + Send + Sync + 'static>(values: Values<'_>, owner: &Arc<T>) -> ArrayRef {
    match values {
        Values::I32(values) => Arc::new(lend::<Int32Type, T>(values, owner, None)),
        Values::I64(values) => Arc::new(lend::<Int64Type, T>(values, owner, None)),
        Values::F64(values) => Arc::new(lend::<Float64Type, T>(values, owner, None)),
        Values::Bool(values) => Arc::new(BooleanArray::from_iter(values.iter().copied().map(Some))),
        Values::OptI64(values) => nullable::<Int64Type, T>(values, owner),
        Values::OptF64(values) => nullable::<Float64Type, T>(values, owner),
        Values::Text(values) => Arc::new(StringArray::from_iter_values(values)),
        Values::Name(values) => Arc::new(DictionaryArray::<Int32Type>::new(
            lend(values.keys(), owner, None),
            Arc::new(StringArray::from_iter_values(values.names())),
        )),
    }
}

/// Numbers some of which may be missing: lent where the first row has one, none at all where no row has.
fn nullable<P: ArrowPrimitiveType, T: RefUnwindSafe + Send + Sync + 'static>(
    column: &Nullable<P::Native>,
    owner: &Arc<T>,
) -> ArrayRef {
    if !column.any() {
        return new_null_array(&P::DATA_TYPE, column.len());
    }
    let Some(values) = column.dense() else {
        return Arc::new(PrimitiveArray::<P>::from_iter(column.iter()));
    };
    let valid = || BooleanBuffer::collect_bool(column.len(), |row| column.get(row).is_some());
    let nulls = column.any_missing().then(|| NullBuffer::new(valid()));
    Arc::new(lend::<P, T>(values, owner, nulls))
}

/// An Arrow array over memory that `owner` holds.
fn lend<P: ArrowPrimitiveType, T: RefUnwindSafe + Send + Sync + 'static>(
    values: &[P::Native],
    owner: &Arc<T>,
    nulls: Option<NullBuffer>,
) -> PrimitiveArray<P> {
    let first = NonNull::from(values).cast::<u8>();
    // SAFETY: `values` is a slice of a column of `*owner`. The buffer holds a
    // clone of that Arc, nobody holds the table mutably any more, so the memory
    // stays where it is, unchanged, for as long as the buffer lives.
    let buffer = unsafe {
        Buffer::from_custom_allocation(first, size_of_val(values), Arc::clone(owner) as _)
    };
    PrimitiveArray::<P>::new(ScalarBuffer::new(buffer, 0, values.len()), nulls)
}
