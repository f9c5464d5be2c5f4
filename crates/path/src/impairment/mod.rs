//! What happens to packets between the bottleneck and the far host besides a constant delay: one file each, one line
//! each in [`IMPAIRMENTS`].

mod aggregate;
mod duplicate;
mod jitter;
mod outage;
mod reorder;
mod setting;
#[cfg(test)]
mod testing;

use std::fmt;

pub use setting::{Form, ImpairmentSpec, Key, Value};

use knee_units::rng::Stream;
use serde::Serialize;

use crate::trace::Outage;

/// An impairment of one direction of a hop, at work.
pub trait Impairment: Send {
    /// Changes what becomes of a packet. Packets come in the order in which they leave the bottleneck.
    fn act(&mut self, passage: &mut Passage);
}

/// What becomes of a packet that has left the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it sets off for the far host.
    pub leaves_ns: u64,
    /// How long it takes from there.
    pub delay_ns: u64,
    /// How many of it arrive, one right behind the other; 0: it is lost.
    pub copies: u8,
}

impl Passage {
    pub fn arrives_ns(&self) -> u64 {
        self.leaves_ns + self.delay_ns
    }
}

/// What of a packet's passage an impairment changes. They act in this order, and those alike in the order of
/// [`IMPAIRMENTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The link itself. One with a rate does it in its own schedule; only behind one without packets need it.
    Link,
    /// When packets leave.
    Departure,
    /// How long they take.
    Delay,
    /// How many of them arrive.
    Arrival,
}

/// What an impairment is built from, besides its spec.
pub struct Setup {
    /// Its own draws.
    pub rng: Stream,
    /// The run's start on the engine's clock. A lab has packets before it.
    pub origin_ns: u64,
}

/// A kind of impairment that a scenario can ask for.
#[derive(Clone, Copy)]
pub struct ImpairmentKind {
    pub name: &'static str,
    pub summary: &'static str,
    pub source: &'static str,
    /// Keys of a hop. The first has the kind's name and says how much; its default says that the kind does not act.
    /// Of a kind that acts, reports show all of them.
    pub keys: &'static [Key],
    pub stage: Stage,
    /// Does it act on what travels against the data, too?
    pub both_ways: bool,
    /// Does chance decide? It draws from the stream `path.NAME`, and against the data from `path.ack_NAME`.
    pub is_random: bool,
    /// Do packets of the same delay arrive in the order in which they came?
    pub keeps_order: fn(&ImpairmentSpec) -> bool,
    /// The words that tc-netem(8) has for it, which stand behind its delay. `None`: netem has none, or does something
    /// else, as before the bottleneck in the place of behind it; a path on it is refused.
    pub netem: Option<fn(&ImpairmentSpec) -> String>,
    pub build: fn(&ImpairmentSpec, Setup) -> Box<dyn Impairment>,
}

impl fmt::Debug for ImpairmentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Every impairment, in the order in which `knee list impairments` prints them and scenarios have their keys.
pub const IMPAIRMENTS: &[&ImpairmentKind] = &[
    &jitter::KIND,
    &reorder::KIND,
    &duplicate::KIND,
    &aggregate::KIND,
    &outage::KIND,
];

/// The impairment of that name.
pub fn find(name: &str) -> Option<&'static ImpairmentKind> {
    IMPAIRMENTS.iter().copied().find(|kind| kind.name == name)
}

/// The impairments of a hop as a scenario has them: those that act.
#[derive(Clone, Debug, Serialize)]
pub struct Impairments(Vec<ImpairmentSpec>);

impl Impairments {
    /// Packets take their delay and nothing else.
    pub const NONE: Impairments = Impairments(Vec::new());

    /// From the value of each key.
    pub fn read(value: impl Fn(&Key) -> Value) -> Impairments {
        let specs = IMPAIRMENTS
            .iter()
            .map(|kind| ImpairmentSpec::read(kind, &value));
        Impairments(specs.filter(ImpairmentSpec::acts).collect())
    }

    /// And this one, if it acts.
    pub fn with(mut self, spec: ImpairmentSpec) -> Impairments {
        self.0.extend(Some(spec).filter(ImpairmentSpec::acts));
        self
    }

    pub fn iter(&self) -> std::slice::Iter<'_, ImpairmentSpec> {
        self.0.iter()
    }

    /// Does chance decide anything?
    pub fn are_random(&self) -> bool {
        self.iter().any(|spec| spec.kind.is_random)
    }

    /// When the link sends nothing, in either direction; in order of time.
    pub fn outages(&self) -> &[Outage] {
        let found = self.iter().find(|spec| spec.kind.name == outage::KIND.name);
        found.map_or(&[], |spec| spec.outages(outage::KIND.name))
    }
}
