//! `netperf`: its tables with and without headings (`-P 0`), with and without processors (`-c -C`), and the selectors of
//! omni tests as a table, as CSV (`-o`) and as keywords (`-k`). Source: `netlib.c`, `nettest_bsd.c` and `nettest_omni.c` of
//! netperf 2.4 to 2.7.
//!
//! Without a heading nothing says in which unit a stream's throughput is: it is taken for netperf's own, 10^6 bits/s.

use std::collections::HashMap;

use super::kind::{first_lines, holds};
use super::programs::{self, Parser, Reader, TABLE, Test, number, us, whole};
use super::{Kind, More as _, Sample};

/// Words of the headings of tables.
const HEADING: &[&str] = &[
    "Local",
    "/Remote",
    "Remote",
    "Socket",
    "Size",
    "Request",
    "Resp.",
    "Elapsed",
    "Trans.",
    "CPU",
    "S.dem",
    "Send",
    "Recv",
    "Time",
    "Rate",
    "local",
    "remote",
    "bytes",
    "Bytes",
    "secs.",
    "secs",
    "per",
    "sec",
    "%",
    "S",
    "M",
    "U",
    "us/Tr",
    "us/KB",
    "Message",
    "Messages",
    "Throughput",
    "Okay",
    "Errors",
    "#",
    "Utilization",
    "Service",
    "Demand",
    "Final",
    "Units",
    "(sec)",
];
/// Its name of bits per second or bytes per second, before /s or /sec.
const UNITS: [(&str, f64); 6] = [
    ("10^3bits", 1e3),
    ("10^6bits", 1e6),
    ("10^9bits", 1e9),
    ("KBytes", 8.0 * 1024.0),
    ("MBytes", 8.0 * 1_048_576.0),
    ("GBytes", 8.0 * 1_073_741_824.0),
];
const OWN_UNIT: f64 = 1e6;
const TRANSACTIONS: &str = "Trans/s";
/// What a line of its titles has in it, and the test's name (-t); the first that fits.
const TITLES: [(&str, &str); 9] = [
    ("TCP STREAM TEST", "TCP_STREAM"),
    ("TCP SENDFILE TEST", "TCP_SENDFILE"),
    ("TCP MAERTS TEST", "TCP_MAERTS"),
    ("UDP STREAM TEST", "UDP_STREAM"),
    ("UDP UNIDIRECTIONAL SEND TEST", "UDP_STREAM"),
    ("TCP Connect/Request/Response TEST", "TCP_CRR"),
    ("TCP REQUEST/RESPONSE TEST", "TCP_RR"),
    ("UDP REQUEST/RESPONSE TEST", "UDP_RR"),
    ("OMNI", "OMNI"),
];
/// Headings of omni's CSV, by the keyword of the same selector.
const CSV: [(&str, &str); 10] = [
    ("Throughput", "THROUGHPUT"),
    ("Throughput Units", "THROUGHPUT_UNITS"),
    ("50th Percentile Latency Microseconds", "P50_LATENCY"),
    ("99th Percentile Latency Microseconds", "P99_LATENCY"),
    ("Elapsed Time (sec)", "ELAPSED_TIME"),
    ("Local Send Size", "LOCAL_SEND_SIZE"),
    ("Request Size Bytes", "REQUEST_SIZE"),
    ("Response Size Bytes", "RESPONSE_SIZE"),
    ("Local CPU Util %", "LOCAL_CPU_UTIL"),
    ("Remote CPU Util %", "REMOTE_CPU_UTIL"),
];

