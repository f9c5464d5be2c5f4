//! Why nothing was written or read.

use std::io;
use std::path::{Path, PathBuf};

use nix::sys::stat::{FileStat, SFlag};

/// Why nothing was written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: belongs to another user (uid {owner}), who can put anything in a file's place; expected a folder of root. Choose another folder, or say --allow-foreign-folder.", path = .path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("{path}: goes through the symbolic link \"{link}\" of another user (uid {owner}); expected links of root. Give the path that it leads to, or say --allow-foreign-folder.", path = .path.display(), link = .link.display())]
    ForeignLink {
        path: PathBuf,
        link: PathBuf,
        owner: u32,
    },
    #[error("{path}: others can put anything in its place, as {at} belongs to uid {owner} or may be written by others; expected folders of root alone, because root obeys what lies there. Give them back to root, or name another folder.", path = .path.display(), at = .at.display())]
    NotRoots {
        path: PathBuf,
        at: PathBuf,
        owner: u32,
    },
    #[error("{path}: is {kind}; expected a regular file of our own, or a free name. Move it away.", path = .path.display())]
    NotOurs { path: PathBuf, kind: &'static str },
    #[error("{path}: is {kind}; expected a regular file. Move it away.", path = .path.display())]
    NoFile { path: PathBuf, kind: &'static str },
    #[error("{path}: cannot {what}: {source}", path = .path.display())]
    Io {
        path: PathBuf,
        what: &'static str,
        source: io::Error,
    },
}

impl Error {
    pub(super) fn io<E: Into<io::Error>>(
        path: &Path,
        what: &'static str,
    ) -> impl FnOnce(E) -> Error {
        move |source| Error::Io {
            path: path.into(),
            what,
            source: source.into(),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match error {
            Error::Io { source, .. } => source,
            refused => io::Error::other(refused),
        }
    }
}

pub(super) fn kind(about: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT
}

pub(super) fn not_ours(path: &Path, about: &FileStat) -> Error {
    let (path, kind) = (path.into(), told(about));
    Error::NotOurs { path, kind }
}

pub(super) fn no_file(path: &Path, about: &FileStat) -> Error {
    let (path, kind) = (path.into(), told(about));
    Error::NoFile { path, kind }
}

fn told(about: &FileStat) -> &'static str {
    match kind(about) {
        SFlag::S_IFLNK => "a symbolic link",
        SFlag::S_IFIFO => "a FIFO",
        SFlag::S_IFDIR => "a folder",
        SFlag::S_IFSOCK => "a socket",
        _ => "a device",
    }
}
