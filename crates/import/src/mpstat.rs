//! Output of `mpstat`, as rows of `cpu`.
//!
//! Text is a heading with the time at which an interval begins, then a line per processor with the time at which it ends.
//! With `-o JSON` there are only the ends. Shares of an interval are added up, so that differences of rows mean what those
//! of `/proc/stat` mean. Source: `mpstat.c` of sysstat 10 to 12.7.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use arrow_array::RecordBatch;
use chrono::{NaiveDate, NaiveTime, Timelike as _};
use knee_store::Anonymiser;
use knee_tables::{Batch, Cpu, Table};
use serde_json::Value;

use super::counts::counts;
use super::fill::name;
use super::gathered::{Came, Gathered, TOO_LONG};
use super::kind::{HOST, ZONE, first_lines, holds};
use super::lines::{self, Lines, fills};
use super::{Columns, Kind, More as _, Sample, TableKind};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;
/// Linux has 8,192 processors at most; a file of a fleet has those of several hosts.
const PROCESSORS: usize = 1 << 16;
/// A share is at most 100, and rounded.
const MOST_PCT: f64 = 101.0;
/// Of a column's heading, without its %, the place in a row of shares; sysstat before 6 said user.
const SHARES: [(&str, usize); 12] = [
    ("usr", 0),
    ("user", 0),
    ("nice", 1),
    ("sys", 2),
    ("system", 2),
    ("idle", 3),
    ("iowait", 4),
    ("irq", 5),
    ("soft", 6),
    ("steal", 7),
    ("guest", 8),
    ("gnice", 9),
];

pub static KIND: Kind = Kind {
    name: "mpstat",
    summary: "Output of mpstat -P ALL, as text or JSON.",
    about: "Import output of mpstat: a row of the table `cpu` for each processor and interval, as `knee record` writes \
        them.\n\n\
        mpstat -P ALL 5 and mpstat -P ALL -o JSON 5, several runs in one file; plain, gzip or zstd.",
    page: "\
`mpstat -P ALL 5 > mpstat.txt` prints a share of each interval; the table `cpu` counts microseconds since the first row,
as the kernel counts them since boot. So differences of two rows are time, and figures and queries of
[recordings](observe.md) apply. Each processor has a row of zeros at the beginning. `user_us` and `nice_us` contain guests,
as the kernel's do. Lines of all processors together (`all`) are left out, since they are the sum of the others; so are
averages and the other tables of `mpstat -A`.

The date stands in mpstat's first line, in the form of its locale: `2026-08-21` says itself, `08/21/26` is read as month and
day unless the first number is above 12. Without it the rows have no time, and intervals are known all the same. Times have
no zone: `--zone` says it. JSON and a single report since boot do not say when the (first) interval began: where no
neighbour says how long it is, it counts as one second.",
    examples: &[
        "knee import mpstat mpstat.txt --out rec --zone +02:00",
        "knee sql 'select cpu, max(softirq_us) / 1e6 as softirq_s from cpu group by all order by all' rec",
    ],
    tables: &[TableKind {
        name: Cpu::NAME,
        short: "cpu",
        rows: "one per processor and interval, and one per processor before the first",
        columns: Columns::Recorded(|| Cpu::COLUMNS.to_vec()),
    }],
    options: &[HOST, ZONE],
    unit: "lines",
    row: "processor's line",
    expected: "what `mpstat -P ALL 5` prints",
    told: "{rows:row} of {intervals:interval} from {lines:line}",
    counts: More::COUNTS,
    sample: Sample::File("tests/data/mpstat/text-12.6.txt"),
    looks: |begin| {
        let is_heading = |line: &[u8]| {
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            words.any(|word| word == b"CPU") && words.any(|word| word == b"%idle")
        };
        first_lines(begin).any(is_heading)
            || holds(begin, b"\"sysstat\"") && holds(begin, b"\"cpu-load\"")
    },
    build: |given| {
        Ok(Box::new(Parser {
            zone_s: super::time::zone_option(given)?,
            host: given.text("host").map(str::to_owned),
            anonymiser: given.anonymiser.clone(),
            ..Parser::default()
        }))
    },
};

pub type Report = super::Report<More>;

counts! {
    /// What only output of mpstat tells.
    More {
        intervals: u64, "intervals of which processors have rows";
        sums: u64, "lines of all processors together, which are left out",
            alone: "{count} lines are of all processors together; mpstat -P ALL prints one for each";
        without_length: u64, "intervals of unknown length, which count as one second",
            doubt: "{count} intervals have no beginning and count as one second: shares are right, times are not.";
        rows_without_time: u64, "rows without a date",
            doubt: "{count} rows have no time: mpstat's first line, with the date, is missing.";
        dates_guessed: u64, "dates such as 08/05/26, which were read as month and day",
            doubt: "{count} dates may be day and month, and were read as month and day.";
    }
}

