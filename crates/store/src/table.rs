//! A table under construction: its columns, described, and the row being filled.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use knee_tables::{Column, position};

/// The column of that name of a run's table, word for word.
pub const fn like(name: &str, columns: &[Column]) -> Column {
    columns[position(name, columns)]
}

/// Rows of a batch at most.
pub const ROWS: usize = 8192;

/// A column's description with the type in which Arrow holds it.
#[derive(Clone, Debug)]
pub struct Field {
    pub column: Column,
    pub data_type: DataType,
}

/// A table that is filled row by row and leaves as record batches.
///
/// ```
/// use knee_store::{Sockets, Table};
///
/// let mut sockets = Sockets::default();
/// let row = sockets.add_row();
/// sockets.srtt_us.set(row, 40_000); // what is not set is null
/// let batch = sockets.take();
/// assert_eq!((batch.num_rows(), sockets.rows()), (1, 0));
/// ```
pub trait Table: Default {
    const NAME: &'static str;
    /// Columns in their order.
    fn fields() -> Vec<Field>;
    fn rows(&self) -> usize;
    /// Begins a row, all null, and gives its number.
    ///
    /// # Panics
    /// [`is_full`](Table::is_full).
    fn add_row(&mut self) -> usize;
    /// Takes the rows out without copying them. Names known stay known.
    fn take(&mut self) -> RecordBatch;

    fn is_full(&self) -> bool {
        self.rows() == ROWS
    }
}

/// The table's Arrow schema: each column with its unit, meaning and source.
pub fn schema<T: Table>() -> Arc<Schema> {
    let fields: Vec<_> = T::fields()
        .into_iter()
        .map(|Field { column, data_type }| {
            let metadata = [
                ("unit", column.unit),
                ("doc", column.doc),
                ("source", column.source),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
            arrow_schema::Field::new(column.name, data_type, true)
                .with_metadata(HashMap::from(metadata))
        })
        .collect();
    let named = HashMap::from([("table".to_owned(), T::NAME.to_owned())]);
    Arc::new(Schema::new_with_metadata(fields, named))
}

/// A column of this table alone.
pub const fn own(
    name: &'static str,
    unit: &'static str,
    source: &'static str,
    doc: &'static str,
) -> Column {
    Column {
        name: bare(name),
        unit,
        doc,
        source,
    }
}

/// A column may be called what is a keyword in Rust.
const fn bare(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Declares a table: a struct of columns under construction. Whoever declares one
/// depends on `arrow-array` and `arrow-schema`.
#[macro_export]
macro_rules! observed {
    (
        $(#[$meta:meta])*
        $name:literal $table:ident {
            $($column:ident: $kind:ty = $how:ident($($about:expr),*);)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Default)]
        pub struct $table {
            rows: usize,
            schema: std::sync::OnceLock<std::sync::Arc<arrow_schema::Schema>>,
            $(pub $column: $kind,)*
        }

        impl $crate::table::Table for $table {
            const NAME: &'static str = $name;

            fn fields() -> Vec<$crate::table::Field> {
                vec![$($crate::table::Field {
                    column: const { $crate::table::$how(stringify!($column), $($about),*) },
                    data_type: <$kind as $crate::column::Fill>::data_type(),
                },)*]
            }

            fn rows(&self) -> usize {
                self.rows
            }

            #[inline]
            fn add_row(&mut self) -> usize {
                assert!(self.rows < $crate::table::ROWS, "a full batch is taken before a row is added");
                self.rows += 1;
                self.rows - 1
            }

            fn take(&mut self) -> arrow_array::RecordBatch {
                let rows = std::mem::take(&mut self.rows);
                let schema = self.schema.get_or_init($crate::table::schema::<Self>);
                let schema = std::sync::Arc::clone(schema);
                let columns = vec![$($crate::column::Fill::take(&mut self.$column, rows),)*];
                arrow_array::RecordBatch::try_new(schema, columns).expect("columns are as the schema says")
            }
        }
    };
}
pub use observed;
