//! What is wrong with a scenario file, a paragraph for each mistake.

use std::cell::RefCell;

use knee_units::files::{FileError, NOT_SHOWN};
use knee_units::parse::{UnitError, did_you_mean, quoted};
use toml_edit::Value as Toml;

/// Most mistakes that a refusal lists: a screenful.
pub const MOST_LISTED: usize = 20;

/// The mistakes found so far. Whoever finds one tells it here and goes on with the rest of the file.
pub struct Mistakes<'a> {
    file: &'a str,
    found: RefCell<Vec<ScenarioError>>,
}

impl<'a> Mistakes<'a> {
    pub fn new(file: &'a str) -> Mistakes<'a> {
        Mistakes {
            file,
            found: RefCell::default(),
        }
    }

    pub fn file(&self) -> &'a str {
        self.file
    }

    pub fn add(&self, line: u32, problem: Problem) {
        self.tell(ScenarioError::new(self.file, line, problem));
    }

    /// Adds a mistake unless it is known: each cell of a matrix finds the same one again.
    pub fn tell(&self, error: ScenarioError) {
        let mut found = self.found.borrow_mut();
        let known = |other: &ScenarioError| other.line == error.line && other.is_about(&error);
        // One more than is listed: that there are more is worth saying.
        if found.len() <= MOST_LISTED && !found.iter().any(known) {
            found.push(error);
        }
    }

    /// Nothing that is found from now on would be listed.
    pub fn is_full(&self) -> bool {
        self.found.borrow().len() > MOST_LISTED
    }

    /// Has something been found that is wrong with this key?
    pub fn is_told(&self, key: &str) -> bool {
        let found = self.found.borrow();
        found.iter().any(|error| error.problem.key() == Some(key))
    }

    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// Those that are listed, in the order of the lines, and whether there may be more.
    pub fn listed(self) -> (Vec<ScenarioError>, bool) {
        let mut list = self.found.into_inner();
        let cut = list.len() > MOST_LISTED;
        list.truncate(MOST_LISTED);
        list.sort_by_key(|error| error.line);
        (list, cut)
    }
}

/// A scenario that cannot be used: where, and why.
///
/// Displays as one paragraph, `FILE:LINE: KEY: got …; expected …. Next step`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct ScenarioError {
    /// The file's name as the caller gave it; `<command line>` for composed scenarios.
    pub file: String,
    /// The offending line, from 1.
    pub line: u32,
    #[source]
    pub problem: Box<Problem>,
}

impl ScenarioError {
    pub fn new(file: &str, line: u32, problem: Problem) -> ScenarioError {
        ScenarioError {
            file: file.into(),
            line,
            problem: Box::new(problem),
        }
    }

    /// Do both refuse the same value of the same key? What was expected of it may differ from cell to cell.
    fn is_about(&self, other: &ScenarioError) -> bool {
        match (&*self.problem, &*other.problem) {
            (Problem::Value { key, got, .. }, Problem::Value { key: k, got: g, .. }) => {
                (key, got) == (k, g)
            }
            (one, another) => one == another,
        }
    }
}

/// Why a scenario was refused. `key` is the path of the offending thing, such
/// as `path.rtt` or `flow.0.algorithm`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("not valid TOML: {message}. Correct this line; https://toml.io describes the format.")]
    Syntax { message: String },
    #[error("{key}: unknown key; known here: {}.{}", .known.join(", "), remedy(.suggestion))]
    UnknownKey {
        key: String,
        known: Vec<String>,
        suggestion: Option<String>,
    },
    #[error("{key}: unknown {what} {}; known: {}.{}", quoted(.got), .known.join(", "), did_you_mean(.suggestion))]
    UnknownName {
        key: String,
        what: &'static str,
        got: String,
        known: Vec<String>,
        suggestion: Option<String>,
    },
    #[error("{key}: {error}")]
    Unit {
        key: String,
        #[source]
        error: UnitError,
    },
    /// A file that the value names.
    #[error("{key}: {error}")]
    File {
        key: String,
        #[source]
        error: Box<FileError>,
    },
    /// A value of a sample's row.
    #[error("{from}: row {row}: {problem}")]
    Row {
        /// The sample, and its table if it has one.
        from: String,
        /// From 1.
        row: u32,
        #[source]
        problem: Box<Problem>,
    },
    /// A value of a file that may not be quoted.
    #[error("{key}: got something {NOT_SHOWN}; expected {expected}.")]
    Withheld { key: String, expected: String },
    /// A value, or how it stands to others, is not possible.
    #[error("{key}: got {got}; expected {expected}.{}", spaced(.next))]
    Value {
        key: String,
        got: String,
        expected: String,
        next: String,
    },
    #[error("{key}: missing; expected {expected}. {next}")]
    Missing {
        key: String,
        expected: String,
        next: String,
    },
    #[error(
        "{key}: the matrix has {cells} cells; expected at most {limit}. Shorten the lists, or split the file."
    )]
    MatrixTooLarge {
        key: String,
        cells: u128,
        limit: u64,
    },
}

impl Problem {
    /// The path of the offending thing; none where the file is no TOML.
    pub fn key(&self) -> Option<&str> {
        match self {
            Problem::Syntax { .. } => None,
            Problem::Row { problem, .. } => problem.key(),
            Problem::UnknownKey { key, .. }
            | Problem::UnknownName { key, .. }
            | Problem::Unit { key, .. }
            | Problem::File { key, .. }
            | Problem::Withheld { key, .. }
            | Problem::Value { key, .. }
            | Problem::Missing { key, .. }
            | Problem::MatrixTooLarge { key, .. } => Some(key),
        }
    }
}

fn remedy(suggestion: &Option<String>) -> String {
    match suggestion {
        Some(_) => did_you_mean(suggestion),
        None => " Remove it, or choose one of these.".into(),
    }
}

fn spaced(next: &str) -> String {
    if next.is_empty() {
        String::new()
    } else {
        format!(" {next}")
    }
}

/// The known name that `got` most likely means: few edits away, or the same but for case.
pub fn nearest<'a>(got: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let lower: String = got.chars().take(64).collect::<String>().to_lowercase();
    let allowed = (lower.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|name| {
            (
                strsim::damerau_levenshtein(&lower, &name.to_lowercase()),
                name,
            )
        })
        // Of equally near names the first listed wins; min_by_key keeps it.
        .min_by_key(|(edits, _)| *edits)
        .filter(|(edits, name)| *edits <= allowed && *edits < name.chars().count())
        .map(|(_, name)| name.to_string())
}

/// What the file says, short and on one line.
pub fn shown(toml: &Toml) -> String {
    match toml {
        Toml::String(text) => quoted(text.value()),
        Toml::Integer(n) => n.value().to_string(),
        Toml::Float(x) => x.value().to_string(),
        Toml::Boolean(flag) => flag.value().to_string(),
        Toml::Datetime(_) => "a date".into(),
        Toml::Array(_) => "a list".into(),
        Toml::InlineTable(_) => "a table".into(),
    }
}
