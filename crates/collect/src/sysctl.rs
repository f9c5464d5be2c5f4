//! Sysctls that TCP and the way of its packets depend on: all of them for a snapshot of the host, and those that the
//! recorder looks at again and again.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};

use serde::Serialize;

use super::files::{Files, names};
use super::setting::{Place, Setting};

/// Where the sysctls of the calling thread's network namespace are.
const ROOT: &str = "/proc/sys/";

/// Folders that a snapshot has whole, without what is below them.
const WHOLE: &[&str] = &[
    "net/core",
    "net/ipv4",
    "net/netfilter",
    "net/mptcp",
    "net/ipv4/neigh/default",
    "net/ipv6/neigh/default",
];

/// Single ones of a snapshot.
const BESIDE: &[&str] = &[
    "kernel/numa_balancing",
    "kernel/timer_migration",
    "net/ipv4/conf/all/forwarding",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/conf/default/rp_filter",
    "net/ipv4/route/gc_thresh",
    "net/ipv4/route/mtu_expires",
    "net/ipv4/route/min_pmtu",
    "net/ipv6/conf/all/forwarding",
    "net/ipv6/route/max_size",
    "vm/min_free_kbytes",
    "vm/swappiness",
    "fs/file-max",
    "fs/nr_open",
];

/// Parts of names whose values are nobody's business.
pub const SECRET: &[&str] = &["key", "secret", "hmac"];

/// Recorded folders, and how the names begin that are read of each.
const FOLDERS: &[(&str, &str)] = &[("net/core/", ""), ("net/ipv4/", "tcp_")];

/// Recorded single ones. In a network namespace of its own those of the whole host are not
/// shown: they hold there nevertheless, and are told as not known.
const SINGLE: &[&str] = &[
    "kernel/osrelease",
    "kernel/version",
    "net/core/default_qdisc",
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/netdev_max_backlog",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/ipv4/ip_forward",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/ip_no_pmtu_disc",
    "net/ipv4/fib_multipath_hash_policy",
];

/// Those of what need not be there; where it is not, they have no row.
const OPTIONAL: &[&str] = &[
    "net/ipv6/conf/all/forwarding",
    "net/mptcp/enabled",
    "net/netfilter/nf_conntrack_buckets",
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_tcp_be_liberal",
    "net/netfilter/nf_conntrack_tcp_loose",
    "net/netfilter/nf_conntrack_tcp_timeout_established",
];

/// Never recorded: it has nothing to do with TCP.
const LEFT_OUT: &[&str] = &[
    "net/core/bpf_jit_",
    "net/core/message_",
    "net/core/warnings",
    "net/core/xfrm_",
];

/// A sysctl of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sysctl {
    /// As sysctl(8) prints it.
    pub name: String,
    /// Its words with one blank between them; `None`: it cannot be read.
    pub value: Option<String>,
}

/// Reads the sysctls of a snapshot.
pub fn all(files: &mut Files) -> Vec<Sysctl> {
    let base = files.roots.proc.join("sys");
    let mut paths = Vec::new();
    for folder in WHOLE {
        let names = names(base.join(folder));
        // `flush` is written to and never read.
        let read = names.iter().filter(|name| *name != "flush");
        paths.extend(read.map(|name| format!("{folder}/{name}")));
    }
    paths.extend(BESIDE.iter().map(|&path| path.to_owned()));
    // A folder holds a file per interface.
    paths.retain(|path| !is_secret(path) && base.join(path).is_file());
    if paths.is_empty() {
        let why = format!("{} is not there", base.display());
        files.miss("sysctls", why, "a mounted /proc");
    }
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        let text = files.text(base.join(&path), "sysctls that only root may read");
        found.push(Sysctl {
            name: path.replace('/', "."),
            value: text.map(|text| words(&text)),
        });
    }
    found
}

fn is_secret(path: &str) -> bool {
    SECRET.iter().any(|part| path.contains(part))
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names that are recorded, with their paths below [`ROOT`].
pub struct Sysctls {
    paths: Vec<String>,
    text: String,
}

impl Sysctls {
    /// Those that the calling thread's network namespace has now.
    pub fn here() -> Sysctls {
        let mut paths: Vec<String> = SINGLE.iter().map(|&path| path.to_owned()).collect();
        let is_there = |path: &&&str| fs::exists(format!("{ROOT}{path}")).unwrap_or(false);
        paths.extend(
            OPTIONAL
                .iter()
                .filter(is_there)
                .map(|&path| path.to_owned()),
        );
        for (folder, begin) in FOLDERS {
            let Ok(entries) = fs::read_dir(format!("{ROOT}{folder}")) else {
                continue;
            };
            let names = entries
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
                .filter_map(|entry| entry.file_name().into_string().ok())
                .filter(|name| name.starts_with(begin));
            paths.extend(names.map(|name| format!("{folder}{name}")));
        }
        paths.retain(|path| {
            !is_secret(path) && !LEFT_OUT.iter().any(|begin| path.starts_with(begin))
        });
        paths.sort();
        paths.dedup();
        Sysctls {
            paths,
            text: String::new(),
        }
    }

    /// Hands each to `take`, by the name that sysctl(8) prints.
    pub fn read(&mut self, take: &mut impl FnMut(Setting)) {
        for path in &self.paths {
            take(Setting {
                place: Place {
                    kind: "sysctl",
                    name: path.replace('/', ".").into(),
                    ..Place::default()
                },
                unit: "",
                value: value(&format!("{ROOT}{path}"), &mut self.text),
            });
        }
    }
}

/// The words of a file with one blank between them, or why they cannot be read.
fn value(path: &str, text: &mut String) -> Result<String, String> {
    text.clear();
    let read = File::open(path).and_then(|mut file| file.read_to_string(text));
    match read {
        Ok(_) => Ok(words(text)),
        Err(error) => Err(reason(&error)),
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "not shown in this network namespace".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Vec<Setting> {
        let mut found = Vec::new();
        Sysctls::here().read(&mut |setting| found.push(setting));
        found
    }

    #[test]
    fn words_of_a_sysctl_have_one_blank_between_them() {
        let found = here();
        let rmem = found
            .iter()
            .find(|setting| setting.place.name == "net.ipv4.tcp_rmem")
            .unwrap();
        let value = rmem.value.as_ref().unwrap();
        assert_eq!(value.split(' ').count(), 3, "{value:?}");
        assert!(value.split(' ').all(|word| word.parse::<u64>().is_ok()));
    }

    #[test]
    fn keys_are_not_among_them() {
        for setting in here() {
            assert!(!setting.place.name.ends_with("_key"), "{:?}", setting.place);
        }
        for sysctl in all(&mut Files::new(Default::default())) {
            assert!(!sysctl.name.ends_with("_key"), "{sysctl:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_has_its_reason() {
        let mut text = "of the one before".to_owned();
        let missing = value("/proc/sys/net/core/no_such", &mut text).unwrap_err();
        assert!(missing.contains("network namespace"));
        assert!(
            !value("/proc/sys/net/core", &mut text)
                .unwrap_err()
                .is_empty()
        );
        let denied = reason(&ErrorKind::PermissionDenied.into());
        assert_eq!(denied, "permission denied");
    }
}
