//! A sysctl of this network namespace or host.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

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
    for (folder, begin) in [("net/core", ""), ("net/ipv4", "tcp_")] {
        let entries = fs::read_dir(format!("/proc/sys/{folder}"));
        let names = entries.into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let names = names.filter(|name| name.starts_with(begin) && !name.contains("key"));
        found.extend(names.map(|name| format!("{}.{name}", folder.replace('/', "."))));
    }
    found.sort_unstable();
    found
}
