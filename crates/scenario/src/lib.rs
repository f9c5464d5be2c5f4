//! The scenario: one file, many cells.
//!
//! [`parse`] reads a TOML scenario into [`Scenario`], which resolves a [`Cell`]
//! when it is asked for it: a point of the matrix with every value (defaults
//! filled in, BDP turned into bytes). Engines see only cells.

mod axes;
mod besides;
mod cautions;
mod cell;
mod describe;
mod effect;
mod error;
mod form;
mod key;
mod keys;
mod matrix;
mod read;
mod release;
mod resolve;
pub mod rules;
pub mod workload;
mod zip;

pub use crate::key::Engine;
pub use crate::key::error::{Problem, ScenarioError};
pub use crate::key::keyed::Bytes;
pub use crate::key::names::{AlgorithmFile, AlgorithmInfo, Kernel, Names};
pub use crate::key::profile;
pub use crate::key::settings::ParamInfo;
pub use besides::{Expect, Published};
pub use cautions::{cautions, is_random, phase_noise};
pub use cell::*;
pub use describe::{Fact, bdp_bytes, describe};
pub use error::ScenarioErrors;
pub use form::{CellError, read_cell};
pub use keys::{KeyDoc, keys};
pub use release::Release;
pub use workload::WorkloadSpec;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::key::error::Mistakes;
use knee_units::Nanos;
use knee_units::files::Files;

/// A scenario file, read and checked.
#[derive(Clone)]
pub struct Scenario {
    pub title: String,
    /// An id of the published claims, when the scenario reproduces one.
    pub claim: Option<String>,
    /// Of the first cell: `duration` and `warmup` may be axes, and each cell has its own.
    pub duration: Nanos,
    pub warmup: Nanos,
    pub repeat: u32,
    pub seed: u64,
    pub expects: Vec<Expect>,
    pub published: Vec<Published>,
    source: Arc<Source>,
}

/// What cells are resolved from.
struct Source {
    matrix: matrix::Matrix,
    names: Names,
    /// As errors name it.
    file: String,
}

impl Scenario {
    /// How many cells the matrix has; at least one.
    pub fn n_cells(&self) -> usize {
        self.source.matrix.n_cells()
    }

    /// One cell of the matrix, without the others: axes in the order of the file, the last one fastest. `None`: there
    /// are fewer.
    pub fn cell(&self, index: usize) -> Option<Cell> {
        let Source {
            matrix,
            names,
            file,
        } = &*self.source;
        let mistakes = Mistakes::new(file);
        (index < matrix.n_cells()).then(|| {
            let cell = resolve::cell(matrix, names, &mistakes, index);
            cell.expect("every cell was looked at when the file was read")
        })
    }

    /// Algorithms that the file calls by Linux's name: that, and ours.
    pub fn renamed(&self) -> BTreeMap<String, String> {
        let files = &self.source.names.algorithm_files;
        let is_path = |written: &str| files.iter().any(|file| file.path == written);
        let renamed = self.source.matrix.renamed();
        renamed.filter(|(written, _)| !is_path(written)).collect()
    }

    /// What the file may name.
    pub fn names(&self) -> &Names {
        &self.source.names
    }

    /// The text of each file that the scenario names, by its path.
    pub fn files(&self) -> BTreeMap<String, String> {
        let at = Files {
            scenario: &self.source.file,
            ..Files::NONE
        };
        let named = self.source.matrix.files();
        named
            .map(|(name, text)| (at.path(name), text.into()))
            .collect()
    }

    /// Every cell, one after the other.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Cell> + '_ {
        (0..self.n_cells()).map(|index| self.cell(index).expect("it is one of them"))
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Scenario");
        shown.field("file", &self.source.file);
        shown.field("n_cells", &self.n_cells()).finish()
    }
}

/// Reads a scenario. `file` is its name for error messages; what was composed
/// elsewhere is called, for instance, `<command line>`.
///
/// # Errors
///
/// Everything that is wrong with the file, a paragraph for each mistake: file,
/// line and key, what was got, what is expected and what to do.
pub fn parse(text: &str, file: &str, names: &Names) -> Result<Scenario, ScenarioErrors> {
    let mistakes = Mistakes::new(file);
    let matrix = read::read(text, names, &mistakes)
        // What was not read any more says nothing.
        .filter(|_| !mistakes.is_full())
        .and_then(|content| matrix::Matrix::new(content, &mistakes));
    let besides = matrix
        .as_ref()
        .map(|matrix| (matrix.expects(), matrix.published()))
        .unwrap_or_default();
    let scenario = matrix.and_then(|matrix| {
        let first = resolve::check(&matrix, names, &mistakes)?;
        Some(Scenario {
            title: first.title,
            claim: first.claim,
            duration: first.duration,
            warmup: first.warmup,
            repeat: first.repeat,
            seed: first.seed,
            expects: besides.0.clone(),
            published: besides.1.clone(),
            source: Arc::new(Source {
                matrix,
                names: names.clone(),
                file: file.into(),
            }),
        })
    });
    error::result(mistakes, scenario, besides)
}
