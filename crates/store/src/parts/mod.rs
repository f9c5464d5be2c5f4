//! Tables that are written while they grow, in parts, and put together afterwards without being held.
//!
//! A [`Part`] is a Parquet file per table, which appear together or not at all. [`compose`] makes one file of a table's
//! parts: it copies large row groups as they are and puts small ones together. The bytes of a part depend on its rows
//! alone, however they came: in large batches or small ones, from one process or several; those of a table on its parts.

mod compose;
mod part;
mod rows;

pub use compose::compose;
pub use part::Part;

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::folder;

/// What a part or a table of parts cannot be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Folder(#[from] folder::Error),
    #[error("{path}: cannot be written: {source}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A part is damaged, or of another form than those before it.
    #[error("{path}: cannot be read: {reason}")]
    Read { path: PathBuf, reason: String },
}

impl Error {
    /// What went wrong while writing to that file.
    fn write(path: &Path) -> impl Fn(ParquetError) -> Error + '_ {
        |error| {
            let source = match error {
                ParquetError::External(source) => match source.downcast::<io::Error>() {
                    Ok(source) => *source,
                    Err(other) => io::Error::other(other),
                },
                other => io::Error::other(other),
            };
            Error::Write {
                path: path.into(),
                source,
            }
        }
    }

    fn read(path: &Path) -> impl Fn(ParquetError) -> Error + '_ {
        |error| Error::Read {
            path: path.into(),
            reason: error.to_string(),
        }
    }
}
