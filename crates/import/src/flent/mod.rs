//! Data files of flent (`.flent`, `.flent.gz`) as rows per test, point and
//! sample. Sources: `resultset.py` and `runners.py` of flent 2.2; format 1 to 4.
//!
//! A file is one JSON object of at most some tens of MB, its members in the order
//! of their names, and is read whole.

mod rows;
mod tables;

use std::io::{self, BufReader, Read};
use std::path::Path;

use chrono::NaiveDateTime;
use knee_store::Anonymiser;
use knee_tables::Table as _;
use serde_json::Value;

use self::rows::{Rows, Test};
pub use self::tables::{FlentPoints, FlentSamples, FlentTests};
use super::counts::counts;
use super::json::{self, Meter, Odd, Part};
use super::kind::holds;
use super::reading::described;
use super::{Columns, Counts, Described, Filled, Import, Kind, More as _, Sample, TableKind};

/// Five minutes of a busy test have 5 MB. It bounds memory: as values, a file takes
/// seven times its length.
const FILE_BYTES: u64 = 256 << 20;
const KNOWN_VERSIONS: std::ops::RangeInclusive<i64> = 1..=4;
/// Of an hour: zones differ by whole ones.
const QUARTER_NS: i64 = 900_000_000_000;

pub static KIND: Kind = Kind {
    name: "flent",
    summary: "Data files of flent, .flent and .flent.gz.",
    about: "Import data files of flent: a row of the table `flent_tests` for each, one of `flent_points` for each value of \
        its series at equal steps, and one of `flent_samples` for each measurement at its own time.",
    page: include_str!("page.md"),
    examples: &[
        "knee import flent rrul-*.flent.gz --out rec",
        "knee sql \"select title, avg(value) from flent_samples join flent_tests using (file) where series = 'Ping (ms) ICMP' group by 1\" rec",
    ],
    tables: &[
        TableKind {
            name: FlentTests::NAME,
            short: "tests",
            rows: "one per file; `metadata` has all that flent noted, as JSON, from `metadata`",
            columns: Columns::own::<FlentTests>(),
        },
        TableKind {
            name: FlentPoints::NAME,
            short: "points",
            rows: "one per value of a series at flent's equal steps, from `x_values` and `results`; steps without a value \
                have none",
            columns: Columns::own::<FlentPoints>(),
        },
        TableKind {
            name: FlentSamples::NAME,
            short: "samples",
            rows: "one per measurement, at its own time, from `raw_values`",
            columns: Columns::own::<FlentSamples>(),
        },
    ],
    options: &[],
    unit: "documents",
    row: "test of flent",
    expected: "data files of flent, .flent or .flent.gz",
    told: "{rows:row} from {documents:document}",
    counts: More::COUNTS,
    sample: Sample::File("tests/data/test.flent"),
    looks: |begin| {
        let names: [&[u8]; 3] = [
            b"FLENT_VERSION",
            b"NETPERF_WRAPPER_VERSION",
            b"\"SERIES_META\"",
        ];
        holds(begin, b"\"metadata\"") && names.iter().any(|name| holds(begin, name))
    },
    build: |given| Ok(Box::new(Importer::new(given.anonymiser.clone()))),
};

pub type Report = super::Report<More>;

counts! {
    /// What only files of flent tell.
    More {
        not_numbers: u64, "values that are NaN or infinite, and are left out",
            doubt: "{count} values are no numbers (NaN or Infinity) and were left out.";
    }
}

/// Rows of tests of flent.
pub struct Importer {
    anonymiser: Anonymiser,
    rows: Rows,
    report: Report,
}

impl Importer {
    pub fn new(anonymiser: Anonymiser) -> Importer {
        Importer {
            rows: Rows::new(anonymiser.clone()),
            anonymiser,
            report: Report::default(),
        }
    }

