//! The writer of a table's segments.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use nix::fcntl::Flock;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ArrowSchemaConverter, ArrowWriter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, SchemaDescPtr};

use super::error::Error;
use super::groups;
use super::keep::{keep, named};
use super::recover::{Recovered, complete};
use super::reserve::Reserve;
use crate::folder::{self, Folder, Readers};

/// How a table is cut into row groups and segments.
#[derive(Clone, Debug)]
pub struct Options {
    /// A row group is closed when it has this many rows. Its encoded form is
    /// what a writer holds in memory.
    pub group_rows: usize,
    /// It is closed by [`Writer::commit`] when it is this old: what may be lost.
    pub group_age: Duration,
    /// A segment is closed when it has this many bytes.
    pub segment_bytes: u64,
    /// It is closed when it is this old.
    pub segment_age: Duration,
    /// Bound of all whole segments of the folder; `None`: none.
    pub keep_bytes: Option<u64>,
    /// Is a row group on the disk, and not only with the kernel, before it
    /// counts? Needed against power cuts, not against kill -9.
    pub sync: bool,
    /// Does the table get a segment though no row comes? Then from the first
    /// [`commit`](Writer::commit) on.
    pub even_empty: bool,
    /// Columns whose texts hardly repeat within a row group. They get no
    /// dictionary, which would cost more time than all else.
    pub distinct: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            group_rows: 1 << 17,
            group_age: Duration::from_secs(10),
            segment_bytes: 256 << 20,
            segment_age: Duration::from_secs(3600),
            keep_bytes: None,
            sync: true,
            even_empty: false,
            distinct: Vec::new(),
        }
    }
}

/// Appends record batches to the segments of one table in one folder.
///
/// A writer that is dropped without [`finish`](Writer::finish) leaves what a
/// killed one leaves.
pub struct Writer {
    folder: Folder,
    table: String,
    schema: SchemaRef,
    options: Options,
    properties: WriterProperties,
    parquet_schema: SchemaDescPtr,
    /// What stands in every footer: the Arrow schema with units and meanings.
    about: Vec<KeyValue>,
    current: Option<Current>,
    next: u64,
    /// Was there ever a segment?
    begun: bool,
    closed: Vec<PathBuf>,
    rows: u64,
}

/// The segment being written.
struct Current {
    /// The part's name.
    part: String,
    /// The part, locked for as long as its writer lives.
    file: Flock<File>,
    /// Writes through another descriptor of the same open file.
    parquet: ArrowWriter<File>,
    groups: File,
    reserve: Reserve,
    began: Instant,
    group_began: Instant,
}

impl Writer {
    /// A writer of `TABLE-NNNNNN.parquet` in `dir`, which is made if need be.
    ///
    /// # Errors
    /// The folder cannot be made or read, or is another user's and we are root.
    pub fn create(
        dir: &Path,
        table: &str,
        schema: SchemaRef,
        options: Options,
    ) -> Result<Writer, Error> {
        Writer::within(&Folder::make(dir)?, table, schema, options)
    }

