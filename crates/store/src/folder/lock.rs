//! Folders and files that one writer has for itself.

use std::fs::File;
use std::io;

use nix::fcntl::{Flock, FlockArg, OFlag, openat};
use nix::sys::stat::Mode;

use super::{Error, Folder, Readers};

/// Keeps others out for as long as it lives.
pub type Lock = Flock<File>;

impl Folder {
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
}

/// A file's lock; `None`: another holds it.
pub fn locked(file: File) -> Option<Lock> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()
}
