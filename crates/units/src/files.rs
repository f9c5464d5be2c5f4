//! Files that a scenario names, found beside it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::{fmt, io};

use crate::parse::{on_one_line, quoted};

type Reader = dyn Fn(&str) -> io::Result<String> + Send + Sync;

/// Reads a text file; the caller's, as this crate opens none.
#[derive(Clone)]
pub struct ReadFile(Arc<Reader>);

impl ReadFile {
    pub fn new(read: impl Fn(&str) -> io::Result<String> + Send + Sync + 'static) -> ReadFile {
        ReadFile(Arc::new(read))
    }

    /// Of these files alone, by the path that a scenario's file has.
    pub fn of(files: BTreeMap<String, String>) -> ReadFile {
        ReadFile::new(move |path| {
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

    /// The text of the file called `name` in the scenario.
    pub fn text(&self, name: &str) -> Result<String, FileError> {
        let file = self.path(name);
        let read = self.read.ok_or_else(|| FileError::Unreadable {
            file: file.clone(),
            why: "scenarios read no files here".into(),
        })?;
        let text = (read.0)(&file).map_err(|error| FileError::Unreadable {
            file,
            why: error.to_string(),
        })?;
        if let Some(seen) = self.seen {
            seen.borrow_mut().push((name.into(), text.as_str().into()));
        }
        Ok(text)
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
    #[error("{}:{line}: got {}; expected {expected}.", shown(.file), quoted(.got))]
    Line {
        file: String,
        /// From 1.
        line: usize,
        got: String,
        expected: String,
    },
    #[error("{}: {what}", shown(.file))]
    Whole { file: String, what: String },
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
