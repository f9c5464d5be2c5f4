//! Folders that Kneepoint writes into. What it writes anywhere goes through here.
//!
//! A folder is held by its descriptor and every name is taken within it, so that
//! another path in its place changes nothing. A new file is new: a link, a FIFO
//! or another's file at its name is refused, never followed. Names of temporary
//! files cannot be guessed.
//!
//! Root makes files of mode 0600 and folders of 0700, and refuses a folder that
//! another user owns, because its owner can put anything at any name. The user
//! who called `sudo` counts as root here: who may run it as root needs no trick.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, open, openat, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

/// As many as the kernel follows (path_resolution(7)).
const LINKS_MAX: usize = 40;
/// A temporary file is `.NAME.` and so many hexadecimal digits and `.tmp`.
const RANDOM_DIGITS: usize = 16;

static ALLOW_FOREIGN: AtomicBool = AtomicBool::new(false);

/// From now on, root writes into folders of other users as well.
pub fn allow_foreign() {
    ALLOW_FOREIGN.store(true, Ordering::Relaxed);
}

/// Why nothing was written.
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
    #[error("{path}: is {kind}; expected a regular file of our own, or a free name. Move it away.", path = .path.display())]
    NotOurs { path: PathBuf, kind: &'static str },
    #[error("{path}: cannot {what}: {source}", path = .path.display())]
    Io {
        path: PathBuf,
        what: &'static str,
        source: io::Error,
    },
}

impl Error {
    fn io<E: Into<io::Error>>(path: &Path, what: &'static str) -> impl FnOnce(E) -> Error {
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

/// Does root trust who owns that? Everybody else goes by what the kernel permits.
fn trusted(owner: u32) -> bool {
    !geteuid().is_root()
        || owner == 0
        || sudo_uid() == Some(owner)
        || ALLOW_FOREIGN.load(Ordering::Relaxed)
}

fn sudo_uid() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

/// What a reader may follow: a file, and a link only of somebody that it trusts.
///
/// # Errors
/// A link of somebody else, something that is no file, or not readable.
pub fn check_readable(path: &Path) -> Result<(), Error> {
    let look = |flags| {
        nix::sys::stat::fstatat(nix::fcntl::AT_FDCWD, path, flags).map_err(Error::io(path, "read"))
    };
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
        _ => Err(not_ours(path, &about)),
    }
}

/// Keeps others out for as long as it lives.
pub type Lock = Flock<File>;

/// A folder that is held.
#[derive(Clone, Debug)]
pub struct Folder {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    made: bool,
}

impl Folder {
    /// The folder, which is made with those above it if need be.
    ///
    /// # Errors
    /// It cannot be made or is no folder, or it is another user's and we are root.
    pub fn make(path: &Path) -> Result<Folder, Error> {
        Folder::walk(path, true)
    }