pub static KIND: Kind = Kind {
    name: "netperf",
    summary: "Output of netperf: its tables, and -k and -o.",
    about: "Import output of netperf: a row of the table `program_tests` for each test.\n\n\
        TCP_RR, TCP_CRR, TCP_STREAM, TCP_MAERTS, UDP_STREAM and omni, with and without headings (-P 0) and processors (-c \
        -C), several tests in one file; plain, gzip or zstd.",
    page: "\
A loop over sizes that appends to one file makes a row for each test, with its sizes where netperf prints them. Keywords
(`-k`) and CSV (`-o`) have what was selected; select THROUGHPUT and THROUGHPUT_UNITS. Without a heading a line of five
numbers is a stream's, of six a request/response test's, and a stream's unit is 10^6 bits/s. Of UDP_STREAM the goodput is
what was received.

The same reader gives [`programs`](scenario.md) of a run what its netperf measured.",
    examples: &[
        "knee import netperf tcp_rr.txt --out imp",
        "knee sql 'select request_bytes, requests_per_sec, local_cpu_share from program_tests order by all' imp",
    ],
    tables: &[TABLE],
    options: &[],
    unit: "lines",
    row: "test of netperf",
    expected: "what netperf prints",
    told: "{rows:test} from {lines:line}",
    counts: programs::More::COUNTS,
    sample: Sample::File("tests/data/programs/netperf.txt"),
    looks: |begin| {
        let is_row = |line: &[u8]| {
            let numbers = std::str::from_utf8(line).ok().and_then(numbers);
            numbers.is_some_and(|numbers| matches!(numbers.len(), 5 | 6 | 9 | 10))
        };
        let is_title = |line: &[u8]| std::str::from_utf8(line).is_ok_and(|line| title(line).is_some());
        let mut lines = first_lines(begin).filter(|line| !line.trim_ascii().is_empty());
        first_lines(begin).any(is_title)
            || holds(begin, b"THROUGHPUT=")
            || holds(begin, b"THROUGHPUT_UNITS=")
            || lines.next().is_some_and(is_row)
    },
    build: |given| Ok(Box::new(Parser::<Netperf>::new(given))),
};

/// What was read of netperf so far.
#[derive(Default)]
pub struct Netperf {
    kind: Option<&'static str>,
    /// Bits per second in the unit of the heading; `None`: none, or one that is not known.
    unit: Option<f64>,
    /// Is there a unit, if an unknown one?
    has_unit: bool,
    /// The heading of CSV: keywords.
    csv: Option<Vec<Option<&'static str>>>,
    keywords: HashMap<String, String>,
    /// Of UDP: the test of whose receiver the line is to come.
    sent: Option<Test>,
}