/// Rows of the lines of mpstat.
pub struct Parser {
    zone_s: Option<i32>,
    /// As asked for.
    host: Option<String>,
    anonymiser: Anonymiser,
    report: Report,
    table: Cpu,
    full: VecDeque<RecordBatch>,
    json: Gathered,
    json_at: u64,
    /// As the file says.
    told_host: Option<String>,
    date: Option<NaiveDate>,
    /// Midnights since the date.
    days: i64,
    /// The latest time, in nanoseconds of a day: an earlier one means that midnight has passed.
    latest_ns: i64,
    /// Places of the shares in the lines of the table under way; `None`: of another table.
    columns: Option<Vec<Option<usize>>>,
    /// Beginning and end of the interval under way.
    begin_ns: Option<i64>,
    end_ns: Option<i64>,
    processors: HashMap<(Option<String>, i32), Processor>,
}

impl Default for Parser {
    fn default() -> Parser {
        Parser {
            zone_s: None,
            host: None,
            anonymiser: Anonymiser::Keep,
            report: Report::default(),
            table: Cpu::default(),
            full: VecDeque::new(),
            json: Gathered::default(),
            json_at: 0,
            told_host: None,
            date: None,
            days: 0,
            latest_ns: 0,
            columns: None,
            begin_ns: None,
            end_ns: None,
            processors: HashMap::new(),
        }
    }
}

/// Time of a processor so far, and when its last row was.
#[derive(Clone, Default)]
struct Processor {
    us: [f64; 10],
    at_ns: Option<i64>,
}

impl Parser {
    fn text(&mut self, line: &str) -> Option<()> {
        if let Some(rest) = line.strip_prefix("Linux ") {
            return self.first_line(rest);
        }
        let mut words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.first().is_some_and(|word| word.ends_with(':')) {
            // Averages, in the words of any language.
            return Some(());
        }
        let time = clock(&words)?;
        let is_half = words
            .get(1)
            .is_some_and(|word| matches!(*word, "AM" | "PM"));
        words.drain(..1 + usize::from(is_half));
        let &first = words.first()?;
        if !first.bytes().next()?.is_ascii_digit() && first != "all" {
            let is_ours = first == "CPU" && words.iter().any(|word| share(word).is_some());
            self.columns = is_ours.then(|| words[1..].iter().map(|word| share(word)).collect());
            self.begin_ns = Some(self.at(time)?);
            self.end_ns = None;
            return Some(());
        }
        let Some(columns) = self.columns.take() else {
            return Some(());
        };
        let read = self.row(time, first, &words[1..], &columns);
        self.columns = Some(columns);
        read
    }

    /// `RELEASE (HOST) DATE _ARCHITECTURE_ (N CPU)`: another run of mpstat.
    fn first_line(&mut self, rest: &str) -> Option<()> {
        let (_, rest) = rest.split_once(" (")?;
        let (host, rest) = rest.split_once(") ")?;
        self.told_host = Some(host.to_owned());
        self.day(rest.split_ascii_whitespace().next()?);
        self.columns = None;
        Some(())
    }

    fn day(&mut self, text: &str) {
        let (date, is_guess) = date(text);
        self.date = date;
        self.report.more.dates_guessed += u64::from(is_guess);
        (self.days, self.latest_ns) = (0, 0);
    }

    /// Nanoseconds since the midnight of the date; the clock goes on. `None`: for longer than a number of them.
    fn at(&mut self, time: NaiveTime) -> Option<i64> {
        let ns = i64::from(time.num_seconds_from_midnight()) * SECOND_NS;
        // The heading of an interval repeats the time at which the one before ended.
        if ns < self.latest_ns {
            self.days += 1;
        }
        self.latest_ns = ns;
        self.days.checked_mul(DAY_NS)?.checked_add(ns)
    }

    fn row(
        &mut self,
        time: NaiveTime,
        cpu: &str,
        words: &[&str],
        columns: &[Option<usize>],
    ) -> Option<()> {
        let mut shares = [0.0; 10];
        if words.len() != columns.len() {
            return None;
        }
        for (word, place) in words.iter().zip(columns) {
            let value: f64 = word.replace(',', ".").parse().ok()?;
            if let Some(place) = place {
                shares[*place] = pct(value)?;
            }
        }
        let end_ns = self.at(time)?;
        if self.end_ns.is_some_and(|last| last != end_ns) {
            self.begin_ns = self.end_ns;
        }
        self.end_ns = Some(end_ns);
        if cpu == "all" {
            self.report.more.sums += 1;
            return Some(());
        }
        let cpu = cpu.parse().ok()?;
        // A report since boot ends when it begins.
        let begin_ns = self.begin_ns.filter(|begin_ns| *begin_ns < end_ns);
        self.add(cpu, begin_ns, end_ns, &shares)
    }

