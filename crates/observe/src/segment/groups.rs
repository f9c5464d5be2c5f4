//! The `.groups` file: what the footer will say, a record per row group.
//!
//! A record is a length and a CRC-32 of what follows (little-endian `u32`s), the
//! end of the row group in the part (`u64`), and a Parquet footer that describes
//! this group alone. A record cut short or damaged ends the list.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
    RowGroupMetaData,
};

const HEAD_BYTES: usize = 8;

/// What has been read of a `.groups` file.
pub struct Groups {
    /// Where the last group ends in the part.
    pub end: u64,
    pub metadata: ParquetMetaData,
}

/// The `.groups` beside `NAME.parquet.part`.
pub fn beside(part: &Path) -> PathBuf {
    part.with_extension("groups")
}

pub fn append(
    file: &mut File,
    end: u64,
    group: &RowGroupMetaData,
    about: &[KeyValue],
) -> io::Result<()> {
    let metadata = footer(vec![group.clone()], about.to_vec());
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

/// The groups that lie within `part_bytes`; `None`: not one.
pub fn read(path: &Path, part_bytes: u64) -> io::Result<Option<Groups>> {
    let mut rest = match std::fs::read(path) {
        Ok(bytes) => Bytes::from(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let (mut found, mut about, mut end) = (Vec::new(), Vec::new(), 0);
    while let Some((group_end, metadata)) = record(&mut rest) {
        if group_end > part_bytes {
            break;
        }
        end = group_end;
        if about.is_empty() {
            about = metadata
                .file_metadata()
                .key_value_metadata()
                .cloned()
                .unwrap_or_default();
        }
        found.extend(metadata.row_groups().iter().cloned());
    }
    Ok((!found.is_empty()).then(|| Groups {
        end,
        metadata: footer(found, about),
    }))
}

fn record(rest: &mut Bytes) -> Option<(u64, ParquetMetaData)> {
    let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
    let (length, crc) = (word(0)? as usize, word(4)?);
    let body = rest.get(HEAD_BYTES..HEAD_BYTES.checked_add(length)?)?;
    if crc32fast::hash(body) != crc {
        return None;
    }
    let body = rest.slice(HEAD_BYTES..HEAD_BYTES + length);
    let end = u64::from_le_bytes(body.get(..8)?.try_into().ok()?);
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&body.slice(8..))
        .ok()?;
    *rest = rest.slice(HEAD_BYTES + length..);
    Some((end, metadata))
}

fn footer(groups: Vec<RowGroupMetaData>, about: Vec<KeyValue>) -> ParquetMetaData {
    let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
    let schema = groups[0].schema_descr_ptr();
    let created_by = Some(concat!("kneepoint ", env!("CARGO_PKG_VERSION")).to_owned());
    let file = FileMetaData::new(1, rows, created_by, Some(about), schema, None);
    ParquetMetaData::new(file, groups)
}
