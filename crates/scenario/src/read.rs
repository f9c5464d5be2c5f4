//! From TOML text to settings: every key of the file with its checked values
//! and the line it stands on.

use std::cell::RefCell;
use std::collections::HashSet;

use crate::key::error::{self, Mistakes, Problem};
use crate::key::names::Names;
use crate::key::value::Value;
use crate::key::{Default, Key, Kind};
use knee_units::files::{Files, ReadFiles};
use knee_units::parse::quoted;
use toml_edit::{Document, Item, Key as TomlKey, Table, TableLike};

use crate::axes::{Column, Sample, Zip};
use crate::keys::{Section, TABLES};

mod axes;
mod params;
mod tables;
mod unknown;
mod values;

/// What a setting sets.
#[derive(Clone)]
pub(super) enum Target {
    Key(&'static Key),
    /// A parameter of an algorithm, in a flow's table, or of a queue, in the path's.
    Param {
        /// The key that names the owner: `algorithm`, `queue`, `ack_queue`.
        key: &'static str,
        owner: String,
        name: String,
    },
}

/// One value of a setting.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) value: Value,
    /// As an axis shows it.
    pub(super) label: String,
    pub(super) line: u32,
    /// As TOML.
    pub(super) written: String,
    /// That the value names.
    pub(super) files: ReadFiles,
}

impl Entry {
    /// As the file has it.
    pub(super) fn shown(&self) -> String {
        // A number or a flag.
        if self.written == self.label {
            return self.label.clone();
        }
        quoted(&self.label)
    }

    /// What the registry says of a key of that kind.
    pub(super) fn of_registry(kind: &dyn Kind, text: &str, line: u32) -> Entry {
        let (value, written) = kind.default(text);
        Entry {
            value,
            label: text.into(),
            line,
            written: written.to_string(),
            files: Vec::new(),
        }
    }
}

/// A key of the file with its values, or a default.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) section: Section,
    pub(super) target: Target,
    /// `path.rtt`, `flow.0.bbr1.drain_gain`.
    pub(super) path: String,
    pub(super) line: u32,
    /// Byte offset of the key, which orders the axes; of no meaning for a default.
    pub(super) offset: usize,
    /// Written as a list.
    pub(super) is_axis: bool,
    pub(super) is_default: bool,
    /// Index of the sample that it is a column of.
    pub(super) sample: Option<usize>,
    pub(super) entries: Vec<Entry>,
}

/// What the names of tables begin with whose parameters are those of `ack_queue`.
pub(super) const ACK: &str = "ack_";

/// Where a key stands in the file.
#[derive(Clone, Copy)]
struct Place {
    line: u32,
    offset: usize,
}

impl Place {
    /// The setting written here, with its values and whether they are a list.
    fn setting(
        self,
        section: Section,
        target: Target,
        path: String,
        (is_axis, entries): (bool, Vec<Entry>),
    ) -> Setting {
        Setting {
            section,
            target,
            path,
            line: self.line,
            offset: self.offset,
            is_axis,
            is_default: false,
            sample: None,
            entries,
        }
    }
}

