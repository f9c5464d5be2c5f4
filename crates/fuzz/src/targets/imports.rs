//! Importers, each as its `Kind` describes it: what no file here looks at more
//! closely is searched all the same.
//!
//! Besides that nothing panics: the rows counted are those handed over, what is
//! not understood is part of what was read, and what may not be stored changes
//! nothing but texts.

use std::path::Path;

use knee_import::{IMPORTERS, Kind};
use knee_store::Anonymiser;

use super::{BATCH_BYTES, hidden};
use crate::Target;

/// Memory per byte of input: a value takes many times its text, and its rows hold
/// it again.
const BYTES_PER_BYTE: usize = 2048;
/// Words of a sample that are put into others.
const WORDS: usize = 64;

/// A target for each importer that is not among `known`.
pub fn others(known: &[Target]) -> impl Iterator<Item = Target> {
    let is_other = |kind: &&Kind| known.iter().all(|target| target.name != kind.name);
    IMPORTERS.iter().copied().filter(is_other).map(target)
}

fn target(kind: &'static Kind) -> Target {
    let (path, sample) = kind.sample.read();
    let words: Vec<&'static str> = String::from_utf8_lossy(&sample)
        .split(|c: char| c.is_whitespace() || ",:=\"".contains(c))
        .filter(|word| word.len() > 1)
        .take(WORDS)
        .map(|word| &*word.to_owned().leak())
        .collect();
    Target {
        name: kind.name,
        about: kind.summary,
        seeds: Box::leak(Box::new(move || vec![sample.clone()])),
        words: words.leak(),
        check: Box::leak(Box::new(move |input: &[u8]| check(kind, &path, input))),
    }
}

/// The claims of every importer, with the options that it has where none is given.
pub fn check(kind: &Kind, path: &Path, input: &[u8]) -> usize {
    let read = |input: &[u8], anonymiser| read(kind, path, input, anonymiser);
    let kept = read(input, Anonymiser::Keep);
    if let Some(hidden) = hidden(input, read) {
        assert_eq!(kept, hidden);
    }
    BATCH_BYTES + BYTES_PER_BYTE * input.len()
}

/// Rows, units, and those not understood; `None`: no such file.
fn read(kind: &Kind, path: &Path, mut input: &[u8], anonymiser: Anonymiser) -> Option<[u64; 3]> {
    let length = input.len() as u64;
    let given = kind.given(anonymiser, &serde_json::Map::new());
    let given = given.expect("no option must be given");
    let mut importer = (kind.build)(&given).expect("no option must be given");
    let tables = importer.tables();
    let mut rows = 0;
    let mut count = |(table, batch): knee_import::Filled| {
        let known = tables.iter().find(|(name, _)| *name == table);
        let (_, schema) = known.expect("a batch is of a table that is declared");
        assert_eq!(&batch.schema(), schema);
        rows += batch.num_rows() as u64;
    };
    let read = importer.read_input(path, &mut input, &mut |_, filled| {
        filled.into_iter().for_each(&mut count);
        Ok(())
    });
    importer.rest().into_iter().for_each(&mut count);
    let found = importer.found();
    assert_eq!(found.rows, rows);
    assert!(found.bytes <= length);
    // What cannot be read on with is not understood, and may be no unit.
    assert!(found.not_understood <= found.units + 1);
    assert!(found.first.len() <= 5);
    assert_eq!(found.more.len(), kind.counts.len());
    read.ok()
        .map(|()| [found.rows, found.units, found.not_understood])
}
