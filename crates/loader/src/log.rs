//! What libbpf and the verifier say while an object is loaded.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use knee_store::folder::{self, Folder, Readers};
use libbpf_rs::{Error, PrintLevel};

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
        let lines: Vec<&str> = log
            .lines()
            .filter(|line| {
                !["libbpf:", "processed", "--"]
                    .iter()
                    .any(|start| line.starts_with(start))
            })
            .collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join(" / ");
        return (
            format!("the verifier refuses it ({error}): {last}"),
            match keep(name, log) {
                Ok(file) => format!("The whole log is in {}.", file.display()),
                // The error matters more than its log.
                Err(error) => format!("The whole log cannot be kept: {error}"),
            },
        );
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

/// Keeps the log, where the user may write.
fn keep(name: &str, log: &str) -> Result<PathBuf, folder::Error> {
    let folder = Folder::open(&std::env::temp_dir())?;
    let beginning = format!("tcpknee-{name}-");
    let (file, mut to) = folder.create_between(&beginning, ".verifier.log", Readers::Own)?;
    let path = folder.join(&file);
    to.write_all(log.as_bytes())
        .map_err(|source| folder::Error::Io {
            path: path.clone(),
            what: "write",
            source,
        })?;
    Ok(path)
}
