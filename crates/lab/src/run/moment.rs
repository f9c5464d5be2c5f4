//! What a run tells whoever watches it.

use knee_units::Nanos;

/// A moment of a run, in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The hosts are there: inodes of their network namespaces.
    Built { sender: u64, receiver: u64 },
    /// Now and then: the time reached.
    At(Nanos),
    /// The warm-up is over: what counts begins.
    Warm,
    /// The duration is over, or all work is done; nothing has been taken down yet.
    Over,
}
