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

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use conf::{ConfError, log_format};
pub use format::{Escape, Format, FormatError};

use super::lines::{self, Lines};
use crate::anonymise::Anonymiser;
use table::Requests;

/// The table's name.
const TABLE: &str = "requests";

/// Of lines not understood it has why, and their beginning, which is empty where
/// addresses are anonymised.
pub type Report = lines::Report;

/// How to read logs.
pub struct Options {
    pub format: Format,
    pub anonymiser: Anonymiser,
}

/// Rows of the lines of logs of one format.
pub struct Parser {
    requests: Requests,
    report: Report,
    /// May lines be shown?
    shows: bool,
}

impl Parser {
    pub fn new(options: Options) -> Parser {
        Parser {
            shows: matches!(options.anonymiser, Anonymiser::Keep),
            requests: Requests::new(options.format, options.anonymiser),
            report: Report::default(),
        }
    }

    /// The columns: each with its unit, meaning and source.
    pub fn schema(&self) -> SchemaRef {
        self.requests.schema()
    }

    fn not_understood(&mut self, line: &[u8], reason: &str) {
        // What may not be stored must not be shown either.
        let shown = if self.shows {
            lines::beginning(line)
        } else {
            b""
        };
        self.report
            .not_understood(|| format!("{reason}: {}", String::from_utf8_lossy(shown)));
    }
}

impl Lines for Parser {
    const TABLE: &'static str = TABLE;
    type More = ();

    fn found(&self) -> &Report {
        &self.report
    }

    fn found_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    fn file(&mut self, path: &Path) {
        self.report.file(path);
    }

    #[inline]
    fn line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        self.report.count_line();
        // A log that came by way of Windows.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        let full = self.requests.is_full().then(|| self.requests.take());
        match self.requests.add(line) {
            Ok(()) => self.report.rows += 1,
            Err(odd) => {
                let reason = if self.shows {
                    odd.to_string()
                } else {
                    odd.without_value()
                };
                self.not_understood(line, &reason);
            }
        }
        full
    }

    fn take(&mut self) -> Option<RecordBatch> {
        (self.requests.rows() > 0).then(|| self.requests.take())
    }

    fn too_long(&mut self, beginning: &[u8]) {
        self.report.count_line();
        self.not_understood(beginning, "is longer than 1 MiB");
    }
}
