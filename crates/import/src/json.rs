//! JSON that other tools wrote, read without trust: any value may stand anywhere,
//! and what is not as expected is named and left out.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};

use knee_store::Anonymiser;
use serde_json::Value;

use super::counts::Report;
use super::fill::capped;

/// Of a value that is shown, at most this much.
const SHOWN_BYTES: usize = 60;
/// Of one document's oddities.
const ODD_KEPT: usize = 5;

impl<M> Report<M> {
    /// Closes out a document of the current file.
    pub(super) fn document(&mut self, odd: Odd) {
        self.units += 1;
        let odd = odd.found.into_inner();
        self.not_understood += u64::from(!odd.is_empty());
        for (line, text) in odd {
            self.show(line, || text);
        }
    }
}

/// What is odd about the document being read.
pub(super) struct Odd {
    found: RefCell<Vec<(Option<u64>, String)>>,
    /// May values be shown?
    shows: bool,
}

impl Odd {
    pub fn new(anonymiser: &Anonymiser) -> Odd {
        Odd {
            found: RefCell::default(),
            shows: matches!(anonymiser, Anonymiser::Keep),
        }
    }

    pub fn add(&self, line: Option<u64>, text: String) {
        let mut found = self.found.borrow_mut();
        if found.len() < ODD_KEPT {
            found.push((line, text));
        }
    }

    /// What is not JSON, or not of the shape; `first` is the line of its beginning.
    pub fn syntax(&self, error: &serde_json::Error, first: u64) {
        let line = first - 1 + error.line().max(1) as u64;
        let text = error.to_string();
        let text = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(text, _)| text);
        let what = match error.is_data() {
            // The message has a value of the file in it.
            true if !self.shows => "not of the expected shape".to_owned(),
            true => text.to_owned(),
            false => format!("not JSON: {text}"),
        };
        self.add(
            Some(line),
            format!("{what} in column {}", error.column().max(1)),
        );
    }
}

/// A value and how it was reached.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    value: &'a Value,
    up: Option<&'a Part<'a>>,
    key: &'a str,
    /// Within a list of that key.
    index: Option<usize>,
    odd: &'a Odd,
}

impl<'a> Part<'a> {
    /// `key` and, within a list, `index` are what its path begins with.
    pub fn root(key: &'a str, index: Option<usize>, value: &'a Value, odd: &'a Odd) -> Part<'a> {
        Part {
            value,
            up: None,
            key,
            index,
            odd,
        }
    }

    pub fn odd(&self) -> &'a Odd {
        self.odd
    }

    /// Those of its members that are lists; others are named as odd.
    pub fn lists(&'a self) -> impl Iterator<Item = Part<'a>> {
        let members = self.value.as_object().into_iter().flatten();
        members
            .map(move |(key, value)| self.child(key, value, None))
            .filter(|part| {
                let is_list = part.value.is_array();
                if !is_list && !part.value.is_null() {
                    part.unexpected("a list");
                }
                is_list
            })
    }

    /// The objects within it where it is a list.
    pub fn elements(&'a self) -> impl Iterator<Item = Part<'a>> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items
            .map(move |(index, value)| Part {
                value,
                index: Some(index),
                ..*self
            })
            .filter(Part::is_object)
    }

    pub fn key(&self) -> &'a str {
        self.key
    }

