//! The way to a folder: each step of a path is looked at before it is taken.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, mkdirat};

use super::error::{Error, kind};
use super::trust::{roots_alone, trusted};
use super::{Folder, folder_mode};

/// What is asked of the folders on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// That links are of whom we trust.
    Any,
    /// That nobody but root can put another one in a folder's place.
    Roots,
}

/// As many as the kernel follows (path_resolution(7)).
const LINKS_MAX: usize = 40;

impl Folder {
    pub(super) fn walk(path: &Path, make: bool, way: Way) -> Result<Folder, Error> {
        let start = if path.is_absolute() { "/" } else { "." };
        let cannot = |error: Errno| Error::io(path, "open the folder")(error);
        let at = |path: &str| open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty());
        let mut fd = Arc::new(at(start).map_err(cannot)?);
        let mut rest: VecDeque<OsString> = names(path);
        let (mut links, mut made) = (0, Vec::new());
        let mut here = PathBuf::from(start);
        check(path, &fd, &here, way)?;
        while let Some(name) = rest.pop_front() {
            if name == "/" {
                fd = Arc::new(at("/").map_err(cannot)?);
                here = "/".into();
                continue;
            }
            let (mut next, mut is_made) = (directory_at(&fd, &name[..]), false);
            if matches!(next, Err(Errno::ENOENT)) && make {
                // Another may make it at the same moment.
                match mkdirat(&fd, &name[..], folder_mode()) {
                    Err(error) if error != Errno::EEXIST => {
                        return Err(Error::io(path, "make the folder")(error));
                    }
                    outcome => is_made = outcome.is_ok(),
                }
                next = directory_at(&fd, &name[..]);
            }
            match next {
                Ok(next) => {
                    fd = Arc::new(next);
                    made.extend(is_made.then(|| Arc::clone(&fd)));
                    here.push(&name);
                    check(path, &fd, &here, way)?;
                    continue;
                }
                // It may be a link.
                Err(Errno::ENOTDIR) => {}
                Err(error) => return Err(cannot(error)),
            }
            let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let next = openat(&fd, &name[..], flags, Mode::empty()).map_err(cannot)?;
            let about = fstat(&next).map_err(cannot)?;
            if kind(&about) != SFlag::S_IFLNK {
                return Err(cannot(Errno::ENOTDIR));
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(cannot(Errno::ELOOP));
            }
            if way == Way::Roots && !roots_alone(&about) {
                return Err(not_roots(path, &here.join(&name), &about));
            }
            if !trusted(about.st_uid) {
                return Err(Error::ForeignLink {
                    path: path.into(),
                    link: name.into(),
                    owner: about.st_uid,
                });
            }
            let target = readlinkat(&next, "").map_err(cannot)?;
            for name in names(Path::new(&target)).into_iter().rev() {
                rest.push_front(name);
            }
        }
        Folder::held(fd, path.into(), made)
    }
}

/// Is the folder `at`, on the way to `path`, as it has to be?
fn check(path: &Path, fd: &OwnedFd, at: &Path, way: Way) -> Result<(), Error> {
    let about = fstat(fd).map_err(Error::io(path, "look at"))?;
    match way == Way::Any || roots_alone(&about) {
        true => Ok(()),
        false => Err(not_roots(path, at, &about)),
    }
}

fn not_roots(path: &Path, at: &Path, about: &FileStat) -> Error {
    Error::NotRoots {
        path: path.into(),
        at: at.into(),
        owner: about.st_uid,
    }
}

/// The directory of that name. A link is none; what is mounted on demand is.
pub(super) fn directory_at(fd: &OwnedFd, name: &OsStr) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(fd, name, flags, Mode::empty())
}

/// The steps of a path.
fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| part.as_os_str().to_owned())
        .collect()
}
