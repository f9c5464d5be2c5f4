//! Folders that tcpknee writes into. What it writes anywhere goes through here.
//!
//! A folder is held by its descriptor and every name is taken within it, so that
//! another path in its place changes nothing. A new file is new: a link, a FIFO
//! or another's file at its name is refused, never followed. Names of temporary
//! files cannot be guessed.
//!
//! Root makes files of mode 0600 and folders of 0700, and refuses a folder that
//! another user owns, because its owner can put anything at any name. The user
//! who called `sudo` counts as root here: who may run it as root needs no trick.

mod error;
mod lock;
mod trust;
mod walk;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchownat, geteuid, unlinkat};

pub use self::error::Error;
pub use self::lock::{Lock, locked};
pub use self::trust::{allow_foreign, check_readable, open_readable};

use self::error::{kind, not_ours};
use self::trust::trusted;
use self::walk::{Way, directory_at};

/// A temporary file is `.NAME.` and so many hexadecimal digits and `.tmp`.
const RANDOM_DIGITS: usize = 16;

/// Who may read what is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Root's files are root's; others' are as their umask says.
    Own,
    /// What holds nothing of this host, such as a dashboard: as the umask says.
    All,
}

impl Readers {
    fn file_mode(self) -> Mode {
        match self {
            Readers::Own if geteuid().is_root() => Mode::from_bits_truncate(0o600),
            _ => Mode::from_bits_truncate(0o666),
        }
    }
}

/// A folder that is held.
#[derive(Clone, Debug)]
pub struct Folder {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    /// Those that were made for it, the outermost first.
    made: Vec<Arc<OwnedFd>>,
}

impl Folder {
    /// The folder, which is made with those above it if need be.
    ///
    /// # Errors
    /// It cannot be made or is no folder, or it is another user's and we are root.
    pub fn make(path: &Path) -> Result<Folder, Error> {
        Folder::walk(path, true, Way::Any)
    }

    /// The same for what root obeys later: each folder on the way is root's, and nobody else may write it, whatever
    /// else is allowed.
    ///
    /// # Errors
    /// As of [`make`](Folder::make), or a folder on the way is another's.
    pub fn make_of_root(path: &Path) -> Result<Folder, Error> {
        let whole = std::path::absolute(path).map_err(Error::io(path, "find"))?;
        Folder::walk(&whole, true, Way::Roots)
    }

    /// The folder, which is there.
    ///
    /// # Errors
    /// As of [`make`](Folder::make).
    pub fn open(path: &Path) -> Result<Folder, Error> {
        Folder::walk(path, false, Way::Any)
    }

