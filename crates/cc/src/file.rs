//! Algorithms of files: shared objects that somebody compiled against the headers of `cc/`, loaded into this process.
//!
//! One stays loaded until the process ends, as the built-in ones do, so that whoever runs it holds it as long as he likes.
//! Several versions of a file may be there at once: the digest of its sources tells them apart.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Acquire};

use crate::algorithm::Algorithm;
#[cfg(unix)]
pub use open::load;

#[cfg(unix)]
mod open;

/// Why a shared object is no algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("it cannot be loaded: {0}")]
    Unloadable(String),
    #[error("it has no {0}; expected the line CC_ALGORITHM(…) at its end, which describes it")]
    NoSymbol(&'static str),
    #[error(
        "it was compiled against other headers than this tcpknee has ({got:#x}; expected {expected:#x})"
    )]
    Layout { got: u32, expected: u32 },
    #[error("{0}")]
    Description(String),
}

/// Those that are loaded, the newest first: a list that a signal handler can walk.
static LOADED: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

struct Entry {
    algorithm: Algorithm,
    next: *mut Entry,
}

/// The algorithm that is called so and was made of that.
pub fn find(name: &str, digest: &str) -> Option<&'static Algorithm> {
    loaded().find(|known| known.name() == name && known.digest() == Some(digest))
}

/// All that are loaded.
pub(crate) fn loaded() -> impl Iterator<Item = &'static Algorithm> {
    let mut at = LOADED.load(Acquire).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: what `keep` put there stays, and nothing of it changes.
        let entry: &'static Entry = unsafe { at.as_ref()? };
        at = entry.next;
        Some(&entry.algorithm)
    })
}
