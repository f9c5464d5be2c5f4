//! Sysctls that TCP and the way of its packets depend on.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};

use super::settings::{Place, Setting};

/// Where the sysctls of the calling thread's network namespace are.
const ROOT: &str = "/proc/sys/";

/// Folders, and how the names begin that are read of each.
const FOLDERS: &[(&str, &str)] = &[("net/core/", ""), ("net/ipv4/", "tcp_")];

/// Single ones. In a network namespace of its own those of the whole host are not
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

/// Never read: keys, and what has nothing to do with TCP.
const LEFT_OUT: &[&str] = &[
    "net/core/netdev_rss_key",
    "net/ipv4/tcp_fastopen_key",
    "net/core/bpf_jit_",
    "net/core/message_",
    "net/core/warnings",
    "net/core/xfrm_",
];

/// The names that are read, with their paths below [`ROOT`].
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
        paths.retain(|path| !LEFT_OUT.iter().any(|begin| path.starts_with(begin)));
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
        Ok(_) => Ok(text.split_whitespace().collect::<Vec<_>>().join(" ")),
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
