//! nginx access logs, of any `log_format`, as rows of `requests`.
//!
//! Variables whose meaning we know fill typed columns with units; each other
//! variable fills a text column of its own name. So the columns depend on the
//! format, and [`Parser::schema`] tells them.

mod conf;
mod format;
mod table;
mod values;
mod variables;

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use conf::{ConfError, log_format};
pub use format::{Escape, Format, FormatError};

use super::lines::{Counts, Lines};
use crate::anonymise::Anonymiser;
use table::Requests;

/// The table's name.
pub const TABLE: &str = "requests";
/// Lines not understood that are kept to be shown.
const SHOWN: usize = 5;
const SHOWN_BYTES: usize = 160;

/// What an import found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Of all files, once decompressed.
    pub bytes: u64,
    pub lines: u64,
    pub requests: u64,
    pub lines_not_understood: u64,
    pub first: Vec<NotUnderstood>,
}

/// A line that is not of the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUnderstood {
    pub file: PathBuf,
    /// From 1.
    pub line: u64,
    pub reason: String,
    /// Its beginning; empty where addresses are anonymised.
    pub text: String,
}

/// How to read logs.
pub struct Options {
    pub format: Format,
    pub anonymiser: Anonymiser,
}

/// Rows of the lines of logs of one format.
pub struct Parser {
    requests: Requests,
    report: Report,
    file: PathBuf,
    /// Line of the current file, from 1.
    line: u64,
    /// May lines be shown?
    shows: bool,
}

impl Parser {
    pub fn new(options: Options) -> Parser {
        Parser {
            shows: matches!(options.anonymiser, Anonymiser::Keep),
            requests: Requests::new(options.format, options.anonymiser),
            report: Report::default(),
            file: PathBuf::new(),
            line: 0,
        }
    }

    /// The columns: each with its unit, meaning and source.
    pub fn schema(&self) -> SchemaRef {
        self.requests.schema()
    }

    #[cold]
    fn not_understood(&mut self, line: &[u8], reason: String) {
        self.report.lines_not_understood += 1;
        if self.report.first.len() < SHOWN {
            let text = if self.shows {
                String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]).into_owned()
            } else {
                // What may not be stored must not be shown either.
                String::new()
            };
            self.report.first.push(NotUnderstood {
                file: self.file.clone(),
                line: self.line,
                reason,
                text,
            });
        }
    }
}

impl Lines for Parser {
    type Report = Report;

    fn report(&self) -> &Report {
        &self.report
    }

    fn counts(&self) -> Counts {
        Counts {
            bytes: self.report.bytes,
            rows: self.report.requests,
            not_understood: self.report.lines_not_understood,
        }
    }

    fn file(&mut self, path: &Path) {
        self.file = path.into();
        self.line = 0;
    }

    #[inline]
    fn line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        self.line += 1;
        self.report.lines += 1;
        // A log that came by way of Windows.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        let full = self.requests.is_full().then(|| self.requests.take());
        match self.requests.add(line) {
            Ok(()) => self.report.requests += 1,
            Err(odd) => {
                let reason = if self.shows {
                    odd.to_string()
                } else {
                    odd.without_value()
                };
                self.not_understood(line, reason);
            }
        }
        full
    }

    fn rest(&mut self) -> Option<RecordBatch> {
        (self.requests.rows() > 0).then(|| self.requests.take())
    }

    fn count_bytes(&mut self, bytes: u64) {
        self.report.bytes += bytes;
    }

    fn too_long(&mut self, beginning: &[u8]) {
        self.line += 1;
        self.report.lines += 1;
        self.not_understood(beginning, "is longer than 1 MiB".into());
    }
}
