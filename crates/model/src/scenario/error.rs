//! What is wrong with a scenario file, said in one paragraph.

use crate::trace::FileError;
use crate::units::parse::{UnitError, did_you_mean, quoted};

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
    pub(super) fn new(file: &str, line: u32, problem: Problem) -> ScenarioError {
        ScenarioError {
            file: file.into(),
            line,
            problem: Box::new(problem),
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
        error: FileError,
    },
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
pub(super) fn nearest<'a>(got: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
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
