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

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use conf::{ConfError, log_format};
pub use format::{Escape, Format, FormatError};

use knee_store::Anonymiser;

use super::counts::counts;
use super::kind::first_lines;
use super::lines::{self, Lines};
use super::prefix::{self, Kind as Before};
use super::{Columns, Given, Kind, More as _, Opt, Sample, TableKind, Takes};
use table::Requests;

/// The table's name.
const TABLE: &str = "requests";

pub static KIND: Kind = Kind {
    name: "nginx",
    summary: "Access logs of nginx, of any log_format.",
    about: "Import access logs of nginx: a row of the table `requests` for each line.\n\n\
        Variables whose meaning is known become typed columns with units, such as $tcpinfo_rtt, the column srtt_us; \
        others are text. Plain, gzip or zstd.",
    page: include_str!("page.md"),
    examples: &[
        "knee import nginx /var/log/nginx/access.log* --out rec",
        "knee import nginx access.log.gz --out rec --conf /etc/nginx/nginx.conf --format transport",
        "knee import nginx access.log --out rec --format '$msec $remote_addr $status $request_time $tcpinfo_rtt $tcpinfo_snd_cwnd'",
    ],
    tables: &[TableKind {
        name: TABLE,
        short: "requests",
        rows: "one per line of a log; of these columns, those of the format's variables",
        columns: Columns::Own(table::columns),
    }],
    options: &[
        Opt {
            name: "format",
            takes: Takes::Text("TEXT|NAME"),
            default: COMBINED,
            help: "The log_format, or the name of one in --conf.",
        },
        Opt {
            name: "conf",
            takes: Takes::File("a configuration of nginx"),
            default: "",
            help: "A configuration of nginx, for its log_format.",
        },
        Opt {
            name: "escape",
            takes: Takes::Choice(&["default", "json", "none"]),
            default: "default",
            help: "Of --format; one in --conf says its own.",
        },
    ],
    unit: "lines",
    row: "request",
    expected: "lines of this log_format",
    told: "{rows:row} from {lines:line}",
    counts: More::COUNTS,
    sample: Sample::File("tests/data/nginx/combined.log"),
    looks: |begin| {
        let format = Format::compile(COMBINED, Escape::Default).expect("nginx has it");
        let parser = Parser::new(Options {
            format,
            anonymiser: Anonymiser::Keep,
        });
        first_lines(begin)
            .any(|line| parser.requests.fits(line) || parser.before(line, &BEFORE).is_some())
    },
    build: |given| {
        Ok(Box::new(Parser::new(Options {
            format: format_of(given)?,
            anonymiser: given.anonymiser.clone(),
        })))
    },
};

/// The format that nginx has without a directive; it refuses another of its name.
const COMBINED: &str = "combined";

fn format_of(given: &Given) -> Result<Format, String> {
    let name = given.text("format").unwrap_or(COMBINED);
    let escape = given.text("escape").and_then(Escape::parse);
    let mut found = (name.to_owned(), escape.unwrap_or(Escape::Default));
    let mut place = "log_format".to_owned();
    if let Some((path, conf)) = given.file("conf") {
        place = path.display().to_string();
        if name != COMBINED {
            found = log_format(conf, name).map_err(|error| format!("{place}: {error}."))?;
        }
    }
    Format::compile(&found.0, found.1).map_err(|error| format!("{place}: {error}."))
}

/// Of lines not understood it has why, and their beginning, which is empty where
/// addresses are anonymised.
pub type Report = super::Report<More>;

counts! {
    /// What only logs tell.
    More {
        prefixes: BTreeMap<String, u64>, "what stood before lines and was taken off, and before how many",
            doubt: "{count} lines have {what} before them, which was taken off.";
    }
}

/// What may stand before each line.
const BEFORE: [Before; 4] = [
    Before::Syslog,
    Before::Container,
    Before::Time,
    Before::Mail,
];

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

    /// What stands before a line of the format, and that line.
    fn before<'a>(&self, line: &'a [u8], kinds: &[Before]) -> Option<(Before, &'a [u8])> {
        let before = prefix::of(line, kinds, None, &|rest| self.requests.fits(rest))?;
        Some((before.kind, before.rest))
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
    type More = More;

    fn schema(&self) -> SchemaRef {
        self.requests.schema()
    }

    fn found(&self) -> &Report {
        &self.report
    }

    fn found_mut(&mut self) -> &mut Report {
        &mut self.report
    }

    fn file(&mut self, path: &Path) {
        self.report.begin(path);
    }

    #[inline]
    fn line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        self.report.count();
        // A log that came by way of Windows.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        let full = self.requests.is_full().then(|| self.requests.take());
        // A format that begins with any text would take a header for a part of it.
        let before = match prefix::may_be_header(line) && !self.requests.begins_with_time() {
            true => self.before(line, &BEFORE[..2]),
            false => None,
        };
        let before = match before {
            None if self.requests.add(line).is_ok() => {
                self.report.rows += 1;
                return full;
            }
            None => self.before(line, &BEFORE),
            before => before,
        };
        match self.requests.add(before.map_or(line, |before| before.1)) {
            Ok(()) => {
                self.report.rows += 1;
                if let Some((kind, _)) = before {
                    let name = kind.name().to_owned();
                    *self.report.more.prefixes.entry(name).or_default() += 1;
                }
            }
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

    fn take(&mut self) -> Vec<RecordBatch> {
        let rest = (self.requests.rows() > 0).then(|| self.requests.take());
        rest.into_iter().collect()
    }

    fn too_long(&mut self, beginning: &[u8]) {
        self.report.count();
        self.not_understood(beginning, "is longer than 1 MiB");
    }
}
