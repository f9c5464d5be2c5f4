//! Files that a scenario names, found beside it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::{fmt, io};

use crate::parse::on_one_line;

type Reader = dyn Fn(&str) -> io::Result<Found> + Send + Sync;

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub text: String,
    /// Errors may quote it. What lies elsewhere than the scenario may be secret to whoever wrote the scenario, or reads
    /// the error.
    pub may_be_quoted: bool,
}

/// Reads a text file; the caller's, as this crate opens none.
#[derive(Clone)]
pub struct ReadFile(Arc<Reader>);

impl ReadFile {
    pub fn new(read: impl Fn(&str) -> io::Result<Found> + Send + Sync + 'static) -> ReadFile {
        ReadFile(Arc::new(read))
    }

    /// Of files that errors may quote.
    pub fn of_texts(read: impl Fn(&str) -> io::Result<String> + Send + Sync + 'static) -> ReadFile {
        ReadFile::new(move |path| {
            read(path).map(|text| Found {
                text,
                may_be_quoted: true,
            })
        })
    }

    /// Of these files alone, by the path that a scenario's file has.
    pub fn of(files: BTreeMap<String, String>) -> ReadFile {
        ReadFile::of_texts(move |path| {
            files.get(path).cloned().ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    "it did not travel with the scenario",
                )
            })
        })
    }
}

impl fmt::Debug for ReadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadFile")
    }
}

/// Files that were read: the name that the scenario gives each, and its text.
pub type ReadFiles = Vec<(String, Arc<str>)>;

/// Where a scenario's files are.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// `None`: there are none to be had.
    pub read: Option<&'a ReadFile>,
    /// The scenario's own file: names are relative to its folder.
    pub scenario: &'a str,
    /// Takes down what is read.
    pub seen: Option<&'a RefCell<ReadFiles>>,
}

impl Files<'_> {
    /// No files at all.
    pub const NONE: Files<'static> = Files {
        read: None,
        scenario: "",
        seen: None,
    };

    /// What `parse` makes of the file called `name` in the scenario; it is given the path, which stands in errors, and
    /// what was found there. Its errors come without what they got where that may not be quoted.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it should be.
    pub fn parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str, &Found) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        let found = self.found(name)?;
        parse(&self.path(name), &found).map_err(|error| match found.may_be_quoted {
            true => error,
            false => error.withheld(),
        })
    }

    fn found(&self, name: &str) -> Result<Found, FileError> {
        let file = self.path(name);
        let read = self.read.ok_or_else(|| FileError::Unreadable {
            file: file.clone(),
            why: "scenarios read no files here".into(),
        })?;
        let found = (read.0)(&file).map_err(|error| FileError::Unreadable {
            file,
            why: error.to_string(),
        })?;
        if let Some(seen) = self.seen {
            seen.borrow_mut()
                .push((name.into(), found.text.as_str().into()));
        }
        Ok(found)
    }

    /// `traces/a.up` beside `lab/x.toml` is `lab/traces/a.up`.
    pub fn path(&self, name: &str) -> String {
        match self.scenario.rfind('/') {
            Some(end) if !name.starts_with('/') => format!("{}/{name}", &self.scenario[..end]),
            _ => name.into(),
        }
    }
}

/// Why a file that a scenario names cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error(
        "{}: cannot be read: {why}. Names are relative to the scenario's folder.",
        shown(.file)
    )]
    Unreadable { file: String, why: String },
    #[error("{}{}: {got}; expected {expected}.", shown(.file), at(.line))]
    Content {
        file: String,
        /// From 1; `None`: it is about the whole file.
        line: Option<usize>,
        /// What there is. All that comes from the file stands here, and nothing in the other fields.
        got: String,
        expected: String,
    },
}

/// What errors say in the place of content that may not be quoted.
pub const NOT_SHOWN: &str =
    "which is not shown here, as the file lies outside of the scenario's folder";

impl FileError {
    fn withheld(self) -> FileError {
        match self {
            FileError::Content {
                file,
                line,
                expected,
                ..
            } => FileError::Content {
                file,
                line,
                got: format!("got something {NOT_SHOWN}"),
                expected,
            },
            unreadable => unreadable,
        }
    }
}

fn at(line: &Option<usize>) -> String {
    line.map_or(String::new(), |line| format!(":{line}"))
}

/// A file's name: a scenario may write anything for one.
fn shown(file: &str) -> String {
    on_one_line(file, 300)
}

/// Lines that say something, with their numbers: no blank ones, no comments (`#`).
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, line.split('#').next().unwrap_or("").trim()))
        .filter(|(_, line)| !line.is_empty())
}
