//! What programs that make traffic print about it, as rows of `program_tests`; [`measured`] is the same for a program
//! that a run started.

use std::collections::VecDeque;
use std::path::Path;

use arrow_array::RecordBatch;
use knee_store::Anonymiser;
use knee_tables::column::set;
use knee_tables::{Batch, Name, Table, table};

use super::counts::counts;
use super::fill::name;
use super::lines::{self, Lines, fills};
use super::{Columns, Given, TableKind, memtier, netperf};

table! {
    /// A row per test of a program that makes traffic.
    "program_tests" ProgramTests {
        file: Option<Name>, "", "tcpknee", "file that it was read from, as it was named";
        test: Option<i64>, "", "tcpknee", "number of the test in its file, from 0";
        program: Option<Name>, "", "tcpknee", "netperf or memtier_benchmark";
        kind: Option<Name>, "", "what the program printed", "netperf's name of the test, as in TCP_RR; memtier's heading of the results, as in ALL STATS";
        duration_us: Option<i64>, "us", "what the program printed", "length of the test";
        write_bytes: Option<i64>, "bytes", "what the program printed", "size of each write of a stream (-m); of each value (-d)";
        request_bytes: Option<i64>, "bytes", "what the program printed", "size of a request (-r)";
        response_bytes: Option<i64>, "bytes", "what the program printed", "size of a response (-r)";
        threads: Option<i64>, "", "what the program printed", "threads of memtier_benchmark (-t)";
        connections: Option<i64>, "", "what the program printed", "connections of all threads together (-t times -c)";
        requests_per_sec: Option<f64>, "1/s", "what the program printed", "requests answered per second; null: of a stream";
        latency_us_p50: Option<f64>, "us", "what the program printed", "median latency of a request; null: it did not print it";
        latency_us_p95: Option<f64>, "us", "what the program printed", "95th percentile of it; null: as above";
        latency_us_p99: Option<f64>, "us", "what the program printed", "99th percentile of it; null: as above";
        goodput_bits_per_sec: Option<f64>, "bit/s", "what the program printed", "payload of a stream; of UDP what was received";
        local_cpu_share: Option<f64>, "", "what the program printed", "share of this host's processors that were busy (-c); null: it did not look";
        remote_cpu_share: Option<f64>, "", "what the program printed", "share of the far host's processors (-C); null: as above";
    }
}

/// The table as each of these importers declares it.
pub(super) const TABLE: TableKind = TableKind {
    name: ProgramTests::NAME,
    short: "tests",
    rows: "one per test",
    columns: Columns::own::<ProgramTests>(),
};

pub type Report = super::Report<More>;

counts! {
    /// What only output of these programs tells.
    More {
        tests_again: u64, "tests that were printed twice, as JSON and as a table, and imported once";
        without_unit: u64, "tests whose figures have no unit, or one that is not known; they have no row",
            doubt: "{count} tests do not say their unit (select THROUGHPUT_UNITS) and were left out.",
            alone: "{count} tests do not say their unit (select THROUGHPUT_UNITS)";
    }
}

/// A test as a program printed it; `None`: it did not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Test {
    pub kind: Option<String>,
    pub duration_us: Option<i64>,
    pub write_bytes: Option<i64>,
    pub request_bytes: Option<i64>,
    pub response_bytes: Option<i64>,
    pub threads: Option<i64>,
    pub connections: Option<i64>,
    pub requests_per_sec: Option<f64>,
    pub latency_us_p50: Option<f64>,
    pub latency_us_p95: Option<f64>,
    pub latency_us_p99: Option<f64>,
    pub goodput_bits_per_sec: Option<f64>,
    pub local_cpu_share: Option<f64>,
    pub remote_cpu_share: Option<f64>,
}

impl Test {
    fn says_anything(&self) -> bool {
        self.requests_per_sec.is_some() || self.goodput_bits_per_sec.is_some()
    }
}

/// Reads what one program prints.
pub trait Reader: Default + Send {
    const PROGRAM: &'static str;
    /// Reads a line; false: it is not understood. Tests that it completes go to `tests`.
    fn line(&mut self, line: &[u8], tests: &mut Vec<Test>) -> bool;
    /// Why the line was not understood, where the line does not show it.
    fn why(&mut self) -> Option<&'static str> {
        None
    }
    /// Ends the file; false: in the middle of something.
    fn end(&mut self, tests: &mut Vec<Test>) -> bool;
}

/// The first test that a program printed. `None`: nobody knows that program, or it measured nothing.
pub fn measured(program: &str, text: &str) -> Option<Test> {
    match program {
        netperf::Netperf::PROGRAM => first::<netperf::Netperf>(text),
        memtier::Memtier::PROGRAM => first::<memtier::Memtier>(text),
        _ => None,
    }
}

