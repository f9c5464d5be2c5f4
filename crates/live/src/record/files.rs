//! The files of a recording: a writer for each table.

use std::path::PathBuf;
use std::time::Duration;

use knee_store::arrow::Lent;
use knee_store::schema;
use knee_store::segment::{Error, Options as Cut, Writer};
use knee_tables::Batch;

use super::options::Options;

/// Encoded rows that are held in memory at most.
const GROUP_ROWS: usize = 1 << 15;

/// A table under construction and the files that it goes to.
pub struct Sink<T> {
    pub table: T,
    writer: Writer,
}

impl<T: Batch + Lent> Sink<T> {
    /// `lost` is what a kill may cost: rows are with the kernel, which keeps them,
    /// when they are that old. A row group costs the same for one row as for hundreds.
    pub fn new(options: &Options, lost: Duration) -> Result<Sink<T>, Error> {
        let cut = Cut {
            group_rows: GROUP_ROWS,
            group_age: lost,
            // Nor do they outlive a power cut: that would cost a wait for the disk
            // in each interval.
            sync: false,
            segment_bytes: options.segment_bytes,
            segment_age: options.segment_age,
            keep_bytes: options.keep_bytes,
            even_empty: true,
            distinct: Vec::new(),
        };
        Ok(Sink {
            table: T::default(),
            writer: Writer::create(&options.dir, T::NAME, schema::<T>(), cut)?,
        })
    }

    /// A new row's number.
    pub fn row(&mut self) -> Result<usize, Error> {
        if self.table.is_full() {
            self.empty()?;
        }
        Ok(self.table.add_row())
    }

    pub fn empty(&mut self) -> Result<(), Error> {
        write(&mut self.writer, &mut self.table)
    }

    /// The table and what writes it out when it is full.
    pub fn parts(&mut self) -> (&mut T, impl FnMut(&mut T) -> Result<(), Error> + '_) {
        let writer = &mut self.writer;
        (&mut self.table, |table: &mut T| write(writer, table))
    }

    /// The interval's rows are complete.
    pub fn commit(&mut self) -> Result<(), Error> {
        self.empty()?;
        self.writer.commit()
    }

    pub fn finish(mut self) -> Result<Vec<PathBuf>, Error> {
        self.empty()?;
        self.writer.finish()
    }
}

fn write<T: Batch + Lent>(writer: &mut Writer, table: &mut T) -> Result<(), Error> {
    match table.rows() {
        0 => Ok(()),
        _ => writer.write(&knee_store::take(table)),
    }
}
