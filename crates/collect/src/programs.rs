//! Programs that set what the doctor judges, other network namespaces, and the time of ksoftirqd.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use serde::Serialize;

use super::files::{Files, names, target};
use super::threads;

/// By the name that the kernel keeps, of at most 15 characters.
const OWNERS: &[(&str, &str)] = &[
    ("tuned", "tuned"),
    ("bpftune", "bpftune"),
    ("irqbalance", "irqbalance"),
    ("NetworkManager", "NetworkManager"),
    ("systemd-network", "systemd-networkd"),
    ("cilium-agent", "cilium"),
    ("calico-node", "calico"),
    ("kubelet", "kubelet"),
    ("dockerd", "docker"),
    ("cloud-init", "cloud-init"),
    ("google_guest_ag", "google-guest-agent"),
    ("waagent", "waagent"),
    ("numad", "numad"),
];

/// Programs that may ask for SO_TIMESTAMP, SO_TIMESTAMPNS or SO_TIMESTAMPING. While any socket does, the kernel
/// stamps every packet that arrives, whatever its socket, and does not tell who asked.
const STAMPING: &[&str] = &[
    "chronyd",
    "ntpd",
    "openntpd",
    "systemd-timesyn",
    "ptp4l",
    "phc2sys",
    "tcpdump",
    "dumpcap",
];

const MOST_NAMESPACES: usize = 256;

/// What runs on the host, as far as the doctor knows it.
#[derive(Debug, Default)]
pub struct Programs {
    pub owners: Vec<Owner>,
    pub namespaces: Vec<Namespace>,
    pub stamping: BTreeSet<&'static str>,
    /// Processor time of all ksoftirqd threads.
    pub ksoftirqd_us: Option<i64>,
}

/// A program that runs and sets what the doctor judges.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Owner {
    pub owner: &'static str,
    pub kind: &'static str,
}

/// Another network namespace.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Namespace {
    /// `net:[INODE]`.
    pub netns: String,
    pub name: Option<String>,
    pub processes: u32,
}

/// Looks at every process once.
pub fn programs(files: &mut Files) -> Programs {
    let mut running = BTreeSet::new();
    let mut found = Programs::default();
    let mut namespaces: BTreeMap<String, u32> = BTreeMap::new();
    let mut hidden = 0;
    let proc = files.roots.proc.clone();
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    for process in names(&proc).into_iter().filter(is_number) {
        let folder = proc.join(process);
        let name = files.text(folder.join("comm"), "").unwrap_or_default();
        if let Some((_, owner)) = OWNERS.iter().find(|(comm, _)| *comm == name) {
            running.insert(*owner);
        } else if let Some(program) = STAMPING.iter().find(|comm| **comm == name) {
            found.stamping.insert(program);
        } else if name.starts_with("ksoftirqd/") {
            let stat = files.text(folder.join("stat"), "").unwrap_or_default();
            let (_, user_us, system_us) = threads::of_stat(&stat).unwrap_or_default();
            *found.ksoftirqd_us.get_or_insert(0) += user_us + system_us;
        }
        match fs::read_link(folder.join("ns/net")) {
            Ok(inode) => {
                let inode = inode.to_string_lossy().into_owned();
                *namespaces.entry(inode).or_default() += 1;
            }
            // Otherwise the process has ended.
            Err(error) => {
                hidden += u32::from(error.kind() == std::io::ErrorKind::PermissionDenied);
            }
        }
    }
    if hidden > 0 {
        let status = files.text(proc.join("self/status"), "").unwrap_or_default();
        let needs = match may_look_into_processes(&status) {
            // Something else keeps them from everybody, as a container or a virtual machine may keep its first process.
            true => "",
            false => "CAP_SYS_PTRACE on the host",
        };
        let processes = if hidden == 1 { "process" } else { "processes" };
        files.miss(
            format!("network namespaces of {hidden} {processes}"),
            "permission denied",
            needs,
        );
    }
    found.owners = (running.into_iter())
        .map(|owner| Owner {
            owner,
            kind: "running",
        })
        .collect();
    found.namespaces = others(files, namespaces);
    found
}

/// Whether a process of that `/proc/self/status` has CAP_SYS_PTRACE: bit 19 of include/uapi/linux/capability.h.
fn may_look_into_processes(status: &str) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    effective.is_some_and(|bits| bits & 1 << 19 != 0)
}

fn others(files: &mut Files, mut processes: BTreeMap<String, u32>) -> Vec<Namespace> {
    let mut named = BTreeMap::new();
    let folder = files.roots.root.join("run/netns");
    for name in names(&folder) {
        if let Ok(file) = fs::metadata(folder.join(&name)) {
            let inode = format!("net:[{}]", file.ino());
            processes.entry(inode.clone()).or_default();
            named.insert(inode, name);
        }
    }
    if let Some(ours) = target(files.roots.proc.join("self/ns/net")) {
        processes.remove(&ours);
    }
    if processes.len() > MOST_NAMESPACES {
        let why = format!(
            "of {} the first {MOST_NAMESPACES} were kept",
            processes.len()
        );
        files.miss("network namespaces", why, "");
    }
    (processes.into_iter().take(MOST_NAMESPACES))
        .map(|(netns, processes)| Namespace {
            name: named.remove(&netns),
            netns,
            processes,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lacks_a_capability_is_told_so_and_nobody_else() {
        for (bits, may) in [("0000000000080000", true), ("000001fffff7ffff", false)] {
            let status = format!("Name:\tknee\nCapEff:\t{bits}\n");
            assert_eq!(may_look_into_processes(&status), may, "{bits}");
        }
        assert!(!may_look_into_processes(""));
    }
}
