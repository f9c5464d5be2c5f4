//! Every key of a scenario file: the one registry from which the parser checks
//! and the documentation prints.

mod axes;
mod impairments;
mod list;
mod path;

use std::sync::LazyLock;

use axes::{SAMPLE, ZIP};
use knee_transit::loss;
use knee_units::Nanos;
use knee_units::parse::{
    BUFFER_FORMS, BYTES_FORMS, DURATION_FORMS, FIGURE_FORMS, PER_SEC_FORMS, RATE_FORMS, SHARE_FORMS,
};
use list::{EXPECT, FLOW, PUBLISHED, RECEIVER, TITLE};
use path::{HOP, WHOLE};

use crate::workload::{self, sizes};
use crate::{Cell, FlowSpec, Host};

/// Most that a sysctl or socket option of type int can say.
pub(super) const INT_MAX: u64 = i32::MAX as u64;
pub(super) const GIB: u64 = 1 << 30;

pub(super) const fn us(n: u64) -> Nanos {
    Nanos::from_us(n)
}
pub(super) const fn ms(n: u64) -> Nanos {
    Nanos::from_ms(n)
}
pub(super) const fn secs(n: u64) -> Nanos {
    Nanos::from_secs(n)
}

/// The keys of workloads, and those of every flow.
static OF_FLOW: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let own = FlowSpec::KEYS.iter().copied();
    workload::keys().into_iter().chain(own).collect()
});

/// A key's description, for `knee list keys` and the docs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDoc {
    /// `path.rate`; flows and expectations stand for each of their tables: `flow.count`.
    pub path: String,
    /// What holds when the file does not say; `required` when it must.
    pub default: String,
    /// What may be written.
    pub forms: String,
    /// May a list stand here, as an axis of the matrix?
    pub axis: bool,
    pub doc: String,
    /// Where the default or the definition comes from.
    pub source: String,
}

/// Every key, in the order of the documentation.
pub fn keys() -> Vec<KeyDoc> {
    let sections = [
        Section::Top,
        Section::Path,
        Section::Sender,
        Section::Receiver,
        Section::Flow(0),
        Section::Zip(0),
        Section::Sample(0),
        Section::Expect(0),
        Section::Published(0),
    ];
    let doc = |section: Section, key: &Key| KeyDoc {
        path: format!("{}{}", section.doc_prefix(), key.name),
        default: match key.default {
            Default::Required(_) => "required".into(),
            Default::Value(text) | Default::Words(text) => text.into(),
        },
        forms: key.kind.forms(),
        axis: key.axis,
        doc: match key.workloads {
            [] => key.doc.into(),
            only => format!("{} (workload {})", key.doc, only.join(", ")),
        },
        source: key.source.into(),
    };
    sections
        .into_iter()
        .flat_map(|section| section.keys().map(move |key| doc(section, key)))
        .collect()
}

/// A table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Section {
    Top,
    Path,
    /// `[path]` of a file whose hops have tables of their own.
    Whole,
    /// `[[hop]]`.
    Hop(usize),
    Sender,
    Receiver,
    Flow(usize),
    Zip(usize),
    Sample(usize),
    Expect(usize),
    Published(usize),
}

