//! A Parquet file that rows are appended to, whose bytes do not depend on how they came.

use std::fs::File;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, compute_leaves,
};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::{KeyValue, RowGroupMetaData};
use parquet::file::writer::SerializedFileWriter;

use crate::segment;

/// Rows of a full row group.
pub const GROUP_ROWS: usize = 1 << 17;
/// The encoder looks whether a page is full after so many rows, and at the end of what it is given. It is given
/// multiples, so that pages end where they would if all rows came at once.
const STEP_ROWS: usize = 1 << 10;

/// The file under construction. It holds the encoded row group and less than a step of rows.
pub struct Rows {
    schema: SchemaRef,
    file: SerializedFileWriter<File>,
    encoders: ArrowRowGroupWriterFactory,
    /// Those of the row group under construction; empty: none is.
    columns: Vec<ArrowColumnWriter>,
    group_rows: usize,
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
}

impl Rows {
    pub fn new(file: File, schema: SchemaRef) -> Result<Rows> {
        let properties = segment::properties(&schema);
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties))?;
        let (file, encoders) = writer.into_serialized_writer()?;
        Ok(Rows {
            schema,
            file,
            encoders,
            columns: Vec::new(),
            group_rows: 0,
            waiting: Vec::new(),
            waiting_rows: 0,
        })
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let (mut from, rows) = (0, batch.num_rows());
        if self.waiting_rows > 0 {
            from = rows.min(STEP_ROWS - self.waiting_rows);
            self.wait(batch.slice(0, from));
            if self.waiting_rows < STEP_ROWS {
                return Ok(());
            }
            self.encode_waiting()?;
        }
        while from + STEP_ROWS <= rows {
            let steps = (rows - from) / STEP_ROWS * STEP_ROWS;
            let some = steps.min(GROUP_ROWS - self.group_rows);
            self.encode(&batch.slice(from, some))?;
            from += some;
        }
        if from < rows {
            self.wait(batch.slice(from, rows - from));
        }
        Ok(())
    }

    fn wait(&mut self, rows: RecordBatch) {
        self.waiting_rows += rows.num_rows();
        self.waiting.push(rows);
    }

    fn encode_waiting(&mut self) -> Result<()> {
        if self.waiting_rows == 0 {
            return Ok(());
        }
        let rows = concat_batches(&self.schema, &self.waiting)?;
        self.waiting.clear();
        self.waiting_rows = 0;
        self.encode(&rows)
    }

    /// Encodes rows, which the row group has room for.
    fn encode(&mut self, rows: &RecordBatch) -> Result<()> {
        if self.columns.is_empty() {
            let group = self.file.flushed_row_groups().len();
            self.columns = self.encoders.create_column_writers(group)?;
        }
        let fields = self.schema.fields().iter().zip(rows.columns());
        for (writer, (field, values)) in self.columns.iter_mut().zip(fields) {
            // No column is nested: each has one leaf.
            for leaf in compute_leaves(field, values)? {
                writer.write(&leaf)?;
            }
        }
        self.group_rows += rows.num_rows();
        match self.group_rows {
            GROUP_ROWS => self.end_group(),
            _ => Ok(()),
        }
    }

    fn end_group(&mut self) -> Result<()> {
        if self.group_rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in self.columns.drain(..) {
            column.close()?.append_to_row_group(&mut group)?;
        }
        group.close()?;
        self.group_rows = 0;
        Ok(())
    }

    /// Appends a row group of another file of these columns, as its bytes are there.
    pub fn copy(&mut self, from: &File, group: &RowGroupMetaData) -> Result<()> {
        self.encode_waiting()?;
        self.end_group()?;
        let mut copy = self.file.next_row_group()?;
        for column in group.columns() {
            let encoded = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: group.num_rows() as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            copy.append_column(from, encoded)?;
        }
        copy.close()?;
        Ok(())
    }

    /// Ends the file; `about` stands in its footer.
    pub fn finish(mut self, about: Option<KeyValue>) -> Result<()> {
        self.encode_waiting()?;
        self.end_group()?;
        if let Some(about) = about {
            self.file.append_key_value_metadata(about);
        }
        self.file.close()?;
        Ok(())
    }
}
