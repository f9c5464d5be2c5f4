//! The scenario: one file, many cells.
//!
//! [`parse`] reads a TOML scenario into [`Scenario`]: a list of [`Cell`]s, one
//! per point of the matrix, with every value resolved (defaults filled in, BDP
//! turned into bytes). Engines see only cells.

mod cautions;
mod cell;
mod describe;
mod error;
mod keys;
mod matrix;
mod read;
mod resolve;
mod settings;
mod value;

pub use cautions::{cautions, phase_noise};
pub use cell::*;
pub use describe::{Fact, bdp_bytes, describe};
pub use error::{Problem, ScenarioError, ScenarioErrors};
pub use keys::{KeyDoc, keys};
pub use settings::{Form, ParamInfo};

use crate::trace::ReadFile;
use crate::units::Nanos;

/// A scenario file, read and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub title: String,
    /// An id of the published claims, when the scenario reproduces one.
    pub claim: Option<String>,
    /// Of the first cell: `duration` and `warmup` may be axes, and each cell has its own.
    pub duration: Nanos,
    pub warmup: Nanos,
    pub repeat: u32,
    pub seed: u64,
    /// The matrix: axes in the order of the file, the last one fastest.
    pub cells: Vec<Cell>,
    pub expects: Vec<Expect>,
    pub published: Vec<Published>,
}

/// An `[[expect]]`: checked on a run's results by the front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    pub assert: String,
    /// Where it stands in the file, from 1.
    pub line: u32,
}

/// A `[[published]]`: a figure that others printed, shown beside ours by the
/// front and never checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// What of ours it stands beside: an expression as in [`Expect::assert`].
    pub value: String,
    /// As printed, with its unit.
    pub figure: String,
    /// Where it was printed, and how it was measured.
    pub source: String,
    /// Where `value` stands in the file, from 1.
    pub line: u32,
}

/// What a scenario may name but this crate does not know.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub algorithms: Vec<AlgorithmInfo>,
    /// How the files are read that a scenario names; `None`: it may name none.
    pub read_file: Option<ReadFile>,
}

impl Names {
    fn algorithm(&self, name: &str) -> Option<&AlgorithmInfo> {
        self.algorithms
            .iter()
            .find(|algorithm| algorithm.name == name)
    }
}

/// A congestion control that flows may use.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgorithmInfo {
    pub name: String,
    pub params: Vec<ParamInfo>,
}

/// Reads a scenario. `file` is its name for error messages; what was composed
/// elsewhere is called, for instance, `<command line>`.
///
/// # Errors
///
/// Everything that is wrong with the file, a paragraph for each mistake: file,
/// line and key, what was got, what is expected and what to do.
pub fn parse(text: &str, file: &str, names: &Names) -> Result<Scenario, ScenarioErrors> {
    let mistakes = error::Mistakes::new(file);
    let matrix = read::read(text, names, &mistakes)
        // What was not read any more says nothing.
        .filter(|_| !mistakes.is_full())
        .and_then(|content| matrix::Matrix::new(content, &mistakes));
    let matrix = matrix.as_ref();
    let scenario = matrix.and_then(|matrix| resolve::scenario(matrix, names, &mistakes));
    let besides = matrix.map(|matrix| (matrix.expects(), matrix.published()));
    mistakes.result(scenario, besides.unwrap_or_default())
}
