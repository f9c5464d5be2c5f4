//! A setting of a host, in one form whatever it is of.

use std::borrow::Cow;
use std::sync::Arc;

/// A setting as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub place: Place,
    /// What a number counts; empty: it is none, or its source does not say.
    pub unit: &'static str,
    /// Its text, or why it is not known.
    pub value: Result<String, String>,
}

/// Where a setting is found. What does not apply is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// `sysctl`, `link`, `driver`, `offload`, `coalesce`, `ring`, `channels`, `qdisc`.
    pub kind: &'static str,
    pub interface: Arc<str>,
    /// Of a qdisc, as tc prints it; so is `parent`.
    pub handle: Arc<str>,
    pub parent: Arc<str>,
    /// Empty: all of the kind at this place.
    pub name: Cow<'static, str>,
}

impl Setting {
    /// One of a device.
    pub fn of_device(
        kind: &'static str,
        interface: &Arc<str>,
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        value: impl ToString,
    ) -> Setting {
        Setting {
            place: Place {
                kind,
                interface: Arc::clone(interface),
                name: name.into(),
                ..Place::default()
            },
            unit,
            value: Ok(value.to_string()),
        }
    }

    /// All of a kind, which cannot be read.
    pub fn unread(kind: &'static str, why: String) -> Setting {
        Setting {
            place: Place {
                kind,
                ..Place::default()
            },
            unit: "",
            value: Err(why),
        }
    }
}

/// As ethtool and tc print it.
pub fn on_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}
