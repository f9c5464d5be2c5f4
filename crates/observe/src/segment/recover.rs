//! Whole files of what a killed writer left.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use parquet::file::metadata::ParquetMetaDataWriter;

use super::error::Error;
use super::keep::named;
use super::{groups, reserve};

/// What became of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// It is a whole Parquet file now.
    Whole { path: PathBuf, rows: i64 },
    /// It held no complete row group and is gone.
    Empty,
    /// Its writer lives.
    InUse,
}

/// Makes whole files of every part of `dir` whose writer is gone, in order of
/// their names. What is whole already stays untouched.
///
/// # Errors
/// The folder cannot be read or written.
pub fn recover(dir: &Path) -> Result<Vec<(PathBuf, Recovered)>, Error> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir, "read the folder"))? {
        let path = entry.map_err(Error::io(dir, "read the folder"))?.path();
        // Other programs have parts of their own, which are theirs to end.
        if path
            .extension()
            .is_some_and(|extension| extension == "part")
            && named(&path.with_extension("")).is_some()
        {
            parts.push(path);
        }
    }
    parts.sort();
    parts
        .into_iter()
        .map(|part| recover_part(&part).map(|outcome| (part, outcome)))
        .collect()
}

fn recover_part(part: &Path) -> Result<Recovered, Error> {
    let file = OpenOptions::new().read(true).write(true).open(part);
    let file = file.map_err(Error::io(part, "open"))?;
    match lock(file) {
        Some(mut file) => complete(&mut file, part),
        None => Ok(Recovered::InUse),
    }
}

/// The lock that a writer holds for as long as it lives; `None`: another holds it.
pub(super) fn lock(file: File) -> Option<Flock<File>> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

/// Cuts the part after its last complete row group, writes the footer and
/// renames it. Killed in between, it can be done again: `groups` goes last.
pub(super) fn complete(file: &mut File, part: &Path) -> Result<Recovered, Error> {
    let groups_path = groups::beside(part);
    let bytes = file
        .metadata()
        .map_err(Error::io(part, "read its size"))?
        .len();
    let found = groups::read(&groups_path, bytes).map_err(Error::io(&groups_path, "read"))?;
    let outcome = if let Some(found) = found {
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &found.metadata)
            .finish()
            .map_err(|error| Error::Parquet {
                path: part.into(),
                reason: error.to_string(),
            })?;
        // Now there is room for the footer on a full disk.
        file.set_len(found.end).map_err(Error::io(part, "cut"))?;
        remove(&reserve::beside(part))?;
        file.seek(SeekFrom::End(0))
            .map_err(Error::io(part, "seek in"))?;
        file.write_all(&footer)
            .map_err(Error::io(part, "write the footer of"))?;
        file.sync_all().map_err(Error::io(part, "write out"))?;
        let path = part.with_extension("");
        fs::rename(part, &path).map_err(Error::io(part, "rename"))?;
        Recovered::Whole {
            path,
            rows: found.metadata.file_metadata().num_rows(),
        }
    } else {
        remove(&reserve::beside(part))?;
        fs::remove_file(part).map_err(Error::io(part, "remove"))?;
        Recovered::Empty
    };
    remove(&groups_path)?;
    Ok(outcome)
}

/// Removes a file that may be gone already.
fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path, "remove")(error)),
        _ => Ok(()),
    }
}
