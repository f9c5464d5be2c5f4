//! The table `requests`: columns that a format's variables fill.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, SchemaRef};
use knee_store::Anonymiser;
use knee_store::arrow::{described, schema_of, take_column};
use knee_tables::{Column as Description, Names, Numbers, ROWS, Texts, Type};

use super::super::addresses;
use super::TABLE;
use super::format::{Format, Mismatch};
use super::values::{self, Clock};
use super::variables::{KNOWN, Kind, REQUEST, known};

/// Of the lines of a batch: a column's texts stay below Arrow's 2 GiB, however
/// long they are.
const BATCH_BYTES: usize = 64 << 20;

/// Reads lines of one format into columns.
pub struct Requests {
    format: Format,
    slots: Vec<Slot>,
    columns: Vec<Column>,
    schema: SchemaRef,
    anonymiser: Anonymiser,
    clock: Clock,
    rows: usize,
    bytes: usize,
    // Kept between lines, so that a line allocates nothing of its own.
    ranges: Vec<Range<usize>>,
    values: Vec<(usize, Value)>,
    text: String,
}

/// A variable's kind and the columns that it fills. `None`: another variable
/// tells that better, or told it before.
struct Slot {
    kind: Kind,
    columns: [Option<usize>; 3],
}

enum Column {
    Integer(Numbers<i64>),
    Text(Texts),
    Name(Names),
}

/// A value that is about to be stored; texts are where they stand in the line.
enum Value {
    Integer(i64),
    Text(Range<usize>),
    Addresses(Range<usize>),
}

/// A line that is not of the format.
pub enum Odd<'a> {
    Mismatch(Mismatch),
    Value { variable: &'a str, value: Vec<u8> },
}

impl Odd<'_> {
    /// What it is, without anything of the line.
    pub fn without_value(&self) -> String {
        match self {
            Odd::Mismatch(mismatch) => mismatch.to_string(),
            Odd::Value { variable, .. } => format!("${variable} is not what nginx writes for it"),
        }
    }
}

impl fmt::Display for Odd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Odd::Mismatch(mismatch) => mismatch.fmt(f),
            Odd::Value { variable, value } => {
                write!(f, "${variable} is {:?}", String::from_utf8_lossy(value))
            }
        }
    }
}

/// Every column that a known variable can fill.
pub fn columns() -> Vec<Description> {
    let mut columns: Vec<Description> = Vec::new();
    let mut add = |name: &'static str, kind: Kind, unit, doc, source| {
        if columns.iter().all(|column| column.name != name) {
            columns.push(Description {
                name,
                kind: Column::of(kind).kind(),
                nullable: true,
                unit,
                doc,
                source,
            });
        }
    };
    for known in KNOWN {
        if known.kind == Kind::Request {
            for (name, kind, doc) in REQUEST {
                add(name, kind, "", doc, "nginx $request");
            }
        } else {
            add(
                known.column,
                known.kind,
                known.unit,
                known.doc,
                known.source,
            );
        }
    }
    columns
}

impl Requests {
    pub fn new(format: Format, anonymiser: Anonymiser) -> Requests {
        let clock = best_clock(format.names());
        let mut fields: Vec<Field> = Vec::new();
        let mut columns = Vec::new();
        let mut add = |name: &str, kind: Kind, unit: &str, doc: &str, variable: &str| {
            if fields.iter().any(|field| field.name() == name) {
                return None;
            }
            let column = Column::of(kind);
            let about = [unit, doc, &format!("nginx ${variable}")];
            fields.push(described(name, column.kind(), true, about));
            columns.push(column);
            Some(columns.len() - 1)
        };
        let slots = format
            .names()
            .iter()
            .map(|name| match known(name) {
                None => Slot {
                    kind: Kind::Text,
                    columns: [add(name, Kind::Text, "", "as in the log", name), None, None],
                },
                Some(known) if known.kind == Kind::Request => Slot {
                    kind: Kind::Request,
                    columns: REQUEST.map(|(column, kind, doc)| {
                        // `$request_method` by itself needs no splitting.
                        let told = format.names().iter().any(|name| name == column);
                        (!told).then(|| add(column, kind, "", doc, name)).flatten()
                    }),
                },
                Some(known) => {
                    let is_told = known.kind.is_time() && Some(known.kind) != clock;
                    let column = (!is_told)
                        .then(|| add(known.column, known.kind, known.unit, known.doc, name))
                        .flatten();
                    Slot {
                        kind: known.kind,
                        columns: [column, None, None],
                    }
                }
            })
            .collect();
        Requests {
            format,
            slots,
            columns,
            schema: Arc::new(schema_of(TABLE, fields)),
            anonymiser,
            clock: Clock::default(),
            rows: 0,
            bytes: 0,
            ranges: Vec::new(),
            values: Vec::new(),
            text: String::new(),
        }
    }

    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn is_full(&self) -> bool {
        self.rows == ROWS || self.bytes >= BATCH_BYTES
    }

    /// Is a line one of the format?
    pub fn fits(&self, line: &[u8]) -> bool {
        let mut ranges = Vec::new();
        let mut clock = Clock::default();
        self.format.split(line, &mut ranges).is_ok()
            && ranges
                .iter()
                .zip(&self.slots)
                .all(|(range, slot)| read(line, range, slot, &mut clock, &mut Vec::new()).is_some())
    }

    /// Does each line begin with a time of the format's own?
    pub fn begins_with_time(&self) -> bool {
        self.format.has_no_head() && self.slots.first().is_some_and(|slot| slot.kind.is_time())
    }