    pub fn value(&self) -> &'a Value {
        self.value
    }

    pub fn object(&'a self, key: &'a str) -> Option<Part<'a>> {
        self.told(key, "an object", |value| value.is_object().then_some(value))
            .map(|value| self.child(key, value, None))
    }

    /// The objects of a list; none where there is no list.
    pub fn objects(&'a self, key: &'a str) -> impl Iterator<Item = Part<'a>> {
        self.items(key).filter(Part::is_object)
    }

    /// The values of a list; none where there is no list.
    pub fn items(&'a self, key: &'a str) -> impl Iterator<Item = Part<'a>> {
        let list = self.told(key, "a list", Value::as_array);
        list.into_iter()
            .flatten()
            .enumerate()
            .map(move |(index, value)| self.child(key, value, Some(index)))
    }

    /// A number without its fraction.
    pub fn int(&'a self, key: &'a str) -> Option<i64> {
        let expected = match self.value.get(key) {
            Some(Value::Number(_)) => "a number below 2^63, which a column can hold",
            _ => "a number",
        };
        self.told(key, expected, whole)
    }

    /// A number that is 0 or more; -1 stands for one that is not known.
    pub fn count(&'a self, key: &'a str) -> Option<i64> {
        let told = self.told(key, "a number, 0 or more", |value| {
            whole(value).filter(|&number| number >= -1)
        });
        told.filter(|&number| number >= 0)
    }

    pub fn float(&'a self, key: &'a str) -> Option<f64> {
        self.told(key, "a number", Value::as_f64)
    }

    pub fn text(&'a self, key: &'a str) -> Option<&'a str> {
        self.told(key, "a text", Value::as_str)
    }

    /// Yes or no, which some tools write as 1 or 0.
    pub fn flag(&'a self, key: &'a str) -> Option<bool> {
        self.told(key, "true or false", |value| match value {
            Value::Bool(flag) => Some(*flag),
            Value::Number(number) => match number.as_i64() {
                Some(0) => Some(false),
                Some(1) => Some(true),
                _ => None,
            },
            _ => None,
        })
    }

    /// Names a member whose value cannot be.
    pub fn impossible(&'a self, key: &'a str, expected: &str) {
        if let Some(value) = self.value.get(key) {
            self.child(key, value, None).unexpected(expected);
        }
    }

    /// Names it as odd where it is something else, and not null.
    fn is_object(&self) -> bool {
        if !self.value.is_object() && !self.value.is_null() {
            self.unexpected("an object");
        }
        self.value.is_object()
    }

    /// Names this value as one that is not what stands here.
    pub fn unexpected(&self, expected: &str) {
        let got = match self.value {
            value if self.odd.shows => capped(&value.to_string(), SHOWN_BYTES).to_owned(),
            Value::Null => "null".into(),
            Value::Bool(_) => "true or false".into(),
            Value::Number(_) => "a number".into(),
            Value::String(_) => "a text".into(),
            Value::Array(_) => "a list".into(),
            Value::Object(_) => "an object".into(),
        };
        let mut path = String::new();
        self.path(&mut path);
        self.odd
            .add(None, format!("{path}: got {got}; expected {expected}"));
    }

    fn told<T>(
        &'a self,
        key: &'a str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        // What is not known is left out, or null.
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        let told = read(value);
        if told.is_none() {
            self.child(key, value, None).unexpected(expected);
        }
        told
    }

    fn child(&'a self, key: &'a str, value: &'a Value, index: Option<usize>) -> Part<'a> {
        Part {
            value,
            up: Some(self),
            key,
            index,
            odd: self.odd,
        }
    }

    fn path(&self, out: &mut String) {
        if let Some(up) = self.up {
            up.path(out);
            out.push('.');
        }
        out.push_str(capped(self.key, SHOWN_BYTES));
        if let Some(index) = self.index {
            out.push_str(&format!("[{index}]"));
        }
    }
}

fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| whole_of(value.as_f64()?))
}

fn whole_of(value: f64) -> Option<i64> {
    // 2^63 is the first that does not fit.
    const END: f64 = (1_u64 << 63) as f64;
    (-END..END).contains(&value).then_some(value as i64)
}

/// A rate or time in a smaller unit; `None` where it does not fit.
pub(super) fn scaled(value: f64, factor: f64) -> Option<i64> {
    whole_of((value * factor).round())
}

/// Seconds in nanoseconds. A wall time keeps all that the number tells: as one
/// product it would be off by 256 ns.
pub(super) fn ns(seconds: f64) -> Option<i64> {
    let fraction_ns = (seconds.fract() * 1e9).round() as i64;
    whole_of(seconds.trunc())?
        .checked_mul(1_000_000_000)?
        .checked_add(fraction_ns)
}

/// Counts what is read, and ends with an error where a value is longer than its
/// reader allows.
pub(super) struct Meter {
    bytes: Cell<u64>,
    limit: Cell<u64>,
    not_numbers: Cell<u64>,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter {
            bytes: Cell::new(0),
            limit: Cell::new(u64::MAX),
            not_numbers: Cell::new(0),
        }
    }
}

impl Meter {
    /// Of what is read, NaN and infinities are null: Python and C write them, and
    /// JSON does not have them.
    pub fn reader<R: Read>(&self, inner: R) -> impl Read {
        NoNan {
            meter: self,
            inner: Metered { meter: self, inner },
            held: Vec::new(),
            ready: io::Cursor::default(),
            is_in_text: false,
        }
    }

