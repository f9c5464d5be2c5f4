//! What can go wrong with the kernel engine.

/// Why something could not be done on the real kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A system call failed: what for, and why.
    #[error("{what}: {source}")]
    System {
        what: String,
        source: std::io::Error,
    },
}
