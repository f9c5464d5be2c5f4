//! What is going to be changed, on the host's own disk of memory: a file of root's for each setting that is held, which
//! goes once the setting is as it was. The file's lock is who holds the setting: the process that makes changes and its
//! watchdog. Where both were killed at once, the next one that holds anything finds a file that nobody locks, and puts
//! back what stands in it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::geteuid;

use super::change::Change;

/// Empty after a boot, as settings are.
const FOLDER: &str = "/run/tcpknee-hosts";
/// A number that a network namespace has until the next boot. Source: Linux 6.18, include/uapi/asm-generic/socket.h.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// A setting that this process and its watchdog hold.
#[derive(Debug)]
pub struct Entry {
    pub target: String,
    path: PathBuf,
    file: Flock<File>,
}

impl Entry {
    /// # Errors
    /// Another test holds it, or there is no folder that only root may write; in words.
    pub fn take(target: &str) -> Result<Entry, String> {
        Entry::take_in(&folder(Path::new(FOLDER))?, target)
    }

    fn take_in(folder: &Path, target: &str) -> Result<Entry, String> {
        let path = path_in(folder, target);
        loop {
            let cannot = |error: io::Error| format!("{}: {error}.", path.display());
            let taken = open(&path, true).map_err(cannot)?;
            let file = taken
                .ok_or_else(|| format!("{target}: another test holds it; wait for its end."))?;
            // Who held it until now may have taken it away just then.
            if file.metadata().map_err(cannot)?.nlink() > 0 {
                let target = target.to_owned();
                return Ok(Entry { target, path, file });
            }
        }
    }

    /// Takes down how the change stands: what is read is the last whole line.
    ///
    /// # Errors
    /// It may not be there after a crash.
    pub fn note(&mut self, change: &Change) -> io::Result<()> {
        let line = serde_json::to_string(change)?;
        writeln!(&*self.file, "{line}")?;
        self.file.sync_all()
    }
}

impl Drop for Entry {
    /// Nothing was changed, so that nothing is to be put back.
    fn drop(&mut self) {
        if (self.file.metadata()).is_ok_and(|about| about.len() == 0 && about.nlink() > 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The setting is as it was, or somebody else's.
pub fn forget(target: &str) {
    let _ = fs::remove_file(path_in(Path::new(FOLDER), target));
}

/// Puts back what those left who were killed with their watchdogs.
///
/// # Errors
/// What could not be put back, in words.
pub fn put_back_what_was_left() -> Result<(), String> {
    put_back_in(&folder(Path::new(FOLDER))?)
}

fn put_back_in(folder: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("{}: {error}.", folder.display());
    let begin = path_in(folder, "");
    for entry in fs::read_dir(folder).map_err(cannot)?.flatten() {
        let path = entry.path();
        let is_ours = path
            .to_string_lossy()
            .starts_with(&*begin.to_string_lossy());
        let Some(mut file) = open(&path, false).ok().flatten().filter(|_| is_ours) else {
            continue;
        };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(cannot)?;
        if let Some(change) = last(&text) {
            let back = change.take_back();
            if change.stands() {
                return Err(format!(
                    "{}: a test that was killed left it changed, and it cannot be put back: {} Put it right by hand, then \
                     remove {}, which says what it was.",
                    back.setting,
                    back.said,
                    path.display()
                ));
            }
        }
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// A line that is not whole was being written: what it says was not made.
fn last(text: &str) -> Option<Change> {
    let whole = &text[..text.rfind('\n')?];
    serde_json::from_str(whole.rsplit('\n').next()?).ok()
}

/// With its lock; `None`: somebody has it.
fn open(path: &Path, create: bool) -> io::Result<Option<Flock<File>>> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(create)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(file) => Ok(Some(file)),
        Err((_, nix::Error::EWOULDBLOCK)) => Ok(None),
        Err((_, error)) => Err(error.into()),
    }
}

/// Settings are of a network namespace, and several of them may see one folder.
fn path_in(folder: &Path, target: &str) -> PathBuf {
    folder.join(format!("{} {target}", network()))
}

fn network() -> u64 {
    let by_cookie = || {
        let flags = SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Inet, SockType::Datagram, flags, None).ok()?;
        let (mut cookie, mut length) = (0_u64, size_of::<u64>() as libc::socklen_t);
        let to = (&raw mut cookie).cast();
        // SAFETY: the kernel writes at most `length` bytes there.
        let said = unsafe {
            libc::getsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_NETNS_COOKIE,
                to,
                &raw mut length,
            )
        };
        (said == 0).then_some(cookie)
    };
    // Before Linux 5.14 there is only a number that a later namespace may have again.
    by_cookie().unwrap_or_else(|| fs::metadata("/proc/self/ns/net").map_or(0, |about| about.ino()))
}

/// The folder, which nobody else may write in.
fn folder(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(format!(
                "{shown}: what is changed cannot be written down there first: {error}."
            ));
        }
        _ => {}
    }
    let about = fs::symlink_metadata(path).map_err(|error| format!("{shown}: {error}."))?;
    match about.is_dir() && about.uid() == geteuid().as_raw() && about.mode() & 0o077 == 0 {
        true => Ok(path.into()),
        false => Err(format!(
            "{shown}: is no folder of root's alone; nothing was written there, and nothing changed. Remove it."
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::change::{Place, State};
    use super::*;

    fn of_test(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("knee-journal-{name}-{}", std::process::id()));
        folder(&path).unwrap()
    }

    /// Of a sysctl that is read and never written: it is as before already, or is not there.
    fn change(name: &str, before: &str) -> Change {
        Change {
            place: Place::Sysctl(name.into()),
            target: name.into(),
            before: State::Text(before.into()),
            goal: State::Text("x".into()),
            after: None,
        }
    }

    #[test]
    fn one_setting_is_held_once_and_its_file_goes_when_nothing_was_changed() {
        let folder = of_test("once");
        let first = Entry::take_in(&folder, "eth0 gro").unwrap();
        let why = Entry::take_in(&folder, "eth0 gro").unwrap_err();
        assert_eq!(why, "eth0 gro: another test holds it; wait for its end.");
        drop(Entry::take_in(&folder, "eth0 tso").unwrap());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        drop(first);
        // There is nothing left in it.
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn what_a_dead_one_left_is_put_back_and_what_a_living_one_holds_stays() {
        let folder = of_test("left");
        let is = fs::read_to_string("/proc/sys/net/ipv4/tcp_sack").unwrap();
        let name = "net.ipv4.tcp_sack";
        let mut entry = Entry::take_in(&folder, name).unwrap();
        entry.note(&change(name, is.trim())).unwrap();
        put_back_in(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        drop(entry);
        put_back_in(&folder).unwrap();
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn the_last_whole_line_counts() {
        let (one, two) = (change("a", "1"), change("a", "2"));
        let lines = [&one, &two].map(|one| serde_json::to_string(one).unwrap());
        assert_eq!(last(&format!("{}\n{}\n", lines[0], lines[1])), Some(two));
        assert_eq!(last(&format!("{}\n{}", lines[0], lines[1])), Some(one));
        assert_eq!(last(&lines[0]), None);
        assert_eq!(last(""), None);
    }

    #[test]
    fn a_folder_that_leads_elsewhere_is_refused() {
        let below = of_test("link");
        let link = below.join("link");
        symlink(&below, &link).unwrap();
        assert!(folder(&link).unwrap_err().contains("no folder of root's"));
        fs::remove_dir_all(below).unwrap();
    }
}
