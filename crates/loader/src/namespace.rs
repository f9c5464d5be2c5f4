//! Work in another network namespace.

use std::fs::File;
use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, setns};

/// Runs `work` in a network namespace, on a thread of its own: only threads enter namespaces.
///
/// # Errors
/// The namespace cannot be opened or entered, or the error of `work`.
pub fn within<T: Send + 'static>(
    namespace: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let file = File::open(namespace)?;
    std::thread::spawn(move || {
        setns(file, CloneFlags::CLONE_NEWNET)?;
        work()
    })
    .join()
    .unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace failed")))
}
