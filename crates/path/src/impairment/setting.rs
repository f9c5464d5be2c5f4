//! The keys that impairments list of themselves, and their values.

use std::borrow::Cow;
use std::fmt;

use knee_units::Nanos;
use serde::{Serialize, Serializer};

use super::ImpairmentKind;
use crate::loss::percent;
use crate::trace::Outage;

/// A key of a hop, as its impairment describes it.
pub struct Key {
    pub name: &'static str,
    pub form: Form,
    pub default: Value,
    /// Another value, which acts.
    pub example: Value,
    pub doc: &'static str,
    /// Where the default or the definition comes from.
    pub source: &'static str,
}

/// What a key takes.
#[derive(Clone, Copy)]
pub enum Form {
    /// A length of time, at most so long.
    Time(Nanos),
    Share,
    Flag,
    /// One of several words: what they are called, and the words.
    Word(&'static str, fn() -> Vec<&'static str>),
    Outages,
}

/// What a key has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Value {
    Time(Nanos),
    Share(f64),
    Flag(bool),
    Word(&'static str),
    /// In order of time, apart from each other.
    Outages(Cow<'static, [Outage]>),
}

impl fmt::Display for Value {
    /// As a scenario writes it, without quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Time(time) => time.fmt(f),
            Value::Share(share) => f.write_str(&percent(*share)),
            Value::Flag(flag) => flag.fmt(f),
            Value::Word(word) => f.write_str(word),
            Value::Outages(outages) => {
                let texts: Vec<String> = outages.iter().map(Outage::to_string).collect();
                f.write_str(&texts.join(", "))
            }
        }
    }
}

/// An impairment of a hop as a scenario has it.
#[derive(Clone, Debug, Serialize)]
pub struct ImpairmentSpec {
    #[serde(serialize_with = "by_name")]
    pub kind: &'static ImpairmentKind,
    /// In the order of its keys.
    values: Box<[Value]>,
}

fn by_name<S: Serializer>(kind: &&ImpairmentKind, to: S) -> Result<S::Ok, S::Error> {
    kind.name.serialize(to)
}

/// Getters of a key's value, which its form guarantees to be of the kind.
macro_rules! getters {
    ($($get:ident: $variant:ident($value:ident) => $type:ty = $out:expr;)*) => {$(
        /// # Panics
        /// When the kind has no such key, or it takes something else.
        pub fn $get(&self, name: &str) -> $type {
            match self.value(name) {
                Value::$variant($value) => $out,
                other => panic!("{}: {name} is {other}", self.kind.name),
            }
        }
    )*};
}

impl ImpairmentSpec {
    /// From the value of each key.
    pub fn read(kind: &'static ImpairmentKind, value: impl Fn(&Key) -> Value) -> ImpairmentSpec {
        ImpairmentSpec {
            kind,
            values: kind.keys.iter().map(value).collect(),
        }
    }

    /// With these values, and the defaults of the other keys.
    pub fn new(kind: &'static ImpairmentKind, set: &[(&str, Value)]) -> ImpairmentSpec {
        ImpairmentSpec::read(kind, |key| {
            let found = set.iter().find(|(name, _)| *name == key.name);
            found.map_or_else(|| key.default.clone(), |(_, value)| value.clone())
        })
    }

    /// With the example of every key.
    pub fn example(kind: &'static ImpairmentKind) -> ImpairmentSpec {
        ImpairmentSpec::read(kind, |key| key.example.clone())
    }

    /// Does it change anything?
    pub fn acts(&self) -> bool {
        self.values[0] != self.kind.keys[0].default
    }

    pub fn keeps_order(&self) -> bool {
        (self.kind.keeps_order)(self)
    }

    /// Each key with its value, in the order of the kind.
    pub fn entries(&self) -> impl Iterator<Item = (&'static Key, &Value)> {
        self.kind.keys.iter().zip(&self.values)
    }

    getters! {
        time: Time(time) => Nanos = *time;
        share: Share(share) => f64 = *share;
        flag: Flag(flag) => bool = *flag;
        word: Word(word) => &'static str = word;
        outages: Outages(outages) => &[Outage] = outages;
    }

    fn value(&self, name: &str) -> &Value {
        let found = self.entries().find(|(key, _)| key.name == name);
        let found = found.unwrap_or_else(|| panic!("{} has no key {name:?}", self.kind.name));
        found.1
    }
}