    /// Takes a line as one row.
    ///
    /// # Errors
    /// The line is not one of the format. No row was added.
    ///
    /// # Panics
    /// [`is_full`](Requests::is_full).
    pub fn add(&mut self, line: &[u8]) -> Result<(), Odd<'_>> {
        self.format
            .split(line, &mut self.ranges)
            .map_err(Odd::Mismatch)?;
        // All values first: a row is whole or it is not there.
        self.values.clear();
        for (n, (range, slot)) in self.ranges.iter().zip(&self.slots).enumerate() {
            if read(line, range, slot, &mut self.clock, &mut self.values).is_none() {
                return Err(Odd::Value {
                    variable: &self.format.names()[n],
                    value: line[range.clone()].to_vec(),
                });
            }
        }
        let row = self.rows;
        // Looked at once, not value by value: most lines have no escape.
        let plain = values::plain(line, self.format.escape());
        let text = |range: Range<usize>| match plain {
            Some(line) => Cow::Borrowed(&line[range]),
            None => values::text(&line[range], self.format.escape()),
        };
        for (column, value) in self.values.drain(..) {
            match (value, &mut self.columns[column]) {
                (Value::Integer(value), Column::Integer(column)) => column.set(row, value),
                (Value::Text(range), column) => {
                    let text = text(range);
                    match &self.anonymiser {
                        Anonymiser::Keep => column.set_text(row, &text),
                        anonymiser => {
                            addresses::within(&text, anonymiser, &mut self.text);
                            column.set_text(row, &self.text);
                        }
                    }
                }
                (Value::Addresses(range), column) => {
                    let text = text(range);
                    match &self.anonymiser {
                        Anonymiser::Keep => column.set_text(row, &text),
                        anonymiser => {
                            addresses::list(&text, anonymiser, &mut self.text);
                            column.set_text(row, &self.text);
                        }
                    }
                }
                (Value::Integer(_), _) => unreachable!("columns are made of kinds"),
            }
        }
        self.rows += 1;
        self.bytes += line.len();
        Ok(())
    }

    /// The rows taken since the last call.
    pub fn take(&mut self) -> RecordBatch {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let arrays = self.columns.iter_mut().map(|column| column.take(rows));
        RecordBatch::try_new(Arc::clone(&self.schema), arrays.collect())
            .expect("each column has a value or a null per row")
    }
}

impl Column {
    fn of(kind: Kind) -> Column {
        match kind {
            Kind::Text | Kind::Address | Kind::Addresses | Kind::Request => {
                Column::Text(Texts::default())
            }
            Kind::Name => Column::Name(Names::default()),
            _ => Column::Integer(Numbers::default()),
        }
    }

    fn kind(&self) -> Type {
        match self {
            Column::Integer(_) => Type::I64,
            Column::Text(_) => Type::Text,
            Column::Name(_) => Type::Name,
        }
    }

    fn set_text(&mut self, row: usize, text: &str) {
        match self {
            Column::Text(column) => column.set(row, text),
            Column::Name(column) => column.set(row, text),
            Column::Integer(_) => unreachable!("columns are made of kinds"),
        }
    }

    fn take(&mut self, rows: usize) -> ArrayRef {
        match self {
            Column::Integer(column) => take_column(column, rows),
            Column::Text(column) => take_column(column, rows),
            Column::Name(column) => take_column(column, rows),
        }
    }
}

/// The most exact of the format's times: they all tell of one moment.
fn best_clock(names: &[String]) -> Option<Kind> {
    [Kind::UnixTime, Kind::IsoTime, Kind::LocalTime]
        .into_iter()
        .find(|&kind| {
            names
                .iter()
                .any(|name| known(name).is_some_and(|known| known.kind == kind))
        })
}

/// Reads one variable's value; `None`: it is not of its kind. What is absent
/// adds nothing.
#[inline]
fn read(
    line: &[u8],
    range: &Range<usize>,
    slot: &Slot,
    clock: &mut Clock,
    into: &mut Vec<(usize, Value)>,
) -> Option<()> {
    let value = &line[range.clone()];
    if values::is_absent(value) {
        return Some(());
    }
    if slot.kind == Kind::Request {
        for (part, column) in values::request(value).into_iter().zip(slot.columns) {
            if let (Some(part), Some(column)) = (part, column) {
                let part = range.start + part.start..range.start + part.end;
                into.push((column, Value::Text(part)));
            }
        }
        return Some(());
    }
    let Some(column) = slot.columns[0] else {
        return Some(());
    };
    let number = match slot.kind {
        Kind::Text | Kind::Name | Kind::Request => {
            into.push((column, Value::Text(range.clone())));
            return Some(());
        }
        Kind::Address if !values::is_address(value) => return None,
        Kind::Address | Kind::Addresses => {
            into.push((column, Value::Addresses(range.clone())));
            return Some(());
        }
        Kind::Integer | Kind::Microseconds => values::integer(value)?,
        Kind::Seconds => values::seconds(value, 6)?,
        Kind::UnixTime => values::seconds(value, 9)?,
        Kind::IsoTime => clock.iso(value)?,
        Kind::LocalTime => clock.local(value)?,
        Kind::IntegerSum => match values::sum(value, values::integer)? {
            Some(sum) => sum,
            None => return Some(()),
        },
        Kind::SecondsSum => match values::sum(value, |one| values::seconds(one, 6))? {
            Some(sum) => sum,
            None => return Some(()),
        },
    };
    into.push((column, Value::Integer(number)));
    Some(())
}
