//! Whose folders, links and files are taken.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, open};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::geteuid;

use super::error::{Error, kind, no_file};

static ALLOW_FOREIGN: AtomicBool = AtomicBool::new(false);

/// From now on, root writes into folders of other users as well.
pub fn allow_foreign() {
    ALLOW_FOREIGN.store(true, Ordering::Relaxed);
}

/// Does root trust who owns that? Everybody else goes by what the kernel permits.
pub(super) fn trusted(owner: u32) -> bool {
    !geteuid().is_root()
        || owner == 0
        || sudo_uid() == Some(owner)
        || ALLOW_FOREIGN.load(Ordering::Relaxed)
}

/// Can nobody but root rename what root has in this folder? Everybody else goes by what the kernel permits.
pub(super) fn roots_alone(about: &FileStat) -> bool {
    let mode = Mode::from_bits_truncate(about.st_mode);
    // A link's mode says nothing.
    let is_open = kind(about) != SFlag::S_IFLNK
        && mode.intersects(Mode::S_IWGRP | Mode::S_IWOTH)
        && !mode.contains(Mode::S_ISVTX);
    !geteuid().is_root() || about.st_uid == 0 && !is_open
}

fn sudo_uid() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

/// What a reader may follow: a file, and a link only of somebody that it trusts.
///
/// # Errors
/// A link of somebody else, something that is no file, or not readable.
pub fn check_readable(path: &Path) -> Result<(), Error> {
    let look = |flags| fstatat(AT_FDCWD, path, flags).map_err(Error::io(path, "read"));
    let mut about = look(AtFlags::AT_SYMLINK_NOFOLLOW)?;
    if kind(&about) == SFlag::S_IFLNK {
        if !trusted(about.st_uid) {
            return Err(Error::ForeignLink {
                path: path.into(),
                link: path.into(),
                owner: about.st_uid,
            });
        }
        about = look(AtFlags::empty())?;
    }
    match kind(&about) {
        SFlag::S_IFREG => Ok(()),
        _ => Err(no_file(path, &about)),
    }
}

/// A file to be read, which may be anybody's: nobody waits for a FIFO's writer.
///
/// # Errors
/// As of [`check_readable`], or it cannot be opened.
pub fn open_readable(path: &Path) -> Result<File, Error> {
    // Opening a device may already do something.
    check_readable(path)?;
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let fd = open(path, flags, Mode::empty()).map_err(Error::io(path, "open"))?;
    // Another may have come to its place meanwhile.
    let about = fstat(&fd).map_err(Error::io(path, "look at"))?;
    match kind(&about) {
        SFlag::S_IFREG => Ok(File::from(fd)),
        _ => Err(no_file(path, &about)),
    }
}
