//! What an import found: counts that every importer has, and those of one tool,
//! each with what it means and how it is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Lines, packets or documents not understood that are kept to be shown.
const SHOWN: usize = 5;

/// What was not understood: its file, its number in it where it has one, and what
/// may be shown of it.
pub type First = (PathBuf, Option<u64>, String);

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of all files so far, once decompressed.
    pub bytes: u64,
    pub rows: u64,
    /// Lines, packets or documents that are not understood.
    pub not_understood: u64,
}

/// What an import found, with `M` that only one tool's files tell.
#[derive(Clone, Debug, Default)]
pub struct Report<M = ()> {
    /// Bytes of all files, once decompressed.
    pub bytes: u64,
    /// Lines, packets or documents: [`Kind::unit`](super::Kind::unit) says which.
    pub units: u64,
    pub rows: u64,
    pub not_understood: u64,
    /// The first of those not understood.
    pub first: Vec<First>,
    pub more: M,
    /// The current file, and its units so far.
    pub(super) file: PathBuf,
    pub(super) unit: u64,
}

impl<M> Report<M> {
    /// Begins a file.
    pub(super) fn begin(&mut self, path: &Path) {
        self.file = path.into();
        self.unit = 0;
    }

    #[inline]
    pub(super) fn count(&mut self) {
        self.unit += 1;
        self.units += 1;
    }

    /// Counts the current line or packet as not understood.
    #[cold]
    pub(super) fn not_understood(&mut self, shown: impl FnOnce() -> String) {
        self.not_understood_at(self.unit, shown);
    }

    /// Counts an earlier line as not understood.
    #[cold]
    pub(super) fn not_understood_at(&mut self, unit: u64, shown: impl FnOnce() -> String) {
        self.not_understood += 1;
        self.show(Some(unit), shown);
    }

    /// Keeps one of the first that are not understood.
    pub(super) fn show(&mut self, number: Option<u64>, shown: impl FnOnce() -> String) {
        if self.first.len() < SHOWN {
            self.first.push((self.file.clone(), number, shown()));
        }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            bytes: self.bytes,
            rows: self.rows,
            not_understood: self.not_understood,
        }
    }
}

impl<M: More> Report<M> {
    /// The same for whoever does not know the tool: values in the order of
    /// [`More::COUNTS`].
    pub(super) fn with_values(&self) -> Report<Vec<Value>> {
        Report {
            bytes: self.bytes,
            units: self.units,
            rows: self.rows,
            not_understood: self.not_understood,
            first: self.first.clone(),
            more: self.more.values(),
            file: PathBuf::new(),
            unit: 0,
        }
    }
}

/// A count of a report: its name, what it counts, and how it is told where it is
/// not 0.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    pub name: &'static str,
    pub doc: &'static str,
    /// The sentence that warns of it; "": nothing to warn of. `{count}` is how many,
    /// `{what}` the word that is counted, a sentence for each word; `{list}` are all
    /// words with their counts, the most frequent first.
    pub doubt: &'static str,
    /// What is said of it where no row was found; "": nothing. `{count}` is how
    /// many, `{words}` are the words counted, `{found}` the lines, packets or
    /// documents.
    pub alone: &'static str,
}

impl Count {
    pub(super) const fn new(name: &'static str, doc: &'static str) -> Count {
        Count {
            name,
            doc,
            doubt: "",
            alone: "",
        }
    }

    pub(super) const fn doubt(self, doubt: &'static str) -> Count {
        Count { doubt, ..self }
    }

    pub(super) const fn alone(self, alone: &'static str) -> Count {
        Count { alone, ..self }
    }
}

/// The value of a [`Count`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    /// How often each word was seen.
    Words(Vec<(String, u64)>),
}

impl From<&u64> for Value {
    fn from(number: &u64) -> Value {
        Value::Number(*number)
    }
}

impl<W: ToString> From<&BTreeMap<W, u64>> for Value {
    fn from(words: &BTreeMap<W, u64>) -> Value {
        let words = words.iter().map(|(word, count)| (word.to_string(), *count));
        Value::Words(words.collect())
    }
}

/// Counts of one tool's files.
pub trait More: Default {
    const COUNTS: &'static [Count];
    /// In the order of [`COUNTS`](More::COUNTS).
    fn values(&self) -> Vec<Value>;
}

impl More for () {
    const COUNTS: &'static [Count] = &[];

    fn values(&self) -> Vec<Value> {
        Vec::new()
    }
}

/// Declares the counts of one tool's files: a struct whose fields are named as the
/// report names them, each with what it counts and how it is told.
macro_rules! counts {
    (
        $(#[$meta:meta])*
        $name:ident {
            $($count:ident: $type:ty, $doc:literal $(, $how:ident: $text:literal)*;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        pub struct $name {
            $(#[doc = $doc] pub $count: $type,)*
        }

        impl $crate::More for $name {
            const COUNTS: &'static [$crate::Count] = &[
                $($crate::Count::new(stringify!($count), $doc)$(.$how($text))*,)*
            ];

            fn values(&self) -> Vec<$crate::Value> {
                vec![$((&self.$count).into(),)*]
            }
        }
    };
}
pub(crate) use counts;
