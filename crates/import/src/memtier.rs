//! `memtier_benchmark`: its table of results, and the JSON of `--json-out-file`, which may be among it. Source:
//! `run_stats.cpp` and `memtier_benchmark.cpp` of memtier_benchmark 1.2 to 2.1.

use serde_json::Value;

use super::gathered::{Came, Gathered, TOO_LONG};
use super::kind::{first_lines, holds};
use super::programs::{self, Parser, Reader, TABLE, Test, number, whole};
use super::{Kind, More as _, Sample};

/// Results of the one run, or of each of several.
pub const ALL: &str = "ALL STATS";
/// Headings of results; the others are of several runs (-x).
const RESULTS: [&str; 4] = [
    ALL,
    "BEST RUN RESULTS",
    "WORST RUN RESULTS",
    "AGGREGATED AVERAGE RESULTS",
];

pub static KIND: Kind = Kind {
    name: "memtier",
    summary: "Output of memtier_benchmark: its table, and JSON.",
    about: "Import output of memtier_benchmark: a row of the table `program_tests` for each table of results.\n\n\
        What it prints, and the files of --json-out-file; several runs in one file; plain, gzip or zstd.",
    page: "\
Rows are of the line `Totals`: operations per second and the percentiles of their latency, with the threads and
connections that the same output says. Percentiles that were not printed are null; `--print-percentiles 50,95,99` prints
those that have columns. JSON and a table of the same results in one file are one row. With `-x` there is a row for the
best, the worst and the mean of the runs, told apart by `kind`.

The same reader gives [`programs`](scenario.md) of a run what its memtier_benchmark measured.",
    examples: &[
        "knee import memtier run.json table.txt --out imp",
        "knee sql 'select threads, connections, requests_per_sec, latency_us_p99 from program_tests order by all' imp",
    ],
    tables: &[TABLE],
    options: &[],
    unit: "lines",
    row: "line Totals of memtier_benchmark",
    expected: "what memtier_benchmark prints, or its JSON",
    told: "{rows:test} from {lines:line}",
    counts: programs::More::COUNTS,
    sample: Sample::File("tests/data/programs/memtier.txt"),
    looks: |begin| {
        first_lines(begin).any(|line| line.starts_with(b"Type ") && holds(line, b"Ops/sec"))
            || first_lines(begin).any(|line| line.starts_with(b"[RUN #"))
            || holds(begin, b"\"ALL STATS\"")
            || holds(begin, b"\"configuration\"") && holds(begin, b"\"ratio\"")
    },
    build: |given| Ok(Box::new(Parser::<Memtier>::new(given))),
};

/// What was read of memtier_benchmark so far.
#[derive(Default)]
pub struct Memtier {
    json: Gathered,
    is_too_long: bool,
    kind: Option<&'static str>,
    threads: Option<i64>,
    connections: Option<i64>,
    seconds: Option<i64>,
    heads: Vec<String>,
}

impl Memtier {
    fn text(&mut self, line: &str, tests: &mut Vec<Test>) -> bool {
        // Progress is written over with carriage returns.
        let line = line.rsplit('\r').next().unwrap_or_default().trim();
        if let Some(kind) = RESULTS.iter().find(|kind| line.starts_with(**kind)) {
            self.kind = Some(kind);
            return true;
        }
        if let Some(heads) = line
            .strip_prefix("Type ")
            .filter(|heads| heads.contains("Ops/sec"))
        {
            let heads = heads
                .split("  ")
                .map(str::trim)
                .filter(|head| !head.is_empty());
            self.heads = heads.map(str::to_owned).collect();
            return true;
        }
        if let Some(totals) = line.strip_prefix("Totals ") {
            return self.totals(totals, tests);
        }
        if let Some((count, what)) = line.split_once(' ')
            && let (Some(count), what) = (whole(count), what.trim())
        {
            match what {
                "Threads" => self.threads = Some(count),
                "Connections per thread" => self.connections = Some(count),
                "Seconds" => self.seconds = Some(count),
                "Requests per client" => {}
                _ => return false,
            }
            return true;
        }
        is_besides(line)
    }

    fn totals(&mut self, totals: &str, tests: &mut Vec<Test>) -> bool {
        let values: Vec<&str> = totals.split_ascii_whitespace().collect();
        if values.len() != self.heads.len() {
            return false;
        }
        let pairs = || {
            self.heads
                .iter()
                .map(String::as_str)
                .zip(values.iter().copied())
        };
        let rate = pairs().find(|(head, _)| *head == "Ops/sec");
        let latencies = pairs()
            .filter_map(|(head, value)| Some((head.strip_suffix(" Latency")?, number(value)?)));
        let Some(rate) = rate.and_then(|(_, value)| number(value)) else {
            return false;
        };
        tests.push(self.test(self.kind.unwrap_or(ALL), rate, latencies));
        true
    }