    /// The folder of a file, and the file's name in it.
    ///
    /// # Errors
    /// As of [`open`](Folder::open), or the path names no file.
    pub fn of(file: &Path) -> Result<(Folder, String), Error> {
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Error::io(file, "write")(Errno::EINVAL))?;
        let parent = file.parent().expect("what has a name has a parent");
        Ok((Folder::open(parent)?, name.to_owned()))
    }

    fn held(fd: Arc<OwnedFd>, path: PathBuf, made: Vec<Arc<OwnedFd>>) -> Result<Folder, Error> {
        let about = fstat(&fd).map_err(Error::io(&path, "look at"))?;
        if !trusted(about.st_uid) {
            return Err(Error::Foreign {
                path,
                owner: about.st_uid,
            });
        }
        Ok(Folder { fd, path, made })
    }

    /// The path that it was asked for by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Was it made for this?
    pub fn made(&self) -> bool {
        (self.made.last()).is_some_and(|last| Arc::ptr_eq(last, &self.fd))
    }

    /// Whose it is.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn owner(&self) -> Result<u32, Error> {
        let about = fstat(&self.fd).map_err(Error::io(&self.path, "look at"))?;
        Ok(about.st_uid)
    }

    /// The path of a name in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A folder in it, which is made if need be.
    ///
    /// # Errors
    /// As of [`make`](Folder::make); a link is refused as well.
    pub fn folder(&self, name: &str) -> Result<Folder, Error> {
        let path = self.join(name);
        let made = match mkdirat(&self.fd, name, folder_mode()) {
            Err(error) if error != Errno::EEXIST => {
                return Err(Error::io(&path, "make the folder")(error));
            }
            outcome => outcome.is_ok(),
        };
        let fd = directory_at(&self.fd, OsStr::new(name))
            .map_err(Error::io(&path, "open the folder"))?;
        let fd = Arc::new(fd);
        let made = made.then(|| Arc::clone(&fd)).into_iter().collect();
        Folder::held(fd, path, made)
    }

    /// A folder in it that is there; `None`: none is. A link is none.
    ///
    /// # Errors
    /// It cannot be opened, or it is another user's and we are root.
    pub fn open_folder(&self, name: &str) -> Result<Option<Folder>, Error> {
        let path = self.join(name);
        match directory_at(&self.fd, OsStr::new(name)) {
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
            found => {
                let fd = found.map_err(Error::io(&path, "open the folder"))?;
                Folder::held(Arc::new(fd), path, Vec::new()).map(Some)
            }
        }
    }

    /// A new file, to be read and written.
    ///
    /// # Errors
    /// The name is taken, or the file cannot be made.
    pub fn create(&self, name: &str, readers: Readers) -> Result<File, Error> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW;
        let file = openat(
            &self.fd,
            name,
            flags | OFlag::O_CLOEXEC,
            readers.file_mode(),
        );
        file.map(File::from)
            .map_err(Error::io(&self.join(name), "create"))
    }

    /// A file that was written here before, to be written on; `None`: not there.
    /// The owner must be us or the folder's, and no other name may lead to it.
    ///
    /// # Errors
    /// It is something else, or cannot be opened.
    pub fn reopen(&self, name: &str) -> Result<Option<File>, Error> {
        let path = self.join(name);
        let cannot = |error: Errno| Error::io(&path, "open")(error);
        // Opening a device or a FIFO may already do something.
        match fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(Errno::ENOENT) => return Ok(None),
            Err(error) => return Err(cannot(error)),
            Ok(about) => self.check_ours(&path, &about)?,
        }
        let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let fd = match openat(&self.fd, name, flags, Mode::empty()) {
            Err(Errno::ENOENT) => return Ok(None),
            found => found.map_err(cannot)?,
        };
        self.check_ours(&path, &fstat(&fd).map_err(cannot)?)?;
        Ok(Some(File::from(fd)))
    }

    /// A file that nobody but us can have written, to be read; `None`: not there.
    ///
    /// # Errors
    /// As of [`reopen`](Folder::reopen); another user owns it, or others may write it.
    pub fn open_own(&self, name: &str) -> Result<Option<File>, Error> {
        let Some(file) = self.reopen(name)? else {
            return Ok(None);
        };
        let path = self.join(name);
        let about = fstat(&file).map_err(Error::io(&path, "look at"))?;
        let others = (Mode::S_IWGRP | Mode::S_IWOTH).bits();
        let kind = if about.st_uid != geteuid().as_raw() {
            "a file of another user"
        } else if about.st_mode & others != 0 {
            "a file that other users may write"
        } else {
            return Ok(Some(file));
        };
        Err(Error::NotOurs { path, kind })
    }

    fn check_ours(&self, path: &Path, about: &FileStat) -> Result<(), Error> {
        if kind(about) != SFlag::S_IFREG {
            return Err(not_ours(path, about));
        }
        let not_ours = |kind| Error::NotOurs {
            path: path.into(),
            kind,
        };
        if about.st_nlink > 1 {
            return Err(not_ours("a file of several names (hard links)"));
        }
        if about.st_uid != geteuid().as_raw() && about.st_uid != self.owner()? {
            return Err(not_ours("a file of another user"));
        }
        Ok(())
    }

    /// A new file of a name that nobody can guess, for what [`replace`](Folder::replace)
    /// puts at `name`.
    ///
    /// # Errors
    /// As of [`create`](Folder::create), or at the name is something else than a file.
    pub fn temporary(&self, name: &str, readers: Readers) -> Result<(String, File), Error> {
        self.check_replaceable(name)?;
        self.create_between(&format!(".{name}."), ".tmp", readers)
    }

    /// A new file whose name nobody can guess between the two.
    ///
    /// # Errors
    /// As of [`create`](Folder::create).
    pub fn create_between(
        &self,
        beginning: &str,
        ending: &str,
        readers: Readers,
    ) -> Result<(String, File), Error> {
        let random = getrandom::u64().map_err(|error| {
            Error::io(&self.path, "draw a random name")(io::Error::other(error))
        })?;
        let name = format!("{beginning}{random:0RANDOM_DIGITS$x}{ending}");
        let file = self.create(&name, readers)?;
        Ok((name, file))
    }

    /// Writes a file, in place of what file was there, so that nobody ever sees
    /// half of it.
    ///
    /// # Errors
    /// As of [`temporary`](Folder::temporary), or it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let (temporary, mut file) = self.temporary(name, Readers::Own)?;
        file.write_all(content)
            .map_err(Error::io(&self.join(name), "write"))
            .and_then(|()| self.replace(&temporary, name))
            .inspect_err(|_| {
                let _ = self.remove(&temporary);
            })
    }

    /// Puts the file `from` at the name `to`, in place of what file was there.
    ///
    /// # Errors
    /// There is something else than a file, or the kernel refuses.
    pub fn replace(&self, from: &str, to: &str) -> Result<(), Error> {
        self.move_into(from, self, to)
    }

    /// The same from one folder to another.
    ///
    /// # Errors
    /// As of [`replace`](Folder::replace).
    pub fn move_into(&self, from: &str, other: &Folder, to: &str) -> Result<(), Error> {
        other.check_replaceable(to)?;
        renameat(&self.fd, from, &other.fd, to)
            .map_err(Error::io(&other.join(to), "move a file to"))
    }

    /// A link is replaced itself, and so would be a device: `--out /dev/stdout`.
    fn check_replaceable(&self, name: &str) -> Result<(), Error> {
        match fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(about) if kind(&about) != SFlag::S_IFREG => Err(not_ours(&self.join(name), &about)),
            _ => Ok(()),
        }
    }

    /// Leaves the folders that were made for it to a user.
    ///
    /// # Errors
    /// The file system has one owner for all, or we are not root.
    pub fn give_made(&self, owner: u32, group: u32) -> Result<(), Error> {
        let mut made = self.made.iter();
        made.try_for_each(|fd| give(fd, owner, group).map_err(Error::io(&self.path, "leave")))
    }

    /// Leaves a file of ours in it to a user: a regular one, which no other name leads to.
    ///
    /// # Errors
    /// As of [`give_made`](Folder::give_made), or it is not there.
    pub fn give(&self, name: &str, owner: u32, group: u32) -> Result<(), Error> {
        let cannot = |error: Errno| Error::io(&self.join(name), "leave")(error);
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).map_err(cannot)?;
        let about = fstat(&fd).map_err(cannot)?;
        let is_ours = kind(&about) == SFlag::S_IFREG
            && about.st_nlink == 1
            && about.st_uid == geteuid().as_raw();
        match is_ours {
            true => give(&fd, owner, group).map_err(cannot),
            false => Ok(()),
        }
    }

    /// Removes a file, or a link itself. It may be gone already.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        match unlinkat(&self.fd, name, UnlinkatFlags::NoRemoveDir) {
            Err(Errno::ENOENT) | Ok(()) => Ok(()),
            Err(error) => Err(Error::io(&self.join(name), "remove")(error)),
        }
    }

    /// Removes a folder in it that holds nothing.
    ///
    /// # Errors
    /// It holds something, or is no folder.
    pub fn remove_empty(&self, name: &str) -> Result<(), Error> {
        unlinkat(&self.fd, name, UnlinkatFlags::RemoveDir)
            .map_err(Error::io(&self.join(name), "remove"))
    }

    /// Removes the files whose names are ours. What else it holds stays: it may be anybody's.
    ///
    /// # Errors
    /// The folder cannot be read, or a file not removed.
    pub fn remove_those(&self, is_ours: impl Fn(&str) -> bool) -> Result<(), Error> {
        let names = self.names()?;
        let mut ours = names.iter().filter(|name| is_ours(name));
        ours.try_for_each(|name| self.remove(name))
    }

    /// Names of what it holds, in their order. What is no UTF-8 is none of ours.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let cannot = |error: Errno| Error::io(&self.path, "read the folder")(error);
        let mut found = Vec::new();
        for entry in self.listing().map_err(cannot)?.iter() {
            let entry = entry.map_err(cannot)?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => found.push(name.to_owned()),
            }
        }
        found.sort();
        Ok(found)
    }

    fn listing(&self) -> nix::Result<Dir> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Dir::openat(&self.fd, ".", flags, Mode::empty())
    }

    /// Of what is at the name; `None`: nothing, or it cannot be looked at.
    pub fn about(&self, name: &str) -> Option<FileStat> {
        fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()
    }

    /// Removes what killed writers left of [`temporary`](Folder::temporary) files.
    /// Only who locked the folder may.
    ///
    /// # Errors
    /// One cannot be removed.
    pub fn sweep(&self) -> Result<(), Error> {
        self.remove_those(is_temporary)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn is_temporary(name: &str) -> bool {
    let random = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".tmp"))
        .and_then(|name| name.rsplit_once('.'));
    random.is_some_and(|(_, digits)| {
        digits.len() == RANDOM_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn give(fd: &OwnedFd, owner: u32, group: u32) -> nix::Result<()> {
    let (owner, group) = (Uid::from_raw(owner), Gid::from_raw(group));
    fchownat(fd, "", Some(owner), Some(group), AtFlags::AT_EMPTY_PATH)
}

fn folder_mode() -> Mode {
    Mode::from_bits_truncate(if geteuid().is_root() { 0o700 } else { 0o777 })
}
