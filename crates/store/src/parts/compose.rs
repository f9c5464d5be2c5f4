//! One table of its parts.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result as Parquet};

use super::Error;
use super::part::NOTE;
use super::rows::{GROUP_ROWS, Rows};

/// A row group from this size on is copied as it is; smaller ones are put together, so that the table has no thousands of
/// them.
const COPIED_ROWS: i64 = 1 << 14;
/// Rows decoded at once.
const BATCH_ROWS: usize = 1 << 14;

/// Writes the rows of a table's parts, in their order, to `out`, which is at `path`; returns their notes. `order`: a column
/// of whole numbers that the rows of each part are put in the order of, where they came in another.
///
/// However many rows there are, no more than a row group and a column of one part are held.
///
/// # Errors
/// A part cannot be read, or has other columns than the first; `out` cannot be written.
pub fn compose(
    parts: &[PathBuf],
    order: Option<&str>,
    out: File,
    path: &Path,
) -> Result<Vec<Option<String>>, Error> {
    let mut out = Some(out);
    let (mut rows, mut notes): (Option<Rows>, _) = (None, Vec::new());
    for part in parts {
        let read = Error::read(part);
        let part = Opened::new(part).map_err(&read)?;
        notes.push(part.note());
        let schema = part.schema();
        let rows = match &mut rows {
            Some(rows) if *rows.schema() != schema => {
                return Err(read(ParquetError::General(
                    "its columns are not those of the other parts".into(),
                )));
            }
            Some(rows) => rows,
            none => {
                let out = out.take().expect("taken with the first part");
                none.insert(Rows::new(out, schema).map_err(Error::write(path))?)
            }
        };
        let order = order.map(|column| part.order(column)).transpose();
        match order.map_err(&read)?.flatten() {
            Some(order) => {
                for some in order.chunks(GROUP_ROWS) {
                    let some = part.taken(some, rows.schema()).map_err(&read)?;
                    rows.write(&some).map_err(Error::write(path))?;
                }
            }
            None => part.append_to(rows, path, &read)?,
        }
    }
    if let Some(rows) = rows {
        rows.finish(None).map_err(Error::write(path))?;
    }
    Ok(notes)
}

/// A part's file.
struct Opened {
    file: File,
    about: ArrowReaderMetadata,
}

impl Opened {
    fn new(path: &Path) -> Parquet<Opened> {
        let file = File::open(path)?;
        // In full, as a copied row group is described by it.
        let options = ArrowReaderOptions::new().with_encoding_stats_as_mask(false);
        let about = ArrowReaderMetadata::load(&file, options)?;
        Ok(Opened { file, about })
    }

    fn note(&self) -> Option<String> {
        let about = self.about.metadata().file_metadata().key_value_metadata();
        let note = about?.iter().find(|entry| entry.key == NOTE);
        note?.value.clone()
    }

    /// Its columns without the note.
    fn schema(&self) -> SchemaRef {
        let schema = self.about.schema();
        let mut metadata = schema.metadata().clone();
        metadata.remove(NOTE);
        Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata))
    }

    fn append_to(
        &self,
        rows: &mut Rows,
        path: &Path,
        read: &dyn Fn(ParquetError) -> Error,
    ) -> Result<(), Error> {
        for (number, group) in self.about.metadata().row_groups().iter().enumerate() {
            if group.num_rows() >= COPIED_ROWS {
                rows.copy(&self.file, group).map_err(Error::write(path))?;
                continue;
            }
            let builder = self.reader().map_err(read)?.with_row_groups(vec![number]);
            for batch in builder.build().map_err(read)? {
                let batch = batch.map_err(|error| read(error.into()))?;
                rows.write(&batch).map_err(Error::write(path))?;
            }
        }
        Ok(())
    }

    fn reader(&self) -> Parquet<ParquetRecordBatchReaderBuilder<File>> {
        let file = self.file.try_clone()?;
        let about = self.about.clone();
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, about);
        Ok(builder.with_batch_size(BATCH_ROWS))
    }

    /// All values of the column at that position.
    fn column(&self, position: usize) -> Parquet<ArrayRef> {
        let mask = ProjectionMask::roots(self.about.parquet_schema(), [position]);
        let batches = self.reader()?.with_projection(mask).build()?;
        let arrays: Result<Vec<ArrayRef>, ArrowError> = batches
            .map(|batch| batch.map(|batch| Arc::clone(batch.column(0))))
            .collect();
        let arrays = arrays?;
        let arrays: Vec<&dyn arrow_array::Array> = arrays.iter().map(AsRef::as_ref).collect();
        Ok(concat(&arrays)?)
    }

    /// The positions of its rows in the order of that column; `None`: they stand in it.
    fn order(&self, column: &str) -> Parquet<Option<Vec<u32>>> {
        if self.about.metadata().file_metadata().num_rows() == 0 {
            return Ok(None);
        }
        let position = self.about.schema().index_of(column)?;
        let values = self.column(position)?;
        let values = values.as_primitive_opt::<Int32Type>();
        let values = values.ok_or_else(|| {
            ParquetError::General(format!("the column {column} has no whole numbers"))
        })?;
        if values.values().is_sorted() {
            return Ok(None);
        }
        let rows = u32::try_from(values.len()).map_err(|_| {
            ParquetError::General("it has more than 4 billion rows out of their order".into())
        })?;
        let mut order: Vec<u32> = (0..rows).collect();
        order.sort_by_key(|&row| values.value(row as usize));
        Ok(Some(order))
    }

    /// The rows at these positions. A column at a time, because the rows may stand anywhere in the part.
    fn taken(&self, positions: &[u32], schema: &SchemaRef) -> Parquet<RecordBatch> {
        let positions = UInt32Array::from(positions.to_vec());
        let columns: Parquet<Vec<ArrayRef>> = (0..schema.fields().len())
            .map(|column| Ok(take(&self.column(column)?, &positions, None)?))
            .collect();
        Ok(RecordBatch::try_new(Arc::clone(schema), columns?)?)
    }
}
