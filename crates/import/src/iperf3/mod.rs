//! Output of `iperf3 -J` and `--json-stream`, of client and server, as rows per
//! interval and per stream. Sources: `iperf_api.c` of iperf 3.1 to 3.21.
//!
//! A file may hold several tests, as a server's does. With `--json-stream` memory
//! does not depend on a test's length; of `-J` its intervals are held until the
//! object is complete, so that half of one leaves nothing.

mod document;
mod rows;
mod tables;
mod test;

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use knee_store::Anonymiser;
use knee_tables::Table as _;
use serde::de::{DeserializeSeed, IgnoredAny};
use serde_json::Value;

use self::document::{Member, Members, Refused};
use self::rows::{Position, Rows};
pub use self::tables::{Iperf3Intervals, Iperf3Streams};
use self::test::Test;
use super::counts::counts;
use super::json::{self, Meter, Odd, Part};
use super::kind::holds;
use super::reading::described;
use super::{
    Columns, Counts, Described, Filled, Import, Kind, More as _, Sample, TableKind, addresses,
    lines,
};

/// Nothing that iperf3 writes as one value is longer: an interval of 128 streams
/// has 50 KB. It bounds memory.
const VALUE_BYTES: u64 = 16 << 20;
const READ_BYTES: usize = 1 << 16;
/// Enough to see whether it is of `-J` or of `--json-stream`.
const BEGINNING_BYTES: u64 = 256;

pub static KIND: Kind = Kind {
    name: "iperf3",
    summary: "Output of iperf3 -J or --json-stream, 3.1 and later.",
    about: "Import output of iperf3: a row of the table `iperf3_intervals` for each interval and stream, and one of \
        `iperf3_streams` for each stream.\n\n\
        -J or --json-stream, of client and server, TCP, UDP and SCTP, several tests in one file; plain, gzip or zstd. A \
        test of which iperf3 tells an error is not understood in full: its intervals are imported, its error is shown.",
    page: include_str!("page.md"),
    examples: &[
        "knee import iperf3 results/*.json --out rec",
        "knee import iperf3 server.log.gz --out rec --strict --anonymize truncate",
        "knee sql 'select algorithm, avg(goodput_bits_per_sec), sum(total_retrans) from iperf3_streams group by all' rec",
    ],
    tables: &[
        TableKind {
            name: Iperf3Intervals::NAME,
            short: "intervals",
            rows: "one per interval and stream, from `intervals`",
            columns: Columns::own::<Iperf3Intervals>(),
        },
        TableKind {
            name: Iperf3Streams::NAME,
            short: "streams",
            rows: "one per stream of each test, with what the test's streams have in common, from `start` and `end`",
            columns: Columns::own::<Iperf3Streams>(),
        },
    ],
    options: &[],
    unit: "documents",
    row: "stream of iperf3",
    expected: "what `iperf3 -J` or `--json-stream` prints",
    told: "{rows:row} from {documents:document}",
    counts: More::COUNTS,
    sample: Sample::File("tests/data/iperf3/v3.18-stream.json"),
    looks: |begin| holds(begin, b"\"start\"") && holds(begin, b"\"iperf 3"),
    build: |given| Ok(Box::new(Importer::new(given.anonymiser.clone()))),
};

pub type Report = super::Report<More>;

counts! {
    /// What only output of iperf3 tells.
    More {
        documents_without_end: u64, "tests of `--json-stream` without an end: iperf3 was killed, or is not done",
            doubt: "{count} tests have no end: iperf3 was stopped, or is not done, and their sums are not known.";
        tests_again: u64, "tests that stand in their file once more, by their cookie and end; each was imported once",
            doubt: "{count} tests stand in their file once more (the same cookie, of the same end) and were imported once.";
        not_numbers: u64, "values that are NaN or infinite, and are null",
            doubt: "{count} values are no numbers (NaN or infinite): they are null.";
    }
}

