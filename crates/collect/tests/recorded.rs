//! A host whose files were recorded is read as this one is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use knee_collect::files::{Files, Roots};
use knee_collect::host_state::{Extent, HostState};
use knee_collect::proc_net::Softnet;

/// A folder with files of a host, gone with this value.
struct Recorded(PathBuf);

impl Recorded {
    fn new(name: &str, files: &[(&str, &str)]) -> Recorded {
        let folder =
            std::env::temp_dir().join(format!("knee-collect-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let recorded = Recorded(folder);
        for (name, text) in files {
            recorded.write(name, text);
        }
        recorded
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn link(&self, name: &str, target: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn roots(&self) -> Roots {
        Roots {
            proc: self.0.join("proc"),
            sys: self.0.join("sys"),
            root: self.0.clone(),
            are_recorded: true,
        }
    }

    fn read(&self) -> HostState {
        HostState::read(self.roots(), Extent::Whole)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_is_absent_is_named() {
    let state = Recorded::new("absent", &[]).read();
    let missing: Vec<_> = state.missing.iter().map(|missing| &*missing.what).collect();
    assert_eq!(missing, ["sysctls", "counters", "processors", ABOUT_KERNEL]);
}

const ABOUT_KERNEL: &str = "interfaces, qdiscs, routes and sockets";

#[test]
fn sysctls_are_read_without_keys_and_without_what_acts() {
    let host = Recorded::new(
        "sysctls",
        &[
            ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
            ("proc/sys/net/ipv4/tcp_fastopen_key", "0123-4567\n"),
            ("proc/sys/net/ipv4/route/flush", ""),
            ("proc/sys/net/ipv4/conf/all/rp_filter", "2\n"),
        ],
    );
    let found: Vec<_> = (host.read().sysctls.into_iter())
        .map(|sysctl| (sysctl.name, sysctl.value.unwrap()))
        .collect();
    let expected = [
        ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ("net.ipv4.conf.all.rp_filter", "2"),
    ];
    assert_eq!(
        found,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

#[test]
fn counters_are_read_and_damage_is_left_out() {
    let arp =
        "entries allocs table_fulls\n00000010 00000002 00000001\n00000010 00000003 00000002\n";
    let softnet = "0000000a 00000001 00000002 0 0 0 0 0 0 00000003 00000004 0 00000005\ngarbage\n";
    let host = Recorded::new(
        "counters",
        &[
            (
                "proc/net/netstat",
                "TcpExt: ListenDrops PruneCalled\nTcpExt: 7 x\nIpExt: InOctets\n",
            ),
            ("proc/net/sockstat", "TCP: inuse 5 orphan 0\n"),
            (
                "proc/net/snmp6",
                "Ip6OutRequests  774\nIcmp6InMsgs 3\nIp6In x\n",
            ),
            ("proc/net/stat/arp_cache", arp),
            ("proc/net/softnet_stat", softnet),
        ],
    );
    let state = host.read();
    let found: Vec<_> = (state.counters.iter())
        .map(|count| (&*count.name, count.value))
        .collect();
    let expected = [
        ("TcpExt.ListenDrops", 7),
        ("TCP.inuse", 5),
        ("TCP.orphan", 0),
        ("Ip6.OutRequests", 774),
        ("arp_cache.allocs", 5),
        ("arp_cache.entries", 16),
        ("arp_cache.table_fulls", 3),
    ];
    assert_eq!(found, expected);
    let row = Softnet {
        cpu: 5,
        processed: 10,
        dropped: 1,
        squeezed: 2,
        received_rps: 3,
        flow_limit_count: 4,
    };
    assert_eq!(state.softnet, [row]);
}

#[test]
fn softnet_of_old_kernels_counts_its_lines() {
    let lines = "1 0 0 0 0 0 0 0 0 0 0\n2 0 0 0 0 0 0 0 0 0 0\n";
    let state = Recorded::new("softnet", &[("proc/net/softnet_stat", lines)]).read();
    let rows: Vec<_> = (state.softnet.iter())
        .map(|row| (row.cpu, row.processed))
        .collect();
    assert_eq!(rows, [(0, 1), (1, 2)]);
}

#[test]
fn processor_has_its_times_its_node_and_its_deepest_state() {
    let stat = "cpu  9 0 1 0 0 0 0 0 0 0\ncpu1 100 0 100 700 0 0 50 50 0 0\n";
    let host = Recorded::new("cpu", &[("proc/stat", stat)]);
    for (name, text) in [
        ("node/node1/cpulist", "1-3"),
        ("cpu/isolated", "1"),
        ("cpu/cpu1/topology/thread_siblings_list", "1,3"),
        ("cpu/cpu1/cpufreq/scaling_governor", "powersave"),
        ("cpu/cpu1/cpufreq/scaling_max_freq", "2000000"),
        ("cpu/cpu1/cpuidle/state2/disable", "0"),
        ("cpu/cpu1/cpuidle/state2/name", "C1E"),
        ("cpu/cpu1/cpuidle/state2/latency", "10"),
        ("cpu/cpu1/cpuidle/state10/disable", "1"),
    ] {
        host.write(&format!("sys/devices/system/{name}"), text);
    }
    let state = host.read();
    let [cpu] = &state.cpus[..] else {
        panic!("{:?}", state.cpus)
    };
    assert_eq!(
        (cpu.time_us, cpu.busy_us),
        (Some(10_000_000), Some(3_000_000))
    );
    assert_eq!(
        (cpu.softirq_us, cpu.steal_us),
        (Some(500_000), Some(500_000))
    );
    assert_eq!((cpu.numa_node, cpu.isolated), (Some(1), Some(true)));
    assert_eq!(cpu.siblings, Some(vec![1, 3]));
    assert_eq!((cpu.max_khz, cpu.hardware_max_khz), (Some(2_000_000), None));
    assert_eq!(
        (cpu.idle_state.as_deref(), cpu.idle_exit_us),
        (Some("C1E"), Some(10))
    );
    let counts = HostState::read(host.roots(), Extent::Counts);
    assert_eq!(counts.cpus[0].time_us, cpu.time_us);
    assert_eq!(counts.cpus[0].governor, None);
}

#[test]
fn programs_are_told_by_what_they_set() {
    let stat = "78 (ksoftirqd/0 ) x) S 2 0 0 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0\n";
    let host = Recorded::new("programs", &[("proc/78/stat", stat)]);
    let programs = [
        (77, "tuned"),
        (78, "ksoftirqd/0"),
        (79, "ntpd"),
        (80, "tuned"),
        (81, "bash"),
    ];
    for (process, comm) in programs {
        host.write(&format!("proc/{process}/comm"), &format!("{comm}\n"));
    }
    for (process, inode) in [("self", 1), ("77", 1), ("79", 2), ("80", 2)] {
        host.link(&format!("proc/{process}/ns/net"), &format!("net:[{inode}]"));
    }
    let state = host.read();
    let owners: Vec<_> = (state.owners.iter())
        .map(|owner| (owner.owner, owner.kind))
        .collect();
    assert_eq!(owners, [("tuned", "running")]);
    assert_eq!(state.host[0].stamping.iter().collect::<Vec<_>>(), [&"ntpd"]);
    assert_eq!(state.host[0].ksoftirqd_us, Some(70_000));
    let others: Vec<_> = (state.namespaces.iter())
        .map(|other| (&*other.netns, other.name.as_deref(), other.processes))
        .collect();
    assert_eq!(others, [("net:[2]", None, 2)]);
}

#[test]
fn lists_and_masks_of_processors_are_read_and_damage_is_not_guessed() {
    let host = Recorded::new("masks", &[]);
    let mut files = Files::new(host.roots());
    for (text, list, mask) in [
        ("0-3,8", Some(vec![0, 1, 2, 3, 8]), None),
        ("", Some(vec![]), None),
        ("a", None, Some(vec![1, 3])),
        ("80000000,00000001", None, Some(vec![0, 63])),
        ("00000000", Some(vec![0]), Some(vec![])),
    ] {
        let path = host.write("file", text);
        assert_eq!(files.cpu_list(&path, ""), list, "{text}");
        assert_eq!(files.cpu_mask(&path, ""), mask, "{text}");
    }
}

#[test]
fn a_file_that_is_too_large_is_cut_and_named_once() {
    const MOST_BYTES: usize = 16 << 20;
    let host = Recorded::new("large", &[]);
    let path = host.write("large", &"1".repeat(MOST_BYTES + 5));
    let mut files = Files::new(host.roots());
    for _ in 0..2 {
        assert_eq!(files.text(&path, "a large file").unwrap().len(), MOST_BYTES);
        assert_eq!(files.text(Path::new("/none"), "a file"), None);
    }
    let missing: Vec<_> = files.missing.iter().map(|missing| &*missing.what).collect();
    assert_eq!(missing, ["a large file"]);
}
