//! An importer described: what it reads, into which tables, by which options.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use knee_store::Anonymiser;
use knee_tables::{Column, Table};
use knee_units::parse;
use serde_json::Value as Json;

use super::counts::Count;
use super::reading::AnyImport;

/// An importer that `knee import` can name.
pub struct Kind {
    /// Name of the subcommand; the Python function is `import_NAME`.
    pub name: &'static str,
    /// One line for `knee import --help`.
    pub summary: &'static str,
    /// Paragraphs for `knee import NAME --help`; the first is a sentence.
    pub about: &'static str,
    /// What the docs page says besides, in Markdown.
    pub page: &'static str,
    /// Commands that the docs page shows.
    pub examples: &'static [&'static str],
    pub tables: &'static [TableKind],
    pub options: &'static [Opt],
    /// What its files consist of, in the plural: lines, packets or documents.
    pub unit: &'static str,
    /// What one row of its first table is, in words: "no ROW in it" is said of a
    /// file without one.
    pub row: &'static str,
    /// What should have been in such a file.
    pub expected: &'static str,
    /// The first line of output: `{COUNT:noun}` is a count of the report with its
    /// noun.
    pub told: &'static str,
    /// Counts of its report besides those of every importer.
    pub counts: &'static [Count],
    /// A file that it reads without a word not understood.
    pub sample: Sample,
    /// Does a file that begins so look like its own, as it reads it where no option
    /// is given? As text it has no byte-order mark any more.
    pub looks: fn(&[u8]) -> bool,
    pub build: Build,
}

/// Makes an importer of what was asked; the error is a sentence for the user, which
/// begins with the name of the option.
pub type Build = fn(&Given) -> Result<Box<dyn AnyImport>, String>;

/// A table that an importer fills.
pub struct TableKind {
    pub name: &'static str,
    /// Its name in the result of the Python function, where there are several.
    pub short: &'static str,
    /// What a row of it is.
    pub rows: &'static str,
    pub columns: Columns,
}

/// Where the columns of a table are described.
#[derive(Clone, Copy)]
pub enum Columns {
    /// The table is the importer's own, or shared among importers.
    Own(fn() -> Vec<Column>),
    /// The table is one that `knee record` writes.
    Recorded(fn() -> Vec<Column>),
}

impl Columns {
    /// Those of a table of the importer's.
    pub(super) const fn own<T: Table>() -> Columns {
        Columns::Own(|| T::COLUMNS.to_vec())
    }

    pub fn described(self) -> Vec<Column> {
        match self {
            Columns::Own(columns) | Columns::Recorded(columns) => columns(),
        }
    }
}