/// Rows of tests of iperf3.
pub struct Importer {
    anonymiser: Anonymiser,
    rows: Rows,
    report: Report,
    name: String,
    /// Tests of the current file so far.
    tests: i32,
    /// Those of them that were told whole: side and cookie.
    told: HashSet<(Option<&'static str>, String)>,
}

impl Importer {
    pub fn new(anonymiser: Anonymiser) -> Importer {
        Importer {
            rows: Rows::new(anonymiser.clone()),
            anonymiser,
            report: Report::default(),
            name: String::new(),
            tests: 0,
            told: HashSet::new(),
        }
    }

    /// Objects of `-J`, one after the other.
    fn documents<E: From<io::Error>>(
        &mut self,
        input: &mut impl BufRead,
        meter: &Meter,
        sink: &mut impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.report.counts();
        let mut first_line = 1;
        loop {
            first_line += skip_blank(input)?;
            match input.fill_buf()?.first() {
                None => return Ok(()),
                Some(b'{') => {}
                Some(_) => {
                    meter.allow(VALUE_BYTES);
                    let mut text = Vec::new();
                    let odd = Odd::new(&self.anonymiser);
                    match input.read_until(b'\n', &mut text) {
                        Err(error) if json::is_too_long(&error) => {
                            odd.add(Some(first_line), error.to_string());
                            self.report.document(odd);
                            return Ok(());
                        }
                        read => read?,
                    };
                    self.stray(&text, first_line, &odd);
                    self.report.document(odd);
                    first_line += 1;
                    continue;
                }
            }
            let mut lined = Lined {
                inner: &mut *input,
                lines: 0,
            };
            let counts = Counts {
                bytes: before.bytes + meter.bytes(),
                ..self.report.counts()
            };
            let odd = Odd::new(&self.anonymiser);
            let mut current = Current::default();
            let mut failed = None;
            let result = Members(&mut |member| {
                meter.allow(VALUE_BYTES);
                current.member(member, &odd);
                sink(counts, None).map_err(|error| {
                    failed = Some(error);
                    Refused
                })
            })
            .deserialize(&mut serde_json::Deserializer::from_reader(&mut lined));
            first_line += lined.lines;
            match (result, failed) {
                (_, Some(error)) => return Err(error),
                (Ok(()), None) => self.close(current, odd),
                (Err(error), None) => {
                    let begun = first_line - lined.lines;
                    not_json(error, begun, &odd)?;
                    // Where what follows begins nobody knows.
                    self.report.document(odd);
                    return Ok(());
                }
            }
            self.hand_over(sink)?;
        }
    }

