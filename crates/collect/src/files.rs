//! Files below /proc, /sys and /etc: of this host, or recorded of another one.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use knee_units::cpus::Cpus;
use serde::Serialize;

/// /proc/interrupts of 512 processors and 4,096 interrupts has 24 MB; its tail is then left out, and named.
const MOST_BYTES: u64 = 16 << 20;

/// Where the file systems are.
#[derive(Clone, Debug)]
pub struct Roots {
    pub proc: PathBuf,
    pub sys: PathBuf,
    /// Folder of etc, run and usr.
    pub root: PathBuf,
    /// The files were copied from another host: this kernel knows nothing of it.
    pub are_recorded: bool,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots {
            proc: "/proc".into(),
            sys: "/sys".into(),
            root: "/".into(),
            are_recorded: false,
        }
    }
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    pub what: String,
    pub why: String,
    /// What would be needed to read it; empty where nothing helps.
    pub needs: &'static str,
}

/// Reads files that may be absent or unreadable, and notes the latter.
pub struct Files {
    pub roots: Roots,
    pub missing: Vec<Missing>,
}

impl Files {
    pub fn new(roots: Roots) -> Files {
        Files {
            roots,
            missing: Vec::new(),
        }
    }

    /// What a file holds, without blanks at its ends. `None`: it is not there, or cannot be read; the latter is noted
    /// by the name `what`, or by the path where that is empty.
    pub fn text(&mut self, path: impl AsRef<Path>, what: &str) -> Option<String> {
        let path = path.as_ref();
        let name = || match what {
            "" => path.display().to_string(),
            what => what.to_owned(),
        };
        let mut bytes = Vec::new();
        let read =
            File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
        if let Err(error) = read {
            // Others: it is not there, or the driver has nothing to say (EINVAL, EOPNOTSUPP, ENODEV).
            if error.kind() == ErrorKind::PermissionDenied {
                self.miss(name(), "permission denied", "root");
            }
            return None;
        }
        if bytes.len() as u64 > MOST_BYTES {
            bytes.truncate(MOST_BYTES as usize);
            let why = format!("larger than {} MiB; its end was left out", MOST_BYTES >> 20);
            self.miss(name(), why, "");
        }
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file that is one whole number.
    pub fn number(&mut self, path: impl AsRef<Path>, what: &str) -> Option<i64> {
        self.text(path, what)?.parse().ok()
    }

    /// A file that is a list of processors: `0-3,8`.
    pub fn cpu_list(&mut self, path: impl AsRef<Path>, what: &str) -> Option<Vec<u32>> {
        cpus(&self.text(path, what)?, Cpus::of_list)
    }

    /// A file that is a mask of processors: `ff,00000000`.
    pub fn cpu_mask(&mut self, path: impl AsRef<Path>, what: &str) -> Option<Vec<u32>> {
        let text = self.text(path, what)?;
        Some(Cpus::of_mask(&text)?.numbers().to_vec())
    }

    /// Notes that something could not be read, once.
    pub fn miss(&mut self, what: impl Into<String>, why: impl Into<String>, needs: &'static str) {
        let missing = Missing {
            what: what.into(),
            why: why.into(),
            needs,
        };
        if !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
    }
}

fn cpus(text: &str, parse: fn(&str) -> Option<Cpus>) -> Option<Vec<u32>> {
    match text {
        "" => Some(Vec::new()),
        text => Some(parse(text)?.numbers().to_vec()),
    }
}

/// Names in a folder, in order; none where it is not there or cannot be listed.
pub fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

/// Numbers N of the names `PREFIXN` in a folder, in order.
pub fn numbered(folder: impl AsRef<Path>, prefix: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = names(folder)
        .iter()
        .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The last part of where a link leads.
pub fn target(link: impl AsRef<Path>) -> Option<String> {
    let target = fs::read_link(link).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}