    /// Adds an interval of a processor; `None`: there are too many of them.
    fn add(
        &mut self,
        cpu: i32,
        begin_ns: Option<i64>,
        end_ns: i64,
        shares: &[f64; 10],
    ) -> Option<()> {
        let host = self.host.clone().or_else(|| self.told_host.clone());
        let key = (host, cpu);
        if !self.processors.contains_key(&key) && self.processors.len() == PROCESSORS {
            return None;
        }
        let processor = self.processors.entry(key).or_default();
        let is_first_of_interval = processor.at_ns != Some(end_ns);
        let begin = begin_ns.unwrap_or(end_ns - SECOND_NS);
        let before = processor.clone();
        for (us, share) in processor.us.iter_mut().zip(shares) {
            *us += share / 100.0 * (end_ns - begin) as f64 / 1e3;
        }
        processor.at_ns = Some(end_ns);
        let now = processor.us;
        if is_first_of_interval && cpu == 0 {
            self.report.more.intervals += 1;
            self.report.more.without_length += u64::from(begin_ns.is_none());
        }
        if before.at_ns != Some(begin) {
            self.push(cpu, begin, &before.us);
        }
        self.push(cpu, end_ns, &now);
        Some(())
    }

    fn push(&mut self, cpu: i32, at_ns: i64, us: &[f64; 10]) {
        if self.table.is_full() {
            self.full.push_back(knee_store::take(&mut self.table));
        }
        let row = self.table.add_row();
        let t_unix_ns = self.unix_ns(at_ns);
        let to = &mut self.table;
        match t_unix_ns {
            Some(t_unix_ns) => to.t_unix_ns.set(row, t_unix_ns),
            None => self.report.more.rows_without_time += 1,
        }
        to.t_mono_ns.set(row, at_ns);
        let host = self.host.as_deref().or(self.told_host.as_deref());
        name(&mut to.host, row, host);
        to.cpu.set(row, cpu);
        let [
            user,
            nice,
            system,
            idle,
            iowait,
            irq,
            softirq,
            steal,
            guest,
            guest_nice,
        ] = us.map(|us| us.round() as i64);
        to.user_us.set(row, user.saturating_add(guest));
        to.nice_us.set(row, nice.saturating_add(guest_nice));
        to.system_us.set(row, system);
        to.idle_us.set(row, idle);
        to.iowait_us.set(row, iowait);
        to.irq_us.set(row, irq);
        to.softirq_us.set(row, softirq);
        to.steal_us.set(row, steal);
        to.guest_us.set(row, guest);
        to.guest_nice_us.set(row, guest_nice);
        self.report.rows += 1;
    }

    fn unix_ns(&self, at_ns: i64) -> Option<i64> {
        let midnight = self.date?.and_time(NaiveTime::MIN).and_utc();
        let zone_ns = i64::from(self.zone_s.unwrap_or(0)) * SECOND_NS;
        midnight
            .timestamp_nanos_opt()?
            .checked_add(at_ns)?
            .checked_sub(zone_ns)
    }

    fn document(&mut self, text: &[u8]) -> Result<(), String> {
        let whole: Value = serde_json::from_slice(text).map_err(|_| "not JSON".to_owned())?;
        let hosts = whole.pointer("/sysstat/hosts").and_then(Value::as_array);
        let hosts = hosts.ok_or("no output of mpstat: it has no sysstat.hosts")?;
        for host in hosts {
            self.told_host = host
                .get("nodename")
                .and_then(Value::as_str)
                .map(str::to_owned);
            self.day(host.get("date").and_then(Value::as_str).unwrap_or_default());
            let reports = host.get("statistics").and_then(Value::as_array);
            let reports = reports.map_or(&[][..], Vec::as_slice);
            let mut ends = Vec::new();
            for report in reports {
                let stamp = report.get("timestamp").and_then(Value::as_str);
                let words: Vec<&str> = stamp.unwrap_or_default().split(' ').collect();
                let time = clock(&words).ok_or("a timestamp is no time such as 12:00:00")?;
                ends.push(self.at(time).ok_or("its clock goes back too often")?);
            }
            let length_ns = ends.get(1).map(|next| next - ends[0]);
            let begins = [length_ns.map(|length_ns| ends[0] - length_ns)].into_iter();
            let begins = begins.chain(ends.iter().map(|end| Some(*end)));
            for ((report, &end_ns), begin_ns) in reports.iter().zip(&ends).zip(begins) {
                let begin_ns = begin_ns.filter(|begin_ns| *begin_ns < end_ns);
                let lines = report.get("cpu-load").and_then(Value::as_array);
                for line in lines.into_iter().flatten() {
                    let cpu = line.get("cpu").and_then(Value::as_str).unwrap_or_default();
                    if cpu == "all" {
                        self.report.more.sums += 1;
                        continue;
                    }
                    let cpu = cpu.parse().map_err(|_| "a cpu is no number".to_owned())?;
                    let mut shares = [0.0; 10];
                    for (name, place) in SHARES {
                        if let Some(value) = line.get(name) {
                            let value = value.as_f64().and_then(pct);
                            shares[place] = value.ok_or_else(|| format!("{name} is no share"))?;
                        }
                    }
                    self.add(cpu, begin_ns, end_ns, &shares)
                        .ok_or("too many processors")?;
                }
            }
        }
        Ok(())
    }