/// A file's content: settings checked one by one, not yet against each other.
pub(super) struct Content {
    pub(super) settings: Vec<Setting>,
    /// Number of `[[hop]]` tables; 0: `[path]` is the only hop.
    pub(super) n_hops: usize,
    /// Lines of the `[[flow]]` tables.
    pub(super) flow_lines: Vec<u32>,
    /// Number of `[[expect]]` tables.
    pub(super) n_expects: usize,
    /// Number of `[[published]]` tables.
    pub(super) n_published: usize,
    pub(super) zips: Vec<Zip>,
    pub(super) samples: Vec<Sample>,
    /// Keys whose values are no good, which has been told: what a cell would hold of them says nothing about the file.
    pub(super) spoilt: HashSet<(Section, &'static str)>,
}

/// Most `[[hop]]` tables: as long as paths get, an IP packet's time to live.
const MAX_HOP_TABLES: usize = 64;
/// Most `[[flow]]` tables: far above what a person writes, far below what hurts.
const MAX_FLOW_TABLES: usize = 10_000;

/// Reads the whole file; `None` when it is no TOML.
pub(super) fn read(text: &str, names: &Names, mistakes: &Mistakes<'_>) -> Option<Content> {
    let line_starts = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| *byte == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    let mut reader = Reader {
        line_starts,
        names,
        mistakes,
        meant: RefCell::default(),
        seen: RefCell::default(),
        zipped: HashSet::new(),
        columns: RefCell::default(),
        lacks_columns: false,
        empty: Table::new(),
    };
    match Document::parse(text) {
        Ok(document) => Some(reader.content(document.as_table())),
        Err(error) => {
            let line = error.span().map_or(1, |span| reader.line(span.start));
            let words: Vec<&str> = error.message().split_whitespace().collect();
            let message = words.join(" ");
            mistakes.add(line, Problem::Syntax { message });
            None
        }
    }
}

struct Reader<'a> {
    /// Byte offsets at which line 2 and the following begin.
    line_starts: Vec<usize>,
    names: &'a Names,
    mistakes: &'a Mistakes<'a>,
    /// Paths of the keys and tables that unknown ones probably stand for: those are not missing as well.
    meant: RefCell<HashSet<String>>,
    /// Files read for the value at work.
    seen: RefCell<ReadFiles>,
    /// Keys whose lists vary together.
    zipped: HashSet<String>,
    /// Keys that samples set.
    columns: RefCell<Vec<Column>>,
    /// Is there a sample of which nobody knows which keys it sets?
    lacks_columns: bool,
    /// A table that the file does not have.
    empty: Table,
}

