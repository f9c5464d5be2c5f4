//! Files that a scenario names, found beside it.

use std::io;

use crate::units::parse::{on_one_line, quoted};

/// Reads a text file; the caller's, as this crate opens none.
pub type ReadFile = fn(&str) -> io::Result<String>;

/// Where a scenario's files are.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// `None`: there are none to be had.
    pub read: Option<ReadFile>,
    /// The scenario's own file: names are relative to its folder.
    pub scenario: &'a str,
}

impl Files<'_> {
    /// No files at all.
    pub const NONE: Files<'static> = Files {
        read: None,
        scenario: "",
    };

    /// The text of the file called `name` in the scenario.
    pub fn text(&self, name: &str) -> Result<String, FileError> {
        let file = self.path(name);
        let read = self.read.ok_or_else(|| FileError::Unreadable {
            file: file.clone(),
            why: "scenarios read no files here".into(),
        })?;
        read(&file).map_err(|error| FileError::Unreadable {
            file,
            why: error.to_string(),
        })
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
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, line.split('#').next().unwrap_or("").trim()))
        .filter(|(_, line)| !line.is_empty())
}
