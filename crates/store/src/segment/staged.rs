//! Segments that appear all at once, or not at all.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use nix::fcntl::Flock;

use super::error::Error;
use super::keep::named;
use super::writer::{Options, Writer, first_free};
use crate::folder::Folder;

/// Holds the segments until they are complete. What a killed import left in it
/// goes with the next one.
const STAGING: &str = ".importing";

/// Writes the segments of tables beside a folder's others and moves them in
/// when all are complete. Dropped before, it leaves nothing.
///
/// A recorder shows its rows as they come, because what it saw never comes
/// again; an import can be done again, and half of one would be taken for all.
pub struct Staged {
    folder: Folder,
    staging: Folder,
    /// With the names of their tables; taken by [`finish`](Staged::finish).
    writers: Vec<(String, Writer)>,
    _alone: Flock<File>,
}

impl Staged {
    /// # Errors
    /// The folder cannot be made or written, or another import writes into it.
    pub fn create(
        dir: &Path,
        tables: &[(&str, SchemaRef)],
        options: Options,
    ) -> Result<Staged, Error> {
        let folder = Folder::make(dir)?;
        let staging = folder.folder(STAGING)?;
        let alone = staging
            .lock_itself()?
            .ok_or_else(|| Error::Busy { path: dir.into() })?;
        staging.remove_those(is_of_a_segment)?;
        let mut staged = Staged {
            folder,
            writers: Vec::new(),
            staging,
            _alone: alone,
        };
        for (table, schema) in tables {
            let writer = Writer::within(&staged.staging, table, schema.clone(), options.clone())?;
            staged.writers.push(((*table).to_owned(), writer));
        }
        Ok(staged)
    }

    /// # Errors
    /// The disk is full or fails; then nothing of it will be seen.
    ///
    /// # Panics
    /// It was not made for the table.
    pub fn write(&mut self, table: &str, batch: &RecordBatch) -> Result<(), Error> {
        let mut writers = self.writers.iter_mut();
        let (_, writer) = writers
            .find(|(name, _)| name == table)
            .expect("tables are told at the beginning");
        writer.write(batch).map_err(nothing_kept)
    }

    /// Moves the segments into the folder, under its next free numbers, and tells
    /// their paths.
    ///
    /// # Errors
    /// As of [`write`](Staged::write).
    pub fn finish(mut self) -> Result<Vec<PathBuf>, Error> {
        let mut written = Vec::new();
        for (table, writer) in self.writers.drain(..) {
            let files = writer.finish().map_err(nothing_kept)?;
            written.extend(files.into_iter().map(|from| (table.clone(), from)));
        }
        let mut moved: Vec<String> = Vec::new();
        for (table, from) in written {
            let from = from.file_name().and_then(|name| name.to_str());
            let from = from.expect("a segment has its name");
            let result = first_free(&self.folder, &table).and_then(|number| {
                let to = format!("{table}-{number:06}.parquet");
                self.staging.move_into(from, &self.folder, &to)?;
                Ok(to)
            });
            match result {
                Ok(to) => moved.push(to),
                Err(error) => {
                    for name in moved {
                        let _ = self.folder.remove(&name);
                    }
                    return Err(error);
                }
            }
        }
        Ok(moved.iter().map(|name| self.folder.join(name)).collect())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Parts are closed before they go.
        self.writers.clear();
        let _ = self.staging.remove_those(is_of_a_segment);
        let _ = self.folder.remove_empty(STAGING);
        if self.folder.made() {
            // Not when segments are in it.
            let _ = std::fs::remove_dir(self.folder.path());
        }
    }
}

/// A segment, or what a writer has beside one that it is at.
fn is_of_a_segment(name: &str) -> bool {
    let beside = [".part", ".groups", ".reserve"];
    let whole = beside.iter().find_map(|ending| name.strip_suffix(ending));
    let whole = whole.unwrap_or(name);
    named(Path::new(whole)).is_some()
}

/// A full disk leaves a recording whole up to there; of an import nothing stays.
fn nothing_kept(error: Error) -> Error {
    match error {
        Error::DiskFull { path, .. } => Error::Io {
            path,
            what: "write, so nothing was imported",
            source: io::ErrorKind::StorageFull.into(),
        },
        other => other,
    }
}
