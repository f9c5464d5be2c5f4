//! A part: the tables of one piece of work, written while it goes on.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::file::metadata::KeyValue;

use super::Error;
use super::rows::Rows;
use crate::folder::{Folder, Readers};

/// Key of a footer's metadata under which a part carries what is no table.
pub(super) const NOTE: &str = "repetition";

/// Files `NAME.TABLE.parquet` of a folder, which have these names once all are whole. A part that is dropped before
/// leaves nothing, and one whose process was killed leaves temporary files.
pub struct Part {
    folder: Folder,
    name: String,
    /// Whose file gets its name last.
    last: String,
    tables: Vec<Table>,
}

struct Table {
    name: String,
    temporary: String,
    /// `None`: the file is whole.
    rows: Option<Rows>,
}

impl Part {
    /// `last`: the table whose file says that the part is whole.
    pub fn new(folder: &Folder, name: &str, last: &str) -> Part {
        Part {
            folder: folder.clone(),
            name: name.into(),
            last: last.into(),
            tables: Vec::new(),
        }
    }

    /// The name of a table's file.
    pub fn file(&self, table: &str) -> String {
        format!("{}.{table}.parquet", self.name)
    }

    /// Appends rows to a table, which begins with the first of them, or with none.
    ///
    /// # Errors
    /// The file cannot be made or written; then the part is of no more use.
    pub fn write(&mut self, table: &str, rows: &RecordBatch) -> Result<(), Error> {
        let path = self.path(table);
        let at = self.position(table, &rows.schema())?;
        let open = self.tables[at].rows.as_mut().expect("the part is not kept");
        open.write(rows).map_err(Error::write(&path))
    }

    fn path(&self, table: &str) -> PathBuf {
        self.folder.join(&self.file(table))
    }

    fn position(&mut self, table: &str, schema: &SchemaRef) -> Result<usize, Error> {
        if let Some(at) = self.tables.iter().position(|known| known.name == table) {
            return Ok(at);
        }
        let (temporary, file) = (self.folder).temporary(&self.file(table), Readers::Own)?;
        self.tables.push(Table {
            name: table.into(),
            temporary,
            rows: None,
        });
        let rows = Rows::new(file, SchemaRef::clone(schema));
        let rows = rows.map_err(Error::write(&self.path(table)))?;
        self.tables.last_mut().expect("pushed above").rows = Some(rows);
        Ok(self.tables.len() - 1)
    }

    /// Ends the files and gives them their names.
    ///
    /// # Errors
    /// As of [`write`](Part::write).
    pub fn keep(mut self, note: &str) -> Result<(), Error> {
        for at in 0..self.tables.len() {
            let path = self.path(&self.tables[at].name);
            let table = &mut self.tables[at];
            let about = (table.name == self.last)
                .then(|| KeyValue::new(NOTE.to_owned(), Some(note.to_owned())));
            let rows = table.rows.take().expect("a part is kept once");
            rows.finish(about).map_err(Error::write(&path))?;
        }
        let last = |table: &Table| table.name == self.last;
        self.tables.sort_by_key(last);
        while !self.tables.is_empty() {
            let file = self.file(&self.tables[0].name);
            self.folder.replace(&self.tables[0].temporary, &file)?;
            self.tables.remove(0);
        }
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        for table in &self.tables {
            // What cannot be removed goes with the folder of the parts.
            let _ = self.folder.remove(&table.temporary);
        }
    }
}
