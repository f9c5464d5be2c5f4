//! Loss that is not the queue's doing: one file each, one line each in [`KINDS`].

mod bernoulli;
mod periodic;

use crate::rng::Stream;

/// Decides the fate of each packet that enters the path, in order.
pub trait Loss: Send {
    /// Is the next packet lost?
    fn lose(&mut self) -> bool;
}

/// A scenario's loss, resolved: the kind's name and the long-run share lost.
#[derive(Clone, Debug, PartialEq)]
pub struct LossSpec {
    /// A name of [`KINDS`].
    pub kind: &'static str,
    /// Share of packets lost in the long run, 0 ..= 1.
    pub share: f64,
}

impl LossSpec {
    pub const NONE: LossSpec = LossSpec {
        kind: "random",
        share: 0.0,
    };

    /// `None` when nothing is ever lost, so that the caller can skip the call.
    pub fn build(&self, rng: Stream) -> Option<Box<dyn Loss>> {
        let kind = find(self.kind).expect("a loss spec names a kind of the registry");
        (self.share > 0.0).then(|| (kind.build)(self.share, rng))
    }
}

/// A kind of loss that a scenario can name.
pub struct LossKind {
    pub name: &'static str,
    pub summary: &'static str,
    pub source: &'static str,
    pub build: fn(f64, Stream) -> Box<dyn Loss>,
}

/// Every kind of loss, in the order `knee list losses` prints them. The first
/// is meant when a scenario gives only a percentage.
pub const KINDS: &[&LossKind] = &[&bernoulli::KIND, &periodic::KIND];

/// The kind of that name.
pub fn find(name: &str) -> Option<&'static LossKind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}
