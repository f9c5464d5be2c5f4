//! The keys of impairments, as the other keys of a hop.

use crate::key::{Default, Key, Kind, fixed};
use knee_path::impairment::{self, Form, IMPAIRMENTS};
use knee_units::Nanos;

/// Those of every impairment, in the order of their list.
pub(super) fn keys() -> impl Iterator<Item = Key> {
    IMPAIRMENTS.iter().flat_map(|kind| kind.keys).map(key)
}

fn key(key: &'static impairment::Key) -> Key {
    let kind = match key.form {
        Form::Time(max) => Kind::Duration {
            min: Nanos::ZERO,
            max,
        },
        Form::Share => Kind::Share,
        Form::Flag => Kind::Flag,
        Form::Word(what, words) => Kind::Name(what, words),
        Form::Outages => Kind::Outages,
    };
    let default = match key.default.to_string() {
        none if none.is_empty() => Default::Words("none"),
        // As long as the registry: for ever.
        text => Default::Value(text.leak()),
    };
    let made = crate::key::key(key.name, kind, default, key.doc, key.source);
    match kind.takes_list() {
        true => fixed(made),
        false => made,
    }
}
