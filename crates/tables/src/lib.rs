//! The tables of a run: columns with unit, meaning and source.
//!
//! Engines fill these; the front exports them as Arrow with the same metadata.
//! A column exists here once, and both engines and every figure use its name.

mod cpu;
mod events;
mod flows;
mod histogram;
mod host_costs;
mod kept;
mod links;
mod profile;
mod programs;
mod queue;
mod reads;
mod samples;
mod store;
mod tcp_info;
mod trace;

pub use cpu::{CpuSample, CpuSamples};
pub use events::{Event, Events};
pub use flows::{Flow, Flows};
pub use histogram::Histogram;
pub use host_costs::{COUNTERS, HostCost, HostCosts, HostCounter, Stack, Stacks};
pub use kept::KeptSamples;
pub use links::{Link, Links};
pub use profile::{
    HistogramRow, Histograms, ProcessorRow, Processors, SoftirqRow, SoftirqRows, ThreadRow,
    ThreadRows,
};
pub use programs::{Program, Programs};
pub use queue::{QueueSample, QueueSamples};
pub use reads::Reads;
pub use samples::{Sample, Samples};
pub use store::{Names, Nullable, Store, Value};
pub use tcp_info::{TcpInfoSample, TcpInfoSamples};
pub use trace::{Ack, Acks, Connection, Connections, TraceEvent, TraceEvents};

/// A column's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    /// "" when the column has none (a name, a flag, a bare count).
    pub unit: &'static str,
    pub doc: &'static str,
    /// Where the definition comes from: a `tcp_info` field, an RFC, ourselves.
    pub source: &'static str,
}

/// A column's values.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
    F64(&'a [f64]),
    Bool(&'a [bool]),
    OptI64(&'a Nullable<i64>),
    OptF64(&'a Nullable<f64>),
    Text(&'a [String]),
    /// Few distinct texts: exported as a dictionary.
    Name(&'a Names),
}

impl Values<'_> {
    /// How many; 0 also of a column that is not kept.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        match self {
            Values::I32(values) => values.len(),
            Values::I64(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::Bool(values) => values.len(),
            Values::OptI64(values) => values.len(),
            Values::OptF64(values) => values.len(),
            Values::Text(values) => values.len(),
            Values::Name(values) => values.keys().len(),
        }
    }
}

/// A table: a name, a list of columns, and rows that engines append.
pub trait Table: Default {
    const NAME: &'static str;
    const COLUMNS: &'static [Column];
    /// Every column's values, in the order of `COLUMNS`.
    fn values(&self) -> Vec<Values<'_>>;
    fn rows(&self) -> usize;
}

/// Where the column of that name stands in its table.
///
/// # Panics
/// Never at run time: it is evaluated by the compiler, which refuses an unknown name.
pub const fn position(name: &str, columns: &[Column]) -> usize {
    let mut position = 0;
    while !same(columns[position].name, name) {
        position += 1;
    }
    position
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

/// Declares a table: a struct of columns, its row type and its description. A
/// column is described here, or as another table does.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $name:literal $table:ident of $row:ident {
            $($column:ident: $type:ty $(, $unit:literal, $source:literal, $doc:literal)? $(= like $like:ident)?;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        pub struct $table {
            $(
                $(#[doc = $doc])? $(#[doc = concat!("As in [`", stringify!($like), "`].")])?
                pub $column: <$type as $crate::Value>::Store,
            )*
        }

        #[doc = concat!("One row of `", $name, "`.")]
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub struct $row {
            $(
                $(#[doc = $doc])? $(#[doc = concat!("As in [`", stringify!($like), "`].")])?
                pub $column: $type,
            )*
        }

        impl $table {
            #[inline]
            pub fn push(&mut self, row: $row) {
                $($crate::Store::push(&mut self.$column, row.$column);)*
            }

            /// Puts row `order[n]` in place n, a column at a time. Each row is named once.
            pub fn reorder(&mut self, order: &[u32]) {
                $($crate::Store::reorder(&mut self.$column, order);)*
            }

            /// Without rows; the memory stays.
            pub fn clear(&mut self) {
                $($crate::Store::clear(&mut self.$column);)*
            }
        }

        impl $crate::Table for $table {
            const NAME: &'static str = $name;
            const COLUMNS: &'static [$crate::Column] = &[
                $(
                    $($crate::Column {
                        name: stringify!($column), unit: $unit, doc: $doc, source: $source,
                    })?
                    $(<$like as $crate::Table>::COLUMNS[$crate::position(
                        stringify!($column), <$like as $crate::Table>::COLUMNS,
                    )])?
                ,)*
            ];
            fn values(&self) -> Vec<$crate::Values<'_>> {
                vec![$($crate::Store::values(&self.$column),)*]
            }
            fn rows(&self) -> usize {
                [$($crate::Store::rows(&self.$column),)*][0]
            }
        }
    };
}
use table;
