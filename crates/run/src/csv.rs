//! Tables as text, for those that have no Arrow.

use std::fmt::Write as _;

use knee_tables::{Table, Values};

/// The table as CSV, with the columns' names in the first line. Numbers read back as they were; what is missing is empty.
pub fn csv<T: Table>(table: &T) -> String {
    let values = table.values();
    let names: Vec<&str> = T::COLUMNS.iter().map(|column| column.name).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..table.rows() {
        for (i, column) in values.iter().enumerate() {
            if i > 0 {
                text.push(',');
            }
            write(&mut text, column, row);
        }
        text.push('\n');
    }
    text
}

fn write(text: &mut String, column: &Values<'_>, row: usize) {
    let written = match column {
        Values::I32(values) => write!(text, "{}", values[row]),
        Values::I64(values) => write!(text, "{}", values[row]),
        Values::F64(values) => write!(text, "{}", values[row]),
        Values::Bool(values) => write!(text, "{}", values[row]),
        Values::OptI64(values) => values[row].map_or(Ok(()), |value| write!(text, "{value}")),
        Values::OptF64(values) => values[row].map_or(Ok(()), |value| write!(text, "{value}")),
        Values::Text(values) => write!(text, "\"{}\"", values[row].replace('"', "\"\"")),
        Values::Name(values) => write!(text, "\"{}\"", values[row]),
    };
    written.expect("a string takes everything");
}
