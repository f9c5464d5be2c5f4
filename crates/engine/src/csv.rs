//! Tables as text, for those that have no Arrow.

use std::fmt::Write as _;

use knee_tables::{Table, Values};

/// The table as CSV, with the columns' names in the first line; those that the run did not keep are left out. Numbers read back as they were; what is missing is empty.
pub fn csv<T: Table>(table: &T) -> String {
    let columns = T::COLUMNS.iter().zip(table.values());
    let kept = columns.filter(|(_, values)| values.len() == table.rows());
    let (names, values): (Vec<&str>, Vec<Values<'_>>) =
        kept.map(|(column, values)| (column.name, values)).unzip();
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
        Values::OptI64(values) => values
            .get(row)
            .map_or(Ok(()), |value| write!(text, "{value}")),
        Values::OptF64(values) => values
            .get(row)
            .map_or(Ok(()), |value| write!(text, "{value}")),
        Values::Text(values) => write!(text, "\"{}\"", values[row].replace('"', "\"\"")),
        Values::Name(values) => write!(text, "\"{}\"", values[row]),
    };
    written.expect("a string takes everything");
}
