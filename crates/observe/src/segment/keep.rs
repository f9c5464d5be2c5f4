//! A bound on what a recording takes of the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::Error;

/// A whole segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub path: PathBuf,
    pub bytes: u64,
    pub closed: SystemTime,
}

/// The whole segments of a folder, oldest first.
///
/// # Errors
/// The folder cannot be read.
pub fn segments(dir: &Path) -> Result<Vec<Segment>, Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir, "read the folder"))? {
        let path = entry.map_err(Error::io(dir, "read the folder"))?.path();
        if named(&path).is_none() {
            continue;
        }
        // A segment that another writer of the folder has just deleted is none.
        if let Ok((bytes, closed)) =
            fs::metadata(&path).and_then(|about| Ok((about.len(), about.modified()?)))
        {
            found.push(Segment {
                path,
                bytes,
                closed,
            });
        }
    }
    found.sort_by(|one, other| (one.closed, &one.path).cmp(&(other.closed, &other.path)));
    Ok(found)
}

/// Deletes the oldest whole segments of the folder, of whatever table, until all
/// of them together are within `bytes`. Other files and parts are never touched.
///
/// # Errors
/// The folder cannot be read or a segment not deleted.
pub fn keep(dir: &Path, bytes: u64) -> Result<Vec<Segment>, Error> {
    let found = segments(dir)?;
    let mut held: u64 = found.iter().map(|segment| segment.bytes).sum();
    let mut deleted = Vec::new();
    for segment in found {
        if held <= bytes {
            break;
        }
        fs::remove_file(&segment.path).map_err(Error::io(&segment.path, "delete"))?;
        held -= segment.bytes;
        deleted.push(segment);
    }
    Ok(deleted)
}

/// Table and number of a whole segment, `TABLE-NNNNNN.parquet`.
pub(super) fn named(path: &Path) -> Option<(&str, u64)> {
    if path.extension()? != "parquet" {
        return None;
    }
    let (table, digits) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    let all_digits = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((table, all_digits.then(|| digits.parse().ok()).flatten()?))
}