impl Reader<'_> {
    fn content(&mut self, root: &Table) -> Content {
        let mut content = Content {
            settings: Vec::new(),
            n_hops: 0,
            flow_lines: Vec::new(),
            n_expects: 0,
            n_published: 0,
            zips: self.zips(root),
            samples: Vec::new(),
            spoilt: HashSet::new(),
        };
        self.zipped = content
            .zips
            .iter()
            .flat_map(|zip| zip.keys.clone())
            .collect();
        let columns;
        (content.samples, columns, self.lacks_columns) = self.samples(root);
        self.columns.replace(columns);
        self.section(Section::Top, Some(root), 1, &mut content);
        let hops = self.tables(root, "hop", MAX_HOP_TABLES, "");
        let path = match hops.len() {
            0 => Section::Path,
            _ => Section::Whole,
        };
        content.n_hops = hops.len();
        for (i, (table, line)) in hops.into_iter().enumerate() {
            self.section(Section::Hop(i), Some(table), line, &mut content);
        }
        for (name, section) in [
            ("path", path),
            ("sender", Section::Sender),
            ("receiver", Section::Receiver),
        ] {
            let (table, line) = self.table(root, name);
            self.section(section, table, line, &mut content);
        }
        let flows = self.tables(
            root,
            "flow",
            MAX_FLOW_TABLES,
            "Give identical flows one table and a count.",
        );
        if flows.is_empty() && !root.contains_key("flow") && !self.is_meant("flow") {
            let problem = Problem::Missing {
                key: "flow".into(),
                expected: "at least one [[flow]] table".into(),
                next: "Add [[flow]] and, below it, algorithm = \"cubic\".".into(),
            };
            self.mistakes.add(1, problem);
        }
        for (i, (table, line)) in flows.into_iter().enumerate() {
            self.section(Section::Flow(i), Some(table), line, &mut content);
            content.flow_lines.push(line);
        }
        for (i, (table, line)) in self.all_tables(root, "expect").into_iter().enumerate() {
            self.section(Section::Expect(i), Some(table), line, &mut content);
            content.n_expects += 1;
        }
        for (i, (table, line)) in self.all_tables(root, "published").into_iter().enumerate() {
            self.section(Section::Published(i), Some(table), line, &mut content);
            content.n_published += 1;
        }
        self.refuse_columns_left();
        content
    }

    /// Reads one table into the settings, then adds the defaults of what it does not say. `None`: the file has no such
    /// table that can be read, so that nothing is known of its keys.
    fn section(
        &self,
        section: Section,
        table: Option<&dyn TableLike>,
        line: u32,
        content: &mut Content,
    ) {
        for (name, item) in table.into_iter().flat_map(TableLike::iter) {
            if section == Section::Top && TABLES.contains(&name) {
                continue;
            }
            if self.mistakes.is_full() {
                break;
            }
            let place = self.place(table.expect("it has keys"), name, line);
            let path = section.path_of(&clean(name));
            if let Some(known) = section.keys().find(|key| key.name == name) {
                match self.values(known, &path, place.line, item) {
                    Some(values) => {
                        let setting = place.setting(section, Target::Key(known), path, values);
                        content.settings.push(setting);
                    }
                    None => _ = content.spoilt.insert((section, known.name)),
                }
            } else if let Some((owner, params)) = self.params_of(section, name) {
                let settings = &mut content.settings;
                self.params((section, name), owner, &params, item, place.line, settings);
            } else {
                let problem = self.unknown_key(section, name, path);
                self.mistakes.add(place.line, problem);
            }
        }
        let sampled = table.map(|table| self.sampled(section, table, content));
        let sampled = sampled.unwrap_or_default();
        for key in section.keys() {
            if table.is_none() {
                content.spoilt.insert((section, key.name));
            }
            if content.spoilt.contains(&(section, key.name)) {
                content.settings.extend(substitute(section, key, line));
            } else if table.is_some_and(|table| !table.contains_key(key.name))
                && !sampled.contains(key.name)
            {
                self.default(section, key, line, content);
            }
        }
    }

    /// Where the key `name` stands in `table`, which begins at `line`.
    fn place(&self, table: &dyn TableLike, name: &str, line: u32) -> Place {
        let key = table.key(name);
        Place {
            line: key.map_or(line, |key| self.key_line(key, line)),
            offset: key.and_then(|key| key.span()).map_or(0, |span| span.start),
        }
    }

    /// What holds where the table, which begins at `line`, does not have the key.
    fn default(&self, section: Section, key: &'static Key, line: u32, content: &mut Content) {
        content.settings.extend(substitute(section, key, line));
        let path = section.path_of(key.name);
        let is_meant = self.lacks_columns && key.axis
            || !self.meant.borrow().is_empty()
                && (self.is_meant(&path)
                    || self.is_meant(&format!("{}{}", section.doc_prefix(), key.name)));
        if is_meant || matches!(key.default, Default::Required(_)) {
            content.spoilt.insert((section, key.name));
        }
        match key.default {
            Default::Required(example) if !is_meant => {
                let header = section.header().map(|header| format!(" in {header}"));
                let header = header.unwrap_or_default();
                let problem = Problem::Missing {
                    key: path,
                    expected: key.kind.forms(),
                    next: format!("Add {} = {example}{header}.", key.name),
                };
                self.mistakes.add(line, problem);
            }
            _ => {}
        }
    }

    /// Does an unknown key or table probably stand for this one?
    fn is_meant(&self, path: &str) -> bool {
        self.meant.borrow().contains(path)
    }

    fn files(&self) -> Files<'_> {
        Files {
            read: self.names.read_file.as_ref(),
            scenario: self.mistakes.file(),
            seen: Some(&self.seen),
        }
    }

    fn key_line(&self, key: &TomlKey, otherwise: u32) -> u32 {
        key.span().map_or(otherwise, |span| self.line(span.start))
    }

    fn line(&self, offset: usize) -> u32 {
        1 + self.line_starts.partition_point(|start| *start <= offset) as u32
    }
}

/// A default, or what stands for a value that is no good: the default or, of a key without one, the example's.
fn substitute(section: Section, key: &'static Key, line: u32) -> Option<Setting> {
    let text = match key.default {
        Default::Words(_) => return None,
        Default::Value(text) => text,
        Default::Required(example) => example.trim_matches('"'),
    };
    Some(Setting {
        section,
        target: Target::Key(key),
        path: section.path_of(key.name),
        line,
        offset: 0,
        is_axis: false,
        is_default: true,
        sample: None,
        entries: vec![Entry::of_registry(key.kind, text, line)],
    })
}

/// `path` is not what it should be.
fn not(path: &str, item: &Item, expected: &str, next: String) -> Problem {
    Problem::Value {
        key: path.into(),
        got: shown_item(item),
        expected: expected.into(),
        next,
    }
}

fn shown_item(item: &Item) -> String {
    match item {
        Item::Value(toml) => error::shown(toml),
        Item::ArrayOfTables(_) => "a list of tables".into(),
        Item::Table(_) => "a table".into(),
        Item::None => "nothing".into(),
    }
}

/// A key's name, short and on one line.
fn clean(name: &str) -> String {
    quoted(name).trim_matches('"').to_string()
}