/// An option of an importer: `--NAME` on the command line, `NAME` in Python.
pub struct Opt {
    pub name: &'static str,
    pub takes: Takes,
    /// The value where none is given; "": none.
    pub default: &'static str,
    pub help: &'static str,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A text, with the word that help shows for it.
    Text(&'static str),
    /// A text file, which is read; with what it should be.
    File(&'static str),
    /// A length of time with its unit, more than 0.
    Time,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Yes where it is given.
    Flag,
}

/// A file for tests and for the search for bytes that break a parser.
#[derive(Clone, Copy, Debug)]
pub enum Sample {
    /// The file's name and text.
    Text(&'static str, &'static str),
    /// Its path within this crate.
    File(&'static str),
}

impl Sample {
    /// The file's name and bytes. Only where the sources are at hand.
    ///
    /// # Panics
    /// They are not.
    pub fn read(self) -> (PathBuf, Vec<u8>) {
        match self {
            Sample::Text(name, text) => (name.into(), text.into()),
            Sample::File(path) => {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
                let bytes = fs::read(&path);
                let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                (path, bytes)
            }
        }
    }
}

/// What was asked of an importer: its options, checked.
pub struct Given {
    pub anonymiser: Anonymiser,
    kind: &'static str,
    values: BTreeMap<&'static str, Value>,
}

/// An option's value; `None` in [`Given`]: the option is not given, and has no
/// default.
enum Value {
    Not,
    Text(String),
    File(PathBuf, String),
    Time(i64),
    Flag(bool),
}

impl Kind {
    /// Checks the options asked for: a JSON value by name. Null stands for an
    /// option that was not asked for.
    ///
    /// # Errors
    /// A sentence that begins with the option's name.
    pub fn given(
        &self,
        anonymiser: Anonymiser,
        asked: &serde_json::Map<String, Json>,
    ) -> Result<Given, String> {
        if let Some(unknown) = (asked.keys()).find(|name| self.option(name).is_none()) {
            let known: Vec<_> = self.options.iter().map(|option| option.name).collect();
            let known = match known[..] {
                [] => "none".to_owned(),
                _ => known.join(", "),
            };
            let name = self.name;
            return Err(format!(
                "{unknown}: {name} has no such option; expected {known}."
            ));
        }
        let values = self.options.iter().map(|option| {
            let asked = asked.get(option.name).filter(|value| !value.is_null());
            Ok((option.name, option.value(asked)?))
        });
        Ok(Given {
            anonymiser,
            kind: self.name,
            values: values.collect::<Result<_, String>>()?,
        })
    }

    fn option(&self, name: &str) -> Option<&Opt> {
        self.options.iter().find(|option| option.name == name)
    }
}

impl Opt {
    fn value(&self, asked: Option<&Json>) -> Result<Value, String> {
        let name = self.name;
        if self.takes == Takes::Flag {
            return match asked {
                None => Ok(Value::Flag(false)),
                Some(Json::Bool(flag)) => Ok(Value::Flag(*flag)),
                Some(other) => Err(format!("{name}: got {other}; expected true or false.")),
            };
        }
        let text = match asked {
            Some(Json::String(text)) => text.as_str(),
            Some(other) => return Err(format!("{name}: got {other}; expected text.")),
            None if self.default.is_empty() => return Ok(Value::Not),
            None => self.default,
        };
        Ok(match self.takes {
            Takes::Flag | Takes::Text(_) => Value::Text(text.to_owned()),
            Takes::Choice(words) if words.contains(&text) => Value::Text(text.to_owned()),
            Takes::Choice(words) => {
                let (last, others) = words.split_last().expect("a choice is among words");
                let others = others.join(", ");
                return Err(format!(
                    "{name}: got \"{text}\"; expected {others} or {last}."
                ));
            }
            Takes::File(what) => match fs::read_to_string(text) {
                Ok(read) => Value::File(text.into(), read),
                Err(error) => {
                    let why = error.to_string();
                    let why = why.split(" (os error").next().unwrap_or(&why);
                    return Err(format!("{text}: cannot be read: {why}. Give {what}."));
                }
            },
            Takes::Time => match parse::duration(text) {
                Err(error) => return Err(format!("{name}: {error}")),
                Ok(time) if time.0 == 0 => {
                    return Err(format!(
                        "{name}: got \"{text}\"; expected more than nothing, such as 100ms."
                    ));
                }
                Ok(time) => Value::Time(i64::try_from(time.0).unwrap_or(i64::MAX)),
            },
        })
    }
}

impl Given {
    /// Value of an option that takes a text or a choice.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Path and text of the file that an option names.
    pub fn file(&self, name: &str) -> Option<(&Path, &str)> {
        match self.value(name) {
            Value::File(path, text) => Some((path, text)),
            _ => None,
        }
    }

    /// A length of time in nanoseconds.
    pub fn time_ns(&self, name: &str) -> Option<i64> {
        match self.value(name) {
            Value::Time(ns) => Some(*ns),
            _ => None,
        }
    }

    pub fn flag(&self, name: &str) -> bool {
        matches!(self.value(name), Value::Flag(true))
    }

    fn value(&self, name: &str) -> &Value {
        let value = self.values.get(name);
        value.unwrap_or_else(|| panic!("{} declares no option {name}", self.kind))
    }
}

/// Lines of a file's beginning that are looked at.
const LINES: usize = 64;

/// The first lines of a file's beginning.
pub(super) fn first_lines(begin: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = begin.split(|byte| *byte == b'\n').take(LINES);
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Is that text in a file's beginning?
pub(super) fn holds(begin: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(begin, text).is_some()
}

/// The option of importers whose files do not say of which host they are.
pub(super) const HOST: Opt = Opt {
    name: "host",
    takes: Takes::Text("NAME"),
    default: "",
    help: "Fills the column host.",
};

/// The option of importers whose times may lack a zone.
pub(super) const ZONE: Opt = Opt {
    name: "zone",
    takes: Takes::Text("+HH:MM"),
    default: "",
    help: "Of times that do not say theirs; by default UTC.",
};
