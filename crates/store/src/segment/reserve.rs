//! Room on the disk for a footer: `NAME.parquet.reserve`, zeros that are given
//! up when a footer finds the disk full.

use std::fs::File;
use std::io::{self, Write};

use crate::folder::{Folder, Readers};

const STEP_BYTES: u64 = 1 << 16;

pub struct Reserve {
    folder: Folder,
    name: String,
    /// `None`: nothing is reserved yet.
    file: Option<File>,
    bytes: u64,
}

/// The name of the reserve of the part `NAME.parquet.part`.
pub fn beside(part: &str) -> String {
    super::sibling(part, "reserve")
}

impl Reserve {
    pub fn new(folder: &Folder, part: &str) -> Reserve {
        Reserve {
            folder: folder.clone(),
            name: beside(part),
            file: None,
            bytes: 0,
        }
    }

    /// Room for the footer of the groups told of in `told_bytes`, and of one
    /// more: a footer is shorter than what tells of its groups one by one.
    pub fn grow(&mut self, told_bytes: u64) -> io::Result<()> {
        while self.bytes < told_bytes + STEP_BYTES {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(self.folder.create(&self.name, Readers::Own)?),
            };
            // Zeros that are written, not a hole: a hole reserves nothing.
            file.write_all(&[0; STEP_BYTES as usize])?;
            self.bytes += STEP_BYTES;
        }
        Ok(())
    }
}