fn first<R: Reader>(text: &str) -> Option<Test> {
    let (mut reader, mut tests) = (R::default(), Vec::new());
    for line in text.lines() {
        reader.line(line.as_bytes(), &mut tests);
        if tests.iter().any(Test::says_anything) {
            break;
        }
    }
    reader.end(&mut tests);
    tests.into_iter().find(Test::says_anything)
}

/// Rows of what a program printed.
pub struct Parser<R> {
    reader: R,
    anonymiser: Anonymiser,
    report: Report,
    table: ProgramTests,
    full: VecDeque<RecordBatch>,
    file: String,
    tests: i64,
    /// The test before, of the same file.
    last: Option<Test>,
}

impl<R: Reader> Parser<R> {
    pub(super) fn new(given: &Given) -> Parser<R> {
        Parser {
            reader: R::default(),
            anonymiser: given.anonymiser.clone(),
            report: Report::default(),
            table: ProgramTests::default(),
            full: VecDeque::new(),
            file: String::new(),
            tests: 0,
            last: None,
        }
    }

    fn add(&mut self, test: Test) {
        if !test.says_anything() {
            self.report.more.without_unit += 1;
            return;
        }
        if self.last.as_ref().is_some_and(|last| is_again(last, &test)) {
            self.report.more.tests_again += 1;
            return;
        }
        if self.table.is_full() {
            self.full.push_back(knee_store::take(&mut self.table));
        }
        let row = self.table.add_row();
        let to = &mut self.table;
        name(&mut to.file, row, Some(&self.file));
        to.test.set(row, self.tests);
        name(&mut to.program, row, Some(R::PROGRAM));
        name(&mut to.kind, row, test.kind.as_deref());
        set(&mut to.duration_us, row, test.duration_us);
        set(&mut to.write_bytes, row, test.write_bytes);
        set(&mut to.request_bytes, row, test.request_bytes);
        set(&mut to.response_bytes, row, test.response_bytes);
        set(&mut to.threads, row, test.threads);
        set(&mut to.connections, row, test.connections);
        set(&mut to.requests_per_sec, row, test.requests_per_sec);
        set(&mut to.latency_us_p50, row, test.latency_us_p50);
        set(&mut to.latency_us_p95, row, test.latency_us_p95);
        set(&mut to.latency_us_p99, row, test.latency_us_p99);
        set(&mut to.goodput_bits_per_sec, row, test.goodput_bits_per_sec);
        set(&mut to.local_cpu_share, row, test.local_cpu_share);
        set(&mut to.remote_cpu_share, row, test.remote_cpu_share);
        self.tests += 1;
        self.report.rows += 1;
        self.last = Some(test);
    }

    fn add_all(&mut self, tests: Vec<Test>) {
        tests.into_iter().for_each(|test| self.add(test));
    }

    fn not_understood(&mut self, line: &[u8]) {
        let shown = match self.anonymiser {
            Anonymiser::Keep => String::from_utf8_lossy(lines::beginning(line))
                .trim()
                .to_owned(),
            _ => String::new(),
        };
        self.report.not_understood(|| shown);
    }

    fn end_file(&mut self) {
        let mut tests = Vec::new();
        if !self.reader.end(&mut tests) {
            self.not_understood(b"the document has no end");
        }
        self.add_all(tests);
    }
}

/// The same test once more: one of the two is JSON, which has more digits.
fn is_again(last: &Test, test: &Test) -> bool {
    let near = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 0.01,
        (one, other) => one == other,
    };
    last.kind == test.kind
        && last.kind.as_deref() == Some(memtier::ALL)
        && near(last.requests_per_sec, test.requests_per_sec)
        && near(last.latency_us_p50, test.latency_us_p50)
}

impl<R: Reader> Lines for Parser<R> {
    fills!(ProgramTests);

    fn file(&mut self, path: &Path) {
        self.end_file();
        self.report.begin(path);
        self.file = path.to_string_lossy().into_owned();
        self.tests = 0;
        self.last = None;
    }

    fn line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        self.report.count();
        let mut tests = Vec::new();
        if !self.reader.line(line, &mut tests) {
            match self.reader.why() {
                Some(why) => self.report.not_understood(|| why.to_owned()),
                None => self.not_understood(line),
            }
        }
        self.add_all(tests);
        self.full.pop_front()
    }

    fn too_long(&mut self, beginning: &[u8]) {
        self.report.count();
        self.not_understood(beginning);
    }

    fn take(&mut self) -> Vec<RecordBatch> {
        self.end_file();
        if self.table.rows() > 0 {
            self.full.push_back(knee_store::take(&mut self.table));
        }
        std::mem::take(&mut self.full).into()
    }
}

/// A number that a program printed, 0 or more.
pub(super) fn number(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// A size or count.
pub(super) fn whole(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number| *number >= 0)
}

pub(super) fn us(seconds: &str) -> Option<i64> {
    super::json::scaled(number(seconds)?, 1e6)
}
