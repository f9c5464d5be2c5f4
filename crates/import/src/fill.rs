//! Rows, and values of them that may be missing: numbers by [`knee_tables::column::set`].

use knee_store::Anonymiser;
use knee_store::arrow::Lent;
use knee_tables::{Batch, Flags, Names, Texts};

use super::{Filled, addresses};

/// Of a title or name at most this much: a batch's texts must have an end.
const TEXT_BYTES: usize = 4096;

pub fn flag(to: &mut Flags, row: usize, value: Option<bool>) {
    if let Some(value) = value {
        to.set(row, value);
    }
}

pub fn name(to: &mut Names, row: usize, value: Option<&str>) {
    if let Some(value) = value {
        to.set(row, capped(value, TEXT_BYTES));
    }
}

/// An address, or a host's name, which tells as much.
pub fn host(to: &mut Texts, row: usize, value: Option<&str>, anonymiser: &Anonymiser) {
    text(to, row, value, anonymiser, addresses::list);
}

/// A text that may have addresses in it.
pub fn words(to: &mut Texts, row: usize, value: Option<&str>, anonymiser: &Anonymiser) {
    text(to, row, value, anonymiser, addresses::within);
}

fn text(
    to: &mut Texts,
    row: usize,
    value: Option<&str>,
    anonymiser: &Anonymiser,
    hide: impl Fn(&str, &Anonymiser, &mut String),
) {
    let Some(value) = value.map(|value| capped(value, TEXT_BYTES)) else {
        return;
    };
    match anonymiser {
        Anonymiser::Keep => to.set(row, value),
        _ => {
            let mut hidden = String::new();
            hide(value, anonymiser, &mut hidden);
            to.set(row, &hidden);
        }
    }
}

/// The beginning of a text, at most so long.
pub fn capped(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Begins a row; a batch that is full goes first.
pub fn add_row<T: Batch + Lent>(table: &mut T, full: &mut Vec<Filled>) -> usize {
    if table.is_full() {
        put_away(table, full);
    }
    table.add_row()
}

/// Hands on the rows of a table that has some.
pub fn put_away<T: Batch + Lent>(table: &mut T, full: &mut Vec<Filled>) {
    if table.rows() > 0 {
        full.push((T::NAME, knee_store::take(table)));
    }
}
