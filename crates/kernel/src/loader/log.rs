//! What libbpf and the verifier say while an object is loaded.

use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{Error, PrintLevel};
use nix::unistd::mkstemp;

/// Lines of the verifier's log that stand in an error.
const LINES: usize = 6;

/// libbpf's printer is one for the process.
static LOG: Mutex<String> = Mutex::new(String::new());

/// What `load` returned, and what was said meanwhile.
pub fn of<T>(load: impl FnOnce() -> T) -> (T, String) {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let before = libbpf_rs::set_print(Some((PrintLevel::Info, |_, text| {
        LOG.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(&text);
    })));
    let returned = load();
    libbpf_rs::set_print(before);
    let log = LOG.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (returned, log)
}

/// Why the object `name` was not loaded, and what to do next.
pub fn explained(name: &str, error: &Error, log: &str) -> (String, String) {
    if log.contains("BEGIN PROG LOAD LOG") {
        let kept = keep(name, log);
        let lines: Vec<&str> = log
            .lines()
            .filter(|line| {
                !["libbpf:", "processed", "--"]
                    .iter()
                    .any(|start| line.starts_with(start))
            })
            .collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join(" / ");
        return (format!("the verifier refuses it ({error}): {last}"), kept);
    }
    let last = log.lines().last().unwrap_or_default().trim();
    let said = if last.is_empty() {
        String::new()
    } else {
        format!("; libbpf says: {last}")
    };
    (
        format!("{error}{said}"),
        "See `dmesg` for what the kernel says.".into(),
    )
}

/// Keeps the log in a new file that is ours alone; the error matters more than its log.
fn keep(name: &str, log: &str) -> String {
    let wanted = std::env::temp_dir().join(format!("kneepoint-{name}-verifier.log-XXXXXX"));
    let written = mkstemp(&wanted)
        .map_err(std::io::Error::from)
        .and_then(|(file, path)| File::from(file).write_all(log.as_bytes()).map(|()| path));
    match written {
        Ok(path) => format!("The whole log is in {}.", path.display()),
        Err(error) => format!("The whole log could not be kept: {error}."),
    }
}
