//! Whole files of what a killed writer left.

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::groups::{self, Groups};
use super::keep::named;
use super::reserve;
use crate::folder::{self, Folder};

/// What became of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// It is a whole Parquet file now.
    Whole { path: PathBuf, rows: i64 },
    /// It held no complete row group, and is gone.
    Empty,
    /// Its writer lives.
    InUse,
    /// It is no file of ours (why), and stays as it is.
    Foreign(String),
}

/// Makes whole files of every part of the folder whose writer is gone, in order
/// of their names. What is whole already stays untouched.
///
/// Only who writes into the folder may call it: it changes files.
///
/// # Errors
/// The folder cannot be read or written.
pub fn recover(folder: &Folder) -> Result<Vec<(PathBuf, Recovered)>, Error> {
    let mut found = Vec::new();
    for name in folder.names()? {
        if whole_of(&name).is_some() {
            found.push((folder.join(&name), recover_part(folder, &name)?));
        }
    }
    Ok(found)
}

/// The name of the segment that a part becomes; `None`: it is no part of ours.
/// Other programs have parts of their own, which are theirs to end.
pub(super) fn whole_of(part: &str) -> Option<&str> {
    let whole = part.strip_suffix(".part")?;
    named(Path::new(whole)).and(Some(whole))
}

fn recover_part(folder: &Folder, part: &str) -> Result<Recovered, Error> {
    let file = match folder.reopen(part) {
        Ok(Some(file)) => file,
        // Its writer has ended meanwhile.
        Ok(None) => return Ok(Recovered::InUse),
        Err(error @ folder::Error::NotOurs { .. }) => {
            return Ok(Recovered::Foreign(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    match folder::locked(file) {
        Some(mut file) => complete(&mut file, folder, part),
        None => Ok(Recovered::InUse),
    }
}

/// Cuts the part after its last complete row group, writes the footer and
/// renames it. Killed in between, it can be done again: `groups` goes last.
pub(super) fn complete(file: &mut File, folder: &Folder, part: &str) -> Result<Recovered, Error> {
    let path = folder.join(part);
    let groups_name = groups::beside(part);
    let bytes = file
        .metadata()
        .map_err(Error::io(&path, "read its size"))?
        .len();
    let found = match folder.reopen(&groups_name) {
        Ok(None) => None,
        Ok(Some(file)) => Groups::read(BufReader::new(file), bytes)
            .map_err(Error::io(&folder.join(&groups_name), "read"))?,
        // Of what it says nothing can be believed.
        Err(error @ folder::Error::NotOurs { .. }) => {
            return Ok(Recovered::Foreign(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    let whole = whole_of(part).expect("only parts are completed");
    // A table without rows has one segment at most.
    let found = match found {
        Some(found) if found.rows() == 0 && has_segment(folder, whole)? => None,
        found => found,
    };
    let outcome = if let Some(found) = found {
        let footer = found.footer().map_err(|error| Error::Parquet {
            path: path.clone(),
            reason: error.to_string(),
        })?;
        // Now there is room for the footer on a full disk.
        file.set_len(found.end).map_err(Error::io(&path, "cut"))?;
        folder.remove(&reserve::beside(part))?;
        file.seek(SeekFrom::End(0))
            .map_err(Error::io(&path, "seek in"))?;
        file.write_all(&footer)
            .map_err(Error::io(&path, "write the footer of"))?;
        file.sync_all().map_err(Error::io(&path, "write out"))?;
        folder.replace(part, whole)?;
        Recovered::Whole {
            path: folder.join(whole),
            rows: found.rows(),
        }
    } else {
        folder.remove(&reserve::beside(part))?;
        // A part without groups can be done again, groups without a part would stay.
        folder.remove(&groups_name)?;
        folder.remove(part)?;
        Recovered::Empty
    };
    folder.remove(&groups_name)?;
    Ok(outcome)
}

/// Has the table of the segment `whole` one already?
fn has_segment(folder: &Folder, whole: &str) -> Result<bool, Error> {
    let table_of = |name: &str| named(Path::new(name)).map(|(table, _)| table.to_owned());
    let table = table_of(whole);
    Ok(folder.names()?.iter().any(|name| table_of(name) == table))
}
