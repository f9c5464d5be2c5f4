//! A bound on what a recording takes of the disk.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::error::Error;
use crate::folder::Folder;

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
pub fn segments(folder: &Folder) -> Result<Vec<Segment>, Error> {
    let named = told(folder)?;
    Ok(named.into_iter().map(|(segment, _)| segment).collect())
}

/// With their names.
fn told(folder: &Folder) -> Result<Vec<(Segment, String)>, Error> {
    let mut found = Vec::new();
    for name in folder.names()? {
        if named(Path::new(&name)).is_none() {
            continue;
        }
        // A segment that another writer of the folder has just deleted is none.
        if let Some(about) = folder.about(&name) {
            let since_epoch = Duration::new(
                about.st_mtime.unsigned_abs(),
                about.st_mtime_nsec.unsigned_abs() as u32,
            );
            let segment = Segment {
                path: folder.join(&name),
                bytes: about.st_size.unsigned_abs(),
                closed: SystemTime::UNIX_EPOCH + since_epoch,
            };
            found.push((segment, name));
        }
    }
    found.sort_by(|(one, _), (other, _)| (one.closed, &one.path).cmp(&(other.closed, &other.path)));
    Ok(found)
}

/// Deletes the oldest whole segments of the folder, of whatever table, until all
/// of them together are within `bytes`. Other files and parts are never touched.
///
/// # Errors
/// The folder cannot be read or a segment not deleted.
pub fn keep(folder: &Folder, bytes: u64) -> Result<Vec<Segment>, Error> {
    let found = told(folder)?;
    let mut held: u64 = found.iter().map(|(segment, _)| segment.bytes).sum();
    let mut deleted = Vec::new();
    for (segment, name) in found {
        if held <= bytes {
            break;
        }
        folder.remove(&name)?;
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
