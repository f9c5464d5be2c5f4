//! Tables of the model as Arrow record batches, lent to Python.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array as _, RecordBatch, RecordBatchIterator, StructArray};
use knee_store::arrow::{Lent, record_batch};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

/// One table of a run, for any library that speaks the Arrow PyCapsule
/// interface: `pyarrow.record_batch(t)`, `polars.DataFrame(t)`, ….
#[pyclass(frozen, module = "tcpknee._core")]
pub struct ArrowTable {
    batch: RecordBatch,
}

impl ArrowTable {
    pub fn new<T: Lent>(table: T) -> Self {
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
