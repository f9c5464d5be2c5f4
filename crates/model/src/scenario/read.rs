//! From TOML text to settings: every key of the file with its checked values
//! and the line it stands on.

use toml_edit::{Array, Document, Item, Key as TomlKey, Table, TableLike, Value as Toml};

use super::Names;
use super::error::{Problem, ScenarioError, nearest};
use super::keys::{Default, Key, Section, TABLES};
use super::value::{self, Value};
use crate::queue;
use crate::trace::Files;
use crate::units::parse::quoted;

mod params;

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
}

/// Most `[[hop]]` tables: as long as paths get, an IP packet's time to live.
const MAX_HOP_TABLES: usize = 64;
/// Most `[[flow]]` tables: far above what a person writes, far below what hurts.
const MAX_FLOW_TABLES: usize = 10_000;

/// Reads the whole file.
pub(super) fn read(text: &str, file: &str, names: &Names) -> Result<Content, ScenarioError> {
    let line_starts = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| *byte == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    let reader = Reader {
        line_starts,
        file,
        names,
    };
    let document = Document::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| reader.line(span.start));
        let message = error
            .message()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        reader.error(line, Problem::Syntax { message })
    })?;
    reader.content(document.as_table())
}

struct Reader<'a> {
    /// Byte offsets at which line 2 and the following begin.
    line_starts: Vec<usize>,
    file: &'a str,
    names: &'a Names,
}

