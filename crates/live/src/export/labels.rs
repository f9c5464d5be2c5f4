//! What groups are called, and how many there can be.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use knee_collect::KernelError;

/// Groups that hold what has no name of its own.
pub const OTHER: &str = "other";
pub const UNKNOWN: &str = "unknown";

/// Algorithms with a label of their own: the first ones seen.
pub const MOST_ALGORITHMS: usize = 14;
/// Values of `--by`.
pub const MOST_VALUES: usize = 30;

/// A second label, whose values are given beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    Nothing,
    /// Local ports, each from and to, with the text that was given.
    Port(Vec<(u16, u16, String)>),
    /// Paths of cgroups v2, with all that is below them.
    Cgroup(Vec<String>),
    /// Names of processes.
    Process(Vec<String>),
}

impl By {
    /// # Errors
    /// An invalid text.
    pub fn parse(text: &str) -> Result<By, KernelError> {
        let wrong = |expected: String| KernelError::Option {
            what: "by",
            got: text.to_owned(),
            expected,
        };
        let forms = "port=443,8000-8100, cgroup=system.slice/nginx.service,… or process=nginx,…";
        let (kind, list) = text
            .split_once('=')
            .ok_or_else(|| wrong(forms.to_owned()))?;
        let values: Vec<String> = list
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        if values.iter().any(String::is_empty) {
            return Err(wrong(format!("values between the commas: {forms}")));
        }
        if values.len() > MOST_VALUES {
            let expected = format!(
                "{MOST_VALUES} values at most, since each multiplies the series; got {}",
                values.len()
            );
            return Err(wrong(expected));
        }
        for (at, value) in values.iter().enumerate() {
            if values[..at].contains(value) || value == OTHER || value == UNKNOWN {
                let expected =
                    format!("each value once, and neither \"{OTHER}\" nor \"{UNKNOWN}\"");
                return Err(wrong(expected));
            }
        }
        match kind {
            "port" => {
                let ports = values.into_iter().map(|value| {
                    let (low, high) = value.split_once('-').unwrap_or((&value, &value));
                    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
                    (low <= high).then_some((low, high, value))
                });
                let ports: Option<Vec<_>> = ports.collect();
                ports
                    .map(By::Port)
                    .ok_or_else(|| wrong("local ports such as port=443,8000-8100".to_owned()))
            }
            "cgroup" => Ok(By::Cgroup(values)),
            "process" => Ok(By::Process(values)),
            _ => Err(wrong(forms.to_owned())),
        }
    }

    /// The label's.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            By::Nothing => None,
            By::Port(_) => Some("local_port"),
            By::Cgroup(_) => Some("cgroup"),
            By::Process(_) => Some("process"),
        }
    }

    /// Its values and the two that are always there.
    pub fn values(&self) -> Vec<String> {
        let mut values = match self {
            By::Nothing => return vec![String::new()],
            By::Port(ports) => ports.iter().map(|(.., text)| text.clone()).collect(),
            By::Cgroup(names) | By::Process(names) => names.clone(),
        };
        values.extend([OTHER, UNKNOWN].map(str::to_owned));
        values
    }
}

/// Which value of the second label a socket has.
pub struct Places {
    by: By,
    /// Ids of cgroups, as of the last sample.
    cgroups: HashMap<u64, usize>,
    values: usize,
}

/// What is known of a socket that its place depends on.
pub struct Owner<'a> {
    pub local_port: u16,
    pub cgroup_id: Option<u64>,
    pub process: Option<&'a str>,
    /// It was looked for everywhere, so that it has none of the names.
    pub process_looked_for: bool,
}

impl Places {
    pub fn new(by: By) -> Places {
        let values = by.values().len();
        Places {
            by,
            cgroups: HashMap::new(),
            values,
        }
    }

    /// A service that was started again has another cgroup of the same name.
    pub fn refresh(&mut self) {
        if let By::Cgroup(names) = &self.by {
            self.cgroups.clear();
            for (at, name) in names.iter().enumerate() {
                if let Some(folder) = cgroup_folder(name) {
                    add_below(&folder, at, &mut self.cgroups);
                }
            }
        }
    }

    /// Cgroups that are not there now; their services may come.
    pub fn absent(&self) -> Vec<&str> {
        match &self.by {
            By::Cgroup(names) => (names.iter())
                .filter(|name| cgroup_folder(name).is_none())
                .map(String::as_str)
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The value's number.
    pub fn of(&self, owner: &Owner<'_>) -> usize {
        let (other, unknown) = (self.values.saturating_sub(2), self.values - 1);
        match &self.by {
            By::Nothing => 0,
            By::Port(ports) => ports
                .iter()
                .position(|(low, high, _)| (*low..=*high).contains(&owner.local_port))
                .unwrap_or(other),
            By::Cgroup(_) => match owner.cgroup_id {
                Some(id) => self.cgroups.get(&id).copied().unwrap_or(other),
                None => unknown,
            },
            By::Process(names) => match owner.process {
                Some(process) => names
                    .iter()
                    .position(|name| name == process)
                    .unwrap_or(other),
                None if owner.process_looked_for => other,
                None => unknown,
            },
        }
    }
}

fn cgroup_folder(name: &str) -> Option<PathBuf> {
    let name = name.trim_start_matches('/');
    ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        .iter()
        .map(|root| Path::new(root).join(name))
        .find(|folder| folder.is_dir())
}

/// The id of a cgroup v2 is the inode of its folder. The first value that holds it has it.
fn add_below(folder: &Path, at: usize, ids: &mut HashMap<u64, usize>) {
    let Ok(about) = fs::metadata(folder) else {
        return;
    };
    ids.entry(about.ino()).or_insert(at);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_below(&entry.path(), at, ids);
        }
    }
}

/// Names with numbers, of which there are only so many.
#[derive(Default)]
pub struct Algorithms {
    names: Vec<Box<str>>,
}

impl Algorithms {
    /// Numbers there can be, with the two that are always there.
    pub const MOST: usize = MOST_ALGORITHMS + 2;

    pub fn number(&mut self, name: Option<&str>) -> usize {
        let Some(name) = name else {
            return MOST_ALGORITHMS + 1;
        };
        if let Some(at) = self.names.iter().position(|known| **known == *name) {
            return at;
        }
        if self.names.len() == MOST_ALGORITHMS {
            return MOST_ALGORITHMS;
        }
        self.names.push(name.into());
        self.names.len() - 1
    }

    pub fn name(&self, number: usize) -> &str {
        match number {
            MOST_ALGORITHMS => OTHER,
            number => self.names.get(number).map_or(UNKNOWN, |name| name),
        }
    }
}