    fn test<'a>(
        &self,
        kind: &str,
        rate: f64,
        latencies_ms: impl Iterator<Item = (&'a str, f64)>,
    ) -> Test {
        let mut test = Test {
            kind: Some(kind.to_owned()),
            threads: self.threads,
            connections: (self.threads.zip(self.connections))
                .and_then(|(threads, each)| threads.checked_mul(each)),
            duration_us: self
                .seconds
                .and_then(|seconds| seconds.checked_mul(1_000_000)),
            requests_per_sec: Some(rate),
            ..Test::default()
        };
        for (name, ms) in latencies_ms {
            // p50, p50.00 or 50.000.
            let percent: Option<f64> = name.strip_prefix('p').unwrap_or(name).parse().ok();
            let to = match percent {
                Some(50.0) => &mut test.latency_us_p50,
                Some(95.0) => &mut test.latency_us_p95,
                Some(99.0) => &mut test.latency_us_p99,
                _ => continue,
            };
            *to = Some(ms * 1e3);
        }
        test
    }

    fn document(&mut self, text: &[u8], tests: &mut Vec<Test>) -> bool {
        let Ok(whole) = serde_json::from_slice::<Value>(text) else {
            return false;
        };
        let configured = |key: &str, informed: &str| {
            let from = |part: &str, key: &str| whole.get(part)?.get(key)?.as_i64();
            from("configuration", key).or_else(|| from("run information", informed))
        };
        self.threads = configured("threads", "Threads");
        self.connections = configured("clients", "Connections per thread");
        self.seconds = None;
        let size = whole
            .pointer("/configuration/data_size")
            .and_then(Value::as_i64);
        let before = tests.len();
        for kind in RESULTS {
            // The aggregate has how many runs it is of behind it.
            let members = whole.as_object().into_iter().flatten();
            let mut named = members.filter(|(name, _)| name.starts_with(kind));
            let Some((_, results)) = named.next() else {
                continue;
            };
            let Some(totals) = results.get("Totals") else {
                continue;
            };
            let Some(rate) = totals.get("Ops/sec").and_then(Value::as_f64) else {
                continue;
            };
            let latencies = totals
                .get("Percentile Latencies")
                .and_then(Value::as_object);
            let latencies = latencies.into_iter().flatten();
            let latencies = latencies.filter_map(|(name, ms)| Some((name.as_str(), ms.as_f64()?)));
            let mut test = self.test(kind, rate, latencies);
            let ms = results
                .pointer("/Runtime/Total duration")
                .and_then(Value::as_i64);
            test.duration_us = ms.and_then(|ms| ms.checked_mul(1000));
            test.write_bytes = size;
            tests.push(test);
        }
        tests.len() > before
    }
}

impl Reader for Memtier {
    const PROGRAM: &'static str = "memtier_benchmark";

    fn line(&mut self, line: &[u8], tests: &mut Vec<Test>) -> bool {
        match self.json.line(line, b"{") {
            Came::Outside => self.text(&String::from_utf8_lossy(line), tests),
            Came::Within => true,
            Came::Whole(text) => self.document(&text, tests),
            Came::TooLong => {
                self.is_too_long = true;
                false
            }
        }
    }

    fn why(&mut self) -> Option<&'static str> {
        std::mem::take(&mut self.is_too_long).then_some(TOO_LONG)
    }

    fn end(&mut self, _tests: &mut Vec<Test>) -> bool {
        let is_whole = !self.json.end();
        *self = Memtier::default();
        is_whole
    }
}

/// Lines that say nothing of the totals: other rows, progress, the distribution of latencies.
fn is_besides(line: &str) -> bool {
    const BEGINNINGS: [&str; 12] = [
        "Sets ",
        "Gets ",
        "Waits ",
        "[RUN #",
        "Writing results",
        "Request Latency Distribution",
        "Type ",
        "SET ",
        "GET ",
        "WAIT ",
        "No. of ",
        "json_out_file",
    ];
    line.is_empty()
        || line.bytes().all(|byte| byte == b'=' || byte == b'-')
        || BEGINNINGS
            .iter()
            .any(|beginning| line.starts_with(beginning))
}
