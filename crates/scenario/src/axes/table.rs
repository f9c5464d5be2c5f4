//! A table of paths, as CSV: a header of keys, and a row per path.

use knee_units::files::FileError;
use toml_edit::Value as Toml;

/// Header and rows.
pub(crate) struct Paths {
    pub(crate) columns: Vec<String>,
    rows: Vec<csv::StringRecord>,
}

impl Paths {
    /// Reads a table; `file` stands in errors.
    ///
    /// # Errors
    /// It is no table, or has no row.
    pub(crate) fn read(text: &str, file: &str) -> Result<Paths, FileError> {
        let whole = |what: &str| FileError::Whole {
            file: file.into(),
            what: what.into(),
        };
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let header = reader
            .headers()
            .map_err(|error| whole(&error.to_string()))?;
        let columns: Vec<String> = header.iter().map(String::from).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| whole(&error.to_string()))?;
            if record.len() != columns.len() {
                let line = record.position().map_or(0, csv::Position::line);
                return Err(FileError::Line {
                    file: file.into(),
                    line: line as usize,
                    got: record.iter().collect::<Vec<_>>().join(","),
                    expected: format!("{} values, as the header has names", columns.len()),
                });
            }
            rows.push(record);
        }
        if rows.is_empty() {
            return Err(whole(
                "got no row; expected a line of keys such as path.rate,path.rtt, and a line of values for each path.",
            ));
        }
        Ok(Paths { columns, rows })
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
