//! The tables of axes: `[[zip]]`, `[[sample]]` and the keys that a sample sets.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::key::error::Problem;
use crate::key::kind::list::Places;
use crate::key::kind::{self, Kind};
use crate::key::value::Value;
use knee_units::parse::on_one_line;
use knee_units::rng::Stream;
use toml_edit::{Item, Table, TableLike};

use super::params::param;
use super::{Content, Entry, Place, Reader, Target, not};
use crate::axes::distribution::{self, Distribution, DistributionError};
use crate::axes::table::Paths;
use crate::axes::{Column, MAX_CELLS, Sample, Source, Zip, choose};
use crate::keys::Section;

impl Reader<'_> {
    pub(super) fn zips(&self, root: &Table) -> Vec<Zip> {
        let mut zips = Vec::new();
        for (i, (table, line)) in self.all_tables(root, "zip").into_iter().enumerate() {
            let section = Section::Zip(i);
            for (name, _) in table.iter().filter(|(name, _)| *name != "keys") {
                let place = self.place(table, name, line);
                let path = section.path_of(&shown_name(name));
                let problem = self.unknown_key(section, name, path);
                self.mistakes.add(place.line, problem);
            }
            let path = section.path_of("keys");
            if let Some((place, keys)) = self.own(section, table, line, "keys") {
                let (line, keys) = (place.line, keys.expect::<Vec<String>>().clone());
                zips.push(Zip { path, line, keys });
            } else if !table.contains_key("keys") {
                self.missing(
                    section,
                    "keys",
                    line,
                    "Add keys = [\"path.rate\", \"path.rtt\"].",
                );
            }
        }
        zips
    }

    /// The samples, the keys that they set, and whether there is one of which nobody knows which keys it sets.
    pub(super) fn samples(&self, root: &Table) -> (Vec<Sample>, Vec<Column>, bool) {
        let (mut samples, mut columns, mut lacks) = (Vec::new(), Vec::<Column>::new(), false);
        for (i, (table, line)) in self.all_tables(root, "sample").into_iter().enumerate() {
            let found = self.sample(Section::Sample(i), table, line, &samples);
            let Some((sample, of_sample)) = found else {
                lacks = true;
                continue;
            };
            samples.push(sample);
            for column in of_sample {
                if columns.iter().all(|other| other.path != column.path) {
                    columns.push(column);
                } else {
                    let expected = "one column or distribution for each key";
                    self.refuse(
                        column.line,
                        column.shown,
                        "a key that has one",
                        expected,
                        "Remove one.",
                    );
                }
            }
        }
        (samples, columns, lacks)
    }

    /// One sample behind those `before` it; `None`: nothing is known of what it sets.
    fn sample(
        &self,
        section: Section,
        table: &dyn TableLike,
        line: u32,
        before: &[Sample],
    ) -> Option<(Sample, Vec<Column>)> {
        let index = before.len();
        let own = |name| {
            let found = self.own(section, table, line, name);
            // What stands there and is no good has been told.
            (found.is_some() || !table.contains_key(name)).then_some(found)
        };
        let (file, rows, count, seed) = (own("file")?, own("rows")?, own("count")?, own("seed")?);
        let mut drawn = Vec::new();
        for (name, item) in table.iter() {
            if section.keys().all(|key| key.name != name) {
                self.flatten(table, name, item, String::new(), line, &mut drawn);
            }
        }
        let path = section.path_of("");
        let path = path.trim_end_matches('.');
        let keys = table
            .iter()
            .map(|(name, _)| self.place(table, name, line).offset);
        let mut sample = Sample {
            path: path.into(),
            offset: keys.min().unwrap_or_default(),
            file: None,
            rows: Vec::new(),
        };
        let mut paths = None;
        if let Some((place, name)) = &file {
            let read = self.files().parsed(name.expect::<String>(), Paths::read);
            sample.file = self.seen.take().into_iter().next();
            match read {
                Ok(read) => paths = Some((read, place.line)),
                Err(error) => {
                    let key = section.path_of("file");
                    let error = error.into();
                    self.mistakes.add(place.line, Problem::File { key, error });
                    return None;
                }
            }
        } else if drawn.is_empty() {
            self.missing(section, "file", line, "Add file = \"paths.csv\", or count = 500 and keys with distributions such as path.rtt = \"lognormal median 50ms sigma 0.8\".");
            return None;
        }
        let seed = seed.map_or(1, |(_, seed)| *seed.expect());
        let of_table = paths.as_ref().map(|(paths, _)| paths.n_rows());
        sample.rows = self.rows(section, line, of_table, (rows, count), seed)?;
        // Looked at before anything is read or drawn for so many.
        let lengths = before.iter().chain([&sample]);
        let cells = lengths.map(|sample| sample.rows.len() as u128).product();
        if cells > u128::from(MAX_CELLS) {
            let problem = Problem::MatrixTooLarge {
                key: path.into(),
                cells,
                limit: MAX_CELLS,
            };
            self.mistakes.add(line, problem);
            return None;
        }
        let mut columns = Vec::new();
        if let Some((paths, line)) = paths {
            let paths = Rc::new(paths);
            columns.extend(paths.columns.iter().enumerate().map(|(at, name)| Column {
                sample: index,
                path: name.clone(),
                shown: format!("{}: {}", sample.source(), paths.shown_column(at)),
                line,
                source: Source::Table(paths.clone(), at),
            }));
        }
        for (key, line, item) in drawn {
            let shown = format!("{path}.{}", shown_name(&key));
            let stream = Stream::new(seed, &format!("{path}.{key}"));
            let source = match self.distribution(&shown, line, item) {
                Some(law) => Source::Draws(law, stream),
                None => Source::Nothing,
            };
            columns.push(Column {
                sample: index,
                path: key,
                shown,
                line,
                source,
            });
        }
        Some((sample, columns))
    }

    /// Which rows a sample has, of a table of so many, or of draws; `None`: it has told why not.
    fn rows(
        &self,
        section: Section,
        line: u32,
        of_table: Option<usize>,
        (rows, count): (Option<Own>, Option<Own>),
        seed: u64,
    ) -> Option<Vec<u32>> {
        let refuse = |(place, got): (Place, String), name, expected: String, next: &str| {
            self.refuse(place.line, section.path_of(name), &got, &expected, next);
            None
        };
        let count = count.map(|(place, count)| (place, *count.expect::<u64>() as usize));
        let rows = rows.map(|(place, rows)| (place, *rows.expect::<Places>()));
        let Some(n_rows) = of_table else {
            if let Some((place, rows)) = rows {
                let expected = "it beside file, whose rows it means".into();
                return refuse(
                    (place, format!("\"{rows}\"")),
                    "rows",
                    expected,
                    "Remove it, or name a file.",
                );
            }
            if count.is_none() {
                self.missing(
                    section,
                    "count",
                    line,
                    "Add count = 500, or another number of draws.",
                );
            }
            return Some((1..=count?.1 as u32).collect());
        };
        let (first, last) = match rows {
            Some((place, rows)) if rows.last > n_rows => {
                let expected = format!("rows up to {n_rows}, the last of the table");
                return refuse((place, format!("\"{rows}\"")), "rows", expected, "");
            }
            Some((_, rows)) => (rows.first, rows.last),
            None => (1, n_rows),
        };
        let known: Vec<u32> = (first as u32..=last as u32).collect();
        match count {
            Some((place, count)) if count > known.len() => {
                let expected = format!("at most {}, the rows that there are", known.len());
                refuse(
                    (place, count.to_string()),
                    "count",
                    expected,
                    "None is chosen twice.",
                )
            }
            Some((_, count)) => {
                let rng = Stream::new(seed, &section.path_of("rows"));
                Some(choose(known, count, rng))
            }
            None => Some(known),
        }
    }

    /// A distribution that stands at `path`.
    fn distribution(&self, path: &str, line: u32, item: &Item) -> Option<Distribution> {
        let refuse = |expected: &str| {
            self.mistakes
                .add(line, not(path, item, expected, String::new()))
        };
        let Some(text) = item.as_str() else {
            refuse(distribution::FORMS);
            return None;
        };
        match Distribution::read(text) {
            Ok(law) => return Some(law),
            Err(DistributionError::Form) => refuse(distribution::FORMS),
            Err(DistributionError::Impossible(expected)) => refuse(expected),
            Err(DistributionError::Unit(error)) => {
                let key = path.into();
                self.mistakes.add(line, Problem::Unit { key, error });
            }
        }
        None
    }

    /// Reads the columns of samples that are keys of this table; returns their names.
    pub(super) fn sampled(
        &self,
        section: Section,
        table: &dyn TableLike,
        content: &mut Content,
    ) -> HashSet<&'static str> {
        let mut names = HashSet::new();
        if self.columns.borrow().is_empty() {
            return names;
        }
        let prefix = section.path_of("");
        let is_here = |column: &Column| {
            let rest = column.path.strip_prefix(&prefix);
            rest.is_some_and(|name| section != Section::Top || !name.contains('.'))
        };
        let columns = self.columns.take().into_iter();
        let (here, elsewhere): (Vec<Column>, Vec<Column>) = columns.partition(is_here);
        self.columns.replace(elsewhere);
        for column in here {
            let name = &column.path[prefix.len()..];
            let known = section.keys().find(|key| key.name == name);
            if let Some(key) = known {
                names.insert(key.name);
            }
            let read = self.column(section, table, &column, name, content);
            if let (None, Some(key)) = (read, known) {
                content.spoilt.insert((section, key.name));
            }
        }
        names
    }

    /// Reads one column into the settings; `None`: it has told why not.
    fn column(
        &self,
        section: Section,
        table: &dyn TableLike,
        column: &Column,
        name: &str,
        content: &mut Content,
    ) -> Option<()> {
        let refuse = |got: &str, expected: &str, next: &str| {
            self.refuse(column.line, column.shown.clone(), got, expected, next);
            None
        };
        let (owner, param_name) = name.split_once('.').unwrap_or((name, ""));
        let there = table.get(owner).filter(|item| {
            let params = item.as_table_like();
            param_name.is_empty() || params.is_none_or(|params| params.contains_key(param_name))
        });
        if there.is_some() {
            let got = format!("a key that {} sets as well", header(section));
            return refuse(&got, "one place for each key", "Remove one of them.");
        }
        let (target, entries) = if let Some(key) = section.keys().find(|key| key.name == name) {
            if !key.axis {
                return refuse(
                    "a key that cannot be an axis",
                    "keys that may be lists",
                    "Remove it here.",
                );
            }
            (
                Target::Key(key),
                self.entries_of(column, content, key.kind)?,
            )
        } else if let Some((owner, params)) = self.params_of(section, owner) {
            let info = match param(&params, owner.name, param_name, &column.shown) {
                Ok(info) => info,
                Err(problem) => {
                    self.mistakes.add(column.line, problem);
                    return None;
                }
            };
            let entries = self.entries_of(column, content, info)?;
            let target = Target::Param {
                key: owner.key,
                owner: owner.name.into(),
                name: info.name.clone(),
            };
            (target, entries)
        } else {
            let problem = self.unknown_key(section, name, column.shown.clone());
            self.mistakes.add(column.line, problem);
            return None;
        };
        let place = Place {
            line: column.line,
            offset: content.samples[column.sample].offset,
        };
        let mut setting = place.setting(section, target, column.path.clone(), (true, entries));
        setting.sample = Some(column.sample);
        content.settings.push(setting);
        Some(())
    }

    /// The values of a column, when all are good.
    fn entries_of(
        &self,
        column: &Column,
        content: &Content,
        kind: &dyn Kind,
    ) -> Option<Vec<Entry>> {
        // A distribution of the wrong unit is told once, and not of each draw.
        for bound in &column.bounds() {
            self.entry(&column.path, column.line, bound, kind)?;
        }
        let sample = &content.samples[column.sample];
        let mut known: HashMap<String, Entry> = HashMap::new();
        let mut entries = Vec::with_capacity(sample.rows.len());
        for (row, toml) in column.values(&sample.rows)? {
            if self.mistakes.is_full() {
                return None;
            }
            let written = toml.to_string();
            // Many rows may name the same file, which is read once.
            if let Some(entry) = known.get(&written) {
                entries.push(entry.clone());
                continue;
            }
            match kind::read(kind, &self.given(&column.path, &toml)) {
                Ok((value, label)) => {
                    let entry = Entry {
                        value,
                        label,
                        line: column.line,
                        written: written.clone(),
                        files: self.seen.take(),
                    };
                    entries.push(entry.clone());
                    known.insert(written, entry);
                }
                Err(problem) => {
                    let problem = match column.may_be_quoted() {
                        true => problem,
                        false => Problem::Withheld {
                            key: column.path.clone(),
                            expected: kind.forms(),
                        },
                    };
                    let problem = Problem::Row {
                        from: sample.source(),
                        row,
                        problem: Box::new(problem),
                    };
                    self.mistakes.add(column.line, problem);
                }
            }
        }
        (entries.len() == sample.rows.len()).then_some(entries)
    }

    /// Refuses columns that no table of the file has taken.
    pub(super) fn refuse_columns_left(&self) {
        for column in self.columns.take() {
            let expected =
                "a key of a table that the file has, such as path.rtt or flow.0.algorithm";
            let next = "Tables of a list are counted from 0.";
            self.refuse(
                column.line,
                column.shown,
                "a key of no table",
                expected,
                next,
            );
        }
    }

    /// A key of the table itself, where it stands and is good.
    fn own(&self, section: Section, table: &dyn TableLike, line: u32, name: &str) -> Option<Own> {
        let key = section.keys().find(|key| key.name == name)?;
        let item = table.get(name)?;
        let place = self.place(table, name, line);
        let (_, entries) = self.values(key, &section.path_of(name), place.line, item)?;
        let entry = entries.into_iter().next()?;
        Some((place, entry.value))
    }

    fn missing(&self, section: Section, name: &str, line: u32, next: &str) {
        let key = section.keys().find(|key| key.name == name);
        let problem = Problem::Missing {
            key: section.path_of(name),
            expected: key.map_or_else(String::new, |key| key.kind.forms()),
            next: next.into(),
        };
        self.mistakes.add(line, problem);
    }

    fn refuse(&self, line: u32, key: String, got: &str, expected: &str, next: &str) {
        let problem = Problem::Value {
            key,
            got: got.into(),
            expected: expected.into(),
            next: next.into(),
        };
        self.mistakes.add(line, problem);
    }

    /// The keys of dotted names and tables, each with its line: `path.rtt`.
    fn flatten<'d>(
        &self,
        table: &dyn TableLike,
        name: &str,
        item: &'d Item,
        prefix: String,
        line: u32,
        found: &mut Vec<(String, u32, &'d Item)>,
    ) {
        let line = self.place(table, name, line).line;
        let path = format!("{prefix}{name}");
        match item.as_table_like() {
            Some(inner) => {
                for (name, item) in inner.iter() {
                    self.flatten(inner, name, item, format!("{path}."), line, found);
                }
            }
            None => found.push((path, line, item)),
        }
    }
}

/// A key of the table itself: where it stands, and its value.
type Own = (Place, Value);

fn header(section: Section) -> &'static str {
    section.header().unwrap_or("the file")
}

/// A key or column of a file, short and on one line.
fn shown_name(name: &str) -> String {
    on_one_line(name, 60)
}
