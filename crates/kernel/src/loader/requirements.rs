//! What the kernel and the caller must have for struct_ops.

use std::fs;
use std::path::Path;

/// CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF; CAP_SYS_ADMIN stands for all.
const NEEDED: [(u32, &str); 3] = [(12, "CAP_NET_ADMIN"), (38, "CAP_PERFMON"), (39, "CAP_BPF")];
const SYS_ADMIN: u32 = 21;
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Why algorithms cannot be loaded here, and what would help.
pub fn check() -> Result<(), (String, String)> {
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
            "Load it as the host's root; labs of ordinary users can use it then.".into(),
        ));
    }
    let missing = missing(&fs::read_to_string("/proc/self/status").unwrap_or_default());
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

fn missing(status: &str) -> Vec<&'static str> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    let has = |bit: u32| effective & (1 << bit) != 0;
    NEEDED
        .iter()
        .filter(|&&(bit, name)| !has(bit) && (name == "CAP_NET_ADMIN" || !has(SYS_ADMIN)))
        .map(|&(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_that_lack_are_named() {
        assert_eq!(missing("CapEff:\t0000000000000000\n").len(), 3);
        assert_eq!(
            missing("CapEff:\t0000000000001000\n"),
            ["CAP_PERFMON", "CAP_BPF"]
        );
        assert!(missing("CapEff:\t000001ffffffffff\n").is_empty());
        assert_eq!(missing("CapEff:\t0000000000200000\n"), ["CAP_NET_ADMIN"]);
    }
}
