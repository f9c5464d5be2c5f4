//! The `.groups` file: what the footer will say, a record per row group.
//!
//! A record is a length and a CRC-32 of what follows (little-endian `u32`s), the
//! end of the row group in the part (`u64`), and a Parquet footer that describes
//! this group alone; that of the first record describes none, and so tells the
//! columns before there are rows. A record that is cut short or damaged, or that
//! does not fit what is before it, ends the list: the file may be anybody's.

use std::fs::File;
use std::io::{self, Read, Write};

use bytes::Bytes;
use parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader,
    ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::types::SchemaDescPtr;

const HEAD_BYTES: usize = 8;
/// Thousands of columns take less.
const RECORD_BYTES_MAX: u64 = 1 << 24;

/// What has been read of a `.groups` file.
#[derive(Debug)]
pub struct Groups {
    /// Where the last group ends in the part.
    pub end: u64,
    pub metadata: ParquetMetaData,
}

/// The name of the `.groups` beside the part `NAME.parquet.part`.
pub(super) fn beside(part: &str) -> String {
    super::sibling(part, "groups")
}

/// Appends the record of a group; `None`: the first one, of the columns alone.
pub(super) fn append(
    file: &mut File,
    end: u64,
    group: Option<&RowGroupMetaData>,
    schema: SchemaDescPtr,
    about: &[KeyValue],
) -> io::Result<()> {
    let groups = group.into_iter().cloned().collect();
    let metadata = footer(groups, schema, Some(about.to_vec()));
    let mut body = end.to_le_bytes().to_vec();
    ParquetMetaDataWriter::new(&mut body, &metadata)
        .finish()
        .map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    let mut record = length.to_le_bytes().to_vec();
    record.extend(crc32fast::hash(&body).to_le_bytes());
    record.extend(body);
    // One write: a reader sees a record or a part of it, never two halves of two.
    file.write_all(&record)
}

impl Groups {
    /// The groups that lie within the first `part_bytes` of a part; `None`: there
    /// is not even a record of the columns.
    ///
    /// # Errors
    /// The source's.
    pub fn read(mut source: impl Read, part_bytes: u64) -> io::Result<Option<Groups>> {
        let Some(first) = record(&mut source)? else {
            return Ok(None);
        };
        let file = first.metadata.file_metadata();
        let schema = file.schema_descr_ptr();
        let about = file.key_value_metadata().cloned();
        let (mut found, mut rows, mut end) = (Vec::new(), 0_i64, 0);
        let mut next = Some(first);
        while let Some(Record {
            end: group_end,
            metadata,
        }) = next
        {
            let same =
                metadata.file_metadata().schema_descr().root_schema() == schema.root_schema();
            let groups = metadata.row_groups();
            let lies = (end..=part_bytes).contains(&group_end)
                && groups.iter().all(|group| lies_within(group, group_end));
            let sum = groups.iter().try_fold(rows, |sum, group| {
                u32::try_from(group.num_rows()).ok()?;
                sum.checked_add(group.num_rows())
            });
            let (true, true, Some(sum)) = (same, lies, sum) else {
                break;
            };
            (rows, end) = (sum, group_end);
            found.extend(groups.iter().cloned());
            next = record(&mut source)?;
        }
        Ok(Some(Groups {
            end,
            metadata: footer(found, schema, about),
        }))
    }

    pub fn rows(&self) -> i64 {
        self.metadata.file_metadata().num_rows()
    }

    /// What follows byte `end` of the part in a whole file.
    ///
    /// # Errors
    /// It cannot be encoded.
    pub fn footer(&self) -> parquet::errors::Result<Vec<u8>> {
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &self.metadata).finish()?;
        Ok(footer)
    }
}

struct Record {
    end: u64,
    metadata: ParquetMetaData,
}

/// The next record; `None`: the list ends.
fn record(source: &mut impl Read) -> io::Result<Option<Record>> {
    let Some(head) = exactly(source, HEAD_BYTES as u64)? else {
        return Ok(None);
    };
    let word = |at| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let length = u64::from(word(0));
    if length > RECORD_BYTES_MAX {
        return Ok(None);
    }
    let Some(body) = exactly(source, length)? else {
        return Ok(None);
    };
    if crc32fast::hash(&body) != word(4) {
        return Ok(None);
    }
    let Some((end, footer)) = body.split_first_chunk::<8>() else {
        return Ok(None);
    };
    let end = u64::from_le_bytes(*end);
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&Bytes::copy_from_slice(footer));
    Ok(metadata.ok().map(|metadata| Record { end, metadata }))
}

/// So many bytes; `None`: the source has fewer.
fn exactly(source: &mut impl Read, bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let mut found = Vec::new();
    source.by_ref().take(bytes).read_to_end(&mut found)?;
    Ok((found.len() as u64 == bytes).then_some(found))
}

/// Are all its columns in the part, before `end`?
fn lies_within(group: &RowGroupMetaData, end: u64) -> bool {
    group.columns().iter().all(|column| {
        let first = column.dictionary_page_offset();
        let from = first.map_or(column.data_page_offset(), |first| {
            first.min(column.data_page_offset())
        });
        let to = ends_at(column, from);
        column.file_path().is_none() && to.is_some_and(|to| to <= end)
    })
}

fn ends_at(column: &ColumnChunkMetaData, from: i64) -> Option<u64> {
    let from = u64::try_from(from).ok()?;
    from.checked_add(u64::try_from(column.compressed_size()).ok()?)
}

fn footer(
    groups: Vec<RowGroupMetaData>,
    schema: SchemaDescPtr,
    about: Option<Vec<KeyValue>>,
) -> ParquetMetaData {
    let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
    let created_by = Some(concat!("tcpknee ", env!("CARGO_PKG_VERSION")).to_owned());
    let file = FileMetaData::new(1, rows, created_by, about, schema, None);
    ParquetMetaData::new(file, groups)
}
