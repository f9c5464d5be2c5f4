//! One test at a time: a file in the user's runtime folder that whoever tests holds, and that says who it is.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

const NAME: &str = "tcpknee-hosts.lock";
/// Of what stands in the file.
const MOST_BYTES: u64 = 1_000;
/// Of the name of who tests.
const WHO_CHARACTERS: usize = 200;

/// Who tests with this host, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub who: String,
    pub since_unix_s: u64,
}

impl Holder {
    /// Somebody who has not yet said who it is.
    pub fn unknown() -> Holder {
        Holder {
            who: "somebody".into(),
            since_unix_s: 0,
        }
    }
}

/// It is given back when this is dropped, and when the process ends in whatever way.
#[derive(Debug)]
pub struct Lock {
    _file: Flock<File>,
}

/// Why there is none.
#[derive(Debug)]
pub enum NoLock {
    /// Somebody else tests; `None`: who has only just begun.
    Held(Option<Holder>),
    /// In words.
    Cannot(String),
}

impl Lock {
    /// # Errors
    /// Somebody else has it, or there is no folder that only this user may write.
    pub fn take(who: &str) -> Result<Lock, NoLock> {
        let folder = folder().map_err(NoLock::Cannot)?;
        Lock::take_in(&folder, who)
    }

    fn take_in(folder: &Path, who: &str) -> Result<Lock, NoLock> {
        let path = folder.join(NAME);
        let cannot = |error: io::Error| NoLock::Cannot(format!("{}: {error}.", path.display()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path)
            .map_err(cannot)?;
        let mut file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((file, nix::Error::EWOULDBLOCK)) => return Err(NoLock::Held(holder(file))),
            Err((_, error)) => return Err(cannot(error.into())),
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let holder = Holder {
            who: who.chars().take(WHO_CHARACTERS).collect(),
            since_unix_s: since.map_or(0, |since| since.as_secs()),
        };
        let text = serde_json::to_string(&holder).expect("it has no maps");
        // On a full disk it is held all the same.
        let _ = (file.set_len(0)).and_then(|()| file.rewind());
        let _ = file.write_all(text.as_bytes());
        Ok(Lock { _file: file })
    }
}

fn holder(file: File) -> Option<Holder> {
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// A folder that only this user may write: that of his session, or one of ours below /tmp.
///
/// # Errors
/// Somebody else's stands in its place, or it cannot be made; in words.
pub fn folder() -> Result<PathBuf, String> {
    if let Some(folder) = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)
        && folder.is_absolute()
        && is_ours(&folder)
    {
        return Ok(folder);
    }
    own(&env::temp_dir())
}

fn own(below: &Path) -> Result<PathBuf, String> {
    let folder = below.join(format!("tcpknee-{}", geteuid()));
    let shown = folder.display();
    match DirBuilder::new().mode(0o700).create(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(format!("{shown}: cannot be made: {error}.")),
    }
    match is_ours(&folder) {
        true => Ok(folder),
        false => Err(format!(
            "{shown}: is another user's, or others may write in it; nothing was put there. Remove it, or have \
             XDG_RUNTIME_DIR name a folder of your own there."
        )),
    }
}

fn is_ours(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|about| {
        about.is_dir() && about.uid() == geteuid().as_raw() && about.mode() & 0o077 == 0
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("knee-lock-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        folder
    }

    #[test]
    fn a_second_one_is_told_who_holds_it_until_it_is_given_back() {
        let folder = folder("twice");
        let first = Lock::take_in(&folder, "ann@desk").unwrap();
        let Err(NoLock::Held(Some(holder))) = Lock::take_in(&folder, "bob@desk") else {
            panic!("there are two");
        };
        assert_eq!(holder.who, "ann@desk");
        assert!(holder.since_unix_s > 1_700_000_000);
        drop(first);
        assert!(Lock::take_in(&folder, "bob@desk").is_ok());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_others_may_write_or_that_leads_elsewhere_is_refused() {
        let below = folder("others");
        let made = own(&below).unwrap();
        assert_eq!(own(&below), Ok(made.clone()));
        fs::set_permissions(&made, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(own(&below).unwrap_err().contains("another user's"));
        fs::remove_dir(&made).unwrap();
        symlink(&below, &made).unwrap();
        assert!(own(&below).unwrap_err().contains("another user's"));
        fs::remove_dir_all(below).unwrap();
    }
}
