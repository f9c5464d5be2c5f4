//! Every key of a scenario file: the one registry from which the parser checks
//! and the documentation prints.

mod axes;
mod impairments;
mod list;
mod path;

use std::sync::LazyLock;

use crate::key::{Default, Engines, Key};
use axes::{SAMPLE, ZIP};
use list::{EXPECT, FLOW, PUBLISHED, RECEIVER, TITLE};
use path::{HOP, WHOLE};

use crate::cell::{Cell, FlowSpec, Host};
use crate::workload;

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
    /// The engines in which it has an effect.
    pub engines: String,
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
        engines: section.engines(key).listed(),
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

    /// Where a key of it has an effect. Two hosts of the user's, and the path between them, are as they are.
    fn engines(self, key: &Key) -> Engines {
        let is_set_up = matches!(self, Section::Path | Section::Sender | Section::Receiver);
        Engines {
            hosts: key.engines.hosts && !is_set_up,
            ..key.engines
        }
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