    /// Values so far that were NaN or infinite.
    pub fn not_numbers(&self) -> u64 {
        self.not_numbers.get()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// The next value ends within so much.
    pub fn allow(&self, bytes: u64) {
        self.limit.set(self.bytes.get() + bytes);
    }
}

struct Metered<'a, R> {
    meter: &'a Meter,
    inner: R,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.meter.bytes.get() >= self.meter.limit.get() {
            return Err(io::Error::other(TooLong));
        }
        let got = self.inner.read(buffer)?;
        self.meter.bytes.set(self.meter.bytes.get() + got as u64);
        Ok(got)
    }
}

/// JSON with null in the place of numbers that are none.
struct NoNan<'a, R> {
    meter: &'a Meter,
    inner: R,
    /// The beginning of a word whose end is to come.
    held: Vec<u8>,
    ready: io::Cursor<Vec<u8>>,
    is_in_text: bool,
}

impl<R> NoNan<'_, R> {
    /// Takes `bytes` in, all of them when the input is at its `end`.
    fn take(&mut self, bytes: &[u8], end: bool) {
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            if self.is_in_text {
                // No text goes on behind the end of its line.
                let Some(stop) = memchr::memchr3(b'"', b'\\', b'\n', &text[at..]) else {
                    out.extend_from_slice(&text[at..]);
                    at = text.len();
                    continue;
                };
                out.extend_from_slice(&text[at..at + stop]);
                at += stop;
                if text[at] == b'\\' && at + 1 == text.len() && !end {
                    break;
                }
                let length = if text[at] == b'\\' { 2 } else { 1 };
                self.is_in_text = text[at] == b'\\';
                let whole = &text[at..text.len().min(at + length)];
                out.extend_from_slice(whole);
                at += whole.len();
            } else if byte == b'-' || byte.is_ascii_alphabetic() {
                let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
                let length = text[at + 1..].iter().position(|byte| !is_of_word(byte));
                if length.is_none() && !end && text.len() - at < LONGEST_WORD {
                    break;
                }
                let word = &text[at..length.map_or(text.len(), |length| at + 1 + length)];
                if is_not_number(word) {
                    self.meter.not_numbers.set(self.meter.not_numbers.get() + 1);
                    out.extend_from_slice(b"null");
                } else {
                    out.extend_from_slice(word);
                }
                at += word.len();
            } else {
                self.is_in_text = byte == b'"';
                out.push(byte);
                at += 1;
            }
        }
        self.held = text.split_off(at);
        self.ready = io::Cursor::new(out);
    }
}

/// Longer ones are no numbers.
const LONGEST_WORD: usize = 64;

fn is_not_number(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").unwrap_or(word);
    [&b"nan"[..], b"inf", b"infinity"]
        .iter()
        .any(|other| word.eq_ignore_ascii_case(other))
}

impl<R: Read> Read for NoNan<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = self.ready.read(to)?;
            if got > 0 || to.is_empty() {
                return Ok(got);
            }
            let mut bytes = vec![0; to.len().max(LONGEST_WORD)];
            let read = self.inner.read(&mut bytes)?;
            if read == 0 && self.held.is_empty() {
                return Ok(0);
            }
            self.take(&bytes[..read], read == 0);
        }
    }
}

pub(super) fn is_too_long(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<TooLong>())
}

#[derive(Debug, thiserror::Error)]
#[error("longer than the tool writes anything")]
struct TooLong;

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out so many bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let got = self.0.len().min(self.1).min(to.len());
            to[..got].copy_from_slice(&self.0[..got]);
            self.0 = &self.0[got..];
            Ok(got)
        }
    }

    #[test]
    fn numbers_that_are_none_are_null_wherever_a_read_ends() {
        let text =
            r#"{"nan": -nan, "b\"NaN": [Infinity,-Infinity,inf,NaN,-1.5e9,true,"inf"], "c": nano}"#;
        let expected =
            r#"{"nan": null, "b\"NaN": [null,null,null,null,-1.5e9,true,"inf"], "c": nano}"#;
        for bytes in [1, 2, 3, 7, 1000] {
            let meter = Meter::default();
            let mut out = String::new();
            let mut reader = meter.reader(Pieces(text.as_bytes(), bytes));
            reader.read_to_string(&mut out).unwrap();
            assert_eq!(
                (out.as_str(), meter.not_numbers()),
                (expected, 5),
                "{bytes}"
            );
        }
        let meter = Meter::default();
        let mut out = String::new();
        let mut reader = meter.reader(Pieces(b"can't open \"x\n{\"a\": nan", 4));
        reader.read_to_string(&mut out).unwrap();
        assert_eq!(
            (out.as_str(), meter.not_numbers()),
            ("can't open \"x\n{\"a\": null", 1)
        );
    }
}
