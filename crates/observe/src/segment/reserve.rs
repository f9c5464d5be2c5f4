//! Room on the disk for a footer: `NAME.parquet.reserve`, zeros that are given
//! up when a footer finds the disk full.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const STEP_BYTES: u64 = 1 << 16;

pub struct Reserve {
    path: PathBuf,
    bytes: u64,
}

/// The reserve of `NAME.parquet.part`.
pub fn beside(part: &Path) -> PathBuf {
    part.with_extension("reserve")
}

impl Reserve {
    pub fn new(part: &Path) -> Reserve {
        Reserve {
            path: beside(part),
            bytes: 0,
        }
    }

    /// Room for the footer of the groups told of in `told_bytes`, and of one
    /// more: a footer is shorter than what tells of its groups one by one.
    pub fn grow(&mut self, told_bytes: u64) -> io::Result<()> {
        let mut file = None;
        while self.bytes < told_bytes + STEP_BYTES {
            let file = match &mut file {
                Some(file) => file,
                none => none.insert(
                    OpenOptions::new()
                        .append(true)
                        .create(true)
                        .open(&self.path)?,
                ),
            };
            // Zeros that are written, not a hole: a hole reserves nothing.
            file.write_all(&[0; STEP_BYTES as usize])?;
            self.bytes += STEP_BYTES;
        }
        Ok(())
    }
}