    /// Lines of `--json-stream`.
    fn events<E: From<io::Error>>(
        &mut self,
        input: &mut impl BufRead,
        meter: &Meter,
        sink: &mut impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        let before = self.report.bytes;
        let mut open: Option<(Current, Odd)> = None;
        let mut text = Vec::new();
        let mut line = 0;
        let mut in_repetition = false;
        loop {
            meter.allow(VALUE_BYTES);
            text.clear();
            line += 1;
            match input.read_until(b'\n', &mut text) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if json::is_too_long(&error) => {
                    let (_, odd) = open.get_or_insert_with(|| self.opened());
                    odd.add(Some(line), error.to_string());
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            self.report.bytes = before + meter.bytes();
            let event = text.trim_ascii();
            if !event.is_empty() && event[0] != b'{' && !in_repetition {
                match &open {
                    Some((_, odd)) => self.stray(event, line, odd),
                    None => {
                        let odd = Odd::new(&self.anonymiser);
                        self.stray(event, line, &odd);
                        self.report.document(odd);
                    }
                }
                continue;
            }
            // --json-stream-full-output tells all once more when a test is over.
            if open.is_none() && self.tests > 0 && event == b"{" {
                in_repetition = true;
            }
            if event.is_empty() || in_repetition {
                in_repetition &= text.first() != Some(&b'}');
                continue;
            }
            match serde_json::from_slice::<Value>(event) {
                Ok(event) => self.event(&event, line, &mut open),
                Err(error) => {
                    let (_, odd) = open.get_or_insert_with(|| self.opened());
                    odd.syntax(&error, line);
                }
            }
            self.hand_over(sink)?;
            sink(self.report.counts(), None)?;
        }
        self.stopped(open);
        self.hand_over(sink)
    }

    fn event(&mut self, event: &Value, line: u64, open: &mut Option<(Current, Odd)>) {
        let name = event.get("event").and_then(Value::as_str);
        if name == Some("start") {
            self.stopped(open.take());
        }
        let (current, odd) = open.get_or_insert_with(|| self.opened());
        let data = event.get("data").cloned().unwrap_or_default();
        match name {
            Some("start") => current.member(Member::Start(data), odd),
            Some("interval") => {
                current.member(Member::Interval(None, data), odd);
                if self.told.contains(&current.test.about.identity()) {
                    current.test.intervals.clear();
                    return;
                }
                let at = Position {
                    file: &self.name,
                    test: self.tests,
                };
                self.report.rows += self.rows.intervals(at, &mut current.test);
            }
            Some("error") => current.member(Member::Text("error".into(), data), odd),
            Some("server_output_json") => current.member(Member::Server(data), odd),
            Some("server_output_text") => {}
            Some("end") => {
                current.member(Member::End(data), odd);
                if let Some((current, odd)) = open.take() {
                    self.close(current, odd);
                }
            }
            _ => odd.add(Some(line), "no event that iperf3 is known to write".into()),
        }
    }

    /// A line that is none of the output: iperf3 and the shell write some among it.
    fn stray(&self, line: &[u8], number: u64, odd: &Odd) {
        let line = String::from_utf8_lossy(lines::beginning(line.trim_ascii()));
        let said = line.strip_prefix("iperf3: error - ");
        let mut text = String::new();
        addresses::within(said.unwrap_or(&line), &self.anonymiser, &mut text);
        let what = match said {
            Some(_) => "iperf3 says",
            None if serde_json::from_str::<IgnoredAny>(&line).is_ok() => "no object",
            None => "not JSON",
        };
        let text = text.replace(char::is_control, "\u{fffd}");
        odd.add(Some(number), format!("{what}: {text}"));
    }

    fn opened(&self) -> (Current, Odd) {
        (Current::default(), Odd::new(&self.anonymiser))
    }

    /// A stream that has no end: iperf3 was killed, or is not done.
    fn stopped(&mut self, open: Option<(Current, Odd)>) {
        if let Some((current, odd)) = open {
            self.report.more.documents_without_end += 1;
            self.close(current, odd);
        }
    }

    /// Closes out a test, and the server's word on it.
    fn close(&mut self, mut current: Current, odd: Odd) {
        let test = &mut current.test;
        if let Some(error) = &test.error {
            let mut text = String::new();
            addresses::within(error, &self.anonymiser, &mut text);
            odd.add(None, format!("iperf3 says: {text}"));
        }
        let at = Position {
            file: &self.name,
            test: self.tests,
        };
        let identity = test.about.identity();
        let is_again = !identity.1.is_empty() && !self.told.insert(identity);
        if is_again {
            self.report.more.tests_again += 1;
        } else {
            self.report.rows += self.rows.intervals(at, test) + self.rows.streams(at, test);
        }
        self.report.document(odd);
        self.tests = self.tests.saturating_add(1);
        for server in current.servers {
            let (mut nested, odd) = self.opened();
            nested.whole(server, &odd);
            self.close(nested, odd);
        }
    }

    fn hand_over<E>(
        &mut self,
        sink: &mut impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        for filled in self.rows.take_full() {
            sink(self.report.counts(), Some(filled))?;
        }
        Ok(())
    }
}

impl Import for Importer {
    type More = More;

    fn tables(&self) -> Vec<Described> {
        vec![described::<Iperf3Intervals>(), described::<Iperf3Streams>()]
    }

