//! What can go wrong with traffic.

use std::io;

/// Why a side could not do its part.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed: what for, and why.
    #[error("cannot {what}: {source}")]
    System { what: String, source: io::Error },

    /// The running kernel lacks what the scenario asks for.
    #[error("{what}; this kernel {lacks}. {hint}")]
    Unsupported {
        what: String,
        lacks: String,
        hint: String,
    },

    /// A command of the scenario's cannot be run.
    #[error("flow.{group}.{role}: cannot run `{command}`: {why}")]
    Command {
        group: usize,
        role: &'static str,
        command: String,
        why: String,
    },

    /// A connection broke.
    #[error("flow {number} failed: {source}")]
    Connection { number: u32, source: io::Error },
}

impl Error {
    /// For `map_err` on a system call: what it was for.
    pub fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
        let what = what.into();
        move |source| Error::System {
            what,
            source: source.into(),
        }
    }
}