impl Section {
    /// The keys that may stand in this table.
    pub(super) fn keys(self) -> impl Iterator<Item = &'static Key> {
        let (first, second): (&[Key], &[Key]) = match self {
            Section::Top => (TITLE, Cell::KEYS),
            Section::Path => (&HOP, WHOLE),
            Section::Whole => (WHOLE, &[]),
            Section::Hop(_) => (&HOP, &[]),
            Section::Sender => (Host::KEYS, &[]),
            Section::Receiver => (Host::KEYS, RECEIVER),
            Section::Flow(_) => (FLOW, &OF_FLOW),
            Section::Zip(_) => (ZIP, &[]),
            Section::Sample(_) => (SAMPLE, &[]),
            Section::Expect(_) => (EXPECT, &[]),
            Section::Published(_) => (PUBLISHED, &[]),
        };
        first.iter().chain(second)
    }

    /// `path.rtt`, `flow.0.count`.
    pub(super) fn path_of(self, key: &str) -> String {
        match self {
            Section::Hop(i) => format!("hop.{i}.{key}"),
            Section::Flow(i) => format!("flow.{i}.{key}"),
            Section::Zip(i) => format!("zip.{i}.{key}"),
            Section::Sample(i) => format!("sample.{i}.{key}"),
            Section::Expect(i) => format!("expect.{i}.{key}"),
            Section::Published(i) => format!("published.{i}.{key}"),
            other => format!("{}{key}", other.doc_prefix()),
        }
    }

    /// The line that begins the table; the file itself has none.
    pub(super) fn header(self) -> Option<&'static str> {
        match self {
            Section::Top => None,
            Section::Path | Section::Whole => Some("[path]"),
            Section::Hop(_) => Some("[[hop]]"),
            Section::Sender => Some("[sender]"),
            Section::Receiver => Some("[receiver]"),
            Section::Flow(_) => Some("[[flow]]"),
            Section::Zip(_) => Some("[[zip]]"),
            Section::Sample(_) => Some("[[sample]]"),
            Section::Expect(_) => Some("[[expect]]"),
            Section::Published(_) => Some("[[published]]"),
        }
    }

    pub(super) fn doc_prefix(self) -> &'static str {
        match self {
            Section::Top => "",
            Section::Path | Section::Whole => "path.",
            Section::Hop(_) => "hop.",
            Section::Sender => "sender.",
            Section::Receiver => "receiver.",
            Section::Flow(_) => "flow.",
            Section::Zip(_) => "zip.",
            Section::Sample(_) => "sample.",
            Section::Expect(_) => "expect.",
            Section::Published(_) => "published.",
        }
    }
}

/// The tables a file may hold besides top-level keys.
pub(super) const TABLES: &[&str] = &[
    "path",
    "hop",
    "sender",
    "receiver",
    "flow",
    "zip",
    "sample",
    "expect",
    "published",
];

/// What holds when a file does not set a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Default {
    /// The file must say; how it would.
    Required(&'static str),
    /// As if the file said so.
    Value(&'static str),
    /// Depends on other keys; the words say how.
    Words(&'static str),
}

#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) default: Default,
    /// May a list stand here?
    pub(super) axis: bool,
    pub(super) doc: &'static str,
    pub(super) source: &'static str,
    /// The workloads it belongs to, which the registry of workloads says; empty: it belongs to the table itself.
    pub(super) workloads: &'static [&'static str],
}

/// A key that may be an axis.
pub(super) const fn key(
    name: &'static str,
    kind: Kind,
    default: Default,
    doc: &'static str,
    source: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        axis: true,
        doc,
        source,
        workloads: &[],
    }
}

/// The same, and no axis.
pub(super) const fn fixed(key: Key) -> Key {
    Key { axis: false, ..key }
}

/// What kind of value a key takes, with its bounds (inclusive).
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Duration {
        min: Nanos,
        max: Nanos,
    },
    Rate,
    /// A rate, or a trace of one.
    LinkRate,
    Share,
    /// Times, as one text or as a list of them that is no axis.
    Outages,
    RttChanges,
    /// One hop or several in a row, counted from 1.
    Hops,
    /// Keys that have lists.
    Keys,
    /// Rows of a table, counted from 1.
    Rows,
    Bytes {
        min: u64,
        max: u64,
    },
    Count {
        min: u64,
        max: u64,
    },
    CountOrUnlimited {
        min: u64,
        max: u64,
    },
    Choice(&'static [u64]),
    Flag,
    Loss,
    /// Events per second.
    PerSec {
        min: f64,
        max: f64,
    },
    /// A distribution of sizes.
    Sizes,
    Buffer,
    /// A name of a registry: what it is called, and the names.
    Name(&'static str, fn() -> Vec<&'static str>),
    Algorithm,
    /// A title, a condition, a source: not empty, on one line.
    Line,
    /// A quantity of any kind as others printed it, or a ratio.
    Figure,
    /// A claim's id.
    Id,
    /// A name that expectations can use.
    Identifier,
}