impl Netperf {
    fn text(&mut self, line: &str, tests: &mut Vec<Test>) -> bool {
        let line = line.trim();
        if line.is_empty() {
            return true;
        }
        if let Some((keyword, value)) = keyword(line) {
            // The first keyword again: the next test.
            if self.keywords.contains_key(keyword) {
                self.end_test(tests);
            }
            if self.keywords.len() < HEADING.len() * 4 {
                self.keywords.insert(keyword.to_owned(), value.to_owned());
            }
            return true;
        }
        let is_receivers = |numbers: &[f64]| matches!(numbers.len(), 4 | 6);
        let numbers = numbers(line);
        if let (Some(sent), Some(numbers)) = (&mut self.sent, &numbers)
            && is_receivers(numbers)
        {
            let bits = self.unit.or((!self.has_unit).then_some(OWN_UNIT));
            sent.goodput_bits_per_sec = bits.map(|bits| numbers[3] * bits);
            self.end_test(tests);
            return true;
        }
        self.end_test(tests);
        if let Some(kind) = title(line) {
            *self = Netperf {
                kind: Some(kind),
                ..Netperf::default()
            };
            return true;
        }
        if numbers.is_some() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            return self.row(&words, tests);
        }
        if line.contains(',') {
            return self.csv(line, tests);
        }
        // Beside what processors do the unit is padded to eight columns: `MBytes  /s`.
        let heading = line.replace("Bytes  /s", "Bytes/s");
        let words: Vec<&str> = heading.split_ascii_whitespace().collect();
        if words
            .iter()
            .all(|word| HEADING.contains(word) || is_rate(word))
        {
            if let Some(unit) = words.iter().find(|word| is_rate(word)) {
                (self.unit, self.has_unit) = (bits(unit), true);
            }
            return true;
        }
        // The table of omni: what was selected, then throughput and its unit.
        if let [before @ .., value, unit] = &words[..]
            && (is_rate(unit) || *unit == TRANSACTIONS)
            && number(value).is_some()
        {
            let mut said = HashMap::from([("THROUGHPUT", *value), ("THROUGHPUT_UNITS", *unit)]);
            if let [_, _, size, seconds] = before {
                said.extend([("LOCAL_SEND_SIZE", *size), ("ELAPSED_TIME", *seconds)]);
            }
            tests.push(self.omni(|key| said.get(key).copied()));
            return true;
        }
        // A heading with what it does not say elsewhere: no unit of ours stands for that.
        self.has_unit |= words.contains(&"secs.");
        line.starts_with("Interim result:") || line.starts_with('!') || line.starts_with("catcher:")
    }

    /// A line of numbers: five are a stream's, six of request and response; with processors four more.
    fn row(&mut self, words: &[&str], tests: &mut Vec<Test>) -> bool {
        let bits = self.unit.or((!self.has_unit).then_some(OWN_UNIT));
        let kind = self.kind.map(str::to_owned);
        if self.kind == Some("UDP_STREAM") {
            let (&[_, size, seconds, _, _, rate] | &[_, size, seconds, _, _, rate, _, _]) = words
            else {
                return false;
            };
            self.sent = Some(Test {
                kind,
                write_bytes: whole(size),
                duration_us: us(seconds),
                goodput_bits_per_sec: bits.zip(number(rate)).map(|(bits, rate)| bits * rate),
                ..Test::default()
            });
            return true;
        }
        let cpu = |at: usize| {
            words
                .get(at)
                .and_then(|word| number(word))
                .map(|pct| pct / 100.0)
        };
        match words {
            // The far end's buffers.
            [_, _] => {}
            [_, _, size, seconds, rate] | [_, _, size, seconds, rate, _, _, _, _] => {
                tests.push(Test {
                    kind,
                    write_bytes: whole(size),
                    duration_us: us(seconds),
                    goodput_bits_per_sec: bits.zip(number(rate)).map(|(bits, rate)| bits * rate),
                    local_cpu_share: cpu(5),
                    remote_cpu_share: cpu(6),
                    ..Test::default()
                });
            }
            [_, _, request, response, seconds, rate]
            | [_, _, request, response, seconds, rate, _, _, _, _] => tests.push(Test {
                kind,
                request_bytes: whole(request),
                response_bytes: whole(response),
                duration_us: us(seconds),
                requests_per_sec: number(rate),
                local_cpu_share: cpu(6),
                remote_cpu_share: cpu(7),
                ..Test::default()
            }),
            _ => return false,
        }
        true
    }

    fn csv(&mut self, line: &str, tests: &mut Vec<Test>) -> bool {
        let fields = fields(line);
        if fields.iter().any(|field| field == "Throughput") {
            let known = |field: &String| CSV.iter().find(|(head, _)| head == field);
            let heads = fields
                .iter()
                .map(|field| known(field).map(|(_, keyword)| *keyword));
            self.csv = Some(heads.collect());
            return true;
        }
        let said: HashMap<&str, &str> = match &self.csv {
            Some(heads) if heads.len() == fields.len() => heads
                .iter()
                .zip(&fields)
                .filter_map(|(head, field)| Some(((*head)?, field.as_str())))
                .collect(),
            Some(_) => return false,
            // Without headings: the value before a unit.
            None => {
                let is_unit = |field: &String| is_rate(field) || field == TRANSACTIONS;
                let Some(at) = fields.iter().position(is_unit).filter(|at| *at > 0) else {
                    return false;
                };
                HashMap::from([
                    ("THROUGHPUT", fields[at - 1].as_str()),
                    ("THROUGHPUT_UNITS", fields[at].as_str()),
                ])
            }
        };
        if said
            .get("THROUGHPUT")
            .is_none_or(|value| number(value).is_none())
        {
            return false;
        }
        tests.push(self.omni(|key| said.get(key).copied()));
        true
    }

    /// A test of selectors.
    fn omni<'a>(&self, said: impl Fn(&str) -> Option<&'a str>) -> Test {
        let value = said("THROUGHPUT").and_then(number);
        let unit = said("THROUGHPUT_UNITS");
        let are_requests = match unit {
            Some(unit) => unit == TRANSACTIONS,
            None => self.kind.is_some_and(|kind| kind.ends_with("RR")),
        };
        let share = |key: &str| said(key).and_then(number).map(|pct| pct / 100.0);
        let size = |key: &str| said(key).and_then(whole);
        let mut test = Test {
            kind: self.kind.map(str::to_owned),
            duration_us: said("ELAPSED_TIME").and_then(us),
            local_cpu_share: share("LOCAL_CPU_UTIL"),
            remote_cpu_share: share("REMOTE_CPU_UTIL"),
            ..Test::default()
        };
        if are_requests {
            test.requests_per_sec = value;
            test.latency_us_p50 = said("P50_LATENCY").and_then(number);
            test.latency_us_p99 = said("P99_LATENCY").and_then(number);
            test.request_bytes = size("REQUEST_SIZE");
            test.response_bytes = size("RESPONSE_SIZE");
        } else {
            let bits = unit.and_then(bits);
            test.goodput_bits_per_sec = bits.zip(value).map(|(bits, value)| bits * value);
            test.write_bytes = size("LOCAL_SEND_SIZE");
        }
        test
    }

    /// Ends a test of keywords, or one whose receiver says nothing.
    fn end_test(&mut self, tests: &mut Vec<Test>) {
        tests.extend(self.sent.take());
        let keywords = std::mem::take(&mut self.keywords);
        if keywords.contains_key("THROUGHPUT") {
            tests.push(self.omni(|key| keywords.get(key).map(String::as_str)));
        }
    }
}

