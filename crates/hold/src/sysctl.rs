//! A sysctl of this network namespace or host.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

const NAME_BYTES: usize = 80;
/// Folders of sysctls that may be set, by how their names begin.
const SYSCTLS: [&str; 2] = ["net.core.", "net.ipv4.tcp_"];
/// Those of them that act, hold secrets, or decide what another setting is put back to.
const NOT_SYSCTLS: [&str; 7] = [
    "net.core.default_qdisc",
    "net.core.bpf_",
    "net.core.warnings",
    "net.ipv4.tcp_available_",
    "net.ipv4.tcp_fastopen_",
    "net.ipv4.tcp_allowed_",
    "net.ipv4.tcp_ehash_entries",
];

/// Is it a sysctl that a test may set?
pub fn may_be_set(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let part = SYSCTLS.iter().find_map(|begin| name.strip_prefix(begin));
    part.is_some_and(|part| !part.is_empty() && part.bytes().all(plain))
        && name.len() <= NAME_BYTES
        && !NOT_SYSCTLS.iter().any(|begin| name.starts_with(begin))
}

/// Its words with one blank between them.
pub fn read(name: &str) -> io::Result<String> {
    let text = fs::read_to_string(path(name))?;
    Ok(words(&text))
}

/// One write() of the whole value, as the kernel wants it.
pub fn write(name: &str, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path(name))?;
    file.write_all(format!("{value}\n").as_bytes())
}

pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}

/// Names of those that a test may set, in order.
pub fn names() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["net/core", "net/ipv4"] {
        let entries = fs::read_dir(format!("/proc/sys/{folder}"));
        let names = entries.into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let names = names.map(|name| format!("{}.{name}", folder.replace('/', ".")));
        found.extend(names.filter(|name| may_be_set(name)));
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_whole_kernel_has_is_no_setting_of_a_test() {
        let found = names();
        assert!(found.contains(&"net.ipv4.tcp_wmem".into()));
        // Whoever loads an algorithm changes it in every namespace.
        assert!(!found.contains(&"net.ipv4.tcp_available_congestion_control".into()));
    }
}