    fn not_understood_at(&mut self, unit: u64, shown: impl FnOnce() -> String) {
        let keeps = matches!(self.anonymiser, Anonymiser::Keep);
        self.report
            .not_understood_at(unit, || if keeps { shown() } else { String::new() });
    }
}

impl Lines for Parser {
    fills!(Cpu);

    fn file(&mut self, path: &Path) {
        self.end_file();
        self.report.begin(path);
        self.told_host = None;
        self.date = None;
        (self.days, self.latest_ns) = (0, 0);
        self.columns = None;
    }

    fn line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        self.report.count();
        let first = self.json_at;
        match self.json.line(line, b"{") {
            Came::Within if first == 0 => self.json_at = self.report.unit,
            Came::Within => {}
            Came::Whole(text) => {
                if let Err(why) = self.document(&text) {
                    self.not_understood_at(self.report.unit, || why);
                }
                self.json_at = 0;
            }
            Came::TooLong => {
                self.report.not_understood(|| {
                    format!("{TOO_LONG}; what mpstat prints without -o JSON may be longer")
                });
                self.json_at = 0;
            }
            Came::Outside => {
                let text = String::from_utf8_lossy(line);
                let text = text.trim();
                if !text.is_empty() && self.text(text).is_none() {
                    let shown = String::from_utf8_lossy(lines::beginning(line));
                    self.not_understood_at(self.report.unit, || shown.trim().to_owned());
                }
            }
        }
        self.full.pop_front()
    }

    fn too_long(&mut self, beginning: &[u8]) {
        self.report.count();
        let shown = String::from_utf8_lossy(beginning).trim().to_owned();
        self.not_understood_at(self.report.unit, || shown);
    }

    fn take(&mut self) -> Vec<RecordBatch> {
        self.end_file();
        if self.table.rows() > 0 {
            self.full.push_back(knee_store::take(&mut self.table));
        }
        std::mem::take(&mut self.full).into()
    }
}

impl Parser {
    fn end_file(&mut self) {
        if self.json.end() {
            self.not_understood_at(self.json_at, || {
                "the document that begins here has no end".into()
            });
        }
        self.json_at = 0;
    }
}

/// The time of day at the beginning of a line.
fn clock(words: &[&str]) -> Option<NaiveTime> {
    let text = words.first()?;
    // JSON of some locales has date and time.
    let time: NaiveTime = text
        .trim_end_matches('Z')
        .rsplit('T')
        .next()?
        .parse()
        .ok()?;
    match words.get(1) {
        Some(&half @ ("AM" | "PM")) => {
            time.with_hour(time.hour() % 12 + if half == "PM" { 12 } else { 0 })
        }
        _ => Some(time),
    }
}

/// The place of a column with that heading.
fn share(heading: &str) -> Option<usize> {
    let name = heading.strip_prefix('%')?;
    SHARES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, place)| *place)
}

fn pct(value: f64) -> Option<f64> {
    (0.0..=MOST_PCT).contains(&value).then_some(value)
}

/// A date in the form of a locale, and whether day and month may have changed places.
fn date(text: &str) -> (Option<NaiveDate>, bool) {
    let mut numbers = text.split(['/', '-', '.']).map(str::parse::<i32>);
    let mut next = || numbers.next().and_then(Result::ok);
    let (Some(first), Some(second), Some(third)) = (next(), next(), next()) else {
        return (None, false);
    };
    let full = |year: i32| if year < 100 { 2000 + year } else { year };
    let (year, month, day, is_guess) = match text.contains('.') {
        _ if first > 31 => (first, second, third, false),
        true => (full(third), second, first, false),
        false if first > 12 => (full(third), second, first, false),
        false => (full(third), first, second, second <= 12 && first != second),
    };
    let date = u32::try_from(month)
        .ok()
        .zip(u32::try_from(day).ok())
        .and_then(|(month, day)| NaiveDate::from_ymd_opt(year, month, day));
    (date, is_guess && date.is_some())
}