impl Reader<'_> {
    fn content(&self, root: &Table) -> Result<Content, ScenarioError> {
        let mut content = Content {
            settings: Vec::new(),
            n_hops: 0,
            flow_lines: Vec::new(),
            n_expects: 0,
            n_published: 0,
        };
        self.section(Section::Top, root, 1, &mut content.settings)?;
        let hops = self.tables(root, "hop")?;
        if hops.len() > MAX_HOP_TABLES {
            let got = format!("{} [[hop]] tables", hops.len());
            let problem = Problem::Value {
                key: "hop".into(),
                got,
                expected: format!("at most {MAX_HOP_TABLES}"),
                next: String::new(),
            };
            return Err(self.error(hops[MAX_HOP_TABLES].1, problem));
        }
        let path = match hops.len() {
            0 => Section::Path,
            _ => Section::Whole,
        };
        content.n_hops = hops.len();
        for (i, (table, line)) in hops.into_iter().enumerate() {
            self.section(Section::Hop(i), table, line, &mut content.settings)?;
        }
        for (name, section) in [
            ("path", path),
            ("sender", Section::Sender),
            ("receiver", Section::Receiver),
        ] {
            let (table, line): (&dyn TableLike, u32) = match root.get_key_value(name) {
                None => (&Table::new(), 1),
                Some((key, item)) => {
                    let line = self.key_line(key, 1);
                    let table = item.as_table_like().ok_or_else(|| {
                        let next = format!("Begin the table with a line [{name}].");
                        self.error(line, not(name, item, "a table", next))
                    })?;
                    (table, line)
                }
            };
            self.section(section, table, line, &mut content.settings)?;
        }
        let flows = self.tables(root, "flow")?;
        if flows.is_empty() {
            let problem = Problem::Missing {
                key: "flow".into(),
                expected: "at least one [[flow]] table".into(),
                next: "Add [[flow]] and, below it, algorithm = \"cubic\".".into(),
            };
            return Err(self.error(1, problem));
        }
        if flows.len() > MAX_FLOW_TABLES {
            let problem = Problem::Value {
                key: "flow".into(),
                got: format!("{} [[flow]] tables", flows.len()),
                expected: format!("at most {MAX_FLOW_TABLES}"),
                next: "Give flows that are alike one table and a count.".into(),
            };
            return Err(self.error(flows[MAX_FLOW_TABLES].1, problem));
        }
        for (i, (table, line)) in flows.into_iter().enumerate() {
            self.section(Section::Flow(i), table, line, &mut content.settings)?;
            content.flow_lines.push(line);
        }
        for (i, (table, line)) in self.tables(root, "expect")?.into_iter().enumerate() {
            self.section(Section::Expect(i), table, line, &mut content.settings)?;
            content.n_expects += 1;
        }
        for (i, (table, line)) in self.tables(root, "published")?.into_iter().enumerate() {
            self.section(Section::Published(i), table, line, &mut content.settings)?;
            content.n_published += 1;
        }
        Ok(content)
    }

    /// The tables of `[[name]]`, or of a list of inline tables, each with its line.
    fn tables<'d>(
        &self,
        root: &'d Table,
        name: &str,
    ) -> Result<Vec<(&'d dyn TableLike, u32)>, ScenarioError> {
        let Some((key, item)) = root.get_key_value(name) else {
            return Ok(Vec::new());
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
            self.error(line, problem)
        };
        match item {
            Item::ArrayOfTables(tables) => Ok(tables
                .iter()
                .map(|table| (table as &dyn TableLike, at(table.span())))
                .collect()),
            Item::Value(Toml::Array(array)) => array
                .iter()
                .map(|value| match value {
                    Toml::InlineTable(table) => Ok((table as &dyn TableLike, at(value.span()))),
                    other => Err(no(at(other.span()), value::shown(other))),
                })
                .collect(),
            other => Err(no(key_line, shown_item(other))),
        }
    }

    /// Reads one table into `settings`, then adds the defaults of what it does not say.
    fn section(
        &self,
        section: Section,
        table: &dyn TableLike,
        line: u32,
        settings: &mut Vec<Setting>,
    ) -> Result<(), ScenarioError> {
        for (name, item) in table.iter() {
            if section == Section::Top && TABLES.contains(&name) {
                continue;
            }
            let place = self.place(table, name, line);
            let path = section.path_of(&clean(name));
            if let Some(known) = section.keys().find(|key| key.name == name) {
                let read =
                    |toml: &Toml| value::read(&known.kind, &path, toml, self.names, self.files());
                let forms = || known.kind.forms();
                let read_as = match item {
                    Item::Value(toml) if known.kind.takes_list() => {
                        (false, vec![self.entry(place.line, toml, &read)?])
                    }
                    _ => self.entries(&path, place.line, item, known.axis, &forms, &read)?,
                };
                settings.push(place.setting(section, Target::Key(known), path, read_as));
            } else if let Some((owner, params)) = self.params_of(section, name) {
                self.params((section, name), owner, &params, item, place.line, settings)?;
            } else {
                return Err(self.error(place.line, self.unknown_key(section, name, path)));
            }
        }
        self.defaults(section, table, line, settings)
    }

    /// Where the key `name` stands in `table`, which begins at `line`.
    fn place(&self, table: &dyn TableLike, name: &str, line: u32) -> Place {
        let key = table.key(name);
        Place {
            line: key.map_or(line, |key| self.key_line(key, line)),
            offset: key.and_then(|key| key.span()).map_or(0, |span| span.start),
        }
    }

    fn defaults(
        &self,
        section: Section,
        table: &dyn TableLike,
        line: u32,
        settings: &mut Vec<Setting>,
    ) -> Result<(), ScenarioError> {
        for key in section.keys().filter(|key| !table.contains_key(key.name)) {
            let path = section.path_of(key.name);
            match key.default {
                Default::Words(_) => {}
                Default::Required(example) => {
                    let header = match section {
                        Section::Top => String::new(),
                        Section::Hop(_) => " in [[hop]]".into(),
                        Section::Flow(_) => " in [[flow]]".into(),
                        Section::Expect(_) => " in [[expect]]".into(),
                        Section::Published(_) => " in [[published]]".into(),
                        other => format!(" in [{}]", other.doc_prefix().trim_end_matches('.')),
                    };
                    let next = format!("Add {} = {example}{header}.", key.name);
                    return Err(self.error(
                        line,
                        Problem::Missing {
                            key: path,
                            expected: key.kind.forms(),
                            next,
                        },
                    ));
                }
                Default::Value(text) => {
                    let entry = Entry {
                        value: value::read_default(&key.kind, text),
                        label: text.into(),
                        line,
                    };
                    settings.push(Setting {
                        section,
                        target: Target::Key(key),
                        path,
                        line,
                        offset: 0,
                        is_axis: false,
                        is_default: true,
                        entries: vec![entry],
                    });
                }
            }
        }
        Ok(())
    }

    /// The value, or each value of the list, at `path`.
    fn entries(
        &self,
        path: &str,
        line: u32,
        item: &Item,
        may_be_axis: bool,
        forms: &dyn Fn() -> String,
        read: &ReadOne<'_>,
    ) -> Result<(bool, Vec<Entry>), ScenarioError> {
        let entry = |toml: &Toml| self.entry(line, toml, read);
        match item {
            Item::Value(Toml::Array(list)) if may_be_axis => {
                Ok((true, self.list(path, line, list, forms, &entry)?))
            }
            Item::Value(Toml::Array(_)) => {
                let next = "This key cannot be an axis of the matrix.".into();
                Err(self.error(line, not(path, item, &forms(), next)))
            }
            Item::Value(toml) => Ok((false, vec![entry(toml)?])),
            other => Err(self.error(line, not(path, other, &forms(), String::new()))),
        }
    }

    /// One value of a key that stands at `line`.
    fn entry(&self, line: u32, toml: &Toml, read: &ReadOne<'_>) -> Result<Entry, ScenarioError> {
        let line = toml.span().map_or(line, |span| self.line(span.start));
        let (value, label) = read(toml).map_err(|problem| self.error(line, problem))?;
        Ok(Entry { value, label, line })
    }

    fn list(
        &self,
        path: &str,
        line: u32,
        list: &Array,
        forms: &dyn Fn() -> String,
        entry: &dyn Fn(&Toml) -> Result<Entry, ScenarioError>,
    ) -> Result<Vec<Entry>, ScenarioError> {
        let refuse = |line, got: &str, next: &str| {
            let expected = format!("{}, or a list of such values", forms());
            self.error(
                line,
                Problem::Value {
                    key: path.into(),
                    got: got.into(),
                    expected,
                    next: next.into(),
                },
            )
        };
        if list.is_empty() {
            return Err(refuse(
                line,
                "an empty list",
                "Leave the key out to have its default.",
            ));
        }
        let mut seen = std::collections::HashSet::new();
        let mut entries = Vec::with_capacity(list.len());
        for toml in list.iter() {
            if toml.is_array() {
                return Err(refuse(line, "a list within a list", "Write one flat list."));
            }
            let entry = entry(toml)?;
            if !seen.insert(entry.label.clone()) {
                let got = format!("{} twice in a list", quoted(&entry.label));
                return Err(refuse(
                    entry.line,
                    &got,
                    "Remove one; `repeat` repeats a cell.",
                ));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    fn unknown_key(&self, section: Section, name: &str, path: String) -> Problem {
        let of_hop = |key: &Key| key.name == name || queue::find(name).is_some();
        if section == Section::Whole && Section::Hop(0).keys().any(of_hop) {
            let whole: Vec<&str> = section.keys().map(|key| key.name).collect();
            return Problem::Value {
                key: path,
                got: "a key of one hop, where [[hop]] tables make the path".into(),
                expected: format!(
                    "in [path] only {}, which hold for all hops",
                    whole.join(", ")
                ),
                next: "Move it into the [[hop]] tables.".into(),
            };
        }
        let tables = if section == Section::Top { TABLES } else { &[] };
        let owners: Vec<String> = match section {
            Section::Flow(_) => self
                .names
                .algorithms
                .iter()
                .map(|a| a.name.clone())
                .collect(),
            Section::Path | Section::Hop(_) => queue::QUEUES
                .iter()
                .flat_map(|kind| [kind.name.into(), format!("{ACK}{}", kind.name)])
                .collect(),
            _ => Vec::new(),
        };
        let here: Vec<&str> = section
            .keys()
            .map(|key| key.name)
            .chain(tables.iter().copied())
            .collect();
        let elsewhere = [
            Section::Top,
            Section::Path,
            Section::Sender,
            Section::Flow(0),
            Section::Receiver,
        ]
        .into_iter()
        .find(|other| other.keys().any(|key| key.name == name));
        let suggestion = match elsewhere {
            Some(other) => Some(format!("{}{name}", other.doc_prefix())),
            None => nearest(
                name,
                here.iter()
                    .copied()
                    .chain(owners.iter().map(String::as_str)),
            ),
        };
        Problem::UnknownKey {
            key: path,
            known: here.into_iter().map(String::from).collect(),
            suggestion,
        }
    }

    fn files(&self) -> Files<'_> {
        Files {
            read: self.names.read_file,
            scenario: self.file,
        }
    }

    fn key_line(&self, key: &TomlKey, otherwise: u32) -> u32 {
        key.span().map_or(otherwise, |span| self.line(span.start))
    }

    fn line(&self, offset: usize) -> u32 {
        1 + self.line_starts.partition_point(|start| *start <= offset) as u32
    }

    fn error(&self, line: u32, problem: Problem) -> ScenarioError {
        ScenarioError::new(self.file, line, problem)
    }
}

/// Reads one value: itself, and its label.
type ReadOne<'r> = dyn Fn(&Toml) -> Result<(Value, String), Problem> + 'r;

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
        Item::Value(toml) => value::shown(toml),
        Item::ArrayOfTables(_) => "a list of tables".into(),
        Item::Table(_) => "a table".into(),
        Item::None => "nothing".into(),
    }
}

/// A key's name, short and on one line.
fn clean(name: &str) -> String {
    quoted(name).trim_matches('"').to_string()
}
