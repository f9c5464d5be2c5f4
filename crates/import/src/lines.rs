//! Files of lines, plain, gzip or zstd, read in memory that does not depend on
//! their size.

use std::io::{self, Read};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::counts::{More, Report};
use super::reading::open;
use super::{Counts, Described, Filled, Import};

/// A longer line is of none of the tools. It bounds memory.
const LINE_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 1 << 18;
/// Of a line that is shown.
const BEGINNING_BYTES: usize = 160;
/// Of a line, as much as is shown.
pub(super) fn beginning(line: &[u8]) -> &[u8] {
    &line[..line.len().min(BEGINNING_BYTES)]
}

/// What makes rows of lines: pure, so it can be fed anything. [`Import`] reads
/// files with it.
pub trait Lines {
    /// The table that the rows are of.
    const TABLE: &'static str;
    /// What the report says besides that of other lines.
    type More: More;
    /// The table's columns.
    fn schema(&self) -> SchemaRef;
    fn found(&self) -> &Report<Self::More>;
    fn found_mut(&mut self) -> &mut Report<Self::More>;
    /// Begins a file.
    fn file(&mut self, path: &Path);
    /// Where the file that begins next can be read a second time.
    fn again(&mut self, _path: Option<&Path>) {}
    /// Reads a line without its end; gives the batch that the line before filled.
    fn line(&mut self, line: &[u8]) -> Option<RecordBatch>;
    /// A line too long to hold.
    fn too_long(&mut self, beginning: &[u8]);
    /// The rows that no batch has yet.
    fn take(&mut self) -> Vec<RecordBatch>;
}

/// The part of [`Lines`] that is the same for every parser that fills that table:
/// its report is in `report`, and what only it tells is `More`.
macro_rules! fills {
    ($table:ty) => {
        const TABLE: &'static str = <$table as knee_tables::Table>::NAME;
        type More = More;

        fn schema(&self) -> arrow_schema::SchemaRef {
            knee_store::schema::<$table>()
        }

        fn found(&self) -> &Report {
            &self.report
        }

        fn found_mut(&mut self) -> &mut Report {
            &mut self.report
        }
    };
}
pub(super) use fills;

impl<P: Lines> Import for P {
    type More = P::More;

    fn tables(&self) -> Vec<Described> {
        vec![(P::TABLE, self.schema())]
    }

    fn read<E: From<io::Error>>(
        &mut self,
        path: &Path,
        sink: impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.again(path.is_file().then_some(path));
        self.read_stream(path, open(path)?, sink)
    }

    /// `sink` gets the counts after each read.
    fn read_stream<E: From<io::Error>>(
        &mut self,
        path: &Path,
        mut input: impl Read,
        mut sink: impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.file(path);
        let mut buffer = vec![0; READ_BYTES];
        let mut held = 0;
        // Of a line longer than the buffer may become: the rest is passed over.
        let mut passing = false;
        loop {
            if held == buffer.len() {
                if buffer.len() >= LINE_BYTES {
                    if !passing {
                        self.too_long(beginning(&buffer));
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
            self.found_mut().bytes += got as u64;
            let filled = held + got;
            let mut from = 0;
            for end in memchr::memchr_iter(b'\n', &buffer[held..filled]).map(|at| held + at) {
                if !std::mem::take(&mut passing)
                    && let Some(batch) = self.line(&buffer[from..end])
                {
                    sink(self.counts(), Some((P::TABLE, batch)))?;
                }
                from = end + 1;
            }
            if got == 0 {
                if filled > from
                    && !passing
                    && let Some(batch) = self.line(&buffer[from..filled])
                {
                    sink(self.counts(), Some((P::TABLE, batch)))?;
                }
                return Ok(());
            }
            buffer.copy_within(from..filled, 0);
            held = filled - from;
            sink(self.counts(), None)?;
        }
    }

    fn rest(&mut self) -> Vec<Filled> {
        let rest = self.take().into_iter();
        rest.map(|batch| (P::TABLE, batch)).collect()
    }

    fn report(&self) -> &Report<P::More> {
        self.found()
    }
}
