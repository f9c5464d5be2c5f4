//! How files become rows: what an importer implements, and the same for whoever
//! has chosen an importer by its name.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use arrow_schema::SchemaRef;
use knee_tables::Table;

use super::counts::{Counts, More, Report, Value};
use super::text;

/// A batch with the name of its table.
pub type Filled = (&'static str, arrow_array::RecordBatch);

/// A table's name and columns.
pub type Described = (&'static str, SchemaRef);

/// Makes rows of one tool's files, one file after the other.
pub trait Import {
    /// What the report has besides that of every importer.
    type More: More;

    /// The tables that it fills.
    fn tables(&self) -> Vec<Described>;

    /// Reads one file and hands batches to `sink`, whose error ends it. `sink` also
    /// gets the counts, without a batch, now and then. `path` is the file's name;
    /// `input` is what it holds, decompressed.
    ///
    /// # Errors
    /// The file cannot be read, or the sink's.
    fn read_stream<E: From<io::Error>>(
        &mut self,
        path: &Path,
        input: impl Read,
        sink: impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E>;

    /// [`read_stream`](Import::read_stream) of a file, plain, gzip or zstd.
    ///
    /// # Errors
    /// The file cannot be read, or the sink's.
    fn read<E: From<io::Error>>(
        &mut self,
        path: &Path,
        sink: impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.read_stream(path, open(path)?, sink)
    }

    /// Ends the import: the rows that no batch has yet.
    fn rest(&mut self) -> Vec<Filled>;

    /// What was found so far.
    fn report(&self) -> &Report<Self::More>;

    fn counts(&self) -> Counts {
        self.report().counts()
    }
}

/// Name and columns of a table.
pub(super) fn described<T: Table + 'static>() -> Described {
    (T::NAME, knee_store::schema::<T>())
}

/// Why an import ended before the end of a file.
#[derive(Debug)]
pub enum Stop {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// The sink wants no more; it knows why.
    Refused,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Unreadable(error)
    }
}

/// Takes what an importer hands over.
pub type Sink<'a> = &'a mut dyn FnMut(Counts, Option<Filled>) -> Result<(), Stop>;

/// An [`Import`] chosen by its name. One call reads a whole file, so that what is
/// done per line or packet is known to the compiler.
pub trait AnyImport: Send {
    fn tables(&self) -> Vec<Described>;

    /// As [`Import::read`].
    ///
    /// # Errors
    /// The file cannot be read, or the sink's.
    fn read_file(&mut self, path: &Path, sink: Sink<'_>) -> Result<(), Stop>;

    /// As [`Import::read_stream`].
    ///
    /// # Errors
    /// The input cannot be read, or the sink's.
    fn read_input(&mut self, path: &Path, input: &mut dyn Read, sink: Sink<'_>)
    -> Result<(), Stop>;

    fn rest(&mut self) -> Vec<Filled>;
    fn found(&self) -> Report<Vec<Value>>;
    fn counts(&self) -> Counts;
}

impl<I: Import + Send> AnyImport for I {
    fn tables(&self) -> Vec<Described> {
        Import::tables(self)
    }

    fn read_file(&mut self, path: &Path, sink: Sink<'_>) -> Result<(), Stop> {
        Import::read(self, path, sink)
    }

    fn read_input(
        &mut self,
        path: &Path,
        input: &mut dyn Read,
        sink: Sink<'_>,
    ) -> Result<(), Stop> {
        Import::read_stream(self, path, input, sink)
    }

    fn rest(&mut self) -> Vec<Filled> {
        Import::rest(self)
    }

    fn found(&self) -> Report<Vec<Value>> {
        self.report().with_values()
    }

    fn counts(&self) -> Counts {
        Import::counts(self)
    }
}

/// What a file says once decompressed, if it is gzip or zstd, and as UTF-8 if it
/// begins with a byte-order mark.
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
    text::utf8(match magic {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(whole))),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::Decoder::new(whole)?),
        _ => Box::new(whole),
    })
}
