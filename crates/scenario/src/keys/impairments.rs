//! The keys of impairments, as the other keys of a hop.

use crate::key::kind::{self, Kind};
use crate::key::{Default, Key, fixed};
use knee_path::impairment::{self, Form, IMPAIRMENTS};
use knee_units::Nanos;

/// Those of every impairment, in the order of their list.
pub(super) fn keys() -> impl Iterator<Item = Key> {
    IMPAIRMENTS.iter().flat_map(|kind| kind.keys).map(key)
}

fn key(key: &'static impairment::Key) -> Key {
    // As long as the registry: for ever.
    let kind: &'static dyn Kind = match key.form {
        Form::Time(max) => Box::leak(Box::new(kind::Duration {
            min: Nanos::ZERO,
            max,
        })),
        Form::Share => &kind::Share,
        Form::Flag => &kind::Flag,
        Form::Word(what, words) => Box::leak(Box::new(kind::Name(what, words))),
        Form::Outages => &kind::Outages,
    };
    let default = match key.default.to_string() {
        none if none.is_empty() => Default::Words("none"),
        text => Default::Value(text.leak()),
    };
    let made = crate::key::key(key.name, kind, default, key.doc, key.source);
    match kind.takes_list() {
        true => fixed(made),
        false => made,
    }
}