    fn test<E>(
        &mut self,
        file: &str,
        whole: &Part<'_>,
        sink: &mut impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        let has = |name| whole.value().get(name).is_some();
        if !has("results") && !has("raw_values") {
            whole.unexpected("flent's object, with metadata, results and raw_values");
            return Ok(());
        }
        let version = whole.int("version").unwrap_or(1);
        if !KNOWN_VERSIONS.contains(&version) {
            let text = format!("format version {version}; known are 1 to 4");
            whole.odd().add(None, text);
            return Ok(());
        }
        let nothing = Value::Null;
        let metadata = whole.object("metadata");
        let metadata =
            metadata.unwrap_or_else(|| Part::root("metadata", None, &nothing, whole.odd()));
        let raw = whole.object("raw_values");
        let test = Test {
            file,
            version,
            t0_ns: begun_ns(&metadata, raw.as_ref()),
            metadata: &metadata,
        };
        let mut counts = [0; 2];
        if let Some(results) = whole.object("results") {
            let times = whole.items("x_values");
            let times: Vec<_> = times.map(|part| part.value().as_f64()).collect();
            for series in results.lists() {
                counts[0] += self.rows.points(&test, &times, &series);
                self.hand_over(sink)?;
            }
        }
        if let Some(raw) = &raw {
            for series in raw.lists() {
                counts[1] += self.rows.samples(&test, &series);
                self.hand_over(sink)?;
            }
        }
        self.rows.test(&test, counts);
        self.report.rows += counts.iter().sum::<u64>() + 1;
        self.hand_over(sink)
    }

    fn hand_over<E>(
        &mut self,
        sink: &mut impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        for filled in self.rows.take_full() {
            sink(self.report.counts(), Some(filled))?;
        }
        sink(self.report.counts(), None)
    }
}

impl Import for Importer {
    type More = More;

    fn tables(&self) -> Vec<Described> {
        vec![
            described::<FlentTests>(),
            described::<FlentPoints>(),
            described::<FlentSamples>(),
        ]
    }

    fn read_stream<E: From<io::Error>>(
        &mut self,
        path: &Path,
        input: impl Read,
        mut sink: impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.report.begin(path);
        let odd = Odd::new(&self.anonymiser);
        let meter = Meter::default();
        meter.allow(FILE_BYTES);
        let mut text = Vec::new();
        let read = BufReader::new(meter.reader(input)).read_to_end(&mut text);
        self.report.bytes += meter.bytes();
        self.report.more.not_numbers += meter.not_numbers();
        let mut held = None;
        match read {
            Err(error) if json::is_too_long(&error) => odd.add(None, error.to_string()),
            Err(error) => return Err(error.into()),
            Ok(_) if text.trim_ascii().is_empty() => return Ok(()),
            Ok(_) => match serde_json::from_slice(&text) {
                Ok(value) => held = Some(value),
                Err(error) => odd.syntax(&error, 1),
            },
        }
        if let Some(value) = held {
            let name = path.to_string_lossy();
            self.test(&name, &Part::root("file", None, &value, &odd), &mut sink)?;
        }
        self.report.document(odd);
        sink(self.report.counts(), None)
    }

    fn rest(&mut self) -> Vec<Filled> {
        self.rows.rest()
    }

    fn report(&self) -> &Report {
        &self.report
    }
}

/// When the test began. Old files tell it in local time: then the samples, which
/// tell theirs in UTC, have the zone, in quarters of an hour.
fn begun_ns(metadata: &Part<'_>, raw: Option<&Part<'_>>) -> Option<i64> {
    let told = metadata.text("T0").or_else(|| metadata.text("TIME"))?;
    let bare = told.strip_suffix('Z').unwrap_or(told);
    let Ok(time) = NaiveDateTime::parse_from_str(bare, "%Y-%m-%dT%H:%M:%S%.f") else {
        let text =
            format!("metadata.T0: got {told:?}; expected a time such as 2026-08-21T12:00:00.5Z");
        metadata.odd().add(None, text);
        return None;
    };
    let local = time.and_utc().timestamp_nanos_opt()?;
    if bare.len() < told.len() {
        return Some(local);
    }
    let times = |series: Part<'_>| {
        let items = series.value().as_array().into_iter().flatten();
        items
            .filter_map(|item| item.get("t")?.as_f64())
            .reduce(f64::min)
    };
    let first = raw.and_then(|raw| raw.lists().filter_map(times).reduce(f64::min));
    let Some(first) = first.and_then(json::ns) else {
        return Some(local);
    };
    let quarters = (first.checked_sub(local)? as f64 / QUARTER_NS as f64).round() as i64;
    local.checked_add(quarters.checked_mul(QUARTER_NS)?)
}
