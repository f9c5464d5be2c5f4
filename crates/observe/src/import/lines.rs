//! Files of lines, plain, gzip or zstd, read in memory that does not depend on
//! their size.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use arrow_array::RecordBatch;

/// A longer line is of none of the tools. It bounds memory.
const LINE_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 1 << 18;
/// Of a line too long to hold, what its parser gets to show.
const BEGINNING_BYTES: usize = 160;

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Of all files, once decompressed.
    pub bytes: u64,
    pub rows: u64,
    /// Lines, packets or documents.
    pub not_understood: u64,
}

/// What makes rows of lines: pure, so it can be fed anything.
pub trait Lines {
    type Report;
    /// What was found so far.
    fn report(&self) -> &Self::Report;
    fn counts(&self) -> Counts;
    /// Begins a file.
    fn file(&mut self, path: &Path);
    /// Counts bytes read of it, once decompressed.
    fn count_bytes(&mut self, bytes: u64);
    /// Reads a line without its end; gives the batch that the line before filled.
    fn line(&mut self, line: &[u8]) -> Option<RecordBatch>;
    /// The rows that no batch has yet.
    fn rest(&mut self) -> Option<RecordBatch>;
    /// A line too long to hold.
    fn too_long(&mut self, beginning: &[u8]);
}

/// Reads one file and hands batches to `sink`, whose error ends it. `sink` also
/// gets the counts, without a batch, after each read.
///
/// # Errors
/// The file cannot be read, or the sink's.
pub fn read<P: Lines, E: From<io::Error>>(
    path: &Path,
    parser: &mut P,
    mut sink: impl FnMut(Counts, Option<RecordBatch>) -> Result<(), E>,
) -> Result<(), E> {
    parser.file(path);
    let mut input = open(path)?;
    let mut buffer = vec![0; READ_BYTES];
    let mut held = 0;
    // Of a line longer than the buffer may become: the rest is passed over.
    let mut passing = false;
    loop {
        if held == buffer.len() {
            if buffer.len() >= LINE_BYTES {
                if !passing {
                    parser.too_long(&buffer[..BEGINNING_BYTES]);
                }
                (passing, held) = (true, 0);
            } else {
                buffer.resize(buffer.len() * 2, 0);
            }
        }
        let got = match input.read(&mut buffer[held..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        parser.count_bytes(got as u64);
        let filled = held + got;
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', &buffer[held..filled]).map(|at| held + at) {
            if !std::mem::take(&mut passing)
                && let Some(batch) = parser.line(&buffer[from..end])
            {
                sink(parser.counts(), Some(batch))?;
            }
            from = end + 1;
        }
        if got == 0 {
            if filled > from
                && !passing
                && let Some(batch) = parser.line(&buffer[from..filled])
            {
                sink(parser.counts(), Some(batch))?;
            }
            return Ok(());
        }
        buffer.copy_within(from..filled, 0);
        held = filled - from;
        sink(parser.counts(), None)?;
    }
}

/// What a file says once decompressed, if it is gzip or zstd.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    let mut magic = [0; 4];
    let mut got = 0;
    while got < magic.len() {
        match file.read(&mut magic[got..])? {
            0 => break,
            more => got += more,
        }
    }
    let whole = io::Cursor::new(magic).take(got as u64).chain(file);
    Ok(match magic {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(whole))),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::new(whole)?),
        _ => Box::new(whole),
    })
}