    /// The same in a folder that is held.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub fn within(
        folder: &Folder,
        table: &str,
        schema: SchemaRef,
        options: Options,
    ) -> Result<Writer, Error> {
        let mut properties = as_it_comes(&schema, &options.distinct);
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let about = properties.key_value_metadata().cloned().unwrap_or_default();
        let parquet_schema = ArrowSchemaConverter::new()
            .convert(&schema)
            .expect("every type of a table has a form in Parquet");
        Ok(Writer {
            folder: folder.clone(),
            table: table.into(),
            schema,
            options,
            properties,
            parquet_schema: Arc::new(parquet_schema),
            about,
            current: None,
            next: first_free(folder, table)?,
            begun: false,
            closed: Vec::new(),
            rows: 0,
        })
    }

    /// Appends rows. They outlive the writer once their row group is closed.
    ///
    /// # Errors
    /// The disk is full or fails. What had been committed is whole then, as after
    /// [`finish`](Writer::finish); the writer takes no more.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if self.current.is_none() {
            self.open()?;
        }
        let current = self.current.as_mut().expect("opened above");
        if current.parquet.in_progress_rows() == 0 {
            current.group_began = Instant::now();
        }
        self.rows += batch.num_rows() as u64;
        match current.parquet.write(batch) {
            Err(error) => Err(self.fail(error)),
            Ok(()) if current.parquet.in_progress_rows() >= self.options.group_rows => {
                self.close_group()
            }
            Ok(()) => Ok(()),
        }
    }

    /// Says that a sample is complete: closes the row group when it is old
    /// enough, and the segment likewise.
    ///
    /// # Errors
    /// As of [`write`](Writer::write).
    pub fn commit(&mut self) -> Result<(), Error> {
        self.begin_empty()?;
        match &self.current {
            Some(current)
                if current.parquet.in_progress_rows() > 0
                    && current.group_began.elapsed() >= self.options.group_age =>
            {
                self.close_group()
            }
            _ => Ok(()),
        }
    }

    /// Closes the last segment and tells the paths of all that were written and
    /// still exist.
    ///
    /// # Errors
    /// As of [`write`](Writer::write).
    pub fn finish(mut self) -> Result<Vec<PathBuf>, Error> {
        self.begin_empty()?;
        if self
            .current
            .as_ref()
            .is_some_and(|current| current.parquet.in_progress_rows() > 0)
        {
            self.close_group()?;
        }
        self.close_segment()?;
        self.closed.retain(|path| path.exists());
        Ok(self.closed)
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Memory held by the row group under construction.
    pub fn memory_bytes(&self) -> usize {
        self.current
            .as_ref()
            .map_or(0, |current| current.parquet.memory_size())
    }

    fn begin_empty(&mut self) -> Result<(), Error> {
        if self.options.even_empty && !self.begun {
            self.open()?;
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), Error> {
        self.begun = true;
        // An import may have put segments beside ours meanwhile.
        self.next = self.next.max(first_free(&self.folder, &self.table)?);
        let part = format!("{}-{:06}.parquet.part", self.table, self.next);
        let path = self.folder.join(&part);
        let file = self.folder.create(&part, Readers::Own)?;
        let file = folder::locked(file)
            .ok_or_else(|| Error::io(&path, "lock")(io::ErrorKind::WouldBlock.into()))?;
        let begun = self.begin(&part, file);
        if begun.is_err() {
            // Nothing in them could be kept.
            for name in [groups::beside(&part), part] {
                let _ = self.folder.remove(&name);
            }
        }
        self.current = Some(begun?);
        self.next += 1;
        Ok(())
    }

    /// The segment in the part, which is empty, and what stands beside it.
    fn begin(&self, part: &str, file: Flock<File>) -> Result<Current, Error> {
        let path = self.folder.join(part);
        let groups_name = groups::beside(part);
        let mut groups = self.folder.create(&groups_name, Readers::Own)?;
        let options = ArrowWriterOptions::new()
            .with_properties(self.properties.clone())
            .with_skip_arrow_metadata(true);
        let other = file.try_clone().map_err(Error::io(&path, "hold"))?;
        let parquet = ArrowWriter::try_new_with_options(other, Arc::clone(&self.schema), options)
            .and_then(|mut parquet| parquet.sync().map(|()| parquet).map_err(Into::into))
            .map_err(|error| Error::Parquet {
                path: path.clone(),
                reason: error.to_string(),
            })?;
        let begun = parquet.bytes_written() as u64;
        groups::append(
            &mut groups,
            begun,
            None,
            Arc::clone(&self.parquet_schema),
            &self.about,
        )
        .map_err(Error::io(&self.folder.join(&groups_name), "write"))?;
        let now = Instant::now();
        Ok(Current {
            reserve: Reserve::new(&self.folder, part),
            part: part.to_owned(),
            file,
            parquet,
            groups,
            began: now,
            group_began: now,
        })
    }

    fn close_group(&mut self) -> Result<(), Error> {
        let current = self.current.as_mut().expect("a group is open");
        match current.close_group(&self.parquet_schema, &self.about, self.options.sync) {
            Err(error) => return Err(self.fail(error)),
            Ok(bytes)
                if bytes < self.options.segment_bytes
                    && current.began.elapsed() < self.options.segment_age => {}
            Ok(_) => self.close_segment()?,
        }
        Ok(())
    }

    fn close_segment(&mut self) -> Result<(), Error> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        let Current {
            part,
            mut file,
            parquet,
            ..
        } = current;
        // Its buffer goes to the part's end, which is cut off below.
        drop(parquet);
        // The footer is written from `groups`, for the living and the dead alike.
        match complete(&mut file, &self.folder, &part)? {
            Recovered::Whole { path, .. } => self.closed.push(path),
            Recovered::Empty | Recovered::InUse => {}
            Recovered::Foreign(why) => {
                let path = self.folder.join(&part);
                return Err(Error::io(&path, "end")(io::Error::other(why)));
            }
        }
        if let Some(bytes) = self.options.keep_bytes {
            keep(&self.folder, bytes)?;
        }
        Ok(())
    }

    /// The error of a write, after the part has been made whole as far as it goes.
    fn fail(&mut self, error: ParquetError) -> Error {
        let current = self.current.as_ref().expect("what failed is open");
        let part = self.folder.join(&current.part);
        // The rest of the disk may not do for the footer; then the part stays,
        // and `recover` makes it whole when there is space again.
        let kept = match self.close_segment() {
            Ok(()) => self.closed.last().cloned(),
            Err(_) => None,
        };
        match &error {
            ParquetError::External(source) if full(source.downcast_ref()) => {
                Error::DiskFull { path: part, kept }
            }
            _ => Error::Parquet {
                path: part,
                reason: error.to_string(),
            },
        }
    }
}

