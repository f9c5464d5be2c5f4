//! What readers take of parts: their complete row groups, without changing a
//! thing. The folder may be anybody's.

use std::fs::{self, File};
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::groups::{self, Groups};
use super::keep::named;
use super::recover::whole_of;
use crate::folder::{self, open_readable};

/// A segment that its writer has not ended yet, or never will.
#[derive(Debug)]
pub struct Unfinished {
    pub table: String,
    pub part: PathBuf,
    /// `None`: nothing can be read of it yet.
    pub content: Result<Option<Content>, Error>,
}

/// The bytes of a whole Parquet file: those of `file` up to `end`, then `footer`.
#[derive(Debug)]
pub struct Content {
    pub file: File,
    pub end: u64,
    pub footer: Vec<u8>,
    pub rows: i64,
}

/// The unfinished segments of a folder, in order of their names.
///
/// # Errors
/// The folder cannot be read.
pub fn unfinished(dir: &Path) -> Result<Vec<Unfinished>, Error> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir, "read the folder"))? {
        let name = entry
            .map_err(Error::io(dir, "read the folder"))?
            .file_name();
        if let Some(name) = name.to_str()
            && let Some(whole) = whole_of(name)
            && let Some((table, _)) = named(Path::new(whole))
        {
            parts.push((name.to_owned(), table.to_owned()));
        }
    }
    parts.sort();
    let read = |(name, table): (String, String)| Unfinished {
        table,
        content: content(dir, &name),
        part: dir.join(name),
    };
    Ok(parts.into_iter().map(read).collect())
}

fn content(dir: &Path, part: &str) -> Result<Option<Content>, Error> {
    let (path, groups_path) = (dir.join(part), dir.join(groups::beside(part)));
    let (Some(file), Some(groups)) = (look(&path)?, look(&groups_path)?) else {
        return Ok(None);
    };
    let bytes = file
        .metadata()
        .map_err(Error::io(&path, "read its size"))?
        .len();
    let found =
        Groups::read(BufReader::new(groups), bytes).map_err(Error::io(&groups_path, "read"))?;
    let Some(found) = found else {
        return Ok(None);
    };
    let footer = found.footer().map_err(|error| Error::Parquet {
        path,
        reason: error.to_string(),
    })?;
    Ok(Some(Content {
        file,
        end: found.end,
        rows: found.rows(),
        footer,
    }))
}

/// The file of that name; `None`: it is gone.
fn look(path: &Path) -> Result<Option<File>, Error> {
    match open_readable(path) {
        Err(folder::Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(opened?)),
    }
}
