//! Files that say what this host is, is set to and has counted, as one object of JSON: the doctor of another machine
//! reads them as if they were its own. Nothing secret is among them, and nothing of processes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use serde::Serialize;

/// Of one file; longer ones are left out.
const FILE_BYTES: u64 = 1 << 20;
/// Of all together.
const MOST_BYTES: usize = 8 << 20;
/// Parts of names whose values are nobody's business.
const SECRET: [&str; 3] = ["key", "secret", "hmac"];

/// Folders that are taken whole, without what is below them.
const FOLDERS: &[&str] = &[
    "proc/sys/net/core",
    "proc/sys/net/ipv4",
    "proc/sys/net/netfilter",
    "proc/sys/net/mptcp",
    "proc/sys/net/ipv4/neigh/default",
    "proc/sys/net/ipv6/neigh/default",
    "proc/net/stat",
    "proc/pressure",
    "sys/devices/system/clocksource/clocksource0",
    "usr/lib/sysctl.d",
    "usr/local/lib/sysctl.d",
    "run/sysctl.d",
    "etc/sysctl.d",
];

const FILES: &[&str] = &[
    "proc/sys/kernel/hostname",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/kernel/timer_migration",
    "proc/sys/net/ipv4/conf/all/forwarding",
    "proc/sys/net/ipv4/conf/all/rp_filter",
    "proc/sys/net/ipv4/conf/default/rp_filter",
    "proc/sys/net/ipv4/route/gc_thresh",
    "proc/sys/net/ipv4/route/mtu_expires",
    "proc/sys/net/ipv4/route/min_pmtu",
    "proc/sys/net/ipv6/conf/all/forwarding",
    "proc/sys/net/ipv6/route/max_size",
    "proc/sys/vm/min_free_kbytes",
    "proc/sys/vm/swappiness",
    "proc/sys/fs/file-max",
    "proc/sys/fs/nr_open",
    "proc/net/netstat",
    "proc/net/snmp",
    "proc/net/snmp6",
    "proc/net/softnet_stat",
    "proc/net/sockstat",
    "proc/net/sockstat6",
    "proc/stat",
    "proc/meminfo",
    "proc/uptime",
    "proc/cpuinfo",
    "proc/modules",
    "proc/1/comm",
    "proc/self/cgroup",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "sys/class/dmi/id/chassis_asset_tag",
    "sys/hypervisor/type",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/smt/control",
    "sys/fs/cgroup/memory.max",
    "sys/module/tcp_bbr/version",
    "etc/os-release",
    "usr/lib/os-release",
    "etc/sysctl.conf",
    "etc/tuned/active_profile",
    "run/systemd/container",
];

/// Of each processor.
const OF_CPU: &[&str] = &[
    "topology/thread_siblings_list",
    "cpufreq/scaling_governor",
    "cpufreq/scaling_driver",
    "cpufreq/scaling_max_freq",
    "cpufreq/cpuinfo_max_freq",
];
const OF_IDLE_STATE: &[&str] = &["disable", "name", "latency"];
/// Lines of the kernel's configuration that are judged.
const CONFIGURED: &str = "CONFIG_NET_SCH_";

/// Paths below the root, and what they hold.
#[derive(Debug, Default, Serialize)]
pub struct Recorded {
    pub files: BTreeMap<String, String>,
    #[serde(skip)]
    bytes: usize,
}

impl Recorded {
    /// Of this host, as far as this user may see it.
    pub fn here() -> Recorded {
        let mut found = Recorded::default();
        for folder in FOLDERS {
            for name in names(folder) {
                found.take(&format!("{folder}/{name}"));
            }
        }
        for file in FILES {
            found.take(file);
        }
        let cpus = "sys/devices/system/cpu";
        for cpu in names(cpus).iter().filter(|name| is_numbered(name, "cpu")) {
            for file in OF_CPU {
                found.take(&format!("{cpus}/{cpu}/{file}"));
            }
            let idle = format!("{cpus}/{cpu}/cpuidle");
            for state in names(&idle) {
                for file in OF_IDLE_STATE {
                    found.take(&format!("{idle}/{state}/{file}"));
                }
            }
        }
        let nodes = "sys/devices/system/node";
        for node in names(nodes).iter().filter(|name| is_numbered(name, "node")) {
            found.take(&format!("{nodes}/{node}/cpulist"));
        }
        if let Some(release) = found.files.get("proc/sys/kernel/osrelease") {
            let path = format!("boot/config-{}", release.trim());
            if let Some(text) = text(&path) {
                let lines = text.lines().filter(|line| line.starts_with(CONFIGURED));
                let lines = lines.collect::<Vec<_>>().join("\n");
                found.files.insert(path, lines);
            }
        }
        found
    }

    fn take(&mut self, path: &str) {
        let name = path.rsplit('/').next().unwrap_or(path);
        if SECRET.iter().any(|part| name.contains(part)) || name == "flush" {
            return;
        }
        if let Some(text) = text(path)
            && self.bytes + text.len() <= MOST_BYTES
        {
            self.bytes += text.len();
            self.files.insert(path.into(), text);
        }
    }
}

fn below_root(path: &str) -> std::path::PathBuf {
    Path::new("/").join(path)
}

/// What a file holds. `None`: it is none, cannot be read, or is too long.
fn text(path: &str) -> Option<String> {
    let path = below_root(path);
    if !path.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= FILE_BYTES).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(below_root(folder));
    let names = entries.into_iter().flatten().flatten();
    let mut names: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    let number = name.strip_prefix(prefix).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_settings_are_there_and_nothing_secret() {
        let found = Recorded::here();
        assert!(found.files["proc/net/snmp"].contains("RetransSegs"));
        assert!(found.files.contains_key("proc/sys/net/ipv4/tcp_wmem"));
        for path in found.files.keys() {
            let name = path.rsplit('/').next().unwrap();
            assert!(!SECRET.iter().any(|part| name.contains(part)), "{path}");
            assert!(!path.starts_with('/') && !path.contains(".."), "{path}");
        }
    }
}
