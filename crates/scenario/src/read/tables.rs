//! The tables of a file: where each begins, and what stands in the place of one.

use crate::key::error::{Problem, shown};
use toml_edit::{Item, Table, TableLike, Value as Toml};

use super::{Reader, not, shown_item};

impl Reader<'_> {
    /// The table `[name]` and its line. Without one in the file an empty one; `None` where something else stands there,
    /// or probably should stand there under another name.
    pub(super) fn table<'d>(
        &'d self,
        root: &'d Table,
        name: &str,
    ) -> (Option<&'d dyn TableLike>, u32) {
        let Some((key, item)) = root.get_key_value(name) else {
            return ((!self.is_meant(name)).then_some(&self.empty as _), 1);
        };
        let line = self.key_line(key, 1);
        let table = item.as_table_like();
        if table.is_none() {
            let next = format!("Begin the table with a line [{name}].");
            self.mistakes.add(line, not(name, item, "a table", next));
        }
        (table, line)
    }

    /// The first `most` tables of `[[name]]`; `next` says what to do about more.
    pub(super) fn tables<'d>(
        &self,
        root: &'d Table,
        name: &str,
        most: usize,
        next: &str,
    ) -> Vec<(&'d dyn TableLike, u32)> {
        let mut found = self.all_tables(root, name);
        if found.len() > most {
            let problem = Problem::Value {
                key: name.into(),
                got: format!("{} [[{name}]] tables", found.len()),
                expected: format!("at most {most}"),
                next: next.into(),
            };
            self.mistakes.add(found[most].1, problem);
            found.truncate(most);
        }
        found
    }

    /// The tables of `[[name]]`, or of a list of inline tables, each with its line.
    pub(super) fn all_tables<'d>(
        &self,
        root: &'d Table,
        name: &str,
    ) -> Vec<(&'d dyn TableLike, u32)> {
        let Some((key, item)) = root.get_key_value(name) else {
            return Vec::new();
        };
        let key_line = self.key_line(key, 1);
        let at = |span: Option<std::ops::Range<usize>>| {
            span.map_or(key_line, |span| self.line(span.start))
        };
        let no = |line, got: String| {
            let problem = Problem::Value {
                key: name.into(),
                got,
                expected: format!("[[{name}]] tables"),
                next: format!("Begin each with a line [[{name}]], in double brackets."),
            };
            self.mistakes.add(line, problem);
        };
        match item {
            Item::ArrayOfTables(tables) => tables
                .iter()
                .map(|table| (table as &dyn TableLike, at(table.span())))
                .collect(),
            Item::Value(Toml::Array(array)) => array
                .iter()
                .filter_map(|value| match value {
                    Toml::InlineTable(table) => Some((table as &dyn TableLike, at(value.span()))),
                    other => {
                        no(at(other.span()), shown(other));
                        None
                    }
                })
                .collect(),
            other => {
                no(key_line, shown_item(other));
                Vec::new()
            }
        }
    }
}
