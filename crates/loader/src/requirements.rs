//! What the kernel and the caller must have for BPF.

use std::fs;
use std::path::Path;

/// A capability: its bit and its name.
pub type Capability = (u32, &'static str);

const NET_ADMIN: Capability = (12, "CAP_NET_ADMIN");
const PERFMON: Capability = (38, "CAP_PERFMON");
const BPF: Capability = (39, "CAP_BPF");
/// Stands for PERFMON and BPF.
const SYS_ADMIN: u32 = 21;

/// To register algorithms.
pub const STRUCT_OPS: &[Capability] = &[NET_ADMIN, PERFMON, BPF];
/// To look on at tracepoints.
pub const TRACING: &[Capability] = &[PERFMON, BPF];

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Why programs that need these cannot be loaded here, and what would help.
pub fn check(needed: &[Capability]) -> Result<(), (String, String)> {
    if !Path::new(BTF).exists() {
        return Err((
            format!("there is no {BTF}"),
            "It needs a kernel built with CONFIG_DEBUG_INFO_BTF, as those of distributions are."
                .into(),
        ));
    }
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if !map.trim_end().ends_with("4294967295") {
        return Err((
            "this is a user namespace, whose root may not load BPF".into(),
            "Do it as the host's root; labs of ordinary users can use what it loaded.".into(),
        ));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let missing = missing(&status, needed);
    if !missing.is_empty() {
        return Err((
            format!(
                "that needs {}, which this process lacks",
                missing.join(", ")
            ),
            "Run it as root, or give the capabilities (capsh, systemd's AmbientCapabilities)."
                .into(),
        ));
    }
    Ok(())
}

fn missing(status: &str, needed: &[Capability]) -> Vec<&'static str> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    let has = |bit: u32| effective & (1 << bit) != 0;
    needed
        .iter()
        .filter(|&&one| !has(one.0) && (one == NET_ADMIN || !has(SYS_ADMIN)))
        .map(|&(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_that_lack_are_named() {
        let none = "CapEff:\t0000000000000000\n";
        let net_admin = "CapEff:\t0000000000001000\n";
        let sys_admin = "CapEff:\t0000000000200000\n";
        let all = "CapEff:\t000001ffffffffff\n";
        assert_eq!(missing(none, STRUCT_OPS).len(), 3);
        assert_eq!(missing(net_admin, STRUCT_OPS), ["CAP_PERFMON", "CAP_BPF"]);
        assert!(missing(all, STRUCT_OPS).is_empty());
        assert_eq!(missing(sys_admin, STRUCT_OPS), ["CAP_NET_ADMIN"]);
        assert_eq!(missing(net_admin, TRACING), ["CAP_PERFMON", "CAP_BPF"]);
        assert!(missing(sys_admin, TRACING).is_empty());
    }
}
