//! Tables as text, for callers without Arrow.

use std::fmt::{self, Display, Write as _};

use knee_tables::{Table, Values};

/// The table as CSV. The first line has the names of the columns that the run kept. Numbers read back unchanged; a missing value is empty.
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
    fn number(text: &mut String, value: Option<impl Display>) -> fmt::Result {
        value.map_or(Ok(()), |value| write!(text, "{value}"))
    }
    fn quoted(text: &mut String, value: Option<&str>) -> fmt::Result {
        value.map_or(Ok(()), |value| {
            write!(text, "\"{}\"", value.replace('"', "\"\""))
        })
    }
    let written = match column {
        Values::I32(values) => number(text, Some(values[row])),
        Values::I64(values) => number(text, Some(values[row])),
        Values::F64(values) => number(text, Some(values[row])),
        Values::Bool(values) => number(text, Some(values[row])),
        Values::Text(values) => quoted(text, Some(&values[row])),
        // As the text of hexadecimal digits.
        Values::Bytes(values) => values[row]
            .iter()
            .try_for_each(|byte| write!(text, "{byte:02x}")),
        Values::Name(values) => quoted(text, Some(values[row])),
        Values::OptI32(values) => number(text, values.get(row)),
        Values::OptI64(values) => number(text, values.get(row)),
        Values::OptU64(values) => number(text, values.get(row)),
        Values::OptF64(values) => number(text, values.get(row)),
        Values::OptBool(values) => number(text, values.get(row)),
        Values::OptText(values) => quoted(text, values.get(row)),
        Values::OptName(values) => quoted(text, values.get(row)),
    };
    written.expect("a string takes everything");
}
