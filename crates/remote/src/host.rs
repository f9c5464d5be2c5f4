//! What the host is, and what it has counted.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

/// What a run keeps of a host.
#[derive(Serialize)]
pub struct Facts {
    version: &'static str,
    machine: &'static str,
    kernel: String,
    host: String,
    boot: String,
    uid: u32,
    processors: usize,
    /// Of the ssh connection that it came by: address of who came, and of this host; `None`: it came by none.
    ssh: Option<[String; 2]>,
    /// Congestion controls that it has, and those that any user may choose.
    available: Vec<String>,
    allowed: Vec<String>,
    pub counters: Counters,
}

/// Sums over the whole host, by name.
pub type Counters = BTreeMap<String, u64>;

impl Facts {
    pub fn here() -> Facts {
        let words = |name: &str| -> Vec<String> {
            let text = read(&format!("/proc/sys/net/ipv4/{name}"));
            text.split_whitespace().map(str::to_owned).collect()
        };
        Facts {
            version: env!("CARGO_PKG_VERSION"),
            machine: std::env::consts::ARCH,
            kernel: read("/proc/sys/kernel/osrelease"),
            host: read("/proc/sys/kernel/hostname"),
            boot: read("/proc/sys/kernel/random/boot_id"),
            uid: nix::unistd::geteuid().as_raw(),
            ssh: std::env::var("SSH_CONNECTION").ok().and_then(|text| {
                let words: Vec<&str> = text.split_whitespace().collect();
                Some([(*words.first()?).to_owned(), (*words.get(2)?).to_owned()])
            }),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            available: words("tcp_available_congestion_control"),
            allowed: words("tcp_allowed_congestion_control"),
            counters: counters(),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// What may have disturbed a repetition, or explains it.
pub fn counters() -> Counters {
    let mut found = Counters::new();
    let mut add = |name: &str, value: u64| *found.entry(name.to_owned()).or_default() += value;
    for line in read("/proc/net/softnet_stat").lines() {
        let number = |at: usize| line.split_whitespace().nth(at);
        let number = |at: usize| number(at).and_then(|word| u64::from_str_radix(word, 16).ok());
        add("softnet_dropped", number(1).unwrap_or(0));
        add("softnet_squeezed", number(2).unwrap_or(0));
    }
    // user, nice, system, idle, iowait, irq, softirq, steal: in jiffies of 10 ms.
    if let Some(line) = read("/proc/stat").lines().next() {
        let spent: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .map_while(|word| word.parse().ok())
            .collect();
        let idle: u64 = spent.iter().skip(3).take(2).sum();
        add("cpu_ms", spent.iter().take(8).sum::<u64>() * 10);
        add(
            "cpu_busy_ms",
            (spent.iter().take(8).sum::<u64>() - idle) * 10,
        );
        add("cpu_steal_ms", spent.get(7).copied().unwrap_or(0) * 10);
    }
    let snmp = read("/proc/net/snmp");
    let mut tcp = snmp.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    if let (Some(names), Some(values)) = (tcp.next(), tcp.next()) {
        let wanted = ["OutSegs", "RetransSegs", "InErrs"];
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            if wanted.contains(&name) {
                add(&format!("tcp_{name}"), value.parse().unwrap_or(0));
            }
        }
    }
    for entry in fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.file_name() == "lo" {
            continue;
        }
        for name in [
            "rx_dropped",
            "rx_missed_errors",
            "rx_errors",
            "tx_dropped",
            "tx_errors",
        ] {
            let path = entry.path().join("statistics").join(name);
            let text = fs::read_to_string(path).unwrap_or_default();
            add(&format!("nic_{name}"), text.trim().parse().unwrap_or(0));
        }
    }
    found
}
