//! What can go wrong with the kernel engine.

use std::io;

use knee_units::parse::UnitError;

/// Why something could not be done on the real kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// A system call failed: what for, and why.
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },

    /// A network namespace of an option cannot be entered.
    #[error(
        "netns: got \"{name}\", which could not be entered: {source}. {}",
        entering(source)
    )]
    Netns { name: String, source: io::Error },

    /// Namespaces are not available.
    #[error(
        "a lab needs its own {what}, and the kernel refuses them: {source}. {hint} \
         See user_namespaces(7) and namespaces(7)"
    )]
    NoNamespaces {
        what: &'static str,
        source: io::Error,
        hint: String,
    },

    /// `/dev/net/tun` is not available.
    #[error(
        "a lab needs /dev/net/tun, which cannot be used: {source}. As root: `modprobe tun`; \
         if it is there, its permissions should be 0666; in a container, pass the device in \
         (`--device /dev/net/tun`)"
    )]
    NoTun { source: io::Error },

    /// The running kernel lacks what the scenario asks for.
    #[error("{what}; this kernel {lacks}. {hint}")]
    Unsupported {
        what: String,
        lacks: String,
        hint: String,
    },

    /// A process of the lab ended before its work was done.
    #[error("the lab's {role} {how} before the run's end; nothing of this repetition is kept")]
    ChildDied { role: String, how: String },

    /// A process of the lab failed and said why.
    #[error("the lab's {role}: {message}")]
    Child { role: String, message: String },

    /// A command of a scenario cannot be run: which, and why.
    #[error("{0}")]
    Command(String),

    /// An algorithm cannot be put into the kernel.
    #[error("cannot load \"{name}\" into the kernel: {why}. {hint}")]
    Load {
        name: String,
        why: String,
        hint: String,
    },

    /// An algorithm cannot be taken out of the kernel.
    #[error("cannot unload \"{name}\": {why}. {hint}")]
    Unload {
        name: String,
        why: String,
        hint: String,
    },

    /// Tracepoints cannot be looked on at.
    #[error("cannot trace: {why}. {hint}")]
    Trace { why: String, hint: String },

    /// Connections cannot be given algorithms.
    #[error("cannot assign: {why}. {hint}")]
    Assign { why: String, hint: String },

    /// An invalid option of a recording.
    #[error("{what}: got \"{got}\"; expected {expected}.")]
    Option {
        what: &'static str,
        got: String,
        expected: String,
    },

    /// An option that is no length of time or amount of data.
    #[error("{what}: {error}")]
    Quantity {
        what: &'static str,
        error: UnitError,
    },

    /// A filter asks for what the caller is not told.
    #[error(
        "mark: the kernel tells the marks of sockets to CAP_NET_ADMIN only, which this process \
         does not have: the filter would match nothing. Run it as root, give it the capability \
         (a service: AmbientCapabilities=CAP_NET_ADMIN), or leave the filter out"
    )]
    MarksNotTold,

    /// A file of a recording cannot be written.
    #[error(transparent)]
    Segment(#[from] knee_store::segment::Error),

    /// The caller asked to stop.
    #[error("the repetition was cancelled before its end")]
    Cancelled,
}

fn entering(source: &io::Error) -> &'static str {
    if source.kind() == io::ErrorKind::PermissionDenied {
        "Run it as root, or give it CAP_SYS_ADMIN (capsh, systemd's AmbientCapabilities)"
    } else {
        "`ip netns` lists those with a name; a number is that of a process in it"
    }
}

impl KernelError {
    /// For `map_err` on a system call: what it was for.
    pub fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> KernelError {
        let what = what.into();
        move |source| KernelError::System {
            what,
            source: source.into(),
        }
    }

    /// Would another kernel or another system's settings do?
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            KernelError::NoNamespaces { .. }
                | KernelError::NoTun { .. }
                | KernelError::Unsupported { .. }
                | KernelError::Load { .. }
                | KernelError::Trace { .. }
                | KernelError::Assign { .. }
                | KernelError::MarksNotTold
        )
    }
}