impl Reader for Netperf {
    const PROGRAM: &'static str = "netperf";

    fn line(&mut self, line: &[u8], tests: &mut Vec<Test>) -> bool {
        self.text(&String::from_utf8_lossy(line), tests)
    }

    fn end(&mut self, tests: &mut Vec<Test>) -> bool {
        self.end_test(tests);
        *self = Netperf::default();
        true
    }
}

fn title(line: &str) -> Option<&'static str> {
    let is_title = line.contains(" TEST ") || line.ends_with(" TEST");
    let found = TITLES.iter().find(|(words, _)| line.contains(words));
    found.filter(|_| is_title).map(|(_, kind)| *kind)
}

/// `THROUGHPUT=41234.56`
fn keyword(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let is_keyword = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (!key.is_empty() && key.bytes().all(is_keyword)).then_some((key, value.trim()))
}

/// The numbers of a line that has nothing else; -1.00 stands for one that is not known.
fn numbers(line: &str) -> Option<Vec<f64>> {
    let digit = |byte: u8| byte.is_ascii_digit() || byte == b'.' || byte == b'-';
    let words = line.split_ascii_whitespace();
    let found: Option<Vec<f64>> = words
        .map(|word| word.bytes().all(digit).then(|| word.parse().ok()).flatten())
        .collect();
    found.filter(|found| !found.is_empty())
}

fn is_rate(word: &str) -> bool {
    word.strip_suffix("/sec")
        .or_else(|| word.strip_suffix("/s"))
        .is_some_and(|unit| unit.ends_with("bits") || unit.ends_with("Bytes"))
}

fn bits(unit: &str) -> Option<f64> {
    let unit = unit
        .strip_suffix("/sec")
        .or_else(|| unit.strip_suffix("/s"))?;
    UNITS
        .iter()
        .find(|(known, _)| *known == unit)
        .map(|(_, bits)| *bits)
}

/// Fields of a line of CSV, in quotes or not.
fn fields(line: &str) -> Vec<String> {
    let (mut found, mut is_quoted) = (vec![String::new()], false);
    for char in line.chars() {
        match char {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => found.push(String::new()),
            char => found.last_mut().expect("there is one").push(char),
        }
    }
    found.iter().map(|field| field.trim().to_owned()).collect()
}
