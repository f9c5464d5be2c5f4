//! Axes that several keys share: `[[zip]]`, whose lists vary together, and `[[sample]]`, whose rows are paths.

pub(super) mod distribution;
pub(super) mod table;

use std::rc::Rc;
use std::sync::Arc;

use distribution::Distribution;
use knee_units::parse::on_one_line;
use knee_units::rng::Stream;
use table::Paths;
use toml_edit::Value as Toml;

/// Most cells of a matrix.
pub(super) const MAX_CELLS: u64 = 100_000;

/// A `[[zip]]`.
pub(super) struct Zip {
    /// `zip.0.keys`.
    pub(super) path: String,
    /// Of `keys`.
    pub(super) line: u32,
    /// Keys whose lists vary together, as the file has them.
    pub(super) keys: Vec<String>,
}

/// A `[[sample]]`: an axis with a value for each row.
pub(super) struct Sample {
    /// `sample.0`.
    pub(super) path: String,
    /// Byte offset of the table, which orders the axes.
    pub(super) offset: usize,
    /// Name and text of its table.
    pub(super) file: Option<(String, Arc<str>)>,
    /// Their numbers in the table, or as draws, from 1.
    pub(super) rows: Vec<u32>,
}

impl Sample {
    /// Where a row comes from, as errors have it: `sample.0: paths.csv`.
    pub(super) fn source(&self) -> String {
        match &self.file {
            Some((name, _)) => format!("{}: {}", self.path, on_one_line(name, 100)),
            None => self.path.clone(),
        }
    }
}

/// A key that a sample sets.
pub(super) struct Column {
    /// Index of the sample.
    pub(super) sample: usize,
    /// `path.rtt`.
    pub(super) path: String,
    /// As errors name it: `sample.0.path.rtt`, `sample.0: paths.csv: path.rtt`.
    pub(super) shown: String,
    pub(super) line: u32,
    pub(super) source: Source,
}

/// Where a column's values come from.
pub(super) enum Source {
    /// A column of a table.
    Table(Rc<Paths>, usize),
    Draws(Distribution, Stream),
    /// Nowhere, which has been told.
    Nothing,
}

impl Column {
    /// Errors may quote what stands there.
    pub(super) fn may_be_quoted(&self) -> bool {
        match &self.source {
            Source::Table(paths, _) => paths.may_be_quoted,
            Source::Draws(..) | Source::Nothing => true,
        }
    }

    /// What its distribution is written with, which the key must take as well.
    pub(super) fn bounds(&self) -> Vec<Toml> {
        match &self.source {
            Source::Draws(law, _) => law.bounds(),
            _ => Vec::new(),
        }
    }

    /// The values of these rows, one after the other; `None`: there are none.
    pub(super) fn values<'c>(
        &'c self,
        rows: &'c [u32],
    ) -> Option<impl Iterator<Item = (u32, Toml)> + 'c> {
        let mut rng = match &self.source {
            Source::Nothing => return None,
            Source::Table(..) => None,
            Source::Draws(_, rng) => Some(rng.clone()),
        };
        Some(rows.iter().map(move |row| {
            let value = match (&self.source, &mut rng) {
                (Source::Table(paths, column), _) => paths.value(*column, *row),
                (Source::Draws(law, _), Some(rng)) => law.draw(rng),
                _ => unreachable!("draws have a stream, and nothing has no values"),
            };
            (*row, value)
        }))
    }
}

/// So many of the rows, chosen at random, none twice, in their order. With a larger count the rows of a smaller one are
/// among them.
pub(super) fn choose(mut rows: Vec<u32>, count: usize, mut rng: Stream) -> Vec<u32> {
    // Fisher and Yates, as far as it is needed.
    for at in 0..count {
        let left = (rows.len() - at) as u128;
        let step = (u128::from(rng.next_u64()) * left) >> 64;
        rows.swap(at, at + step as usize);
    }
    rows.truncate(count);
    rows.sort_unstable();
    rows
}