    fn read_stream<E: From<io::Error>>(
        &mut self,
        path: &Path,
        input: impl Read,
        mut sink: impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.report.begin(path);
        self.name = path.to_string_lossy().into_owned();
        self.tests = 0;
        self.told.clear();
        let meter = Meter::default();
        meter.allow(VALUE_BYTES);
        let mut counted = meter.reader(input);
        let mut beginning = Vec::new();
        counted
            .by_ref()
            .take(BEGINNING_BYTES)
            .read_to_end(&mut beginning)?;
        let whole = beginning.as_slice().chain(counted);
        let mut input = BufReader::with_capacity(READ_BYTES, whole);
        let before = self.report.bytes;
        let ended = match is_stream(&beginning) {
            true => self.events(&mut input, &meter, &mut sink),
            false => self.documents(&mut input, &meter, &mut sink),
        };
        self.report.bytes = before + meter.bytes();
        self.report.more.not_numbers += meter.not_numbers();
        ended
    }

    fn rest(&mut self) -> Vec<Filled> {
        self.rows.rest()
    }

    fn report(&self) -> &Report {
        &self.report
    }
}

/// A test being read.
#[derive(Default)]
struct Current {
    test: Test,
    /// The server's own output, which the client got.
    servers: Vec<Value>,
}

impl Current {
    fn member(&mut self, member: Member, odd: &Odd) {
        let test = &mut self.test;
        let mut part = |key: &str, index, value: &Value, read: fn(&mut Test, &Part<'_>)| {
            let part = Part::root(key, index, value, odd);
            match value.is_object() {
                true => read(test, &part),
                false => part.unexpected("an object"),
            }
        };
        match member {
            Member::Start(value) => part("start", None, &value, Test::start),
            Member::Interval(index, value) => part("intervals", index, &value, Test::interval),
            Member::End(value) => part("end", None, &value, Test::end),
            Member::Server(value) => self.servers.push(value),
            Member::Text(key, Value::String(text)) => match key.as_str() {
                "title" => test.title = Some(text),
                "extra_data" => test.extra_data = Some(text),
                _ => test.error = Some(text),
            },
            Member::Text(key, value) => Part::root(&key, None, &value, odd).unexpected("a text"),
        }
    }

    /// Output that is within another.
    fn whole(&mut self, value: Value, odd: &Odd) {
        let mut take = |member| {
            self.member(member, odd);
            Ok(())
        };
        if let Err(error) = Members(&mut take).deserialize(value) {
            odd.add(None, format!("server_output_json: {error}"));
        }
    }
}

/// Does a file begin with an event of `--json-stream`? What is said before it is
/// none.
fn is_stream(beginning: &[u8]) -> bool {
    let lines = beginning.split(|byte| *byte == b'\n');
    let mut within = lines.filter_map(|line| line.trim_ascii_start().strip_prefix(b"{"));
    within.next().is_some_and(|within| {
        let key = within.trim_ascii_start();
        key.starts_with(b"\"event\"") || key.starts_with(b"\"data\"")
    })
}

/// Goes to the next value; tells how many lines on it is.
fn skip_blank(input: &mut impl BufRead) -> io::Result<u64> {
    let mut lines = 0;
    loop {
        let buffer = input.fill_buf()?;
        let blank = buffer
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        lines += memchr::memchr_iter(b'\n', &buffer[..blank]).count() as u64;
        let is_all = blank == buffer.len();
        input.consume(blank);
        if !is_all || blank == 0 {
            return Ok(lines);
        }
    }
}

/// Notes what is wrong with a file's text; a file that cannot be read is an error.
fn not_json(error: serde_json::Error, first_line: u64, odd: &Odd) -> io::Result<()> {
    if !error.is_io() {
        odd.syntax(&error, first_line);
        return Ok(());
    }
    let error = io::Error::from(error);
    match json::is_too_long(&error) {
        true => odd.add(Some(first_line), error.to_string()),
        false => return Err(error),
    }
    Ok(())
}

/// Counts the lines that are read.
struct Lined<R> {
    inner: R,
    lines: u64,
}

impl<R: Read> Read for Lined<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.lines += memchr::memchr_iter(b'\n', &buffer[..got]).count() as u64;
        Ok(got)
    }
}
