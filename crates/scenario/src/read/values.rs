//! The values of a key: one, or a list that makes an axis.

use std::collections::HashMap;

use crate::key::Key;
use crate::key::error::Problem;
use crate::key::kind::{self, Given, Kind};
use knee_units::parse::quoted;
use toml_edit::{Array, Item, Value as Toml};

use super::{Entry, Reader, not};

impl Reader<'_> {
    /// The values of a key of the registry.
    pub(super) fn values(
        &self,
        key: &'static Key,
        path: &str,
        line: u32,
        item: &Item,
    ) -> Option<(bool, Vec<Entry>)> {
        match item {
            Item::Value(toml) if key.kind.takes_list() => {
                Some((false, vec![self.entry(path, line, toml, key.kind)?]))
            }
            _ => self.entries(path, line, item, key.axis, key.kind),
        }
    }

    /// The value, or each value of the list, at `path`.
    pub(super) fn entries(
        &self,
        path: &str,
        line: u32,
        item: &Item,
        may_be_axis: bool,
        kind: &dyn Kind,
    ) -> Option<(bool, Vec<Entry>)> {
        let next = match item {
            Item::Value(Toml::Array(list)) if may_be_axis => {
                return Some((true, self.list(path, line, list, kind)?));
            }
            Item::Value(Toml::Array(_)) => "This key cannot be an axis of the matrix.",
            Item::Value(toml) => return Some((false, vec![self.entry(path, line, toml, kind)?])),
            _ => "",
        };
        let problem = not(path, item, &kind.forms(), next.into());
        self.mistakes.add(line, problem);
        None
    }

    /// What stands at `path`.
    pub(super) fn given<'g>(&'g self, path: &'g str, toml: &'g Toml) -> Given<'g> {
        Given {
            path,
            toml,
            names: self.names,
            files: self.files(),
        }
    }

    /// One value of a key that stands at `line`.
    pub(super) fn entry(
        &self,
        path: &str,
        line: u32,
        toml: &Toml,
        kind: &dyn Kind,
    ) -> Option<Entry> {
        let line = toml.span().map_or(line, |span| self.line(span.start));
        match kind::read(kind, &self.given(path, toml)) {
            Ok((value, label)) => Some(Entry {
                value,
                label,
                line,
                written: toml.clone().decorated("", "").to_string(),
                files: self.seen.take(),
            }),
            Err(problem) => {
                self.mistakes.add(line, problem);
                None
            }
        }
    }

    /// The values of a list, when all are good.
    fn list(&self, path: &str, line: u32, list: &Array, kind: &dyn Kind) -> Option<Vec<Entry>> {
        let refuse = |line, got: &str, next: &str| {
            let problem = Problem::Value {
                key: path.into(),
                got: got.into(),
                expected: format!("{}, or a list of such values", kind.forms()),
                next: next.into(),
            };
            self.mistakes.add(line, problem);
        };
        if list.is_empty() {
            refuse(
                line,
                "an empty list",
                "Leave the key out to have its default.",
            );
            return None;
        }
        // Labels by what they mean: "1%" is "1.0%".
        let mut seen: HashMap<String, String> = HashMap::new();
        let mut entries = Vec::with_capacity(list.len());
        for toml in list.iter() {
            if self.mistakes.is_full() {
                return None;
            }
            if toml.is_array() {
                refuse(line, "a list within a list", "Write one flat list.");
                continue;
            }
            let Some(entry) = self.entry(path, line, toml, kind) else {
                continue;
            };
            let same = seen.insert(format!("{:?}", entry.value), entry.label.clone());
            if let (Some(same), false) = (same, self.zipped.contains(path)) {
                let label = quoted(&entry.label);
                let got = match same == entry.label {
                    true => format!("{label} twice in a list"),
                    false => format!("{label} beside {}, which is the same", quoted(&same)),
                };
                refuse(entry.line, &got, "Remove one; `repeat` repeats a cell.");
            } else {
                entries.push(entry);
            }
        }
        (entries.len() == list.len()).then_some(entries)
    }
}
