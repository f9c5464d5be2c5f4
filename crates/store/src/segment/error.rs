//! What can go wrong with segments.

use std::io;
use std::path::{Path, PathBuf};

/// What, where, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: no space left on the device; what was recorded so far is in {kept}. Free some space; --keep bounds a recording.", path = .path.display(), kept = .kept.as_ref().map_or_else(|| path.display().to_string(), |kept| kept.display().to_string()))]
    DiskFull {
        path: PathBuf,
        kept: Option<PathBuf>,
    },
    #[error("{path}: cannot {what}: {source}", path = .path.display())]
    Io {
        path: PathBuf,
        what: &'static str,
        source: io::Error,
    },
    #[error(transparent)]
    Folder(#[from] crate::folder::Error),
    #[error("{path}: another import writes into this folder. Wait for its end, or choose another folder.", path = .path.display())]
    Busy { path: PathBuf },
    #[error("{path}: cannot write Parquet: {reason}", path = .path.display())]
    Parquet { path: PathBuf, reason: String },
}

impl Error {
    pub(super) fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io {
            path: path.into(),
            what,
            source,
        }
    }
}
