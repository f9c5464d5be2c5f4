//! Every table of tcpknee: its columns with type, unit, meaning and source, declared once.
//!
//! [`table!`] declares a table and what holds its rows: engines append rows to some, recorders and importers fill others
//! by row number. [`declare!`] declares a table whose rows others make: DuckDB, the doctor, the front. Arrow arrays are
//! made in `knee-store`; [`KINDS`] lists the tables by what writes them.

mod assignments;
pub mod column;
mod counters;
mod cpu;
mod cpu_time;
mod events;
mod flows;
mod front;
mod histogram;
mod host_costs;
mod links;
mod nic;
mod packets;
mod profile;
mod programs;
mod qdisc;
mod queue;
mod reads;
mod recording;
mod sample_columns;
mod samples;
mod settings;
mod snapshot;
mod sockets;
mod store;
mod tcp_info;
mod trace;

pub use assignments::Assignments;
pub use column::{Flags, Name, Names, Number, Numbers, ROWS, Text, Texts};
pub use counters::Counters;
pub use cpu::Cpu;
pub use cpu_time::{CpuSample, CpuSamples};
pub use events::{Event, Events};
pub use flows::{Flow, Flows};
pub use front::{FLEET, RUN};
pub use histogram::Histogram;
pub use host_costs::{COUNTERS, HostCost, HostCosts, HostCounter, Stack, Stacks};
pub use links::{Link, Links};
pub use nic::Nic;
pub use packets::{Packet, Packets};
pub use profile::{
    HistogramRow, Histograms, PROFILE, ProcessorRow, Processors, SoftirqRow, SoftirqRows,
    ThreadRow, ThreadRows,
};
pub use programs::{Program, Programs};
pub use qdisc::Qdisc;
pub use queue::{QueueSample, QueueSamples};
pub use reads::Reads;
pub use recording::RECORDING;
pub use sample_columns::KeptSamples;
pub use samples::{Sample, Samples};
pub use settings::Settings;
pub use snapshot::SNAPSHOT;
pub use sockets::Sockets;
pub use store::{Append, Bytes, Store, Taken, Value, Words};
pub use tcp_info::{TcpInfoSample, TcpInfoSamples};
pub use trace::{Ack, Acks, Connection, Connections, TRACE, TraceEvent, TraceEvents};

/// What writes tables, and the tables.
pub const KINDS: &[(&str, &[Schema])] = &[
    ("run", RUN),
    ("recording", RECORDING),
    ("trace", TRACE),
    ("profile", PROFILE),
    ("fleet", FLEET),
    ("snapshot", SNAPSHOT),
];

/// A table's description.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    pub name: &'static str,
    pub doc: &'static str,
    pub columns: &'static [Column],
}

/// A column's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Type,
    /// May a value be missing?
    pub nullable: bool,
    /// "" when the column has none (a name, a flag, a bare count).
    pub unit: &'static str,
    pub doc: &'static str,
    /// Where the definition comes from: a `tcp_info` field, an RFC, ourselves.
    pub source: &'static str,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    I32,
    I64,
    U64,
    F64,
    Bool,
    Text,
    Bytes,
    /// Few distinct texts: Arrow has a dictionary of them.
    Name,
    /// Of a snapshot, as the types below: a whole number.
    Integer,
    /// A whole number that grows from boot on, or since the device was reset.
    Count,
    Number,
    Integers,
    Texts,
    /// Values by name.
    Object,
    /// Counts by name.
    Counts,
}

impl Type {
    /// As the documentation names it.
    pub fn name(self) -> &'static str {
        match self {
            Type::I32 => "int32",
            Type::I64 => "int64",
            Type::U64 => "uint64",
            Type::F64 => "float64",
            Type::Bool => "bool",
            Type::Bytes => "bytes",
            // A reader sees no difference.
            Type::Text | Type::Name => "text",
            Type::Integer => "integer",
            Type::Count => "count",
            Type::Number => "number",
            Type::Integers => "integers",
            Type::Texts => "texts",
            Type::Object => "object",
            Type::Counts => "counts",
        }
    }
}