    /// The folder, which is there.
    ///
    /// # Errors
    /// As of [`make`](Folder::make).
    pub fn open(path: &Path) -> Result<Folder, Error> {
        Folder::walk(path, false)
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

    fn walk(path: &Path, make: bool) -> Result<Folder, Error> {
        let start = if path.is_absolute() { "/" } else { "." };
        let cannot = |error: Errno| Error::io(path, "open the folder")(error);
        let mut fd =
            open(start, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(cannot)?;
        let mut rest: VecDeque<OsString> = names(path);
        let (mut links, mut made) = (0, false);
        while let Some(name) = rest.pop_front() {
            if name == "/" {
                fd = open("/", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(cannot)?;
                continue;
            }
            let mut next = directory_at(&fd, &name[..]);
            if matches!(next, Err(Errno::ENOENT)) && make {
                // Another may make it at the same moment.
                match mkdirat(&fd, &name[..], folder_mode()) {
                    Err(error) if error != Errno::EEXIST => {
                        return Err(Error::io(path, "make the folder")(error));
                    }
                    outcome => made = outcome.is_ok() && rest.is_empty(),
                }
                next = directory_at(&fd, &name[..]);
            }
            match next {
                Ok(next) => {
                    fd = next;
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

    fn held(fd: OwnedFd, path: PathBuf, made: bool) -> Result<Folder, Error> {
        let about = fstat(&fd).map_err(Error::io(&path, "look at"))?;
        if !trusted(about.st_uid) {
            return Err(Error::Foreign {
                path,
                owner: about.st_uid,
            });
        }
        let fd = Arc::new(fd);
        Ok(Folder { fd, path, made })
    }

    /// The path that it was asked for by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Was it made for this?
    pub fn made(&self) -> bool {
        self.made
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
        let fd = self
            .within(name)
            .map_err(Error::io(&path, "open the folder"))?;
        Folder::held(fd, path, made)
    }

    fn within(&self, name: &str) -> nix::Result<OwnedFd> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        openat(&self.fd, name, flags, Mode::empty())
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
        let owner = fstat(&self.fd)
            .map_err(Error::io(&self.path, "look at"))?
            .st_uid;
        if about.st_uid != geteuid().as_raw() && about.st_uid != owner {
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

    /// Removes a folder in it with all that it holds. It may be gone already.
    ///
    /// # Errors
    /// Something of it cannot be removed, or it is no folder.
    pub fn remove_folder(&self, name: &str) -> Result<(), Error> {
        let path = self.join(name);
        let fd = match directory_at(&self.fd, OsStr::new(name)) {
            Err(Errno::ENOENT) => return Ok(()),
            found => found.map_err(Error::io(&path, "open the folder"))?,
        };
        Folder::held(fd, path.clone(), false)?.clear()?;
        self.remove_empty(name)
    }

    /// Removes a folder in it that holds nothing.
    ///
    /// # Errors
    /// It holds something, or is no folder.
    pub fn remove_empty(&self, name: &str) -> Result<(), Error> {
        unlinkat(&self.fd, name, UnlinkatFlags::RemoveDir)
            .map_err(Error::io(&self.join(name), "remove"))
    }

    /// Removes all that it holds.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub fn clear(&self) -> Result<(), Error> {
        for name in self.names()? {
            let is_folder = self
                .about(&name)
                .is_some_and(|about| kind(&about) == SFlag::S_IFDIR);
            if is_folder {
                self.remove_folder(&name)?;
            } else {
                self.remove(&name)?;
            }
        }
        Ok(())
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

    /// Keeps others out for as long as the answer lives; `None`: another does.
    ///
    /// # Errors
    /// The file `name`, which is made if need be, is none of ours.
    pub fn lock(&self, name: &str) -> Result<Option<Lock>, Error> {
        let file = loop {
            if let Some(file) = self.reopen(name)? {
                break file;
            }
            match self.create(name, Readers::Own) {
                // Another was quicker.
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
                made => break made?,
            }
        };
        Ok(locked(file))
    }

    /// The same by the folder itself.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn lock_itself(&self) -> Result<Option<Lock>, Error> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let fd = openat(&self.fd, ".", flags, Mode::empty())
            .map_err(Error::io(&self.path, "open the folder"))?;
        Ok(locked(File::from(fd)))
    }

    /// Removes what killed writers left of [`temporary`](Folder::temporary) files.
    /// Only who locked the folder may.
    ///
    /// # Errors
    /// One cannot be removed.
    pub fn sweep(&self) -> Result<(), Error> {
        let names = self.names()?;
        names
            .iter()
            .filter(|name| is_temporary(name))
            .try_for_each(|name| self.remove(name))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A file's lock; `None`: another holds it.
pub fn locked(file: File) -> Option<Lock> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}

/// The directory of that name. A link is none; what is mounted on demand is.
fn directory_at(fd: &OwnedFd, name: &OsStr) -> nix::Result<OwnedFd> {
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

fn is_temporary(name: &str) -> bool {
    let random = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(".tmp"))
        .and_then(|name| name.rsplit_once('.'));
    random.is_some_and(|(_, digits)| {
        digits.len() == RANDOM_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn folder_mode() -> Mode {
    Mode::from_bits_truncate(if geteuid().is_root() { 0o700 } else { 0o777 })
}

fn kind(about: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT
}

fn not_ours(path: &Path, about: &FileStat) -> Error {
    let kind = match kind(about) {
        SFlag::S_IFLNK => "a symbolic link",
        SFlag::S_IFIFO => "a FIFO",
        SFlag::S_IFDIR => "a folder",
        SFlag::S_IFSOCK => "a socket",
        _ => "a device",
    };
    Error::NotOurs {
        path: path.into(),
        kind,
    }
}