/// The number after the last one that a segment or a part of the table has.
pub(super) fn first_free(folder: &Folder, table: &str) -> Result<u64, Error> {
    let mut last = 0;
    for name in folder.names()? {
        match named(Path::new(name.strip_suffix(".part").unwrap_or(&name))) {
            Some((other, number)) if other == table => last = last.max(number),
            _ => {}
        }
    }
    Ok(last + 1)
}

fn full(error: Option<&io::Error>) -> bool {
    error.is_some_and(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    })
}

impl Current {
    /// The row group is in the file, then in `groups`; the part's bytes so far.
    fn close_group(
        &mut self,
        schema: &SchemaDescPtr,
        about: &[KeyValue],
        sync: bool,
    ) -> Result<u64, ParquetError> {
        self.parquet.flush()?;
        self.parquet.sync()?;
        if sync {
            self.parquet.inner().sync_data()?;
        }
        let end = self.parquet.bytes_written() as u64;
        // Room for the footer comes first: a group that is told of can be closed.
        self.reserve.grow(self.groups.metadata()?.len())?;
        let group = self
            .parquet
            .flushed_row_groups()
            .last()
            .expect("one was flushed above");
        groups::append(
            &mut self.groups,
            end,
            Some(group),
            Arc::clone(schema),
            about,
        )?;
        if sync {
            self.groups.sync_data()?;
        }
        Ok(end)
    }
}

/// [`properties`] for rows that are written while they come, where time counts: the
/// least and greatest text of a column are left out, for which each text would be
/// compared twice.
fn as_it_comes(schema: &SchemaRef, distinct: &[String]) -> WriterProperties {
    let mut builder = properties(schema).into_builder();
    for field in schema.fields() {
        let path = ColumnPath::from(field.name().as_str());
        if distinct.contains(field.name()) {
            builder = builder.set_column_dictionary_enabled(path.clone(), false);
        }
        if is_text(field.data_type()) {
            builder = builder.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
    }
    builder.build()
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(..) | DataType::Utf8)
}

/// zstd at its fastest level for texts. Numbers are stored as differences,
/// which are short, and packed by LZ4: making zstd's state for each column
/// costs more than all else where a row group is small. No dictionaries of
/// numbers: a counter rarely repeats.
pub(crate) fn properties(schema: &SchemaRef) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(
            ZstdLevel::try_new(1).expect("1 is a level of zstd"),
        ))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(None);
    for field in schema.fields() {
        let path = ColumnPath::from(field.name().as_str());
        builder = match field.data_type() {
            data_type if is_text(data_type) => builder.set_column_dictionary_enabled(path, true),
            DataType::Int32 | DataType::Int64 | DataType::UInt64 => builder
                .set_column_compression(path.clone(), Compression::LZ4_RAW)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            _ => builder,
        };
    }
    builder.build()
}