impl Column {
    /// Describes a column that holds values of type `V`.
    pub const fn of<V: Value>(
        name: &'static str,
        unit: &'static str,
        source: &'static str,
        doc: &'static str,
    ) -> Column {
        Column {
            name: bare(name),
            kind: V::Store::TYPE,
            nullable: V::Store::NULLABLE,
            unit,
            doc,
            source,
        }
    }

    /// The column with the type of `V` in the place of its own.
    pub const fn held_as<V: Value>(self) -> Column {
        Column {
            kind: V::Store::TYPE,
            nullable: V::Store::NULLABLE,
            ..self
        }
    }
}

/// A column's values.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
    F64(&'a [f64]),
    Bool(&'a [bool]),
    Text(&'a [String]),
    Bytes(&'a Bytes),
    Name(&'a Words),
    OptI32(&'a Numbers<i32>),
    OptI64(&'a Numbers<i64>),
    OptU64(&'a Numbers<u64>),
    OptF64(&'a Numbers<f64>),
    OptBool(&'a Flags),
    OptText(&'a Texts),
    OptName(&'a Names),
}

impl Values<'_> {
    /// The number of rows; 0 also for a column that is not kept.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        match self {
            Values::I32(values) => values.len(),
            Values::I64(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::Bool(values) => values.len(),
            Values::Text(values) => values.len(),
            Values::Bytes(values) => values.rows(),
            Values::Name(values) => values.keys().len(),
            Values::OptI32(values) => values.len(),
            Values::OptI64(values) => values.len(),
            Values::OptU64(values) => values.len(),
            Values::OptF64(values) => values.len(),
            Values::OptBool(values) => values.len(),
            Values::OptText(values) => values.len(),
            Values::OptName(values) => values.keys().len(),
        }
    }
}

/// A table: a name, a list of columns, and rows.
pub trait Table: Default {
    const SCHEMA: Schema;
    const NAME: &'static str = Self::SCHEMA.name;
    const COLUMNS: &'static [Column] = Self::SCHEMA.columns;
    /// Every column's values, in the order of `COLUMNS`.
    fn values(&self) -> Vec<Values<'_>>;
    fn rows(&self) -> usize;
}

/// A table that is filled by row number, up to [`ROWS`] rows, and leaves as a batch.
pub trait Batch: Table {
    /// Begins a row, all null, and returns its number.
    ///
    /// # Panics
    /// [`is_full`](Batch::is_full).
    fn add_row(&mut self) -> usize;
    /// Takes the rows out; columns that are not `kept` are dropped. Known names stay known.
    fn take(&mut self, kept: impl Fn(&str) -> bool) -> Self;

    fn is_full(&self) -> bool {
        self.rows() == ROWS
    }
}

/// The column of that name.
pub const fn like(name: &str, columns: &[Column]) -> Column {
    columns[position(name, columns)]
}

/// Where the column of that name stands in its table.
///
/// # Panics
/// Never at run time: the compiler evaluates it, and refuses an unknown name.
pub const fn position(name: &str, columns: &[Column]) -> usize {
    let mut position = 0;
    while !same(columns[position].name, name) {
        position += 1;
    }
    position
}

/// A column may have the name of a keyword of Rust: `r#final`.
const fn bare(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut position = 0;
    while position < one.len() {
        if one[position] != other[position] {
            return false;
        }
        position += 1;
    }
    true
}

/// Declares a table. `"flows" Flows of Flow { … }` is one to which engines append rows of type `Flow`;
/// `"sockets" Sockets { … }` is one that is filled by row number.
///
/// A column is `name: type, unit, source, meaning;`, or `name: type = like Other;` for that of another table.
#[macro_export]
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        $name:literal $table:ident of $row:ident {
            $($column:ident: $type:ty $(, $unit:literal, $source:literal, $about:literal)? $(= like $like:ident)?;)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $table {
            $(
                $(#[doc = $about])? $(#[doc = concat!("As in [`", stringify!($like), "`].")])?
                pub $column: <$type as $crate::Value>::Store,
            )*
        }

        #[doc = concat!("One row of `", $name, "`.")]
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub struct $row {
            $(
                $(#[doc = $about])? $(#[doc = concat!("As in [`", stringify!($like), "`].")])?
                pub $column: $type,
            )*
        }

        impl $table {
            #[inline]
            pub fn push(&mut self, row: $row) {
                $($crate::Append::push(&mut self.$column, row.$column);)*
            }

            /// Puts row `order[n]` in place n, a column at a time. Each row is named once.
            pub fn reorder(&mut self, order: &[u32]) {
                $($crate::Append::<$type>::reorder(&mut self.$column, order);)*
            }

            /// Removes all rows; the memory stays.
            pub fn clear(&mut self) {
                $($crate::Append::<$type>::clear(&mut self.$column);)*
            }
        }

        impl $crate::Table for $table {
            const SCHEMA: $crate::Schema = $crate::Schema {
                name: $name,
                doc: concat!($($doc),*),
                columns: &[$($crate::column!($column: $type $(, $unit, $source, $about)? $(= like $like)?),)*],
            };

            fn values(&self) -> Vec<$crate::Values<'_>> {
                vec![$($crate::Store::values(&self.$column),)*]
            }

            fn rows(&self) -> usize {
                [$($crate::Append::<$type>::rows(&self.$column),)*][0]
            }
        }
    };
    (
        $(#[doc = $doc:literal])*
        $name:literal $table:ident {
            $($column:ident: $type:ty $(, $unit:literal, $source:literal, $about:literal)? $(= like $like:ident)?;)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Default)]
        pub struct $table {
            rows: usize,
            $(
                $(#[doc = $about])? $(#[doc = concat!("As in [`", stringify!($like), "`].")])?
                pub $column: <$type as $crate::Value>::Store,
            )*
        }

        impl $crate::Table for $table {
            const SCHEMA: $crate::Schema = $crate::Schema {
                name: $name,
                doc: concat!($($doc),*),
                columns: &[$($crate::column!($column: $type $(, $unit, $source, $about)? $(= like $like)?),)*],
            };

            fn values(&self) -> Vec<$crate::Values<'_>> {
                vec![$($crate::Store::values(&self.$column),)*]
            }

            fn rows(&self) -> usize {
                self.rows
            }
        }

        impl $crate::Batch for $table {
            #[inline]
            fn add_row(&mut self) -> usize {
                assert!(self.rows < $crate::ROWS, "a full batch is taken before a row is added");
                self.rows += 1;
                self.rows - 1
            }

            fn take(&mut self, kept: impl Fn(&str) -> bool) -> $table {
                let rows = std::mem::take(&mut self.rows);
                let mut columns = <$table as $crate::Table>::COLUMNS.iter();
                let mut kept = || columns.next().is_some_and(|column| kept(column.name));
                $table {
                    rows,
                    $($column: {
                        let column = $crate::Taken::take(&mut self.$column, rows);
                        if kept() { column } else { Default::default() }
                    },)*
                }
            }
        }
    };
}

/// Describes one column of [`table!`].
#[doc(hidden)]
#[macro_export]
macro_rules! column {
    ($column:ident: $type:ty, $unit:literal, $source:literal, $about:literal) => {
        $crate::Column::of::<$type>(stringify!($column), $unit, $source, $about)
    };
    ($column:ident: $type:ty = like $like:ident) => {
        $crate::like(stringify!($column), <$like as $crate::Table>::COLUMNS).held_as::<$type>()
    };
}

/// Declares a table whose rows are not made here: `"hosts" HOSTS from "source" { name: Type, unit, meaning; }`.
macro_rules! declare {
    (
        $(#[doc = $doc:literal])*
        $name:literal $table:ident from $source:literal {
            $($column:ident: $kind:ident, $unit:literal, $about:literal;)*
        }
    ) => {
        pub const $table: $crate::Schema = $crate::Schema {
            name: $name,
            doc: concat!($($doc),*),
            columns: &[$($crate::Column {
                name: stringify!($column),
                kind: $crate::Type::$kind,
                nullable: true,
                unit: $unit,
                doc: $about,
                source: $source,
            },)*],
        };
    };
}
use declare;