impl Kind {
    /// Does a list belong to the value, and make no axis?
    pub(super) fn takes_list(&self) -> bool {
        matches!(self, Kind::Outages | Kind::RttChanges | Kind::Keys)
    }

    /// What may be written, as errors and help say it.
    pub(super) fn forms(&self) -> String {
        match self {
            Kind::Duration { min, max } => format!("{DURATION_FORMS} from {min} to {max}"),
            Kind::Rate => format!("{RATE_FORMS}, up to 10Tbit/s"),
            Kind::LinkRate => {
                format!("{RATE_FORMS}, up to 10Tbit/s, or \"trace cellular\" or \"trace FILE.up\"")
            }
            Kind::Share => format!("{SHARE_FORMS} up to 100%"),
            Kind::Outages => {
                "an outage such as \"10s for 2s\", or a list of such, in order of time".into()
            }
            Kind::RttChanges => {
                "a change such as \"20s to 80ms\", or a list of such, in order of time".into()
            }
            Kind::Hops => {
                "a hop such as \"2\", or hops in a row such as \"1..3\", from 1 on".into()
            }
            Kind::Keys => {
                "a list of two keys or more whose values are lists, such as [\"path.rate\", \"path.rtt\"]"
                    .into()
            }
            Kind::Rows => "rows of the table such as \"1..500\", from 1 on".into(),
            Kind::Bytes { min, max } => format!("{BYTES_FORMS} from {min}B to {max}B"),
            Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
            Kind::CountOrUnlimited { min, max } => {
                format!("a whole number from {min} to {max}, or \"unlimited\"")
            }
            Kind::Choice(values) => {
                let values: Vec<String> = values.iter().map(u64::to_string).collect();
                format!("one of {}", values.join(", "))
            }
            Kind::Flag => "true or false".into(),
            Kind::Loss => {
                let kinds = loss::KINDS[1..].iter().map(|kind| kind.example);
                format!(
                    "{SHARE_FORMS} up to 100%, or a kind of loss: {}",
                    quoted_list(kinds.collect())
                )
            }
            Kind::PerSec { min, max } => format!("{PER_SEC_FORMS} from {min}/s to {max}/s"),
            Kind::Sizes => {
                let kinds = sizes::SIZES.iter().map(|kind| kind.example);
                format!("a distribution: {}", quoted_list(kinds.collect()))
            }
            Kind::Buffer => BUFFER_FORMS.into(),
            Kind::Name(what, names) => format!("a {what}: {}", quoted_list(names())),
            Kind::Algorithm => "an algorithm's name such as \"cubic\"".into(),
            Kind::Figure => FIGURE_FORMS.into(),
            Kind::Line => "text on one line, in quotes".into(),
            Kind::Id => "an id of lower-case letters, digits, \"-\" and \".\", in quotes".into(),
            Kind::Identifier => {
                "a name of letters, digits and \"_\" that begins with a letter, in quotes".into()
            }
        }
    }
}

fn quoted_list(names: Vec<&str>) -> String {
    names
        .iter()
        .map(|name| format!("\"{name}\""))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Names of the kinds of loss, which stand in a value and not in a key of their own.
pub(super) fn loss_names() -> Vec<&'static str> {
    loss::KINDS.iter().map(|kind| kind.name).collect()
}

/// Names of the distributions of sizes.
pub(super) fn size_names() -> Vec<&'static str> {
    sizes::SIZES.iter().map(|kind| kind.name).collect()
}
