//! A table of paths, as CSV: a header of keys, and a row per path.

use knee_units::files::{FileError, Found, NOT_SHOWN};
use knee_units::parse::{on_one_line, quoted};
use toml_edit::Value as Toml;

/// Header and rows.
pub(crate) struct Paths {
    pub(crate) columns: Vec<String>,
    rows: Vec<csv::StringRecord>,
    /// Errors may quote what it holds.
    pub(crate) may_be_quoted: bool,
}

impl Paths {
    /// Reads a table; `file` stands in errors.
    ///
    /// # Errors
    /// It is no table, or has no row.
    pub(crate) fn read(file: &str, found: &Found) -> Result<Paths, FileError> {
        const ROWS: &str =
            "a line of keys such as path.rate,path.rtt, and a line of values for each path";
        let refused = |line: Option<u64>, got: String, expected: &str| FileError::Content {
            file: file.into(),
            line: line.map(|line| line as usize),
            got,
            expected: expected.into(),
        };
        let no_csv = |error: csv::Error| {
            let line = error.position().map(csv::Position::line);
            refused(line, format!("this is no CSV: {error}"), ROWS)
        };
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(found.text.as_bytes());
        let header = reader.headers().map_err(no_csv)?;
        let columns: Vec<String> = header.iter().map(String::from).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(no_csv)?;
            if record.len() != columns.len() {
                let line = record.position().map(csv::Position::line);
                let got = quoted(&record.iter().collect::<Vec<_>>().join(","));
                let expected = format!("{} values, as the header has names", columns.len());
                return Err(refused(line, format!("got {got}"), &expected));
            }
            rows.push(record);
        }
        if rows.is_empty() {
            return Err(refused(None, "got no row".into(), ROWS));
        }
        Ok(Paths {
            columns,
            rows,
            may_be_quoted: found.may_be_quoted,
        })
    }

    /// A column as errors name it.
    pub(crate) fn shown_column(&self, at: usize) -> String {
        match self.may_be_quoted {
            true => on_one_line(&self.columns[at], 60),
            false => format!("column {}, {NOT_SHOWN}", at + 1),
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// A value, as a scenario would have it; rows are counted from 1.
    pub(crate) fn value(&self, column: usize, row: u32) -> Toml {
        let text = &self.rows[row as usize - 1][column];
        // Words such as "inf" are numbers to Rust.
        let may_be_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let number = || {
            let float = || text.parse::<f64>().ok().map(Toml::from);
            text.parse::<i64>().ok().map(Toml::from).or_else(float)
        };
        match text {
            "true" => true.into(),
            "false" => false.into(),
            _ => may_be_number
                .then(number)
                .flatten()
                .unwrap_or_else(|| text.into()),
        }
    }
}
