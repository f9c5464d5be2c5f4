//! Loss that is not the queue's doing: one file each, one line each in [`KINDS`].

mod bernoulli;
mod gilbert_elliott;
mod periodic;
mod super_packets;
mod trace;

use serde::Serialize;
use std::fmt;
use std::sync::Arc;

pub use gilbert_elliott::Chain;
pub use trace::Sequence;

use knee_units::files::Files;
use knee_units::parse;
use knee_units::rng::Stream;
use knee_units::serialize_shared;
use knee_units::text::TextError;

/// Decides the fate of each packet that enters the path, in order; of a kind that [`LossSpec::takes_whole`], of each TSO packet.
pub trait Loss: Send {
    /// Is the next packet lost?
    fn lose(&mut self) -> bool;

    /// How many packets pass before one is lost, and true; or `most` and false, where none of so many is.
    fn spare(&mut self, most: u32) -> (u32, bool) {
        for spared in 0..most {
            if self.lose() {
                return (spared, true);
            }
        }
        (most, false)
    }
}

/// A scenario's loss, resolved: the kind's name and the long-run share lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LossSpec {
    /// A name of [`KINDS`].
    pub kind: &'static str,
    /// Share of packets lost in the long run, 0 ..= 1.
    pub share: f64,
    pub pattern: Pattern,
}

/// What a kind of loss knows besides the share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Pattern {
    /// The share is all.
    Share,
    /// Two states with a loss of their own.
    Chain(Chain),
    /// Packet by packet.
    Sequence(#[serde(serialize_with = "serialize_shared")] Arc<Sequence>),
}

impl LossSpec {
    pub const NONE: LossSpec = LossSpec {
        kind: "random",
        share: 0.0,
        pattern: Pattern::Share,
    };

    /// Reads `1.5%`, `periodic 0.1%`, `gilbert 1% burst 5`, `trace FILE`.
    ///
    /// # Errors
    /// The text is no loss, or its file has none.
    pub fn read(text: &str, files: Files<'_>) -> Result<LossSpec, TextError> {
        let named = text.starts_with(|c: char| c.is_alphabetic());
        let (name, rest) = match text.split_once(' ') {
            Some((name, rest)) if named => (name, rest.trim()),
            _ if named => (text, ""),
            _ => (KINDS[0].name, text),
        };
        let kind = find(name).ok_or_else(|| TextError::Kind(name.into()))?;
        (kind.read)(rest, files)
    }

    /// Is a TSO packet lost as a whole or not at all?
    pub fn takes_whole(&self) -> bool {
        self.kind == super_packets::KIND.name
    }

    /// `None` when nothing is ever lost, so that the caller can skip the call.
    pub fn build(&self, rng: Stream) -> Option<Box<dyn Loss>> {
        let kind = find(self.kind).expect("a loss spec names a kind of the registry");
        (self.share > 0.0).then(|| (kind.build)(self, rng))
    }

    /// Of a kind that knows the share alone.
    fn of_share(kind: &LossKind, text: &str) -> Result<LossSpec, TextError> {
        if text.is_empty() {
            return Err(TextError::Form);
        }
        Ok(LossSpec {
            kind: kind.name,
            share: share(text)?,
            pattern: Pattern::Share,
        })
    }
}

impl fmt::Display for LossSpec {
    /// As a scenario writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.pattern, self.kind) {
            (Pattern::Share, "random") => f.write_str(&percent(self.share)),
            (Pattern::Share, kind) => write!(f, "{kind} {}", percent(self.share)),
            (Pattern::Chain(chain), kind) => write!(f, "{kind} {chain}"),
            (Pattern::Sequence(sequence), kind) => write!(f, "{kind} {}", sequence.file),
        }
    }
}

/// Ten places and no trailing zeros: shares of the file come back as written.
pub fn percent(share: f64) -> String {
    let percent = format!("{:.10}", share * 100.0);
    format!("{}%", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// `1.5%`, at most 100 %.
fn share(text: &str) -> Result<f64, TextError> {
    let share = parse::share(text).map_err(TextError::Unit)?;
    if share > 1.0 {
        return Err(TextError::Form);
    }
    Ok(share)
}

/// A kind of loss that a scenario can name.
pub struct LossKind {
    pub name: &'static str,
    pub summary: &'static str,
    pub source: &'static str,
    /// How a scenario writes it.
    pub example: &'static str,
    /// Reads what stands behind the name.
    pub read: fn(&str, Files<'_>) -> Result<LossSpec, TextError>,
    /// From a spec of this kind, with a share above 0.
    pub build: fn(&LossSpec, Stream) -> Box<dyn Loss>,
}

/// Every kind of loss, in the order `knee list losses` prints them. The first
/// is meant when a scenario gives only a percentage.
pub const KINDS: &[&LossKind] = &[
    &bernoulli::KIND,
    &periodic::KIND,
    &super_packets::KIND,
    &gilbert_elliott::KIND,
    &trace::KIND,
];

/// The kind of that name.
pub fn find(name: &str) -> Option<&'static LossKind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}
